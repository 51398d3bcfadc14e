/* SPDX-License-Identifier: Apache-2.0 */
/* workload.h - who comes when, and to how large a cluster
 *
 * As recorded: tasks come and last as the list says, and the cluster is made as
 * small as 'load' asks for: of the nodes every n-th is kept, so that the GPUs
 * asked for at once, had all started when they came, are 'load' times what
 * there is, on the mean over the busy time (when at least half of the peak is
 * asked for). A load that all nodes together do not come to is what it is.
 *
 * Drawn: so many tasks are drawn from the list, again and again, and come at
 * random times, evenly over as long as makes what they ask for 'load' times
 * what all nodes can give in that time. Who would last longer than 'longest'
 * lasts so long: few that stay for months would outweigh all others.
 *
 * Tasks without times, and those that no kept node could ever hold, are left
 * out and counted. A list without users gets sixteen, some with much more work
 * than others.
 */
#ifndef AQ_SIM_WORKLOAD_H
#define AQ_SIM_WORKLOAD_H

#include "sim/trace.h"

#define WORKLOAD_USERS 16

struct arrival {
    int64_t at_sec, duration_sec;
    uint32_t task, owner;
};

struct workload_spec {
    double load;
    uint32_t draw;       /* tasks to draw; 0 = as recorded */
    int64_t longest_sec; /* of those drawn; 0 = as long as they last */
};

struct workload {
    struct trace_nodes nodes; /* kept */
    struct arrival *arrivals; /* in order of time */
    size_t count, left_out;
    double load; /* reached */
};

/* 'seed' decides about users, and about what is drawn. workload_done() what was
 * made. -EINVAL if nothing is left of the trace.
 */
int workload_make(const struct trace_nodes *nodes, const struct trace_tasks *tasks,
                  const struct workload_spec *spec, uint64_t seed, struct workload *ret,
                  struct aq_error *err);
void workload_done(struct workload *load);

#endif
