/* move.c - who starts elsewhere, so that a session that waits can start here
 *
 * Nobody loses a place: whoever is moved has another one held for it before
 * it is stopped, and starts there, ahead of the queue, when it comes back.
 * As few are moved as will do, MOVES_MAX for each requirement at most: of
 * the agents the one with the fewest, then whose are least important, then
 * whose have run least, is chosen. All combinations are tried, the youngest
 * first, as far as TRIES_MAX goes in one pass and session.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "sched/hunt.h"

#define MOVES_MAX 3
#define CANDIDATES_MAX 32 /* on one agent */
#define TRIES_MAX 20000

/* What it takes to make room on 'node'. */
struct plan {
    uint32_t node;
    uint32_t count;
    uint32_t movers[MOVES_MAX], targets[MOVES_MAX];
    int job_priority;       /* the highest among them */
    int64_t lost_usec;      /* how long they have run together */
};

struct mover_search {
    struct hunt hunt;
    struct selector_ops plain; /* the group's selector without a last word: it may draw or count */
    struct selector selector;
    struct request *req;
    uint32_t chosen[MOVES_MAX];
    uint32_t size;          /* of the combinations under way */
    uint32_t tries;
    struct plan best;
    int r;
};

static bool may_move(const struct hunt *h, const struct entry *v)
{
    return v->status == ENTRY_PLACED && v->is_movable && !v->is_claimed && v->req_count == 1 &&
           v->placed_in != h->s->passes && v->job_priority <= h->e->job_priority &&
           v->started_usec <= h->now_usec - h->s->options.preemption.min_runtime_usec &&
           hunt_is_same_scope(h->e, v) && !state_find_reserved(h->s, v->row);
}

/* ---- places elsewhere ---- */

struct reserved *state_find_reserved(struct sched *s, int64_t row)
{
    for (size_t i = 0; i < s->reserved_count; i++)
        if (s->reserved[i].row == row)
            return &s->reserved[i];
    return NULL;
}

int state_unreserve(struct sched *s, int64_t row)
{
    struct reserved *r = state_find_reserved(s, row);

    if (!r)
        return 0;
    if (cluster_release(&s->cluster, r->hold.node, r->req, r->hold.parts, r->hold.part_count) < 0)
        return -ENOMEM;
    free(r->hold.parts);
    cluster_request_release(&s->cluster, r->req);
    *r = s->reserved[--s->reserved_count];
    return 0;
}

static int reserve(struct sched *s, int64_t row, struct request *req, uint32_t node, int32_t device)
{
    struct reserved *to;
    int r;

    if (!vec_grow(&s->reserved, &s->reserved_cap, s->reserved_count + 1, sizeof(*s->reserved)))
        return -ENOMEM;
    to = &s->reserved[s->reserved_count];
    *to = (struct reserved){ .row = row, .req = req, .hold = { .node = node } };
    r = cluster_hold(&s->cluster, node, req, device, &to->hold.parts, &to->hold.part_count);
    if (r < 0)
        return r;
    req->users++;
    s->reserved_count++;
    return 0;
}

static int unreserve_last(struct sched *s, uint32_t count)
{
    uint64_t grown = s->cluster.grown;
    int r = 0;

    while (count-- > 0 && r == 0)
        r = state_unreserve(s, s->reserved[s->reserved_count - 1].row);
    s->cluster.grown = grown; /* nothing has become free */
    return r;
}

/* Somewhere else than on 'but'. CLUSTER_NONE if there is no room. */
static int find_target(struct mover_search *m, const struct entry *v, uint32_t but,
                       uint32_t *ret_node, int32_t *ret_device)
{
    static const struct wish none = { .failed = CLUSTER_NONE };
    int r;
    const struct wish *wish = entry_wish(m->hunt.s, v, m->hunt.arena, &r);
    struct wish elsewhere = wish ? *wish : none;

    if (r < 0)
        return r;
    elsewhere.is_excluding = true;
    elsewhere.excluded = but;
    return select_node(&m->hunt.s->cluster, v->reqs[0], &m->selector, &elsewhere, ret_node,
                       ret_device);
}

