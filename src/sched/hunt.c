/* hunt.c - agents as they would be without some of the sessions that run there */
#include "sched/hunt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- an agent as it would be ---- */

void hunt_begin(struct hunt *h, uint32_t node)
{
    const struct cluster *c = &h->s->cluster;
    const struct node *n = &c->nodes[node];

    memcpy(h->free, n->free, c->width * sizeof(*h->free));
    memcpy(h->devices, n->devices, n->device_count * sizeof(*h->devices));
}

void hunt_without(struct hunt *h, const struct entry *victim, uint32_t node, int sign)
{
    const struct cluster *c = &h->s->cluster;

    for (uint32_t q = 0; q < victim->req_count; q++) {
        const struct hold *hold = &victim->holds[q];

        if (hold->node != node)
            continue;
        for (size_t i = 0; i < c->width; i++)
            if (h->free[i] != SCHED_ABSENT && h->free[i] != AMOUNT_INFINITE)
                h->free[i] += sign * victim->reqs[q]->amounts[i];
        for (uint32_t p = 0; p < hold->part_count; p++)
            h->devices[hold->parts[p].device].free += sign * hold->parts[p].amount;
    }
}

bool hunt_fits(struct hunt *h, uint32_t node, const struct request *req)
{
    uint32_t count = h->s->cluster.nodes[node].device_count;

    for (uint32_t d = 0; d < count; d++) {
        h->sorted[d] = h->devices[d];
        h->sorted[d].unused = d;
    }
    sort_devices(h->sorted, count);
    return row_has_room(&h->s->cluster, req, h->free, h->sorted, count);
}

void hunt_forget_claimed(struct hunt *h, uint32_t node)
{
    for (uint32_t i = 0; i < h->claimed_count; i++)
        hunt_without(h, &h->s->entries[h->claimed[i]], node, 1);
}

bool hunt_spares(const struct hunt *h, const struct entry *v)
{
    (void)h;
    (void)v;
    return false;
}

bool hunt_is_same_scope(const struct entry *a, const struct entry *b)
{
    const char *x = a->more && a->more->scope ? a->more->scope : "";
    const char *y = b->more && b->more->scope ? b->more->scope : "";

    return strcmp(x, y) == 0;
}

double hunt_size(const struct hunt *h, const struct request *of, const struct request *req)
{
    double most = 0;

    for (size_t i = 0; i < h->s->cluster.columns; i++)
        if (req->amounts[i] > 0)
            most = AQ_MAX(most, (double)of->amounts[i] / (double)req->amounts[i]);
    return most;
}

double hunt_contribution(const struct hunt *h, const struct entry *v, uint32_t node,
                         const struct request *req)
{
    double most = 0;

    for (uint32_t q = 0; q < v->req_count; q++)
        if (v->holds[q].node == node)
            most = AQ_MAX(most, hunt_size(h, v->reqs[q], req));
    return most;
}

/* Call it for each agent on which 'e' holds something, once. */
static uint32_t next_node(const struct entry *e, uint32_t *at)
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

/* Sort those that may go by agent. */
static int sort_by_node(struct hunt *h)
{
    size_t nodes = h->s->cluster.node_count, count = 0;
    uint32_t node;

    h->starts = arena_array(h->arena, nodes + 2, sizeof(*h->starts));
    if (!h->starts)
        return -ENOMEM;
    for (uint32_t i = 0, at = 0; i < h->s->entry_count; i++, at = 0) {
        if (h->s->entries[i].is_claimed)
            h->claimed[h->claimed_count++] = i;
        else if (h->may_go(h, &h->s->entries[i]))
            for (; (node = next_node(&h->s->entries[i], &at)) != CLUSTER_NONE; count++)
                h->starts[node + 2]++;
    }
    for (size_t n = 1; n < nodes + 2; n++)
        h->starts[n] += h->starts[n - 1];
    if (!(h->by_node = arena_array(h->arena, count + 1, sizeof(*h->by_node))))
        return -ENOMEM;
    for (uint32_t i = 0, at = 0; i < h->s->entry_count; i++, at = 0)
        if (h->may_go(h, &h->s->entries[i]))
            while ((node = next_node(&h->s->entries[i], &at)) != CLUSTER_NONE)
                h->by_node[h->starts[node + 1]++] = i;
    return 0;
}

int hunt_init(struct hunt *h)
{
    const struct cluster *c = &h->s->cluster;
    size_t devices = 1, entries = h->s->entry_count + 1;

    for (size_t n = 0; n < c->node_count; n++)
        devices = AQ_MAX(devices, (size_t)c->nodes[n].device_count);
    h->free = arena_array(h->arena, c->width, sizeof(*h->free));
    h->devices = arena_array(h->arena, devices, sizeof(*h->devices));
    h->sorted = arena_array(h->arena, devices, sizeof(*h->sorted));
    h->candidates = arena_array(h->arena, entries, sizeof(*h->candidates));
    h->is_chosen = arena_array(h->arena, entries, sizeof(*h->is_chosen));
    h->victims = arena_array(h->arena, entries, sizeof(*h->victims));
    h->claimed = arena_array(h->arena, entries, sizeof(*h->claimed));
    return h->free && h->devices && h->sorted && h->candidates && h->is_chosen && h->victims &&
                   h->claimed
               ? sort_by_node(h)
               : -ENOMEM;
}

int hunt_hold(struct hunt *h, const struct request *req, uint32_t node, struct hold *ret)
{
    uint32_t device_count = h->s->cluster.nodes[node].device_count;
    struct part *parts = calloc((size_t)device_count + 1, sizeof(*parts));
    int count;

    if (!parts)
        return -ENOMEM;
    (void)hunt_fits(h, node, req);
    count = state_choose_devices(&h->s->cluster, req, h->sorted, device_count, -1, parts);
    for (int i = 0; i < count; i++)
        parts[i].device = h->sorted[parts[i].device].unused;
    count = AQ_MAX(count, 0);
    if (cluster_hold_parts(&h->s->cluster, node, req, parts, (uint32_t)count) < 0) {
        free(parts);
        return -ENOMEM;
    }
    *ret = (struct hold){ .node = node, .parts = parts, .part_count = (uint32_t)count };
    return 0;
}

void hunt_claim(struct hunt *h, uint32_t handle)
{
    h->s->entries[handle].is_claimed = true;
    h->victims[h->victim_count++] = handle;
    h->claimed[h->claimed_count++] = handle;
}

int hunt_give_up(struct hunt *h, struct entry *e, uint32_t count)
{
    uint64_t grown = h->s->cluster.grown;
    int r = 0;

    for (uint32_t i = 0; i < h->victim_count; i++)
        h->s->entries[h->victims[i]].is_claimed = false;
    while (count-- > 0)
        r = state_release(h->s, e, count) < 0 ? -ENOMEM : r;
    h->s->cluster.grown = grown;
    return r;
}
