/* SPDX-License-Identifier: Apache-2.0 */
/* replica_metrics.h - messages of agents about metrics of replicas, for what core_set_metrics_ops() set */
#ifndef AQ_MANAGER_CORE_NODES_REPLICA_METRICS_H
#define AQ_MANAGER_CORE_NODES_REPLICA_METRICS_H

struct core;
struct msg_metrics_values;

/* An agent has read a page; values of a kernel that is not one of its replicas are dropped. */
void replica_metrics_take(struct core *core, const char *agent_id,
                          const struct msg_metrics_values *values);
/* It has connected, and its inventory is known. */
void replica_metrics_greet(struct core *core, const char *agent_id);

#endif
