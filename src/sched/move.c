/* move.c - who starts elsewhere, so that a session that waits can start here
 *
 * Nobody loses a place: whoever is moved has another one held for it before
 * it is stopped, and starts there, ahead of the queue, when it comes back
 * (reserve.c). It is stopped as a whole: its containers on this agent go
 * elsewhere, those on other agents start again where they were, and if one of
 * them has no place, none moves. As few sessions are moved as will do,
 * MOVES_MAX for each requirement at most: of the agents the one with the
 * fewest, then whose are least important, then whose have run least, is
 * chosen. All combinations are tried, the youngest first, as far as TRIES_MAX
 * goes in one pass and session.
 *
 * With backfill a place is only what stays free in the forecast as long as its
 * session lives: whoever has a time keeps it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sched/hunt.h"

#define MOVES_MAX 3
#define CANDIDATES_MAX 32 /* on one agent */
#define TRIES_MAX 20000

/* What it takes to make room on 'node'. */
struct plan {
    uint32_t node;
    uint32_t count;
    uint32_t movers[MOVES_MAX];
    int job_priority;       /* the highest among them */
    int64_t lost_usec;      /* how long they have run together */
};

/* A container that leaves the agent. */
struct piece {
    uint32_t mover, q;      /* of the plan; its requirement */
    double size;            /* see hunt_contribution() */
};

struct mover_search {
    struct hunt hunt;
    struct forecast *forecast; /* NULL without backfill */
    struct selector_ops plain; /* the group's selector without a last word: it may draw or count */
    struct selector selector;
    struct request *req;
    uint32_t q;             /* which that is */
    uint32_t chosen[MOVES_MAX];
    uint32_t size;          /* of the combinations under way */
    uint32_t tries;
    struct piece *pieces;   /* scratch */
    struct plan best;
    int r;
};

static bool may_move(const struct hunt *h, const struct entry *v)
{
    return v->status == ENTRY_PLACED && v->is_movable && !v->is_claimed &&
           v->placed_in != h->s->passes && v->job_priority <= h->e->job_priority &&
           v->started_usec <= h->now_usec - h->s->options.preemption.min_runtime_usec &&
           hunt_is_same_scope(h->e, v) && !state_find_reserved(h->s, v->row);
}

/* ---- places elsewhere ---- */

/* The last 'count' records. */
static int unreserve_last(struct mover_search *m, const uint32_t *movers, uint32_t count)
{
    struct sched *s = m->hunt.s;
    uint64_t grown = s->cluster.grown;
    int r = 0;

    while (count-- > 0 && r == 0) {
        if (m->forecast)
            r = forecast_change(m->forecast, &s->entries[movers[count]],
                                s->reserved[s->reserved_count - 1].holds, 1);
        if (r == 0)
            r = state_unreserve(s, s->reserved[s->reserved_count - 1].row);
    }
    s->cluster.grown = grown; /* nothing has become free */
    return r;
}

/* Another place for a container than on 'but': 1, 0 = there is none, -ENOMEM. */
static int leave(struct mover_search *m, const struct entry *v, uint32_t q, uint32_t but,
                 struct hold *ret)
{
    static const struct wish none = { .failed = CLUSTER_NONE };
    struct cluster *c = &m->hunt.s->cluster;
    uint32_t node = CLUSTER_NONE;
    int32_t device = -1;
    bool is_full;
    int r;
    const struct wish *wish = entry_wish(m->hunt.s, v, m->hunt.arena, &r);
    struct wish elsewhere = wish ? *wish : none;

    if (r < 0)
        return r;
    elsewhere.is_excluding = true;
    elsewhere.excluded = but;
    r = m->forecast ? forecast_choose(m->forecast, v, q, &elsewhere, &is_full, &node)
                    : select_node(c, v->reqs[q], &m->selector, &elsewhere, &node, &device);
    if (r < 0 || node == CLUSTER_NONE)
        return r;
    if (m->forecast)
        r = forecast_hold(m->forecast, v, q, node, v->reqs[q]->fits[c->nodes[node].state].device,
                          ret);
    else if ((r = cluster_hold(c, node, v->reqs[q], device, &ret->parts, &ret->part_count)) == 0)
        ret->node = node;
    return r < 0 ? r : 1;
}

/* A container starts again where it was, on the same devices: 1, 0 = others have been promised
 * what it would need for longer, -ENOMEM. Until it has stopped its room is held twice.
 */
