/* SPDX-License-Identifier: Apache-2.0 */
/* latency.h - histograms of how long requests took, in buckets that proxies and the manager share
 *
 * Counts of several proxies and replicas can be added up, and percentiles estimated from the sums,
 * which percentiles themselves do not allow. The bounds are part of the protocol between proxy and
 * manager: they stay as they are. Pure.
 */
#ifndef AQ_SERVING_LATENCY_H
#define AQ_SERVING_LATENCY_H

#include <stddef.h>
#include <stdint.h>

#define LATENCY_BUCKETS 17 /* the last one has no upper bound */

/* Upper bounds in seconds, growing; a time that equals a bound is in its bucket. */
extern const double latency_bounds[LATENCY_BUCKETS - 1];

/* The bucket of a time; of a negative one the first. */
size_t latency_bucket(int64_t usec);

/* The time in seconds below which the part 'quantile' (0 to 1) of the counted ones lies, as
 * histogram_quantile() of PromQL estimates it: evenly distributed within a bucket, and the last bound
 * for those above it. NAN if nothing was counted.
 */
double latency_quantile(const int64_t counts[LATENCY_BUCKETS], double quantile);

#endif
