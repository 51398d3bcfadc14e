/* SPDX-License-Identifier: Apache-2.0 */
/* array_range.h - the indices of an array of sessions: ranges with steps, as Slurm writes them
 *
 * "0-15", "0,6,16-32", "0-15:4", and behind them "%8": so many elements run at once. A set is kept
 * as few ranges, sorted and without duplicates, so that 100,000 indices in a row take 24 bytes. The
 * position of an index is how many smaller ones the set has. Pure.
 */
#ifndef AQ_MODEL_ARRAY_RANGE_H
#define AQ_MODEL_ARRAY_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/strbuf.h"

#define ARRAY_INDEX_MAX INT64_C(4000000)
#define ARRAY_SIZE_DEFAULT 100000 /* elements of one array */
#define ARRAY_TEXT_MAX (64 << 10) /* bytes of a request's set */

/* first, first + step, ..., last */
struct array_range {
    int64_t first, last, step;
};

/* Zeroed: empty. Each range ends before the next begins. */
struct array_set {
    struct array_range *ranges;
    size_t count, cap;
};

static inline void array_set_done(struct array_set *set)
{
    free(set->ranges);
    *set = (struct array_set){ 0 };
}

struct array_set array_set_copy(const struct array_set *set);

/* At most 'size_max' indices of 0 to ARRAY_INDEX_MAX, those named twice counted twice. -EINVAL,
 * with the field "array". '*ret' is replaced if it succeeds. With 'ret_limit' a limit may follow,
 * of 1 or more: 0 = there is none.
 */
int array_set_parse(const char *text, int64_t size_max, struct array_set *ret, int64_t *ret_limit,
                    struct aq_error *err) AQ_UNTRUSTED;

/* Append it as it is parsed; nothing for an empty one. */
void array_set_write(const struct array_set *set, struct strbuf *out);

int64_t array_set_size(const struct array_set *set);

bool array_set_has(const struct array_set *set, int64_t index);

/* The smallest and the largest index of a set that has any. */
int64_t array_set_min(const struct array_set *set);
int64_t array_set_max(const struct array_set *set);

/* The difference between neighbours if it is one range of several; else 1. */
int64_t array_set_step(const struct array_set *set);

/* The first index of 'part' that 'of' has not; -1 = it has all. */
int64_t array_set_find_beyond(const struct array_set *of, const struct array_set *part);

/* Walks through a set from a position on: how many smaller indices there are. */
struct array_cursor {
    const struct array_set *set;
    size_t range;
    int64_t next; /* index */
};
struct array_cursor array_set_seek(const struct array_set *set, int64_t position);
/* The next index; -1 = there are no others. */
int64_t array_cursor_next(struct array_cursor *c);

/* Of those indices of 'of' that are in 'wanted': add those from 'position' on that 'to' has not.
 * How many these are; '*ret_found' counts those of any position.
 */
int64_t array_set_add(struct array_set *to, const struct array_set *of,
                      const struct array_set *wanted, int64_t position, int64_t *ret_found);

#endif