static int stay(struct mover_search *m, const struct entry *v, uint32_t q, struct hold *ret)
{
    const struct hold *now = &v->holds[q];
    int r;

    if (m->forecast) {
        if (!forecast_fits(m->forecast, v, q, now->node))
            return 0;
        r = forecast_hold(m->forecast, v, q, now->node, -1, ret);
        return r < 0 ? r : 1;
    }
    if (!(ret->parts = calloc((size_t)now->part_count + 1, sizeof(*ret->parts))))
        return -ENOMEM;
    if (now->part_count)
        memcpy(ret->parts, now->parts, now->part_count * sizeof(*ret->parts));
    ret->part_count = now->part_count;
    r = cluster_hold_parts(&m->hunt.s->cluster, now->node, v->reqs[q], ret->parts,
                           ret->part_count);
    if (r < 0) {
        free(AQ_TAKE(ret->parts));
        return r;
    }
    ret->node = now->node;
    return 1;
}

/* The containers that leave 'node', the largest first: they find a place least easily. */
static uint32_t find_pieces(struct mover_search *m, uint32_t node, const uint32_t *movers,
                            uint32_t count)
{
    const struct hunt *h = &m->hunt;
    uint32_t pieces = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct entry *v = &h->s->entries[movers[i]];

        for (uint32_t q = 0; q < v->req_count; q++) {
            struct piece p = { i, q, hunt_size(h, v->reqs[q], m->req) };
            uint32_t at = pieces;

            if (v->holds[q].node != node)
                continue;
            for (; at > 0 && m->pieces[at - 1].size < p.size; at--)
                m->pieces[at] = m->pieces[at - 1];
            m->pieces[at] = p;
            pieces++;
        }
    }
    return pieces;
}

/* Fill the records of the movers, the last ones. 1, 0 = there is no place for one, -ENOMEM. */
static int fill_targets(struct mover_search *m, uint32_t node, const uint32_t *movers,
                        uint32_t count)
{
    struct sched *s = m->hunt.s;
    struct reserved *to = &s->reserved[s->reserved_count - count];
    uint32_t pieces = find_pieces(m, node, movers, count);
    int r = 1;

    for (uint32_t i = 0; i < pieces && r > 0; i++) {
        const struct piece *p = &m->pieces[i];

        r = leave(m, &s->entries[movers[p->mover]], p->q, node, &to[p->mover].holds[p->q]);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct entry *v = &s->entries[movers[i]];

        for (uint32_t q = 0; q < v->req_count && r > 0; q++)
            if (v->holds[q].node != node)
                r = stay(m, v, q, &to[i].holds[q]);
    }
    return r;
}

/* Hold another place for each. 1, 0 with nothing held = there is none for one of them, -ENOMEM. */
static int hold_targets(struct mover_search *m, uint32_t node, const uint32_t *movers,
                        uint32_t count)
{
    struct sched *s = m->hunt.s;
    uint32_t made = 0;
    int r = 1;

    for (; made < count && r > 0; made++) {
        const struct entry *v = &s->entries[movers[made]];

        if (!state_reserve(s, v->row, v->lifetime_usec, v->reqs, v->req_count)) {
            r = -ENOMEM;
            break;
        }
    }
    if (r > 0)
        r = fill_targets(m, node, movers, count);
    if (r <= 0 && unreserve_last(m, movers, made) < 0)
        r = -ENOMEM;
    return r;
}

/* ---- whom ---- */

static void sort_by_size(const struct mover_search *m, uint32_t node, uint32_t *movers,
                         uint32_t count)
{
    const struct hunt *h = &m->hunt;

    for (uint32_t i = 1; i < count; i++)
        for (uint32_t at = i; at > 0; at--) {
            uint32_t a = movers[at - 1], b = movers[at];

            if (hunt_contribution(h, &h->s->entries[a], node, m->req) >=
                hunt_contribution(h, &h->s->entries[b], node, m->req))
                break;
            movers[at - 1] = b;
            movers[at] = a;
        }
}

static void price(const struct mover_search *m, struct plan *p)
{
    p->job_priority = INT32_MIN;
    p->lost_usec = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct entry *v = &m->hunt.s->entries[p->movers[i]];

        p->job_priority = AQ_MAX(p->job_priority, v->job_priority);
        p->lost_usec += m->hunt.now_usec - v->started_usec;
    }
}

