/* SPDX-License-Identifier: Apache-2.0 */
/* select_node.c - the search for an agent, and the selectors that compare amounts
 *
 * The best agent is the one that 'compare' of the selector prefers over a
 * list of columns: first how many slots the agent has free that the request
 * does not want (a GPU node should not be filled with work that needs none),
 * then what is left of each slot that the request names: those of the
 * configured device names first, then by name. The last word has the id.
 */
#include "sched/select_node.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memory.h"

static int select_compare_rows(const struct sched_candidate *a, const struct sched_candidate *b,
                               int sign, int64_t absent)
{
    if (a->unutilized != b->unutilized)
        return a->unutilized < b->unutilized ? -1 : 1;
    for (size_t i = 0; i < a->count; i++) {
        int64_t x = a->free[i] == SCHED_ABSENT ? absent : a->free[i];
        int64_t y = b->free[i] == SCHED_ABSENT ? absent : b->free[i];

        if (x != y)
            return x < y ? -sign : sign;
    }
    return 0;
}

/* The least that is left, so that large requests still find whole agents. */
static int select_node_compare_concentrated(const struct sched_candidate *a,
                                            const struct sched_candidate *b)
{
    return select_compare_rows(a, b, 1, INT64_MAX);
}

/* The most that is left. */
static int select_node_compare_dispersed(const struct sched_candidate *a,
                                         const struct sched_candidate *b)
{
    return select_compare_rows(a, b, -1, INT64_MIN);
}

const struct selector_ops sched_concentrated = { .name = "concentrated",
                                                 .compare = select_node_compare_concentrated };
const struct selector_ops sched_dispersed = { .name = "dispersed",
                                              .spreads = true,
                                              .compare = select_node_compare_dispersed };
/* Backend.AI's first selector chose as the dispersed one does. */
const struct selector_ops sched_legacy = { .name = "legacy",
                                           .spreads = true,
                                           .compare = select_node_compare_dispersed };

