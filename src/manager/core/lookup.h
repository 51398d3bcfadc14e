/* SPDX-License-Identifier: Apache-2.0 */
/* lookup.h - what lives, in memory; part of core.h, whose rules hold here */
#ifndef AQ_MANAGER_CORE_LOOKUP_H
#define AQ_MANAGER_CORE_LOOKUP_H

#include "base/jsonw.h"
#include "base/strbuf.h"
#include "manager/core/retention.h"
#include "model/agent.h"
#include "model/accounts.h"
#include "model/resource_opts.h"
#include "model/session.h"
#include "sched/scheduler.h"

struct core;
struct session_array;

const struct session *core_find_session(const struct core *core, const struct uuid *id);
/* How many are in memory: all that live. */
size_t core_count_sessions(const struct core *core);
const struct kernel *core_find_kernel(const struct core *core, const struct uuid *id);
/* The live session of this user with exactly this name. */
const struct session *core_find_session_named(const struct core *core, const struct uuid *user_id,
                                              const char *name);

/* An array that lives. */
struct core_array {
    const struct session_array *array;
    int64_t waiting, running;    /* elements that were made and are PENDING, or have begun */
    const struct session *first; /* of those that wait; NULL = none */
    const char *stop_text;       /* why no others are made; NULL = nothing is in the way */
};
/* False if none lives that has this id. */
bool core_get_array(const struct core *core, const struct uuid *id, struct core_array *ret);
/* The dependency number 'at' of a live array as it is now, and the name (borrowed) and number of what
 * it waits for; NULL and 0 if that has ended.
 */
void core_get_array_dependency(const struct core *core, const struct session_array *array,
                               size_t at, struct session_dependency *ret, const char **ret_name,
                               int64_t *ret_number);
/* All live arrays, in no order: pass 0, 1, ... until NULL. */
const struct session_array *core_list_array(const struct core *core, size_t i);
/* Elements of the array that live, up to 'max', in the order in which they were made: that of one
 * index, or with DEPENDENCY_ALL any. Returns how many are in 'ret'; 0 of an array that has ended.
 */
size_t core_list_elements(const struct core *core, const struct uuid *array_id, int64_t index,
                          const struct session **ret, size_t max);
/* Everything that lives and waits for 'roots', directly or not, without the roots: sessions, and
 * arrays as a whole or elements of them that have no session yet. A root has an id, is_array and
 * element. Elements of an array of which everything is found or a root are not listed. The caller
 * releases *ret.
 */
struct core_dependents {
    struct uuid *sessions;
    size_t session_count, session_cap;
    struct core_dependent_array {
        struct uuid id;
        bool is_whole;
        struct strbuf indices; /* "3,7": of an array that is not found as a whole */
    } * arrays;
    size_t array_count, array_cap;
};
void core_find_dependents(const struct core *core, const struct session_dependency *roots,
                          size_t root_count, struct core_dependents *ret);
void core_dependents_done(struct core_dependents *d);
/* The live array of this user with exactly this name; NULL = there is none. */
const struct session_array *core_find_array_named(const struct core *core,
                                                  const struct uuid *user_id, const char *name);

#define CORE_MATCH_MAX 11
/* Live sessions that 'text' may mean: the first of these that has any: id,
 * name, prefix of an id, of a name, of a kernel's id; of this owner, or of
 * everyone if NULL. A prefix of an id has at least SESSION_ID_PREFIX_MIN
 * characters. Returns how many were put into 'ret', by creation order;
 * CORE_MATCH_MAX stands for "more than 10".
 */
size_t core_match_sessions(const struct core *core, const char *access_key, const char *text,
                           const struct session *ret[CORE_MATCH_MAX]);

/* All live sessions by creation order: pass NULL to begin, NULL is the end. */
const struct session *core_next_session(const struct core *core, const struct session *after);

const struct agent *core_find_agent(const struct core *core, const char *id);
/* By id: pass 0, 1, ... until NULL. Includes LOST ones, not removed ones. */
const struct agent *core_get_agent(const struct core *core, size_t i);
/* Not before core_find_agent() finds it, though it may be stored, and be read, earlier. */
bool core_agent_is_connected(const struct core *core, const char *id);
/* When its last message came (wall clock); 0 = none since the manager's start. */
int64_t core_agent_contact_usec(const struct core *core, const char *id);
/* How it runs kernels, as it said when it greeted; NULL = not known. '*ret_notes' likewise. */
const char *core_agent_get_runtime(const struct core *core, const char *id, const char **ret_notes);
/* Why it takes no new sessions now, as it said last; NULL = it takes them, or is not connected. */
const char *core_agent_get_refusal(const struct core *core, const char *id);
/* JSON of its accelerator plugins, as it said last; NULL = not known. */
const char *core_agent_get_plugins(const struct core *core, const char *id);
/* JSON list of the hosts of folders that it mounts, likewise. */
const char *core_agent_get_volumes(const struct core *core, const char *id);
/* The agent's offer of a network between agents, and unreachable agents: {"mode", "endpoint",
 * "address", "mtu", "note", "unreachable"}; null if it said nothing.
 */
void core_agent_write_network(const struct core *core, const char *id, struct jsonw *w);
/* How programs of a kernel use GPUs past their parts of them, a line each; NULL = they do
 * not, or it has ended. All of an agent's kernels, or those of sessions of 'domain' if it
 * is not NULL: with the sessions' names, appended.
 */
const char *core_kernel_limit_violations(const struct core *core, const struct uuid *session,
                                         const struct uuid *kernel);
void core_agent_limit_violations(const struct core *core, const char *agent, const char *domain,
                                 struct strbuf *out);
