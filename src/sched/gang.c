/* SPDX-License-Identifier: Apache-2.0 */
/* gang.c - the agents of a session whose kernels may be on several
 *
 * A try fills a domain, which is a set of agents, kernel by kernel. Domains are tried from small to
 * large. How much room each agent has for each kind of kernel is counted once, as an upper bound,
 * so that only domains are tried that can hold the session by their sums.
 */
#include "sched/gang.h"

#include <stdlib.h>
#include <string.h>

#include "sched/reach.h"
#include "sched/topology.h"

#define ROUNDS_MAX 4       /* by how much a session avoids the agents */
#define AGENT_TRIES_MAX 8  /* agents that could hold all */
#define LEVEL_TRIES_MAX 16 /* subtrees of one depth */
#define CUT_TRIES_MAX 64   /* sets of agents that reach each other, within one domain */

/* Kernels with equal requests. */
struct gang_need {
    struct slot_request *req;
    uint32_t count, held;
};

struct gang {
    struct sched *s;
    const struct sched_entry *e;
    const struct gang_ops *ops;
    void *data;
    struct arena *arena;
    bool is_packing; /* as few agents as possible */
    struct gang_need *needs;
    uint32_t need_count;
    uint32_t *need_of; /* per requirement */
    uint16_t *room;    /* per need and node */
    int64_t *likings;  /* per node: less is better */
    struct placement_constraints limits;
    uint32_t *ranks; /* limits.ranks */
    bool *allowed;   /* per node, for the rest of the try */
    bool *taken;     /* per node: it has a kernel in this try */
    uint32_t last;   /* the node that was taken last */
    uint32_t cut_tries;
};

bool gang_is_connected(const struct sched *s, const struct sched_entry *e, const struct hold *holds)
{
    for (uint32_t q = 1; e->needs_network && q < e->req_count; q++)
        for (uint32_t other = 0; other < q; other++)
            if (!reach_is_connected(&s->cluster, holds[q].node, holds[other].node))
                return false;
    return true;
}

/* ---- room ---- */

static void gang_list_needs(struct gang *g)
{
    g->needs = arena_array(g->arena, g->e->req_count, sizeof(*g->needs));
    g->need_of = arena_array(g->arena, g->e->req_count, sizeof(*g->need_of));
    for (uint32_t q = 0; q < g->e->req_count; q++) {
        uint32_t i = 0;

        while (i < g->need_count && g->needs[i].req != g->e->reqs[q])
            i++;
        g->need_count += i == g->need_count;
        g->needs[i].req = g->e->reqs[q];
        g->needs[i].count++;
        g->need_of[q] = i;
    }
}

static uint16_t gang_room(const struct gang *g, uint32_t need, uint32_t node)
{
    return g->room[need * g->s->cluster.node_count + node];
}

/* Free slots of the agent that the session does not request, for selectors that compare by them. */
static int64_t gang_count_unutilized(const struct gang *g, uint32_t node)
{
    const struct selector *selector = &g->s->options.selector;
    const struct fit *fit;

    if (!selector->ops->compare)
        return 0;
    fit = cluster_fit(&g->s->cluster, g->needs[0].req, g->s->cluster.nodes[node].state, selector);
    return fit->has_room ? AQ_MIN((int64_t)fit->score, 1023) : 0;
}

static void gang_count_rooms(struct gang *g, const struct placement_constraints *base)
{
    const struct cluster *c = &g->s->cluster;

    g->room = arena_array(g->arena, g->need_count * c->node_count, sizeof(*g->room));
    g->likings = arena_array(g->arena, c->node_count, sizeof(*g->likings));
    for (uint32_t n = 0; n < c->node_count; n++) {
        int64_t rank = 0;

        if (c->nodes[n].free[c->columns] == SCHED_ABSENT
            || (base && !placement_allows(base, n, &rank)))
            continue;
        for (uint32_t i = 0; i < g->need_count; i++)
            if (cluster_matches(c, g->needs[i].req, n))
                g->room[i * c->node_count + n] = (uint16_t)g->ops->count_room(g->data,
                                                                              g->needs[i].req, n);
        g->likings[n] = rank * 1024 + gang_count_unutilized(g, n);
    }
}

static bool gang_has_any_room(const struct gang *g, uint32_t node)
{
    for (uint32_t i = 0; i < g->need_count; i++)
        if (gang_room(g, i, node))
            return true;
    return false;
}

static bool gang_could_hold_all(const struct gang *g, uint32_t node)
{
    for (uint32_t i = 0; i < g->need_count; i++)
        if (gang_room(g, i, node) < g->needs[i].count)
            return false;
    return true;
}