static bool is_cheaper(const struct mover_search *m, const struct plan *a, const struct plan *b)
{
    const struct node *nodes = m->hunt.s->cluster.nodes;

    if (b->node == CLUSTER_NONE || a->job_priority != b->job_priority)
        return b->node == CLUSTER_NONE || a->job_priority < b->job_priority;
    if (a->lost_usec != b->lost_usec)
        return a->lost_usec < b->lost_usec;
    return a->node != b->node && strcmp(nodes[a->node].id, nodes[b->node].id) < 0;
}

/* In the forecast the movers are gone from now on (1), or are not (-1). */
static int forecast_movers(struct mover_search *m, const struct plan *p, int sign)
{
    int r = 0;

    for (uint32_t i = 0; m->forecast && i < p->count && r == 0; i++)
        r = forecast_leave(m->forecast, &m->hunt.s->entries[p->movers[i]], sign);
    return r;
}

/* There is room without the chosen ones: can all of them go elsewhere, and is it worth it? */
static void judge(struct mover_search *m, uint32_t node)
{
    struct plan p = { .node = node, .count = m->size };
    int r;

    memcpy(p.movers, m->chosen, m->size * sizeof(p.movers[0]));
    price(m, &p);
    if (!is_cheaper(m, &p, &m->best))
        return;
    sort_by_size(m, node, p.movers, p.count);
    r = forecast_movers(m, &p, 1);
    if (r == 0 && (!m->forecast || forecast_fits(m->forecast, m->hunt.e, m->q, node))) {
        r = hold_targets(m, node, p.movers, p.count);
        if (r > 0 && (r = unreserve_last(m, p.movers, p.count)) == 0)
            m->best = p;
    }
    if (r >= 0)
        r = forecast_movers(m, &p, -1);
    m->r = AQ_MIN(r, 0);
}

/* All combinations that begin with chosen[0 .. depth). */
static void combine(struct mover_search *m, uint32_t node, uint32_t from, uint32_t depth)
{
    struct hunt *h = &m->hunt;

    if (depth >= AQ_MIN(m->size, MOVES_MAX)) {
        m->tries++;
        if (hunt_fits(h, node, m->req))
            judge(m, node);
        return;
    }
    for (uint32_t i = from; i < h->candidate_count && m->tries < TRIES_MAX && m->r == 0; i++) {
        m->chosen[depth] = h->candidates[i];
        hunt_without(h, &h->s->entries[h->candidates[i]], node, 1);
        combine(m, node, i + 1, depth + 1);
        hunt_without(h, &h->s->entries[h->candidates[i]], node, -1);
    }
}

/* Those on 'node' that may be moved and hold what is asked for: the youngest first. */
static void find_candidates(struct mover_search *m, uint32_t node)
{
    struct hunt *h = &m->hunt;

    h->candidate_count = 0;
    for (uint32_t i = h->starts[node]; i < h->starts[node + 1]; i++) {
        const struct entry *v = &h->s->entries[h->by_node[i]], *other;
        uint32_t at = h->candidate_count;

        if (v->is_claimed || hunt_contribution(h, v, node, m->req) <= 0)
            continue;
        for (; at > 0; at--) {
            other = &h->s->entries[h->candidates[at - 1]];
            if (other->started_usec > v->started_usec ||
                (other->started_usec == v->started_usec && other->row > v->row))
                break;
            h->candidates[at] = h->candidates[at - 1];
        }
        h->candidates[at] = h->by_node[i];
        h->candidate_count++;
    }
    h->candidate_count = AQ_MIN(h->candidate_count, CANDIDATES_MAX);
}

static void search(struct mover_search *m, const struct wish *wish)
{
    const struct cluster *c = &m->hunt.s->cluster;

    for (m->size = 0; m->size <= MOVES_MAX && m->best.node == CLUSTER_NONE; m->size++)
        for (uint32_t n = 0; n < c->node_count && m->tries < TRIES_MAX && m->r == 0; n++) {
            int64_t rank;

            if (!c->nodes[n].id || !cluster_matches(c, m->req, n) ||
                c->nodes[n].free[c->columns] == SCHED_ABSENT ||
                (wish && !wish_allows(wish, n, &rank)))
                continue;
            find_candidates(m, n);
            if (m->size > m->hunt.candidate_count)
                continue;
            hunt_begin(&m->hunt, n);
            hunt_forget_claimed(&m->hunt, n);
            combine(m, n, 0, 0);
        }
}

/* ---- for a session ---- */

