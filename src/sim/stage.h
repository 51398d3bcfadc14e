/* stage.h - a scheduler with the nodes of a trace, and its tasks as sessions */
#ifndef AQ_SIM_STAGE_H
#define AQ_SIM_STAGE_H

#include "sched/state.h"
#include "sim/policy.h"
#include "sim/trace.h"

struct stage {
    const struct trace_nodes *nodes;
    const struct trace_tasks *tasks;
    struct slot_types *types;
    struct sched *sched;
    struct policy policy;
    struct slots *requests;    /* per task */
    const struct slots **kernels; /* their addresses */
    int64_t gpu_milli;         /* of all nodes */
};

/* 'options' without its selector, which is made of 'ops'. On failure nothing
 * is left. -EINVAL for a trace that cannot be: a node twice.
 */
int stage_open(struct stage *s, const struct trace_nodes *nodes, const struct trace_tasks *tasks,
               const struct selector_ops *ops, const struct sched_options *options, uint64_t seed,
               struct aq_error *err);
void stage_close(struct stage *s);

/* The session that a task is; valid while the stage is. */
struct sched_session stage_session(const struct stage *s, size_t task, int64_t row);

#endif
