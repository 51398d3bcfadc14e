/* SPDX-License-Identifier: Apache-2.0 */
/* service_replica.h - the sessions of a model service: requests, failures and the pause after them
 *
 * Loop's thread only.
 */
#ifndef AQ_MANAGER_CORE_SERVING_SERVICE_REPLICA_H
#define AQ_MANAGER_CORE_SERVING_SERVICE_REPLICA_H

#include <stdint.h>

#include "base/arena.h"
#include "manager/core/core.h"
#include "manager/core/services.h"

struct model_service_entry;
struct replica_entry;
struct session_entry;

/* A request for a replica, and all that it borrows. */
struct service_order {
    struct arena arena;
    struct session_request request;
    struct session_replica replica;
};

/* A replica of this revision and number, with this amount of the slot of its share (NULL = none). -ENOENT:
 * the project was removed; -EINVAL with the field. Done with service_order_done() in any case.
 */
int service_order_make(const struct core *core, const struct model_service *s,
                       const struct model_service_revision *revision, int64_t number,
                       const char *share_slot, int64_t share_micro, struct service_order *ret,
                       struct aq_error *err);
void service_order_done(struct service_order *order);

/* Create one more replica of this revision, which is kept. */
void service_replica_create(struct core *core, struct model_service_entry *entry, int64_t revision);

/* Does a replica that ends now, for this reason (NULL = that of its session), end as a failure? */
bool service_replica_is_failure(const struct session_entry *l, const char *reason);

/* The session of the replica has ended: if that was a failure, a pause follows. */
void service_replica_ended(struct core *core, struct model_service_entry *entry,
                           const struct session_entry *l);

/* A replica is ready, since 'ready_usec' (wall clock): if that is after the last failure, further ones
 * may be tried, and after ten minutes failures are forgotten. Returns when to look again, wall clock;
 * 0 = no more.
 */
int64_t service_replica_succeeded(struct model_service_entry *entry, int64_t ready_usec,
                                  int64_t now_usec);

/* Forget failures: what failed has been changed. */
void service_replica_forgive(struct model_service_entry *entry);

#endif
