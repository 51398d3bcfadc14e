/* preempt.c - who makes way for a more important session
 *
 * On each agent those that may be displaced are taken in the order of their
 * job priority, then as the group wishes, until there is room; then whoever
 * is not needed after all is left alone, the most important first. Of the
 * agents the one whose victims matter least is chosen. The room of victims
 * that were chosen before counts as there already, less what it was chosen for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sched/state_private.h"

struct hunt {
    struct sched *s;
    const struct entry *e;
    int64_t now_usec;
    struct arena *arena;
    int64_t *free;          /* scratch: of one agent */
    struct device *devices, *sorted;
    uint32_t *starts, *by_node; /* who may be displaced: handles by node, and where each begins */
    uint32_t *claimed, claimed_count; /* who goes already */
    uint32_t *candidates;   /* handles, on one agent */
    uint32_t candidate_count;
    bool *is_chosen;        /* per candidate */
    uint32_t *victims;      /* of the session so far */
    uint32_t victim_count;
};

/* ---- an agent as it would be ---- */

static void begin_node(struct hunt *h, uint32_t node)
{
    const struct cluster *c = &h->s->cluster;
    const struct node *n = &c->nodes[node];

    memcpy(h->free, n->free, c->width * sizeof(*h->free));
    memcpy(h->devices, n->devices, n->device_count * sizeof(*h->devices));
}

/* As if the entry were gone (1) or back (-1). */
static void without(struct hunt *h, const struct entry *victim, uint32_t node, int sign)
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

static bool fits(struct hunt *h, uint32_t node, const struct request *req)
{
    uint32_t count = h->s->cluster.nodes[node].device_count;

    for (uint32_t d = 0; d < count; d++) {
        h->sorted[d] = h->devices[d];
        h->sorted[d].unused = d;
    }
    sort_devices(h->sorted, count);
    return row_has_room(&h->s->cluster, req, h->free, h->sorted, count);
}

/* ---- victims ---- */

static bool is_same_scope(const struct entry *a, const struct entry *b)
{
    const char *x = a->more && a->more->scope ? a->more->scope : "";
    const char *y = b->more && b->more->scope ? b->more->scope : "";

    return strcmp(x, y) == 0;
}

static bool may_displace(const struct hunt *h, const struct entry *v)
{
    return v->status == ENTRY_PLACED && v->is_preemptible && !v->is_claimed &&
           v->placed_in != h->s->passes && v->job_priority < h->e->job_priority &&
           v->started_usec <= h->now_usec - h->s->options.preemption.min_runtime_usec &&
           is_same_scope(h->e, v);
}

/* The part of the request that the victim would free, of the slot it frees most of. */
static double contribution(const struct hunt *h, const struct entry *v, uint32_t node,
                           const struct request *req)
{
    double most = 0;

    for (uint32_t q = 0; q < v->req_count; q++)
        for (size_t i = 0; v->holds[q].node == node && i < h->s->cluster.columns; i++)
            if (req->amounts[i] > 0)
                most = AQ_MAX(most, (double)v->reqs[q]->amounts[i] / (double)req->amounts[i]);
    return most;
}

/* < 0: 'a' goes before 'b'. */
static int compare_victims(const struct hunt *h, uint32_t node, const struct request *req,
                           const struct entry *a, const struct entry *b)
{
    double x = contribution(h, a, node, req), y = contribution(h, b, node, req);
    int order = 0;

    if (a->job_priority != b->job_priority)
        return a->job_priority < b->job_priority ? -1 : 1;
    switch (h->s->options.preemption.order) {
    case SCHED_OLDEST:
        order = (a->started_usec > b->started_usec) - (a->started_usec < b->started_usec);
        break;
    case SCHED_NEWEST:
        order = (a->started_usec < b->started_usec) - (a->started_usec > b->started_usec);
        break;
    case SCHED_FEWEST:
        order = (x < y) - (x > y);
        break;
    case SCHED_SMALLEST:
        order = (x > y) - (x < y);
        break;
    }
    return order ? order : (a->row > b->row) - (a->row < b->row);
}