const struct selector_ops *sched_find_selector(const char *name)
{
    static const struct selector_ops *const all[] = { &sched_concentrated, &sched_dispersed,
                                                      &sched_legacy,       &sched_round_robin,
                                                      &sched_bin_packing,  &sched_high_performance,
                                                      &sched_fragmentation };

    if (strcmp(name, "round-robin") == 0)
        return &sched_round_robin;
    for (size_t i = 0; i < AQ_COUNT(all); i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

/* ---- comparing ---- */

#define COMPARED_MAX 64

static void select_fill(const struct cluster *c, const struct slot_request *req, uint32_t state,
                        int64_t values[COMPARED_MAX], struct sched_candidate *ret)
{
    const struct node_state *s = &c->states[state];

    *ret = (struct sched_candidate){ .agent_id = c->nodes[s->members[0]].id,
                                     .unutilized = (int)req->fits[state].score,
                                     .free = values,
                                     .count = AQ_MIN((size_t)req->order_count,
                                                     (size_t)COMPARED_MAX) };
    for (size_t i = 0; i < ret->count; i++)
        values[i] = s->free[req->order[i]];
}

static int select_node_compare_amounts(const struct cluster *c, const struct slot_request *req,
                                       const struct selector *selector, uint32_t a, uint32_t b)
{
    int64_t x[COMPARED_MAX], y[COMPARED_MAX];
    struct sched_candidate first, second;

    select_fill(c, req, a, x, &first);
    select_fill(c, req, b, y, &second);
    return selector->ops->compare(&first, &second);
}

int select_compare(const struct cluster *c, struct slot_request *req,
                   const struct selector *selector, uint32_t a, uint32_t b)
{
    double p = req->fits[a].score, q = req->fits[b].score;

    if (req->fits[a].is_split != req->fits[b].is_split)
        return req->fits[a].is_split ? 1 : -1;
    return selector->ops->compare ? select_node_compare_amounts(c, req, selector, a, b)
                                  : (p < q) - (p > q);
}

/* ---- placement constraints ---- */

static bool select_contains(const uint32_t *nodes, uint32_t count, uint32_t node, uint32_t *ret_at)
{
    for (uint32_t i = 0; i < count; i++)
        if (nodes[i] == node) {
            *ret_at = i;
            return true;
        }
    return false;
}

bool placement_allows(const struct placement_constraints *constraints, uint32_t node,
                      int64_t *ret_rank)
{
    uint32_t at, members;
    bool is_designated;
    int64_t rank = 0;

    if ((constraints->ranks && constraints->ranks[node] == PLACEMENT_EXCLUDED)
        || (constraints->is_single && node != constraints->single)
        || (constraints->is_excluding && node == constraints->excluded))
        return false;
    is_designated = select_contains(constraints->designated, constraints->designated_count, node,
                                    &at);
    members = select_contains(constraints->group_nodes, constraints->group_node_count, node, &at)
                  ? constraints->group_counts[at]
                  : 0;
    if (constraints->designated_count && !is_designated && constraints->designated_strict)
        return false;
    if (constraints->grouping_strict && constraints->grouping == SCHED_SPREAD && members)
        return false;
    /* the first of a group that packs goes anywhere */
    if (constraints->grouping_strict && constraints->grouping == SCHED_PACK && !members
        && constraints->group_node_count)
        return false;
    if (constraints->grouping == SCHED_SPREAD)
        rank = members;
    else if (constraints->grouping == SCHED_PACK)
        rank = -(int64_t)members;
    *ret_rank = (constraints->designated_count && !is_designated ? INT64_C(1) << 32 : 0) + rank * 2
                + (node == constraints->failed && !is_designated);
    if (constraints->ranks)
        *ret_rank = *ret_rank * PLACEMENT_RANKS + constraints->ranks[node];
    return true;
}

/* The selector has the last word among those that the constraints likes as well as 'best'. */
static void select_node_pick_among_nodes(struct cluster *c, struct slot_request *req,
                                         const struct selector *selector,
                                         const struct placement_constraints *constraints,
                                         int64_t best_rank, uint32_t *best, int32_t *device)
{
    AQ_CLEANUP(aq_freep) uint32_t *nodes = aq_alloc_array(c->node_count, sizeof(*nodes));
    struct node_list allowed = { nodes, 0 };

    for (uint32_t n = 0; n < c->node_count; n++) {
        int64_t rank;

        if (!placement_allows(constraints, n, &rank) || rank != best_rank)
            continue;
        if (cluster_fit(c, req, c->nodes[n].state, selector)->has_room)
            nodes[allowed.count++] = n;
    }
    *best = selector->ops->pick(selector->data, c, req, selector, &allowed, *best, device);
}

static uint32_t select_among_nodes(struct cluster *c, struct slot_request *req,
                                   const struct selector *selector,
                                   const struct placement_constraints *constraints,
                                   int32_t *ret_device)
{
    uint32_t best = CLUSTER_NONE;
    uint32_t from = constraints->is_single ? constraints->single : 0;
    uint32_t to = constraints->is_single ? from + 1 : (uint32_t)c->node_count;
    int64_t best_rank = 0;

    for (uint32_t n = from; n < to; n++) {
        const struct fit *fit;
        int64_t rank;
        int order;

        if (!placement_allows(constraints, n, &rank) || (best != CLUSTER_NONE && rank > best_rank))
            continue;
        fit = cluster_fit(c, req, c->nodes[n].state, selector);
        if (!fit->has_room)
            continue;
        order = best == CLUSTER_NONE || rank < best_rank ? -1 : 0;
        if (order == 0)
            order = select_compare(c, req, selector, c->nodes[n].state, c->nodes[best].state);
        if (order < 0 || (order == 0 && strcmp(c->nodes[n].id, c->nodes[best].id) < 0)) {
            best = n;
            *ret_device = fit->device;
            best_rank = rank;
        }
    }
    if (best != CLUSTER_NONE && selector->ops->pick)
        select_node_pick_among_nodes(c, req, selector, constraints, best_rank, &best, ret_device);
    return best;
}

/* ---- the search ---- */

/* Is 'state' better than the best so far? Of equals the first by id is. */
static bool select_is_better(const struct cluster *c, struct slot_request *req,
                             const struct selector *selector, uint32_t state, uint32_t best)
{
    int order = best == CLUSTER_NONE ? -1 : select_compare(c, req, selector, state, best);

    if (order == 0)
        order = strcmp(c->nodes[c->states[state].members[0]].id,
                       c->nodes[c->states[best].members[0]].id);
    return order < 0;
}

/* The best of those whose score is known; and whose bound is highest. */
static void select_node_scan_known(struct cluster *c, struct slot_request *req,
                                   const struct selector *selector, uint32_t *ret_best,
                                   uint32_t *ret_promising)
{
    size_t lead = cluster_lead_column(c, req);
    const int64_t *free = cluster_free(c, lead);

    *ret_best = *ret_promising = CLUSTER_NONE;
    for (uint32_t s = 0; s < c->state_count; s++) {
        const struct fit *fit;

        if (free[s] < req->amounts[lead])
            continue;
        fit = cluster_fit_bound(c, req, s, selector);
        if (!fit->has_room)
            continue;
        if (!fit->is_bound) {
            if (select_is_better(c, req, selector, s, *ret_best))
                *ret_best = s;
        } else if (*ret_promising == CLUSTER_NONE || fit->score > req->fits[*ret_promising].score) {
            *ret_promising = s;
        }
    }
}

/* CLUSTER_NONE if none has room. */
static uint32_t select_among_states(struct cluster *c, struct slot_request *req,
                                    const struct selector *selector)
{
    size_t lead = cluster_lead_column(c, req);
    const int64_t *free = cluster_free(c, lead);
    uint32_t best, promising;

    select_node_scan_known(c, req, selector, &best, &promising);
    if (promising == CLUSTER_NONE)
        return best;
    (void)cluster_fit(c, req, promising, selector);
    if (select_is_better(c, req, selector, promising, best))
        best = promising;
    for (uint32_t s = 0; s < AQ_MIN((size_t)req->fit_count, c->state_count); s++) {
        const struct fit *fit = &req->fits[s];

        if (free[s] < req->amounts[lead] || !fit->has_room || !fit->is_bound
            || (fit->score < req->fits[best].score && fit->is_split >= req->fits[best].is_split))
            continue;
        (void)cluster_fit(c, req, s, selector);
        if (select_is_better(c, req, selector, s, best))
            best = s;
    }
    return best;
}

uint32_t select_node(struct cluster *c, struct slot_request *req, const struct selector *selector,
                     const struct placement_constraints *constraints, int32_t *ret_device)
{
    uint32_t state, node;

    *ret_device = -1;
    if (req->no_room_version == c->free_version)
        return CLUSTER_NONE; /* nothing has become free since */
    if (constraints)
        return select_among_nodes(c, req, selector, constraints, ret_device);
    if ((state = select_among_states(c, req, selector)) == CLUSTER_NONE) {
        req->no_room_version = c->free_version;
        return CLUSTER_NONE;
    }
    assert(req->fits[state].has_room && !req->fits[state].is_bound);
    node = c->states[state].members[0];
    *ret_device = req->fits[state].device;
    return selector->ops->pick
               ? selector->ops->pick(selector->data, c, req, selector, NULL, node, ret_device)
               : node;
}
