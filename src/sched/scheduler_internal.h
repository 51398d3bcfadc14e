/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler_internal.h - inside of a scheduler, for the files of this directory */
#ifndef AQ_SCHED_SCHEDULER_INTERNAL_H
#define AQ_SCHED_SCHEDULER_INTERNAL_H

#include "sched/select_node.h"
#include "sched/scheduler.h"

#define NO_HANDLE SCHED_NO_SESSION

enum entry_status { ENTRY_FREE, ENTRY_WAITING, ENTRY_PLACED, ENTRY_PREEMPTING };

/* What one requirement holds. */
struct hold {
    uint32_t node;
    uint32_t part_count;
    struct device_part *parts;
};

/* What few sessions have: placement constraints and a preemption scope. */
struct sched_entry_more {
    uint32_t *designated;
    uint32_t designated_count;
    uint32_t failed; /* node or CLUSTER_NONE */
    bool designated_strict, grouping_strict;
    enum sched_grouping grouping;
    char *group, *scope;
};

/* Agents on which resources are kept for a session that has waited too long. */
struct room_claim {
    int64_t chosen_usec;
    uint32_t count; /* requirements; 0 = no agents would do, or it gives way to others */
    struct hold holds[];
};

/* A session inside the scheduler; its handle is its index. */
struct sched_entry {
    int64_t row;
    int64_t starts_usec;
    int64_t lifetime_usec, own_lifetime_usec; /* in a booking until its end at most; its own */
    int64_t started_usec;                     /* PLACED */
    int64_t reported_start_usec;              /* backfill: the time last told */
    int64_t eligible_usec;    /* since then only resources hold it back; 0 = not looked at */
    struct room_claim *claim; /* WAITING; owned, NULL = none was needed yet */
    enum entry_status status;
    enum sched_unit unit;
    uint32_t rank; /* of a kernel */
    enum session_type type;
    int priority, job_priority;
    bool is_preemptible, is_movable, single_node, needs_network, is_reported, may_be_cut;
    bool is_victim;                           /* a victim of this pass or an earlier one */
    enum sched_verdict verdict, dependencies; /* last told; PLACED = nothing speaks against it */
    uint32_t accounts[SCHED_ACCOUNT_KINDS];
    uint32_t owner, retries;
    uint32_t booking; /* number of the booking in which it runs; 0 = none */
    uint32_t queued_in_pass, tried_in_pass, placed_in_pass; /* passes */
    uint32_t kernel_count, req_count;
    struct slot_request **reqs;
    struct hold *holds; /* per requirement; unless WAITING */
    struct sched_entry_more *more;
};

/* Pending sessions are sorted by unit, priority, row and rank. */
struct queue_item {
    int64_t row;
    int priority;
    enum sched_unit unit;
    uint32_t rank, handle, owner;
};

struct account_state {
    enum sched_account_kind kind;
    bool missing_is_zero;
    int64_t max_sessions, sessions;
    int64_t *limits, *used; /* per column; NULL = not set */
};

struct owner_state {
    int64_t *used;     /* per column */
    double factors[3]; /* domain, project, user */
};

/* Places set aside for a session that does not wait (yet). */
struct reservation {
    int64_t row, lifetime_usec;
    uint32_t count;
    struct slot_request **reqs;
    struct hold *holds; /* per requirement */
};

/* What a booking keeps on one agent. */
struct booked_place {
    char *agent_id;
    uint32_t node; /* CLUSTER_NONE = the agent is not known (yet) */
    uint32_t part; /* is_active: the node for its sessions, CLUSTER_NONE without an agent */
    uint32_t part_count;
    struct device_part *parts;
    /* is_active: what of it others still hold, per column and of each of 'parts' */
    struct slot_request missing;
    struct device_part *missing_parts;
};

/* A booking: amounts that are kept for its sessions. */
struct booked {
    struct uuid id;
    char *name;
    uint32_t number; /* unique; never 0 */
    int64_t starts_usec, ends_usec;
    bool is_active, is_over;
    struct slot_request amounts; /* of each place; only the amounts and the named columns count */
    struct booked_place *places;
    uint32_t place_count;
};

#define BOOKED_UNKNOWN UINT32_MAX /* number of a booking that the scheduler does not have */

#define ROOM_SEARCH_MAX 256

/* Backfill: a search for sessions for which there is room found none. */
struct room_search {
    uint64_t version; /* cluster.free_version then; 0 = there was no such search */
    /* Those that it did not look at: they had their turn just then, or came later. */
    uint32_t count, handles[ROOM_SEARCH_MAX];
};

