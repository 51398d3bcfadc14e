/* SPDX-License-Identifier: Apache-2.0 */
/* session_view.h - sessions as JSON, in the forms that clients read */
#ifndef AQ_MANAGER_SESSION_SESSION_VIEW_H
#define AQ_MANAGER_SESSION_SESSION_VIEW_H

#include "manager/session/session.h"

/* The name that this client knows for a state. */
const char *session_view_status(const struct principal *who, enum session_status status);
const char *kernel_view_status(const struct principal *who, enum kernel_status status);

/* "timeout_sec": how long its program may run, null = without limit; "ends_by": when that is over,
 * null unless it runs. 'session' has its spec.
 */
void session_view_write_timeout(const struct session *session, struct jsonw *w);
void session_view_write_ends_by(const struct session *session, struct jsonw *w);

/* "idle": when idle checks end it; null if none looks at it. */
void session_view_write_idle(const struct core *core, const struct uuid *id, struct jsonw *w);
/* "idle_ends_at": when an idle check ends it if a warning was sent, else null. */
void session_view_write_idle_end(const struct core *core, const struct uuid *id, struct jsonw *w);
/* The same as Backend.AI has it: "idle_checks". */
void session_view_write_idle_checks(const struct core *core, const struct uuid *id,
                                    struct jsonw *w);

/* GET /session/{name} of Backend.AI. */
void session_view_info(const struct principal *who, const struct slot_types *types,
                       const struct session_row *row, struct jsonw *w);

/* Whether rows of these members have a bounded size: none is a text that users
 * or programs make as long as they like.
 */
bool session_view_is_short(uint64_t fields);

/* Have the query read what these members need, no more. */
void session_view_apply_fields(uint64_t fields, struct store_query *query);

/* The session alone was asked for and is shown: if 'who' is its owner, a message of one in ERROR
 * has been seen.
 */
void session_view_note_seen(struct core *core, const struct principal *who,
                            const struct session_row *row);

/* "PENDING,RUNNING" as bits of store_query.statuses. A client of 22.03 says
 * PREPARING and means PREPARED and CREATING too. -EINVAL, field "status".
 */
int session_view_read_statuses(const struct principal *who, const char *text, uint32_t *ret,
                               struct aq_error *err) AQ_UNTRUSTED;

/* Which sessions or arrays a list has: the owner's, with 'all' everyone's or those of the domain;
 * of 'status' ("PENDING,RUNNING"; NULL = any).
 */
int session_list_narrow(const struct api *api, struct request *req, bool all,
                        const char *owner_access_key, const char *status, struct store_query *query,
                        struct aq_error *err);

/* What the session's kernels hold, or held when it ended, and asked for: of the first kernels whose
 * sums are in the range of an amount.
 */
void session_view_slots(const struct session_row *row, struct slots *ret_occupied,
                        struct slots *ret_requested);

/* Rules for sessions of several kernels. 'row' was read with its spec. */
struct session_view_cluster {
    int64_t least;            /* kernels that it cannot do without */
    const char *on_failure;   /* SESSION_ON_FAILURE_*; NULL = it has one kernel */
    const char *on_node_loss; /* SESSION_ON_NODE_LOSS_*; NULL = as its resource group says */
};
struct session_view_cluster session_view_cluster(const struct session_row *row);

/* [{"role", "count", "image", "resources"}]; null without roles, and while the store that has them
 * cannot be read. 'row' was read with its spec and its kernels.
 */
void session_view_write_roles(const struct slot_types *types, const struct session_row *row,
                              struct jsonw *w);

#endif
