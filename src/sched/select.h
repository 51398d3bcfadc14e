/* select.h - which of the agents that have room
 *
 * A selector either compares candidates or scores states; ties go to the
 * first agent by id. A score also says from which device a single part is
 * taken.
 */
#ifndef AQ_SCHED_SELECT_H
#define AQ_SCHED_SELECT_H

#include "sched/cluster.h"

struct node_list {
    const uint32_t *nodes;
    uint32_t count;
};

struct selector_ops {
    const char *name;
    /* For selectors that learn or count: their data. 0 or -ENOMEM. */
    int (*open)(void **ret);
    void (*close)(void *data);
    /* Is 'a' better than 'b'? < 0: a. */
    int (*compare)(const struct sched_candidate *a, const struct sched_candidate *b);
    /* Instead: how good; the most wins. 's' has room. */
    double (*score)(void *data, const struct cluster *c, const struct request *req,
                    const struct node_state *s, int32_t *ret_device);
    /* Cheaper: a score that is not less than the real one. */
    double (*bound)(void *data, const struct cluster *c, const struct request *req,
                    const struct node_state *s);
    /* The last word, beside or instead of these: 'node' is the best so far. One of
     * 'allowed', which all have room and of which it is one; NULL: of all that have room.
     */
    uint32_t (*pick)(void *data, struct cluster *c, struct request *req,
                     const struct selector *self, const struct node_list *allowed, uint32_t node,
                     int32_t *device);
    /* A session that asks for this has come. May forget fits. */
    void (*arrive)(void *data, struct cluster *c, const struct request *req);
    /* A session of this request went to that agent. */
    void (*placed)(void *data, const struct cluster *c, uint32_t node);
    /* A session that held something is gone. */
    void (*left)(void *data);
};

/* Which agents a session would rather not, or must not, be on. */
struct wish {
    const uint32_t *designated; /* nodes */
    uint32_t designated_count;
    bool designated_strict;
    uint32_t failed;           /* node, or CLUSTER_NONE */
    const uint32_t *group_nodes, *group_counts; /* agents with members of its group, by node */
    uint32_t group_node_count;
    enum sched_grouping grouping;
    bool grouping_strict;
    bool is_excluding;
    uint32_t excluded;         /* is_excluding: the one node that it may not be */
};

/* The agent for 'req', CLUSTER_NONE if none has room, and the device (see
 * struct fit). 'wish' may be NULL. 0 or -ENOMEM.
 */
int select_node(struct cluster *c, struct request *req, const struct selector *selector,
                const struct wish *wish, uint32_t *ret_node, int32_t *ret_device);

/* Whether 'wish' allows the node at all, and how it ranks: less is better. */
bool wish_allows(const struct wish *wish, uint32_t node, int64_t *ret_rank);

/* < 0: agent in state 'a' is the better choice than one in 'b'. */
int select_compare(const struct cluster *c, struct request *req, const struct selector *selector,
                   uint32_t a, uint32_t b);

#endif
