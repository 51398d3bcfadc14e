/* state_private.h - inside of a scheduler, for the files of this folder */
#ifndef AQ_SCHED_STATE_PRIVATE_H
#define AQ_SCHED_STATE_PRIVATE_H

#include "sched/select.h"
#include "sched/state.h"

#define NO_HANDLE UINT32_MAX

enum entry_status { ENTRY_FREE, ENTRY_WAITING, ENTRY_PLACED, ENTRY_PREEMPTING };

/* What one requirement holds. */
struct hold {
    uint32_t node;
    uint32_t part_count;
    struct part *parts;
};

/* The longer part of a session, which few have. */
struct entry_more {
    uint32_t *designated;
    uint32_t designated_count;
    uint32_t failed;          /* node or CLUSTER_NONE */
    bool designated_strict, grouping_strict;
    enum sched_grouping grouping;
    char *group, *scope;
};

struct entry {
    int64_t row;
    int64_t starts_usec, lifetime_usec;
    int64_t started_usec;     /* PLACED */
    int64_t planned_usec;     /* backfill: the time last told */
    enum entry_status status;
    enum session_type type;
    int priority, job_priority;
    bool is_preemptible, is_movable, single_node, is_told;
    bool is_claimed;          /* a victim of this pass or an earlier one */
    enum sched_verdict verdict, dependencies; /* last told; PLACED = nothing speaks against it */
    uint32_t accounts[SCHED_ACCOUNT_KINDS];
    uint32_t owner, retries;
    uint32_t tried_in, placed_in; /* passes */
    uint32_t kernel_count, req_count;
    struct request **reqs;
    struct hold *holds;       /* per requirement; unless WAITING */
    struct entry_more *more;
};

/* In the order of a band: priority, then row. */
struct queued {
    int64_t row;
    int priority;
    uint32_t handle, owner;
};

struct account {
    enum sched_account_kind kind;
    bool missing_is_zero;
    int64_t max_sessions, sessions;
    int64_t *limits, *used;   /* per column; NULL = not set */
};

struct owner {
    int64_t *used;            /* per column */
    double factors[3];        /* domain, project, user */
};

/* Places set aside for a session that does not wait (yet). */
struct reserved {
    int64_t row, lifetime_usec;
    uint32_t count;
    struct request **reqs;
    struct hold *holds;       /* per requirement */
};

struct sched {
    struct cluster cluster;
    struct sched_options options;
    bool owns_selector;
    struct entry *entries;
    size_t entry_count, entry_cap;
    uint32_t *free_entries;
    size_t free_count, free_cap;
    struct queued *queue;
    size_t queue_count, queue_cap;
    struct account *accounts;
    size_t account_count, account_cap;
    struct owner *owners;
    size_t owner_count, owner_cap;
    int64_t *capacity;        /* per column, over all agents; for shares */
    uint64_t capacity_at;     /* cluster.agents_changed when it was summed */
    uint32_t passes;          /* counts them */
    enum slot_type *column_types;
    struct strbuf choices;    /* of the placement under way, see choice.c */
    size_t preempting;
    struct reserved *reserved;
    size_t reserved_count, reserved_cap;
    size_t grouped;           /* sessions with a group that hold something */
};

/* ---- state.c ---- */

/* A session that runs. is_counted: agents and accounts already count it. */
int state_add_running(struct sched *s, const struct sched_running *running, bool is_counted,
                      uint32_t *ret_handle, struct aq_error *err);
void queue_insert(struct sched *s, uint32_t handle);
/* The first place in the queue behind 'from' with a lower priority. */
size_t queue_band_end(const struct sched *s, size_t from);
/* Its requirements, each with a user more: release them and free() the list. 0 or -ENOMEM. */
int state_requests(struct sched *s, const struct sched_session *session, struct request ***ret,
                   uint32_t *ret_count);
int state_hold(struct sched *s, struct entry *e, size_t req, uint32_t node, int32_t device);
int state_release(struct sched *s, struct entry *e, size_t req);
/* Sum over the accounts and the owner; sign 1 or -1. */
void state_charge(struct sched *s, const struct entry *e, int sign);

/* ---- place.c ---- */

/* Place all requirements or none: SCHED_PLACED, SCHED_NO_ROOM, SCHED_NO_AGENT, or -ENOMEM. */
int place_entry(struct sched *s, struct entry *e, struct arena *arena);
bool entry_has_agent(const struct sched *s, const struct entry *e, size_t req);
/* NULL if it has none; -ENOMEM in *ret_r. */
const struct wish *entry_wish(struct sched *s, const struct entry *e, struct arena *arena,
                              int *ret_r);

/* ---- choice.c ---- */