struct sched {
    struct cluster cluster;
    struct sched_options options;
    bool owns_selector;
    struct sched_entry *entries;
    size_t entry_count, entry_cap;
    uint32_t *free_entries;
    size_t free_count, free_cap;
    struct queue_item *queue;
    size_t queue_count, queue_cap; /* gaps included */
    size_t queue_gaps;             /* items without a handle: wait_queue_remove() */
    struct account_state *accounts;
    size_t account_count, account_cap;
    struct owner_state *owners;
    size_t owner_count, owner_cap;
    int64_t *capacity;    /* per column, over all agents; for shares */
    uint64_t capacity_at; /* cluster.agents_changed when it was summed */
    uint32_t pass_count;  /* counts them */
    struct room_search search;
    uint32_t put_off_in_pass; /* the last that put off all that waited; see pass_put_off() */
    enum slot_type *column_types;
    struct strbuf choices; /* of the placement under way, see candidates.c */
    size_t preempting;
    struct reservation *reservations;
    size_t reservation_count, reservation_cap;
    size_t grouped;          /* entries with a group that hold something */
    size_t optional;         /* optional kernels that hold something */
    struct booked *bookings; /* by number */
    size_t booking_count, booking_cap;
    uint32_t last_booking;      /* number */
    int64_t next_booking_usec;  /* when the next one begins; INT64_MAX = none is planned */
    int64_t claim_refused_usec; /* when a session that was due last got no claim; 0 = never */
};

/* ---- scheduler.c ---- */

/* A session that runs. is_counted: agents and accounts already count it. */
int entry_add_running(struct sched *s, const struct sched_running *running, bool is_counted,
                      uint32_t *ret_handle, struct aq_error *err);

/* ---- session_entry.c ---- */

/* Read 'session' into a new entry, which is still ENTRY_FREE; *ret is its handle. 0 or -EINVAL. */
int entry_add(struct sched *s, const struct sched_session *session, uint32_t *ret,
              struct aq_error *err);
/* Release its requests, free it and its handle; it holds nothing in the cluster any more. */
void entry_drop(struct sched *s, struct sched_entry *e);
/* Free what it owns. */
void entry_done(struct sched_entry *e);
static inline bool entry_is_holding(const struct sched_entry *e)
{
    return e->status == ENTRY_PLACED || e->status == ENTRY_PREEMPTING;
}
/* The session's requirements, each with a user more: release them and free() the list. */
struct slot_request **entry_read_requests(struct sched *s, const struct sched_session *session,
                                          uint32_t *ret_count);
/* Backfill: did it wait while there was no room for any? */
static inline bool entry_is_put_off(const struct sched *s, const struct sched_entry *e)
{
    return e->queued_in_pass < s->put_off_in_pass;
}
/* Hold what requirement 'req' asks for on 'node'; and give it back. */
void entry_hold(struct sched *s, struct sched_entry *e, size_t req, uint32_t node, int32_t device);
void entry_release(struct sched *s, struct sched_entry *e, size_t req);
/* The agent and the chosen devices of each kernel, into 'to'; they live in 'arena'. */
void entry_list_places(const struct sched *s, const struct sched_entry *e, struct arena *arena,
                       struct sched_outcome *to);

/* ---- invariants.c ---- */

/* Debug builds: agents, states, cached fits, queue and entries agree. Between passes. */
#ifdef NDEBUG
static inline void sched_assert_consistent(const struct sched *s)
{
    (void)s;
}
#else
void sched_assert_consistent(const struct sched *s);
#endif

/* ---- place.c ---- */

/* Place all requirements or none: SCHED_PLACED, or what place_find_obstacle() says. */
enum sched_verdict place_entry(struct sched *s, struct sched_entry *e, struct arena *arena);
/* For one that is not placed: SCHED_NO_AGENT, SCHED_NO_CAPACITY, SCHED_NO_ROOM otherwise. */
enum sched_verdict place_find_obstacle(struct sched *s, const struct sched_entry *e,
                                       struct arena *arena);
bool entry_has_agent(const struct sched *s, const struct sched_entry *e, size_t req);
/* NULL if it has none. */
const struct placement_constraints *entry_constraints(struct sched *s, const struct sched_entry *e,
                                                      struct arena *arena);

/* ---- explain_network.c ---- */

/* The kernels of 'e', which holds nothing, have room, but on agents that do not reach each other:
 * say which, a line each.
 */
void explain_network(struct sched *s, const struct sched_entry *e, struct strbuf *text);

/* ---- candidates.c ---- */

/* Requirement 'q' is going to be held on 'node': write the candidate agents into
 * s->choices. The requirements of an entry one after another.
 */
