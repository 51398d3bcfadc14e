/* SPDX-License-Identifier: Apache-2.0 */
/* core.h - the lifecycle of sessions and agents: what the API stands on
 *
 * The core owns the store, the agents' link, the scheduler and the memory of
 * everything that lives. A change is proposed as a batch of events, made
 * durable by the store and only then applied to memory and announced to
 * subscribers; a command's callback with r == 0 therefore means durable.
 *
 * Everything here belongs to the thread of the libuv loop. Pointers to model
 * structs are borrowed: read-only, valid until the next turn of the loop.
 * What is dead is not here: read it from core_store() with store_read().
 * A callback runs exactly once, never inside the call that it was given to,
 * and never after core_free(); 'err' is only set when r < 0.
 *
 * 'by' is who asks for a change: it is copied, and the change's entry in the audit log is
 * written in the same transaction. NULL = the manager itself, without an entry.
 */
#ifndef AQ_MANAGER_CORE_CORE_H
#define AQ_MANAGER_CORE_CORE_H

#include <uv.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "alloc/alloc_map.h"
#include "link/link.h"
#include "manager/core/bus.h"
#include "manager/core/agent_service.h"
#include "manager/core/images.h"
#include "manager/core/lookup.h"
#include "manager/core/fronts.h"
#include "manager/core/idle.h"
#include "manager/core/retention.h"
#include "manager/core/session_use.h"
#include "manager/core/statistics.h"
#include "model/cluster_role.h"
#include "model/event.h"
#include "store/store.h"

struct core;
struct leader_claim;

struct core_conf {
    uv_loop_t *loop;
    const char *state_dir; /* holds aliquot.db, its key, and ca/ */
    const char *database;  /* URI of a server in place of aliquot.db; NULL = the file */
    const char *address;   /* of this manager, for another one that finds it there */
    void (*lost)(void *data, const struct aq_error *err); /* as of struct store_conf; NULL = log.
                    Also -ERESTART: the database's file system was read-only at the start, and
                    can be written now */
    void *lost_data;
    /* Requests that another manager passes on, as of link_server_ops.on_http; NULL = refused. */
    void (*on_http)(void *data, struct stream *stream, struct strbuf *first, const char *peer);
    void *on_http_data;
    const char *link_host;         /* where agents connect to; NULL = no listener (tests) */
    uint16_t link_port;            /* 0 = any free one, see core_link_port() */
    const char *const *link_names; /* host names and addresses for its certificate */
    size_t link_name_count;
    const char *cluster_pool;       /* addresses of networks between agents; NULL =
                                       CLUSTER_NETWORK_POOL */
    int64_t heartbeat_usec;         /* wanted from agents; 0 = 3 s */
    int64_t agent_timeout_usec;     /* silence after which an agent is LOST; 0 = 10 s,
                                       two heartbeats at least */
    int64_t ping_usec, dead_usec;   /* of connections to agents, as in link_server_conf */
    int64_t kill_grace_usec;        /* between SIGTERM and SIGKILL of a session; 0 = 10 s */
    int64_t attempts_age_usec;      /* attempts to schedule are kept so long after a session's end;
                                   0 = 30 days */
    int64_t attempts_sessions;      /* and of that many latest sessions; 0 = 100,000 */
    int64_t session_bytes_max;      /* of memory, for sessions that have not ended; 0 = 1 GiB */
    int64_t user_session_bytes_max; /* for those of one user; 0 = 256 MiB */
    int64_t array_size_max;         /* elements of an array; 0 = 100,000 */
    bool dev;                       /* add the well-known development users */
    const struct leader_claim *claim; /* of this manager, for as long as the core; NULL = of tests:
                                         it is not among the managers */
    int64_t epoch;                    /* that leadership_take() gave; 0 = the store takes one */
    int64_t ahead_usec;               /* by which this machine's wall clock is ahead of the last
                                         leader's; 0 = not known */
    int64_t retention_usec[RETENTION_ENTITY_COUNT]; /* how long rows are kept; 0 = forever */
};

