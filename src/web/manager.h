/* SPDX-License-Identifier: Apache-2.0 */
/* manager.h - what the web server asks of the manager over the link: logins, and their keypairs
 *
 * Loop's thread only; callbacks never come from within a call.
 */
#ifndef AQ_WEB_MANAGER_H
#define AQ_WEB_MANAGER_H

#include <jansson.h>

#include "front/program.h"
#include "link/link.h"
#include "web/settings.h"

struct manager;
struct manager_ask;

struct manager_ops {
    void (*on_connected)(void *data);
    void (*on_disconnected)(void *data); /* after all asks have failed; also after a failed try */
    void (*on_ended)(void *data, const struct msg_web_ended *ended);
};

/* 'front' is told how it stands. */
int manager_new(uv_loop_t *loop, const struct settings *settings,
                const struct link_identity *identity, struct front *front,
                const struct manager_ops *ops, void *data, struct manager **ret,
                struct aq_error *err);
/* No callbacks follow. NULL is fine. */
void manager_free(struct manager *manager);
bool manager_is_connected(const struct manager *manager);

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
