/* SPDX-License-Identifier: Apache-2.0 */
/* topology.c - the tree that the topology labels of agents form */
#include "sched/topology.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "model/agent.h"
#include "sched/cluster_internal.h"

void topology_forget(struct cluster *c)
{
    if (!c->topology)
        return;
    free(c->topology->order);
    free(c->topology->subtrees);
    free(AQ_TAKE(c->topology));
}

/* A part ends before any that is longer: "a/b" before "a-1". */
static int topology_rank_char(char ch)
{
    return ch == '/' ? 1 : (unsigned char)ch;
}

static int topology_compare_nodes(const void *a, const void *b, void *data)
{
    const struct cluster *c = data;
    const struct cluster_node *first = &c->nodes[*(const uint32_t *)a];
    const struct cluster_node *second = &c->nodes[*(const uint32_t *)b];
    const char *x = first->topology ? first->topology : "";
    const char *y = second->topology ? second->topology : "";

    while (*x && *x == *y) {
        x++;
        y++;
    }
    if (*x != *y)
        return topology_rank_char(*x) - topology_rank_char(*y);
    return strcmp(first->id, second->id);
}

/* Length of the first 'depth' parts of the node's label; SIZE_MAX if it has fewer. */
static size_t topology_prefix(const struct cluster *c, uint32_t node, uint32_t depth)
{
    const char *label = c->nodes[node].topology ? c->nodes[node].topology : "";
    size_t at = 0;

    for (uint32_t part = 0; part < depth; part++) {
        if (!label[at])
            return SIZE_MAX;
        at += part > 0;
        at += strcspn(label + at, "/");
    }
    return at;
}

static bool topology_is_known(const struct topology *t, const struct subtree *of)
{
    for (size_t i = 0; i < t->subtree_count; i++)
        if (t->subtrees[i].first == of->first && t->subtrees[i].count == of->count)
            return true;
    return false;
}

/* The subtree of 'depth' that begins at 'first'; without agents if the first is not that deep. */
static struct subtree topology_find_subtree(const struct cluster *c, const struct topology *t,
                                            uint32_t depth, uint32_t first)
{
    struct subtree subtree = { .depth = depth, .first = first };
    size_t length = topology_prefix(c, t->order[first], depth);
    const char *label = c->nodes[t->order[first]].topology;

    while (length != SIZE_MAX && first + subtree.count < c->node_count) {
        uint32_t node = t->order[first + subtree.count];

        if (topology_prefix(c, node, depth) != length
            || (length && memcmp(c->nodes[node].topology, label, length) != 0))
            break;
        subtree.count++;
    }
    return subtree;
}

static void topology_add_depth(const struct cluster *c, struct topology *t, uint32_t depth)
{
    for (uint32_t at = 0; at < c->node_count;) {
        struct subtree subtree = topology_find_subtree(c, t, depth, at);

        at += AQ_MAX(subtree.count, 1u);
        if ((subtree.count < 2 && depth > 0) || topology_is_known(t, &subtree))
            continue;
        vec_grow(&t->subtrees, &t->subtree_cap, t->subtree_count + 1, sizeof(*t->subtrees));
        t->subtrees[t->subtree_count++] = subtree;
    }
}

const struct topology *topology_of(struct cluster *c)
{
    struct topology *t;

    if (c->topology)
        return c->topology;
    c->topology = t = aq_alloc(sizeof(*t));
    t->order = aq_alloc_array(c->node_count + 1, sizeof(*t->order));
    for (uint32_t n = 0; n < c->node_count; n++)
        t->order[n] = n;
    qsort_r(t->order, c->node_count, sizeof(*t->order), topology_compare_nodes, c);
    for (uint32_t depth = TOPOLOGY_PARTS_MAX + 1; depth-- > 0;)
        topology_add_depth(c, t, depth);
    return t;
}