void candidates_note(struct sched *s, const struct sched_entry *e, uint32_t q, uint32_t node);

/* ---- validate.c ---- */

/* Count what holds something by group and unit (1), or take it off (-1). */
void entry_count(struct sched *s, const struct sched_entry *e, int sign);
/* Add the session to what its accounts and its owner use (1), or take it off (-1); and count it. */
void entry_charge(struct sched *s, const struct sched_entry *e, int sign);

enum sched_verdict validate_entry(const struct sched *s, const struct sched_entry *e,
                                  int64_t now_usec, uint32_t *ret_account);
int64_t account_limit(const struct account_state *a, size_t column);
int64_t entry_amount(const struct sched_entry *e, size_t column);

/* ---- queue_order.c ---- */

/* < 0: 'a' comes before 'b'. */
int wait_queue_compare(const struct queue_item *a, const struct queue_item *b);
/* The first place whose item does not come before 'item'. */
size_t wait_queue_find(const struct sched *s, const struct queue_item *item);
/* A session that was removed since wait_queue_close_gaps() takes its former place; the items behind it
 * stay where they are.
 */
void wait_queue_insert(struct sched *s, uint32_t handle);
/* Leaves a gap. A changed session is removed and inserted again; after a takeover all sessions are. */
void wait_queue_remove(struct sched *s, const struct sched_entry *e);
/* There is one more that the search has not looked at; too many undo it. */
void room_search_add(struct room_search *search, uint32_t handle);
/* Before a walk through the queue. */
void wait_queue_close_gaps(struct sched *s);
/* The place in the queue of one like 'session'. */
struct queue_item wait_queue_item(const struct sched_session *session);
/* The first place in the queue behind 'from' with a lower priority, or of another unit. */
size_t wait_queue_band_end(const struct sched *s, size_t from);

struct queue_order {
    struct sched *s;
    const struct queue_item *items; /* of one band */
    size_t count, at;
    void *data; /* the sequencer's own, in the arena */
};

struct sequencer_ops {
    const char *name;
    void (*begin)(struct queue_order *seq, struct arena *arena);
    /* The next handle, or NO_HANDLE. */
    uint32_t (*next)(struct queue_order *seq);
    /* May others pass it where it did not fit? */
    bool (*may_pass)(const struct sched *s, const struct sched_entry *e);
};

/* ---- preempt.c ---- */

struct forecast;

/* Find whom 'e' may preempt; holds its places and marks the victims. False if
 * it cannot. *ret lives in 'arena'. With a forecast only so that no booking lacks anything; what
 * it says is unchanged.
 */
bool preempt_for(struct sched *s, struct sched_entry *e, int64_t now_usec,
                 struct forecast *forecast, struct arena *arena, const uint32_t **ret,
                 size_t *ret_count);
/* The same with optional kernels alone as victims. */
bool preempt_optional_for(struct sched *s, struct sched_entry *e, int64_t now_usec,
                          struct forecast *forecast, struct arena *arena, const uint32_t **ret,
                          size_t *ret_count);

/* ---- migrate.c ---- */

/* Find whom to migrate so that 'e' can start; holds its places and theirs elsewhere. With a
 * forecast only so that nobody who has a time in it starts later. Victims and targets go into
 * 'out'; false if it cannot.
 */
bool migrate_for(struct sched *s, struct sched_entry *e, int64_t now_usec,
                 struct forecast *forecast, struct arena *arena, struct sched_outcome *out);

/* ---- reservation.c ---- */

struct reservation *reservation_find(struct sched *s, int64_t row);
/* A record without places yet; the requests get a user more. */
struct reservation *reservation_add(struct sched *s, int64_t row, int64_t lifetime_usec,
                                    struct slot_request *const *reqs, uint32_t count);
/* Give back its places, if it has any. */
void reservation_release(struct sched *s, int64_t row);
/* One that waits takes the places set aside for it; false if it has none (any more). */
bool reservation_start(struct sched *s, struct sched_entry *e);

/* ---- booked.c ---- */

void booked_done(struct booked *b);
/* NULL if there is none with this number. */
const struct booked *booked_find(const struct sched *s, uint32_t number);
/* The number of the session's booking, BOOKED_UNKNOWN if it is not known; 0 = it has none. */
uint32_t booked_number(const struct sched *s, const struct uuid *id);
/* The node of the agent, or of the part of it that this booking keeps now. */
uint32_t booked_find_node(const struct sched *s, uint32_t number, const char *agent_id);
/* Begin and end what is due, and see what others still hold of booked amounts. Before each pass. */
void booked_advance(struct sched *s, int64_t now_usec);
/* 'agent_node' was added, or other contents were set: nothing of it is held for bookings. */
void booked_take_agent(struct sched *s, uint32_t agent_node);
/* Would a booking begin before 'e' ends, if it started now? One of a booking shares what that does
 * not name, so it may run into others, too.
 */