/* Open the store, load what lives, open the cluster's authority. Nothing
 * listens yet. Errors as of store_open() and pki_ca_open().
 */
int core_new(const struct core_conf *conf, struct core **ret, struct aq_error *err);
/* Listen to agents and begin to schedule. */
int core_start(struct core *core, struct aq_error *err);
/* Make durable what is under way, run its callbacks, close the link. The loop
 * must run once more before it is closed. Sessions go on.
 */
void core_stop(struct core *core);
void core_free(struct core *core);
AQ_DEFINE_CLEANUP(struct core, core_free)

uint16_t core_link_port(const struct core *core);

/* The name or address on which agents reach the link; NULL = it listens on all addresses of the
 * machine, or not at all. Valid as long as the core.
 */
const char *core_link_host(const struct core *core);
/* As in core_conf. */
const struct leader_claim *core_self(const struct core *core);
/* Are the published development users let in? */
bool core_is_dev(const struct core *core);
struct store *core_store(struct core *core);
uv_loop_t *core_loop(struct core *core);
/* The known slot types; take a reference for the length of a request. */
struct slot_types *core_slot_types(const struct core *core);

/* ---- people who have logged in ---- */

/* Logins with this keypair, or as this user, have ended: the key was taken out of use or has
 * another secret; the user was blocked, removed, or has another password. One of the two is NULL.
 * Called when the change is durable.
 */
typedef void core_login_end_fn(void *data, const struct uuid *user_id, const char *access_key);
void core_on_login_end(struct core *core, core_login_end_fn *fn, void *data);

/* ---- devices ---- */

/* Who holds an item of a grant. */
struct core_holder {
    const struct session *session;
    size_t rank; /* of its kernel */
};

struct core_held {
    struct alloc_grant grant;    /* of all kernels, one after another */
    struct core_holder *holders; /* of each item */
    size_t cap;
};
void core_held_done(struct core_held *held);

/* What the kernels on an agent hold, in the order in which they were placed.
 * Borrows sessions until the loop runs again. -ENOENT.
 */
int core_find_held(const struct core *core, const char *agent_id, struct core_held *ret);
/* The API's gpu_alloc_map: {"<device>":"0.80",...}. -EINVAL. */
int core_write_gpu_map(const struct core *core, const char *agent_id, struct jsonw *w);

/* ---- commands on sessions ---- */

struct folder;
struct named_mount;

/* Which folders it mounts; all of it lives until it is made. */
struct session_mounts {
    const struct named_mount *named;
    size_t count;
    bool is_automatic; /* those whose names begin with a dot, too */
    /* Whether a folder's host lets sessions mount it; on the loop's thread. NULL = they do. */
    bool (*may_mount)(void *data, const struct session *session, const struct folder *folder);
    void *data;
};

/* Kernels beside main1 that run something else. */
struct session_request_role {
    struct cluster_role role;
    struct slots resources; /* per kernel */
};

/* Rows of the caller's that are written in the transaction which makes the session. If 'write'
 * fails nothing is made, and the error is the answer.
 */
struct session_rows {
    int (*write)(struct store_tx *tx, void *data, const struct uuid *session_id,
                 struct aq_error *err); /* on a thread of the store; NULL = none */
    void *data;                         /* lives until the callback */
};

