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

/* Leaves no trace of a piece that failed; negative if the transaction itself
 * is lost.
 */
static int run_piece(struct store_tx *tx, struct piece *p, struct aq_error *err)
{
    int r = run_constant(tx->db, "SAVEPOINT piece", err);

    if (r < 0)
        return r;
    p->result = p->batch ? write_batch(tx, p->batch, &p->err) : p->fn(tx, p->data, &p->err);
    AQ_FAULT("store.piece.written");
    if (p->result < 0 && !tx->db->ops->is_in_transaction(tx->db)) {
        *err = p->err; /* e.g. a full disk ended it */
        return p->result;
    }
    if (p->result < 0)
        r = run_constant(tx->db, "ROLLBACK TO piece", err);
    return r < 0 ? r : run_constant(tx->db, "RELEASE piece", err);
}

static int run_pieces(struct store_tx *tx, struct list *pieces, struct aq_error *err)
{
    int r = run_constant(tx->db, "BEGIN IMMEDIATE", err);

    if (r < 0)
        return r;
    AQ_FAULT("store.batch.begun");
    LIST_FOREACH(link, pieces) {
        r = run_piece(tx, LIST_ENTRY(link, struct piece, link), err);
        if (r < 0)
            return r;
    }
    AQ_FAULT("store.commit.before");
    r = run_constant(tx->db, "COMMIT", err);
    AQ_FAULT("store.commit.after");
    return r;
}

void writer_run(struct store_tx *tx, struct list *pieces)
{
    struct aq_error err = { 0 };
    int r = run_pieces(tx, pieces, &err);

    if (r == 0)
        return;
    if (tx->db->ops->is_in_transaction(tx->db))
        (void)run_constant(tx->db, "ROLLBACK", NULL);
    LIST_FOREACH(link, pieces) {
        struct piece *p = LIST_ENTRY(link, struct piece, link);

        if (p->result < 0)
            continue; /* was refused for a reason of its own */
        p->result = r;
        p->err = err;
    }
}
