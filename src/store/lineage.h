/* SPDX-License-Identifier: Apache-2.0 */
/* lineage.h - which commits of former managers a database has
 *
 * Each manager that takes a database on a server notes its epoch and the number of the last commit
 * before it. An order carries the epoch of its sender and the number of the commit that it followed
 * (msg_stamp in link/message.h). An order whose commit is later than the last one that its epoch has
 * here was sent by a manager whose commits this database lacks: its server lagged, or it was put back.
 */
#ifndef AQ_STORE_LINEAGE_H
#define AQ_STORE_LINEAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define LINEAGE_MAX 256 /* epochs that are kept, the latest */

struct store_tx;

struct lineage {
    struct lineage_epoch {
        int64_t epoch, beat; /* beat: number of the last commit before it */
    } epochs[LINEAGE_MAX];   /* ascending */
    size_t count;
};

/* Lines that are not two numbers, or not ascending, are skipped. */
int lineage_load(struct store_tx *tx, struct lineage *ret, struct aq_error *err);

/* Note that 'epoch' begins after the commit 'beat'. */
int lineage_begin_epoch(struct store_tx *tx, int64_t epoch, int64_t beat, struct aq_error *err);

/* Number of the last commit that the database has of 'epoch' or from before it; INT64_MAX = of any
 * number: no later epoch is known.
 */
int64_t lineage_find_last(const struct lineage *lineage, int64_t epoch);

#endif
