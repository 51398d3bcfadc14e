/* SPDX-License-Identifier: Apache-2.0 */
/* replica_plan.h - which replicas of a model service are created and which end
 *
 * Given how many replicas of the new revision and of others there are to be (rollout.h). Of too many
 * those end first that are missed least: not ready, then unhealthy, then the newest. Pure: the same
 * replicas give the same plan.
 */
#ifndef AQ_SERVING_REPLICA_PLAN_H
#define AQ_SERVING_REPLICA_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serving/rollout.h"

enum replica_stage {
    REPLICA_STAGE_STARTING,  /* waits, starts, or has not been ready yet */
    REPLICA_STAGE_READY,     /* takes requests */
    REPLICA_STAGE_UNHEALTHY, /* was ready, and does not answer now */
    REPLICA_STAGE_LEAVING,   /* drains or ends */
};

struct replica_plan_item {
    int64_t number, revision;
    enum replica_stage stage;
    bool is_unplaced;    /* it waits for resources, for longer than a moment */
    bool had_half_share; /* before */
    bool has_half_share; /* set by replica_plan(): it is to have, with another one of a pair */
    bool ends;           /* set by replica_plan(): it is to end */
};

struct replica_plan {
    int64_t goal; /* the revision whose replicas are new; all others are old */
    struct replica_plan_item *items;
    size_t count;
    int64_t old_created, new_created; /* set by replica_plan(): so many are missing */
};

/* Add the replicas of each side to a sample. */
void replica_plan_count(const struct replica_plan *plan, struct rollout_side *old,
                        struct rollout_side *new);

/* Set what is to be set, by what a rollout wants. */
void replica_plan(struct replica_plan *plan, const struct rollout_actions *wanted);

#endif
