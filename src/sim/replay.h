/* replay.h - a trace in time: sessions come, wait, run and leave
 *
 * Tasks arrive and last as recorded; the cluster is made as small as 'load'
 * asks for: of the nodes every n-th is kept, so that the GPUs asked for at
 * once, had all started when they came, are 'load' times what there is, on
 * the mean over the busy time (when at least half of the peak is asked for).
 * A load that all nodes together do not come to is what it is.
 * Tasks without times, and those that no kept node could ever hold, are left
 * out and counted. The scheduler knows lifetimes as recorded.
 *
 * A list without users gets sixteen, some with much more work than others.
 */
#ifndef AQ_SIM_REPLAY_H
#define AQ_SIM_REPLAY_H

#include "sim/policy.h"
#include "sim/trace.h"

struct replay {
    const struct trace_nodes *nodes;
    const struct trace_tasks *tasks;
    double load;
    const struct selector_ops *policy;
    const struct sequencer_ops *order;
    bool backfill;
    uint32_t retries_to_skip;
};

#define REPLAY_POINTS 240

struct replay_result {
    size_t arrived, left_out;
    size_t nodes;              /* kept */
    double load;               /* reached */
    double waiting_mean_sec, waiting_p95_sec;
    double idle_gpus;          /* mean of free GPUs while somebody waits */
    double allocation_pct;     /* mean over the busy time */
    double queue_mean;
    double end_sec;
    struct { double at_sec, queue, allocation_pct; } points[REPLAY_POINTS];
    size_t point_count;
};

/* 'seed' decides about users only. */
int replay_run(const struct replay *replay, uint64_t seed, struct replay_result *ret,
               struct aq_error *err);

#endif
