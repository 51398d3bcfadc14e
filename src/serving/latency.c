/* SPDX-License-Identifier: Apache-2.0 */
/* latency.c - see latency.h */
#include "serving/latency.h"

#include <math.h>

#include "base/clock.h"

const double latency_bounds[LATENCY_BUCKETS - 1] = {
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600
};

size_t latency_bucket(int64_t usec)
{
    double seconds = (double)usec / USEC_PER_SEC;
    size_t i = 0;

    while (i < LATENCY_BUCKETS - 1 && seconds > latency_bounds[i])
        i++;
    return i;
}

double latency_quantile(const int64_t counts[LATENCY_BUCKETS], double quantile)
{
    double total = 0, below = 0, rank;

    for (size_t i = 0; i < LATENCY_BUCKETS; i++)
        total += (double)counts[i];
    if (!(total > 0))
        return NAN;
    rank = quantile * total;
    for (size_t i = 0; i < LATENCY_BUCKETS - 1; i++) {
        double count = (double)counts[i], low = i ? latency_bounds[i - 1] : 0;

        if (count > 0 && below + count >= rank)
            return low + (latency_bounds[i] - low) * (rank - below) / count;
        below += count;
    }
    return latency_bounds[LATENCY_BUCKETS - 2];
}
