/* SPDX-License-Identifier: Apache-2.0 */
/* Run several pieces of work as one transaction. */
#include "store/writer.h"

#include <errno.h>

#include "base/fault.h"

/* What begins, ends and takes back. Made at the start: taking back must not want memory. */
static const char sql_begin[] = "BEGIN IMMEDIATE", sql_commit[] = "COMMIT",
                  sql_rollback[] = "ROLLBACK", sql_savepoint[] = "SAVEPOINT piece",
                  sql_rollback_piece[] = "ROLLBACK TO piece", sql_release[] = "RELEASE piece";

int writer_prepare(struct store_tx *tx, struct aq_error *err)
{
    const char *const all[] = { sql_begin,     sql_commit,         sql_rollback,
                                sql_savepoint, sql_rollback_piece, sql_release };
    struct sql_stmt *q;
    int r = 0;

    for (size_t i = 0; i < AQ_COUNT(all) && r == 0; i++)
        r = sql_prepare(tx->db, all[i], &q, err);
    return r;
}

static int writer_run_constant(struct sql *db, const char *text, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(db, text, &q, err);

    return r < 0 ? r : sql_run(q, err);
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
    int r = writer_run_constant(tx->db, sql_savepoint, err);

    if (r < 0)
        return r;
    p->result = p->batch ? writer_write_batch(tx, p->batch, &p->err) : p->fn(tx, p->data, &p->err);
    AQ_FAULT("store.piece.written-apart");
    if (p->result < 0 && !tx->db->ops->is_in_transaction(tx->db)) {
        *err = p->err; /* e.g. a full disk ended it */
        return p->result;
    }
    if (p->result < 0)
        r = writer_run_constant(tx->db, sql_rollback_piece, err);
    return r < 0 ? r : writer_run_constant(tx->db, sql_release, err);
}

static int writer_begin(struct store_tx *tx, struct aq_error *err)
{
    int r = writer_run_constant(tx->db, sql_begin, err);

    AQ_FAULT("store.batch.begun");
    return r;
}

static int writer_commit(struct store_tx *tx, struct aq_error *err)
{
    int r;

    AQ_FAULT("store.commit.before");
    r = writer_run_constant(tx->db, sql_commit, err);
    AQ_FAULT("store.commit.after");
    return r;
}

/* Each within a savepoint. */
static int writer_run_all_in_savepoints(struct store_tx *tx, struct list *pieces,
                                        struct aq_error *err)
{
    int r = writer_begin(tx, err);

    for (struct list *link = pieces->next; r == 0 && link != pieces; link = link->next)
        r = writer_run_in_savepoint(tx, LIST_ENTRY(link, struct piece, link), err);
    return r < 0 ? r : writer_commit(tx, err);
}

/* Negative with err->code 0 if a piece was refused: its result says why. */
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
    if (tx->db->ops->is_in_transaction(tx->db))
        (void)writer_run_constant(tx->db, sql_rollback, NULL);
}

/* Events can be written again, and are hardly ever refused. */
static bool writer_are_all_events(struct list *pieces)
{
    LIST_FOREACH(link, pieces)
        if (!LIST_ENTRY(link, struct piece, link)->batch)
            return false;
    return true;
}

/* All together; if one was refused once more, each by itself. */
static int writer_run_all(struct store_tx *tx, struct list *pieces, writer_more_fn *more,
                          void *data, struct aq_error *err)
{
    int r;

    if (!writer_are_all_events(pieces))
        return writer_run_all_in_savepoints(tx, pieces, err);
    r = writer_run_all_plain(tx, pieces, more, data, err);
    if (r == 0 || err->code)
        return r;
    writer_roll_back(tx);
    LIST_FOREACH(link, pieces) {
        struct piece *p = LIST_ENTRY(link, struct piece, link);

        p->result = 0;
        p->err = (struct aq_error){ 0 };
    }
    return writer_run_all_in_savepoints(tx, pieces, err);
}

void writer_run(struct store_tx *tx, struct list *pieces, writer_more_fn *more, void *data)
{
    struct aq_error err = { 0 };
    int r = writer_run_all(tx, pieces, more, data, &err);

    if (r == 0)
        return;
    writer_roll_back(tx);
    LIST_FOREACH(link, pieces) {
        struct piece *p = LIST_ENTRY(link, struct piece, link);

        if (p->result < 0)
            continue; /* was refused for a reason of its own */
        p->result = r;
        p->err = err;
    }
}
