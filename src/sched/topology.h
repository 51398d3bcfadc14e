/* SPDX-License-Identifier: Apache-2.0 */
/* topology.h - the tree that the topology labels of agents form
 *
 * A label is a path such as "zone-a/rack-3/switch-1". Agents whose labels begin with the same parts
 * form a subtree, whose depth is the number of these parts; the root, at depth 0, has all agents,
 * those without a label included.
 */
#ifndef AQ_SCHED_TOPOLOGY_H
#define AQ_SCHED_TOPOLOGY_H

#include "sched/cluster.h"

struct subtree {
    uint32_t depth;
    uint32_t first, count; /* in topology.order */
};

struct topology {
    uint32_t *order;          /* nodes, by label and then by id */
    struct subtree *subtrees; /* the deepest first, those of one depth by label, the root last.
                                 Left out: those of a single agent, and those with the same
                                 agents as a deeper one. */
    size_t subtree_count, subtree_cap;
};

/* Borrowed; until an agent is added or gets another label. */
const struct topology *topology_of(struct cluster *c);

#endif
