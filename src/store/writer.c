/* SPDX-License-Identifier: Apache-2.0 */
/* Run several pieces of work as one transaction. */
#include "store/writer.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "store/lease.h"
#include "store/reserve.h"

/* How long a commit waits for a server that is away. */
#define WRITER_AWAY_USEC (30 * USEC_PER_SEC)

/* What ends and takes back. Made at the start: taking back must not want memory. */
static const char sql_commit[] = "COMMIT", sql_rollback[] = "ROLLBACK",
                  sql_savepoint[] = "SAVEPOINT piece", sql_rollback_piece[] = "ROLLBACK TO piece",
                  sql_release[] = "RELEASE piece";

int writer_prepare(struct store_tx *tx, struct aq_error *err)
{
    const char *const all[] = { tx->db->ops->begin_write, sql_commit, sql_rollback, sql_savepoint,
                                sql_rollback_piece,       sql_release };
    struct sql_stmt *q;
    int r = 0;

    for (size_t i = 0; i < AQ_COUNT(all) && r == 0; i++)
        r = sql_prepare(tx->db, all[i], &q, err);
    return r;
}

static int writer_write_batch(struct store_tx *tx, struct event_batch *batch, struct aq_error *err)
{
    for (size_t i = 0; i < batch->count; i++) {
        int r = event_write(tx, &batch->events[i], err);

        if (r < 0)
            return r;
    }
    return 0;
}

/* Without a savepoint, whose copies of pages cost as much as a row: what a
 * piece that fails has written is still there.
 */
static int writer_run_plain(struct store_tx *tx, struct piece *p)
{
    p->result = writer_write_batch(tx, p->batch, &p->err);
    AQ_FAULT("store.piece.written");
    return p->result;
}

/* Leaves no trace of a piece that failed; negative if the transaction itself
 * is lost.
 */
static int writer_run_in_savepoint(struct store_tx *tx, struct piece *p, struct aq_error *err)
{
    int r = sql_run_constant(tx->db, sql_savepoint, err);

    if (r < 0)
        return r;
    p->was_run = !p->batch;
    p->result = p->batch ? writer_write_batch(tx, p->batch, &p->err) : p->fn(tx, p->data, &p->err);
    if (p->result >= 0 && (r = sql_settle(tx->db, &p->err)) < 0)
        p->result = r;
    AQ_FAULT("store.piece.written-apart");
    if (p->result < 0 && !tx->db->ops->is_in_transaction(tx->db)) {
        *err = p->err; /* e.g. a full disk ended it: the piece was not refused */
        r = p->result;
        p->result = 0;
        return r;
    }
    r = p->result < 0 ? sql_run_constant(tx->db, sql_rollback_piece, err) : 0;
    return r < 0 ? r : sql_run_constant(tx->db, sql_release, err);
}

static int writer_begin(struct store_tx *tx, struct aq_error *err)
{
    int r;

    if (tx->lease)
        tx->lease->begun_usec = clock_monotonic_usec();
    r = sql_run_constant(tx->db, tx->db->ops->begin_write, err);
    AQ_FAULT("store.batch.begun");
    return r;
}

static int writer_commit(struct store_tx *tx, struct aq_error *err)
{
    int r = tx->lease ? lease_beat(tx, err) : 0;

    AQ_FAULT("store.commit.before");
    if (r == 0)
        r = sql_run_constant(tx->db, sql_commit, err);
    if (r == 0)
        r = sql_settle(tx->db, err);
    if (r == 0 && tx->lease)
        lease_note_commit(tx->lease, tx->lease->beat + 1);
    AQ_FAULT("store.commit.after");
    return r;
}

/* Each within a savepoint. A connection that was lost before is noticed before
 * anything is run.
 */
static int writer_run_all_in_savepoints(struct store_tx *tx, struct list *pieces,
                                        struct aq_error *err)
{
    int r = writer_begin(tx, err);

    if (r == 0)
        r = sql_settle(tx->db, err);
    for (struct list *link = pieces->next; r == 0 && link != pieces; link = link->next)
        r = writer_run_in_savepoint(tx, LIST_ENTRY(link, struct piece, link), err);
    return r < 0 ? r : writer_commit(tx, err);
}

/* Negative with err->code 0 if a piece was refused: its result says why. A server
 * may say so later: tx->db->was_refused.
 */
static int writer_run_all_plain(struct store_tx *tx, struct list *pieces, writer_more_fn *more,
                                void *data, struct aq_error *err)
{
    struct list *link = pieces;
    int r = writer_begin(tx, err);

    while (r == 0 && (link->next != pieces || (more && more(data, pieces)))) {
        link = link->next;
        r = writer_run_plain(tx, LIST_ENTRY(link, struct piece, link));
    }
    return r < 0 ? r : writer_commit(tx, err);
}

static void writer_roll_back(struct store_tx *tx)
{
    if (tx->db->ops->is_in_transaction(tx->db) && sql_run_constant(tx->db, sql_rollback, NULL) == 0)
        (void)sql_settle(tx->db, NULL);
}

/* Events are hardly ever refused. */
static bool writer_are_all_events(struct list *pieces)
{
    LIST_FOREACH(link, pieces)
        if (!LIST_ENTRY(link, struct piece, link)->batch)
            return false;
    return true;
}

/* Events can be written again. */
static bool writer_can_repeat(struct list *pieces)
{
    LIST_FOREACH(link, pieces)
        if (LIST_ENTRY(link, struct piece, link)->was_run)
            return false;
    return true;
}