bool booked_is_near(const struct sched *s, const struct sched_entry *e, int64_t now_usec);
/* 'e' starts now or later: in a booking it lives until that ends at most. */
void booked_limit_lifetime(const struct sched *s, struct sched_entry *e, int64_t now_usec);
/* When the booking in which 'e' holds something ends, INT64_MAX if it runs in none. */
int64_t booked_end(const struct sched *s, const struct sched_entry *e);
/* Does a booking keep devices of the agent of this node, now or later? */
bool booked_has_devices(const struct sched *s, uint32_t node);

/* ---- forecast.c ---- */

/* The future of every agent, as far as it is known.
 * assumes_ends: a session without a lifetime that runs stays as long again as it has run; else
 * its end is not known.
 */
struct forecast *forecast_new(struct sched *s, int64_t now_usec, bool assumes_ends,
                              struct arena *arena);
/* The earliest time at which all of 'e' can start and stay as long as it
 * lives, without delaying what was reserved before. Then that is reserved, and
 * if it is now the places are held. INT64_MAX: never, or with 'only_now' not
 * now.
 */
int64_t forecast_schedule(struct forecast *forecast, struct sched_entry *e, bool only_now);
/* The same from 'from_usec' on, but nothing is held. */
int64_t forecast_estimate_start(struct forecast *forecast, struct sched_entry *e,
                                int64_t from_usec);
/* On an agent where 'e' has room now, a session before it is to start some time: its handle, or
 * NO_HANDLE.
 */
uint32_t forecast_find_promised(struct forecast *forecast, const struct sched_entry *e);

/* Of the agents on which requirement 'q' can start now and stay, the one that the selector
 * prefers, CLUSTER_NONE if there is none; *ret_full: it fits nowhere now.
 */
uint32_t forecast_select_node(struct forecast *forecast, const struct sched_entry *e, uint32_t q,
                              const struct placement_constraints *constraints, bool *ret_full);
/* Can it start on 'node' now and stay? */
bool forecast_fits(struct forecast *forecast, const struct sched_entry *e, uint32_t q,
                   uint32_t node);
/* Hold a place from now on, from devices that are free as long as it lives. */
void forecast_hold(struct forecast *forecast, const struct sched_entry *e, uint32_t q,
                   uint32_t node, int32_t device, struct hold *ret);
/* Give back (1) what 'e' has from now on at 'holds', one per requirement; or take it (-1). */
void forecast_change_holds(struct forecast *forecast, const struct sched_entry *e,
                           const struct hold *holds, int sign);
/* One that runs ends now (1), or does not (-1). */
void forecast_assume_gone(struct forecast *forecast, const struct sched_entry *e, int sign);
/* The same on one node only; CLUSTER_NONE = on all. */
void forecast_assume_gone_from(struct forecast *forecast, const struct sched_entry *e,
                               uint32_t node, int sign);
/* Can each requirement of 'e', seen by itself, start now and stay? */
bool forecast_has_room(struct forecast *forecast, const struct sched_entry *e);
/* It holds places already, and starts once those that are about to end have gone: has nobody been
 * promised some of these before it ends?
 */
bool forecast_may_stay(const struct forecast *forecast, const struct sched_entry *e);
/* Could 'req' of 'e' be on 'node' for as long as it lives, once those that are about to end have
 * gone?
 */
bool forecast_fits_later(struct forecast *forecast, const struct sched_entry *e,
                         const struct slot_request *req, uint32_t node);
/* Hold requirement 'q' there from now on, from devices that will be free then. */
void forecast_hold_later(struct forecast *forecast, const struct sched_entry *e, uint32_t q,
                         uint32_t node, struct hold *ret);
/* It is about to end: what it leaves can be planned with, not taken. */
void forecast_mark_terminating(struct forecast *forecast, const struct sched_entry *e);

/* ---- claim.c ---- */

void claim_free(struct room_claim *claim);
/* Has 'e' waited so long that resources are to be kept for it? */
bool claim_is_due(const struct sched *s, const struct sched_entry *e, int64_t now_usec);
/* Keep what 'e' claims from those behind it in 'forecast'; may_choose: agents are chosen if none
 * are, or those chosen can no longer hold it. Otherwise a claim without chosen agents counts as one
 * that has them: a pass chooses when resources are free. False if there are none, or too many have
 * claims.
 */
bool claim_keep(struct forecast *forecast, struct sched_entry *e, bool may_choose);

#endif
