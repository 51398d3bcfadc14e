/* SPDX-License-Identifier: Apache-2.0 */
/* service_share.h - which part of a device each replica of a service has
 *
 * The share is the amount of one slot that a revision names: cuda.shares, or the only one of which
 * there are shares. Where model_service.scaling has bounds for it, the autoscaler sets it
 * (model_service.share_micro); else it is the revision's amount. Replicas that run are resized until
 * they have it. One that cannot be keeps what it has, with the reason, and is tried again after
 * 5, 10, 20, 40, 60, 60 ... seconds.
 *
 * Amounts are millionths. Loop's thread only.
 */
#ifndef AQ_MANAGER_CORE_SERVING_SERVICE_SHARE_H
#define AQ_MANAGER_CORE_SERVING_SERVICE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "manager/core/services.h"

struct model_service_entry;
struct replica_entry;

/* What a replica of the revision is to have of *ret_slot (interned); 0 = it has no share, and
 * *ret_slot is NULL.
 */
int64_t service_share_of(const struct model_service *s,
                         const struct model_service_revision *revision, const char **ret_slot);

/* The same of the next replica of this revision that is created: half of it while a rollout halves
 * fewer of the revision's replicas than of others; the least of its bounds shortly after another one
 * had no room.
 */
int64_t service_share_of_next(const struct core *core, const struct model_service_entry *entry,
                              const struct model_service_revision *revision, const char **ret_slot,
                              bool *ret_is_half);

/* A replica that runs is to get more than it has, and was not refused it. */
bool service_share_is_growing(const struct core *core, const struct model_service_entry *entry);

/* Before a change of the service: share_micro is brought within the bounds, or set to 0 without
 * bounds; bounds without a quantum get one that the devices of the cluster have.
 */
void service_share_settle(const struct core *core, struct model_service *s);

/* Whether the bounds, if there are any, suit the goal's resources and the devices of the cluster.
 * -EINVAL with a field of "scaling.share", or "resources" if 'has_revision' (the goal is new).
 */
int service_share_check(const struct core *core, const struct model_service *s, bool has_revision,
                        struct aq_error *err);

/* The step of a service's shares, after that of its replicas. Returns when to look again, monotonic;
 * INT64_MAX = not by time.
 */
int64_t service_share_step(struct core *core, struct model_service_entry *entry);

/* What the replica has and should have, into the members share_* of *ret. */
void service_share_describe(const struct core *core, const struct replica_entry *replica,
                            struct core_replica *ret);

#endif
