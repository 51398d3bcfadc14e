/* SPDX-License-Identifier: Apache-2.0 */
/* serving_route.h - a model service as proxies hear of it */
#ifndef AQ_MANAGER_SERVING_SERVING_ROUTE_H
#define AQ_MANAGER_SERVING_SERVING_ROUTE_H

#include "base/arena.h"
#include "link/message.h"
#include "manager/core/services.h"

#define SERVING_QUEUE_MAX 1000
#define SERVING_QUEUE_BYTES (INT64_C(64) << 20)
#define SERVING_QUEUE_USEC (INT64_C(600) * USEC_PER_SEC)
#define SERVING_REQUEST_USEC (INT64_C(600) * USEC_PER_SEC)
#define SERVING_DRAIN_USEC (INT64_C(600) * USEC_PER_SEC)

/* All but the cap, which is each proxy's own; of a service that ends, that it is gone. Arrays are in the arena; texts are the core's, borrowed
 * until the loop runs again.
 */
void serving_route_make(const struct core *core, const struct model_service *service,
                        int64_t now_usec, struct arena *arena, struct msg_serving_service *ret);

/* Bytes that it takes in a message, about and rather too many. */
size_t serving_route_size(const struct msg_serving_service *route);

#endif
