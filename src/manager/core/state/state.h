/* SPDX-License-Identifier: Apache-2.0 */
/* state.h - what the core holds in memory; inside core
 *
 * Commands, messages and timers only write down what is wanted or was seen, and
 * touch the durable object that it is about (durable.h), such as a session. Once
 * per turn of the loop each that was touched is examined: session/lifecycle.c
 * proposes what follows from a session's status, from what is wanted and from what
 * its agents said. scheduling/pass.c proposes placements; scheduling/sched_sync.c
 * tells the schedulers of every change. A proposal (commit/proposal.c) is one batch
 * of events: until it is committed, its members are busy and nothing else is
 * proposed for them. Then loop/apply.c changes memory, and they are touched again.
 * So no input has to arrive once or in order, and a restart resumes everything.
 */
#ifndef AQ_MANAGER_CORE_STATE_STATE_H
#define AQ_MANAGER_CORE_STATE_STATE_H

#include "base/arena.h"
#include "base/list.h"
#include "base/log_budget.h"
#include "base/map.h"
#include "manager/core/core.h"
#include "manager/core/services.h"
#include "manager/core/state/subnets.h"
#include "model/idle.h"
#include "sched/scheduler.h"
#include "store/lineage.h"

/* ---- statistics ---- */

struct series_row;

struct statistics_keeper {
    struct metric_kinds kinds;
    struct series_row *waiting; /* rows to be written */
    size_t waiting_count, waiting_cap, dropped;
    bool is_writing;
    int64_t period; /* of the wall clock: each ends in rows */
};

/* ---- removing what is old ---- */

struct retention {
    uv_timer_t pause;   /* between two pieces */
    int64_t due_usec;   /* monotonic: of the next run of all; 0 = not known yet */
    unsigned wanted;    /* bits 1u << RETENTION_..., of which one is being removed */
    bool is_running;    /* the entity of 'piece' */
    bool is_writing;    /* a piece is on its way to the store and back */
    int64_t began_usec; /* monotonic: that piece */
    struct retention_piece piece;
    struct retention_place history; /* up to here there is none left */
};

/* ---- the whole ---- */

struct agent_entry;
struct durable;
struct durable_ops;
struct proposal;
struct proposal_hooks;
struct resource_group_entry;
struct session_entry;

/* What the scheduling side does when memory changes. */
struct state_hooks {
    /* A kernel holds resources of 'agent' from now on. */
    void (*on_hold)(struct core *core, struct session_entry *l, struct agent_entry *agent);
    /* It does so no longer; since l->kernels[rank].held_usec and until 'at_usec' (wall clock). */
    void (*on_release)(struct core *core, struct session_entry *l, size_t rank,
                       struct agent_entry *agent, int64_t at_usec);
    /* It has given back everything, and nobody will find it any more. */
    void (*on_retire)(struct core *core, struct session_entry *l);
    /* A resource group is in memory that has no row yet: 'g' is empty but for its name. */
    void (*on_group)(struct resource_group_entry *g);
};

#define BOOT_ID_MAX 40
#define WALL_JUMPS_MAX 16

/* By how much the wall clock was ahead of what is dated before 'until_usec'. */
struct wall_jump {
    int64_t until_usec, gained_usec;
};

struct core {
    int64_t started_usec;          /* monotonic */
    char *clock_text, *clock_path; /* not written yet; NULL = it is */
    int64_t clock_retry_usec;      /* monotonic */
    int64_t refusal_log_usec;      /* monotonic; the next refused change may be logged then */
    struct wall_jump jumps[WALL_JUMPS_MAX];
    size_t jump_count;
    struct core_conf conf;
    uv_loop_t *loop;
    uv_thread_t thread; /* that made it, and runs the loop: the only one that may touch it */
    struct store *store;
    struct pki_ca *ca;
    char *link_cert, *link_key;
    bool has_rivals;                           /* other managers may take the lead */
    bool (*stand_by)(const struct core *core); /* managers_stand_by() */
    bool is_in_doubt;                          /* they may have taken it */
    bool has_lost;                             /* the database is another manager's */
    struct link_server *link;
    /* link_server_send(), or a test's */
    int (*send)(struct core *core, const char *agent_id, const struct message *msg,
                struct aq_error *err);
    struct uuid incarnation;
    uv_async_t wake;    /* the store has completions */
    uv_idle_t turn;     /* something was touched */
    uv_idle_cb on_turn; /* of loop/turn.c */
    uv_timer_t tick;    /* agents' silence, every second */
    uv_timer_t alarm;   /* durable_next_wake() */
    uv_timer_t beat;    /* state/lead_beat.h */
    int open_handles;
    bool is_started, is_stopping;
    struct session_event_place last_event; /* that was announced, or was there at the start */
    int64_t ticked_usec;
    int64_t pruned_usec;        /* monotonic: attempts.c */
    int64_t attempts_turn_usec; /* the same; the last turn that a session was given */