/* Requirement 'q' is going to be held on 'node': note between which agents that
 * was chosen, in s->choices. The requirements of an entry one after another. 0 or -ENOMEM.
 */
int choice_note(struct sched *s, const struct entry *e, uint32_t q, uint32_t node);

/* ---- validate.c ---- */

enum sched_verdict validate_entry(const struct sched *s, const struct entry *e, int64_t now_usec,
                                  uint32_t *ret_account);
int64_t account_limit(const struct account *a, size_t column);
int64_t entry_amount(const struct entry *e, size_t column);

/* ---- sequence.c ---- */

struct sequence {
    struct sched *s;
    const struct queued *items; /* of one band */
    size_t count, at;
    void *data;               /* the sequencer's own, in the arena */
};

struct sequencer_ops {
    const char *name;
    int (*begin)(struct sequence *seq, struct arena *arena);
    /* The next handle, or NO_HANDLE. */
    uint32_t (*next)(struct sequence *seq);
    /* May others pass it where it found no room? */
    bool (*may_pass)(const struct sched *s, const struct entry *e);
};

/* The largest part of what there is that the owner holds of one slot. */
double owner_share(struct sched *s, uint32_t owner);

/* ---- preempt.c ---- */

/* Find whom 'e' may displace; holds its places and marks the victims. 1, 0 =
 * it cannot, -ENOMEM. *ret lives in 'arena'.
 */
int preempt_for(struct sched *s, struct entry *e, int64_t now_usec, struct arena *arena,
                const uint32_t **ret, size_t *ret_count);

/* ---- move.c ---- */

struct forecast;

/* Find whom to move so that 'e' can start; holds its places and theirs elsewhere. With a forecast
 * only so that nobody who has a time in it starts later. 1 with victims and targets in 'out', 0 =
 * it cannot, -ENOMEM.
 */
int move_for(struct sched *s, struct entry *e, int64_t now_usec, struct forecast *forecast,
             struct arena *arena, struct sched_outcome *out);

/* ---- reserve.c ---- */

struct reserved *state_find_reserved(struct sched *s, int64_t row);
/* A record without places yet; the requests get a user more. NULL if memory is short. */
struct reserved *state_reserve(struct sched *s, int64_t row, int64_t lifetime_usec,
                               struct request *const *reqs, uint32_t count);
/* 0, also if it has none, or -ENOMEM: what is left is given back by the next try. */
int state_unreserve(struct sched *s, int64_t row);
/* One that waits takes the places set aside for it: 1, 0 = it has none (any more), -ENOMEM. */
int reserve_start(struct sched *s, struct entry *e);

/* ---- forecast.c ---- */

/* The future of every agent, as far as it is known. NULL if memory is short.
 * is_plan: for forecast_plan() alone; what has no lifetime stays for ever.
 */
struct forecast *forecast_new(struct sched *s, int64_t now_usec, bool is_plan,
                              struct arena *arena);
/* The earliest time at which all of 'e' can start and stay as long as it
 * lives, without moving what was reserved before. Then that is reserved, and
 * if it is now the places are held. INT64_MAX: never, or with 'only_now' not
 * now. 0 or -ENOMEM.
 */
int forecast_entry(struct forecast *forecast, struct entry *e, bool only_now, int64_t *ret_usec);
/* The same from 'from_usec' on, but nothing is held. */
int forecast_plan(struct forecast *forecast, struct entry *e, int64_t from_usec,
                  int64_t *ret_usec);

/* Of the agents on which requirement 'q' can start now and stay, the one that the selector
 * prefers, CLUSTER_NONE if there is none; *ret_full: none has room now. 0 or -ENOMEM.
 */
int forecast_choose(struct forecast *forecast, const struct entry *e, uint32_t q,
                    const struct wish *wish, bool *ret_full, uint32_t *ret);
/* Can it start on 'node' now and stay? */
bool forecast_fits(struct forecast *forecast, const struct entry *e, uint32_t q, uint32_t node);
/* Hold a place from now on, from devices that are free as long as it lives. 0 or -ENOMEM. */
int forecast_hold(struct forecast *forecast, const struct entry *e, uint32_t q, uint32_t node,
                  int32_t device, struct hold *ret);
/* Give back (1) what 'e' has from now on at 'holds', one per requirement; or take it (-1). */
int forecast_change(struct forecast *forecast, const struct entry *e, const struct hold *holds,
                    int sign);
/* One that runs is gone from now on (1), or is not (-1). */
int forecast_leave(struct forecast *forecast, const struct entry *e, int sign);
/* It is gone from now on, but not yet: what it leaves can be planned with, not taken. */
int forecast_linger(struct forecast *forecast, const struct entry *e);

#endif
