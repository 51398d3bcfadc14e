/* SPDX-License-Identifier: Apache-2.0 */
/* serving_use.h - what proxies report of model services: figures since the manager's start
 *
 * Counts are added up for each service, revision, replica and token; what is under way or waits now is
 * kept for each proxy, and is 0 when the proxy has gone. Counts of a revision stay while the service
 * has the revision, those of a replica and of a token while they live. Each second the core gets what
 * each replica did in the last minute. Loop's thread only.
 */
#ifndef AQ_MANAGER_SERVING_SERVING_USE_H
#define AQ_MANAGER_SERVING_SERVING_USE_H

#include "base/strbuf.h"
#include "manager/core/core.h"
#include "model/model_service.h"
#include "serving/latency.h"

struct serving_use;

struct serving_figures {
    int64_t in_flight, queued; /* now, in all proxies; queued: of a service alone */
    /* Counts and sums; the first line is of a service alone. */
    int64_t arrived, refused, waited, queue_usec;
    int64_t requests, failures; /* that replicas got; of them without an answer, or a part of it */
    int64_t ok, client_errors, server_errors, broken;
    int64_t duration_usec, first_byte_usec; /* sums over the answered */
    int64_t prompt_tokens, completion_tokens, cached_tokens;
    /* By serving/latency.h. Proxies of before have sums without them. Not of a replica's 'recent'. */
    int64_t durations[LATENCY_BUCKETS], first_bytes[LATENCY_BUCKETS];
};

struct serving_summary {
    struct serving_figures all;           /* since the manager's start */
    struct serving_figures total;         /* with those of managers before, as far as they were
                                             stored (serving_totals.h); without histograms and, of
                                             a replica, as 'all' */
    struct serving_figures recent;        /* of the last minute; in_flight and queued are 0 */
    double per_second, tokens_per_second; /* of the last ten seconds or so */
    bool is_ejected;                      /* of a replica: some proxy sends it no requests */
};

struct serving_token_figures {
    int64_t requests, ok, client_errors, server_errors, refused;
    int64_t prompt_tokens, completion_tokens, cached_tokens;
};

/* How often a service that slept was woken by a request, and the time from that request to the first
 * ready replica.
 */
struct serving_cold_starts {
    int64_t count, usec;
};

struct serving_use *serving_use_new(struct core *core);
void serving_use_stop(struct serving_use *use); /* its timer; figures can still be read */
void serving_use_free(struct serving_use *use);

void serving_use_take(struct serving_use *use, const char *proxy,
                      const struct msg_serving_use *report) AQ_UNTRUSTED;
/* The proxy has gone. */
void serving_use_lose(struct serving_use *use, const char *proxy);
/* The service has changed: perhaps its first replica is ready. */
void serving_use_look(struct serving_use *use, const struct uuid *service_id);
/* Tell the core what each replica did in the last minute: the timer calls it each second while there
 * is something to tell. False: nothing is left of that minute.
 */
bool serving_use_tick(struct serving_use *use);
/* The service has ended. */
void serving_use_forget(struct serving_use *use, const struct uuid *service_id);

/* All of these are zeroes if nothing was reported. */
struct serving_figures serving_use_get(const struct serving_use *use,
                                       const struct uuid *service_id);
void serving_use_sum(const struct serving_use *use, const struct uuid *service_id,
                     struct serving_summary *ret);
void serving_use_sum_revision(const struct serving_use *use, const struct uuid *service_id,
                              int64_t revision, struct serving_summary *ret);
void serving_use_sum_replica(const struct serving_use *use, const struct uuid *service_id,
                             const struct uuid *session_id, struct serving_summary *ret);
struct serving_token_figures serving_use_get_token(const struct serving_use *use,
                                                   const struct uuid *service_id,
                                                   const struct uuid *token_id);
struct serving_cold_starts serving_use_get_cold_starts(const struct serving_use *use,
                                                       const struct uuid *service_id);
/* With those of managers before. */
struct serving_cold_starts serving_use_sum_cold_starts(const struct serving_use *use,
                                                       const struct uuid *service_id);

/* What a proxy has under way in a replica, as it said last. */
int64_t serving_use_in_flight(const struct serving_use *use, const char *proxy,
                              const struct uuid *service_id, const struct uuid *session_id);
/* Requests of a service that are under way or wait in a proxy. */
int64_t serving_use_demand(const struct serving_use *use, const char *proxy,
                           const struct uuid *service_id);

/* Prometheus' text: aliquot_service_*, by service and revision. */
void serving_use_write_metrics(const struct serving_use *use, const struct core *core,
                               struct strbuf *out);

#endif
