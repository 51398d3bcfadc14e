/* SPDX-License-Identifier: Apache-2.0 */
/* services.h - model services that have not ended, and their replicas; the rules of core.h hold here
 *
 * The core makes and ends replicas until there are as many as wanted, of the revision that is wanted.
 * A replica that is to end takes no new request first: proxies have to confirm routes without it and
 * have to have finished what it does, which core_note_replica_idle() says, or its time runs out.
 */
#ifndef AQ_MANAGER_CORE_SERVICES_H
#define AQ_MANAGER_CORE_SERVICES_H

#include "link/message.h"
#include "manager/core/core.h"
#include "model/model_service.h"
#include "serving/rollout.h"

/* That of this id or, whatever its case, name; NULL = there is none, or it has ended. */
const struct model_service *core_find_service(const struct core *core, const char *text);
const struct model_service *core_find_service_by_id(const struct core *core, const struct uuid *id);

/* All by creation: pass NULL to begin, NULL is the end. */
const struct model_service *core_next_service(const struct core *core,
                                              const struct model_service *after);

/* Its replicas that have not ended, by creation; likewise. */
const struct session *core_next_replica(const struct core *core,
                                        const struct model_service *service,
                                        const struct session *after);

enum core_replica_health {
    CORE_REPLICA_STARTING, /* it has never answered */
    CORE_REPLICA_READY,
    CORE_REPLICA_UNHEALTHY, /* it was ready, and its agent says that it does not answer now */
};

struct core_replica {
    const struct model_service *service;
    int64_t revision, number; /* number: unique in the service, from 1 */
    enum core_replica_health health;
    const char *health_text;   /* what the last probe found; NULL = nothing to say */
    int64_t ready_usec;        /* wall clock: when it became ready first; 0 = not yet */
    bool is_draining;          /* it takes no new requests, and ends when it has no more */
    int64_t ratio_ppm;         /* traffic ratio, millionths; 1000000 = as others */
    int64_t rollout_ratio_ppm; /* by which a rollout multiplies it; 0 = it gets no requests */
    /* Of a device, millionths: what each of its kernels has and should have; 0 = it has no share. */
    int64_t share_micro, share_wanted_micro;
    const char *share_problem; /* why it cannot have that now; NULL = it has it, or will */
};

/* False if the session is no replica. */
bool core_find_replica(const struct core *core, const struct session *session,
                       struct core_replica *ret);

/* Why it has fewer ready replicas than wanted: the reason of one that failed, or what a session waits
 * for; NULL = it has them, or nothing is known. Valid until the loop runs again. Further lines are the
 * end of the log of a replica that failed, which is for those who see its session alone.
 */
const char *core_service_problem(const struct core *core, const struct model_service *service);
/* When the next replica is tried after failures, wall clock; 0 = nothing is held back. */
int64_t core_service_retry_usec(const struct core *core, const struct model_service *service);
/* A replica has failed, and none of the goal has become ready since. */
bool core_service_is_failing(const struct core *core, const struct model_service *service);
/* Failures of its replicas in a row, since one was ready for long enough. */
int64_t core_service_failures(const struct core *core, const struct model_service *service);
/* Forget failures, so that the next replica is created at once. -ENOENT. */
int core_retry_service(struct core *core, const struct uuid *id, struct aq_error *err);

/* How the service goes from one revision to another, with defaults, and where the last rollout is.
 * False: there was none, and the state is zeroed.
 */
bool core_service_rollout(const struct core *core, const struct model_service *service,
                          struct rollout *ret, struct rollout_state *ret_state);

/* Something that routes are made from may have changed: the service itself, tokens, which replicas
 * there are, their readiness, shares or ratios; or it has ended. Called in the turn of the loop, once
 * for each service and turn; the callee only writes it down. NULL = nobody listens.
 */
typedef void core_service_changed_fn(void *data, const struct uuid *service_id);
void core_on_service_change(struct core *core, core_service_changed_fn *fn, void *data);

/* Append what the request for 's' is answered, which is not in memory yet; 'data' is that of
 * core_done_fn. Returns the HTTP status.
 */
typedef int (*core_service_write_fn)(void *data, const struct model_service *s, struct strbuf *out);

/* Whether a folder's host lets replicas mount it, as in struct session_mounts; before core_start(). */
void core_set_replica_mounts(struct core *core,
                             bool (*may_mount)(void *data, const struct session *session,
                                               const struct folder *folder),
                             void *data);

/* How many replicas the owner's policy lets one service have; 0 = no limit. Before core_start(). */
typedef int64_t core_replica_limit_fn(void *data, const struct uuid *user_id);
void core_set_replica_limit(struct core *core, core_replica_limit_fn *fn, void *data);

/* The contents of 's' are taken, with one revision or none: ids, version, numbers and times are set
 * here. Without a revision it has no replicas until core_change_service() adds the first.
 * 'answered' as for core_create_booking(). Errors: -EINVAL with the field; -EEXIST "name"; -EDQUOT:
 * MODEL_SERVICE_LIVE_MAX, or more replicas than the owner's policy lets a service have; -EACCES,
 * -ENOENT: the owner, project or resource group, as of core_create_sessions(); -EALREADY; the store's.
 */
void core_create_service(struct core *core, struct model_service *s,
                         const struct core_answered *answered, core_service_write_fn write,
                         const struct audit_who *by, core_done_fn done, void *data);