static void writer_reset(struct list *pieces)
{
    LIST_FOREACH(link, pieces) {
        struct piece *p = LIST_ENTRY(link, struct piece, link);

        p->result = 0;
        p->err = (struct aq_error){ 0 };
    }
}

/* All together; if one was refused once more, each by itself. */
static int writer_run_all(struct store_tx *tx, struct list *pieces, writer_more_fn *more,
                          void *data, struct aq_error *err)
{
    int r;

    if (!writer_are_all_events(pieces))
        return writer_run_all_in_savepoints(tx, pieces, err);
    tx->db->was_refused = false;
    r = writer_run_all_plain(tx, pieces, more, data, err);
    if (r == 0 || (err->code && !tx->db->was_refused))
        return r;
    writer_roll_back(tx);
    writer_reset(pieces);
    *err = (struct aq_error){ 0 };
    return writer_run_all_in_savepoints(tx, pieces, err);
}

/* ---- a server that is away ---- */

static bool writer_is_away(const struct store_tx *tx)
{
    return tx->lease && tx->lease->is_unsettled && !tx->lease->is_lost;
}

static bool writer_are_all_beats(struct list *pieces)
{
    LIST_FOREACH(link, pieces)
        if (!LIST_ENTRY(link, struct piece, link)->is_beat)
            return false;
    return true;
}

static int writer_try(struct store_tx *tx, struct list *pieces, writer_more_fn *more, void *data,
                      struct aq_error *err)
{
    int r = writer_run_all(tx, pieces, more, data, err);

    if (r == 0)
        return 0;
    writer_roll_back(tx);
    if (tx->lease && (tx->lease->is_unsettled = tx->db->ops->is_lost(tx->db))) {
        tx->lease->is_empty = writer_are_all_beats(pieces);
        lease_note_away(tx->lease, err);
    }
    return r;
}

/* Take the lease up, and try the pieces once more, if there are any: 0, what
 * another try may mend (writer_is_away()), or for good.
 */
static int writer_try_again(struct store_tx *tx, struct list *pieces, struct aq_error *err)
{
    int r = lease_resume(tx, err);

    if (r < 0)
        return r;
    if (r == 1 || !pieces)
        return 0; /* the last commit came through, its answer did not */
    if (!writer_can_repeat(pieces))
        return aq_fail(err, EHOSTDOWN,
                       "the database server was away: nothing was changed, try again");
    writer_reset(pieces);
    *err = (struct aq_error){ 0 };
    return writer_try(tx, pieces, NULL, NULL, err);
}

/* Until it is back, or for so long. */
static int writer_wait(struct store_tx *tx, struct list *pieces, int r, struct aq_error *err)
{
    int64_t end = clock_monotonic_usec() + WRITER_AWAY_USEC, pause = 50 * USEC_PER_MSEC;

    while (writer_is_away(tx) && clock_monotonic_usec() < end) {
        (void)usleep((useconds_t)pause);
        pause = AQ_MIN(2 * pause, USEC_PER_SEC);
        r = writer_try_again(tx, pieces, err);
    }
    return r;
}

/* ---- a full disk ---- */

static bool writer_creates_session(struct list *pieces)
{
    LIST_FOREACH(link, pieces) {
        const struct event_batch *batch = LIST_ENTRY(link, struct piece, link)->batch;

        for (size_t i = 0; batch && i < batch->count; i++)
            if (batch->events[i].kind == EVENT_SESSION_CREATED)
                return true;
    }
    return false;
}

/* With what the reserve gives up, part by part. New sessions do not get any. */
static int writer_try_with_reserve(struct store_tx *tx, struct list *pieces, int r,
                                   struct aq_error *err)
{
    while (r == -ENOSPC && tx->reserve && writer_can_repeat(pieces)
           && !writer_creates_session(pieces) && reserve_release(tx->reserve)) {
        writer_reset(pieces);
        *err = (struct aq_error){ 0 };
        r = writer_try(tx, pieces, NULL, NULL, err);
    }
    return r;
}

static int writer_run_or_wait(struct store_tx *tx, struct list *pieces, writer_more_fn *more,
                              void *data, struct aq_error *err)
{
    int r = 0;

    if (tx->lease && tx->lease->is_lost)
        return aq_fail(err, EOWNERDEAD,
                       "the database was lost before; this manager has stopped writing");
    if (writer_is_away(tx))
        r = writer_wait(tx, NULL, -EHOSTDOWN, err);
    if (r == 0)
        r = writer_try(tx, pieces, more, data, err);
    if (r == -ENOSPC)
        r = writer_try_with_reserve(tx, pieces, r, err);
    if (r < 0)
        r = writer_wait(tx, pieces, r, err);
    if (r < 0 && tx->lease)
        tx->lease->is_given_up = tx->lease->is_unsettled && !tx->lease->is_empty;
    return r;
}

void writer_run(struct store_tx *tx, struct list *pieces, writer_more_fn *more, void *data)
{
    struct aq_error err = { 0 };
    int r = writer_run_or_wait(tx, pieces, more, data, &err);

    if (r == 0)
        return;
    LIST_FOREACH(link, pieces) {
        struct piece *p = LIST_ENTRY(link, struct piece, link);

        if (p->result < 0)
            continue; /* was refused for a reason of its own */
        p->result = r;
        p->err = err;
    }
}
