/* SPDX-License-Identifier: Apache-2.0 */
/* migrate.c - which running sessions start elsewhere, so that one that waits can start here
 *
 * Nobody loses a place: a session that migrates has another place held for it before
 * it is stopped, and starts there, ahead of the queue, when it comes back
 * (reservation.c). It is stopped as a whole: its containers on this agent go
 * elsewhere, those on other agents start again where they were, and if one of
 * them has no place, none migrates. As few sessions migrate as will do,
 * MIGRATIONS_MAX for each requirement at most: of the agents the one with the
 * fewest, then whose are least important, then whose have run least, is
 * chosen. All combinations are tried, the youngest first, as far as TRIES_MAX
 * goes in one pass and session.
 *
 * With backfill a place is only what stays free in the forecast as long as its
 * session lives: a session with a start time keeps it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sched/gang.h"
#include "sched/reach.h"
#include "sched/victim_search.h"

#define MIGRATIONS_MAX 3
#define CANDIDATES_MAX 32 /* on one agent */
#define TRIES_MAX 20000

/* What it takes to make room on 'node'. */
struct migrate_plan {
    uint32_t node;
    uint32_t count;
    uint32_t movers[MIGRATIONS_MAX];
    int job_priority;  /* the highest among them */
    int64_t lost_usec; /* how long they have run together */
};

/* A container that leaves the agent. */
struct migrate_container {
    uint32_t mover, q; /* index in the plan; its requirement */
    double size;       /* see victim_search_contribution() */
};

struct migrate_search {
    struct victim_search search;
    struct forecast *forecast; /* NULL without backfill */
    struct selector_ops
        plain; /* the resource group's selector without its pick(): it may draw or count */
    struct selector selector;
    struct slot_request *req;
    uint32_t q; /* which that is */
    uint32_t chosen[MIGRATIONS_MAX];
    uint32_t size; /* of the combinations under way */
    uint32_t tries;
    struct migrate_container *containers; /* scratch */
    struct migrate_plan best;
};

static bool migrate_is_evictable(const struct victim_search *vs, const struct sched_entry *v)
{
    return v->status == ENTRY_PLACED && v->is_movable && !v->is_victim
           && v->placed_in_pass != vs->s->pass_count && v->job_priority <= vs->e->job_priority
           && v->started_usec <= vs->now_usec - vs->s->options.preemption.min_runtime_usec
           && victim_search_is_same_scope(vs->e, v) && !reservation_find(vs->s, v->row);
}

/* ---- places elsewhere ---- */

/* The last 'count' records. */
static void migrate_unreserve_last(struct migrate_search *m, const uint32_t *movers, uint32_t count)
{
    struct sched *s = m->search.s;
    uint64_t free_version = s->cluster.free_version;

    while (count-- > 0) {
        if (m->forecast)
            forecast_change_holds(m->forecast, &s->entries[movers[count]],
                                  s->reservations[s->reservation_count - 1].holds, 1);
        reservation_release(s, s->reservations[s->reservation_count - 1].row);
    }
    s->cluster.free_version = free_version; /* nothing has become free */
}

/* The agents that reach those of the session's other containers, where these stay or have their new
 * place.
 */
static const uint32_t *migrate_rank_reachable(struct migrate_search *m, const struct sched_entry *v,
                                              uint32_t but, const struct hold *holds)
{
    const struct cluster *c = &m->search.s->cluster;
    uint32_t *ranks = arena_array(m->search.arena, c->node_count, sizeof(*ranks));

    for (uint32_t q = 0; q < v->req_count; q++) {
        uint32_t node = holds[q].node != CLUSTER_NONE ? holds[q].node : v->holds[q].node;

        for (uint32_t n = 0; node != but && n < c->node_count; n++)
            if (!reach_is_connected(c, node, n))
                ranks[n] = PLACEMENT_EXCLUDED;
    }
    return ranks;
}

/* Another place for container 'q' than on 'but', into holds[q]; false if there is none. */
static bool migrate_hold_elsewhere(struct migrate_search *m, const struct sched_entry *v,
                                   uint32_t q, uint32_t but, struct hold *holds)
{
    static const struct placement_constraints none = { .failed = CLUSTER_NONE };
    struct cluster *c = &m->search.s->cluster;
    const struct placement_constraints *constraints = entry_constraints(m->search.s, v,
                                                                        m->search.arena);
    struct placement_constraints elsewhere = constraints ? *constraints : none;
    int32_t device = -1;
    uint32_t node;
    bool is_full;

    elsewhere.is_excluding = true;
    elsewhere.excluded = but;
    if (v->needs_network && v->req_count > 1)
        elsewhere.ranks = migrate_rank_reachable(m, v, but, holds);
    node = m->forecast ? forecast_select_node(m->forecast, v, q, &elsewhere, &is_full)
                       : select_node(c, v->reqs[q], &m->selector, &elsewhere, &device);
    if (node == CLUSTER_NONE)
        return false;
    if (m->forecast) {
        forecast_hold(m->forecast, v, q, node, v->reqs[q]->fits[c->nodes[node].state].device,
                      &holds[q]);
    } else {
        cluster_hold(c, node, v->reqs[q], device, &holds[q].parts, &holds[q].part_count);
        holds[q].node = node;
    }
    return true;
}