/* Sum of the room for all needs in a domain; 0 if one of them does not fit. */
static uint64_t gang_sum_room(const struct gang *g, const bool *domain)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < g->need_count; i++) {
        uint64_t sum = 0;

        for (uint32_t n = 0; n < g->s->cluster.node_count; n++)
            sum += domain[n] ? gang_room(g, i, n) : 0;
        if (sum < g->needs[i].count)
            return 0;
        all += sum;
    }
    return all;
}

/* ---- a try ---- */

/* Ranks of the agents for the remaining kernels of a need: agents that have a kernel of the session
 * come first, then agents that can hold all remaining kernels, then those with the most room.
 */
static void gang_rank(struct gang *g, uint32_t need)
{
    uint32_t left = g->needs[need].count - g->needs[need].held;

    for (uint32_t n = 0; n < g->s->cluster.node_count; n++) {
        uint32_t rank = 0;

        if (g->is_packing && !g->taken[n] && g->allowed[n])
            rank = (gang_room(g, need, n) >= left ? 1 : 2 + UINT16_MAX - gang_room(g, need, n))
                   | (uint32_t)(g->likings[n] & 1023) << 17;
        g->ranks[n] = g->allowed[n] ? rank : PLACEMENT_EXCLUDED;
    }
}

/* The node that holds requirement 'q'. Equal kernels fill one agent after the other, so the last
 * agent is tried before all are ranked.
 */
static uint32_t gang_hold(struct gang *g, uint32_t q, bool is_on_one)
{
    uint32_t node = CLUSTER_NONE;

    if (g->last != CLUSTER_NONE && ((g->is_packing && g->need_count == 1) || is_on_one)) {
        g->limits.is_single = true;
        g->limits.single = g->last;
        node = g->ops->hold(g->data, q, &g->limits);
        if (node != CLUSTER_NONE || is_on_one)
            return node;
    }
    g->limits.is_single = false;
    gang_rank(g, g->need_of[q]);
    return g->ops->hold(g->data, q, &g->limits);
}

static void gang_take(struct gang *g, uint32_t q, uint32_t node)
{
    const struct cluster *c = &g->s->cluster;

    g->needs[g->need_of[q]].held++;
    g->last = node;
    if (g->taken[node])
        return;
    g->taken[node] = true;
    for (uint32_t n = 0; g->e->needs_network && n < c->node_count; n++)
        g->allowed[n] = g->allowed[n] && reach_is_connected(c, node, n);
}

static bool gang_try(struct gang *g, const bool *domain, bool is_on_one)
{
    size_t nodes = g->s->cluster.node_count;

    memcpy(g->allowed, domain, nodes * sizeof(*domain));
    memset(g->taken, 0, nodes * sizeof(*g->taken));
    g->last = CLUSTER_NONE;
    for (uint32_t i = 0; i < g->need_count; i++)
        g->needs[i].held = 0;
    for (uint32_t q = 0; q < g->e->req_count; q++) {
        uint32_t node = gang_hold(g, q, is_on_one);

        if (node == CLUSTER_NONE) {
            g->ops->undo(g->data, q, &g->limits);
            return false;
        }
        gang_take(g, q, node);
    }
    return true;
}

/* ---- agents that do not reach each other ---- */

/* The agent with the most broken pairs in the domain, CLUSTER_NONE if there are none. */
static uint32_t gang_find_cut(const struct gang *g, const bool *domain)
{
    const struct cluster *c = &g->s->cluster;
    uint32_t worst = CLUSTER_NONE;
    size_t most = 0;

    for (uint32_t n = 0; n < c->node_count; n++) {
        const struct cut_list *cuts = reach_cuts(c, n);
        size_t count = 0;

        for (size_t i = 0; domain[n] && i < cuts->count; i++)
            count += domain[cuts->nodes[i]];
        if (count > most) {
            most = count;
            worst = n;
        }
    }
    return worst;
}

static bool gang_has_same_cuts(const struct cluster *c, uint32_t a, uint32_t b)
{
    const struct cut_list *x = reach_cuts(c, a), *y = reach_cuts(c, b);

    return x->count == y->count && memcmp(x->nodes, y->nodes, x->count * sizeof(*x->nodes)) == 0;
}

/* A branch on the agent with the most broken pairs: the session uses it and no agent that it does
 * not reach, or neither it nor agents with the same broken pairs. The branches cover all sets of
 * agents that reach each other, up to CUT_TRIES_MAX.
 */
