/* SPDX-License-Identifier: Apache-2.0 */
/* election.h - whether a manager that does not lead may take the lead: pure
 *
 * It goes by what the row of the database says (store/leadership.h) and by its own monotonic time,
 * so that no wall clock decides anything. Whether it really leads then is decided by the
 * compare-and-swap of leadership_take(), of which one manager at most has the success.
 */
#ifndef AQ_MANAGER_ELECTION_H
#define AQ_MANAGER_ELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "store/leadership.h"

/* A leader that is alive commits four times a second at least. So long without a commit it is taken
 * to be dead, stopped, or cut off from the database.
 */
#define ELECTION_SILENT_USEC (5 * USEC_PER_SEC)
/* The same where the database's server has seen its sessions end. */
#define ELECTION_GONE_USEC (700 * USEC_PER_MSEC)
/* A manager that gave the lead up leaves it to others for so long, as do those for whom it was not
 * given up.
 */
#define ELECTION_ABSTAIN_USEC (3 * USEC_PER_SEC)
/* A try that was refused is made again after this time: its reason may last for hours. */
#define ELECTION_RETRY_USEC (1 * USEC_PER_SEC)

/* Zeroed but for 'self' at the start. */
struct election {
    const struct leader_claim *self; /* of this process; borrowed */
    bool is_seen;
    int64_t epoch, beat;    /* as seen last */
    int64_t beat_usec;      /* when this beat was seen first; monotonic, as all times here */
    bool had_sessions;      /* its leader has, as seen by the connection of now */
    int64_t abstains_until; /* 0 = does not */
    int64_t retries_at;     /* 0 = at once */
    int refused_code;       /* of the last try, which was made in refused_epoch */
    int64_t refused_epoch;
    bool is_held_up; /* by a server that is at work on a transaction of the silent leader */
};

/* The row has been read at 'now_usec'. 'is_new': by another connection than before, perhaps to
 * another server. True if the lead may be taken.
 */
bool election_see(struct election *e, const struct leader_view *view, bool is_new,
                  int64_t now_usec);

/* After election_see(): true if a silent leader is not replaced because the server is at work on a
 * transaction of its own, which a new leader would wait for, too, and this was not so before.
 */
bool election_note_held_up(struct election *e, const struct leader_view *view, int64_t now_usec);

/* This manager has given the lead up. */
void election_abstain(struct election *e, int64_t now_usec);

/* The lead was not taken, for the reason 'code' (errno). True if the former try in this epoch did not
 * fail by the same reason: it is worth a line in the log then.
 */
bool election_refuse(struct election *e, int code, int64_t now_usec);

#endif