/* The sum of what its kernels hold; *ret is replaced. 0 or -EOVERFLOW. */
int core_get_occupied(const struct core *core, const char *agent_id, struct slots *ret);

const struct keypair *core_find_keypair(const struct core *core, const char *access_key);
/* When it was used last, as far as this manager saw; wall clock, 0 = never. */
int64_t core_key_used(const struct core *core, const char *access_key);
const struct user *core_find_user(const struct core *core, const struct uuid *id);
const struct user *core_find_user_by_email(const struct core *core, const char *email);
const struct user *core_find_user_by_name(const struct core *core, const char *username);
/* All of them, in no order: pass 0, 1, ... until NULL. */
const struct user *core_get_user(const struct core *core, size_t i);
const struct keypair *core_get_keypair(const struct core *core, size_t i);
const struct domain *core_find_domain(const struct core *core, const char *name);
const struct project *core_find_project(const struct core *core, const struct uuid *id);
const struct project *core_find_project_named(const struct core *core, const char *domain,
                                              const char *name);
const struct keypair_policy *core_find_policy(const struct core *core, const char *name);
const struct resource_group *core_find_resource_group(const struct core *core, const char *name);
/* By name; as core_get_agent(). */
const struct resource_group *core_get_resource_group(const struct core *core, size_t i);

/* The sum of what a user's sessions hold, and how many sessions that are. */
int core_get_usage(const struct core *core, const char *access_key, struct slots *ret_held,
                   size_t *ret_sessions);

struct core_counts {
    size_t pending, starting, running, terminating; /* sessions */
    size_t agents, agents_alive;
    uint64_t commits, stale, scheduled; /* since start */
    uint64_t removed[RETENTION_ENTITY_COUNT];
};
struct core_counts core_get_counts(const struct core *core);

/* Why a PENDING session waits, computed now: 'text' gets sentences for a
 * person, 'json' an object {"kind", "text", ...} with what is short where.
 * What an agent that could not start it said is in both, and its start estimate.
 * Either may be NULL.
 * -ENOENT if it is not PENDING; errors of the scheduler.
 */
int core_explain(struct core *core, const struct uuid *session_id, struct strbuf *text,
                 struct strbuf *json, struct aq_error *err);

/* What can be said of the start of a PENDING session. */
struct core_start_estimate {
    size_t position, length; /* of those that wait for room in its resource group: 1 = the next;
                                 0 = it waits for something else */
    enum sched_start start;
    int64_t starts_usec;        /* wall clock; if start is SCHED_START_AT */
    enum sched_verdict verdict; /* of the last pass that looked at it */
    uint32_t tries;             /* passes that looked at it in vain, since this manager's start */
    bool is_due, has_claim;     /* it has waited for backfill_max_wait; resources are kept for it */
    bool is_promised;           /* it fits now on an agent where a session before it is to start */
    bool is_kept;               /* is_promised: that session has a claim; a limit does not help */
    struct uuid promised_to;    /* is_promised: that session */
};
/* -ENOENT if it is not PENDING. -EAGAIN, -EINVAL, -EOVERFLOW: it has no position and no start yet.
 */
int core_get_start_estimate(struct core *core, const struct uuid *session_id,
                            struct core_start_estimate *ret);
/* Its members "position" (or null), "queue_length", "start", "starts_by", "has_claim" and
 * "promised_to" (or null).
 */
void core_write_start_estimate(const struct core_start_estimate *o, struct jsonw *w);

/* The sentences for a person that a session's status_data (JSON or NULL) holds:
 * the scheduler's last explanation, the words of an agent that could not start it.
 */
void core_status_text(const char *status_data, struct strbuf *text);

/* Refuse what a resource group cannot schedule by: -EINVAL with the key named. */
int core_check_scheduling(const struct resource_group *g, struct aq_error *err);
/* How it schedules. What it says was checked when it was stored; what is not known
 * (a database of another version) is as if it was not said.
 */
enum core_fate { CORE_RESCHEDULED, CORE_TERMINATED, CORE_SKIPPED }; /* who is preempted */
enum core_scope { CORE_SCOPE_USER, CORE_SCOPE_PROJECT, CORE_SCOPE_DOMAIN, CORE_SCOPE_GROUP };
struct core_scheduling {
    struct sched_options options;
    bool has_retries;             /* its options say retries_to_skip */
    uint32_t session_types;       /* bits of enum session_type: what may be made in it */
    unsigned networks;            /* ADMIT_NETWORK_*: those that its sessions may ask for */
    int64_t pending_timeout_usec; /* as its options say, else as its column does; 0 = none */
    enum splitting splitting;     /* of sessions that do not say it themselves */
    enum core_fate preempted_batch, preempted_interactive;
    enum core_scope victim_scope; /* whose sessions preempt each other */
    int64_t max_grace_usec;       /* limit of the grace of sessions that the cluster ends */
    int preemptible_priority;     /* sessions with a higher job priority stay */
    struct retry_limits retry[RETRY_STEP_COUNT];
    int64_t idle_timeout_usec, idle_lifetime_usec; /* of "idle"; 0 = policies alone count */
};
void core_read_scheduling(const struct resource_group *g, struct core_scheduling *ret);
/* Then, with what all groups have that do not say it themselves. */
void core_default_scheduling(const struct core *core, struct core_scheduling *s);
struct jsonw;
/* Its preemption as the member of scheduler_opts says it, with all defaults. */
void core_write_preemption(const struct core_scheduling *s, struct jsonw *w);
/* The same of "handler_options". */
void core_write_handler_options(const struct core_scheduling *s, struct jsonw *w);

#endif
