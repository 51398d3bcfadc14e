/* line.c - what one agent will have free, and when
 *
 * Each agent has a line of steps: from a time on, until the next step, it has
 * these amounts and devices free.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sched/forecast_private.h"

/* ---- steps ---- */

static size_t step_size(const struct forecast *p, uint32_t node)
{
    return p->s->cluster.width + p->s->cluster.nodes[node].device_count;
}

static bool line_reserve(struct forecast *p, struct line *l, uint32_t need)
{
    uint32_t cap = AQ_MAX(l->cap * 2, 4u);
    struct step *grown;

    if (need <= l->cap)
        return true;
    cap = AQ_MAX(cap, need);
    if (!(grown = arena_array(p->arena, cap, sizeof(*grown))))
        return false;
    if (l->count)
        memcpy(grown, l->steps, l->count * sizeof(*grown));
    l->steps = grown;
    l->cap = cap;
    return true;
}

/* The step that begins at 'usec', split off the one before; NULL without memory. */
static struct step *step_at(struct forecast *p, uint32_t node, int64_t usec, uint32_t *ret)
{
    struct line *l = &p->lines[node];
    uint32_t at = l->count;
    int64_t *free;

    while (at > 0 && l->steps[at - 1].from_usec >= usec)
        at--;
    *ret = at;
    if (at < l->count && l->steps[at].from_usec == usec)
        return &l->steps[at];
    free = arena_array(p->arena, step_size(p, node), sizeof(*free));
    if (!free || !line_reserve(p, l, l->count + 1))
        return NULL;
    memcpy(free, l->steps[at - 1].free, step_size(p, node) * sizeof(*free));
    memmove(&l->steps[at + 1], &l->steps[at], (l->count - at) * sizeof(*l->steps));
    l->steps[at] = (struct step){ usec, free };
    l->count++;
    return &l->steps[at];
}

static void add_to_step(const struct forecast *p, struct step *step, const struct request *req,
                        const struct part *parts, uint32_t part_count, int sign)
{
    const struct cluster *c = &p->s->cluster;

    for (size_t i = 0; i < c->width; i++)
        if (step->free[i] != SCHED_ABSENT && step->free[i] != AMOUNT_INFINITE)
            step->free[i] += sign * req->amounts[i];
    for (uint32_t i = 0; i < part_count; i++)
        step->free[c->width + parts[i].device] += sign * parts[i].amount;
}

int line_add(struct forecast *p, uint32_t node, const struct request *req,
             const struct part *parts, uint32_t part_count, int64_t from, int64_t to, int sign)
{
    struct line *l = &p->lines[node];
    uint32_t first, last = 0;

    if (!step_at(p, node, from, &first))
        return -ENOMEM;
    if (to != INT64_MAX && !step_at(p, node, to, &last))
        return -ENOMEM;
    if (to == INT64_MAX)
        last = l->count;
    for (uint32_t i = first; i < last; i++)
        add_to_step(p, &l->steps[i], req, parts, part_count, sign);
    l->version++;
    return 0;
}

static int compare_ids(const void *a, const void *b, void *data)
{
    const struct cluster *c = data;

    return strcmp(c->nodes[*(const uint32_t *)a].id, c->nodes[*(const uint32_t *)b].id);
}

int lines_init(struct forecast *p)
{
    struct cluster *c = &p->s->cluster;
    size_t devices_max = 0;

    p->lines = arena_array(p->arena, c->node_count + 1, sizeof(*p->lines));
    p->by_id = arena_array(p->arena, c->node_count + 1, sizeof(*p->by_id));
    if (!p->lines || !p->by_id)
        return -ENOMEM;
    for (uint32_t n = 0; n < c->node_count; n++) {
        const struct node *node = &c->nodes[n];
        int64_t *free;

        if (!node->id)
            continue;
        free = arena_array(p->arena, step_size(p, n), sizeof(*free));
        if (!free || !line_reserve(p, &p->lines[n], 1))
            return -ENOMEM;
        memcpy(free, node->free, c->width * sizeof(*free));
        for (uint32_t d = 0; d < node->device_count; d++)
            free[c->width + d] = node->devices[d].free;
        p->lines[n].steps[0] = (struct step){ p->now_usec, free };
        p->lines[n].count = p->lines[n].version = 1;
        devices_max = AQ_MAX(devices_max, (size_t)node->device_count);
        p->by_id[p->node_count++] = n;
    }
    qsort_r(p->by_id, p->node_count, sizeof(*p->by_id), compare_ids, c);
    p->least = arena_array(p->arena, c->width + devices_max, sizeof(*p->least));
    p->devices = arena_array(p->arena, devices_max + 1, sizeof(*p->devices));
    p->parts = arena_array(p->arena, devices_max + 1, sizeof(*p->parts));
    return p->least && p->devices && p->parts ? 0 : -ENOMEM;
}

