/* SPDX-License-Identifier: Apache-2.0 */
/* transaction.h - inside the store: what the files of the entities share */
#ifndef AQ_STORE_TRANSACTION_H
#define AQ_STORE_TRANSACTION_H

#include "base/arena.h"
#include "model/event.h"
#include "store/seal.h"
#include "store/sql.h"
#include "store/store.h"

struct lease;
struct row;

struct store_tx {
    struct sql *db;
    const struct seal *seal;
    struct reserve *reserve;    /* of a writer; NULL = none */
    struct lease *lease;        /* NULL = the database is a file, or only read */
    int64_t *next_seq;          /* of sessions; NULL on a read-only connection */
    int64_t *next_event;        /* number of the next row of session_events; likewise */
    _Atomic bool *has_dotfiles; /* set once there is one; likewise */
};

/* ---- writing: one function per event kind, within the caller's savepoint ---- */

int event_write(struct store_tx *tx, struct event *e, struct aq_error *err);

/* What clients are told of the event, once its own rows are written; sets e->number. */
int session_events_write(struct store_tx *tx, struct event *e, struct aq_error *err);

int session_insert(struct store_tx *tx, struct session *s, struct aq_error *err);
int session_set_status(struct store_tx *tx, const struct event *e, struct aq_error *err);
int session_rename(struct store_tx *tx, const struct event *e, struct aq_error *err);
int session_set_priority(struct store_tx *tx, const struct event *e, struct aq_error *err);
int session_force(struct store_tx *tx, const struct event *e, struct aq_error *err);
int session_explain(struct store_tx *tx, const struct event *e, struct aq_error *err);
/* 0 also if it was dismissed before, or is not in ERROR. */
int session_dismiss(struct store_tx *tx, const struct event *e, struct aq_error *err);
int session_set_access(struct store_tx *tx, const struct event *e, struct aq_error *err);

/* session_idle.c; 0 also if the session has ended. */
int session_idle_save(struct store_tx *tx, const struct event *e, struct aq_error *err);
/* A row of SESSION_IDLE_QUERY. */
#define SESSION_IDLE_QUERY                                                                     \
    "SELECT s.id, i.busy, i.active_at, i.began_at, i.extended_at, i.extension, i.extensions,"  \
    " i.exempted_at, i.exemption FROM sessions s JOIN session_idle i ON i.session_seq = s.seq" \
    " WHERE s.terminated_at IS NULL ORDER BY s.seq + 0"
void session_idle_read_row(struct row *row, struct event *e);
int session_run_add(struct store_tx *tx, const struct event *e, struct aq_error *err);
int dependency_insert(struct store_tx *tx, int64_t session_seq, const struct session_dependency *d,
                      struct aq_error *err);
int array_insert(struct store_tx *tx, struct session_array *a, struct aq_error *err);
/* -ESTALE if its version is another. */
int array_change(struct store_tx *tx, const struct event_array_change *change,
                 struct aq_error *err);
/* The session, an element of the array, has ended. */
int array_count_end(struct store_tx *tx, const struct uuid *array_id, const struct uuid *session_id,
                    struct aq_error *err);
/* Whether the counts of arrays are those of their elements: how many are not, with a line each. */
int array_audit(struct store_tx *tx, struct strbuf *out, struct aq_error *err);

int booking_insert(struct store_tx *tx, const struct booking *b, struct aq_error *err);
/* -ESTALE unless its row has the version before. */
int booking_change(struct store_tx *tx, const struct booking *b, struct aq_error *err);

int model_service_insert(struct store_tx *tx, const struct event *e, struct aq_error *err);
/* -ESTALE unless its row has the version before and has not ended. */
int model_service_change(struct store_tx *tx, const struct event *e, struct aq_error *err);
/* -ENOENT if the service has ended. */
int model_service_token_add(struct store_tx *tx, const struct event *e, struct aq_error *err);
/* 0 also if it is not there. */
int model_service_token_remove(struct store_tx *tx, const struct event *e, struct aq_error *err);
int model_service_token_use(struct store_tx *tx, const struct event *e, struct aq_error *err);
/* 0 also if the session has ended. */
int replica_change(struct store_tx *tx, const struct event *e, struct aq_error *err);

