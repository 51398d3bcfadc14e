/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - gang placement: agents for all requirements of a session, or for none */
#include <string.h>

#include "sched/capacity.h"
#include "sched/gang.h"
#include "sched/reach.h"
#include "sched/topology.h"

/* ---- placement constraints ---- */

/* The agents that have members of the session's placement group, and how many sessions. */
static void place_constraints_count_group(struct sched *s, const struct sched_entry *e,
                                          struct arena *arena,
                                          struct placement_constraints *constraints)
{
    uint32_t *counts = arena_array(arena, s->cluster.node_count + 1, sizeof(*counts));
    uint32_t *nodes = arena_array(arena, s->cluster.node_count + 1, sizeof(*nodes));
    uint32_t *seen = arena_array(arena, s->cluster.node_count + 1, sizeof(*seen));

    for (size_t i = 0; i < s->entry_count; i++) {
        const struct sched_entry *other = &s->entries[i];

        if (!other->more || !other->more->group || other->row == e->row
            || strcmp(other->more->group, e->more->group) != 0)
            continue;
        for (uint32_t q = 0; q < other->req_count; q++) {
            uint32_t node = other->holds[q].node;

            if (node != CLUSTER_NONE && seen[node] != i + 1) {
                seen[node] = (uint32_t)i + 1; /* a session counts once */
                counts[node]++;
            }
        }
    }
    for (uint32_t n = 0; n < s->cluster.node_count; n++)
        if (counts[n]) {
            counts[constraints->group_node_count] = counts[n];
            nodes[constraints->group_node_count++] = n;
        }
    constraints->group_nodes = nodes;
    constraints->group_counts = counts;
}

/* Rank agents for a kernel that joins a session: where that is already, unless the selector
 * spreads, then near to there. Agents out of reach of the others are excluded.
 */
static const uint32_t *place_constraints_rank_beside(struct sched *s, const struct sched_entry *e,
                                                     struct arena *arena)
{
    const struct cluster *c = &s->cluster;
    const struct topology *t = topology_of(&s->cluster);
    uint32_t *ranks = arena_array(arena, c->node_count + 1, sizeof(*ranks));
    bool *has_kernel = arena_array(arena, c->node_count + 1, sizeof(*has_kernel));

    for (size_t i = 0; i < s->entry_count; i++) {
        const struct sched_entry *other = &s->entries[i];

        for (uint32_t q = 0; other->row == e->row && q < other->req_count; q++)
            if (other != e && entry_is_holding(other) && other->holds[q].node != CLUSTER_NONE)
                has_kernel[other->holds[q].node] = true;
    }
    for (size_t i = t->subtree_count; i-- > 0;) { /* the deepest has the last word */
        const struct subtree *subtree = &t->subtrees[i];
        bool has_any = false;

        for (uint32_t k = 0; k < subtree->count; k++)
            has_any |= has_kernel[t->order[subtree->first + k]];
        for (uint32_t k = 0; has_any && k < subtree->count; k++)
            ranks[t->order[subtree->first + k]] = 1 + t->subtrees[0].depth - subtree->depth;
    }
    for (uint32_t node = 0; node < c->node_count; node++) {
        if (!has_kernel[node])
            continue;
        if (!s->options.selector.ops->spreads)
            ranks[node] = 0;
        for (uint32_t n = 0; e->needs_network && n < c->node_count; n++)
            if (!reach_is_connected(c, node, n))
                ranks[n] = PLACEMENT_EXCLUDED;
    }
    return ranks;
}

const struct placement_constraints *entry_constraints(struct sched *s, const struct sched_entry *e,
                                                      struct arena *arena)
{
    const struct sched_entry_more *more = e->more;
    bool has_more = more
                    && (more->designated_count || more->failed != CLUSTER_NONE
                        || more->grouping != SCHED_UNGROUPED);
    struct placement_constraints *constraints;

