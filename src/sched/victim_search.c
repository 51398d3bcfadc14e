/* SPDX-License-Identifier: Apache-2.0 */
/* victim_search.c - an agent as it would be without some of the sessions that run there */
#include "sched/victim_search.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
/* ---- an agent as it would be ---- */

void victim_search_load_node(struct victim_search *vs, uint32_t node)
{
    const struct cluster *c = &vs->s->cluster;
    const struct cluster_node *n = &c->nodes[node];

    memcpy(vs->free, n->free, c->width * sizeof(*vs->free));
    memcpy(vs->devices, n->devices, n->device_count * sizeof(*vs->devices));
}

void victim_search_assume_gone(struct victim_search *vs, const struct sched_entry *victim,
                               uint32_t node, int sign)
{
    const struct cluster *c = &vs->s->cluster;

    for (uint32_t q = 0; q < victim->req_count; q++) {
        const struct hold *hold = &victim->holds[q];

        if (hold->node != node)
            continue;
        for (size_t i = 0; i < c->width; i++)
            if (vs->free[i] != SCHED_ABSENT && vs->free[i] != AMOUNT_INFINITE)
                vs->free[i] += sign * victim->reqs[q]->amounts[i];
        for (uint32_t p = 0; p < hold->part_count; p++)
            vs->devices[hold->parts[p].device].free += sign * hold->parts[p].amount;
    }
}

bool victim_search_fits(struct victim_search *vs, uint32_t node, const struct slot_request *req)
{
    uint32_t count = vs->s->cluster.nodes[node].device_count;

    for (uint32_t d = 0; d < count; d++) {
        vs->sorted[d] = vs->devices[d];
        vs->sorted[d].unused = d;
    }
    cluster_sort_devices(vs->sorted, count);
    return fit_check_row(&vs->s->cluster, req, vs->free, vs->sorted, count);
}

void victim_search_assume_claimed_gone(struct victim_search *vs, uint32_t node)
{
    for (uint32_t i = 0; i < vs->claimed_count; i++)
        victim_search_assume_gone(vs, &vs->s->entries[vs->claimed[i]], node, 1);
}

bool victim_search_none_evictable(const struct victim_search *vs, const struct sched_entry *v)
{
    (void)vs;
    (void)v;
    return false;
}

bool victim_search_is_same_scope(const struct sched_entry *a, const struct sched_entry *b)
{
    const char *x = a->more && a->more->scope ? a->more->scope : "";
    const char *y = b->more && b->more->scope ? b->more->scope : "";

    return strcmp(x, y) == 0;
}

double victim_search_relative_size(const struct victim_search *vs, const struct slot_request *of,
                                   const struct slot_request *req)
{
    double most = 0;

    for (size_t i = 0; i < vs->s->cluster.columns; i++)
        if (req->amounts[i] > 0)
            most = AQ_MAX(most, (double)of->amounts[i] / (double)req->amounts[i]);
    return most;
}

double victim_search_contribution(const struct victim_search *vs, const struct sched_entry *v,
                                  uint32_t node, const struct slot_request *req)
{
    double most = 0;

    for (uint32_t q = 0; q < v->req_count; q++)
        if (v->holds[q].node == node)
            most = AQ_MAX(most, victim_search_relative_size(vs, v->reqs[q], req));
    return most;
}

/* Call it for each agent on which 'e' holds something, once. */
static uint32_t victim_search_next_node(const struct sched_entry *e, uint32_t *at)
{
    for (; *at < e->req_count; ++*at) {
        uint32_t node = e->holds[*at].node, before = 0;

        while (before < *at && e->holds[before].node != node)
            before++;
        if (before == *at && node != CLUSTER_NONE) {
            ++*at;
            return node;
        }
    }
    return CLUSTER_NONE;
}

/* Sort the evictable sessions by agent. */
static void victim_search_sort_by_node(struct victim_search *vs)
{
    size_t nodes = vs->s->cluster.node_count, count = 0;
    uint32_t node;

    vs->starts = arena_array(vs->arena, nodes + 2, sizeof(*vs->starts));
    for (uint32_t i = 0, at = 0; i < vs->s->entry_count; i++, at = 0) {
        if (vs->s->entries[i].is_victim)
            vs->claimed[vs->claimed_count++] = i;
        else if (vs->is_evictable(vs, &vs->s->entries[i]))
            for (; (node = victim_search_next_node(&vs->s->entries[i], &at)) != CLUSTER_NONE;
                 count++)
                vs->starts[node + 2]++;
    }
    for (size_t n = 1; n < nodes + 2; n++)
        vs->starts[n] += vs->starts[n - 1];
    vs->by_node = arena_array(vs->arena, count + 1, sizeof(*vs->by_node));
    for (uint32_t i = 0, at = 0; i < vs->s->entry_count; i++, at = 0)
        if (vs->is_evictable(vs, &vs->s->entries[i]))
            while ((node = victim_search_next_node(&vs->s->entries[i], &at)) != CLUSTER_NONE)
                vs->by_node[vs->starts[node + 1]++] = i;
}

void victim_search_init(struct victim_search *vs)
{
    const struct cluster *c = &vs->s->cluster;
    size_t devices = 1, entries = vs->s->entry_count + 1;

    for (size_t n = 0; n < c->node_count; n++)
        devices = AQ_MAX(devices, (size_t)c->nodes[n].device_count);
    vs->free = arena_array(vs->arena, c->width, sizeof(*vs->free));
    vs->devices = arena_array(vs->arena, devices, sizeof(*vs->devices));
    vs->sorted = arena_array(vs->arena, devices, sizeof(*vs->sorted));
    vs->candidates = arena_array(vs->arena, entries, sizeof(*vs->candidates));
    vs->is_chosen = arena_array(vs->arena, entries, sizeof(*vs->is_chosen));
    vs->victims = arena_array(vs->arena, entries, sizeof(*vs->victims));
    vs->claimed = arena_array(vs->arena, entries, sizeof(*vs->claimed));
    victim_search_sort_by_node(vs);
}

void victim_search_hold(struct victim_search *vs, const struct slot_request *req, uint32_t node,
                        struct hold *ret)
{
    uint32_t device_count = vs->s->cluster.nodes[node].device_count;
    struct device_part *parts = aq_alloc_array((size_t)device_count + 1, sizeof(*parts));
    int count;

    (void)victim_search_fits(vs, node, req);
    count = fit_choose_devices(&vs->s->cluster, req, vs->sorted, device_count, -1, parts);
    for (int i = 0; i < count; i++)
        parts[i].device = vs->sorted[parts[i].device].unused;
    count = AQ_MAX(count, 0);
    cluster_hold_parts(&vs->s->cluster, node, req, parts, (uint32_t)count);
    *ret = (struct hold){ .node = node, .parts = parts, .part_count = (uint32_t)count };
}

void victim_search_claim(struct victim_search *vs, uint32_t handle)
{
    assert(handle < vs->s->entry_count && !vs->s->entries[handle].is_victim);
    vs->s->entries[handle].is_victim = true;
    vs->victims[vs->victim_count++] = handle;
    vs->claimed[vs->claimed_count++] = handle;
}

void victim_search_cancel(struct victim_search *vs, struct sched_entry *e, uint32_t count)
{
    uint64_t free_version = vs->s->cluster.free_version;

    for (uint32_t i = 0; i < vs->victim_count; i++)
        vs->s->entries[vs->victims[i]].is_victim = false;
    vs->claimed_count -= vs->victim_count;
    vs->victim_count = 0;
    while (count-- > 0)
        entry_release(vs->s, e, count);
    vs->s->cluster.free_version = free_version;
}
