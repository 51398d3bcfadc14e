/* SPDX-License-Identifier: Apache-2.0 */
/* Copies in Redis: beginning, end, and how they fare. */
#include "manager/redis/redis_feature.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "http/exposition.h"
#include "manager/redis/redis.h"

#define TICK_MSEC 1000
#define MARK "aliquot:manager"

static void redis_on_tick(void *data)
{
    struct redis_state *redis = data;
    struct redis_status status;

    defer_start(redis->tick, TICK_MSEC);
    redis_windows_write(redis, false);
    redis_client_get_status(redis->client, &status);
    if (status.is_ready) /* what is old when the server is back need not wait for it */
        redis_live_write(redis);
}

static void redis_on_fresh(void *data)
{
    redis_windows_renew(data);
}

int redis_open(struct api *api, const struct redis_settings *settings, struct aq_error *err)
{
    struct redis_state *redis;
    int r;

    if (!settings->uri || !*settings->uri)
        return 0;
    redis = api->redis = aq_alloc(sizeof(*redis));
    redis->api = api;
    redis->settings = settings;
    if ((r = redis_restore(redis, err)) < 0
        || (r = redis_client_new(&(struct redis_client_options){ .loop = core_loop(api->core),
                                                                 .settings = settings,
                                                                 .on_fresh = redis_on_fresh,
                                                                 .data = redis,
                                                                 .mark = MARK,
                                                                 .mark_db = REDIS_DB_RATES },
                                 &redis->client, err))
               < 0)
        return r;
    redis->tick = defer_new(core_loop(api->core), redis_on_tick, redis);
    defer_start(redis->tick, TICK_MSEC);
    redis->subscriber = core_subscribe(api->core, NULL, redis_events_publish, redis);
    api->on_signature = redis_windows_note;
    return 0;
}

/* What was counted until now reaches a server that takes it at once. */
static void redis_feature_stop(struct api *api)
{
    struct redis_state *redis = api->redis;

    if (!redis || !redis->client)
        return;
    redis_windows_write(redis, true);
    api->on_signature = NULL;
    core_unsubscribe(api->core, AQ_TAKE(redis->subscriber));
    defer_cancel(AQ_TAKE(redis->tick));
    redis_client_free(AQ_TAKE(redis->client));
}

static void redis_feature_close(struct api *api)
{
    struct redis_state *redis = AQ_TAKE(api->redis);

    if (!redis)
        return;
    core_unsubscribe(api->core, redis->subscriber); /* a manager that did not start */
    defer_cancel(redis->tick);
    redis_client_free(redis->client);
    redis_windows_done(redis);
    free(redis);
}

int64_t redis_get_away_usec(const struct api *api)
{
    struct redis_status status = { .away_usec = 0 };

    if (api->redis && api->redis->client)
        redis_client_get_status(api->redis->client, &status);
    return status.away_usec;
}

void redis_write_metrics(const struct api *api, struct strbuf *out)
{
    struct redis_status status;

    if (!api->redis || !api->redis->client)
        return;
    redis_client_get_status(api->redis->client, &status);
    exposition_single(out, "aliquot_redis_away_seconds", "gauge",
                      "How long the Redis server does not take what is written; 0 = it does",
                      status.away_usec ? AQ_MAX(
                          (double)(clock_realtime_usec() - status.away_usec) / USEC_PER_SEC, 0.001)
                                       : 0);
    exposition_single(out, "aliquot_redis_commands_total", "counter",
                      "Commands that were sent to the Redis server", (double)status.sent);
    exposition_single(out, "aliquot_redis_dropped_total", "counter",
                      "Commands that were dropped, or had no reply when the connection was lost",
                      (double)(status.dropped + api->redis->signatures_dropped));
    exposition_single(out, "aliquot_redis_refused_total", "counter",
                      "Commands that the Redis server answered with an error",
                      (double)status.refused);
    exposition_single(out, "aliquot_redis_queue", "gauge",
                      "Commands that wait for the Redis server or its reply",
                      (double)status.queued);
}

static const struct route_table *const redis_routes[] = { NULL };

const struct feature redis_feature = {
    .name = "redis",
    .routes = redis_routes,
    .stop = redis_feature_stop,
    .close = redis_feature_close,
};
