/* SPDX-License-Identifier: Apache-2.0 */
/* serving_use_internal.h - what serving_use.c counts, for serving_use_sum.c, which is asked for it */
#ifndef AQ_MANAGER_SERVING_SERVING_USE_INTERNAL_H
#define AQ_MANAGER_SERVING_SERVING_USE_INTERNAL_H

#include <stddef.h>

#include "base/map.h"
#include "manager/serving/serving_use.h"
#include "manager/serving/use_window.h"

/* The counts of struct serving_figures, as an array: all of them, or without histograms. */
#define FIGURES_AT offsetof(struct serving_figures, arrived)
#define FIGURES_ALL ((sizeof(struct serving_figures) - FIGURES_AT) / sizeof(int64_t))
#define FIGURES_PLAIN ((offsetof(struct serving_figures, durations) - FIGURES_AT) / sizeof(int64_t))

struct use_sums {
    struct serving_figures all;    /* without what is now */
    struct serving_figures before; /* of the managers before, without histograms */
    struct use_window *window;     /* NULL = nothing was counted in the last minute */
    bool is_changed; /* 'all' has changed since it was stored; a replica's is not stored */
};

struct use_revision {
    int64_t number;
    struct use_sums sums;
};

struct use_replica {
    struct uuid id;
    struct use_sums sums; /* their windows have no histograms */
};

struct use_token {
    struct uuid id;
    struct serving_token_figures figures;
    bool is_changed; /* as above */
};

/* What a replica has in one proxy now. */
struct use_load {
    struct uuid id;
    int64_t in_flight;
    bool is_ejected;
};

struct use_proxy {
    char id[AGENT_ID_MAX + 1];
    int64_t in_flight, queued;
    struct use_load *loads; /* as the last report listed them */
    size_t load_count, load_cap;
};

struct service_use {
    struct uuid id;
    struct use_sums sums;
    struct use_revision *revisions;
    size_t revision_count, revision_cap;
    struct use_replica *replicas;
    size_t replica_count, replica_cap;
    struct use_token *tokens;
    size_t token_count, token_cap;
    struct use_proxy *proxies;
    size_t proxy_count, proxy_cap;
    struct serving_cold_starts cold_starts, cold_starts_before;
    int64_t woken_usec; /* monotonic: the request came that woke it; 0 = it is awake, or sleeps */
};

struct serving_use {
    struct core *core;
    struct map services; /* id, 16 bytes -> struct service_use */
    struct defer *timer; /* runs while some window is there */
};

static inline int64_t *figures_counts(struct serving_figures *figures)
{
    return (int64_t *)(void *)((char *)figures + FIGURES_AT);
}

/* 'recent' is zeroes if nothing was counted in the last minute. */
void use_sums_get(const struct use_sums *sums, struct serving_summary *ret);

/* NULL = nothing of it was reported; 's' may be NULL. */
struct service_use *use_find(const struct serving_use *use, const struct uuid *id);
struct use_proxy *use_find_proxy(const struct service_use *s, const char *proxy);
struct use_replica *use_find_replica(const struct service_use *s, const struct uuid *id);
struct use_revision *use_find_revision(const struct service_use *s, int64_t number);
struct use_token *use_find_token(const struct service_use *s, const struct uuid *id);

/* The same, made if it is not there. Revisions and tokens that 'service' has no longer make room. */
struct service_use *use_make(struct serving_use *use, const struct uuid *id);
struct use_revision *use_make_revision(struct service_use *s, const struct model_service *service,
                                       int64_t number);
struct use_token *use_make_token(struct service_use *s, const struct model_service *service,
                                 const struct uuid *id);

#endif
