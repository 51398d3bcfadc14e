/* SPDX-License-Identifier: Apache-2.0 */
/* manager.h - what the web server asks of the manager over the link: logins, and their keypairs
 *
 * Loop's thread only; callbacks never come from within a call.
 */
#ifndef AQ_WEB_MANAGER_H
#define AQ_WEB_MANAGER_H

#include <jansson.h>

#include "base/list.h"
#include "front/program.h"

struct manager_ask;

struct manager {
    struct front *front;
    struct list asks; /* struct manager_ask */
    size_t ask_count;
};

void manager_init(struct manager *manager, struct front *front);
/* No callbacks follow. */
void manager_done(struct manager *manager);
bool manager_is_connected(const struct manager *manager);

/* What front_type.on_message() and front_type.on_disconnected() bring. */
void manager_take_answer(struct manager *manager, const struct msg_web_answer *answer);
void manager_on_disconnected(struct manager *manager);

/* 'result', or NULL and 'err'; borrowed for the call; the ask is gone then. 'retry_sec': when to
 * try again, 0 = it says nothing. -ENOTCONN = the manager is away.
 */
typedef void manager_answered_fn(void *data, const json_t *result, const struct aq_error *err,
                                 int64_t retry_sec);

/* 'args' is taken. 'fn' NULL = the answer is not wanted; then nothing is in *ret. */
int manager_ask(struct manager *manager, const char *op, json_t *args, manager_answered_fn *fn,
                void *data, struct manager_ask **ret, struct aq_error *err);
/* The answer is not wanted any more. NULL is fine. */
void manager_cancel(struct manager_ask *ask);

#endif
