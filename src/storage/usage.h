/* SPDX-License-Identifier: Apache-2.0 */
/* usage.h - what folders hold, counted by us, and remembered for a while
 *
 * A folder is counted again after USAGE_FRESH_USEC; what is written here meanwhile is added. From
 * any thread; counting blocks for the disk.
 */
#ifndef AQ_STORAGE_USAGE_H
#define AQ_STORAGE_USAGE_H

#include "base/clock.h"
#include "base/uuid.h"
#include "storage/tree.h"

#define USAGE_FRESH_USEC (60 * USEC_PER_SEC)

struct usage_table;

struct usage_table *usage_table_new(void); /* NULL = no memory */
void usage_table_free(struct usage_table *table);

/* Of the folder with this directory, not older than that. Errors as of tree_count(). */
int usage_get(struct usage_table *table, const struct uuid *folder, int root, int64_t age_usec,
              struct tree_usage *ret, struct aq_error *err);

/* So many bytes have come. */
void usage_add(struct usage_table *table, const struct uuid *folder, uint64_t bytes);

/* -EDQUOT if 'more' bytes do not fit into a quota; 0 = none. */
int usage_check(struct usage_table *table, const struct uuid *folder, int root, uint64_t quota,
                uint64_t more, struct aq_error *err);

#endif
