/* SPDX-License-Identifier: Apache-2.0 */
/* lease.c - see lease.h */
#include "store/lease.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/strbuf.h"

#define LEASE_END_USEC (1500 * USEC_PER_MSEC)
#define LEASE_END_PAUSE_USEC (20 * USEC_PER_MSEC)

char *lease_session_name(const char *incarnation, const char *kind, char buf[LEASE_SESSION_MAX])
{
    (void)snprintf(buf, LEASE_SESSION_MAX, "aliquot:%.36s%s%.16s", incarnation, kind ? " " : "",
                   kind ? kind : "");
    return buf;
}

/* ---- the row ---- */

static void lease_get_text(struct sql_stmt *q, char *ret, size_t size)
{
    (void)snprintf(ret, size, "%s", sql_get_text(q));
}

static int lease_read_row(struct sql *db, struct lease_row *ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *text = aq_format(
        "SELECT l.epoch, l.beat, l.taken_at, l.is_held, l.name, l.link, l.api, l.version,"
        " l.incarnation, l.address, %s, %s, %s FROM manager_lease l",
        db->ops->holder_has_sessions, db->ops->holder_is_working, db->ops->holder_clock);
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct leader_view *view = &ret->view;
    int r = sql_prepare_once(db, text, &q, err);

    if (r == 0)
        r = sql_step(q, err);
    if (r == 0)
        r = aq_fail(err, EUCLEAN, "the database's manager_lease has no row");
    if (r < 0)
        return r;
    view->epoch = sql_get_int(q);
    view->beat = sql_get_int(q);
    view->taken_usec = sql_get_int(q);
    view->is_held = sql_get_int(q) != 0;
    lease_get_text(q, view->holder.name, sizeof(view->holder.name));
    lease_get_text(q, view->holder.link, sizeof(view->holder.link));
    lease_get_text(q, view->holder.api, sizeof(view->holder.api));
    lease_get_text(q, view->holder.version, sizeof(view->holder.version));
    lease_get_text(q, view->holder.incarnation, sizeof(view->holder.incarnation));
    lease_get_text(q, ret->address, sizeof(ret->address));
    view->has_sessions = sql_get_int(q) != 0;
    view->is_working = sql_get_int(q) != 0;
    view->clock_usec = sql_get_int(q);
    return 0;
}

/* 1 if the table has the columns of a version with standbys. */
static int lease_has_columns(struct sql *db, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare_once(db, db->ops->list_columns, &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, "manager_lease");
    while ((r = sql_step(q, err)) > 0)
        if (strcmp(sql_get_text(q), "is_held") == 0)
            return 1;
    return r;
}

int lease_read(struct sql *db, struct lease_row *ret, struct aq_error *err)
{
    int found, r = lease_read_row(db, ret, err);

    if (r == 0 || r == -EUCLEAN || db->ops->is_lost(db))
        return r;
    found = lease_has_columns(db, NULL); /* only after a failure: it costs a query */
    return found == 0 ? aq_fail(err, ENODATA,
                                "the database has no tables, or those of an older version; start a "
                                "manager of this version to create them")
                      : r;
}

/* ---- the lock ---- */

int lease_fail_held(const char *address, struct aq_error *err)
{
    return aq_fail(err, EBUSY,
                   "the manager at %s has the database; stop it first or, if its machine "
                   "is lost, run 'aliquot-manager db take-over'",
                   address && *address ? address : "an unknown address");
}

int lease_lock(struct sql *db, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = db->ops->lock(db, err);
    const char *address = NULL;

    if (r != 0)
        return AQ_MIN(r, 0);
    /* A database that is being created does not have the table yet. */
    if (sql_prepare_once(db, "SELECT address FROM manager_lease", &q, NULL) == 0
        && sql_step(q, NULL) > 0)
        address = sql_get_text(q);
    return lease_fail_held(address, err);
}

/* ---- sessions of a holder ---- */

int lease_end_sessions(struct sql *db, const char *incarnation, struct aq_error *err)
{
    char prefix[LEASE_SESSION_MAX];
    int64_t end = clock_monotonic_usec() + LEASE_END_USEC;
    int r;

    if (!incarnation[0])
        return 0;
    (void)lease_session_name(incarnation, NULL, prefix);
    while ((r = db->ops->end_sessions(db, prefix, err)) > 0) { /* a running process reconnects */
        if (clock_monotonic_usec() >= end)
            return aq_fail(err, EBUSY,
                           "%d sessions '%s' on the database server do not end; end them with "
                           "pg_terminate_backend()",
                           r, prefix);
        (void)usleep((useconds_t)LEASE_END_PAUSE_USEC);
    }
    return r;
}