/* A container starts again where it was, on the same devices; false if others have been promised
 * what it would need for longer. Until it has stopped its resources are held twice.
 */
static bool migrate_stay(struct migrate_search *m, const struct sched_entry *v, uint32_t q,
                         struct hold *ret)
{
    const struct hold *now = &v->holds[q];

    if (m->forecast) {
        if (!forecast_fits(m->forecast, v, q, now->node))
            return false;
        forecast_hold(m->forecast, v, q, now->node, -1, ret);
        return true;
    }
    ret->parts = aq_alloc_array((size_t)now->part_count + 1, sizeof(*ret->parts));
    if (now->part_count)
        memcpy(ret->parts, now->parts, now->part_count * sizeof(*ret->parts));
    ret->part_count = now->part_count;
    cluster_hold_parts(&m->search.s->cluster, now->node, v->reqs[q], ret->parts, ret->part_count);
    ret->node = now->node;
    return true;
}

/* The containers that leave 'node', the largest first: they find a place least easily. */
static uint32_t migrate_list_containers(struct migrate_search *m, uint32_t node,
                                        const uint32_t *movers, uint32_t count)
{
    const struct victim_search *vs = &m->search;
    uint32_t containers = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct sched_entry *v = &vs->s->entries[movers[i]];

        for (uint32_t q = 0; q < v->req_count; q++) {
            struct migrate_container p = { i, q,
                                           victim_search_relative_size(vs, v->reqs[q], m->req) };
            uint32_t at = containers;

            if (v->holds[q].node != node)
                continue;
            for (; at > 0 && m->containers[at - 1].size < p.size; at--)
                m->containers[at] = m->containers[at - 1];
            m->containers[at] = p;
            containers++;
        }
    }
    return containers;
}

/* Fill the records of the movers, the last ones; false if there is no place for one. */
static bool migrate_fill_targets(struct migrate_search *m, uint32_t node, const uint32_t *movers,
                                 uint32_t count)
{
    struct sched *s = m->search.s;
    struct reservation *to = &s->reservations[s->reservation_count - count];
    uint32_t containers = migrate_list_containers(m, node, movers, count);

    for (uint32_t i = 0; i < containers; i++) {
        const struct migrate_container *p = &m->containers[i];

        if (!migrate_hold_elsewhere(m, &s->entries[movers[p->mover]], p->q, node,
                                    to[p->mover].holds))
            return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct sched_entry *v = &s->entries[movers[i]];

        for (uint32_t q = 0; q < v->req_count; q++)
            if (v->holds[q].node != node && !migrate_stay(m, v, q, &to[i].holds[q]))
                return false;
    }
    return true;
}

/* Hold another place for each; false, with nothing held, if there is none for one of them. */
static bool migrate_hold_targets(struct migrate_search *m, uint32_t node, const uint32_t *movers,
                                 uint32_t count)
{
    struct sched *s = m->search.s;

    for (uint32_t i = 0; i < count; i++) {
        const struct sched_entry *v = &s->entries[movers[i]];

        reservation_add(s, v->row, v->lifetime_usec, v->reqs, v->req_count);
    }
    if (migrate_fill_targets(m, node, movers, count))
        return true;
    migrate_unreserve_last(m, movers, count);
    return false;
}

/* ---- whom ---- */

static void migrate_sort_by_size(const struct migrate_search *m, uint32_t node, uint32_t *movers,
                                 uint32_t count)
{
    const struct victim_search *vs = &m->search;

    for (uint32_t i = 1; i < count; i++)
        for (uint32_t at = i; at > 0; at--) {
            uint32_t a = movers[at - 1], b = movers[at];

            if (victim_search_contribution(vs, &vs->s->entries[a], node, m->req)
                >= victim_search_contribution(vs, &vs->s->entries[b], node, m->req))
                break;
            movers[at - 1] = b;
            movers[at] = a;
        }
}

static void migrate_cost(const struct migrate_search *m, struct migrate_plan *p)
{
    p->job_priority = INT32_MIN;
    p->lost_usec = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct sched_entry *v = &m->search.s->entries[p->movers[i]];

        p->job_priority = AQ_MAX(p->job_priority, v->job_priority);
        p->lost_usec += m->search.now_usec - v->started_usec;
    }
}

