/* SPDX-License-Identifier: Apache-2.0 */
/* availability.c - the availability timeline of an agent: what it will have free, and when
 *
 * A timeline is a list of steps, earliest first: from the time of a step until
 * the next step, the agent has the step's amounts and devices free. The last
 * step lasts forever.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sched/forecast_internal.h"

/* ---- steps ---- */

size_t availability_step_size(const struct forecast *p, uint32_t node)
{
    return p->s->cluster.width + p->s->cluster.nodes[node].device_count;
}

static void availability_reserve(struct forecast *p, struct availability *l, uint32_t need)
{
    uint32_t cap = AQ_MAX(l->cap * 2, 4u);
    struct availability_step *grown;

    if (need <= l->cap)
        return;
    cap = AQ_MAX(cap, need);
    grown = arena_array(p->arena, cap, sizeof(*grown));
    if (l->count)
        memcpy(grown, l->steps, l->count * sizeof(*grown));
    l->steps = grown;
    l->cap = cap;
}

/* The step that begins at 'usec', split off the one before. */
static uint32_t availability_step_at(struct forecast *p, uint32_t node, int64_t usec)
{
    struct availability *l = &p->timelines[node];
    uint32_t at = l->count;
    int64_t *free;

    while (at > 0 && l->steps[at - 1].from_usec >= usec)
        at--;
    if (at < l->count && l->steps[at].from_usec == usec)
        return at;
    assert(at > 0); /* a timeline begins now, and nothing changes before */
    free = arena_array(p->arena, availability_step_size(p, node), sizeof(*free));
    availability_reserve(p, l, l->count + 1);
    memcpy(free, l->steps[at - 1].free, availability_step_size(p, node) * sizeof(*free));
    memmove(&l->steps[at + 1], &l->steps[at], (l->count - at) * sizeof(*l->steps));
    l->steps[at] = (struct availability_step){ usec, free };
    l->count++;
    return at;
}

static void availability_add_to_step(const struct forecast *p, struct availability_step *step,
                                     const struct slot_request *req, const bool *only,
                                     const bool *also, const struct device_part *parts,
                                     uint32_t part_count, int sign)
{
    const struct cluster *c = &p->s->cluster;

    for (size_t i = 0; i < c->width; i++)
        if (step->free[i] != SCHED_ABSENT && step->free[i] != AMOUNT_INFINITE && (!only || only[i])
            && (!also || also[i]))
            step->free[i] += sign * req->amounts[i];
    for (uint32_t i = 0; i < part_count; i++)
        step->free[c->width + parts[i].device] += sign * parts[i].amount;
}

/* Of 'req' only the columns that both 'only' and 'also' have, NULL = all. */
static void availability_add_to_node(struct forecast *p, uint32_t node,
                                     const struct slot_request *req, const bool *only,
                                     const bool *also, const struct device_part *parts,
                                     uint32_t part_count, int64_t from, int64_t to, int sign)
{
    struct availability *l = &p->timelines[node];
    uint32_t first = availability_step_at(p, node, from);
    uint32_t last = to != INT64_MAX ? availability_step_at(p, node, to) : l->count;

    assert(first <= last && last <= l->count);
    for (uint32_t i = first; i < last; i++)
        availability_add_to_step(p, &l->steps[i], req, only, also, parts, part_count, sign);
    l->may_fall |= sign < 0 ? from > p->now_usec : to != INT64_MAX;
    l->version++;
}

void availability_add(struct forecast *p, uint32_t node, const struct slot_request *req,
                      const struct device_part *parts, uint32_t part_count, int64_t from,
                      int64_t to, int sign)
{
    const struct cluster_node *nodes = p->s->cluster.nodes;
    const bool *shared = nodes[node].shared;
    uint32_t agent = nodes[node].agent;

    availability_add_to_node(p, node, req, NULL, NULL, parts, part_count, from, to, sign);
    if (node != agent && !shared)
        return;
    if (node != agent)
        availability_add_to_node(p, agent, req, shared, NULL, NULL, 0, from, to, sign);
    for (uint32_t part = nodes[agent].first_part; part != CLUSTER_NONE;
         part = nodes[part].next_part)
        if (part != node)
            availability_add_to_node(p, part, req, shared, nodes[part].shared, NULL, 0, from, to,
                                     sign);
}

