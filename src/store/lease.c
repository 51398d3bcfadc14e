/* SPDX-License-Identifier: Apache-2.0 */
/* One manager writes into a database on a server. */
#include "store/lease.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"

struct lease_row {
    int64_t epoch, beat;
    char address[256];
};

/* 1, or 0 without the table. */
static int lease_read(struct sql *db, struct lease_row *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare_once(db, "SELECT epoch, beat, address FROM manager_lease", &q, err);

    if (r == 0)
        r = sql_step(q, err);
    if (r <= 0)
        return r;
    ret->epoch = sql_get_int(q);
    ret->beat = sql_get_int(q);
    (void)snprintf(ret->address, sizeof(ret->address), "%s", sql_get_text(q));
    return 1;
}

int lease_lock(struct sql *db, struct aq_error *err)
{
    struct lease_row row = { .address = "" };
    int r = db->ops->lock(db, err);

    if (r != 0)
        return AQ_MIN(r, 0);
    (void)lease_read(db, &row, NULL); /* a database that is being made has none yet */
    return aq_fail(err, EBUSY,
                   "the manager at %s has the database; stop it first, or, if its machine "
                   "is gone, 'aliquot-manager db take-over'",
                   row.address[0] ? row.address : "an unknown address");
}

int lease_take(struct store_tx *tx, const char *address, struct lease *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db,
                        "UPDATE manager_lease SET epoch = epoch + 1, address = ?, taken_at = ?"
                        " RETURNING epoch, beat",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, address);
    sql_put_int(q, clock_realtime_usec());
    r = sql_step(q, err);
    if (r == 0)
        r = aq_fail(err, EUCLEAN, "the database's manager_lease has no row");
    if (r < 0)
        return r;
    ret->epoch = sql_get_int(q);
    ret->beat = sql_get_int(q);
    return 0;
}

static int lease_fail_lost(struct lease *lease, struct aq_error *err)
{
    lease->is_lost = true;
    return aq_fail(err, EOWNERDEAD,
                   "another manager has taken the database over; this one writes no more");
}

/* sql_refuse_fn */
static int lease_refuse_beat(const void *of, int r, struct aq_error *err)
{
    struct store_tx *tx = (struct store_tx *)(uintptr_t)of;

    if (r != -ENODATA)
        return r;
    tx->db->was_refused = false; /* no other batch would fare better */
    return lease_fail_lost(tx->lease, err);
}

int lease_beat(struct store_tx *tx, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, "UPDATE manager_lease SET beat = beat + 1 WHERE epoch = ?", &q,
                        err);

    if (r < 0)
        return r;
    sql_put_int(q, tx->lease->epoch);
    return sql_change_one(q, lease_refuse_beat, tx, err);
}

/* What the row says of our last commit: 1 if it was done. */
static int lease_compare(struct lease *lease, const struct lease_row *row, struct aq_error *err)
{
    int64_t ahead = row->beat - lease->beat;

    if (row->epoch != lease->epoch && ahead >= 0)
        return lease_fail_lost(lease, err);
    lease->is_lost = true;
    if (row->epoch != lease->epoch || ahead < 0 || ahead > 1)
        return aq_fail(err, EOWNERDEAD,
                       "the database lacks %lld commits that were acknowledged: it is an "
                       "older state (a standby that lagged, or a backup); it has to be "
                       "loaded again",
                       (long long)-ahead);
    if (ahead == 1 && lease->is_given_up)
        return aq_fail(err, EOWNERDEAD,
                       "the last commit before the database server went away was done after "
                       "its callers were refused; it has to be loaded again");
    lease->is_lost = false;
    return (int)ahead;
}

int lease_resume(struct store_tx *tx, struct aq_error *err)
{
    struct lease_row row = { .address = "" };
    int locked, r = tx->db->ops->connect_again(tx->db, err);

    if (r < 0)
        return r;
    locked = tx->db->ops->lock(tx->db, err);
    if (locked < 0)
        return locked;
    r = lease_read(tx->db, &row, err);
    if (r == 0)
        r = aq_fail(err, EUCLEAN, "the database's manager_lease has no row");
    if (r > 0)
        r = lease_compare(tx->lease, &row, err);
    if (r < 0)
        return r;
    if (!locked) /* the server has not seen yet that our old connection is gone */
        return aq_fail(err, EHOSTDOWN, "the database is still held by a connection that is gone");
    tx->lease->beat = row.beat;
    tx->lease->is_unsettled = tx->lease->is_given_up = false;
    lease_note_there(tx->lease);
    return r;
}

/* ---- whether it is there ---- */

void lease_note_away(struct lease *lease, const struct aq_error *err)
{
    int64_t there = 0;

    if (atomic_compare_exchange_strong(&lease->away_usec, &there, clock_realtime_usec()))
        log_warning("%s; until it is back changes wait, and what is read comes from memory",
                    err->text);
}

void lease_note_there(struct lease *lease)
{
    int64_t since = atomic_exchange(&lease->away_usec, 0);

    if (since)
        log_info("the database server is there again, after %lld s",
                 (long long)(AQ_MAX(clock_realtime_usec() - since, 0) / USEC_PER_SEC));
}

int64_t lease_away_usec(const struct lease *lease)
{
    return atomic_load(&lease->away_usec);
}

int lease_take_over(struct sql *db, struct aq_error *err)
{
    int r = sql_run_script(db, "UPDATE manager_lease SET epoch = epoch + 1", err);

    return r < 0 ? r : db->ops->end_lock_holder(db, err);
}
