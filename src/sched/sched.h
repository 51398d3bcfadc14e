/* SPDX-License-Identifier: Apache-2.0 */
/* sched.h - the scheduler: which session starts on which agents, and why one does not
 *
 * There are two entry points over one implementation:
 *  - sched_run() takes a snapshot of agents, accounts and pending sessions and
 *    gives an outcome for each session that it tried.
 *  - struct sched (scheduler.h) is the same, kept between passes and changed by
 *    events, so that a pass costs little however many sessions wait.
 * Pure: the same input gives the same outcomes. It reads no clock, does no
 * I/O, and every order ends in a unique tie-break.
 *
 * Sessions are tried in bands of equal priority, highest first, and within a
 * band in the sequencer's order. Validators check each session first; one that
 * they reject does not block others, nor does one that fits on no agent even if
 * it were empty. Another that does not fit does: those behind it are not tried,
 * unless the sequencer lets them pass, or backfill does: then it gets a reserved
 * start time, and others may start before it only if they do not delay that. A session
 * without a lifetime has no known end; one whose start depends on such an end has no start time,
 * and delays nobody until it has waited for max_wait_usec (claim.c).
 * Gang scheduling: all kernels of a session are placed, or none, as near to each other as there is
 * room (gang.h).
 * A single kernel that a running session lacks comes as a sched_session of its own, see
 * enum sched_unit. Limits of sessions, forecasts and estimates do not count it.
 *
 * Bookings keep amounts of agents for their own sessions during a time. Another session starts on
 * booked amounts only if it ends before the booking begins; one without a lifetime never does. A
 * session of a booking starts in its time, on its amounts alone.
 */
#ifndef AQ_SCHED_SCHED_H
#define AQ_SCHED_SCHED_H

#include "base/arena.h"
#include "base/strbuf.h"
#include "model/session.h"
#include "model/slot.h"

/* ---- agents ---- */

/* One device of a slot: a GPU, or a slice of one. */
struct sched_device {
    const char *slot_name; /* interned */
    const char *model;     /* NULL = not known */
    int64_t capacity, free;
    int64_t quantum; /* it gives multiples of this; 0 = any amount */
    const char *id;  /* for explanations; NULL = not known */
};

/* Among volumes: files are moved there by SFTP. No host of folders is called so. */
#define SCHED_SFTP "sftp"
#define SCHED_RDMA "rdma"                 /* the same: containers may use RDMA devices */
#define SCHED_HOST_NETWORK "host-network" /* the same: containers may use the node's network */

struct sched_agent {
    const char *id;                     /* unique */
    const char *architecture;           /* NULL = not known: takes all */
    const struct slots *free;           /* offered less what kernels hold */
    const struct slots *capacity;       /* offered. For shares of the whole, where NULL is as
                                  'free'; and for what can never fit, where NULL is not known */
    uint32_t kernels, kernels_max;      /* kernels_max 0 = no limit */
    const struct sched_device *devices; /* of slots in 'free'; none: only sums count */
    size_t device_count;
    const char *const *volumes; /* hosts of folders that it mounts, and SCHED_SFTP */
    size_t volume_count;
    bool is_closed;       /* takes nothing more: drained, or not heard of */
    const char *topology; /* where it is: "zone-a/rack-3/switch-1"; NULL = not known */
    const char *network;  /* class of its network between nodes, within which agents reach each
                             other; NULL = it has none */
};

/* Two agents of one class that cannot reach each other all the same, by id. */
struct sched_pair {
    const char *a, *b;
};

/* ---- accounts and owners ---- */

enum sched_account_kind {
    SCHED_KEYPAIR,
    SCHED_USER,
    SCHED_PROJECT,
    SCHED_DOMAIN,
    SCHED_ACCOUNT_KINDS
};

/* A ceiling that the sessions of one keypair, user, project or domain share. */
struct sched_account {
    enum sched_account_kind kind;
    const char *name;
    const char *label; /* its name for users; NULL = 'name' */
    const struct slots *limits;
    bool missing_is_zero; /* a slot that limits do not name may not be used at all */
    int64_t max_sessions; /* <= 0 = no limit */
    const struct slots *used;
    int64_t sessions; /* that hold something */
};

#define SCHED_NO_ACCOUNT UINT32_MAX
/* clang-format off */
#define SCHED_NO_ACCOUNTS                                                                          \
    { SCHED_NO_ACCOUNT, SCHED_NO_ACCOUNT, SCHED_NO_ACCOUNT, SCHED_NO_ACCOUNT }
/* clang-format on */

/* For whom the fair sequencers are fair. */
struct sched_owner {
    const struct slots *used; /* DRF: what its sessions hold; NULL = nothing */
    double domain_factor, project_factor, user_factor; /* fair.h: 1 = the largest claim */
};

/* ---- sessions ---- */

enum sched_grouping { SCHED_UNGROUPED, SCHED_SPREAD, SCHED_PACK };

/* What is scheduled at once, in the order of the queue. Single kernels preempt no sessions, have no
 * start time and hold up nobody.
 */