static bool gang_try_connected(struct gang *g, const bool *domain)
{
    const struct cluster *c = &g->s->cluster;
    bool *with, *without;
    uint32_t cut;

    if (g->room && gang_sum_room(g, domain) == 0)
        return false;
    if (gang_try(g, domain, false))
        return true;
    if (!g->e->needs_network || c->cut_pairs == 0 || g->cut_tries >= CUT_TRIES_MAX
        || (cut = gang_find_cut(g, domain)) == CLUSTER_NONE)
        return false;
    g->cut_tries++;
    with = arena_array(g->arena, c->node_count, sizeof(*with));
    without = arena_array(g->arena, c->node_count, sizeof(*without));
    for (uint32_t n = 0; n < c->node_count; n++) {
        with[n] = domain[n] && !reach_is_cut(c, cut, n);
        without[n] = domain[n] && !gang_has_same_cuts(c, cut, n);
    }
    return gang_try_connected(g, with) || gang_try_connected(g, without);
}

/* ---- domains, from small to large ---- */

/* Tries to place all kernels on one agent. */
static bool gang_try_agents(struct gang *g, const bool *domain)
{
    size_t nodes = g->s->cluster.node_count;
    bool *large = arena_array(g->arena, nodes, sizeof(*large));

    for (uint32_t n = 0; n < nodes; n++)
        large[n] = domain[n] && gang_could_hold_all(g, n);
    for (int i = 0; i < AGENT_TRIES_MAX; i++) {
        if (gang_try(g, large, true))
            return true;
        if (g->last == CLUSTER_NONE)
            break;
        large[g->last] = false;
    }
    return false;
}

/* Agents of one subtree and, for a session that needs a network, of one class. */
struct gang_domain {
    uint64_t room;
    uint32_t subtree;
    uint16_t network;
};

static int gang_compare_domains(const void *a, const void *b)
{
    const struct gang_domain *x = a, *y = b;

    if (x->room != y->room)
        return x->room < y->room ? -1 : 1;
    if (x->subtree != y->subtree)
        return x->subtree < y->subtree ? -1 : 1;
    return (x->network > y->network) - (x->network < y->network);
}

/* Add the agents of it that are in 'domain' to *ret, or remove them. */
static void gang_set_domain(const struct gang *g, const struct topology *t,
                            const struct gang_domain *of, const bool *domain, bool value, bool *ret)
{
    const struct cluster *c = &g->s->cluster;
    const struct subtree *subtree = &t->subtrees[of->subtree];

    for (uint32_t i = 0; i < subtree->count; i++) {
        uint32_t node = t->order[subtree->first + i];

        if (domain[node] && (!g->e->needs_network || c->nodes[node].network == of->network))
            ret[node] = value;
    }
}

/* As gang_sum_room(), of the agents of it that are in 'domain'. */
static uint64_t gang_sum_room_of(const struct gang *g, const struct topology *t,
                                 const struct gang_domain *of, const bool *domain)
{
    const struct cluster *c = &g->s->cluster;
    const struct subtree *subtree = &t->subtrees[of->subtree];
    uint64_t all = 0;

    for (uint32_t i = 0; i < g->need_count; i++) {
        uint64_t sum = 0;

        for (uint32_t k = 0; k < subtree->count; k++) {
            uint32_t node = t->order[subtree->first + k];

            if (domain[node] && (!g->e->needs_network || c->nodes[node].network == of->network))
                sum += gang_room(g, i, node);
        }
        if (sum < g->needs[i].count)
            return 0;
        all += sum;
    }
    return all;
}

/* The subtrees [from, to) of one depth, best fit first. */
static bool gang_try_level(struct gang *g, const struct topology *t, uint32_t from, uint32_t to,
                           const bool *domain)
{
    const struct cluster *c = &g->s->cluster;
    uint16_t networks = g->e->needs_network ? (uint16_t)c->network_count : 1;
    struct gang_domain *domains = arena_array(g->arena, (size_t)(to - from) * networks + 1,
                                              sizeof(*domains));
    bool *part = arena_array(g->arena, c->node_count, sizeof(*part));
    size_t count = 0;

    for (uint32_t subtree = from; subtree < to; subtree++)
        for (uint16_t network = 1; network <= networks; network++) {
            struct gang_domain *d = &domains[count];

            *d = (struct gang_domain){ .subtree = subtree, .network = network };
            d->room = gang_sum_room_of(g, t, d, domain);
            count += d->room > 0;
        }
    qsort(domains, count, sizeof(*domains), gang_compare_domains);
    for (size_t i = 0; i < AQ_MIN(count, (size_t)LEVEL_TRIES_MAX); i++) {
        gang_set_domain(g, t, &domains[i], domain, true, part);
        g->cut_tries = 0;
        if (gang_try_connected(g, part))
            return true;
        gang_set_domain(g, t, &domains[i], domain, false, part);
    }
    return false;
}

