/* SPDX-License-Identifier: Apache-2.0 */
/* replica_plan.c - which replicas are created and which end */
#include "serving/replica_plan.h"

#include "base/cleanup.h"

static bool replica_counts(const struct replica_plan_item *item)
{
    return item->stage != REPLICA_STAGE_LEAVING && !item->ends;
}

/* Replicas that are least missed come first: not ready, then unhealthy, then the newest. */
static bool replica_ends_before(const struct replica_plan_item *a,
                                const struct replica_plan_item *b)
{
    static const int order[] = {
        [REPLICA_STAGE_STARTING] = 0, [REPLICA_STAGE_UNHEALTHY] = 1, [REPLICA_STAGE_READY] = 2
    };

    if (order[a->stage] != order[b->stage])
        return order[a->stage] < order[b->stage];
    return a->number > b->number;
}

/* End up to 'count' replicas of the goal, or of other revisions. */
static void replica_plan_end(struct replica_plan *plan, bool of_goal, int64_t count)
{
    for (; count > 0; count--) {
        struct replica_plan_item *first = NULL;

        for (size_t i = 0; i < plan->count; i++) {
            struct replica_plan_item *item = &plan->items[i];

            if (replica_counts(item) && (item->revision == plan->goal) == of_goal
                && (!first || replica_ends_before(item, first)))
                first = item;
        }
        if (!first)
            return;
        first->ends = true;
    }
}

int64_t replica_plan(struct replica_plan *plan)
{
    int64_t goal = 0, others = 0, answering = 0, beside = 0;

    for (size_t i = 0; i < plan->count; i++) {
        struct replica_plan_item *item = &plan->items[i];

        /* One of another revision that has not been ready is of no use any longer. */
        item->ends = item->stage != REPLICA_STAGE_LEAVING
                     && (plan->wanted == 0
                         || (item->revision != plan->goal
                             && item->stage == REPLICA_STAGE_STARTING));
        if (!replica_counts(item))
            continue;
        goal += item->revision == plan->goal;
        others += item->revision != plan->goal;
        /* An unhealthy one of the goal does not replace anything; others end before ready ones. */
        answering += item->stage == REPLICA_STAGE_READY
                     || (item->stage == REPLICA_STAGE_UNHEALTHY && item->revision != plan->goal);
    }
    replica_plan_end(plan, true, goal - plan->wanted);
    goal = AQ_MIN(goal, plan->wanted);
    if (!others)
        return plan->wanted - goal;
    replica_plan_end(plan, false, answering - plan->wanted);
    /* One that drains may hold its resources for long, and is not exceeded either. */
    for (size_t i = 0; i < plan->count; i++)
        beside += plan->items[i].revision != plan->goal || !replica_counts(&plan->items[i]);
    return AQ_MAX(AQ_MIN(plan->wanted - goal, plan->wanted + plan->surge - goal - beside),
                  INT64_C(0));
}
