/* SPDX-License-Identifier: Apache-2.0 */
/* sum.h - sums of counts that other programs report
 *
 * A program that was taken over may report any number, and any number of times. Counts that are not
 * sane are refused, and sums stop at SUM_MAX: twenty of them can be added without an overflow.
 */
#ifndef AQ_BASE_SUM_H
#define AQ_BASE_SUM_H

#include <stdbool.h>
#include <stdint.h>

#define SUM_COUNT_MAX INT64_C(1000000000000000) /* of one report */
#define SUM_MAX (INT64_MAX / 20)

static inline bool sum_is_sane(int64_t count)
{
    return count >= 0 && count <= SUM_COUNT_MAX;
}

/* 'more' is at most a thousand sane counts, either way. */
static inline int64_t sum_add(int64_t sum, int64_t more)
{
    return sum + more < SUM_MAX ? sum + more : SUM_MAX;
}

#endif