/* ---- the earliest time on one agent ---- */

static bool amounts_fit(const struct cluster *c, const struct request *req, const int64_t *free)
{
    for (size_t i = 0; i < c->width; i++)
        if (req->amounts[i] > 0 && free[i] < req->amounts[i])
            return false;
    return true;
}

/* The devices of a node with what is free in 'p->least', grouped by column. */
static void list_devices(struct forecast *p, uint32_t node)
{
    const struct node *n = &p->s->cluster.nodes[node];
    bool is_grouped = true;

    for (uint32_t d = 0; d < n->device_count; d++) {
        p->devices[d] = n->devices[d];
        p->devices[d].free = p->least[p->s->cluster.width + d];
        p->devices[d].unused = d; /* its place in the agent's order */
        is_grouped = is_grouped && (d == 0 || n->devices[d].column >= n->devices[d - 1].column);
    }
    if (!is_grouped)
        sort_devices(p->devices, n->device_count);
}

/* The least of each device is left in p->devices. */
bool line_fits(struct forecast *p, uint32_t node, const struct request *req, uint32_t first,
               int64_t to, uint32_t *ret_last)
{
    const struct cluster *c = &p->s->cluster;
    const struct line *l = &p->lines[node];
    size_t size = step_size(p, node);

    *ret_last = first;
    if (!amounts_fit(c, req, l->steps[first].free))
        return false;
    for (uint32_t i = first + 1; i < l->count && l->steps[i].from_usec < to; i++)
        if (!amounts_fit(c, req, l->steps[i].free)) {
            *ret_last = i;
            return false;
        }
    memcpy(p->least, l->steps[first].free, size * sizeof(*p->least));
    for (uint32_t i = first + 1; i < l->count && l->steps[i].from_usec < to; i++)
        for (size_t k = c->width; k < size; k++)
            p->least[k] = AQ_MIN(p->least[k], l->steps[i].free[k]);
    list_devices(p, node);
    return row_has_room(c, req, p->least, p->devices, c->nodes[node].device_count);
}

int64_t line_earliest(struct forecast *p, uint32_t node, const struct request *req,
                      int64_t lifetime, int64_t from, int64_t until)
{
    const struct line *l = &p->lines[node];
    uint32_t last = 0;

    for (uint32_t i = 0; i < l->count; i = last + 1) {
        int64_t start = AQ_MAX(from, l->steps[i].from_usec);

        last = i;
        if (start >= until)
            return INT64_MAX;
        if (i + 1 < l->count && l->steps[i + 1].from_usec <= from)
            continue;
        if (line_fits(p, node, req, i, time_add(start, lifetime), &last))
            return start;
    }
    return INT64_MAX;
}

/* ---- taking ---- */

/* Of p->devices the one that is as the state's 'device' now, -1 for none. */
static int32_t find_device(const struct forecast *p, uint32_t node, int32_t device)
{
    const struct node *n = &p->s->cluster.nodes[node];
    const struct device *wanted = &p->s->cluster.states[n->state].devices[device < 0 ? 0 : device];

    for (uint32_t d = 0; device >= 0 && d < n->device_count; d++)
        if (memcmp(&n->devices[p->devices[d].unused], wanted, sizeof(*wanted)) == 0)
            return (int32_t)d;
    return -1;
}

int line_take(struct forecast *p, uint32_t node, const struct request *req, int64_t lifetime,
              int64_t at, int32_t device, struct hold *ret)
{
    int64_t end = time_add(at, lifetime);
    uint32_t step = 0, last;
    int count;

    while (step + 1 < p->lines[node].count && p->lines[node].steps[step + 1].from_usec <= at)
        step++;
    (void)line_fits(p, node, req, step, end, &last);
    device = find_device(p, node, device);
    if (device >= 0 && p->devices[device].free < req->amounts[p->devices[device].column])
        device = -1;
    count = state_choose_devices(&p->s->cluster, req, p->devices,
                                 p->s->cluster.nodes[node].device_count, device, p->parts);
    count = AQ_MAX(count, 0);
    if (!(ret->parts = calloc((size_t)count + 1, sizeof(*ret->parts))))
        return -ENOMEM;
    for (int i = 0; i < count; i++)
        ret->parts[i] = (struct part){ p->devices[p->parts[i].device].unused, p->parts[i].amount };
    ret->part_count = (uint32_t)count;
    ret->node = node;
    return line_add(p, node, req, ret->parts, ret->part_count, at, end, -1);
}
