/* SPDX-License-Identifier: Apache-2.0 */
/* reach.c - which agents reach each other over the network between nodes */
#include "sched/reach.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "sched/cluster_internal.h"

void reach_done(struct cluster *c)
{
    for (size_t i = 0; i < c->cut_cap; i++)
        free(c->cuts[i].nodes);
    free(c->cuts);
}

const struct cut_list *reach_cuts(const struct cluster *c, uint32_t node)
{
    static const struct cut_list none;

    return node < c->cut_cap ? &c->cuts[node] : &none;
}

/* Where 'node' is in the list, or would be. */
static size_t reach_find(const struct cut_list *list, uint32_t node)
{
    size_t low = 0, high = list->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (list->nodes[middle] < node)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool reach_is_cut(const struct cluster *c, uint32_t a, uint32_t b)
{
    const struct cut_list *list = reach_cuts(c, a);
    size_t at = reach_find(list, b);

    return at < list->count && list->nodes[at] == b;
}

bool reach_is_connected(const struct cluster *c, uint32_t a, uint32_t b)
{
    uint16_t network = c->nodes[a].network;

    a = c->nodes[a].agent;
    b = c->nodes[b].agent;
    return a == b || (network && network == c->nodes[b].network && !reach_is_cut(c, a, b));
}

static void reach_set_half(struct cluster *c, uint32_t a, uint32_t b, bool is_cut)
{
    struct cut_list *list = &c->cuts[a];
    size_t at = reach_find(list, b);

    if (is_cut) {
        vec_grow(&list->nodes, &list->cap, list->count + 1, sizeof(*list->nodes));
        memmove(&list->nodes[at + 1], &list->nodes[at], (list->count - at) * sizeof(*list->nodes));
        list->nodes[at] = b;
        list->count++;
    } else {
        list->count--;
        memmove(&list->nodes[at], &list->nodes[at + 1], (list->count - at) * sizeof(*list->nodes));
    }
}

void reach_set_cut(struct cluster *c, uint32_t a, uint32_t b, bool is_cut)
{
    size_t cap = c->cut_cap;

    if (a == b || reach_is_cut(c, a, b) == is_cut)
        return;
    vec_grow(&c->cuts, &c->cut_cap, c->node_count, sizeof(*c->cuts));
    if (c->cut_cap > cap)
        memset(&c->cuts[cap], 0, (c->cut_cap - cap) * sizeof(*c->cuts));
    reach_set_half(c, a, b, is_cut);
    reach_set_half(c, b, a, is_cut);
    if (is_cut) {
        c->cut_pairs++;
    } else {
        c->cut_pairs--;
        c->free_version++; /* a session without room may fit now */
    }
}
