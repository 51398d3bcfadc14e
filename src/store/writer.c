#include "store/writer.h"

#include <errno.h>

#include "base/fault.h"

static int run_constant(struct sql *db, const char *text, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(db, text, &q, err);

    return r < 0 ? r : sql_run(q, err);
}

static int write_batch(struct store_tx *tx, struct event_batch *batch, struct aq_error *err)
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
static int run_plain(struct store_tx *tx, struct piece *p)
{
    p->result = write_batch(tx, p->batch, &p->err);
    AQ_FAULT("store.piece.written");
    return p->result;
}

/* Leaves no trace of a piece that failed; negative if the transaction itself
 * is lost.
 */
static int run_apart(struct store_tx *tx, struct piece *p, struct aq_error *err)
{
    int r = run_constant(tx->db, "SAVEPOINT piece", err);

    if (r < 0)
        return r;
    p->result = p->batch ? write_batch(tx, p->batch, &p->err) : p->fn(tx, p->data, &p->err);
    AQ_FAULT("store.piece.written-apart");
    if (p->result < 0 && !tx->db->ops->is_in_transaction(tx->db)) {
        *err = p->err; /* e.g. a full disk ended it */
        return p->result;
    }
    if (p->result < 0)
        r = run_constant(tx->db, "ROLLBACK TO piece", err);
    return r < 0 ? r : run_constant(tx->db, "RELEASE piece", err);
}

static int begin(struct store_tx *tx, struct aq_error *err)
{
    int r = run_constant(tx->db, "BEGIN IMMEDIATE", err);

    AQ_FAULT("store.batch.begun");
    return r;
}

static int commit(struct store_tx *tx, struct aq_error *err)
{
    int r;

    AQ_FAULT("store.commit.before");
    r = run_constant(tx->db, "COMMIT", err);
    AQ_FAULT("store.commit.after");
    return r;
}

/* Each within a savepoint. */
static int run_all_apart(struct store_tx *tx, struct list *pieces, struct aq_error *err)
{
    int r = begin(tx, err);

    for (struct list *link = pieces->next; r == 0 && link != pieces; link = link->next)
        r = run_apart(tx, LIST_ENTRY(link, struct piece, link), err);
    return r < 0 ? r : commit(tx, err);
}

/* Negative with err->code 0 if a piece was refused: its result says why. */
static int run_all_plain(struct store_tx *tx, struct list *pieces, writer_more_fn *more, void *data,
                         struct aq_error *err)
{
    struct list *link = pieces;
    int r = begin(tx, err);

    while (r == 0 && (link->next != pieces || (more && more(data, pieces)))) {
        link = link->next;
        r = run_plain(tx, LIST_ENTRY(link, struct piece, link));
    }
    return r < 0 ? r : commit(tx, err);
}

static void roll_back(struct store_tx *tx)
{
    if (tx->db->ops->is_in_transaction(tx->db))
        (void)run_constant(tx->db, "ROLLBACK", NULL);
}

/* Events can be written again, and are hardly ever refused. */
static bool are_all_events(struct list *pieces)
{
    LIST_FOREACH(link, pieces)
        if (!LIST_ENTRY(link, struct piece, link)->batch)
            return false;
    return true;
}

/* All together; if one was refused once more, each by itself. */
static int run_all(struct store_tx *tx, struct list *pieces, writer_more_fn *more, void *data,
                   struct aq_error *err)
{
    int r;

    if (!are_all_events(pieces))
        return run_all_apart(tx, pieces, err);
    r = run_all_plain(tx, pieces, more, data, err);
    if (r == 0 || err->code)
        return r;
    roll_back(tx);
    LIST_FOREACH(link, pieces) {
        struct piece *p = LIST_ENTRY(link, struct piece, link);

        p->result = 0;
        p->err = (struct aq_error){ 0 };
    }
    return run_all_apart(tx, pieces, err);
}

void writer_run(struct store_tx *tx, struct list *pieces, writer_more_fn *more, void *data)
{
    struct aq_error err = { 0 };
    int r = run_all(tx, pieces, more, data, &err);

    if (r == 0)
        return;
    roll_back(tx);
    LIST_FOREACH(link, pieces) {
        struct piece *p = LIST_ENTRY(link, struct piece, link);

        if (p->result < 0)
            continue; /* was refused for a reason of its own */
        p->result = r;
        p->err = err;
    }
}
