/* SPDX-License-Identifier: Apache-2.0 */
/* replica_plan.c - which replicas are created and which end */
#include "serving/replica_plan.h"

#include "base/cleanup.h"

void replica_plan_count(const struct replica_plan *plan, struct rollout_side *old,
                        struct rollout_side *new)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct replica_plan_item *item = &plan->items[i];
        struct rollout_side *side = item->revision == plan->goal ? new : old;

        side->live++;
        side->draining += item->stage == REPLICA_STAGE_LEAVING;
        side->starting += item->stage == REPLICA_STAGE_STARTING;
        side->ready += item->stage == REPLICA_STAGE_READY;
        side->unplaced += item->is_unplaced;
    }
}

/* Replicas that are least missed come first: not ready, then unhealthy, then the newest. */
static bool replica_ends_before(const struct replica_plan_item *a,
                                const struct replica_plan_item *b)
{
    static const int order[] = { [REPLICA_STAGE_STARTING] = 0,
                                 [REPLICA_STAGE_UNHEALTHY] = 1,
                                 [REPLICA_STAGE_READY] = 2,
                                 [REPLICA_STAGE_LEAVING] = 3 };

    if (order[a->stage] != order[b->stage])
        return order[a->stage] < order[b->stage];
    return a->number > b->number;
}

/* One that has half a share keeps it; then come those that make room or wait for it: old ones that
 * leave, new ones without a place, and those that would end next.
 */
static bool replica_shares_before(const struct replica_plan_item *a,
                                  const struct replica_plan_item *b)
{
    bool a_leaves = a->stage == REPLICA_STAGE_LEAVING, b_leaves = b->stage == REPLICA_STAGE_LEAVING;

    if (a->had_half_share != b->had_half_share)
        return a->had_half_share;
    if (a_leaves != b_leaves)
        return a_leaves;
    if (a->is_unplaced != b->is_unplaced)
        return a->is_unplaced;
    return replica_ends_before(a, b);
}

/* End the least missed of one side until there are 'wanted'. Returns how many are missing. */
static int64_t replica_plan_side(struct replica_plan *plan, bool is_new, int64_t wanted)
{
    int64_t serving = 0;

    for (size_t i = 0; i < plan->count; i++)
        serving += plan->items[i].stage != REPLICA_STAGE_LEAVING
                   && (plan->items[i].revision == plan->goal) == is_new;
    for (; serving > wanted; serving--) {
        struct replica_plan_item *first = NULL;

        for (size_t i = 0; i < plan->count; i++) {
            struct replica_plan_item *item = &plan->items[i];

            if (item->stage != REPLICA_STAGE_LEAVING && !item->ends
                && (item->revision == plan->goal) == is_new
                && (!first || replica_ends_before(item, first)))
                first = item;
        }
        first->ends = true;
    }
    return wanted - serving;
}

static void replica_plan_share(struct replica_plan *plan, bool is_new, int64_t count)
{
    for (; count > 0; count--) {
        struct replica_plan_item *first = NULL;

        for (size_t i = 0; i < plan->count; i++) {
            struct replica_plan_item *item = &plan->items[i];

            if (!item->has_half_share && (item->revision == plan->goal) == is_new
                && (!first || replica_shares_before(item, first)))
                first = item;
        }
        if (!first)
            return;
        first->has_half_share = true;
    }
}

void replica_plan(struct replica_plan *plan, const struct rollout_actions *wanted)
{
    for (size_t i = 0; i < plan->count; i++)
        plan->items[i].ends = plan->items[i].has_half_share = false;
    plan->old_created = replica_plan_side(plan, false, wanted->old_wanted);
    plan->new_created = replica_plan_side(plan, true, wanted->new_wanted);
    replica_plan_share(plan, false, wanted->shared);
    /* One that is missing is created with half a share, so none that serves gives up a half for it. */
    replica_plan_share(plan, true, wanted->shared - plan->new_created);
}
