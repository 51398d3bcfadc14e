/* SPDX-License-Identifier: Apache-2.0 */
/* node_stat.h - what the whole machine uses: cores, memory, disks, network
 *
 * Files and fields: proc(5), proc_meminfo(5), proc_pid_net(5).
 */
#ifndef AQ_AGENT_STAT_NODE_STAT_H
#define AQ_AGENT_STAT_NODE_STAT_H

#include "agent/stat/sample.h"

struct node_stat;

/* 'root' is put before /proc ("" = none; tests have a tree of their own). */
struct node_stat *node_stat_new(const char *root);
void node_stat_free(struct node_stat *node);

/* Add the node's values, then those of its cores, its memory ("root"), disks
 * and network ("node").
 */
void node_stat_sample(struct node_stat *node, struct sample *sample);

#endif