struct session_request {
    const char *name;
    enum session_type type;
    struct session_spec spec; /* borrowed; without mounts */
    struct session_mounts mounts;
    const char *access_key;                   /* of the owner */
    const char *domain, *group;               /* names; NULL = "default" */
    const char *resource_group;               /* NULL = the first one allowed */
    struct slots resources;                   /* per kernel; borrowed; default cpu 1, mem 1 GiB */
    uint32_t cluster_size;                    /* 0 = 1 */
    const struct session_request_role *roles; /* instead of "sub"; borrowed */
    size_t role_count;
    bool multi_node;                 /* kernels may go to different agents */
    int priority;                    /* < 0 = 10 */
    int64_t starts_usec;             /* batch only; 0 = none */
    const char *const *dependencies; /* ids or names of the owner's sessions */
    size_t dependency_count;
    bool reuse;                            /* a live one with this name and image will do */
    const struct session_replica *replica; /* of a model service, by the core alone; NULL = none */
    struct session_rows rows;
};

struct core_created {
    struct uuid id;
    char name[SESSION_NAME_MAX + 1];
    enum session_status status;
    bool is_new; /* false = reused */
};

/* r < 0: -EINVAL with err->field naming the member as the API spells it,
 * -EEXIST (kind "session-already-exists"; 'created' has the existing id),
 * -ENOENT (unknown group, resource group, dependency), -EDQUOT (kind
 * "quota-exceeded"), -EACCES, or the store's. Otherwise 'created' is set.
 */
typedef void (*core_create_fn)(void *data, int r, const struct aq_error *err,
                               const struct core_created *created);

/* The request that asks for sessions, whose answer is written with them: see
 * store/request_answer.h.
 */
struct core_answered {
    const char *access_key, *request_key, *digest; /* borrowed until the callback */
    bool always; /* also if there is nothing to make, as all are there already */
    /* Append what the request is answered if all are made, with core_create_fn's data;
     * returns its HTTP status.
     */
    int (*write)(void *data, const struct core_created *created, struct strbuf *out);
};

/* All of them in one commit, or none: 'created' has 'count' elements then, in
 * the order of the requests; err->field names the request: "[3].name". With
 * 'answered' (else NULL) once: -EALREADY, and nothing is made, if the keypair made a
 * request under this key before.
 */
void core_create_sessions(struct core *core, const struct session_request *const *requests,
                          size_t count, const struct core_answered *answered,
                          const struct audit_who *by, core_create_fn done, void *data);

/* May the request's key make sessions in its domain and project now? Errors as of
 * core_create_sessions().
 */
int core_check_owner(const struct core *core, const struct session_request *request,
                     struct aq_error *err);

/* The same, and whose sessions these would be. 'domain' is borrowed from the core. */
struct core_owner {
    struct uuid user_id, project_id;
    const char *domain;
};
int core_find_owner(const struct core *core, const struct session_request *request,
                    struct core_owner *ret, struct aq_error *err);

struct array_set;
struct session_array;

/* An array whose elements are as the request says, but for their index and name. 'created' has its
 * id. Errors as of core_create_sessions(), those of its elements at once. 'indices' are borrowed
 * for the call; limit: elements that live at once, 0 = any number.
 */
void core_create_array(struct core *core, const struct session_request *request,
                       const struct array_set *indices, int64_t limit,
                       const struct core_answered *answered, const struct audit_who *by,
                       core_create_fn done, void *data);

/* What would become of sessions that are alike if they were made now. */
struct core_dry_run {
    const char *resource_group;
    const char *text, *json; /* as core_explain(), of the first that does not start now */
    size_t count, started;   /* how many were tried, and would start now */
};
/* Errors are those of creating it; on success 'trial' lives until the callback returns. */
typedef void (*core_dry_run_fn)(void *data, int r, const struct aq_error *err,
                                const struct core_dry_run *trial);
/* Go the way of core_create_sessions() with 'count' times the request up to the commit, and make
 * nothing.
 */
void core_dry_run_session(struct core *core, const struct session_request *request, size_t count,
                          core_dry_run_fn done, void *data);

typedef void (*core_done_fn)(void *data, int r, const struct aq_error *err);

/* A queued one becomes CANCELLED at once, others TERMINATING: SIGTERM, after
 * the grace SIGKILL; forced: SIGKILL now, and agents that are lost are not
 * waited for. Asking again is fine. -ENOENT if it is not alive. The callback
 * comes when the decision is durable, not when the programs are gone.
 */
