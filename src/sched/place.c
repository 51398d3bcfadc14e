/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - gang placement: agents for all requirements of a session, or for none */
#include <errno.h>
#include <string.h>

#include "sched/capacity.h"
#include "sched/scheduler_internal.h"

/* ---- placement constraints ---- */

/* The agents that have members of the session's placement group, and how many sessions. */
static int place_constraints_count_group(struct sched *s, const struct sched_entry *e,
                                         struct arena *arena,
                                         struct placement_constraints *constraints)
{
    uint32_t *counts = arena_array(arena, s->cluster.node_count + 1, sizeof(*counts));
    uint32_t *nodes = arena_array(arena, s->cluster.node_count + 1, sizeof(*nodes));
    uint32_t *seen = arena_array(arena, s->cluster.node_count + 1, sizeof(*seen));

    if (!counts || !nodes || !seen)
        return -ENOMEM;
    for (size_t i = 0; i < s->entry_count; i++) {
        const struct sched_entry *other = &s->entries[i];

        if (!other->more || !other->more->group || other == e
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
    return 0;
}

const struct placement_constraints *entry_constraints(struct sched *s, const struct sched_entry *e,
                                                      struct arena *arena, int *ret_r)
{
    const struct sched_entry_more *more = e->more;
    struct placement_constraints *constraints;

    *ret_r = 0;
    if (!more
        || (!more->designated_count && more->failed == CLUSTER_NONE
            && more->grouping == SCHED_UNGROUPED))
        return NULL;
    constraints = arena_alloc(arena, sizeof(*constraints));
    if (!constraints) {
        *ret_r = -ENOMEM;
        return NULL;
    }
    *constraints = (struct placement_constraints){ .designated = more->designated,
                                                   .designated_count = more->designated_count,
                                                   .designated_strict = more->designated_strict,
                                                   .failed = more->failed,
                                                   .grouping = more->grouping,
                                                   .grouping_strict = more->grouping_strict };
    if (more->grouping != SCHED_UNGROUPED && s->grouped)
        *ret_r = place_constraints_count_group(s, e, arena, constraints);
    return constraints;
}

/* ---- agents ---- */

bool entry_has_agent(const struct sched *s, const struct sched_entry *e, size_t req)
{
    const struct cluster *c = &s->cluster;

    for (uint32_t n = 0; n < c->node_count; n++)
        if (c->nodes[n].id && c->nodes[n].free[c->columns] != SCHED_ABSENT
            && cluster_matches(c, e->reqs[req], n))
            return true;
    return false;
}

/* ---- what could never be placed ---- */

/* Would the agent's devices hold it, if they were free? */
static int place_check_devices(const struct cluster *c, const struct slot_request *req,
                               const struct cluster_node *n, struct arena *arena)
{
    struct capacity_device *devices = arena_array(arena, n->device_count + 1u, sizeof(*devices));

    if (!devices)
        return -ENOMEM;
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
            return 0;
    }
    return 1;
}

/* How many of 'req' the agent could hold if it were empty, by its sums; 0 also if its devices
 * cannot hold one.
 */
static int place_count_node(const struct cluster *c, const struct slot_request *req, uint32_t node,
                            struct arena *arena, int64_t *ret)
{
    const struct cluster_node *n = &c->nodes[node];
    int r;

    *ret = 0;
    if (!n->id || n->free[c->columns] == SCHED_ABSENT || !cluster_matches(c, req, node))
        return 0;
    *ret = AMOUNT_INFINITE;
    if (!n->is_capacity_known)
        return 0;
    if (req->unknown)
        *ret = 0;
    for (size_t i = 0; i < c->columns; i++)
        if (req->amounts[i] > 0)
            *ret = AQ_MIN(*ret, n->capacity[i] / req->amounts[i]);
    if (*ret <= 0 || n->device_count == 0)
        return 0;
    r = place_check_devices(c, req, n, arena);
    if (r == 0)
        *ret = 0;
    return AQ_MIN(r, 0);
}

/* The same of all agents that 'e' may go to; as long as no agent changes, counted once for each
 * request.
 */
static int place_count_capacity(struct sched *s, const struct sched_entry *e,
                                struct slot_request *req, struct arena *arena, int64_t *ret)
{
    const struct sched_entry_more *more = e->more;
    bool is_designated = more && more->designated_count && more->designated_strict;
    const struct cluster *c = &s->cluster;
    int64_t count;

