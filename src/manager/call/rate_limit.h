/* SPDX-License-Identifier: Apache-2.0 */
/* rate_limit.h - how many requests a key may make in 15 minutes */
#ifndef AQ_MANAGER_CALL_RATE_LIMIT_H
#define AQ_MANAGER_CALL_RATE_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define RATE_WINDOW_SEC 900

struct rate_limiter;

struct rate_limiter *rate_limiter_new(void);
void rate_limiter_free(struct rate_limiter *rate);
AQ_DEFINE_CLEANUP(struct rate_limiter, rate_limiter_free)

/* Count one request of 'access_key' at 'now_usec' (monotonic clock), of which
 * 'limit' are allowed in a window that begins with the first. Returns how many
 * remain; negative = one too many. Only for keys that were
 * verified, so that unknown clients cannot make the table grow.
 */
int64_t rate_limiter_count(struct rate_limiter *rate, const char *access_key, int64_t limit,
                           int64_t now_usec);

/* ---- copies outside of the process ---- */

struct rate_change {
    const char *access_key;
    int64_t began_usec;  /* monotonic */
    int64_t from, count; /* requests from+1 to 'count' of the window; from 0 = it is a new one */
};
typedef void rate_change_fn(void *data, const struct rate_change *change);

/* Report what was counted since it was reported last, some 'max' requests at most; the rest comes with
 * the next call. Returns how many requests that are.
 */
int64_t rate_limiter_take_changes(struct rate_limiter *rate, int64_t max, rate_change_fn *fn,
                                  void *data);
/* All of it counts as not reported. */
void rate_limiter_forget_reports(struct rate_limiter *rate);

/* A window from a copy. What the key has requested meanwhile is added. */
void rate_limiter_restore(struct rate_limiter *rate, const char *access_key, int64_t began_usec,
                          int64_t count);

#endif