/* Those on 'node' that may be displaced and hold what is asked for, in order. */
static void find_candidates(struct hunt *h, uint32_t node, const struct request *req)
{
    h->candidate_count = 0;
    for (uint32_t i = h->starts[node]; i < h->starts[node + 1]; i++) {
        const struct entry *v = &h->s->entries[h->by_node[i]];
        uint32_t at = h->candidate_count;

        if (v->is_claimed || contribution(h, v, node, req) <= 0)
            continue;
        for (; at > 0 && compare_victims(h, node, req, v,
                                         &h->s->entries[h->candidates[at - 1]]) < 0; at--)
            h->candidates[at] = h->candidates[at - 1];
        h->candidates[at] = h->by_node[i];
        h->candidate_count++;
    }
}

/* What is claimed already will be gone. */
static void forget_claimed(struct hunt *h, uint32_t node)
{
    for (uint32_t i = 0; i < h->claimed_count; i++)
        without(h, &h->s->entries[h->claimed[i]], node, 1);
}

/* Choose among the candidates; false if all of them are not enough. */
static bool choose(struct hunt *h, uint32_t node, const struct request *req, uint32_t *ret_count)
{
    bool enough;

    begin_node(h, node);
    forget_claimed(h, node);
    find_candidates(h, node, req);
    enough = fits(h, node, req);
    *ret_count = 0;
    for (uint32_t i = 0; i < h->candidate_count; i++) {
        h->is_chosen[i] = !enough;
        if (enough)
            continue;
        without(h, &h->s->entries[h->candidates[i]], node, 1);
        enough = fits(h, node, req);
        ++*ret_count;
    }
    for (uint32_t i = h->candidate_count; enough && i-- > 0;) {
        if (!h->is_chosen[i])
            continue;
        without(h, &h->s->entries[h->candidates[i]], node, -1);
        if (fits(h, node, req)) {
            h->is_chosen[i] = false;
            --*ret_count;
        } else {
            without(h, &h->s->entries[h->candidates[i]], node, 1);
        }
    }
    return enough && fits(h, node, req);
}

/* ---- agents ---- */

struct price {
    uint32_t node, count;
    int job_priority;       /* the highest among the victims */
    uint32_t first;         /* the victim that is taken first, NO_HANDLE = none */
};

static struct price price_of(const struct hunt *h, uint32_t node, uint32_t count)
{
    struct price p = { node, count, INT32_MIN, NO_HANDLE };

    for (uint32_t i = 0; i < h->candidate_count; i++)
        if (h->is_chosen[i]) {
            if (p.first == NO_HANDLE)
                p.first = h->candidates[i];
            p.job_priority = AQ_MAX(p.job_priority, h->s->entries[h->candidates[i]].job_priority);
        }
    return p;
}

static bool is_cheaper(const struct hunt *h, const struct price *a, const struct price *b)
{
    enum sched_victims order = h->s->options.preemption.order;
    const struct cluster *c = &h->s->cluster;
    int by_age = 0;

    if (a->job_priority != b->job_priority)
        return a->job_priority < b->job_priority;
    if ((order == SCHED_OLDEST || order == SCHED_NEWEST) && a->first != NO_HANDLE &&
        b->first != NO_HANDLE) {
        int64_t x = h->s->entries[a->first].started_usec, y = h->s->entries[b->first].started_usec;

        by_age = order == SCHED_OLDEST ? (x > y) - (x < y) : (x < y) - (x > y);
    }
    if (by_age)
        return by_age < 0;
    if (a->count != b->count)
        return a->count < b->count;
    return strcmp(c->nodes[a->node].id, c->nodes[b->node].id) < 0;
}

static bool find_node(struct hunt *h, const struct request *req, const struct wish *wish,
                      struct price *ret)
{
    const struct cluster *c = &h->s->cluster;
    bool found = false;

