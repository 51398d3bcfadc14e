/* SPDX-License-Identifier: Apache-2.0 */
/* serving_use.h - what proxies report of model services: figures since the manager's start
 *
 * Counts are added up; what is under way or waits now is kept for each proxy, and is 0 when the proxy
 * has gone. Only services that live, their replicas and tokens are counted. Loop's thread only.
 */
#ifndef AQ_MANAGER_SERVING_SERVING_USE_H
#define AQ_MANAGER_SERVING_SERVING_USE_H

#include "base/strbuf.h"
#include "manager/core/core.h"

struct serving_use;

struct serving_figures {
    int64_t in_flight, queued; /* now, in all proxies */
    int64_t arrived, ok, client_errors, server_errors, refused, broken, waited;
    int64_t duration_usec, first_byte_usec, queue_usec; /* sums over the answered */
};

struct serving_replica_figures {
    int64_t in_flight; /* now, in all proxies */
    int64_t requests, failures;
    bool is_ejected; /* some proxy routes no requests to it */
};

struct serving_use *serving_use_new(struct core *core);
void serving_use_free(struct serving_use *use);

void serving_use_take(struct serving_use *use, const char *proxy,
                      const struct msg_serving_use *report);
/* The proxy has gone. */
void serving_use_lose(struct serving_use *use, const char *proxy);
/* The service has ended. */
void serving_use_forget(struct serving_use *use, const struct uuid *service_id);

/* Zeroes if nothing was reported. */
struct serving_figures serving_use_get(const struct serving_use *use,
                                       const struct uuid *service_id);
struct serving_replica_figures serving_use_get_replica(const struct serving_use *use,
                                                       const struct uuid *service_id,
                                                       const struct uuid *session_id);

/* What a proxy has under way in a replica, as it said last. */
int64_t serving_use_in_flight(const struct serving_use *use, const char *proxy,
                              const struct uuid *service_id, const struct uuid *session_id);
/* Requests of a service that are under way or wait in a proxy. */
int64_t serving_use_demand(const struct serving_use *use, const char *proxy,
                           const struct uuid *service_id);

/* Prometheus' text: aliquot_service_*, by service. */
void serving_use_write_metrics(const struct serving_use *use, struct strbuf *out);

#endif