/* Refuse, before the row is changed, a take that would fail or not help. */
static int lease_check_holder(struct sql *db, const struct leader_view *seen, struct aq_error *err)
{
    char prefix[LEASE_SESSION_MAX];
    int r;

    if (seen->epoch < 0)
        return aq_fail(err, EUCLEAN,
                       "the database is an unfinished copy; finish 'db migrate --to', or use an "
                       "empty one");
    if (!seen->holder.incarnation[0])
        return 0;
    (void)lease_session_name(seen->holder.incarnation, NULL, prefix);
    r = db->ops->count_protected_sessions(db, prefix, err);
    if (r > 0)
        return aq_fail(err, EACCES,
                       "the sessions of manager '%s' on the database server belong to another "
                       "role, and this one may not end them; give all managers the same role, or "
                       "GRANT pg_signal_backend to this one",
                       seen->holder.name);
    if (r == 0 && seen->is_held)
        r = db->ops->count_working_sessions(db, prefix, err);
    if (r > 0)
        return aq_fail(err, ESTALE,
                       "the database server is working on a transaction of manager '%s'; it is "
                       "slow, or waits for a lock or for a standby of its own",
                       seen->holder.name);
    return r;
}

/* ---- taking ---- */

static int lease_swap(struct sql *db, const struct leader_view *seen,
                      const struct leader_claim *self, const char *address, int64_t floor,
                      int64_t *ret_epoch, struct aq_error *err)
{
    static const char update[] =
        "UPDATE manager_lease SET epoch = ?, is_held = 1, name = ?, link = ?, api = ?,"
        " version = ?, incarnation = ?, address = ?, taken_at = ? WHERE epoch = ? AND beat = ?"
        " RETURNING epoch";
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare_once(db, update, &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, AQ_MAX(seen->epoch + 1, floor));
    sql_put_text(q, self->name);
    sql_put_text(q, self->link);
    sql_put_text(q, self->api);
    sql_put_text(q, self->version);
    sql_put_text(q, self->incarnation);
    sql_put_text(q, address ? address : self->api);
    sql_put_int(q, clock_realtime_usec());
    sql_put_int(q, seen->epoch);
    sql_put_int(q, seen->beat);
    r = sql_step(q, err);
    if (r == 0)
        return aq_fail(err, ESTALE,
                       "another manager has taken the lead, or the leader has committed");
    if (r > 0)
        *ret_epoch = sql_get_int(q);
    return AQ_MIN(r, 0);
}

int64_t lease_restored_epoch(void)
{
    return clock_realtime_usec() / USEC_PER_SEC;
}

int lease_take(struct sql *db, const struct leader_view *seen, const struct leader_claim *self,
               const char *address, int64_t floor, int64_t *ret_epoch, struct aq_error *err)
{
    int r = lease_check_holder(db, seen, err);

    if (r == 0)
        r = lease_swap(db, seen, self, address, floor, ret_epoch, err);
    if (r == -EBUSY) {
        /* An open transaction of the holder locks the row. */
        r = lease_end_sessions(db, seen->holder.incarnation, err);
        if (r == 0)
            r = lease_swap(db, seen, self, address, floor, ret_epoch, err);
        if (r == -EBUSY)
            r = aq_fail(err, EBUSY,
                        "a transaction of another program locks the row manager_lease of the "
                        "database; end it");
    }
    /* The holder's sessions can no longer commit, but may still lock rows and tables. */
    return r < 0 ? r : lease_end_sessions(db, seen->holder.incarnation, err);
}

int lease_begin(struct store_tx *tx, int64_t epoch, struct lease *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare_once(tx->db, "SELECT beat FROM manager_lease WHERE epoch = ?", &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, epoch);
    r = sql_step(q, err);
    if (r == 0)
        return aq_fail(err, EOWNERDEAD, "another manager has taken the database over");
    if (r < 0)
        return r;
    ret->epoch = epoch;
    ret->beat = sql_get_int(q);
    return 0;
}

/* ---- commits ---- */

static int lease_fail_lost(struct lease *lease, struct aq_error *err)
{
    lease->is_lost = true;
    return aq_fail(err, EOWNERDEAD,
                   "another manager has taken the database over; this one has stopped writing");
}

/* sql_refuse_fn */
static int lease_refuse_beat(const void *of, int r, struct aq_error *err)
{
    struct store_tx *tx = (struct store_tx *)(uintptr_t)of;

    if (r != -ENODATA)
        return r;
    tx->db->was_refused = false; /* splitting the batch would not help */
    return lease_fail_lost(tx->lease, err);
}

int lease_beat(struct store_tx *tx, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE manager_lease SET beat = beat + 1, clock_at = ?,"
                        " clock_epoch = epoch WHERE epoch = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, clock_realtime_usec());
    sql_put_int(q, tx->lease->epoch);
    return sql_change_one(q, lease_refuse_beat, tx, err);
}

int lease_release(struct store_tx *tx, const char *successor, struct aq_error *err)
{
    static const char release[] = "UPDATE manager_lease SET is_held = 0 WHERE epoch = ?",
                      hand_over[] = "UPDATE manager_lease SET is_held = 0, name = ?,"
                                    " incarnation = '' WHERE epoch = ?";
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, successor ? hand_over : release, &q, err);

    if (r < 0)
        return r;
    if (successor)
        sql_put_text(q, successor);
    sql_put_int(q, tx->lease->epoch);
    return sql_change_one(q, lease_refuse_beat, tx, err);
}