/* Hold another place for each. 1, 0 with nothing held = there is none for one of them, -ENOMEM. */
static int hold_targets(struct mover_search *m, uint32_t node, const uint32_t *movers,
                        uint32_t count, uint32_t *targets)
{
    struct sched *s = m->hunt.s;

    for (uint32_t i = 0; i < count; i++) {
        const struct entry *v = &s->entries[movers[i]];
        int32_t device;
        int r = find_target(m, v, node, &targets[i], &device);

        if (r == 0 && targets[i] != CLUSTER_NONE &&
            (r = reserve(s, v->row, v->reqs[0], targets[i], device)) == 0)
            continue;
        return unreserve_last(s, i) < 0 || r < 0 ? -ENOMEM : 0;
    }
    return 1;
}

/* ---- whom ---- */

/* Largest first: they find a place least easily. */
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
    r = hold_targets(m, node, p.movers, p.count, p.targets);
    if (r > 0 && (r = unreserve_last(m->hunt.s, p.count)) == 0)
        m->best = p;
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

static int take(struct mover_search *m, struct entry *e, uint32_t q, uint32_t *targets)
{
    struct hunt *h = &m->hunt;
    struct plan *p = &m->best;
    int r = hold_targets(m, p->node, p->movers, p->count, p->targets);

    if (r <= 0)
        return -ENOMEM; /* it was possible before */
    hunt_begin(h, p->node);
    for (uint32_t i = 0; i < p->count; i++) {
        targets[h->victim_count] = p->targets[i];
        hunt_claim(h, p->movers[i]);
    }
    hunt_forget_claimed(h, p->node);
    return hunt_hold(h, e, q, p->node);
}

static int give_up(struct mover_search *m, struct entry *e, uint32_t places)
{
    int r = unreserve_last(m->hunt.s, m->hunt.victim_count);

    return hunt_give_up(&m->hunt, e, places) < 0 || r < 0 ? -ENOMEM : 0;
}

static int search_init(struct mover_search *m)
{
    const struct selector *group = &m->hunt.s->options.selector;

    m->plain = *group->ops;
    m->plain.pick = NULL;
    m->selector = (struct selector){ &m->plain, group->data };
    return hunt_init(&m->hunt);
}

int move_for(struct sched *s, struct entry *e, int64_t now_usec, struct arena *arena,
             struct sched_outcome *out)
{
    struct mover_search m = { .hunt = { .s = s, .e = e, .now_usec = now_usec, .arena = arena,
        .may_go = may_move } };
    uint32_t *targets = arena_array(arena, s->entry_count + 1, sizeof(*targets));
    const struct wish *wish;
    int r;

    if (!targets || search_init(&m) < 0)
        return -ENOMEM;
    wish = entry_wish(s, e, arena, &r);
    for (uint32_t q = 0; r == 0 && q < e->req_count; q++) {
        m.best.node = CLUSTER_NONE;
        m.req = e->reqs[q];
        search(&m, wish);
        if (m.r < 0 || m.best.node == CLUSTER_NONE)
            return give_up(&m, e, q) < 0 || m.r < 0 ? -ENOMEM : 0;
        if ((r = take(&m, e, q, targets)) < 0)
            (void)give_up(&m, e, q);
    }
    if (r < 0)
        return r;
    out->victims = m.hunt.victims;
    out->targets = targets;
    out->victim_count = m.hunt.victim_count;
    return 1;
}

int sched_reserve(struct sched *s, const struct sched_session *session, const char *agent_id)
{
    uint32_t node = cluster_find_agent(&s->cluster, agent_id);
    struct request *req = NULL;
    const struct fit *fit;
    int r;

    if (node == CLUSTER_NONE || state_find_reserved(s, session->row))
        return -ENOENT;
    if (!(req = state_request(s, session)))
        return -ENOMEM;
    fit = cluster_fit(&s->cluster, req, s->cluster.nodes[node].state, &s->options.selector);
    r = !fit ? -ENOMEM : !fit->has_room ? -ENOENT
                                        : reserve(s, session->row, req, node, fit->device);
    cluster_request_release(&s->cluster, req);
    return r;
}

int sched_unreserve(struct sched *s, int64_t row)
{
    return state_unreserve(s, row);
}

/* ---- coming back ---- */

int move_start(struct sched *s, struct entry *e)
{
    struct reserved *r = state_find_reserved(s, e->row);
    const struct cluster *c = &s->cluster;

    if (!r)
        return 0;
    if (e->req_count != 1 || e->reqs[0] != r->req ||
        c->nodes[r->hold.node].free[c->columns] == SCHED_ABSENT)
        return state_unreserve(s, e->row);
    e->holds[0] = r->hold;
    cluster_request_release(&s->cluster, r->req);
    *r = s->reserved[--s->reserved_count];
    return 1;
}