    struct slot_types *types;
    const struct state_hooks *hooks;             /* of scheduling/queue.c */
    const struct proposal_hooks *proposal_hooks; /* of loop/turn.c */
    const struct durable_ops *session_ops;       /* of session/lifecycle.c */
    const struct durable_ops *array_ops;         /* of session/array.c */
    const struct durable_ops *booking_ops;       /* of booking/booking_step.c */
    const struct durable_ops *service_ops;       /* of serving/service_step.c */
    struct map sessions_by_id, sessions_by_name;
    struct map arrays_by_id; /* struct array_entry * */
    struct list arrays;
    struct list bookings; /* struct booking_entry, that have not finished */
    size_t booking_count;
    struct list booking_drafts; /* struct booking_entry: changes on their way to the store */
    struct list services;       /* struct model_service_entry, that have not ended */
    size_t service_count;
    struct list service_creations; /* of service_command.c: on their way to the store */
    struct list changed_services;  /* of which the listener is to be told */
    struct {
        core_service_changed_fn *changed; /* NULL = nobody listens */
        void *changed_data;
        bool (*may_mount)(void *data, const struct session *session, const struct folder *folder);
        void *mounts_data;
        core_replica_limit_fn *limit; /* NULL = no limit */
        void *limit_data;
    } serving;                /* what features have told the core of model services */
    struct map kernels_by_id; /* struct session_entry * */
    struct list sessions;
    int64_t session_bytes; /* that these take, and those under way to the store */
    struct {
        struct list touched, retired; /* durable.link */
        struct durable **heap;        /* by wake_usec */
        size_t count;                 /* that are live */
        size_t heap_count, heap_cap;
    } durables;            /* durable.c */
    struct map dependents; /* id of a live session -> struct dependents */
    struct map resource_groups, accounts, agents;
    char *logins;          /* of registries, as agents are told: message.h; NULL = none */
    uint32_t fifo_retries; /* retries_to_skip of fifo resource groups that do not say it */
    struct agent_entry **agents_sorted;
    size_t agent_count, agent_cap;
    struct subnets subnets;
    bool peers_are_stale; /* nodes/reach.c: agents are to check other ways than they do */
    struct map users, users_by_email, users_by_name, keypairs, policies, domains, projects;
    struct map access; /* who -> resource groups allowed, see access.c */
    uint64_t access_version;
    struct map key_uses; /* access key -> struct key_use, see loop/key_use.c */
    size_t unsaved_key_uses;
    int64_t key_uses_due_usec; /* monotonic: not to be written before */
    struct {
        struct list unsaved;    /* session_use_entry.unsaved_link */
        struct app_uses totals; /* of all apps since this manager began */
        int64_t due_usec;       /* monotonic: not to be written before */
    } session_uses;             /* session_use.c */

    struct idle_settings idle; /* of the configuration tree */
    bool idle_is_stale;        /* settings or policies have changed: look at all sessions again */

    struct proposal *open; /* of this turn, under construction */
    struct list deferred;  /* callbacks for the next turn */
    struct list claims;    /* accounts/claims.c */
    struct {
        struct map connected; /* id -> struct front */
        struct map gone;      /* the same, of those that have not come back */
        const struct core_front_ops *ops[FRONT_KINDS];
        void *data[FRONT_KINDS];
        const struct core_front_ops *serving_ops; /* of proxies: serving.* */
        void *serving_data;
    } fronts; /* nodes/fronts.c */
    struct {
        struct map rows; /* name -> struct manager_row */
        int64_t epoch, taken_usec;
        bool are_several; /* or were, since the start */
    } managers;           /* nodes/managers.c */
    struct {
        const struct core_metrics_ops *ops; /* NULL = nobody needs to know */
        void *data;
    } metrics;                       /* nodes/replica_metrics.c */
    core_login_end_fn *on_login_end; /* NULL = nobody needs to know */
    void *login_end_data;
    struct list image_jobs;   /* images.c */
    struct list service_jobs; /* agent_service.c */
    struct map
        image_requirements;  /* image_requirements.c: canonical name -> struct image_requirements */
    struct map image_limits; /* the same, of what administrators set */
    struct {
        int64_t restored_usec; /* wall clock: of the backup that this was restored from, until that
                                  is finished; 0 = it is, or was not */
        struct map by_kernel;  /* struct orphan */
        struct map by_agent;   /* id -> struct orphan_agent */
        size_t order_bytes;
    } orphans; /* nodes/orphans.c */
    struct {
        struct lineage lineage;   /* as of the start */
        int64_t epoch, had, seen; /* seen: 0 = no commit is known to be lost */
        char agent_id[AGENT_ID_MAX + 1];
    } lost_commits;          /* nodes/lost_commits.c */
    struct list subscribers; /* of all sessions */
    struct map session_subscribers;
    struct statistics_keeper statistics;
    struct retention retention;
    struct log_budget join_log; /* for those who may not */
    struct arena scratch;       /* of one pass or message */
    struct core_counts counts;
};

#endif
