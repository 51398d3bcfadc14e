/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all routes, and the object that their handlers are given. */
#include "manager/routes.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "manager/api/resources.h"
#include "manager/gql/gql.h"
#include "manager/request/turns.h"
#include "manager/request/streams.h"
#include "manager/request/image_aliases.h"
#include "manager/request/login_limit.h"
#include "manager/request/password_queue.h"
#include "manager/request/tasks.h"

static int api_add_routes(struct api *api, struct aq_error *err)
{
    const struct {
        const struct route *routes;
        size_t count;
    } tables[] = {
        { hello_routes, hello_route_count },
        { auth_routes, auth_route_count },
        { manager_routes, manager_route_count },
        { session_create_routes, session_create_route_count },
        { session_routes, session_route_count },
        { session_change_routes, session_change_route_count },
        { session_end_routes, session_end_route_count },
        { session_history_routes, session_history_route_count },
        { session_list_routes, session_list_route_count },
        { logs_routes, logs_route_count },
        { pty_routes, pty_route_count },
        { apps_routes, apps_route_count },
        { exec_routes, exec_route_count },
        { events_routes, events_route_count },
        { background_task_routes, background_task_route_count },
        { resource_routes, resource_route_count },
        { agent_routes, agent_route_count },
        { image_routes, image_route_count },
        { image_aliases_routes, image_aliases_route_count },
        { user_routes, user_route_count },
        { keypair_routes, keypair_route_count },
        { domain_routes, domain_route_count },
        { project_routes, project_route_count },
        { policy_routes, policy_route_count },
        { resource_group_routes, resource_group_route_count },
        { fair_share_routes, fair_share_route_count },
        { audit_routes, audit_route_count },
        { statistics_routes, statistics_route_count },
        { gql_routes, gql_route_count },
    };
    int r;

    for (size_t i = 0; i < AQ_COUNT(tables); i++)
        if ((r = router_add(api->router, tables[i].routes, tables[i].count, api, err)) < 0)
            return r;
    return 0;
}

int api_new(struct core *core, struct api **ret, struct aq_error *err)
{
    AQ_CLEANUP(api_freep) struct api *api = calloc(1, sizeof(*api));
    int r;

    if (!api)
        return aq_fail_oom(err);
    api->core = core;
    api->started_usec = clock_monotonic_usec();
    if (!(api->rate = rate_limiter_new()) || !(api->login_limits = login_limits_new())
        || !(api->sign_cache = sign_cache_new()) || !(api->tasks = tasks_new())
        || !(api->turns = turns_new()) || !(api->streams = api_streams_new(core)))
        return aq_fail_oom(err);
    if ((r = replay_new(0, &api->replay, err)) < 0 || (r = router_new(&api->router, err)) < 0
        || (r = api_add_routes(api, err)) < 0 || (r = gql_new(&api->gql, err)) < 0
        || (r = manager_load(api, err)) < 0 || (r = image_aliases_load(api, err)) < 0)
        return r;
    *ret = AQ_TAKE(api);
    return 0;
}

void api_set_proxies(struct api *api, const struct address_list *proxies)
{
    api->proxies = *proxies;
}

void api_stop(struct api *api)
{
    if (api->passwords)
        password_queue_stop(api->passwords);
}

void api_free(struct api *api)
{
    if (!api)
        return;
    password_queue_free(api->passwords);
    login_limits_free(api->login_limits);
    turns_free(api->turns);
    api_streams_free(api->streams);
    gql_engine_freep(&api->gql);
    router_freep(&api->router);
    replay_freep(&api->replay);
    rate_limiter_free(api->rate);
    sign_cache_free(api->sign_cache);
    free(api->announcement);
    json_decref(api->aliases);
    tasks_free(api->tasks);
    free(api);
}

const struct router *api_get_router(const struct api *api)
{
    return api->router;
}