enum sched_unit {
    SCHED_REQUIRED_KERNEL = -1, /* a running session cannot do without it */
    SCHED_SESSION,
    SCHED_OPTIONAL_KERNEL, /* beyond the minimum of a running session: starts if that delays no
                              session; gives way to sessions and required kernels, the highest rank
                              first */
};

struct sched_session {
    struct uuid id;
    int64_t row; /* creation order, unique; of a kernel: that of its session */
    enum sched_unit unit;
    uint32_t rank; /* of a kernel; unique in its session */
    enum session_type type;
    int priority;
    int64_t starts_usec;        /* 0 = at once */
    const char *architecture;   /* NULL = any */
    const char *const *volumes; /* hosts of folders that its agents have to mount, and SCHED_SFTP */
    size_t volume_count;
    bool single_node;                   /* all kernels to one agent */
    bool needs_network;                 /* several agents only if all reach each other */
    const struct slots *const *kernels; /* what each requests, by rank */
    size_t kernel_count;
    const struct session_dependency *dependencies;
    size_t dependency_count;
    uint32_t accounts[SCHED_ACCOUNT_KINDS]; /* indexes, or SCHED_NO_ACCOUNT */
    uint32_t owner;                         /* index; beyond the last = nobody */
    uint32_t retries;                       /* how often it found no start so far */
    const char *failed_agent;               /* where it could not be started last time: only if
                                  no other has room; NULL = none */
    /* devices */
    const char *const *models; /* of devices that will do; none = any */
    size_t model_count;
    bool may_split; /* what finds no room as cluster.h divides it may be divided otherwise */
    /* agents */
    const char *const *designated; /* only these (strict), or rather these */
    size_t designated_count;
    bool designated_strict;
    const char *group; /* of sessions that keep apart or together; NULL = none */
    enum sched_grouping grouping;
    bool grouping_strict;
    /* time */
    int64_t lifetime_usec; /* it ends this long after its start; 0 = not known */
    int64_t eligible_usec; /* since then only resources hold it back; 0 = since the first pass that
                              looks at it */
    /* preemption */
    int job_priority; /* it may preempt lower ones */
    bool is_preemptible;
    bool is_movable;            /* it may be stopped to start again elsewhere at once */
    const char *scope;          /* whose sessions preempt each other; NULL = anybody's */
    const struct uuid *booking; /* in which it runs; NULL = none. One that waits in a booking that
                                   the scheduler does not have finds no agent, one that runs in
                                   such a booking is an ordinary session. */
    bool may_be_cut; /* it may start although its booking ends before its lifetime is over */
};

/* Where a session is that runs: per kernel, or once for a single-node one. */
struct sched_place {
    const char *agent_id;
    const struct sched_part *parts; /* of the agent's devices, by index; none: chosen */
    size_t part_count;
};

struct sched_part {
    uint32_t device;
    int64_t amount;
};

/* ---- bookings ---- */

/* Amounts of agents that are kept for certain sessions during [starts_usec, ends_usec), wall clock.
 */
struct sched_booking {
    struct uuid id;
    const char *name; /* for explanations; "" = it is not to be named */
    int64_t starts_usec, ends_usec;
    const struct slots *amounts;      /* of each place; of slots that they do not name its sessions
                                    share what is free */
    const struct sched_place *places; /* of different agents, with the parts of their devices */
    size_t place_count;
};

struct sched_running {
    const struct sched_session *session;
    const struct sched_place *places;
    int64_t started_usec;
    bool is_terminating; /* it is about to end */
};

/* ---- a pass ---- */

struct sequencer_ops;
struct selector_ops;

struct selector {
    const struct selector_ops *ops;
    void *data; /* the selector's own */
};

struct sched_preemption {
    bool enabled;
    enum sched_victims { SCHED_OLDEST, SCHED_NEWEST, SCHED_FEWEST, SCHED_SMALLEST } order;
    int64_t min_runtime_usec; /* younger ones are left alone */
    bool moves;               /* before anybody is preempted, others migrate; with backfill only
                                  if nobody who has a time starts later by it */
};

/* How a resource group schedules. */
struct sched_options {
    const struct sequencer_ops *sequencer;
    struct selector selector;
    const char *const *slot_priority; /* device names, e.g. "cuda", "cpu": compared first */
    size_t slot_priority_count;
    uint32_t retries_to_skip; /* FIFO: who failed as often is passed by others; 0 = never */
    bool backfill;
    uint32_t reservations_max; /* backfill: sessions that get a time; 0 = all */
    int64_t max_wait_usec;     /* backfill: what becomes free is kept for sessions that have been
                                  eligible so long and have no known start; 0 = never */
    bool plans_to_start;       /* backfill: a pass ends when nothing has room, and tells no times */
    struct sched_preemption preemption;
    uint32_t choices_max; /* candidates noted of each placement, at most 16; 0 = none */
};

