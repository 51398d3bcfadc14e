/* SPDX-License-Identifier: Apache-2.0 */
/* executor_link.h - questions to the executor of a kernel's container
 *
 * A link stream with a command, which passes bytes between it and the executor
 * (runner/execution.h). What comes back is a stranger's. Loop's thread only.
 */
#ifndef AQ_MANAGER_STREAM_EXECUTOR_LINK_H
#define AQ_MANAGER_STREAM_EXECUTOR_LINK_H

#include <jansson.h>

#include "manager/call/api.h"

struct executor_link;

/* 'id' and 'language' are words, "-" = none. */
struct executor_question {
    const char *verb, *id, *language;
    int64_t wait_msec;  /* for the answer, where the session's machine is not busy */
    int64_t limit_msec; /* of a new run; 0 = none */
    const char *bytes;
    size_t len;
};

struct executor_link_ops {
    /* To the oldest question that has none; an object, borrowed for the call. */
    void (*on_reply)(void *data, const json_t *reply);
    /* There will be no more: close it. Never from within a call. 'err' is the link's: copy it
     * before executor_link_close().
     */
    void (*on_failed)(void *data, const struct aq_error *err);
};

/* -EINVAL if the kernel does not run, -ENOTCONN if its agent is away. */
int executor_link_open(struct core *core, const struct kernel *kernel,
                       const struct executor_link_ops *ops, void *data, struct executor_link **ret,
                       struct aq_error *err);

/* -EPIPE and why, if it has failed. */
int executor_link_ask(struct executor_link *link, const struct executor_question *question,
                      struct aq_error *err);

/* No callback follows. NULL is fine. */
void executor_link_close(struct executor_link *link);

#endif
