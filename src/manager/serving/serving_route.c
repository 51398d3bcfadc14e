/* SPDX-License-Identifier: Apache-2.0 */
/* serving_route.c - see serving_route.h */
#include "manager/serving/serving_route.h"

#include <string.h>

#include "model/slot.h"

/* ---- tokens ---- */

static void route_add_tokens(const struct model_service *service, int64_t now_usec,
                             struct arena *arena, struct msg_serving_service *ret)
{
    ret->tokens = arena_array(arena, service->token_count + 1, sizeof(*ret->tokens));
    for (size_t i = 0; i < service->token_count && ret->token_count < MSG_SERVING_TOKENS_MAX; i++) {
        const struct model_service_token *t = &service->tokens[i];

        if (t->expires_usec && t->expires_usec <= now_usec)
            continue;
        ret->tokens[ret->token_count++] = (struct msg_serving_token){
            .id = t->id,
            .hash = t->hash,
            .expires_usec = t->expires_usec,
            .paths = t->paths,
            .rate_milli = t->rate_milli,
            .budget = t->budget ? AQ_MAX(t->budget - t->used, 0) : 0,
            .is_spent = t->budget && t->used >= t->budget,
        };
    }
}

/* ---- replicas ---- */

/* Amounts that tell how much a replica does: of accelerators, and of cores. */
struct route_power {
    int64_t devices, cores;
};

static struct route_power route_measure(const struct session *session)
{
    struct route_power power = { 0, 0 };

    for (size_t i = 0; i < session->kernel_count; i++) {
        const struct slots *slots = &session->kernels[i].requested;

        for (size_t k = 0; k < slots->count; k++)
            if (slot_name_is_accelerator(slots->items[k].name))
                power.devices += slots->items[k].amount;
        power.cores += slots_get(slots, "cpu");
    }
    return power;
}

static bool route_lists(const struct session *session, const struct core_replica *replica)
{
    return replica->ready_usec
           && (session->status == SESSION_RUNNING || session->status == SESSION_RUNNING_DEGRADED
               || session->status == SESSION_TERMINATING);
}

/* Its own ratio times what a rollout gives it; a part that is not nothing stays more than nothing. */
static int64_t route_ratio(const struct core_replica *replica)
{
    int64_t ratio = replica->ratio_ppm * replica->rollout_ratio_ppm / ROLLOUT_FULL_PPM;

    return replica->ratio_ppm && replica->rollout_ratio_ppm ? AQ_MAX(ratio, 1) : 0;
}

/* By accelerators if each has some, else by cores. */
static void route_set_shares(const struct route_power *powers, struct msg_serving_service *ret)
{
    bool by_devices = ret->replica_count > 0;

    for (size_t i = 0; i < ret->replica_count; i++)
        by_devices = by_devices && powers[i].devices > 0;
    for (size_t i = 0; i < ret->replica_count; i++) {
        int64_t share = by_devices ? powers[i].devices : powers[i].cores;

        ret->replicas[i].share_ppm = share > 0 ? share : AMOUNT_ONE;
    }
}

static void route_add_replicas(const struct core *core, const struct model_service *service,
                               struct arena *arena, struct msg_serving_service *ret)
{
    struct route_power *powers;
    struct core_replica replica;
    size_t count = 0;

    for (const struct session *s = NULL; (s = core_next_replica(core, service, s));)
        count++;
    ret->replicas = arena_array(arena, count + 1, sizeof(*ret->replicas));
    powers = arena_array(arena, count + 1, sizeof(*powers));
    for (const struct session *s = NULL; (s = core_next_replica(core, service, s));) {
        if (ret->replica_count == MSG_REPLICAS_MAX || !core_find_replica(core, s, &replica)
            || !route_lists(s, &replica))
            continue;
        powers[ret->replica_count] = route_measure(s);
        ret->replicas[ret->replica_count++] = (struct msg_serving_replica){
            .session_id = s->id,
            .revision = replica.revision,
            .ratio_ppm = route_ratio(&replica),
            .is_draining = replica.is_draining || route_ratio(&replica) == 0
                           || s->status == SESSION_TERMINATING,
            .is_unhealthy = replica.health == CORE_REPLICA_UNHEALTHY,
        };
    }
    route_set_shares(powers, ret);
}

/* ---- all ---- */

void serving_route_make(const struct core *core, const struct model_service *service,
                        int64_t now_usec, struct arena *arena, struct msg_serving_service *ret)
{
    const struct model_service_limits *limits = &service->limits;
    const char *problem = core_service_problem(core, service);

    if (service->is_ending) { /* what is under way goes on, and is reported */
        *ret = (struct msg_serving_service){ .id = service->id,
                                             .name = service->name,
                                             .is_gone = true };
        route_add_tokens(service, now_usec, arena, ret); /* without them proxies cut it */
        return;
    }
    *ret = (struct msg_serving_service){
        .id = service->id,
        .name = service->name,
        .is_public = service->is_public,
        .access_key = service->access_key,
        .queue_max = limits->queue_max ? limits->queue_max : SERVING_QUEUE_MAX,
        .queue_bytes = limits->queue_bytes ? limits->queue_bytes : SERVING_QUEUE_BYTES,
        .queue_usec = limits->queue_usec ? limits->queue_usec : SERVING_QUEUE_USEC,
        .request_usec = limits->request_usec ? limits->request_usec : SERVING_REQUEST_USEC,
        .affinity = limits->affinity ? limits->affinity : "none",
        .wanted = service->replicas,
        /* clients are told of it: not of the log, which its further lines are */
        .problem = problem ? arena_strndup(arena, problem, strcspn(problem, "\n")) : NULL,
    };
    route_add_tokens(service, now_usec, arena, ret);
    route_add_replicas(core, service, arena, ret);
}

size_t serving_route_size(const struct msg_serving_service *route)
{
    size_t size = 1024 + (route->problem ? 2 * strlen(route->problem) : 0)
                  + route->replica_count * 200;

    for (size_t i = 0; i < route->token_count; i++) {
        size += 300;
        for (size_t k = 0; k < route->tokens[i].paths.count; k++)
            size += 2 * strlen(route->tokens[i].paths.items[k]) + 3;
    }
    return size;
}
