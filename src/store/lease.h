/* SPDX-License-Identifier: Apache-2.0 */
/* lease.h - one manager writes into a database on a server: the writer's side
 *
 * Inside the store. The row manager_lease says which manager leads (see
 * store/leadership.h). Each commit of ours counts its beat up where the epoch is
 * ours, in the same transaction, so a manager that another one has replaced
 * (its machine slept, the network was cut, an administrator gave the database
 * away) writes nothing. After a lost connection the beat tells whether the last
 * commit was done.
 *
 * A file is held by its lock alone: the row is there and never changes.
 */
#ifndef AQ_STORE_LEASE_H
#define AQ_STORE_LEASE_H

#include <stdatomic.h>

#include "store/leadership.h"
#include "store/transaction.h"

/* Names of sessions on the server: readers do not share the writer's, as after a lost connection
 * only the writer's former session must be gone.
 */
#define LEASE_SESSION_MAX 64
#define LEASE_WRITER "writer"
#define LEASE_READER "reader"

struct lease {
    int64_t epoch, beat;  /* beat: of the last commit that is known */
    int64_t begun_usec;   /* monotonic: of the transaction under way, or the last one */
    char incarnation[37]; /* in the names of our sessions */
    bool is_lost;         /* another manager has it; or the database has not what we think */
    bool is_unsettled;    /* the connection was lost: the last commit may be done or not */
    bool is_empty;        /* and it was of beats alone */
    bool is_given_up;     /* and its callers were told that it is not */
    _Atomic int64_t acked_beat, renewed_usec; /* of the last acknowledged commit: its beat, and when
                                                 it was begun. Any thread */
    /* Since when the server is away, wall clock, as any connection finds it; 0 = it is not. Any
     * thread.
     */
    _Atomic int64_t away_usec;
};

/* The row as any manager reads it, and the address that its holder gave. */
struct lease_row {
    struct leader_view view;
    char address[256];
};

/* "aliquot:INCARNATION KIND"; without a kind the prefix of all. Returns 'buf'. */
char *lease_session_name(const char *incarnation, const char *kind, char buf[LEASE_SESSION_MAX]);

/* -ENODATA as of leadership_read(). */
int lease_read(struct sql *db, struct lease_row *ret, struct aq_error *err);

/* An epoch for a database that may be older than what agents have recorded: Unix time in seconds.
 * Epochs grow by one per takeover, which is less than one a second, so this exceeds every epoch that
 * was counted from an earlier one, as long as the clock is not behind that restore's.
 */
int64_t lease_restored_epoch(void);

/* As leadership_take(), under the address (NULL = none). 'db' gives up on a lock after a while. The
 * epoch is the next one, and 'floor' at least.
 */
int lease_take(struct sql *db, const struct leader_view *seen, const struct leader_claim *self,
               const char *address, int64_t floor, int64_t *ret_epoch, struct aq_error *err);

/* End the sessions of a holder and wait, up to 1.5 s, until they are gone: 0, or -EBUSY. */
int lease_end_sessions(struct sql *db, const char *incarnation, struct aq_error *err);

/* A connection was lost or not made, which 'err' says; or it works. Logged when it changes. */
void lease_note_away(struct lease *lease, const struct aq_error *err);
void lease_note_there(struct lease *lease);
int64_t lease_away_usec(const struct lease *lease);

/* A commit was acknowledged: it was 'beat'. */
void lease_note_commit(struct lease *lease, int64_t beat);

/* -EBUSY: who has the database, and what to do. */
int lease_fail_held(const char *address, struct aq_error *err);

/* The server's lock, under which the schema is made and changed. -EBUSY: who has it. */
int lease_lock(struct sql *db, struct aq_error *err);

/* Begin to write in the epoch that was taken. In a transaction. -EOWNERDEAD if it has passed. */
int lease_begin(struct store_tx *tx, int64_t epoch, struct lease *ret, struct aq_error *err);

/* The last statement before COMMIT: refused if the epoch is not ours any more. It notes our wall
 * clock, too, for leadership_read().
 */
int lease_beat(struct store_tx *tx, struct aq_error *err);

/* Give the row up in good order: the standby named 'successor', NULL = any, takes it at once. */
int lease_release(struct store_tx *tx, const char *successor, struct aq_error *err);

/* After a lost connection: connect again, and end the session that was lost. 1 if the last commit
 * was done, 0 if not, and the lease is settled; -EHOSTDOWN: try again later;
 * -EOWNERDEAD: lost for good, and lease->is_lost.
 */
int lease_resume(struct store_tx *tx, struct aq_error *err);

/* End the epoch and the sessions of the manager that leads: the next one that asks leads, in an epoch
 * above lease_restored_epoch(), so that agents follow it on a database that was put back, too.
 */
int lease_take_over(struct sql *db, struct aq_error *err);

#endif