    for (uint32_t n = 0; n < c->node_count; n++) {
        struct price p;
        uint32_t count;
        int64_t rank;

        if (!c->nodes[n].id || !cluster_matches(c, req, n) ||
            (wish && !wish_allows(wish, n, &rank)) || !choose(h, n, req, &count))
            continue;
        p = price_of(h, n, count);
        if (!found || is_cheaper(h, &p, ret))
            *ret = p;
        found = true;
    }
    return found;
}

/* Claim the victims on the node and hold it, from devices that will be free. */
static int take(struct hunt *h, struct entry *e, uint32_t q, uint32_t node)
{
    struct hold *hold = &e->holds[q];
    uint32_t count, device_count = h->s->cluster.nodes[node].device_count;
    struct part *parts;
    int part_count;

    (void)choose(h, node, e->reqs[q], &count);
    for (uint32_t i = 0; i < h->candidate_count; i++)
        if (h->is_chosen[i]) {
            h->s->entries[h->candidates[i]].is_claimed = true;
            h->victims[h->victim_count++] = h->candidates[i];
            h->claimed[h->claimed_count++] = h->candidates[i];
        }
    if (!(parts = calloc((size_t)device_count + 1, sizeof(*parts))))
        return -ENOMEM;
    (void)fits(h, node, e->reqs[q]);
    part_count = state_choose_devices(&h->s->cluster, e->reqs[q], h->sorted, device_count, -1, parts);
    for (int i = 0; i < part_count; i++)
        parts[i].device = h->sorted[parts[i].device].unused;
    hold->parts = parts;
    hold->part_count = part_count > 0 ? (uint32_t)part_count : 0;
    if (cluster_hold_parts(&h->s->cluster, node, e->reqs[q], parts, hold->part_count) < 0) {
        free(parts);
        *hold = (struct hold){ .node = CLUSTER_NONE };
        return -ENOMEM;
    }
    hold->node = node;
    return 0;
}

static int give_up(struct hunt *h, struct entry *e, uint32_t count)
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

/* Sort those that may be displaced by agent. */
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
        else if (may_displace(h, &h->s->entries[i]))
            for (; (node = next_node(&h->s->entries[i], &at)) != CLUSTER_NONE; count++)
                h->starts[node + 2]++;
    }
    for (size_t n = 1; n < nodes + 2; n++)
        h->starts[n] += h->starts[n - 1];
    if (!(h->by_node = arena_array(h->arena, count + 1, sizeof(*h->by_node))))
        return -ENOMEM;
    for (uint32_t i = 0, at = 0; i < h->s->entry_count; i++, at = 0)
        if (may_displace(h, &h->s->entries[i]))
            while ((node = next_node(&h->s->entries[i], &at)) != CLUSTER_NONE)
                h->by_node[h->starts[node + 1]++] = i;
    return 0;
}

static int hunt_init(struct hunt *h)
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

int preempt_for(struct sched *s, struct entry *e, int64_t now_usec, struct arena *arena,
                const uint32_t **ret, size_t *ret_count)
{
    struct hunt h = { .s = s, .e = e, .now_usec = now_usec, .arena = arena };
    const struct wish *wish;
    int r;

    if (e->type == SESSION_SYSTEM || hunt_init(&h) < 0)
        return e->type == SESSION_SYSTEM ? 0 : -ENOMEM;
    wish = entry_wish(s, e, arena, &r);
    for (uint32_t q = 0; r == 0 && q < e->req_count; q++) {
        struct price best = { .node = CLUSTER_NONE };

        if (!find_node(&h, e->reqs[q], wish, &best))
            return give_up(&h, e, q) < 0 ? -ENOMEM : 0;
        if ((r = take(&h, e, q, best.node)) < 0)
            (void)give_up(&h, e, q);
    }
    if (r < 0)
        return r;
    *ret = h.victims;
    *ret_count = h.victim_count;
    return 1;
}