/* The service of s->id becomes 's', whose contents are taken; it was copied from the present one and
 * changed: name, tag, is_public, replicas and their bounds, goal, limits, scaling, rollout; a new last
 * element of revisions is a new revision. Revisions, tokens and owner stay as they are otherwise.
 * 'note' (NULL = none) says for people why, and is kept in the history with what was changed.
 * Another goal begins a rollout; of 'rollout' the settings alone count, its state is the core's. What
 * a rollout did since the copy was made is kept. Errors as above; -ENOENT; -ESTALE, kind "conflict":
 * it was changed meanwhile.
 */
void core_change_service(struct core *core, struct model_service *s, const char *note,
                         const struct audit_who *by, core_done_fn done, void *data);

/* The same once: 'answered' as for core_create_booking(). -EALREADY. */
void core_change_service_once(struct core *core, struct model_service *s, const char *note,
                              const struct core_answered *answered, core_service_write_fn write,
                              const struct audit_who *by, core_done_fn done, void *data);

/* Only the number of replicas that is wanted now and the share of each (millionths; 0 = as it is), by
 * the autoscaler; clamped to the bounds, without an entry in the audit log. 'rule': the index of the
 * rule whose step this is, below AUTOSCALE_RULES_MAX; its time is kept in the service's 'fired'; -1 =
 * none. 'reason' is for people and is kept in the history.
 */
void core_scale_service(struct core *core, const struct uuid *id, int64_t replicas,
                        int64_t share_micro, int rule, const char *reason, core_done_fn done,
                        void *data);

/* What replicas of the goal should have of a device, millionths; 0 = their resources name no share. */
int64_t core_service_share(const struct model_service *service);

/* The new replicas get all requests (blue-green), or the next step begins without its time being over
 * (canary). -ENOENT; -EBUSY, kind "conflict": there is nothing to promote, or not all are ready.
 */
void core_promote_service(struct core *core, const struct uuid *id, const struct audit_who *by,
                          core_done_fn done, void *data);
/* The rollout under way goes back: the goal is the revision before. -ENOENT; -EBUSY, kind "conflict":
 * there is none, it is aborted already, or there is nothing to go back to.
 */
void core_abort_rollout(struct core *core, const struct uuid *id, const struct audit_who *by,
                        core_done_fn done, void *data);

/* Its replicas end, with the time for what is under way unless 'forced'; then it has ended. From the
 * callback on proxies refuse its requests. -ENOENT; asking again is fine.
 */
void core_end_service(struct core *core, const struct uuid *id, bool forced,
                      const struct audit_who *by, core_done_fn done, void *data);

/* Contents of 'token' are taken; id and times are set here and are in *ret_id at once. -ENOENT;
 * -EDQUOT: MODEL_SERVICE_TOKENS_MAX.
 */
void core_add_service_token(struct core *core, const struct uuid *service_id,
                            struct model_service_token *token, const struct audit_who *by,
                            core_done_fn done, void *data);
/* -ENOENT. */
void core_revoke_service_token(struct core *core, const struct uuid *service_id,
                               const struct uuid *token_id, const struct audit_who *by,
                               core_done_fn done, void *data);
/* What proxies said was done with it; written down within ten seconds. */
void core_note_token_use(struct core *core, const struct uuid *service_id,
                         const struct uuid *token_id, int64_t requests, int64_t spent);

/* One replica less is wanted, and this one drains: bounds of the number of replicas move with it if
 * they are in the way. -ENOENT: it is not a replica, or it drains already; others as of
 * core_change_service().
 */
void core_remove_replica(struct core *core, const struct uuid *session_id,
                         const struct audit_who *by, core_done_fn done, void *data);

/* The traffic ratio of a replica, millionths. -ENOENT. */
void core_set_replica_ratio(struct core *core, const struct uuid *session_id, int64_t ratio_ppm,
                            const struct audit_who *by, core_done_fn done, void *data);

/* Every proxy has confirmed routes in which this replica drains, and has nothing under way in it. */
void core_note_replica_idle(struct core *core, const struct uuid *session_id);

/* What a replica answered in the last minute, as proxies counted it. */
struct core_replica_figures {
    int64_t requests;   /* that were answered, or failed */
    int64_t errors;     /* of these: 5xx, none, or an answer that broke off */
    double latency_sec; /* mean until the end of the answer */
};

/* Rollouts compare revisions by these. Forgotten with the session; a session that is not a replica is
 * skipped.
 */
void core_note_replica_figures(struct core *core, const struct uuid *session_id,
                               const struct core_replica_figures *figures);

/* ---- metrics of programs in replicas, which their agents read ---- */

struct core_metrics_ops {
    /* The agent of a replica has read a page; borrowed for the call. */
    void (*on_values)(void *data, const struct msg_metrics_values *values);
    /* The agent has connected: core_watch_metrics() reaches it from now on. A new process of it reads
     * no pages until then.
     */
    void (*on_agent)(void *data, const char *agent_id);
};

/* 'ops' NULL = nobody listens any more. */
void core_set_metrics_ops(struct core *core, const struct core_metrics_ops *ops, void *data);

/* All pages that the agent is to read. False if it is not connected: to be sent again. */
bool core_watch_metrics(struct core *core, const char *agent_id,
                        const struct msg_metrics_watch *watch);

#endif