int kernel_insert(struct store_tx *tx, int64_t session_seq, const struct kernel *k,
                  struct aq_error *err);
int kernel_set_status(struct store_tx *tx, const struct event *e, struct aq_error *err);
int kernel_resize(struct store_tx *tx, const struct event *e, struct aq_error *err);

int history_add_session(struct store_tx *tx, const struct uuid *id, uint32_t version,
                        int64_t at_usec, const char *status, const char *reason,
                        struct aq_error *err);
int history_add_kernel(struct store_tx *tx, const struct uuid *id, uint32_t version,
                       int64_t at_usec, const char *status, const char *reason,
                       struct aq_error *err);

int attempt_add(struct store_tx *tx, const struct event *e, struct aq_error *err);
int attempts_prune(struct store_tx *tx, const struct event *e, struct aq_error *err);

int agent_save(struct store_tx *tx, const struct event *e, struct aq_error *err);
int agent_set_status(struct store_tx *tx, const struct event *e, struct aq_error *err);
int agent_remove(struct store_tx *tx, const struct event *e, struct aq_error *err);
int slot_type_save(struct store_tx *tx, const struct event *e, struct aq_error *err);

/* -ENOENT, -EEXIST "name": the name is in use, or that of a purged domain. */
int domain_rename(struct store_tx *tx, const struct event *e, struct aq_error *err);
int user_save(struct store_tx *tx, const struct event *e, struct aq_error *err);
int keypair_save(struct store_tx *tx, const struct event *e, struct aq_error *err);
int keypair_remove(struct store_tx *tx, const struct event *e, struct aq_error *err);
/* 0 also if it does not exist any more. */
int keypair_set_used(struct store_tx *tx, const struct event *e, struct aq_error *err);
/* -EBUSY with what is in the way; -ENOENT if it is not there, or was put back into use. */
int account_purge(struct store_tx *tx, const struct event_purge *purge, struct aq_error *err);

/* Find out whether there are dotfiles. On the writer's connection. */
int dotfile_look(struct store_tx *tx, struct aq_error *err);

/* ---- columns ---- */

/* {"cpu":1000000,"mem":1073741824} as integers, whatever the type. free() it. */
char *slots_to_column(const struct slots *s);

/* Takes the columns of a row into a struct: texts and slots are from 'arena',
 * or from the heap if that is NULL. What goes wrong is remembered until
 * row_check().
 */
struct row {
    struct sql_stmt *q;
    struct arena *arena;
    bool is_damaged;
    bool cuts_specs; /* of sessions, as memory keeps them: a copy of the whole, one a session, would
                        leave a hole in the heap for each */
    const char *slots_text; /* of the last row that had any, if there is an arena ... */
    struct slots slots;     /* ... and what it says: rows that say the same share it */
};

char *row_text(struct row *row);                           /* null = NULL */
void row_bounded(struct row *row, char *ret, size_t size); /* null = "" */
void row_slots(struct row *row, struct slots *ret);        /* null = none */
/* null = NULL; of a long one the short part, if the row cuts specs */
struct session_spec *row_spec(struct row *row, bool *ret_is_short);
/* 0; -EUCLEAN, naming 'what'. */
int row_check(const struct row *row, const char *what, struct aq_error *err);

/* The next column through one of the parse functions of model/. */
#define ROW_PARSE(row, parse, ret)                                \
    do {                                                          \
        const char *text_ = sql_get_text((row)->q);               \
        (row)->is_damaged |= !text_ || (parse)(text_, (ret)) < 0; \
    } while (0)

/* "NULL" for what is not wanted. */
#define SESSION_COLUMNS_WITH(spec, status_data)                                          \
    "s.seq, s.id, s.name, s.type, s.status, s.version, s.result, s.priority, s.user_id," \
    " s.project_id, s.access_key, s.domain, s.resource_group, s.kernel_count,"           \
    " " spec ", s.reason, " status_data ", s.forced, s.created_at, s.status_changed_at," \
    " s.starts_at, s.running_at, s.image, s.tag, s.cluster_mode, s.retry,"               \
    " s.subnet, s.rerun, s.array_id, s.array_index, s.booking_id, s.service_id,"         \
    " s.service_revision, s.replica_number, s.ratio_ppm, s.ready_at, s.draining_at,"     \
    " s.half_share, s.failed_at"