    *ret = req->capacity;
    if (!is_designated && req->capacity_version == c->agents_changed + 1)
        return 0;
    *ret = 0;
    for (uint32_t n = 0; n < (is_designated ? more->designated_count : c->node_count); n++) {
        uint32_t node = is_designated ? more->designated[n] : n;

        if (node == CLUSTER_NONE)
            continue;
        if (place_count_node(c, req, node, arena, &count) < 0)
            return -ENOMEM;
        if (__builtin_add_overflow(*ret, count, ret))
            *ret = AMOUNT_INFINITE;
    }
    if (!is_designated) {
        req->capacity = *ret;
        req->capacity_version = c->agents_changed + 1;
    }
    return 0;
}

int place_find_obstacle(struct sched *s, const struct sched_entry *e, struct arena *arena)
{
    for (uint32_t i = 0; i < e->req_count; i++)
        if (!entry_has_agent(s, e, i))
            return SCHED_NO_AGENT;
    for (uint32_t i = 0; i < e->req_count; i++) {
        int64_t capacity;
        uint32_t alike = 0;

        if (i > 0 && e->reqs[i] == e->reqs[i - 1])
            continue;
        for (uint32_t k = 0; k < e->req_count; k++)
            alike += e->reqs[k] == e->reqs[i];
        if (place_count_capacity(s, e, e->reqs[i], arena, &capacity) < 0)
            return -ENOMEM;
        if (capacity < alike)
            return SCHED_NO_CAPACITY;
    }
    return SCHED_NO_ROOM;
}

/* ---- placing ---- */

/* Give back what was held, as if it never had been: nothing became free. */
static int place_undo(struct sched *s, struct sched_entry *e, size_t count)
{
    uint64_t free_version = s->cluster.free_version;

    while (count-- > 0)
        if (entry_release(s, e, count) < 0)
            return -ENOMEM;
    for (uint32_t i = 0; i < e->req_count; i++)
        e->reqs[i]->no_room_version = 0; /* found beside what was held */
    s->cluster.free_version = free_version;
    return 0;
}

int place_entry(struct sched *s, struct sched_entry *e, struct arena *arena)
{
    const struct selector *selector = &s->options.selector;
    const struct placement_constraints *constraints;
    uint32_t node;
    int32_t device;
    int r;

    for (uint32_t i = 0; i < e->req_count; i++)
        if (e->reqs[i]->no_room_version == s->cluster.free_version)
            return place_find_obstacle(s, e, arena);
    constraints = entry_constraints(s, e, arena, &r);
    for (uint32_t i = 0; i < e->req_count && r == 0; i++) {
        r = select_node(&s->cluster, e->reqs[i], selector, constraints, &node, &device);
        if (r == 0 && node != CLUSTER_NONE && (r = candidates_note(s, e, i, node)) == 0)
            r = entry_hold(s, e, i, node, device);
        else if (r == 0)
            r = SCHED_NO_ROOM;
        if (r != 0) {
            bool is_full = e->req_count == 1
                           && e->reqs[0]->no_room_version == s->cluster.free_version;
            int u = place_undo(s, e, i);

            if (is_full)
                e->reqs[0]->no_room_version = s->cluster.free_version;
            if (u < 0 || r < 0)
                return -ENOMEM;
            return place_find_obstacle(s, e, arena);
        }
    }
    return r < 0 ? r : SCHED_PLACED;
}