static bool migrate_is_cheaper(const struct migrate_search *m, const struct migrate_plan *a,
                               const struct migrate_plan *b)
{
    const struct cluster_node *nodes = m->search.s->cluster.nodes;

    if (b->node == CLUSTER_NONE || a->job_priority != b->job_priority)
        return b->node == CLUSTER_NONE || a->job_priority < b->job_priority;
    if (a->lost_usec != b->lost_usec)
        return a->lost_usec < b->lost_usec;
    return a->node != b->node && strcmp(nodes[a->node].id, nodes[b->node].id) < 0;
}

/* In the forecast the migrated sessions end now (1), or do not (-1). */
static void migrate_forecast_gone(struct migrate_search *m, const struct migrate_plan *p, int sign)
{
    for (uint32_t i = 0; m->forecast && i < p->count; i++)
        forecast_assume_gone(m->forecast, &m->search.s->entries[p->movers[i]], sign);
}

/* It fits without the chosen ones: can all of them go elsewhere, and is it worth it? */
static void migrate_consider(struct migrate_search *m, uint32_t node)
{
    struct migrate_plan p = { .node = node, .count = m->size };

    memcpy(p.movers, m->chosen, m->size * sizeof(p.movers[0]));
    migrate_cost(m, &p);
    if (!migrate_is_cheaper(m, &p, &m->best))
        return;
    migrate_sort_by_size(m, node, p.movers, p.count);
    migrate_forecast_gone(m, &p, 1);
    if ((!m->forecast || forecast_fits(m->forecast, m->search.e, m->q, node))
        && migrate_hold_targets(m, node, p.movers, p.count)) {
        migrate_unreserve_last(m, p.movers, p.count);
        m->best = p;
    }
    migrate_forecast_gone(m, &p, -1);
}

/* All combinations that begin with chosen[0 .. depth). */
static void migrate_combine(struct migrate_search *m, uint32_t node, uint32_t from, uint32_t depth)
{
    struct victim_search *vs = &m->search;

    if (depth >= AQ_MIN(m->size, MIGRATIONS_MAX)) {
        m->tries++;
        if (victim_search_fits(vs, node, m->req))
            migrate_consider(m, node);
        return;
    }
    for (uint32_t i = from; i < vs->candidate_count && m->tries < TRIES_MAX; i++) {
        m->chosen[depth] = vs->candidates[i];
        victim_search_assume_gone(vs, &vs->s->entries[vs->candidates[i]], node, 1);
        migrate_combine(m, node, i + 1, depth + 1);
        victim_search_assume_gone(vs, &vs->s->entries[vs->candidates[i]], node, -1);
    }
}

/* Those on 'node' that may migrate and hold what is asked for: the youngest first. */
static void migrate_find_candidates(struct migrate_search *m, uint32_t node)
{
    struct victim_search *vs = &m->search;

    vs->candidate_count = 0;
    for (uint32_t i = vs->starts[node]; i < vs->starts[node + 1]; i++) {
        const struct sched_entry *v = &vs->s->entries[vs->by_node[i]], *other;
        uint32_t at = vs->candidate_count;

        if (v->is_victim || victim_search_contribution(vs, v, node, m->req) <= 0)
            continue;
        for (; at > 0; at--) {
            other = &vs->s->entries[vs->candidates[at - 1]];
            if (other->started_usec > v->started_usec
                || (other->started_usec == v->started_usec && other->row > v->row))
                break;
            vs->candidates[at] = vs->candidates[at - 1];
        }
        vs->candidates[at] = vs->by_node[i];
        vs->candidate_count++;
    }
    vs->candidate_count = AQ_MIN(vs->candidate_count, CANDIDATES_MAX);
}

static void migrate_search_agents(struct migrate_search *m,
                                  const struct placement_constraints *constraints)
{
    const struct cluster *c = &m->search.s->cluster;

    for (m->size = 0; m->size <= MIGRATIONS_MAX && m->best.node == CLUSTER_NONE; m->size++)
        for (uint32_t n = 0; n < c->node_count && m->tries < TRIES_MAX; n++) {
            int64_t rank;

            if (!cluster_matches(c, m->req, n) || c->nodes[n].free[c->columns] == SCHED_ABSENT
                || (constraints && !placement_allows(constraints, n, &rank)))
                continue;
            migrate_find_candidates(m, n);
            if (m->size > m->search.candidate_count)
                continue;
            victim_search_load_node(&m->search, n);
            victim_search_assume_claimed_gone(&m->search, n);
            migrate_combine(m, n, 0, 0);
        }
}

/* ---- for a session ---- */

