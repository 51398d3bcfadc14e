/* preempt.c - who makes way for a more important session
 *
 * On each agent those that may be displaced are taken in the order of their
 * job priority, then as the group wishes, until there is room; then whoever
 * is not needed after all is left alone, the most important first. Of the
 * agents the one whose victims matter least is chosen. The room of victims
 * that were chosen before counts as there already, less what it was chosen for.
 */
#include <errno.h>
#include <string.h>

#include "sched/hunt.h"

/* ---- victims ---- */

static bool may_displace(const struct hunt *h, const struct entry *v)
{
    return v->status == ENTRY_PLACED && v->is_preemptible && !v->is_claimed &&
           v->placed_in != h->s->passes && v->job_priority < h->e->job_priority &&
           v->started_usec <= h->now_usec - h->s->options.preemption.min_runtime_usec &&
           hunt_is_same_scope(h->e, v);
}

/* < 0: 'a' goes before 'b'. */
static int compare_victims(const struct hunt *h, uint32_t node, const struct request *req,
                           const struct entry *a, const struct entry *b)
{
    double x = hunt_contribution(h, a, node, req), y = hunt_contribution(h, b, node, req);
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

        if (v->is_claimed || hunt_contribution(h, v, node, req) <= 0)
            continue;
        for (; at > 0 && compare_victims(h, node, req, v,
                                         &h->s->entries[h->candidates[at - 1]]) < 0; at--)
            h->candidates[at] = h->candidates[at - 1];
        h->candidates[at] = h->by_node[i];
        h->candidate_count++;
    }
}

/* Choose among the candidates; false if all of them are not enough. */
static bool choose(struct hunt *h, uint32_t node, const struct request *req, uint32_t *ret_count)
{
    bool enough;

    hunt_begin(h, node);
    hunt_forget_claimed(h, node);
    find_candidates(h, node, req);
    enough = hunt_fits(h, node, req);
    *ret_count = 0;
    for (uint32_t i = 0; i < h->candidate_count; i++) {
        h->is_chosen[i] = !enough;
        if (enough)
            continue;
        hunt_without(h, &h->s->entries[h->candidates[i]], node, 1);
        enough = hunt_fits(h, node, req);
        ++*ret_count;
    }
    for (uint32_t i = h->candidate_count; enough && i-- > 0;) {
        if (!h->is_chosen[i])
            continue;
        hunt_without(h, &h->s->entries[h->candidates[i]], node, -1);
        if (hunt_fits(h, node, req)) {
            h->is_chosen[i] = false;
            --*ret_count;
        } else {
            hunt_without(h, &h->s->entries[h->candidates[i]], node, 1);
        }
    }
    return enough && hunt_fits(h, node, req);
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
    uint32_t count;

    (void)choose(h, node, e->reqs[q], &count);
    for (uint32_t i = 0; i < h->candidate_count; i++)
        if (h->is_chosen[i])
            hunt_claim(h, h->candidates[i]);
    return hunt_hold(h, e->reqs[q], node, &e->holds[q]);
}

int preempt_for(struct sched *s, struct entry *e, int64_t now_usec, struct arena *arena,
                const uint32_t **ret, size_t *ret_count)
{
    struct hunt h = { .s = s, .e = e, .now_usec = now_usec, .arena = arena,
                      .may_go = may_displace };
    const struct wish *wish;
    int r;

    if (e->type == SESSION_SYSTEM || hunt_init(&h) < 0)
        return e->type == SESSION_SYSTEM ? 0 : -ENOMEM;
    wish = entry_wish(s, e, arena, &r);
    for (uint32_t q = 0; r == 0 && q < e->req_count; q++) {
        struct price best = { .node = CLUSTER_NONE };

        if (!find_node(&h, e->reqs[q], wish, &best))
            return hunt_give_up(&h, e, q) < 0 ? -ENOMEM : 0;
        if ((r = take(&h, e, q, best.node)) < 0)
            (void)hunt_give_up(&h, e, q);
    }
    if (r < 0)
        return r;
    *ret = h.victims;
    *ret_count = h.victim_count;
    return 1;
}