void lease_note_commit(struct lease *lease, int64_t beat)
{
    lease->beat = beat;
    atomic_store(&lease->acked_beat, beat);
    atomic_store(&lease->renewed_usec, lease->begun_usec);
}

/* ---- a connection that was lost ---- */

/* Compare the row with our last known commit: 1 if the one after it was made, 0 if not. */
static int lease_compare(struct lease *lease, const struct leader_view *row, struct aq_error *err)
{
    int64_t ahead = row->beat - lease->beat;
    bool is_older = row->epoch < lease->epoch || ahead < 0;

    if (row->epoch > lease->epoch && !is_older)
        return lease_fail_lost(lease, err);
    lease->is_lost = true;
    if (is_older)
        return aq_fail(
            err, EOWNERDEAD,
            "the database lacks %lld acknowledged commits (beats included), as its server lagged "
            "behind the former one or a backup was restored; the manager must load it again",
            (long long)(AQ_MAX(-ahead, 0) + (row->epoch < lease->epoch)));
    if (ahead > 1)
        return aq_fail(
            err, EOWNERDEAD,
            "the database has %lld commits of this epoch that this manager did not make, "
            "as manager_lease was changed by hand; the manager must load it again",
            (long long)ahead);
    if (ahead == 1 && lease->is_given_up)
        return aq_fail(err, EOWNERDEAD,
                       "the last commit before the connection to the database server was lost was "
                       "made after its callers had been refused; the manager must load it again");
    lease->is_lost = false;
    return (int)ahead;
}

/* The server may still execute the last commit of the lost session. Only after that session has
 * ended does the row show whether the commit was made.
 */
static int lease_end_lost_session(struct store_tx *tx, struct aq_error *err)
{
    char prefix[LEASE_SESSION_MAX];
    int64_t end = clock_monotonic_usec() + LEASE_END_USEC;
    int r;

    if (!tx->lease->incarnation[0])
        return 0;
    (void)lease_session_name(tx->lease->incarnation, LEASE_WRITER, prefix);
    r = tx->db->ops->end_idle_sessions(tx->db, prefix, err);
    while (r >= 0 && (r = tx->db->ops->count_sessions(tx->db, prefix, err)) > 0) {
        if (clock_monotonic_usec() >= end)
            return aq_fail(
                err, EHOSTDOWN,
                "the database server has not yet ended the session of the lost connection");
        (void)usleep((useconds_t)LEASE_END_PAUSE_USEC);
    }
    return r;
}

int lease_resume(struct store_tx *tx, struct aq_error *err)
{
    struct lease_row row;
    int done, r = tx->db->ops->connect_again(tx->db, err);

    if (r == 0)
        r = lease_end_lost_session(tx, err);
    if (r == 0)
        r = lease_read(tx->db, &row, err);
    if (r < 0)
        return r;
    done = lease_compare(tx->lease, &row.view, err);
    if (done < 0)
        return done;
    if (done)
        lease_note_commit(tx->lease, row.view.beat);
    tx->lease->is_unsettled = tx->lease->is_given_up = false;
    lease_note_there(tx->lease);
    return done;
}

/* ---- state of the connection ---- */

void lease_note_away(struct lease *lease, const struct aq_error *err)
{
    int64_t there = 0;

    if (atomic_compare_exchange_strong(&lease->away_usec, &there, clock_realtime_usec()))
        log_warning("%s; until it is back changes wait, and requests are answered from memory",
                    err->text);
}

void lease_note_there(struct lease *lease)
{
    int64_t since = atomic_exchange(&lease->away_usec, 0);

    if (since)
        log_info("the database server is back after %lld s",
                 (long long)(AQ_MAX(clock_realtime_usec() - since, 0) / USEC_PER_SEC));
}

int64_t lease_away_usec(const struct lease *lease)
{
    return atomic_load(&lease->away_usec);
}

/* ---- take-over by an administrator ---- */

/* The holder's sessions are ended before the update, as they may lock the row, and after it, as the
 * holder may have reconnected. A holder of a version without standbys is found by its lock instead.
 */
int lease_take_over(struct sql *db, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf update = STRBUF_INIT;
    struct lease_row row;
    int r = lease_read(db, &row, err);

    if (r == -ENODATA) {
        r = sql_run_script(db, "UPDATE manager_lease SET epoch = epoch + 1", err);
        return r < 0 ? r : db->ops->end_lock_holder(db, err);
    }
    if (r == 0)
        r = lease_end_sessions(db, row.view.holder.incarnation, err);
    if (r == 0)
        strbuf_addf(&update, "UPDATE manager_lease SET epoch = %lld, is_held = 0",
                    (long long)AQ_MAX(row.view.epoch + 1, lease_restored_epoch()));
    if (r == 0)
        r = sql_run_script(db, update.data, err);
    if (r == 0)
        r = lease_end_sessions(db, row.view.holder.incarnation, err);
    return r < 0 ? r : db->ops->end_lock_holder(db, err);
}
