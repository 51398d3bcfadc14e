/* SPDX-License-Identifier: Apache-2.0 */
/* store_pipeline.h - a bare program beside the store, on a PostgreSQL server */
#ifndef AQ_BENCH_STORE_PIPELINE_H
#define AQ_BENCH_STORE_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>

struct pipeline_owner {
    const char *user, *project; /* UUIDs */
};

/* Write what the store writes for 'count' sessions, 'together' of them in a
 * commit, the beat of the lease included; sessions per second, or -1.
 */
double pipeline_measure(const char *uri, const struct pipeline_owner *owner, size_t count,
                        size_t together);

#endif
