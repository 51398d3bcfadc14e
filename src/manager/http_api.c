/* SPDX-License-Identifier: Apache-2.0 */
/* The object that all handlers are given: opened and closed with all features. */
#include "manager/http_api.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "manager/feature_list.h"
#include "manager/stream/app_proxy.h"
#include "manager/live/live.h"
#include "manager/login/web_logins.h"
#include "manager/call/graphql/gql.h"
#include "manager/notification/callbacks.h"
#include "manager/call/turns.h"
#include "manager/call/flushes.h"
#include "manager/folder/storage_hosts.h"
#include "manager/folder/folder_jobs.h"
#include "manager/folder/folder_recount.h"
#include "manager/folder/folder_rights.h"
#include "manager/folder/folder_rules.h"
#include "manager/call/streams.h"
#include "manager/cluster/config_change.h"
#include "manager/image/image_aliases.h"
#include "manager/image/image_catalogue.h"
#include "manager/image/image_limits.h"
#include "manager/call/kept_answers.h"
#include "manager/stream/log_quota.h"
#include "manager/login/login_audit.h"
#include "manager/login/login_limit.h"
#include "manager/notification/notifications.h"
#include "manager/login/password_queue.h"
#include "manager/account/owner_policies.h"
#include "manager/scheduling/presets.h"
#include "manager/image/rescan.h"
#include "manager/login/signup.h"
#include "manager/call/tasks.h"

static int api_add_routes(struct api *api, struct aq_error *err)
{
    int r;

    for (const struct feature *const *feature = manager_features; *feature; feature++)
        for (const struct route_table *const *table = (*feature)->routes; *table; table++)
            if ((r = router_add(api->router, (*table)->routes, (*table)->count, api, err)) < 0)
                return r;
    router_alias(api->router, "kernel", "session"); /* as clients before 2020 call it */
    return 0;
}

static void api_tick(void *data)
{
    struct api *api = data;

    if (!login_audit_is_idle(api->login_audit))
        login_audit_tick(api->login_audit, clock_monotonic_usec());
    kept_answers_tick(api->kept_answers, clock_monotonic_usec());
}

static int api_open_audit(struct api *api, struct aq_error *err)
{
    int r = audit_trail_new(core_loop(api->core), core_store(api->core), &api->audit_trail, err);

    if (r < 0)
        return r;
    if (!(api->login_audit = login_audit_new(api->audit_trail)))
        return aq_fail_oom(err);
    audit_trail_set_tick(api->audit_trail, api_tick, api);
    return 0;
}

int api_new(struct core *core, struct api **ret, struct aq_error *err)
{
    AQ_CLEANUP(api_freep) struct api *api = calloc(1, sizeof(*api));
    int r;

    if (!api)
        return aq_fail_oom(err);
    api->core = core;
    list_init(&api->gql_feeds);
    api->started_usec = clock_monotonic_usec();
    if (!(api->rate = rate_limiter_new()) || !(api->login_limits = login_limits_new())
        || !(api->sign_cache = sign_cache_new()) || !(api->tasks = tasks_new())
        || !(api->deliveries = deliveries_new(core_loop(core)))
        || !(api->callbacks = callbacks_new(core, api->deliveries)) || !(api->turns = turns_new())
        || !(api->flushes = flushes_new()) || !(api->streams = api_streams_new(core))
        || !(api->log_quota = log_quota_new())
        || !(api->kept_answers = kept_answers_new(core_store(core)))
        || !(api->live = live_feed_new(core)) || !(api->app_proxy = app_proxy_new(api))
        || !(api->storage_hosts = storage_hosts_new(core))
        || !(api->web_logins = web_logins_new(api)))
        return aq_fail_oom(err);
    api->replay = replay_new(0);
    api->router = router_new();
    if ((r = api_add_routes(api, err)) < 0 || (r = gql_new(manager_features, &api->gql, err)) < 0
        || (r = config_load(api, err)) < 0 || (r = image_aliases_load(api, err)) < 0
        || (r = image_catalogue_load(api, err)) < 0 || (r = image_limits_load(api, err)) < 0
        || (r = notifications_new(core, api->deliveries, &api->notifications, err)) < 0
        || (r = presets_load(api, err)) < 0 || (r = owner_policies_load(api, err)) < 0
        || (r = folder_rules_load(api, err)) < 0
        || (r = folder_rights_new(api, &api->folder_rights, err)) < 0
        || (r = folder_jobs_new(api, &api->folder_jobs, err)) < 0
        || (r = folder_recount_new(api, &api->folder_recount, err)) < 0
        || (r = api_open_audit(api, err)) < 0)
        return r;
    *ret = AQ_TAKE(api);
    return 0;
}

