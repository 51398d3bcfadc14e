/* SPDX-License-Identifier: Apache-2.0 */
/* lease.h - one manager writes into a database on a server
 *
 * Inside the store. The server's lock keeps a second manager out for as long as
 * the connection of the first one lasts. Should a manager go on without the
 * lock (its machine slept, the network was cut, an administrator gave the
 * database to another one), the row manager_lease stops it: each commit of ours
 * counts its beat up where the epoch is ours, in the same transaction. After a
 * lost connection the beat tells whether the last commit was done.
 *
 * A file is held by its lock alone: the row is there and never changes.
 */
#ifndef AQ_STORE_LEASE_H
#define AQ_STORE_LEASE_H

#include <stdatomic.h>

#include "store/transaction.h"

struct lease {
    int64_t epoch, beat; /* beat: of the last commit that is known */
    bool is_lost;        /* another manager has it; or the database has not what we think */
    bool is_unsettled;   /* the connection was lost: the last commit may be done or not */
    bool is_given_up;    /* and its callers were told that it is not */
    /* Since when the server is away, wall clock, as any connection finds it; 0 = it is not. Any
     * thread.
     */
    _Atomic int64_t away_usec;
};

/* A connection was lost or not made, which 'err' says; or it works. Logged when it changes. */
void lease_note_away(struct lease *lease, const struct aq_error *err);
void lease_note_there(struct lease *lease);
int64_t lease_away_usec(const struct lease *lease);

/* The server's lock, to be taken before anything is written. -EBUSY: who has it. */
int lease_lock(struct sql *db, struct aq_error *err);

/* Begin an epoch under 'address'. In a transaction. */
int lease_take(struct store_tx *tx, const char *address, struct lease *ret, struct aq_error *err);

/* The last statement before COMMIT: refused if the epoch is not ours any more. */
int lease_beat(struct store_tx *tx, struct aq_error *err);

/* After a lost connection: connect and lock again. 1 if the last commit was
 * done, 0 if not, and the lease is settled; -EHOSTDOWN: try again later;
 * -EOWNERDEAD: lost for good, and lease->is_lost.
 */
int lease_resume(struct store_tx *tx, struct aq_error *err);

/* End the connection of the manager that has the lock, and its epoch. */
int lease_take_over(struct sql *db, struct aq_error *err);

#endif
