/* SPDX-License-Identifier: Apache-2.0 */
/* preempt.c - which running sessions are preempted for a more important one, and which optional
 * kernels for any
 *
 * On each agent the evictable sessions are taken in the order of their job
 * priority, then as the resource group's victim order says, until there is room; then victims
 * that are not needed after all are spared, the most important first. Of the
 * agents the one whose victims matter least is chosen. What victims hold
 * that were chosen before counts as there already, less what it was chosen for.
 *
 * Where a booking begins before the session would end, an agent also needs the room in the forecast,
 * from which the victims are taken for the search.
 */
#include <string.h>

#include "sched/gang.h"
#include "sched/victim_search.h"

/* ---- victims ---- */

static bool preempt_is_optional(const struct victim_search *vs, const struct sched_entry *v)
{
    return v->status == ENTRY_PLACED && v->unit == SCHED_OPTIONAL_KERNEL && !v->is_victim
           && v->placed_in_pass != vs->s->pass_count;
}

static bool preempt_is_evictable(const struct victim_search *vs, const struct sched_entry *v)
{
    if (v->unit != SCHED_SESSION)
        return preempt_is_optional(vs, v);
    return v->status == ENTRY_PLACED && v->is_preemptible && !v->is_victim
           && v->placed_in_pass != vs->s->pass_count && v->job_priority < vs->e->job_priority
           && v->started_usec <= vs->now_usec - vs->s->options.preemption.min_runtime_usec
           && victim_search_is_same_scope(vs->e, v);
}