void api_set_proxies(struct api *api, const struct address_list *proxies)
{
    api->proxies = *proxies;
}

const struct origin_rules *api_set_origins(struct api *api, const struct origin_rules *own)
{
    api->own_origins = *own;
    config_apply_origins(api);
    return &api->origins;
}

void api_set_password_rules(struct api *api, const struct password_rules *rules)
{
    api->password_rules = *rules;
}

int api_open_signup(struct api *api, const struct signup_rules *rules, struct aq_error *err)
{
    return rules->is_open ? signup_new(core_loop(api->core), rules, &api->signup, err) : 0;
}

void api_set_transfer_limits(struct api *api, const struct transfer_limits *limits)
{
    api->transfer_limits = *limits;
}

void api_set_execution_timeout(struct api *api, int64_t usec)
{
    api->execution_timeout_usec = usec;
}

void api_set_remembered(struct api *api, size_t requests_max)
{
    replay_set_max(api->replay, requests_max);
}

void api_allow_callbacks(struct api *api, const struct network *networks, size_t count)
{
    deliveries_allow(api->deliveries, networks, count);
}

void api_stop(struct api *api)
{
    app_proxy_stop(api->app_proxy);
    storage_hosts_stop(api->storage_hosts);
    web_logins_stop(api->web_logins);
    if (api->signup)
        signup_stop(api->signup);
    notifications_stop(api->notifications);
    callbacks_free(AQ_TAKE(api->callbacks));
    deliveries_stop(api->deliveries);
    folder_jobs_stop(api->folder_jobs);
    folder_recount_stop(api->folder_recount);
    folder_rights_stop(api->folder_rights);
    rescan_stop(api->rescan);
    if (api->passwords)
        password_queue_stop(api->passwords);
    login_audit_finish(api->login_audit);
    audit_trail_stop(api->audit_trail);
}

void api_free(struct api *api)
{
    if (!api)
        return;
    app_proxy_free(api->app_proxy);
    storage_hosts_free(api->storage_hosts);
    signup_free(api->signup);
    password_queue_free(api->passwords);
    web_logins_free(api->web_logins);
    login_audit_free(api->login_audit);
    audit_trail_free(api->audit_trail);
    notifications_free(api->notifications);
    callbacks_free(api->callbacks);
    deliveries_free(api->deliveries);
    login_limits_free(api->login_limits);
    turns_free(api->turns);
    flushes_free(api->flushes);
    api_streams_free(api->streams);
    live_feed_free(api->live);
    free(api->openapi);
    log_quota_free(api->log_quota);
    kept_answers_free(api->kept_answers);
    gql_engine_freep(&api->gql);
    router_freep(&api->router);
    replay_freep(&api->replay);
    rate_limiter_free(api->rate);
    sign_cache_free(api->sign_cache);
    config_settings_done(&api->settings);
    json_decref(api->aliases);
    json_decref(api->image_limits);
    json_decref(api->catalogue);
    json_decref(api->presets);
    json_decref(api->folder_rules);
    folder_jobs_free(api->folder_jobs);
    folder_recount_free(api->folder_recount);
    folder_rights_free(api->folder_rights);
    for (size_t i = 0; i < OWNER_POLICY_KINDS; i++)
        json_decref(api->owner_policies[i]);
    tasks_free(api->tasks);
    free(api);
}

const struct router *api_get_router(const struct api *api)
{
    return api->router;
}