    if (!has_more && e->unit == SCHED_SESSION)
        return NULL;
    constraints = arena_alloc(arena, sizeof(*constraints));
    *constraints = (struct placement_constraints){ .failed = CLUSTER_NONE };
    if (e->unit != SCHED_SESSION)
        constraints->ranks = place_constraints_rank_beside(s, e, arena);
    if (!has_more)
        return constraints;
    constraints->designated = more->designated;
    constraints->designated_count = more->designated_count;
    constraints->designated_strict = more->designated_strict;
    constraints->failed = more->failed;
    constraints->grouping = more->grouping;
    constraints->grouping_strict = more->grouping_strict;
    if (more->grouping != SCHED_UNGROUPED && s->grouped)
        place_constraints_count_group(s, e, arena, constraints);
    return constraints;
}

/* ---- agents ---- */

bool entry_has_agent(const struct sched *s, const struct sched_entry *e, size_t req)
{
    const struct cluster *c = &s->cluster;

    for (uint32_t n = 0; n < c->node_count; n++)
        if (c->nodes[n].free[c->columns] != SCHED_ABSENT && cluster_matches(c, e->reqs[req], n))
            return true;
    return false;
}

/* ---- what could never be placed ---- */

/* Would the agent's devices hold it, if they were free? */
static bool place_check_devices(const struct cluster *c, const struct slot_request *req,
                                const struct cluster_node *n, struct arena *arena)
{
    struct capacity_device *devices = arena_array(arena, n->device_count + 1u, sizeof(*devices));

    for (size_t column = 0; column < c->columns; column++) {
        size_t count = 0;
        bool is_listed = false;

        for (uint32_t d = 0; req->amounts[column] > 0 && d < n->device_count; d++) {
            if (n->devices[d].column != column)
                continue;
            is_listed = true;
            if (req->models >> n->devices[d].model & 1)
                devices[count++] = (struct capacity_device){ n->devices[d].capacity,
                                                             c->quanta[n->devices[d].quantum] };
        }
        if (is_listed
            && capacity_floor(devices, count, req->may_split, req->amounts[column])
                   != req->amounts[column])
            return false;
    }
    return true;
}

/* How many of 'req' the agent could hold if it were empty, by its sums; 0 also if its devices
 * cannot hold one.
 */
static int64_t place_count_node(const struct cluster *c, const struct slot_request *req,
                                uint32_t node, struct arena *arena)
{
    const struct cluster_node *n = &c->nodes[node];
    int64_t count = AMOUNT_INFINITE;

    if (n->free[c->columns] == SCHED_ABSENT || !cluster_matches(c, req, node))
        return 0;
    if (!n->is_capacity_known)
        return AMOUNT_INFINITE;
    if (req->unknown)
        return 0;
    for (size_t i = 0; i < c->columns; i++)
        if (req->amounts[i] > 0)
            count = AQ_MIN(count, n->capacity[i] / req->amounts[i]);
    return count > 0 && n->device_count && !place_check_devices(c, req, n, arena) ? 0 : count;
}

/* The same of all agents that 'e' may go to; as long as no agent changes, counted once for each
 * request.
 */
static int64_t place_count_capacity(struct sched *s, const struct sched_entry *e,
                                    struct slot_request *req, struct arena *arena)
{
    const struct sched_entry_more *more = e->more;
    bool is_designated = more && more->designated_count && more->designated_strict;
    const struct cluster *c = &s->cluster;
    int64_t sum = 0;

    if (!is_designated && req->capacity_version == c->agents_changed + 1)
        return req->capacity;
    for (uint32_t n = 0; n < (is_designated ? more->designated_count : c->node_count); n++) {
        uint32_t node = is_designated ? more->designated[n] : n;

        if (node != CLUSTER_NONE
            && __builtin_add_overflow(sum, place_count_node(c, req, node, arena), &sum))
            sum = AMOUNT_INFINITE;
    }
    if (!is_designated) {
        req->capacity = sum;
        req->capacity_version = c->agents_changed + 1;
    }
    return sum;
}

static uint32_t place_count_alike(const struct sched_entry *e, uint32_t q)
{
    uint32_t alike = 0;

    for (uint32_t k = 0; k < e->req_count; k++)
        alike += e->reqs[k] == e->reqs[q];
    return alike;
}

