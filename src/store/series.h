/* SPDX-License-Identifier: Apache-2.0 */
/* series.h - coarse series of what kernels and agents used
 *
 * For functions given to store_write() and store_read().
 */
#ifndef AQ_STORE_SERIES_H
#define AQ_STORE_SERIES_H

#include "base/arena.h"
#include "store/store.h"

#define SERIES_OWNER_MAX 80 /* a kernel's id, or "agent:ID" */

struct series_row {
    char owner[SERIES_OWNER_MAX];
    int64_t at_usec, until_usec;
    const char *data; /* of measured_write_row() */
};

/* One that is there already stays. */
int series_add(struct store_tx *tx, const struct series_row *row, struct aq_error *err);

/* The rows of an owner that began within [from, to), oldest first, 'max' at
 * most; a negative result of 'take' stops. A row is borrowed for its call.
 */
int series_read(struct store_tx *tx, const char *owner, int64_t from_usec, int64_t to_usec, int max,
                int (*take)(void *data, const struct series_row *row), void *data,
                struct aq_error *err);

/* All rows of kernels that have not ended. */
int series_read_live(struct store_tx *tx, int (*take)(void *data, const struct series_row *row),
                     void *data, struct aq_error *err);

#endif