/* The place itself, as the agent will be without the movers. */
static void migrate_hold_place(struct migrate_search *m, struct sched_entry *e)
{
    struct victim_search *vs = &m->search;

    if (m->forecast) {
        forecast_hold(m->forecast, e, m->q, m->best.node, -1, &e->holds[m->q]);
        return;
    }
    victim_search_load_node(vs, m->best.node);
    victim_search_assume_claimed_gone(vs, m->best.node);
    victim_search_hold(vs, m->req, m->best.node, &e->holds[m->q]);
}

static void migrate_take(struct migrate_search *m, struct sched_entry *e)
{
    const struct migrate_plan *p = &m->best;

    migrate_forecast_gone(m, p, 1);
    (void)migrate_hold_targets(m, p->node, p->movers, p->count); /* possible: it was considered */
    for (uint32_t i = 0; i < p->count; i++)
        victim_search_claim(&m->search, p->movers[i]);
    migrate_hold_place(m, e);
}

/* As if nothing had been looked for. */
static void migrate_give_up(struct migrate_search *m, struct sched_entry *e, uint32_t places)
{
    struct victim_search *vs = &m->search;

    migrate_unreserve_last(m, vs->victims, vs->victim_count);
    for (uint32_t i = 0; m->forecast && i < vs->victim_count; i++)
        forecast_assume_gone(m->forecast, &vs->s->entries[vs->victims[i]], -1);
    if (m->forecast)
        forecast_change_holds(m->forecast, e, e->holds, 1);
    victim_search_cancel(vs, e, places);
}

static void migrate_search_init(struct migrate_search *m)
{
    const struct selector *group = &m->search.s->options.selector;
    const struct sched *s = m->search.s;
    size_t containers = 1;

    for (size_t i = 0; i < s->entry_count; i++)
        containers = AQ_MAX(containers, (size_t)s->entries[i].req_count);
    m->containers = arena_array(m->search.arena, containers * MIGRATIONS_MAX,
                                sizeof(*m->containers));
    m->plain = *group->ops;
    m->plain.pick = NULL;
    m->selector = (struct selector){ &m->plain, group->data };
    victim_search_init(&m->search);
}

/* Where each of the victims' containers goes. */
static const uint32_t *const *migrate_list_targets(const struct migrate_search *m)
{
    const struct victim_search *vs = &m->search;
    const uint32_t **all = arena_array(vs->arena, vs->victim_count + 1, sizeof(*all));

    for (uint32_t i = 0; i < vs->victim_count; i++) {
        const struct sched_entry *v = &vs->s->entries[vs->victims[i]];
        const struct reservation *to = reservation_find(vs->s, v->row);
        uint32_t *agents = arena_array(vs->arena, v->kernel_count, sizeof(*agents));

        for (uint32_t k = 0; k < v->kernel_count; k++)
            agents[k] = vs->s->cluster.nodes[to->holds[v->single_node ? 0 : k].node].number;
        all[i] = agents;
    }
    return all;
}

struct migrate_gang {
    struct migrate_search *m;
    struct sched_entry *e;
};

static uint32_t migrate_hold(void *data, uint32_t q,
                             const struct placement_constraints *constraints)
{
    struct migrate_gang *g = data;

    g->m->q = q;
    g->m->req = g->e->reqs[q];
    g->m->best.node = CLUSTER_NONE;
    migrate_search_agents(g->m, constraints);
    if (g->m->best.node != CLUSTER_NONE)
        migrate_take(g->m, g->e);
    return g->m->best.node;
}

static void migrate_undo(void *data, uint32_t q, const struct placement_constraints *constraints)
{
    struct migrate_gang *g = data;

    (void)constraints;
    migrate_give_up(g->m, g->e, q);
}

bool migrate_for(struct sched *s, struct sched_entry *e, int64_t now_usec,
                 struct forecast *forecast, struct arena *arena, struct sched_outcome *out)
{
    static const struct gang_ops ops = { NULL, migrate_hold, migrate_undo };
    struct migrate_search m = { .search = { .s = s,
                                            .e = e,
                                            .now_usec = now_usec,
                                            .arena = arena,
                                            .is_evictable = migrate_is_evictable },
                                .forecast = forecast };
    struct migrate_gang g = { &m, e };

    migrate_search_init(&m);
    if (!gang_place(s, e, entry_constraints(s, e, arena), &ops, &g, arena))
        return false;
    for (uint32_t i = 0; forecast && i < m.search.victim_count; i++)
        forecast_mark_terminating(forecast, &s->entries[m.search.victims[i]]);
    out->victims = m.search.victims;
    out->targets = migrate_list_targets(&m);
    out->victim_count = m.search.victim_count;
    return true;
}