void core_terminate_session(struct core *core, const struct uuid *id, bool forced,
                            const char *reason, const struct audit_who *by, core_done_fn done,
                            void *data);
/* How many elements an array may have. */
int64_t core_array_size_max(const struct core *core);

/* Make no further elements of an array and end those that live; with 'elements' (indices, borrowed
 * for the call) these alone, also such as are not made yet. -ENOENT: it does not live, or has none
 * of them.
 */
void core_cancel_array(struct core *core, const struct uuid *id, const struct array_set *elements,
                       bool forced, const struct audit_who *by, core_done_fn done, void *data);

/* Those of them that are in ERROR: their owner has seen why or does not want them any more, and
 * default lists leave them out. They stay in the history. 'done' may be NULL.
 */
struct core_dismissal {
    struct uuid id;
    const char *name, *domain;
};
void core_dismiss_sessions(struct core *core, const struct core_dismissal *sessions, size_t count,
                           const struct audit_who *by, core_done_fn done, void *data);
/* Restart the programs on the same agents; RUNNING only (-EINVAL). */
void core_restart_session(struct core *core, const struct uuid *id, const struct audit_who *by,
                          core_done_fn done, void *data);
/* -EINVAL, -EEXIST, -ENOENT. Dead sessions cannot be renamed. */
void core_rename_session(struct core *core, const struct uuid *id, const char *name,
                         const struct audit_who *by, core_done_fn done, void *data);
/* Other amounts of the parts of devices that each kernel of a running session has; 'changes'
 * names those alone. All kernels or none: done once it is durable and so everywhere; if an
 * agent is lost after it was decided, it is so there when that is back. Refusals name the
 * slot: one that it has not, no amount, more than is free of its devices (-EINVAL), more than
 * limits of its owner allow (-EDQUOT).
 */
void core_resize_session(struct core *core, const struct uuid *id, const struct slots *changes,
                         const struct audit_who *by, core_done_fn done, void *data);

/* 0..100, up to the owner's policy; PENDING only. */
void core_set_priority(struct core *core, const struct uuid *id, int priority,
                       const struct audit_who *by, core_done_fn done, void *data);

/* ---- after a restore ----
 *
 * Agents may have kernels that are newer than the backup: of sessions that the
 * database does not know, or knows as PENDING. No session is started until
 * core_finish_restore().
 */

/* Commits of a former leader that the database lacks, as the orders that agents keep prove. */
struct core_lost_commits {
    int64_t epoch;        /* of the former leader */
    int64_t had, seen;    /* the last commit that the database has, and the last that is known */
    const char *agent_id; /* that proves it; valid until the next turn */
};
/* False: none are known to be lost. */
bool core_get_lost_commits(const struct core *core, struct core_lost_commits *ret);
/* The highest epoch that a refused agent follows, above ours; 0 = none. 'ret_agent_id' is valid while
 * the core is.
 */
int64_t core_get_epoch_ahead(const struct core *core, const char **ret_agent_id);

/* When the backup was made (wall clock); 0 = not restored, or that is finished. */
int64_t core_restored_usec(const struct core *core);

struct core_orphan {
    struct uuid session_id;
    const char *name, *access_key, *type, *image; /* NULL = its agent has not said it yet */
    const char *state;                            /* of its first kernel, e.g. "RUNNING" */
    const char *status;     /* what the database says of it, e.g. "PENDING"; NULL = unknown */
    const char *agents;     /* ids with commas between them */
    size_t found, expected; /* kernels; expected: 0 = not known yet */
    bool is_ending;         /* an administrator has ended it */
    bool is_unreadable;     /* an agent cannot say any more what it was made from */
    bool is_of_lost_commit; /* its order is newer than what the database has of that epoch */
};
typedef void (*core_orphan_fn)(void *data, const struct core_orphan *o);
/* Each session; valid during the call. */
void core_each_orphan(struct core *core, core_orphan_fn each, void *data);