/* Could the agents of one class, or one agent, hold all if they were empty? */
static bool place_could_connect(struct sched *s, const struct sched_entry *e, uint16_t network,
                                uint32_t single, struct arena *arena)
{
    const struct cluster *c = &s->cluster;

    for (uint32_t i = 0; i < e->req_count; i++) {
        int64_t sum = 0;

        if (i > 0 && e->reqs[i] == e->reqs[i - 1])
            continue;
        for (uint32_t n = 0; n < c->node_count; n++)
            if ((n == single || (network && c->nodes[n].network == network))
                && __builtin_add_overflow(sum, place_count_node(c, e->reqs[i], n, arena), &sum))
                sum = AMOUNT_INFINITE;
        if (sum < place_count_alike(e, i))
            return false;
    }
    return true;
}

static bool place_has_network(struct sched *s, const struct sched_entry *e, struct arena *arena)
{
    const struct cluster *c = &s->cluster;

    if (!e->needs_network || e->req_count == 1)
        return true;
    for (uint16_t network = 1; network <= c->network_count; network++)
        if (place_could_connect(s, e, network, CLUSTER_NONE, arena))
            return true;
    for (uint32_t n = 0; n < c->node_count; n++)
        if (c->nodes[n].network == 0 && place_could_connect(s, e, 0, n, arena))
            return true;
    return false;
}

enum sched_verdict place_find_obstacle(struct sched *s, const struct sched_entry *e,
                                       struct arena *arena)
{
    for (uint32_t i = 0; i < e->req_count; i++)
        if (!entry_has_agent(s, e, i))
            return SCHED_NO_AGENT;
    for (uint32_t i = 0; i < e->req_count; i++) {
        if (i > 0 && e->reqs[i] == e->reqs[i - 1])
            continue;
        if (place_count_capacity(s, e, e->reqs[i], arena) < place_count_alike(e, i))
            return SCHED_NO_CAPACITY;
    }
    return place_has_network(s, e, arena) ? SCHED_NO_ROOM : SCHED_NO_CAPACITY;
}

/* ---- placing ---- */

struct place_now {
    struct sched *s;
    struct sched_entry *e;
};

static uint32_t place_count_room(void *data, struct slot_request *req, uint32_t node)
{
    const struct place_now *p = data;
    struct cluster *c = &p->s->cluster;
    const struct node_state *state = &c->states[c->nodes[node].state];

    return cluster_fit_bound(c, req, c->nodes[node].state, &p->s->options.selector)->has_room
               ? fit_count_row(c, req, state->free, state->devices, state->device_count)
               : 0;
}

static uint32_t place_hold(void *data, uint32_t q, const struct placement_constraints *constraints)
{
    struct place_now *p = data;
    int32_t device;
    uint32_t node = select_node(&p->s->cluster, p->e->reqs[q], &p->s->options.selector, constraints,
                                &device);

    if (node != CLUSTER_NONE) {
        candidates_note(p->s, p->e, q, node);
        entry_hold(p->s, p->e, q, node, device);
    }
    return node;
}

/* Give back what was held, as if it never had been: nothing became free. */
static void place_undo(void *data, uint32_t q, const struct placement_constraints *constraints)
{
    struct place_now *p = data;
    struct cluster *c = &p->s->cluster;
    uint64_t free_version = c->free_version;
    bool is_full = p->e->req_count == 1 && p->e->reqs[0]->no_room_version == free_version;

    (void)constraints;
    while (q-- > 0)
        entry_release(p->s, p->e, q);
    for (uint32_t i = 0; i < p->e->req_count; i++)
        p->e->reqs[i]->no_room_version = 0; /* found beside what was held */
    if (is_full)
        p->e->reqs[0]->no_room_version = free_version;
    c->free_version = free_version;
}

enum sched_verdict place_entry(struct sched *s, struct sched_entry *e, struct arena *arena)
{
    static const struct gang_ops ops = { place_count_room, place_hold, place_undo };
    struct place_now p = { s, e };

    for (uint32_t i = 0; i < e->req_count; i++)
        if (e->reqs[i]->no_room_version == s->cluster.free_version)
            return place_find_obstacle(s, e, arena);
    return gang_place(s, e, entry_constraints(s, e, arena), &ops, &p, arena)
               ? SCHED_PLACED
               : place_find_obstacle(s, e, arena);
}