/* The place itself, as the agent will be without the movers. 0 or -ENOMEM. */
static int hold_place(struct mover_search *m, struct entry *e)
{
    struct hunt *h = &m->hunt;

    if (m->forecast)
        return forecast_hold(m->forecast, e, m->q, m->best.node, -1, &e->holds[m->q]);
    hunt_begin(h, m->best.node);
    hunt_forget_claimed(h, m->best.node);
    return hunt_hold(h, m->req, m->best.node, &e->holds[m->q]);
}

static int take(struct mover_search *m, struct entry *e)
{
    struct hunt *h = &m->hunt;
    const struct plan *p = &m->best;
    int r = forecast_movers(m, p, 1);

    if (r == 0)
        r = hold_targets(m, p->node, p->movers, p->count);
    if (r <= 0)
        return -ENOMEM; /* it was possible before */
    for (uint32_t i = 0; i < p->count; i++)
        hunt_claim(h, p->movers[i]);
    return hold_place(m, e);
}

/* As if nothing had been looked for. */
static int give_up(struct mover_search *m, struct entry *e, uint32_t places)
{
    struct hunt *h = &m->hunt;
    int r = unreserve_last(m, h->victims, h->victim_count);

    for (uint32_t i = 0; m->forecast && i < h->victim_count && r == 0; i++)
        r = forecast_leave(m->forecast, &h->s->entries[h->victims[i]], -1);
    if (m->forecast && r == 0)
        r = forecast_change(m->forecast, e, e->holds, 1);
    return hunt_give_up(h, e, places) < 0 || r < 0 ? -ENOMEM : 0;
}

static int search_init(struct mover_search *m)
{
    const struct selector *group = &m->hunt.s->options.selector;
    const struct sched *s = m->hunt.s;
    size_t pieces = 1;

    for (size_t i = 0; i < s->entry_count; i++)
        pieces = AQ_MAX(pieces, (size_t)s->entries[i].req_count);
    m->pieces = arena_array(m->hunt.arena, pieces * MOVES_MAX, sizeof(*m->pieces));
    m->plain = *group->ops;
    m->plain.pick = NULL;
    m->selector = (struct selector){ &m->plain, group->data };
    return m->pieces ? hunt_init(&m->hunt) : -ENOMEM;
}

/* Where each of the victims' containers goes. */
static const uint32_t *const *list_targets(const struct mover_search *m)
{
    const struct hunt *h = &m->hunt;
    const uint32_t **all = arena_array(h->arena, h->victim_count + 1, sizeof(*all));

    for (uint32_t i = 0; all && i < h->victim_count; i++) {
        const struct entry *v = &h->s->entries[h->victims[i]];
        const struct reserved *to = state_find_reserved(h->s, v->row);
        uint32_t *agents = arena_array(h->arena, v->kernel_count, sizeof(*agents));

        for (uint32_t k = 0; agents && k < v->kernel_count; k++)
            agents[k] = to->holds[v->single_node ? 0 : k].node;
        if (!(all[i] = agents))
            return NULL;
    }
    return all;
}

int move_for(struct sched *s, struct entry *e, int64_t now_usec, struct forecast *forecast,
             struct arena *arena, struct sched_outcome *out)
{
    struct mover_search m = { .hunt = { .s = s, .e = e, .now_usec = now_usec, .arena = arena,
        .may_go = may_move }, .forecast = forecast };
    const struct wish *wish;
    int r;

    if (search_init(&m) < 0)
        return -ENOMEM;
    wish = entry_wish(s, e, arena, &r);
    for (; r == 0 && m.q < e->req_count; m.q++) {
        m.best.node = CLUSTER_NONE;
        m.req = e->reqs[m.q];
        search(&m, wish);
        if (m.r < 0 || m.best.node == CLUSTER_NONE)
            return give_up(&m, e, m.q) < 0 || m.r < 0 ? -ENOMEM : 0;
        if ((r = take(&m, e)) < 0)
            (void)give_up(&m, e, m.q);
    }
    if (r < 0)
        return r;
    for (uint32_t i = 0; forecast && i < m.hunt.victim_count && r == 0; i++)
        r = forecast_linger(forecast, &s->entries[m.hunt.victims[i]]);
    out->victims = m.hunt.victims;
    out->targets = list_targets(&m);
    out->victim_count = m.hunt.victim_count;
    return r < 0 || !out->targets ? -ENOMEM : 1;
}
