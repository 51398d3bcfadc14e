/* SPDX-License-Identifier: Apache-2.0 */
/* replica_plan.h - which replicas of a model service are created and which end
 *
 * Replicas of the goal are created until there are as many as wanted. Those of other revisions end
 * as replicas of the goal become ready, so a rollout never takes away what answers requests. Pure: the
 * same replicas give the same plan.
 */
#ifndef AQ_SERVING_REPLICA_PLAN_H
#define AQ_SERVING_REPLICA_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum replica_stage {
    REPLICA_STAGE_STARTING,  /* waits, starts, or has not been ready yet */
    REPLICA_STAGE_READY,     /* takes requests */
    REPLICA_STAGE_UNHEALTHY, /* was ready, and does not answer now */
    REPLICA_STAGE_LEAVING,   /* drains or ends */
};

struct replica_plan_item {
    int64_t number, revision;
    enum replica_stage stage;
    bool ends; /* set by replica_plan(): it is to end */
};

struct replica_plan {
    int64_t wanted; /* replicas; 0 = all end */
    int64_t goal;   /* revision of which they are to be */
    int64_t surge;  /* replicas beyond 'wanted' during a rollout, at least 1; leaving ones count */
    struct replica_plan_item *items;
    size_t count;
};

/* Sets 'ends' of all items; returns how many replicas of the goal are to be created now. */
int64_t replica_plan(struct replica_plan *plan);

#endif