/* Tries one agent, then subtrees from deep to shallow, within the agents of this round. */
static bool gang_try_round(struct gang *g, const bool *domain)
{
    const struct topology *t = topology_of(&g->s->cluster);

    if (gang_sum_room(g, domain) == 0)
        return false;
    if (g->is_packing && gang_try_agents(g, domain))
        return true;
    for (uint32_t from = 0, to; from < t->subtree_count; from = to) {
        for (to = from + 1; to < t->subtree_count; to++)
            if (t->subtrees[to].depth != t->subtrees[from].depth)
                break;
        if (gang_try_level(g, t, from, to, domain))
            return true;
    }
    return !g->is_packing && g->e->needs_network && gang_try_agents(g, domain);
}

/* Filling agents one after the other may leave no room for kernels of different sizes. The last
 * resort is to place them one by one, as the selector chooses.
 */
static bool gang_place_by_selector(struct gang *g, bool *domain)
{
    const struct topology *t = topology_of(&g->s->cluster);

    if (!g->is_packing || g->need_count == 1)
        return false;
    g->is_packing = false;
    for (uint32_t n = 0; n < g->s->cluster.node_count; n++)
        domain[n] = gang_has_any_room(g, n);
    return gang_try_level(g, t, (uint32_t)t->subtree_count - 1, (uint32_t)t->subtree_count, domain);
}

static bool gang_place_near(struct gang *g, const struct placement_constraints *base)
{
    size_t nodes = g->s->cluster.node_count;
    bool *domain = arena_array(g->arena, nodes, sizeof(*domain));
    int64_t worst = INT64_MIN;

    gang_count_rooms(g, base);
    for (int round = 1; round <= ROUNDS_MAX; round++) {
        int64_t next = INT64_MAX;

        for (uint32_t n = 0; n < nodes; n++)
            if (g->likings[n] > worst && gang_has_any_room(g, n))
                next = AQ_MIN(next, g->likings[n]);
        if (next == INT64_MAX)
            break; /* every agent with room was tried */
        worst = round < ROUNDS_MAX ? next : INT64_MAX;
        for (uint32_t n = 0; n < nodes; n++)
            domain[n] = g->likings[n] <= worst && gang_has_any_room(g, n);
        if (gang_try_round(g, domain))
            return true;
    }
    return gang_place_by_selector(g, domain);
}

/* Places the session without counts of room, on any agents that reach each other. */
static bool gang_place_anywhere(struct gang *g)
{
    const struct cluster *c = &g->s->cluster;
    bool *domain = arena_array(g->arena, c->node_count, sizeof(*domain));

    for (uint16_t network = 1; network <= c->network_count; network++) {
        for (uint32_t n = 0; n < c->node_count; n++)
            domain[n] = c->nodes[n].network == network;
        g->cut_tries = 0;
        if (gang_try_connected(g, domain))
            return true;
    }
    memset(domain, 0, c->node_count * sizeof(*domain));
    for (uint32_t n = 0; n < c->node_count; n++) {
        domain[n] = true;
        if (c->nodes[n].network == 0 && gang_try(g, domain, true))
            return true;
        domain[n] = false;
    }
    return false;
}

/* Places the kernels one by one, without regard to topology and network. */
static bool gang_place_plain(struct gang *g, const struct placement_constraints *base)
{
    for (uint32_t q = 0; q < g->e->req_count; q++)
        if (g->ops->hold(g->data, q, base) == CLUSTER_NONE) {
            g->ops->undo(g->data, q, base);
            return false;
        }
    return true;
}

bool gang_place(struct sched *s, const struct sched_entry *e,
                const struct placement_constraints *base, const struct gang_ops *ops, void *data,
                struct arena *arena)
{
    struct gang g = {
        .s = s, .e = e, .ops = ops, .data = data, .arena = arena, .limits.failed = CLUSTER_NONE
    };
    size_t nodes = s->cluster.node_count;

    if (e->req_count == 1 || (!ops->count_room && !e->needs_network))
        return gang_place_plain(&g, base);
    if (base)
        g.limits = *base;
    g.ranks = arena_array(arena, nodes, sizeof(*g.ranks));
    g.limits.ranks = g.ranks;
    g.allowed = arena_array(arena, nodes, sizeof(*g.allowed));
    g.taken = arena_array(arena, nodes, sizeof(*g.taken));
    g.is_packing = ops->count_room && !s->options.selector.ops->spreads;
    gang_list_needs(&g);
    return ops->count_room ? gang_place_near(&g, base) : gang_place_anywhere(&g);
}
