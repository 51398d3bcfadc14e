/* SPDX-License-Identifier: Apache-2.0 */
/* service_rollout.h - how a model service goes from one revision to another
 *
 * The rules are those of serving/rollout.h. Settings and state are in the row of the service, and
 * change with it: a new goal begins a rollout in the transaction that sets it, an aborted rollout
 * sets the goal back in the transaction that says so. Loop's thread only.
 */
#ifndef AQ_MANAGER_CORE_SERVING_SERVICE_ROLLOUT_H
#define AQ_MANAGER_CORE_SERVING_SERVICE_ROLLOUT_H

#include "base/clock.h"
#include "manager/core/services.h"
#include "serving/replica_plan.h"

struct model_service_entry;
struct session_entry;

#define SERVICE_UNPLACED_USEC (5 * USEC_PER_SEC) /* a normal start waits less for a place */

/* The row of the service is loaded, or another one: read its settings and state. */
void service_rollout_load(struct model_service_entry *entry);

/* The replicas of the service, in its order, as a plan; the items are to be freed. */
void service_rollout_list(const struct core *core, const struct model_service_entry *entry,
                          struct replica_plan *ret);

/* What is wanted now of these replicas, of which the plan's goal is set. A changed state, and goal,
 * are proposed. Sets how requests are divided.
 */
void service_rollout_decide(struct core *core, struct model_service_entry *entry,
                            struct replica_plan *plan, struct rollout_actions *ret);

/* A rollout to this revision is under way. */
bool service_rollout_is_to(const struct model_service_entry *entry, int64_t revision);

/* Count a failure in memory once the store has: the replica ended before it was of use, or stopped
 * answering. A replica is counted once, for its revision.
 */
void service_rollout_count_failure(struct session_entry *l, int64_t at_usec);

/* 'made' is to be the row after that of 'was' (NULL = it is new): keep the state, or begin a rollout
 * to its goal. Replaces made->rollout. *ret_reason: for the history, to be freed; stays if no rollout
 * begins. -EINVAL, -E2BIG with a field in "rollout".
 */
int service_rollout_merge(const struct core *core, const struct model_service_entry *was,
                          struct model_service *made, char **ret_reason, struct aq_error *err);

enum service_rollout_ask {
    SERVICE_ROLLOUT_NOT_ASKED,
    SERVICE_ROLLOUT_PROMOTE,
    SERVICE_ROLLOUT_ABORT
};

/* Change the state, and goal, of 'made', a copy of the row of 'was', as people ask. *ret_reason as
 * above. -EBUSY, kind "conflict": there is nothing to promote or to abort.
 */
int service_rollout_ask(const struct core *core, const struct model_service_entry *was,
                        enum service_rollout_ask ask, struct model_service *made, char **ret_reason,
                        struct aq_error *err);

#endif
