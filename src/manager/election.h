/* SPDX-License-Identifier: Apache-2.0 */
/* election.h - whether a manager that does not lead may try to take the lead: pure
 *
 * It depends on the row in the database (store/leadership.h) and on this process's monotonic clock,
 * never on wall clocks. The compare-and-swap of leadership_take() then decides whether the manager
 * leads; it succeeds for at most one.
 */
#ifndef AQ_MANAGER_ELECTION_H
#define AQ_MANAGER_ELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "store/leadership.h"

/* Without a commit for this time, a leader counts as dead, stopped, or cut off from the database. A
 * living one commits at least four times a second.
 */
#define ELECTION_SILENT_USEC (5 * USEC_PER_SEC)
/* The same, if the leader's sessions on the database server have ended. */
#define ELECTION_GONE_USEC (700 * USEC_PER_MSEC)
/* For this time after a yield, the manager that yielded does not take the lead, and neither do
 * those other than the named successor.
 */
#define ELECTION_ABSTAIN_USEC (3 * USEC_PER_SEC)
/* From a refused try to the next one; the reason may last for hours. */
#define ELECTION_RETRY_USEC (1 * USEC_PER_SEC)

/* Initially zero except for 'self'. */
struct election {
    const struct leader_claim *self; /* of this process; borrowed */
    bool is_seen;
    int64_t epoch, beat;    /* of the last view */
    int64_t beat_usec;      /* when this beat was first seen; monotonic, as are all times here */
    bool had_sessions;      /* this connection has seen sessions of the leader on the server */
    int64_t abstains_until; /* 0 = it does not abstain */
    int64_t retries_at;     /* 0 = at once */
    int refused_code;       /* of the last refused try ... */
    int64_t refused_epoch;  /* ... and its epoch */
    bool is_held_up;        /* by a server that is at work on a transaction of the silent leader */
};

/* Evaluate a view that was read at 'now_usec'. 'is_new': by another connection than the previous
 * one, perhaps to another server. True if this manager may try to take the lead.
 */
bool election_see(struct election *e, const struct leader_view *view, bool is_new,
                  int64_t now_usec);

/* After election_see(): true if a silent leader is not replaced because the server is at work on a
 * transaction of its own, which a new leader would wait for, too, and this was not so before.
 */
bool election_note_held_up(struct election *e, const struct leader_view *view, int64_t now_usec);

/* Note that this manager has yielded the lead. */
void election_abstain(struct election *e, int64_t now_usec);

/* Note that a try failed with 'code' (an errno). True if that should be logged: the previous try
 * did not fail with the same code in the same epoch.
 */
bool election_refuse(struct election *e, int code, int64_t now_usec);

#endif