void availability_keep(struct forecast *p, uint32_t node, const struct slot_request *req,
                       const struct device_part *parts, uint32_t part_count)
{
    const struct cluster *c = &p->s->cluster;
    const struct cluster_device *devices = c->nodes[node].devices;
    struct availability *l = &p->timelines[node];

    for (uint32_t i = 0; i < l->count; i++) {
        int64_t *free = l->steps[i].free;

        memcpy(p->least, req->amounts, c->width * sizeof(*p->least));
        for (uint32_t k = 0; k < part_count; k++) {
            int64_t *part = &free[c->width + parts[k].device];
            int64_t kept = AQ_MIN(AQ_MAX(*part, 0), parts[k].amount);

            *part -= kept;
            p->least[devices[parts[k].device].column] -= parts[k].amount - kept;
        }
        for (size_t k = 0; k < c->width; k++)
            if (free[k] != SCHED_ABSENT && free[k] != AMOUNT_INFINITE)
                free[k] -= AQ_MIN(AQ_MAX(free[k], 0), p->least[k]);
    }
    l->may_fall = true; /* now it has less than the agent, too */
    l->version++;
}

static int availability_compare_ids(const void *a, const void *b, void *data)
{
    const struct cluster *c = data;

    return strcmp(c->nodes[*(const uint32_t *)a].id, c->nodes[*(const uint32_t *)b].id);
}

void availability_init(struct forecast *p)
{
    struct cluster *c = &p->s->cluster;
    size_t devices_max = 0;

    p->timelines = arena_array(p->arena, c->node_count + 1, sizeof(*p->timelines));
    p->by_id = arena_array(p->arena, c->node_count + 1, sizeof(*p->by_id));
    p->promised = arena_array(p->arena, c->node_count + 1, sizeof(*p->promised));
    for (uint32_t n = 0; n < c->node_count; n++) {
        const struct cluster_node *node = &c->nodes[n];
        int64_t *free;

        p->promised[n] = NO_HANDLE;
        free = arena_array(p->arena, availability_step_size(p, n), sizeof(*free));
        availability_reserve(p, &p->timelines[n], 1);
        memcpy(free, node->free, c->width * sizeof(*free));
        for (uint32_t d = 0; d < node->device_count; d++)
            free[c->width + d] = node->devices[d].free;
        p->timelines[n].steps[0] = (struct availability_step){ p->now_usec, free };
        p->timelines[n].count = p->timelines[n].version = 1;
        devices_max = AQ_MAX(devices_max, (size_t)node->device_count);
        p->by_id[p->node_count++] = n;
    }
    qsort_r(p->by_id, p->node_count, sizeof(*p->by_id), availability_compare_ids, c);
    p->least = arena_array(p->arena, c->width + devices_max, sizeof(*p->least));
    p->devices = arena_array(p->arena, devices_max + 1, sizeof(*p->devices));
    p->parts = arena_array(p->arena, devices_max + 1, sizeof(*p->parts));
}

/* ---- the earliest time on one agent ---- */

uint32_t availability_find_step(const struct availability *l, int64_t at)
{
    uint32_t step = 0;

    while (step + 1 < l->count && l->steps[step + 1].from_usec <= at)
        step++;
    return step;
}

static bool availability_amounts_fit(const struct cluster *c, const struct slot_request *req,
                                     const int64_t *free)
{
    for (size_t i = 0; i < c->width; i++)
        if (req->amounts[i] > 0 && free[i] < req->amounts[i])
            return false;
    return true;
}

/* The devices of a node with what is free in 'p->least', grouped by column. */
static void availability_list_devices(struct forecast *p, uint32_t node)
{
    const struct cluster_node *n = &p->s->cluster.nodes[node];
    bool is_grouped = true;

    for (uint32_t d = 0; d < n->device_count; d++) {
        p->devices[d] = n->devices[d];
        p->devices[d].free = p->least[p->s->cluster.width + d];
        p->devices[d].unused = d; /* its place in the agent's order */
        is_grouped = is_grouped && (d == 0 || n->devices[d].column >= n->devices[d - 1].column);
    }
    if (!is_grouped)
        cluster_sort_devices(p->devices, n->device_count);
}

