/* SPDX-License-Identifier: Apache-2.0 */
/* store_pipeline.h - a bare program beside the store, on a PostgreSQL server
 *
 * It has no types, no threads and no queue: it sends the statements that the store sends, in libpq's
 * pipeline mode, one transaction after the other, each with the beat of the lease.
 */
#ifndef AQ_BENCH_STORE_PIPELINE_H
#define AQ_BENCH_STORE_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>

/* What both write. */
#define PIPELINE_ACCESS_KEY "AKIAIOSFODNN7EXAMPLE"
#define PIPELINE_SPEC "{\"image\":\"\",\"command\":\"true\"}"
#define PIPELINE_SLOTS "{\"cpu\":1000000,\"mem\":1073741824}"
#define PIPELINE_AGENT "i-bench"
#define PIPELINE_ALLOC "{\"cpu\":[0],\"mem\":1073741824}"
#define PIPELINE_CHOICES "{\"candidates\":1,\"chosen\":[\"i-bench\"]}"

/* A session of one kernel is created, or goes from PENDING to SCHEDULED with it. */
enum store_work { STORE_CREATES, STORE_PLACES, STORE_WORKS };

struct pipeline;

struct pipeline_owner {
    const char *user, *project; /* UUIDs; borrowed until the end */
};

/* For 'count' sessions; NULL if it does not work, which standard error says. */
struct pipeline *pipeline_open(const char *uri, const struct pipeline_owner *owner, size_t count);
void pipeline_close(struct pipeline *p);

/* Do it to 'count' sessions, 'together' of them in a commit; sessions per second, or -1. */
double pipeline_measure(struct pipeline *p, enum store_work work, size_t count, size_t together);

/* After both works of both programs: whether their rows differ in nothing but ids, names and
 * times. No measure follows.
 */
bool pipeline_wrote_same(struct pipeline *p);

#endif
