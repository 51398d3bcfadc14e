/* SPDX-License-Identifier: Apache-2.0 */
/* lineage.h - which commits of former managers a database has
 *
 * Each manager that takes the lead on a database server records its epoch and the number of the
 * last commit before it. An order carries the epoch of its sender and the number of the commit that
 * it followed (msg_stamp in link/message_greeting.h). If that number is higher than the last commit
 * that the database has of the epoch, the database lacks commits of the sender: its server lagged
 * behind the former one, or a backup was restored.
 */
#ifndef AQ_STORE_LINEAGE_H
#define AQ_STORE_LINEAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define LINEAGE_MAX 256 /* the latest epochs are kept */

struct store_tx;

struct lineage {
    struct lineage_epoch {
        int64_t epoch, beat; /* beat: number of the last commit before it */
    } epochs[LINEAGE_MAX];   /* ascending */
    size_t count;
};

/* Load the setting. Lines that are not two numbers, or not in ascending order, are skipped. */
int lineage_load(struct store_tx *tx, struct lineage *ret, struct aq_error *err);

/* Record that 'epoch' begins after the commit 'beat'. */
int lineage_begin_epoch(struct store_tx *tx, int64_t epoch, int64_t beat, struct aq_error *err);

/* The number of the last commit of 'epoch', or before it, that the database has; INT64_MAX if no
 * later epoch is recorded, so that any number is possible.
 */
int64_t lineage_find_last(const struct lineage *lineage, int64_t epoch);

#endif
