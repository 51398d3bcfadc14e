/* rate.h - how many requests a key may make in 15 minutes */
#ifndef AQ_MANAGER_API_RATE_H
#define AQ_MANAGER_API_RATE_H

#include <stdint.h>

#include "base/cleanup.h"

#define RATE_WINDOW_SEC 900

struct rate;

struct rate *rate_new(void); /* NULL = no memory */
void rate_free(struct rate *rate);
AQ_DEFINE_CLEANUP(struct rate, rate_free)

/* Count one request of 'access_key' at 'now_usec' (monotonic clock), of which
 * 'limit' are allowed in a window that begins with the first. Returns how many
 * remain; negative = one too many (or no memory). Only for keys that were
 * verified, so that strangers cannot make the table grow.
 */
int64_t rate_count(struct rate *rate, const char *access_key, int64_t limit, int64_t now_usec);

#endif