/* Take it over as it runs: what the database does not know is made from what its
 * agents say, and checked as a request for a session is. -ENOENT; -EINVAL: not all
 * of its kernels are there, or described, yet, or it cannot be (says why).
 */
void core_adopt_orphan(struct core *core, const struct uuid *session_id, const struct audit_who *by,
                       core_done_fn done, void *data);
/* Kill its kernels, those that come back too. -ENOENT. */
void core_end_orphan(struct core *core, const struct uuid *session_id, const struct audit_who *by,
                     core_done_fn done, void *data);
/* Start sessions again, and end orphans from now on as ever. -EINVAL unless forced:
 * not all are decided on, or agents of then are away.
 */
void core_finish_restore(struct core *core, bool forced, const struct audit_who *by,
                         core_done_fn done, void *data);

/* ---- fair share ---- */

enum core_fair_level { CORE_FAIR_DOMAIN, CORE_FAIR_PROJECT, CORE_FAIR_USER };
#define CORE_FAIR_LEVELS 3

struct core_fair_slot {
    const char *name;
    double used; /* amount times seconds, less of days long past */
};

/* Whom a level does not tell apart is not set: a domain's row has no project. */
struct core_fair_row {
    enum core_fair_level level;
    const char *domain;
    struct uuid project, user;
    double weight;
    double usage;  /* of what the group had to give in the days looked back on */
    double factor; /* 1 = the largest claim */
    const struct core_fair_slot *slots; /* of which the group has some; for the call */
    size_t slot_count;
};
typedef void (*core_fair_fn)(void *data, const struct core_fair_row *row);
/* Everybody who used something of the resource group lately or has a weight of their own in it,
 * in no order. -ENOENT, -EINVAL if it does not schedule by fair share, -EAGAIN, -EOVERFLOW.
 */
int core_list_fair_share(struct core *core, const char *resource_group, core_fair_fn visit,
                         void *data, struct aq_error *err);
/* The row of 'whom', who is named as there and may have used nothing. The same errors. */
int core_show_fair_share(struct core *core, const char *resource_group,
                         const struct core_fair_row *whom, core_fair_fn visit, void *data,
                         struct aq_error *err);

/* Does it schedule by fair share? -ENOENT, -EINVAL. */
int core_check_fair_share(struct core *core, const char *resource_group, struct aq_error *err);

/* How a group weighs what was used of it, or would. */
struct core_fair_settings {
    double half_life_days, lookback_days, default_weight;
};
typedef void (*core_fair_weight_fn)(void *data, const char *slot, double weight);
/* And how much each slot that there is counts. -ENOENT. */
int core_read_fair_settings(const struct core *core, const char *resource_group,
                            struct core_fair_settings *ret, core_fair_weight_fn visit, void *data,
                            struct aq_error *err);

/* ---- commands on agents and accounts ---- */

enum core_agent_drain { CORE_AGENT_DRAIN_KEEP, CORE_AGENT_DRAIN_ON, CORE_AGENT_DRAIN_OFF };

/* What an administrator may set of an agent; it holds over what the agent says. */
struct core_agent_change {
    enum core_agent_drain drain; /* take no more sessions, or take them again */
    const char *drain_reason;    /* with ON; NULL = none */
    bool ends_sessions;          /* with ON: requeue or end the sessions on it */
    const char *resource_group;  /* NULL = as it is, "" = as the agent's settings say */
    const char *topology;        /* the same */
};
/* All or nothing. The agent's sessions stay where they are, also when it changes its group.
 * -ENOENT for an unknown agent or resource group, -EINVAL for a label that cannot be.
 */
void core_change_agent(struct core *core, const char *id, const struct core_agent_change *what,
                       const struct audit_who *by, core_done_fn done, void *data);
