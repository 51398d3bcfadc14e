/* SPDX-License-Identifier: Apache-2.0 */
/* select_node.h - selectors: which of the agents where it fits a session gets
 *
 * A selector either compares candidates or scores states; ties go to the
 * first agent by id. A score also says from which device a single part is
 * taken.
 */
#ifndef AQ_SCHED_SELECT_NODE_H
#define AQ_SCHED_SELECT_NODE_H

#include "sched/cluster.h"

struct node_list {
    const uint32_t *nodes;
    uint32_t count;
};

struct selector_ops {
    const char *name;
    /* It puts kernels of one session on many agents rather than on few. */
    bool spreads;
    /* For selectors that learn or count: their data. */
    void *(*open)(void);
    void (*close)(void *data);
    /* Is 'a' better than 'b'? < 0: a. */
    int (*compare)(const struct sched_candidate *a, const struct sched_candidate *b);
    /* Instead: how good; the most wins. 's' has room. */
    double (*score)(void *data, const struct cluster *c, const struct slot_request *req,
                    const struct node_state *s, int32_t *ret_device);
    /* Cheaper: a score that is not less than the real one. */
    double (*upper_bound)(void *data, const struct cluster *c, const struct slot_request *req,
                          const struct node_state *s);
    /* The last word, beside or instead of these: 'node' is the best so far. One of
     * 'allowed', where it fits and of which it is one; NULL: of all where it fits.
     */
    uint32_t (*pick)(void *data, struct cluster *c, struct slot_request *req,
                     const struct selector *self, const struct node_list *allowed, uint32_t node,
                     int32_t *device);
    /* A session that asks for this was added. May forget fits. */
    void (*on_arrival)(void *data, struct cluster *c, const struct slot_request *req);
    /* A session of this request went to that agent. */
    void (*on_placement)(void *data, const struct cluster *c, uint32_t node);
    /* A session that held something has ended. */
    void (*on_departure)(void *data);
};

/* Placement constraints of a session: agents that it must not (strict), or rather not, be on.
 * Borrowed pointers.
 */
struct placement_constraints {
    const uint32_t *designated; /* nodes */
    uint32_t designated_count;
    bool designated_strict;
    uint32_t failed;                            /* node, or CLUSTER_NONE */
    const uint32_t *group_nodes, *group_counts; /* agents with members of its group, by node */
    uint32_t group_node_count;
    enum sched_grouping grouping;
    bool grouping_strict;
    bool is_excluding;
    uint32_t excluded; /* is_excluding: the one node that it may not be */
    bool is_single;
    uint32_t single;       /* is_single: the only node that it may be */
    const uint32_t *ranks; /* per node: the least is preferred among those that are equal by all
                              else, PLACEMENT_EXCLUDED does not count; NULL = all are equal */
};

#define PLACEMENT_EXCLUDED UINT32_MAX
#define PLACEMENT_RANKS (INT64_C(1) << 28) /* other ranks are less */

/* The agent for 'req', CLUSTER_NONE if it fits nowhere, and the device (see
 * struct fit). 'constraints' may be NULL.
 */
uint32_t select_node(struct cluster *c, struct slot_request *req, const struct selector *selector,
                     const struct placement_constraints *constraints, int32_t *ret_device);

/* Whether 'constraints' allows the node at all, and how it ranks: less is better. */
bool placement_allows(const struct placement_constraints *constraints, uint32_t node,
                      int64_t *ret_rank);

/* < 0: agent in state 'a' is the better choice than one in 'b'. */
int select_compare(const struct cluster *c, struct slot_request *req,
                   const struct selector *selector, uint32_t a, uint32_t b);

#endif
