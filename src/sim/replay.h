/* SPDX-License-Identifier: Apache-2.0 */
/* replay.h - a trace in time: sessions come, wait, run and leave
 *
 * workload.h says who comes when, and to how large a cluster. The scheduler knows
 * how long sessions will stay, except those without a time limit.
 */
#ifndef AQ_SIM_REPLAY_H
#define AQ_SIM_REPLAY_H

#include "sim/workload.h"
#include "sim/policy.h"
#include "sim/trace.h"

/* GPUs on each of some nodes that are kept for others during a time, known from the beginning. */
struct replay_booking {
    int64_t nodes, gpus; /* nodes 0 = there is none */
    int64_t starts_sec, ends_sec;
};

struct replay {
    const struct trace_nodes *nodes;
    const struct trace_tasks *tasks;
    struct workload_spec load;
    const struct selector_ops *policy;
    const struct sequencer_ops *order;
    bool backfill;
    uint32_t retries_to_skip;
    uint32_t unlimited_pct; /* percentage of sessions without a time limit, drawn by 'seed' */
    int64_t max_wait_sec;   /* sched_options.max_wait_usec */
    struct replay_booking booking;
};

#define REPLAY_POINTS 240

struct replay_result {
    size_t arrived, left_out;
    size_t nodes; /* kept */
    double load;  /* reached */
    double waiting_mean_sec, waiting_p95_sec, waiting_max_sec;
    double idle_gpus;      /* mean of free GPUs while somebody waits */
    double allocation_pct; /* mean over the busy time */
    double queue_mean;
    double end_sec;
    struct {
        double at_sec, queue, allocation_pct;
    } points[REPLAY_POINTS];
    size_t point_count;
};

/* 'seed' as in workload.h. -EINVAL also for a booking that fits on no nodes. */
int replay_run(const struct replay *replay, uint64_t seed, struct replay_result *ret,
               struct aq_error *err);

#endif
