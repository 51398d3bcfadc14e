/* SPDX-License-Identifier: Apache-2.0 */
/* arrival_experiment.h - how many GPUs can be allocated before nothing more fits
 *
 * The arrival experiment of "Beware of Fragmentation" (USENIX ATC 2023): the
 * task list is grown by uniformly drawn copies until its GPU demand is
 * 'arrival' times what the nodes have (or cut down to it), shuffled, and
 * placed one by one by the scheduler itself. What fits nowhere is dropped,
 * nothing leaves. The figure is the GPU allocated at the end, in per cent.
 */
#ifndef AQ_SIM_ARRIVAL_EXPERIMENT_H
#define AQ_SIM_ARRIVAL_EXPERIMENT_H

#include "sim/policy.h"
#include "sim/trace.h"

struct arrival_experiment {
    const struct trace_nodes *nodes;
    const struct trace_tasks *tasks;
    double arrival;
    const struct selector_ops *policy;
};

#define ARRIVAL_EXPERIMENT_POINTS 131

struct arrival_experiment_result {
    double gpu_allocation_pct;
    size_t arrived, placed;
    /* allocation in per cent when the GPU that arrived was 0, 1, 2 ... per cent of the cluster's */
    double curve[ARRIVAL_EXPERIMENT_POINTS];
    size_t points;
};

int arrival_experiment_run(const struct arrival_experiment *e, uint64_t seed,
                           struct arrival_experiment_result *ret, struct aq_error *err);

#endif
