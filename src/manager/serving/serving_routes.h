/* SPDX-License-Identifier: Apache-2.0 */
/* serving_routes.h - what proxies hear of model services, and when a replica that drains is idle
 *
 * A proxy that connects gets a snapshot of all services; then it gets those that have changed, once
 * for each turn of the loop. Versions are wall-clock microseconds and always grow, also over restarts
 * of the manager, as proxies go on by the routes that they have.
 *
 * A replica that drains is idle when each proxy has confirmed routes that say so, and has nothing
 * under way there. A proxy that is away is waited for as long as requests may take (limits.drain_usec);
 * after its own start the manager waits for proxies that it has not heard yet. Loop's thread only.
 */
#ifndef AQ_MANAGER_SERVING_SERVING_ROUTES_H
#define AQ_MANAGER_SERVING_SERVING_ROUTES_H

#include "manager/call/api.h"
#include "manager/serving/serving_scale.h"
#include "manager/serving/serving_use.h"

struct serving_routes;

/* Talks with the core's proxies from now on. 'use' and 'scale' are borrowed. */
struct serving_routes *serving_routes_new(struct core *core, struct serving_use *use,
                                          struct serving_scale *scale);
void serving_routes_stop(struct serving_routes *routes);
/* NULL is fine. */
void serving_routes_free(struct serving_routes *routes);

/* Divide a cap over proxies by their demand: each gets at least 1, and together they get 'cap', or
 * one each if that is more. Without demand all get the same. Pure.
 */
void serving_routes_divide(int64_t cap, const int64_t *demand, size_t count, int64_t *ret);

#endif
