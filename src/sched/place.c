/* place.c - all requirements of a session, or none */
#include <errno.h>
#include <string.h>

#include "sched/state_private.h"

/* ---- wishes ---- */

/* The agents that have members of the group, and how many sessions. */
static int count_group(struct sched *s, const struct entry *e, struct arena *arena,
                       struct wish *wish)
{
    uint32_t *counts = arena_array(arena, s->cluster.node_count + 1, sizeof(*counts));
    uint32_t *nodes = arena_array(arena, s->cluster.node_count + 1, sizeof(*nodes));
    uint32_t *seen = arena_array(arena, s->cluster.node_count + 1, sizeof(*seen));

    if (!counts || !nodes || !seen)
        return -ENOMEM;
    for (size_t i = 0; i < s->entry_count; i++) {
        const struct entry *other = &s->entries[i];

        if (!other->more || !other->more->group || other == e ||
            strcmp(other->more->group, e->more->group) != 0)
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
            counts[wish->group_node_count] = counts[n];
            nodes[wish->group_node_count++] = n;
        }
    wish->group_nodes = nodes;
    wish->group_counts = counts;
    return 0;
}

const struct wish *entry_wish(struct sched *s, const struct entry *e, struct arena *arena,
                              int *ret_r)
{
    const struct entry_more *more = e->more;
    struct wish *wish;

    *ret_r = 0;
    if (!more || (!more->designated_count && more->failed == CLUSTER_NONE &&
                  more->grouping == SCHED_UNGROUPED))
        return NULL;
    wish = arena_alloc(arena, sizeof(*wish));
    if (!wish) {
        *ret_r = -ENOMEM;
        return NULL;
    }
    *wish = (struct wish){ .designated = more->designated,
        .designated_count = more->designated_count, .designated_strict = more->designated_strict,
        .failed = more->failed, .grouping = more->grouping,
        .grouping_strict = more->grouping_strict };
    if (more->grouping != SCHED_UNGROUPED && s->grouped)
        *ret_r = count_group(s, e, arena, wish);
    return wish;
}

/* ---- placing ---- */

bool entry_has_agent(const struct sched *s, const struct entry *e, size_t req)
{
    const struct cluster *c = &s->cluster;

    for (uint32_t n = 0; n < c->node_count; n++)
        if (c->nodes[n].id && c->nodes[n].free[c->columns] != SCHED_ABSENT &&
            cluster_matches(c, e->reqs[req], n))
            return true;
    return false;
}

/* Give back what was held, as if it never had been: nothing became free. */
static int undo(struct sched *s, struct entry *e, size_t count)
{
    uint64_t grown = s->cluster.grown;

    while (count-- > 0)
        if (state_release(s, e, count) < 0)
            return -ENOMEM;
    for (uint32_t i = 0; i < e->req_count; i++)
        e->reqs[i]->full_at = 0; /* found beside what was held */
    s->cluster.grown = grown;
    return 0;
}

int place_entry(struct sched *s, struct entry *e, struct arena *arena)
{
    const struct selector *selector = &s->options.selector;
    const struct wish *wish;
    uint32_t node;
    int32_t device;
    int r;

    for (uint32_t i = 0; i < e->req_count; i++)
        if (e->reqs[i]->full_at == s->cluster.grown)
            return entry_has_agent(s, e, i) ? SCHED_NO_ROOM : SCHED_NO_AGENT;
    wish = entry_wish(s, e, arena, &r);
    for (uint32_t i = 0; i < e->req_count && r == 0; i++) {
        r = select_node(&s->cluster, e->reqs[i], selector, wish, &node, &device);
        if (r == 0 && node != CLUSTER_NONE && (r = choice_note(s, e, i, node)) == 0)
            r = state_hold(s, e, i, node, device);
        else if (r == 0)
            r = entry_has_agent(s, e, i) ? SCHED_NO_ROOM : SCHED_NO_AGENT;
        if (r != 0) {
            bool is_full = e->req_count == 1 && e->reqs[0]->full_at == s->cluster.grown;
            int u = undo(s, e, i);

            if (is_full)
                e->reqs[0]->full_at = s->cluster.grown;
            return u < 0 ? u : r;
        }
    }
    return r < 0 ? r : SCHED_PLACED;
}