/* < 0: 'a' goes before 'b'. */
static int preempt_compare_victims(const struct victim_search *vs, uint32_t node,
                                   const struct slot_request *req, const struct sched_entry *a,
                                   const struct sched_entry *b)
{
    double x = victim_search_contribution(vs, a, node, req),
           y = victim_search_contribution(vs, b, node, req);
    int order = 0;

    if (a->unit != b->unit)
        return a->unit == SCHED_OPTIONAL_KERNEL ? -1 : 1;
    if (a->unit == SCHED_OPTIONAL_KERNEL && a->rank != b->rank)
        return a->rank > b->rank ? -1 : 1;
    if (a->job_priority != b->job_priority)
        return a->job_priority < b->job_priority ? -1 : 1;
    switch (vs->s->options.preemption.order) {
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

/* Those on 'node' that may be preempted and hold what is asked for, in order. */
static void preempt_find_candidates(struct victim_search *vs, uint32_t node,
                                    const struct slot_request *req)
{
    vs->candidate_count = 0;
    for (uint32_t i = vs->starts[node]; i < vs->starts[node + 1]; i++) {
        const struct sched_entry *v = &vs->s->entries[vs->by_node[i]];
        uint32_t at = vs->candidate_count;

        if (v->is_victim || victim_search_contribution(vs, v, node, req) <= 0)
            continue;
        for (; at > 0
               && preempt_compare_victims(vs, node, req, v, &vs->s->entries[vs->candidates[at - 1]])
                      < 0;
             at--)
            vs->candidates[at] = vs->candidates[at - 1];
        vs->candidates[at] = vs->by_node[i];
        vs->candidate_count++;
    }
}

static bool preempt_fits(struct victim_search *vs, uint32_t node, const struct slot_request *req)
{
    return victim_search_fits(vs, node, req)
           && (!vs->forecast || forecast_fits_later(vs->forecast, vs->e, req, node));
}

static void preempt_assume_gone(struct victim_search *vs, uint32_t candidate, uint32_t node,
                                int sign)
{
    const struct sched_entry *v = &vs->s->entries[vs->candidates[candidate]];

    victim_search_assume_gone(vs, v, node, sign);
    if (vs->forecast)
        forecast_assume_gone_from(vs->forecast, v, node, sign);
}

/* Choose among the candidates; false if all of them are not enough. */
static bool preempt_choose(struct victim_search *vs, uint32_t node, const struct slot_request *req,
                           uint32_t *ret_count)
{
    bool enough;

    victim_search_load_node(vs, node);
    victim_search_assume_claimed_gone(vs, node);
    preempt_find_candidates(vs, node, req);
    enough = preempt_fits(vs, node, req);
    *ret_count = 0;
    for (uint32_t i = 0; i < vs->candidate_count; i++) {
        vs->is_chosen[i] = !enough;
        if (enough)
            continue;
        preempt_assume_gone(vs, i, node, 1);
        enough = preempt_fits(vs, node, req);
        ++*ret_count;
    }
    for (uint32_t i = vs->candidate_count; enough && i-- > 0;) {
        if (!vs->is_chosen[i])
            continue;
        preempt_assume_gone(vs, i, node, -1);
        if (preempt_fits(vs, node, req)) {
            vs->is_chosen[i] = false;
            --*ret_count;
        } else {
            preempt_assume_gone(vs, i, node, 1);
        }
    }
    enough = enough && preempt_fits(vs, node, req);
    for (uint32_t i = 0; vs->forecast && i < vs->candidate_count; i++)
        if (vs->is_chosen[i])
            forecast_assume_gone_from(vs->forecast, &vs->s->entries[vs->candidates[i]], node, -1);
    return enough;
}

/* ---- agents ---- */

struct preempt_cost {
    uint32_t node, count;
    int job_priority; /* the highest among the victims that are sessions */
    uint32_t rank;    /* the highest among those that are optional kernels */
    uint32_t first;   /* the victim that is taken first, NO_HANDLE = none */
};

static struct preempt_cost preempt_cost_of(const struct victim_search *vs, uint32_t node,
                                           uint32_t count)
{
    struct preempt_cost p = { node, count, INT32_MIN, 0, NO_HANDLE };

    for (uint32_t i = 0; i < vs->candidate_count; i++) {
        const struct sched_entry *v = &vs->s->entries[vs->candidates[i]];

        if (!vs->is_chosen[i])
            continue;
        if (v->unit == SCHED_OPTIONAL_KERNEL) {
            p.rank = AQ_MAX(p.rank, v->rank);
            continue;
        }
        if (p.first == NO_HANDLE)
            p.first = vs->candidates[i];
        p.job_priority = AQ_MAX(p.job_priority, v->job_priority);
    }
    return p;
}

static bool preempt_is_cheaper(const struct victim_search *vs, const struct preempt_cost *a,
                               const struct preempt_cost *b)
{
    enum sched_victims order = vs->s->options.preemption.order;
    const struct cluster *c = &vs->s->cluster;
    int by_age = 0;

    if (a->job_priority != b->job_priority)
        return a->job_priority < b->job_priority;
    if ((order == SCHED_OLDEST || order == SCHED_NEWEST) && a->first != NO_HANDLE
        && b->first != NO_HANDLE) {
        int64_t x = vs->s->entries[a->first].started_usec,
                y = vs->s->entries[b->first].started_usec;

        by_age = order == SCHED_OLDEST ? (x > y) - (x < y) : (x < y) - (x > y);
    }
    if (by_age)
        return by_age < 0;
    if (a->count != b->count)
        return a->count < b->count;
    if (a->rank != b->rank)
        return a->rank > b->rank;
    return strcmp(c->nodes[a->node].id, c->nodes[b->node].id) < 0;
}

static bool preempt_find_node(struct victim_search *vs, const struct slot_request *req,
                              const struct placement_constraints *constraints,
                              struct preempt_cost *ret)
{
    const struct cluster *c = &vs->s->cluster;
    bool found = false;

    for (uint32_t n = 0; n < c->node_count; n++) {
        struct preempt_cost p;
        uint32_t count;
        int64_t rank;

        if (!cluster_matches(c, req, n) || (constraints && !placement_allows(constraints, n, &rank))
            || !preempt_choose(vs, n, req, &count))
            continue;
        p = preempt_cost_of(vs, n, count);
        if (!found || preempt_is_cheaper(vs, &p, ret))
            *ret = p;
        found = true;
    }
    return found;
}

/* Claim the victims on the node and hold it, from devices that will be free. */
static void preempt_take(struct victim_search *vs, struct sched_entry *e, uint32_t q, uint32_t node)
{
    uint32_t count;

    (void)preempt_choose(vs, node, e->reqs[q], &count);
    for (uint32_t i = 0; i < vs->candidate_count; i++) {
        if (!vs->is_chosen[i])
            continue;
        victim_search_claim(vs, vs->candidates[i]);
        if (vs->forecast)
            forecast_assume_gone(vs->forecast, &vs->s->entries[vs->candidates[i]], 1);
    }
    if (vs->forecast)
        forecast_hold_later(vs->forecast, e, q, node, &e->holds[q]);
    else
        victim_search_hold(vs, e->reqs[q], node, &e->holds[q]);
}

/* The forecast as it was before the search. */
static void preempt_restore_forecast(struct victim_search *vs, const struct sched_entry *e)
{
    if (!vs->forecast)
        return;
    for (uint32_t i = 0; i < vs->victim_count; i++)
        forecast_assume_gone(vs->forecast, &vs->s->entries[vs->victims[i]], -1);
    forecast_change_holds(vs->forecast, e, e->holds, 1);
}

struct preempt_gang {
    struct victim_search *vs;
    struct sched_entry *e;
};

static uint32_t preempt_hold(void *data, uint32_t q,
                             const struct placement_constraints *constraints)
{
    struct preempt_gang *g = data;
    struct preempt_cost best = { .node = CLUSTER_NONE };

    if (preempt_find_node(g->vs, g->e->reqs[q], constraints, &best))
        preempt_take(g->vs, g->e, q, best.node);
    return best.node;
}

static void preempt_undo(void *data, uint32_t q, const struct placement_constraints *constraints)
{
    struct preempt_gang *g = data;

    (void)constraints;
    preempt_restore_forecast(g->vs, g->e);
    victim_search_cancel(g->vs, g->e, q);
}

/* Hold all places of the session, as far as needed on top of victims. Kernels of one session go
 * where the fewest are preempted, not near to each other.
 */
static bool preempt_search(struct victim_search *vs, struct sched_entry *e, const uint32_t **ret,
                           size_t *ret_count)
{
    static const struct gang_ops ops = { NULL, preempt_hold, preempt_undo };
    struct preempt_gang g = { vs, e };

    if (e->type == SESSION_SYSTEM)
        return false;
    victim_search_init(vs);
    if (!gang_place(vs->s, e, entry_constraints(vs->s, e, vs->arena), &ops, &g, vs->arena))
        return false;
    preempt_restore_forecast(vs, e);
    *ret = vs->victims;
    *ret_count = vs->victim_count;
    return true;
}

bool preempt_for(struct sched *s, struct sched_entry *e, int64_t now_usec,
                 struct forecast *forecast, struct arena *arena, const uint32_t **ret,
                 size_t *ret_count)
{
    struct victim_search vs = { .s = s,
                                .e = e,
                                .now_usec = now_usec,
                                .arena = arena,
                                .forecast = forecast,
                                .is_evictable = preempt_is_evictable };

    return preempt_search(&vs, e, ret, ret_count);
}

bool preempt_optional_for(struct sched *s, struct sched_entry *e, int64_t now_usec,
                          struct forecast *forecast, struct arena *arena, const uint32_t **ret,
                          size_t *ret_count)
{
    struct victim_search vs = { .s = s,
                                .e = e,
                                .now_usec = now_usec,
                                .arena = arena,
                                .forecast = forecast,
                                .is_evictable = preempt_is_optional };

    return preempt_search(&vs, e, ret, ret_count);
}
