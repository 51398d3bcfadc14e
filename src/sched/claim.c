/* SPDX-License-Identifier: Apache-2.0 */
/* claim.c - resources that are kept for a session that has waited too long
 *
 * A session whose start depends on the end of sessions without a lifetime has no start time, so
 * others pass it for as long as they fit. After max_wait_usec it gets a claim: agents and devices
 * on which nothing else starts until it has started. It starts where it first fits, on these or
 * on others.
 *
 * The agents are those where it would start first if each session without a lifetime ran
 * as long again as it has run: those that have run longest are the least likely to end soon. The
 * choice is kept, because a claim that moves would lose resources that have become free, and is
 * made again after max_wait_usec, or when one of the agents can no longer hold the session.
 *
 * Claims cost idle resources. So there is at most one claim per ten agents, and at least one may
 * exist; a session whose claim has led to nothing for max_wait_usec gives way to others that
 * have waited as long.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "sched/forecast_internal.h"
#include "sched/gang.h"

#define AGENTS_PER_CLAIM 10

static void claim_drop_holds(struct room_claim *claim)
{
    for (uint32_t q = 0; q < claim->count; q++)
        free(claim->holds[q].parts);
    claim->count = 0;
}

void claim_free(struct room_claim *claim)
{
    if (claim)
        claim_drop_holds(claim);
    free(claim);
}

bool claim_is_due(const struct sched *s, const struct sched_entry *e, int64_t now_usec)
{
    return s->options.max_wait_usec > 0 && e->eligible_usec > 0
           && now_usec - e->eligible_usec >= s->options.max_wait_usec;
}

/* Are its agents and devices still there, and take sessions? */
static bool claim_is_valid(const struct sched *s, const struct sched_entry *e)
{
    const struct cluster *c = &s->cluster;

    for (uint32_t q = 0; q < e->claim->count; q++) {
        const struct hold *h = &e->claim->holds[q];
        const struct cluster_node *n = &c->nodes[h->node];

        if (n->free[c->columns] == SCHED_ABSENT || !cluster_matches(c, e->reqs[q], h->node))
            return false;
        for (uint32_t i = 0; i < h->part_count; i++)
            if (h->parts[i].device >= n->device_count)
                return false;
    }
    return e->claim->count == 0 || gang_is_connected(s, e, e->claim->holds);
}

/* Take what is claimed out of the timelines. */
static void claim_apply(struct forecast *p, const struct sched_entry *e)
{
    for (uint32_t q = 0; q < e->claim->count; q++) {
        const struct hold *h = &e->claim->holds[q];

        availability_keep(p, h->node, e->reqs[q], h->parts, h->part_count);
        forecast_mark_promised(p, h->node, e);
    }
}

/* Replaces the claim of 'e'. It gets no agents if none could hold the session. */
static void claim_choose(struct forecast *p, struct sched_entry *e)
{
    struct forecast *likely = forecast_new(p->s, p->now_usec, true, p->arena);
    struct room_claim *claim = aq_alloc(sizeof(*claim) + e->req_count * sizeof(claim->holds[0]));
    int64_t at;

    claim_free(e->claim);
    e->claim = claim;
    claim->chosen_usec = p->now_usec;
    for (uint32_t i = 0; i < p->claim_count; i++)
        claim_apply(likely, &p->s->entries[p->claims[i]]);
    at = forecast_reserve_earliest(likely, e, p->now_usec);
    for (uint32_t q = 0; q < e->req_count; q++) {
        if (at != INT64_MAX)
            claim->holds[claim->count++] = e->holds[q];
        else
            free(e->holds[q].parts);
        e->holds[q] = (struct hold){ .node = CLUSTER_NONE };
    }
}

/* It gives way for max_wait_usec if others were refused a claim since it was chosen. */
static void claim_renew(struct forecast *p, struct sched_entry *e)
{
    if (e->claim && e->claim->count && p->s->claim_refused_usec > e->claim->chosen_usec
        && claim_is_valid(p->s, e)) {
        e->claim->chosen_usec = p->now_usec;
        claim_drop_holds(e->claim);
    } else {
        claim_choose(p, e);
    }
}

bool claim_keep(struct forecast *p, struct sched_entry *e, bool may_choose)
{
    struct sched *s = p->s;
    uint32_t max = AQ_MAX(s->cluster.agent_count / AGENTS_PER_CLAIM, 1u);

    if (p->claim_count == max) {
        if (may_choose) {
            s->claim_refused_usec = p->now_usec;
            claim_free(AQ_TAKE(e->claim));
        }
        return false;
    }
    if (!p->claims)
        p->claims = arena_array(p->arena, max, sizeof(*p->claims));
    if (may_choose
        && (!e->claim || p->now_usec - e->claim->chosen_usec >= s->options.max_wait_usec
            || !claim_is_valid(s, e)))
        claim_renew(p, e);
    if (!e->claim && !may_choose) {
        p->claim_count++;
        return true;
    }
    if (!e->claim || e->claim->count == 0 || !claim_is_valid(s, e))
        return false;
    p->claims[p->claim_count++] = (uint32_t)(e - s->entries);
    claim_apply(p, e);
    return true;
}