struct sched_snapshot {
    int64_t now_usec;               /* wall clock, for starts_usec */
    const struct slot_types *types; /* all known ones: no agent has any other */
    struct sched_options options;
    const struct sched_agent *agents;
    size_t agent_count;
    const struct sched_pair *unreachable; /* pairs of 'agents' */
    size_t unreachable_count;
    const struct sched_account *accounts;
    size_t account_count;
    const struct sched_owner *owners;
    size_t owner_count;
    const struct sched_session *sessions; /* in any order */
    size_t session_count;
    const struct sched_running *running; /* already taken off 'free' of their agents */
    size_t running_count;
    const struct sched_booking *bookings; /* nothing of them is taken off 'free' */
    size_t booking_count;
};

enum sched_verdict {
    SCHED_PLACED,
    SCHED_NO_ROOM,     /* fits on no agent now; holds up what is behind it */
    SCHED_NO_AGENT,    /* there is no agent (of its architecture, with its folders) */
    SCHED_NO_CAPACITY, /* fits on no agent that takes sessions, even if it were empty */
    SCHED_TOO_EARLY,   /* before starts_usec */
    SCHED_DEPENDENCY,  /* a dependency is not met yet */
    SCHED_DOOMED,      /* a dependency can never be met: it will never run */
    SCHED_CONCURRENCY, /* too many sessions of the account */
    SCHED_QUOTA,       /* the account's slots are used up */
    SCHED_PREEMPTING,  /* has its place; starts when the victims have ended */
    SCHED_BOOKED,      /* has room until a booking begins, and would run longer; does not block */
    SCHED_CUT,         /* its lifetime goes beyond the end of its booking; does not block */
    SCHED_BEHIND,      /* never an outcome: held up by another (explanations only) */
};
/* "no-room" ...: a stable word for programs. */
const char *sched_verdict_name(enum sched_verdict verdict);

/* Parts of an agent's devices. Those of which each gives all that is placed there of its slot: a
 * selector that compares agents chooses none, and nobody does where an amount is divided, then it is
 * up to the agent. Where a booking keeps devices of the agent it is all parts.
 */
struct sched_choice {
    struct sched_part *parts; /* kernels that are placed together share them */
    size_t count;
    bool is_binding; /* no others will do */
};

struct sched_outcome {
    uint32_t session; /* index in the snapshot, or the handle */
    enum sched_verdict verdict;
    uint32_t account;                  /* that refused, or SCHED_NO_ACCOUNT */
    const uint32_t *agents;            /* PLACED, PREEMPTING: index of the agent per kernel */
    const struct sched_choice *chosen; /* the same: which of its agent's devices */
    const uint32_t *victims;           /* PREEMPTING: indexes of the running ones, or handles */
    const uint32_t *const *targets;    /* index of the agent per kernel of each of them, where it
                                  starts again; NULL = they are preempted */
    size_t victim_count;
    int64_t starts_usec; /* NO_ROOM with backfill: when it will start; 0 = not known */
    const char *choices; /* PLACED, with choices_max: JSON, per requirement
                                  {"selection", "with_room", "without_room": agents, "ranked":
                                  false if the selector says no more than which one, "best": the
                                  best first, or the chosen one and others by id
                                  [{"agent", "equal": agents like it, itself one of them,
                                  "score" or null, "free": amounts, "chosen"}]}; else NULL */
};

struct sched_result {
    struct sched_outcome *outcomes; /* in the order of looking */
    size_t count;
    bool is_blocked;  /* one that did not fit holds up the rest */
    uint32_t blocker; /* which; meaningless otherwise */
};

/* One pass; the result lives in 'arena'. 0, or -EINVAL for agents whose
 * devices cannot be.
 */
int sched_run(const struct sched_snapshot *snap, struct arena *arena, struct sched_result *ret,
              struct aq_error *err);

/* Say why session 'index', after the sessions before it have started as far as they fit, does not
 * start: a sentence or
 * list for users into 'text', and an object {"kind", "text", "requirements":
 * [{"slots", "agents", "nearest", "missing", "devices"}], "account", "dependencies",
 * "starts_at", "never": true if no end of other sessions helps it} into 'json'; either may be NULL.
 * "devices" has those slots of which the nearest agent's devices lack something: {"slot",
 * "may_split", "parts", "each", "ready", "usable", "most", "device", "together"}, as struct
 * shortage has it. Returns the verdict (PLACED: it could start now), or -EINVAL.
 */
int sched_explain(const struct sched_snapshot *snap, uint32_t index, struct arena *arena,
                  struct strbuf *text, struct strbuf *json, struct aq_error *err);

/* ---- plug points ---- */

extern const struct sequencer_ops sched_fifo, sched_lifo, sched_drf, sched_fair_share;

/* Amounts of one agent in the columns to compare, most important first. */
struct sched_candidate {
    const char *agent_id;
    int unutilized;      /* slots it has free that the request does not want */
    const int64_t *free; /* per column; SCHED_ABSENT = the agent has no such slot */
    size_t count;
};
#define SCHED_ABSENT INT64_MIN

extern const struct selector_ops sched_concentrated, sched_dispersed, sched_legacy,
    sched_round_robin, sched_bin_packing, sched_high_performance, sched_fragmentation;

/* NULL for a name that is not known. */
const struct sequencer_ops *sched_find_sequencer(const char *name);
const struct selector_ops *sched_find_selector(const char *name);

#endif