#define SESSION_COLUMNS SESSION_COLUMNS_WITH("s.spec", "s.status_data")
/* Without kernels and dependencies; 'ret_kernel_count' is the column. */
void session_read_row(struct row *row, struct session *ret, size_t *ret_kernel_count);

#define ARRAY_COLUMNS                                                                                                     \
    "a.seq, a.id, a.name, a.version, a.user_id, a.project_id, a.access_key, a.domain,"                                    \
    " a.resource_group, a.type, a.priority, a.image, a.tag, a.spec, a.element, a.depends_on,"                             \
    " a.indices, a.removed, a.size, a.run_limit, a.next_position, a.made, a.skipped, a.succeeded, a.failed, a.cancelled," \
    " a.created_at, a.cancelled_at, a.ended_at"
/* All of it is from the heap. */
void array_read_row(struct row *row, struct session_array *ret);

#define BOOKING_COLUMNS                                                                        \
    "b.id, b.name, b.version, b.resource_group, b.starts_at, b.ends_at, b.amounts, b.nodes,"   \
    " b.release_unused, b.ignores_sessions, b.details, b.creator_id, b.created_at, b.outcome," \
    " b.finished_at, b.reason"
/* All of it is from the heap. */
void booking_read_row(struct row *row, struct booking *ret);

#define MODEL_SERVICE_COLUMNS                                                            \
    "m.id, m.name, m.version, m.user_id, m.project_id, m.access_key, m.domain,"          \
    " m.resource_group, m.tag, m.is_public, m.replicas, m.replicas_min, m.replicas_max," \
    " m.share_micro, m.goal, m.last_number, m.limits, m.scaling, m.fired, m.rollout,"    \
    " m.created_at, m.is_ending, m.is_forced, m.ended_at"
/* Without revisions and tokens. All of it is from the heap. */
void model_service_read_row(struct row *row, struct model_service *ret);
/* Append to those of 'ret'. */
#define MODEL_SERVICE_REVISION_COLUMNS \
    "r.number, r.spec, r.note, r.creator_id, r.created_at, r.failures"
void model_service_read_revision(struct row *row, struct model_service *ret);
#define MODEL_SERVICE_TOKEN_COLUMNS                                                       \
    "t.id, t.hash, t.label, t.paths, t.expires_at, t.rate, t.budget, t.used, t.requests," \
    " t.creator_id, t.created_at, t.used_at"
void model_service_read_token(struct row *row, struct model_service *ret);

#define KERNEL_COLUMNS_WITH(alloc, service_ports)                                                  \
    "k.id, k.rank, k.role, k.role_index, k.status, k.version, k.attempt, k.agent_id, k.requested," \
    " " alloc ", " service_ports ", k.exit_code, k.status_changed_at"
#define KERNEL_COLUMNS KERNEL_COLUMNS_WITH("k.alloc", "k.service_ports")
void kernel_read_row(struct row *row, struct kernel *ret);

/* What administrators assigned is a setting, as most agents have none. */
#define AGENT_COLUMNS                                                                                   \
    "a.id, a.status, a.incarnation, a.resource_group, a.architecture, a.version, a.addr,"               \
    " a.region, a.topology, a.schedulable, a.drain_reason, a.available, a.devices, a.first_contact_at," \
    " a.status_changed_at, a.lost_at,"                                                                  \
    " (SELECT g.value FROM settings g WHERE g.key = 'agent.group/' || a.id),"                           \
    " (SELECT g.value FROM settings g WHERE g.key = 'agent.topology/' || a.id),"                        \
    " (SELECT g.value FROM settings g WHERE g.key = 'agent.drain/' || a.id)"
void agent_read_row(struct row *row, struct agent *ret);

/* All memberships of 'user', into its arena or the heap. */
int user_read_projects(struct store_tx *tx, struct arena *arena, struct user *user,
                       struct aq_error *err);

#endif