/* Revoke its certificates and forget it. -EBUSY while kernels are on it. */
void core_remove_agent(struct core *core, const char *id, const struct audit_who *by,
                       core_done_fn done, void *data);
/* Revoke its certificates and drop its connection. */
void core_revoke_agent(struct core *core, const char *id, const struct audit_who *by,
                       core_done_fn done, void *data);

typedef void (*core_token_fn)(void *data, int r, const struct aq_error *err, const char *token);
/* A token that lets one agent join once, within 'ttl_usec'; for this id only unless NULL. */
void core_make_token(struct core *core, const char *agent_id, int64_t ttl_usec,
                     const struct audit_who *by, core_token_fn done, void *data);

/* Which resource groups a domain, project or keypair may use; of these three, those not
 * NULL. All or nothing.
 */
struct core_access_change {
    const char *const *resource_groups;
    size_t count; /* 0 = all, which can be taken and not given */
    const char *domain, *project_id, *access_key;
    bool is_allowed;
};
void core_change_access(struct core *core, const struct core_access_change *change,
                        const struct audit_who *by, core_done_fn done, void *data);
/* Another one when anybody may use other resource groups than before, but for memberships. */
uint64_t core_access_version(const struct core *core);

/* After how many passes without a start a session lets others pass, in resource groups with
 * fifo that do not say it; 0 = never.
 */
void core_set_fifo_retries(struct core *core, uint32_t count);

/* What agents log in to registries with: "auths" of containers-auth.json(5) as JSON, NULL =
 * nothing. Takes the text; agents hear of it at once.
 */
void core_set_logins(struct core *core, char *auths);

/* Nobody else changes the rows of this batch, which is borrowed, until core_save() has ended or
 * core_unclaim(): for who has more to do between making and saving it. Of a batch that is claimed
 * already nothing happens. -EBUSY "conflict": another batch, on its way, changes or removes one of
 * the rows, or gives one of their names away.
 */
int core_claim(struct core *core, const struct event_batch *batch, struct aq_error *err);
void core_unclaim(struct core *core, const struct event_batch *batch);

/* Write and apply changes of accounts: EVENT_DOMAIN_SAVED .. _ACCOUNT_PURGED,
 * checked by the caller and made in this turn, or claimed. Takes the batch in any case. Fails as
 * core_claim() does, too.
 */
void core_save(struct core *core, struct event_batch *batch, const struct audit_who *by,
               core_done_fn done, void *data);

/* Write the entry of a change that is no row's: 'done' comes when it is durable, and does what
 * it says. At once if 'by' is NULL.
 */
void core_note_change(struct core *core, const struct audit_change *change,
                      const struct audit_who *by, core_done_fn done, void *data);

/* The keypair has signed a request, now. Written later; costs nothing here. */
void core_note_key_use(struct core *core, const char *access_key);

/* What the session's SSH keys are made from (model/ssh_key.h). -ENOENT: users do not log in to
 * it, nor do its kernels to each other.
 */
int core_derive_ssh_seed(const struct core *core, const struct session *session, char ret[65],
                         struct aq_error *err);

/* ---- streams, audit ---- */

/* As link_server_open_stream(): logs or terminal of a kernel on its agent,
 * which may have ended. -ENOTCONN if the agent is not connected.
 */
int core_open_stream(struct core *core, const char *agent_id, struct msg_stream_open *open,
                     const struct link_stream_ops *ops, void *data, struct link_stream **ret,
                     struct aq_error *err);
int core_control_stream(struct core *core, const char *agent_id,
                        const struct msg_stream_control *control, struct aq_error *err);

/* r: how many findings, one line each in 'findings'; or -errno. Compares the
 * ledger with the kernels, and memory with a fresh load, object by object.
 */
typedef void (*core_audit_fn)(void *data, int r, const struct aq_error *err, const char *findings);
void core_audit(struct core *core, core_audit_fn done, void *data);

#endif
