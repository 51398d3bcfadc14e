/* SPDX-License-Identifier: Apache-2.0 */
/* writer.h - inside the store: several pieces of work as one transaction */
#ifndef AQ_STORE_WRITER_H
#define AQ_STORE_WRITER_H

#include "base/list.h"
#include "store/store.h"
#include "store/transaction.h"

/* A batch to commit, or a function to run. */
struct piece {
    struct list link;
    struct event_batch *batch; /* NULL = run 'fn' */
    store_commit_fn committed;
    store_tx_fn fn;
    store_done_fn done;
    void *data;
    bool is_beat; /* of store_beat(): nobody waits for it */
    bool was_run; /* 'fn', which nobody may run twice */
    int result;
    struct aq_error err;
};

/* Append pieces that have come meanwhile, all of them batches, to the list of a
 * transaction under way; false if there are none and it is to be committed.
 */
typedef bool writer_more_fn(void *data, struct list *pieces);

/* Before the first run. */
int writer_prepare(struct store_tx *tx, struct aq_error *err);

/* Run the pieces of the list and commit; one that is refused leaves no trace
 * and the others are committed. Afterwards each has its result; 0 means
 * durable. 'more' (may be NULL) is asked when all are written, unless there is
 * one that is no batch.
 */
void writer_run(struct store_tx *tx, struct list *pieces, writer_more_fn *more, void *data);

#endif
