/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler.h - a scheduler that is kept between passes
 *
 * The owner tells it of every change and asks for a pass when something may
 * have become possible. What a pass places is held at once; the owner drops
 * the session when it ends, or when the placement came to nothing and adds it
 * again. Handles are small numbers, good until the session is dropped.
 *
 * 'free' of an agent is here what it offers less what others than this
 * state's sessions hold. Pure as sched_run(): time comes as an argument.
 */
#ifndef AQ_SCHED_SCHEDULER_H
#define AQ_SCHED_SCHEDULER_H

#include "sched/sched.h"

struct sched;

/* 'options' are copied; strings and operations in it must outlive the state. */
struct sched *sched_new(const struct slot_types *types, const struct sched_options *options);
void sched_free(struct sched *s);
AQ_DEFINE_CLEANUP(struct sched, sched_free)

/* Add it or replace what is known of it; what this state's sessions hold
 * there stays held. Everything in 'agent' is copied. Agents are
 * numbered from 0 in the order in which they came.
 */
int sched_set_agent(struct sched *s, const struct sched_agent *agent, struct aq_error *err);
/* Whether two agents of one class of network fail to reach each other. It stays so when either is
 * replaced. 0, or -ENOENT if either was never set.
 */
int sched_set_unreachable(struct sched *s, const char *agent_a, const char *agent_b,
                          bool is_unreachable);

/* Accounts and owners are numbered by the caller; 'used' and 'sessions'
 * are without what this state's sessions hold. Copied.
 */
void sched_set_account(struct sched *s, uint32_t account, const struct sched_account *value);
void sched_set_owner(struct sched *s, uint32_t owner, const struct sched_owner *value);

/* The same for fair share only: the owner's claim. Unknown owners are ignored. */
void sched_set_factors(struct sched *s, uint32_t owner, double domain, double project, double user);

/* A session that waits, or one that runs already (its time is known). Copied.
 * -EEXIST if its row is there, -EINVAL.
 */
int sched_add(struct sched *s, const struct sched_session *session, uint32_t *ret_handle,
              struct aq_error *err);
/* As sched_add(), for one that somebody only asks about: selectors do not learn from it. */
int sched_add_what_if(struct sched *s, const struct sched_session *session, uint32_t *ret_handle,
                      struct aq_error *err);
int sched_add_running(struct sched *s, const struct sched_running *running, uint32_t *ret_handle,
                      struct aq_error *err);
/* One that runs is about to end: what it holds counts as free for sessions that may preempt. */
void sched_mark_terminating(struct sched *s, uint32_t handle);
/* A session has these places, an agent for each kernel (one for a single-node session), if they
 * are free or will be when the sessions that are leaving have ended: it starts there when it
 * waits, even if others wait, too. For one that migrates, and for one that others are preempted
 * for, where the state is new. 0, -ENOENT: no such agent, or it does not fit; -EEXIST: it has
 * places.
 */
int sched_reserve(struct sched *s, const struct sched_session *session,
                  const char *const *agent_ids);
/* It will not come back: its places, if it has any, are free. */
void sched_unreserve(struct sched *s, int64_t row);
/* It waits no longer, or has ended. */
void sched_drop(struct sched *s, uint32_t handle);

/* ---- bookings ---- */

/* Add a booking, or replace what is known of it. Copied. Places on agents that are not known yet
 * count once these are. A booking comes before its sessions; from its start on what they hold
 * counts as part of it. -EINVAL: it ends before it begins, or a slot is not known.
 */
int sched_booking_set(struct sched *s, const struct sched_booking *booking, int64_t now_usec,
                      struct aq_error *err);
/* It is over, or canceled: its amounts are for all. Its sessions that run go on as ordinary ones;
 * those that wait find no agent any more. Nothing if it is not known.
 */
void sched_booking_remove(struct sched *s, const struct uuid *id);

/* A booking for which agents are to be found. */
struct sched_booking_wish {
    const struct uuid *id; /* what is known of this booking does not count; NULL = it is new */
    int64_t starts_usec, ends_usec;
    const struct slots *amounts; /* of each place */
    size_t place_count;          /* each on another agent */
    const char *const *agents;   /* only on these, by id; none = on any */
    size_t agent_count;
    bool ignores_sessions; /* what sessions hold, or may hold at the start, does not count */
};

/* Why there are no agents for a booking. */
struct sched_booking_obstacle {
    size_t fitting;          /* agents that have room */
    const char *agent_id;    /* of the others the one that lacks least; NULL = there is none */
    const char *slot_name;   /* of which it has too little; NULL = its devices' models or parts */
    int64_t needed, free;    /* of that slot, from start to end */
    bool is_beyond;          /* it has less even if nothing runs there and nothing is booked */
    const uint32_t *holders; /* handles of sessions that may hold that slot there in this time */
    size_t holder_count;
    const struct uuid *bookings; /* that keep some of it in this time */
    size_t booking_count;
};

/* Choose places for a booking; those with the least room left come first. Nothing is kept yet.
 * *ret (place_count long) and the texts in it live in 'arena', like those of 'ret_obstacle'.
 * 0, or -EBUSY: there are too few agents with room, 'ret_obstacle' says why.
 */
int sched_booking_place(struct sched *s, const struct sched_booking_wish *wish, int64_t now_usec,
                        struct arena *arena, struct sched_place **ret,
                        struct sched_booking_obstacle *ret_obstacle);

/* Place what can be placed. Outcomes have handles, and are only of sessions
 * whose verdict, or time to start, differs from what the last pass said. The
 * result lives in 'arena'.
 */
void sched_pass(struct sched *s, int64_t now_usec, struct arena *arena, struct sched_result *ret);

/* How many passes looked at a session in vain, those said when it was added among them. */
uint32_t sched_retries(const struct sched *s, uint32_t handle);

/* What can be said of the start of a session that waits. */
enum sched_start {
    SCHED_START_AT,            /* starts_usec, if lifetimes are right */
    SCHED_START_OPEN,          /* what it needs is held by sessions that have no known end */
    SCHED_START_BEHIND,        /* one before it, that holds up the queue, has no known start */
    SCHED_START_RULED_OUT,     /* a rule is against it: free resources will not help */
    SCHED_START_NOT_ESTIMATED, /* so far back that it was not estimated */
};

#define SCHED_NO_SESSION UINT32_MAX

struct sched_start_estimate {
    uint32_t handle;
    enum sched_start start;
    int64_t starts_usec; /* AT */
    bool is_due;         /* OPEN, backfill: it has been eligible for max_wait_usec */
    bool has_claim;      /* OPEN, backfill: resources are kept for it */
    uint32_t promised;   /* backfill: it has room now, on an agent where this session before it is
                            to start; SCHED_NO_SESSION = it has not */
};

/* All that wait, in the order in which a pass would look at them, the first 'max'
 * with what can be said of their start. Changes nothing; *ret lives in 'arena'.
 * Returns the count.
 */
size_t sched_estimate_starts(struct sched *s, int64_t now_usec, size_t max, struct arena *arena,
                             struct sched_start_estimate **ret);

#endif
