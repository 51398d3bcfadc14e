/* SPDX-License-Identifier: Apache-2.0 */
/* code_run.h - code that is run in a session: what clients ask, and how they are told
 *
 * The forms of Backend.AI, for requests and for the WebSocket; docs/rest.md has them.
 */
#ifndef AQ_MANAGER_STREAM_CODE_RUN_H
#define AQ_MANAGER_STREAM_CODE_RUN_H

#include "manager/stream/executor_link.h"

#define CODE_RUN_MAX (480 << 10) /* bytes of code; a body has 512 KiB */
#define CODE_RUN_ID_MAX 64
#define CODE_RUN_LANGUAGE_MAX 16

struct code_run_params {
    const char *mode, *code, *run_id, *owner_access_key, *kernel;
    const json_t *options;
};
extern const struct field code_run_fields[];

/* What is asked of the executor of a kernel's container. */
struct code_run {
    struct api *api;
    struct uuid session_id;
    const char *verb;
    char language[CODE_RUN_LANGUAGE_MAX + 1]; /* "-" = the session's usual one */
    char id[CODE_RUN_ID_MAX + 1];
    struct strbuf bytes;
    bool is_announced; /* that it has started */
};

/* Into one that is empty but for its session; 'bytes' are then the caller's. -EINVAL names the
 * parameter.
 */
int code_run_read(const struct code_run_params *params, struct code_run *ret, struct aq_error *err);

/* As executor_link_ask(). */
int code_run_ask(struct executor_link *link, const struct code_run *run, int64_t wait_msec,
                 struct aq_error *err);

/* A text of the executor's answer; NULL if it has none. */
const char *code_run_text(const json_t *reply, const char *name);

/* 0, or what the executor has against it. */
int code_run_check_reply(const json_t *reply, struct aq_error *err);

/* Tell who follows the session's events what the answer says of the run, and end a session whose
 * code took too long. True if it was the run's last answer.
 */
bool code_run_announce(struct code_run *run, const json_t *reply);

/* A member of the answer, as it is; null if it has none. */
void code_run_write_raw(const json_t *reply, const char *from, const char *to, struct jsonw *w);

/* The members of a result but the run's id. */
void code_run_write_result(const json_t *reply, struct jsonw *w);

#endif
