/* SPDX-License-Identifier: Apache-2.0 */
/* rate_limit.h - how many requests a key may make in 15 minutes */
#ifndef AQ_MANAGER_CALL_RATE_LIMIT_H
#define AQ_MANAGER_CALL_RATE_LIMIT_H

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

#endif