/* The least of each device is left in p->devices. */
bool availability_fits(struct forecast *p, uint32_t node, const struct slot_request *req,
                       uint32_t first, int64_t to, uint32_t *ret_last)
{
    const struct cluster *c = &p->s->cluster;
    const struct availability *l = &p->timelines[node];
    size_t size = availability_step_size(p, node);

    *ret_last = first;
    if (!availability_amounts_fit(c, req, l->steps[first].free))
        return false;
    for (uint32_t i = first + 1; i < l->count && l->steps[i].from_usec < to; i++)
        if (!availability_amounts_fit(c, req, l->steps[i].free)) {
            *ret_last = i;
            return false;
        }
    memcpy(p->least, l->steps[first].free, size * sizeof(*p->least));
    for (uint32_t i = first + 1; i < l->count && l->steps[i].from_usec < to; i++)
        for (size_t k = c->width; k < size; k++)
            p->least[k] = AQ_MIN(p->least[k], l->steps[i].free[k]);
    availability_list_devices(p, node);
    return fit_check_row(c, req, p->least, p->devices, c->nodes[node].device_count);
}

int64_t availability_earliest(struct forecast *p, uint32_t node, const struct slot_request *req,
                              int64_t lifetime, int64_t from, int64_t until)
{
    const struct availability *l = &p->timelines[node];
    uint32_t last = 0;

    for (uint32_t i = 0; i < l->count; i = last + 1) {
        int64_t start = AQ_MAX(from, l->steps[i].from_usec);

        last = i;
        if (start >= until)
            return INT64_MAX;
        if (i + 1 < l->count && l->steps[i + 1].from_usec <= from)
            continue;
        if (availability_fits(p, node, req, i, forecast_time_add(start, lifetime), &last))
            return start;
    }
    return INT64_MAX;
}

uint32_t availability_count(struct forecast *p, uint32_t node, const struct slot_request *req,
                            int64_t at, int64_t to)
{
    const struct cluster *c = &p->s->cluster;
    const struct availability *l = &p->timelines[node];
    size_t size = availability_step_size(p, node);
    uint32_t first = availability_find_step(l, at);

    memcpy(p->least, l->steps[first].free, size * sizeof(*p->least));
    for (uint32_t i = first + 1; i < l->count && l->steps[i].from_usec < to; i++)
        for (size_t k = 0; k < size; k++)
            p->least[k] = AQ_MIN(p->least[k], l->steps[i].free[k]);
    availability_list_devices(p, node);
    return fit_count_row(c, req, p->least, p->devices, c->nodes[node].device_count);
}

/* ---- taking ---- */

/* Of p->devices the one that is as the state's 'device' now, -1 for none. */
static int32_t availability_find_device(const struct forecast *p, uint32_t node, int32_t device)
{
    const struct cluster_node *n = &p->s->cluster.nodes[node];
    const struct cluster_device *wanted =
        &p->s->cluster.states[n->state].devices[device < 0 ? 0 : device];

    for (uint32_t d = 0; device >= 0 && d < n->device_count; d++)
        if (memcmp(&n->devices[p->devices[d].unused], wanted, sizeof(*wanted)) == 0)
            return (int32_t)d;
    return -1;
}

void availability_choose(struct forecast *p, uint32_t node, const struct slot_request *req,
                         int64_t from, int64_t to, int32_t device, struct hold *ret)
{
    uint32_t last;
    int count;

    (void)availability_fits(p, node, req, availability_find_step(&p->timelines[node], from), to,
                            &last);
    device = availability_find_device(p, node, device);
    if (device >= 0 && p->devices[device].free < req->amounts[p->devices[device].column])
        device = -1;
    count = fit_choose_devices(&p->s->cluster, req, p->devices,
                               p->s->cluster.nodes[node].device_count, device, p->parts);
    count = AQ_MAX(count, 0);
    ret->parts = aq_alloc_array((size_t)count + 1, sizeof(*ret->parts));
    for (int i = 0; i < count; i++)
        ret->parts[i] = (struct device_part){ p->devices[p->parts[i].device].unused,
                                              p->parts[i].amount };
    ret->part_count = (uint32_t)count;
    ret->node = node;
}

void availability_take(struct forecast *p, uint32_t node, const struct slot_request *req,
                       int64_t lifetime, int64_t at, int32_t device, struct hold *ret)
{
    int64_t end = forecast_time_add(at, lifetime);

    availability_choose(p, node, req, at, end, device, ret);
    availability_add(p, node, req, ret->parts, ret->part_count, at, end, -1);
}
