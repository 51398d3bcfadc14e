/* state.h - what the core holds in memory; only for the files of this folder
 *
 * How the parts work together: inputs (commands, messages, timers) only write
 * down what is wanted or was seen and mark a session with live_touch(). Once
 * per turn of the loop, step.c looks at each marked session and proposes what
 * follows from its status, its wishes and its facts; schedule.c proposes
 * placements, which the scheduler finds that kept.c tells of every change. A proposal is one batch of events; while it is under way its
 * sessions are busy, and nothing else is proposed for them. When it is
 * durable, apply.c changes memory and marks them again. So nothing depends on
 * an input arriving once or in order, and a restart resumes everything.
 */
#ifndef AQ_MANAGER_CORE_STATE_H
#define AQ_MANAGER_CORE_STATE_H

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "manager/core/core.h"
#include "sched/state.h"

#define PRIORITY_COUNT 101
#define PRIORITY_DEFAULT 10

/* ---- sessions ---- */

/* What the kernel's agent last said about its present attempt. */
enum fact { FACT_NONE, FACT_CREATING, FACT_RUNNING, FACT_ENDED, FACT_ERROR, FACT_ABSENT };

struct kernel_live {
    struct live *live;       /* that it belongs to */
    const struct slots *requested; /* of its kernel */
    uint32_t heartbeat;      /* agent_live.heartbeat that last had it */
    struct list agent_link;  /* in agent_live.kernels while it holds */
    int64_t held_usec;       /* wall clock: since then; 0 = before this manager's life */
    enum fact fact;
    bool has_exit;
    int exit_code;
    const char *reason;      /* static */
    char *alloc, *service_ports, *error; /* JSON; error: {"kind","field","text"} */
    bool error_is_passing;   /* another try may work */
    bool error_is_image;     /* what failed is the image, not the start */
    bool is_pulling;         /* its agent fetches the image */
    int64_t pulled_usec;     /* monotonic, when that was over; 0 = it was not seen */
    char *misuse;            /* misuse.c: what its agent found, a line each; NULL = nothing */
    int64_t sent_usec;       /* monotonic: the order of this attempt was sent; 0 = not since the
                                agent connected */
    bool destroy_sent, kill_sent;
    struct measured *measured; /* NULL = never */
};

struct live {
    struct session s;        /* first: a struct session * of memory is a struct live * */
    struct list all_link;    /* core.sessions, by row */
    struct list touched_link; /* core.touched */
    struct rgroup *rgroup;
    struct list queue_link;  /* PENDING: among rgroup.waiting, or parked at rgroup or account */
    bool is_parked;
    struct list change_link; /* in rgroup.changes: its scheduler is to be told */
    enum seat { SEAT_NONE, SEAT_WAITING, SEAT_HELD } seat; /* what rgroup.sched knows of it */
    uint32_t handle;         /* there, unless SEAT_NONE */
    bool is_placing;         /* a placement is under way */
    bool is_outside;         /* the scheduler cannot hold what it holds */
    bool is_preempting;      /* PENDING: the scheduler holds a place until others have left it */
    bool is_preempted;       /* it is to leave for that session */
    struct uuid preempted_by;
    char **places;           /* per kernel: the agent where it starts; NULL = none is set aside */
    bool places_unsaid;      /* PENDING: its row does not say so yet */
    int64_t pass_usec;       /* monotonic, PENDING: who is too young to be displaced now may be then */
    struct account *accounts[SCHED_ACCOUNT_KINDS];
    struct list account_links[SCHED_ACCOUNT_KINDS]; /* account.members while it holds */
    uint32_t heap_index;     /* in core.heap, UINT32_MAX = not */
    bool is_busy;            /* a proposal of it is under way */
    bool was_skipped;        /* a pass could have started it but for that */
    bool is_alone;           /* its last proposal was refused: do not share the next */
    bool is_single_node, is_in_usage;
    char *architecture;      /* NULL = any */
    struct session_wishes *wishes; /* NULL = none */
    struct json_t *wishes_text; /* that they borrow from */
    bool wants_restart;
    bool end_is_forced;
    const char *end_reason;  /* static; wanted end, NULL = none */
    int64_t wake_usec;       /* monotonic, when to look again; 0 = never */
    int64_t since_usec;      /* monotonic, when this status was applied */
    int64_t retry_usec;      /* monotonic, not before; 0 */
    enum sched_verdict verdict, explained; /* PENDING: last pass's, and what the row says */
    int64_t verdict_usec;
    uint32_t tries;          /* passes in vain that its scheduler no longer knows of */
    uint32_t tries_kept;     /* of all, those that are written */
    int64_t tries_kept_usec; /* monotonic */
    bool has_attempts;       /* the store may have some of it */
    uint32_t tries_base;     /* of all, those before the present run of SCHED_NO_ROOM */
    int64_t backoff_usec;    /* monotonic: not to be started before; 0 = at once */
    int64_t again_usec;      /* monotonic, PENDING: it holds up others, look at it again then */
    char *failed_agent;
    struct list waiters;     /* struct waiter: commands that wait for a status */
    struct resize *resize;   /* resize.c: other parts of devices for it; NULL = none are wished for */
    struct kernel_live kernels[]; /* as s.kernels */
};

static inline struct live *live_of(const struct session *s)
{
    return (struct live *)(void *)s;
}

/* ---- queues and accounts ---- */

