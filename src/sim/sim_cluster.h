/* SPDX-License-Identifier: Apache-2.0 */
/* sim_cluster.h - a scheduler with the nodes of a trace, and its tasks as sessions */
#ifndef AQ_SIM_SIM_CLUSTER_H
#define AQ_SIM_SIM_CLUSTER_H

#include "sched/scheduler.h"
#include "sim/policy.h"
#include "sim/trace.h"

struct sim_cluster {
    const struct trace_nodes *nodes;
    const struct trace_tasks *tasks;
    struct slot_types *types;
    struct sched *sched;
    struct policy policy;
    struct slots *requests;       /* per task */
    const struct slots **kernels; /* their addresses */
    int64_t gpu_milli;            /* of all nodes */
};

/* 'options' without its selector, which is made of 'ops'. On failure nothing
 * is left. -EINVAL for a trace that cannot be: a node twice.
 */
int sim_cluster_open(struct sim_cluster *s, const struct trace_nodes *nodes,
                     const struct trace_tasks *tasks, const struct selector_ops *ops,
                     const struct sched_options *options, uint64_t seed, struct aq_error *err);
void sim_cluster_close(struct sim_cluster *s);

/* The session that a task is; valid while the cluster is. */
struct sched_session sim_cluster_session(const struct sim_cluster *s, size_t task, int64_t row);

#endif
