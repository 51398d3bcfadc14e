/* SPDX-License-Identifier: Apache-2.0 */
/* The object that all handlers are given: opened and closed with all features. */
#include "manager/http_api.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "manager/call/audit_trail.h"
#include "manager/call/flushes.h"
#include "manager/call/graphql/gql.h"
#include "manager/call/login_audit.h"
#include "manager/call/repeat.h"
#include "manager/call/streams.h"
#include "manager/call/tasks.h"
#include "manager/call/turns.h"
#include "manager/feature_list.h"

/* As clients before 2020 call it. */
static void api_add_aliases(struct router *router)
{
    router_alias(router, "kernel", "session");
}

static int api_add_routes(struct api *api, struct aq_error *err)
{
    int r;

    for (const struct feature *const *feature = manager_features; *feature; feature++)
        for (const struct route_table *const *table = (*feature)->routes; *table; table++)
            if ((r = router_add(api->router, (*table)->routes, (*table)->count, api, err)) < 0)
                return r;
    api_add_aliases(api->router);
    return 0;
}

int api_new_answered_once(struct router **ret, struct aq_error *err)
{
    AQ_CLEANUP(router_freep) struct router *router = router_new();
    int r;

    for (const struct feature *const *feature = manager_features; *feature; feature++)
        for (const struct route_table *const *table = (*feature)->routes; *table; table++)
            for (size_t i = 0; i < (*table)->count; i++)
                if ((*table)->routes[i].role & API_ANSWERED_ONCE
                    && (r = router_add(router, &(*table)->routes[i], 1, NULL, err)) < 0)
                    return r;
    api_add_aliases(router);
    *ret = AQ_TAKE(router);
    return 0;
}

static void api_tick(void *data)
{
    struct api *api = data;

    if (!login_audit_is_idle(api->login_audit))
        login_audit_tick(api->login_audit, clock_monotonic_usec());
    kept_answers_tick(api->kept_answers, clock_monotonic_usec());
}

static int api_open_features(struct api *api, struct aq_error *err)
{
    int r = 0;

    for (const struct feature *const *feature = manager_features; r == 0 && *feature; feature++)
        if ((*feature)->open)
            r = (*feature)->open(api, err);
    return r;
}

int api_new(struct core *core, struct api **ret, struct aq_error *err)
{
    AQ_CLEANUP(api_freep) struct api *api = aq_alloc(sizeof(*api));
    int r;

    api->core = core;
    api->started_usec = clock_monotonic_usec();
    list_init(&api->gql_feeds);
    api->rate = rate_limiter_new();
    api->sign_cache = sign_cache_new();
    api->tasks = tasks_new();
    api->turns = turns_new();
    api->file_turns = turns_new();
    api->flushes = flushes_new();
    api->streams = api_streams_new(core);
    api->kept_answers = kept_answers_new(core_store(core));
    api->replay = replay_new(0);
    api->router = router_new();
    if ((r = api_add_routes(api, err)) < 0 || (r = gql_new(manager_features, &api->gql, err)) < 0
        || (r = api_open_features(api, err)) < 0)
        return r;
    api->audit_trail = audit_trail_new(core_loop(core), core_store(core));
    api->login_audit = login_audit_new(api->audit_trail);
    audit_trail_set_tick(api->audit_trail, api_tick, api);
    *ret = AQ_TAKE(api);
    return 0;
}

void api_set_proxies(struct api *api, const struct address_list *proxies)
{
    api->proxies = *proxies;
}

void api_set_yield(struct api *api, api_yield_fn *yield, void *data)
{
    api->yield = yield;
    api->yield_data = data;
}

void api_set_remembered(struct api *api, size_t requests_max)
{
    replay_set_max(api->replay, requests_max);
}

static size_t api_count_features(void)
{
    size_t count = 0;

    while (manager_features[count])
        count++;
    return count;
}

void api_stop(struct api *api)
{
    for (size_t i = api_count_features(); i-- > 0;)
        if (manager_features[i]->stop)
            manager_features[i]->stop(api);
    login_audit_finish(api->login_audit);
    audit_trail_stop(api->audit_trail);
}

void api_end_requests(struct api *api)
{
    do
        store_flush(core_store(api->core)); /* its callbacks may be turns */
    while (turns_run_one(api->turns) || turns_run_one(api->file_turns));
}

void api_free(struct api *api)
{
    if (!api)
        return;
    for (size_t i = api_count_features(); i-- > 0;)
        if (manager_features[i]->close)
            manager_features[i]->close(api);
    login_audit_free(api->login_audit);
    audit_trail_free(api->audit_trail);
    turns_free(api->turns);
    turns_free(api->file_turns);
    flushes_free(api->flushes);
    api_streams_free(api->streams);
    kept_answers_free(api->kept_answers);
    gql_engine_freep(&api->gql);
    router_freep(&api->router);
    replay_freep(&api->replay);
    rate_limiter_free(api->rate);
    sign_cache_free(api->sign_cache);
    tasks_free(api->tasks);
    free(api);
}

const struct router *api_get_router(const struct api *api)
{
    return api->router;
}