struct rgroup {
    struct resource_group g;
    struct core_scheduling scheduling; /* what g says */
    bool is_known;           /* has a row; else only sessions or agents name it */
    struct list waiting;     /* PENDING sessions to look at */
    struct list parked;      /* PENDING: something else than room must change first */
    size_t pending;          /* waiting and parked, here or at accounts */
    bool needs_pass;
    struct live *blocker;    /* the last pass stopped at it; NULL = none */
    /* kept.c: the scheduler, and what it has not been told yet */
    struct sched *sched;
    bool is_stale;           /* to be built anew from memory */
    size_t passing;          /* passes whose placements are under way */
    size_t promised;         /* sessions with places */
    struct sched_options options;
    struct list changes;     /* live.change_link */
    struct list changed_agents, changed_accounts;
    struct live **seats;     /* by handle */
    size_t seat_cap;
    struct agent_live **nodes; /* by number */
    size_t node_count, node_cap;
    struct group_account **accounts; /* by number */
    size_t account_count, account_cap;
    struct map owners;       /* id of a user; for fair share also project and domain -> number + 1 */
    struct usage *usage;     /* usage.c: of fair share; NULL = none */
    struct plan *plan;       /* outlook.c: the last one; NULL = none */
};

/* An account as one resource group's scheduler sees it. */
struct group_account {
    struct account *account;
    struct rgroup *rgroup;
    uint32_t number;
    struct list account_link; /* in account.groups */
    struct list change_link;  /* in rgroup.changed_accounts */
};

struct account {
    enum sched_account_kind kind;
    char *name;
    struct list members;     /* sessions that hold something */
    size_t member_count;
    struct list parked;      /* PENDING sessions that this account's limits hold up */
    struct slots used;       /* what members hold, unless is_stale */
    bool is_stale;
    uint32_t index;          /* in the snapshot under construction */
    struct list groups;      /* group_account.account_link */
};

/* ---- agents ---- */

struct agent_live {
    struct agent a;          /* first */
    bool is_known;           /* has a row; else only a connection */
    bool is_connected, is_synced; /* synced: a heartbeat came since */
    bool is_saving;
    struct uuid incarnation; /* of the connection */
    int64_t heard_usec;      /* monotonic */
    int64_t lost_usec;       /* monotonic, when it was found LOST; 0 = it is not */
    bool loss_handled;       /* the policy for lost agents was applied */
    bool has_offer;
    struct agent offer;      /* as it greeted; without slots */
    char *slots_text;        /* what it offers now, as it said */
    struct list drains, draining; /* struct drain: wished for, being saved */
    uint32_t heartbeat;      /* counts them */
    struct list kernels;     /* kernel_live.agent_link of those that hold */
    uint32_t kernel_count;
    struct slots free;       /* available less held, unless is_stale */
    bool is_stale;
    struct agent_cards *cards; /* cards.c; NULL = not looked at yet */
    bool cards_changed, cards_stale; /* other devices; other holders */
    char *images;            /* JSON, as it said; NULL = not yet */
    char *runtime, *runtime_notes; /* as it greeted; NULL = it said none */
    struct agent_measured *measured; /* NULL = it said nothing yet */
    char *plugins;           /* JSON, as it said; NULL = not yet */
    struct rgroup *scheduled_by; /* whose scheduler knows it; NULL = none */
    struct list change_link; /* in changed_agents of its resource group */
};

static inline struct agent_live *agent_of(const struct agent *a)
{
    return (struct agent_live *)(void *)a;
}

/* ---- statistics ---- */

struct series_row;

struct statistics_keeper {
    struct metric_kinds kinds;
    struct series_row *waiting; /* rows to be written */
    size_t waiting_count, waiting_cap, dropped;
    bool is_writing, is_pruning;
    int64_t period;          /* of the wall clock: each ends in rows */
};

/* ---- the whole ---- */

struct proposal;

#define BOOT_ID_MAX 40
#define WALL_JUMPS_MAX 16

/* By how much the wall clock was ahead of what is dated before 'until_usec'. */
struct wall_jump {
    int64_t until_usec, gained_usec;
};

struct core {
    int64_t started_usec;    /* monotonic */
    struct wall_jump jumps[WALL_JUMPS_MAX];
    size_t jump_count;
    struct core_conf conf;
    uv_loop_t *loop;
    struct store *store;
    struct pki_ca *ca;
    char *link_cert, *link_key;
    struct link_server *link;
    /* link_server_send(), or a test's */
    int (*send)(struct core *core, const char *agent_id, const struct message *msg,
                struct aq_error *err);
    struct uuid incarnation;
    uv_async_t wake;         /* the store has completions */
    uv_idle_t turn;          /* something was touched */
    uv_timer_t tick;         /* agents' silence, every second */
    uv_timer_t alarm;        /* the earliest wake_usec */
    int open_handles;
    bool is_started, is_stopping;
    int64_t ticked_usec;
    int64_t pruned_usec;     /* monotonic: attempts.c */

    struct slot_types *types;
    struct map sessions_by_id, sessions_by_name;
    struct list sessions, touched, graveyard;
    struct live **heap;
    size_t heap_count, heap_cap;
    struct map dependents;   /* id of a live session -> struct dependents */
    struct map rgroups, accounts, agents;
    struct agent_live **agents_sorted;
    size_t agent_count, agent_cap;
    struct map users, users_by_email, keypairs, policies, domains, groups;
    struct map access;       /* who -> resource groups allowed, see access.c */

    struct proposal *open;   /* of this turn, under construction */
    struct list deferred;    /* callbacks for the next turn */
    struct list image_jobs;  /* images.c */
    struct map image_needs;  /* image_needs.c: canonical name -> struct image_needs */
    struct list subscribers; /* of all sessions */
    struct map session_subscribers;
    bool is_publishing;
    struct statistics_keeper statistics;
    struct arena scratch;    /* of one pass or message */
    struct core_counts counts;
};

#endif
