/* SPDX-License-Identifier: Apache-2.0 */
/* node_list.h - agents that the user may see as nodes of Slurm, resource groups as partitions */
#ifndef AQ_CLI_SLURM_NODE_LIST_H
#define AQ_CLI_SLURM_NODE_LIST_H

#include <jansson.h>

#include "cli/cli.h"

struct node {
    const char *id, *partition, *reason; /* borrowed from the rows */
    const char *state;                   /* idle, mix, alloc, drain, down */
    int64_t cpus, free_cpus, mem_bytes, free_mem_bytes, gpus;
};

struct node_list {
    json_t *answer; /* has the texts */
    struct node *nodes;
    size_t count, cap;
    const char *partition; /* of jobs that name none; NULL = unknown */
};

/* By partition and name. *ret is to be released in any case, and zeroed before. */
int node_list_read(struct cli *cli, struct node_list *ret, struct aq_error *err);
void node_list_done(struct node_list *list);

#endif
