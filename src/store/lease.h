/* SPDX-License-Identifier: Apache-2.0 */
/* lease.h - the leader's side of the row that lets one manager write to a database on a server
 *
 * Inside the store. The row manager_lease names the leader (see store/leadership.h).
 * Each commit increments its beat where the epoch is ours, in the same transaction, so
 * the commits of a manager that was replaced (its machine slept, the network was cut, an
 * administrator took the database over) fail. After a lost connection the beat shows
 * whether the last commit was made.
 *
 * A database in a file is protected by its lock alone; the row exists and never changes.
 */
#ifndef AQ_STORE_LEASE_H
#define AQ_STORE_LEASE_H

#include <stdatomic.h>

#include "store/leadership.h"
#include "store/transaction.h"

/* Names of sessions on the server. Readers have another name than the writer, as after a lost
 * connection only the writer's former session must have ended.
 */
#define LEASE_SESSION_MAX 64
#define LEASE_WRITER "writer"
#define LEASE_READER "reader"

struct lease {
    int64_t epoch, beat;  /* beat: of the last known commit */
    int64_t begun_usec;   /* monotonic: start of the current transaction, or the last one */
    char incarnation[37]; /* part of the names of our sessions */
    bool is_lost;         /* another manager has the row, or the database differs */
    bool is_unsettled;    /* the connection was lost: the last commit may have been made ... */
    bool is_empty;        /* ... it consisted of beats alone ... */
    bool is_given_up;     /* ... its callers were answered that it was not made */
    _Atomic int64_t acked_beat, renewed_usec; /* of the last acknowledged commit: its beat, and its
                                                 start. Any thread */
    /* Wall clock: since when no connection reaches the server; 0 = it is reached. Any thread. */
    _Atomic int64_t away_usec;
};

/* The row: the part that all managers read, and the address of its holder. */
struct lease_row {
    struct leader_view view;
    char address[256];
};

/* "aliquot:INCARNATION KIND", or without a kind the common prefix of these names. Returns 'buf'. */
char *lease_session_name(const char *incarnation, const char *kind, char buf[LEASE_SESSION_MAX]);

/* -ENODATA as of leadership_read(). */
int lease_read(struct sql *db, struct lease_row *ret, struct aq_error *err);

/* An epoch for a database that may be older than what agents have recorded: Unix time in seconds.
 * Epochs grow by one per takeover, which is less than one a second, so this exceeds every epoch
 * that was counted from an earlier one, as long as the clock is not behind that restore's.
 */
int64_t lease_restored_epoch(void);

/* As leadership_take(), with an address for the row (NULL = that of the API). 'db' must have a
 * timeout for locks. The new epoch is the next one, and at least 'floor'.
 */
int lease_take(struct sql *db, const struct leader_view *seen, const struct leader_claim *self,
               const char *address, int64_t floor, int64_t *ret_epoch, struct aq_error *err);

/* End the sessions of a holder and wait, up to 1.5 s, until they are gone: 0, or -EBUSY. */
int lease_end_sessions(struct sql *db, const char *incarnation, struct aq_error *err);

/* Note that a connection failed because of 'err', or that one works. Changes are logged. */
void lease_note_away(struct lease *lease, const struct aq_error *err);
void lease_note_there(struct lease *lease);
int64_t lease_away_usec(const struct lease *lease);

/* Note that the commit with this beat was acknowledged. */
void lease_note_commit(struct lease *lease, int64_t beat);

/* Fill 'err' with the manager that has the database, and the remedy; returns -EBUSY. */
int lease_fail_held(const char *address, struct aq_error *err);

/* Take the server's lock, under which the schema is created and changed. -EBUSY: another manager
 * has it, which 'err' names.
 */
int lease_lock(struct sql *db, struct aq_error *err);

/* Start writing in an epoch that was taken; called in a transaction. -EOWNERDEAD: a later epoch has
 * begun.
 */
int lease_begin(struct store_tx *tx, int64_t epoch, struct lease *ret, struct aq_error *err);

/* The last statement before COMMIT; fails with -EOWNERDEAD if the epoch is no longer ours. It also
 * notes our wall clock, for leadership_read().
 */
int lease_beat(struct store_tx *tx, struct aq_error *err);

/* Yield the row, so that the standby named 'successor' (NULL = any) takes it at once. */
int lease_release(struct store_tx *tx, const char *successor, struct aq_error *err);

/* After a lost connection, reconnect and end the lost session. Returns 1 if the last commit was
 * made, 0 if not, and the lease is settled; -EHOSTDOWN: try again later; -EOWNERDEAD: the lease is
 * lost (is_lost).
 */
int lease_resume(struct store_tx *tx, struct aq_error *err);

/* End the epoch and the sessions of the leader, so that any manager can take the row. The next
 * epoch is above lease_restored_epoch(), so that agents follow it also if the database is an older
 * copy.
 */
int lease_take_over(struct sql *db, struct aq_error *err);

#endif
