/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration tree in etcd: start, end, failures, log lines and metrics. */
#include "manager/etcd/etcd_sync.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "http/exposition.h"
#include "manager/etcd/etcd_feature.h"

#define TICK_MSEC 1000
#define POLL_USEC (10 * USEC_PER_SEC)
#define AWAIT_USEC (10 * USEC_PER_SEC) /* for our own change on the watch */
#define RETRY_MAX_USEC (15 * USEC_PER_SEC)
#define IGNORED_MAX 1000  /* keys that were logged, so that each is logged once */
#define NAMED_KEY_MAX 200 /* bytes of a key in the log */

/* ---- log lines and metrics ---- */

void etcd_sync_ignore(struct etcd_sync *sync, const char *raw, size_t len, const char *why)
{
    if (sync->ignored.count >= IGNORED_MAX || map_get(&sync->ignored, raw, len))
        return;
    (void)map_set(&sync->ignored, raw, len, sync);
    log_limited(&sync->budget, LOG_LEVEL_WARNING, "ignoring key '%s%.*s' of etcd: %s", sync->prefix,
                (int)AQ_MIN(len, NAMED_KEY_MAX), raw, why);
}

void etcd_sync_agree(struct etcd_sync *sync)
{
    if (sync->api->etcd_away_usec)
        log_info("etcd at %s and the configuration tree are in sync: %zu keys in etcd",
                 etcd_client_get_endpoint(sync->client), sync->view.entries.count);
    sync->api->etcd_away_usec = 0;
    sync->failures = 0;
    sync->logged = (struct aq_error){ .code = 0 };
}

void etcd_sync_warn_of_history(const struct etcd_sync *sync, const char *why)
{
    log_warning("etcd at %s has lost its history (%s); writing the configuration tree back to it",
                etcd_client_get_endpoint(sync->client), why);
}

/* Tokens expire and old revisions are compacted in normal operation: neither is logged. */
static bool etcd_sync_is_expected(const struct etcd_sync *sync, const struct aq_error *err)
{
    return sync->state == ETCD_FOLLOWING && err->kind
           && (strcmp(err->kind, ETCD_TOKEN_REFUSED) == 0
               || strcmp(err->kind, ETCD_COMPACTED) == 0);
}

void etcd_sync_fail(struct etcd_sync *sync, const struct aq_error *err)
{
    bool is_expected = etcd_sync_is_expected(sync, err);
    size_t endpoints = sync->settings->endpoints.count;
    char when[40] = "trying the next address now";
    int64_t delay = 0;

    if (!is_expected && !sync->api->etcd_away_usec)
        sync->api->etcd_away_usec = clock_realtime_usec();
    sync->state = ETCD_AWAY;
    if (!is_expected && ++sync->failures >= endpoints) /* all were tried */
        delay = AQ_MIN(USEC_PER_SEC << AQ_MIN(sync->failures / endpoints - 1, 4), RETRY_MAX_USEC);
    if (!is_expected && sync->logged.code != err->code) {
        if (delay)
            (void)snprintf(when, sizeof(when), "trying again in %d s", (int)(delay / USEC_PER_SEC));
        log_limited(&sync->budget, LOG_LEVEL_WARNING,
                    "lost etcd at %s: %s; %s; until it is back the configuration tree is kept in "
                    "the database alone",
                    etcd_client_get_endpoint(sync->client), err->text, when);
        sync->logged = *err;
    }
    sync->retry_usec = clock_monotonic_usec() + delay;
    if (!sync->is_deciding)
        etcd_pass_done(&sync->pass);
    etcd_client_leave(sync->client);
}

void etcd_write_metrics(const struct api *api, struct strbuf *out)
{
    const struct etcd_sync *sync = api->etcd;
    double away;

    if (!sync)
        return;
    away = (double)(clock_realtime_usec() - sync->api->etcd_away_usec) / USEC_PER_SEC;
    exposition_single(out, "aliquot_etcd_away_seconds", "gauge",
                      "Time since etcd and the configuration tree were last in sync; 0 = they are",
                      sync->api->etcd_away_usec ? AQ_MAX(away, 0.001) : 0);
    exposition_single(out, "aliquot_etcd_keys", "gauge", "Keys of the namespace in etcd",
                      (double)sync->view.entries.count);
    exposition_single(out, "aliquot_etcd_taken_total", "counter", "Key changes copied from etcd",
                      (double)sync->taken);
    exposition_single(out, "aliquot_etcd_given_total", "counter", "Key changes written to etcd",
                      (double)sync->given);
    exposition_single(out, "aliquot_etcd_conflicts_total", "counter",
                      "Keys changed on both sides, of which one change was discarded",
                      (double)sync->lost);
}

/* ---- time ---- */

static void etcd_sync_follow(struct etcd_sync *sync, int64_t now_usec)
{
    struct aq_error err = { 0 };

    sync->watched_bytes = 0;
    if (sync->is_deciding)
        return;
    etcd_client_hold_watch(sync->client, false);
    if (sync->state != ETCD_FOLLOWING)
        return;
    if (sync->awaited_revision > sync->view.revision
        && now_usec - sync->awaited_usec > AWAIT_USEC) {
        (void)aq_fail(&err, ETIMEDOUT, "the watch did not deliver a change that this manager made");
        etcd_sync_fail(sync, &err);
    } else if (!etcd_client_is_calling(sync->client) && now_usec - sync->polled_usec > POLL_USEC) {
        etcd_poll(sync);
    }
}

static void etcd_sync_on_tick(uv_timer_t *timer)
{
    struct etcd_sync *sync = timer->data;
    int64_t now_usec = clock_monotonic_usec();

    if (!sync->client)
        return;
    etcd_client_end_late(sync->client);
    if (sync->state == ETCD_FOLLOWING)
        etcd_sync_follow(sync, now_usec);
    else if (sync->state == ETCD_AWAY && now_usec >= sync->retry_usec && !sync->is_deciding)
        etcd_read_begin(sync);
}

/* A pass that is being decided reads changes that were committed before it; for a later one this is
 * called again.
 */
static void etcd_sync_on_tree(void *data)
{
    struct etcd_sync *sync = data;

    if (!sync->is_deciding && sync->state == ETCD_FOLLOWING)
        etcd_carry_soon(sync);
}

/* ---- begin and end ---- */

struct etcd_load {
    const char *namespace;
    struct etcd_history *ret;
};

static int etcd_load_history(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct etcd_load *load = data;

    return etcd_history_load(tx, load->namespace, load->ret, err);
}

int etcd_open(struct api *api, const struct etcd_settings *settings, struct aq_error *err)
{
    struct etcd_client *client;
    struct etcd_history history;
    struct etcd_sync *sync;
    int r;

    if (!settings->endpoints.count)
        return 0;
    if ((r = etcd_client_new(core_loop(api->core), settings, &client, err)) < 0)
        return r;
    r = store_call(core_store(api->core), etcd_load_history,
                   &(struct etcd_load){ settings->namespace, &history }, err);
    if (r < 0) {
        etcd_client_free(client);
        return r;
    }
    sync = aq_alloc(sizeof(*sync));
    sync->api = api;
    sync->settings = settings;
    sync->client = client;
    sync->history = history;
    sync->prefix = aq_format("/sorna/%s/", settings->namespace);
    sync->end = aq_format("/sorna/%s0", settings->namespace); /* '0' follows '/' */
    sync->prefix_len = strlen(sync->prefix);
    sync->api->etcd_away_usec = clock_realtime_usec();
    strbuf_init(&sync->page_key);
    (void)uv_timer_init(core_loop(api->core), &sync->tick);
    (void)uv_timer_init(core_loop(api->core), &sync->soon);
    sync->open_timers = 2;
    sync->tick.data = sync->soon.data = sync;
    (void)uv_timer_start(&sync->tick, etcd_sync_on_tick, 0, TICK_MSEC);
    api->etcd = sync;
    cluster_follow_tree(api, etcd_sync_on_tree, sync);
    return 0;
}

static void etcd_feature_stop(struct api *api)
{
    if (!api->etcd)
        return;
    cluster_follow_tree(api, NULL, NULL);
    (void)uv_timer_stop(&api->etcd->tick);
    (void)uv_timer_stop(&api->etcd->soon);
    api->etcd->state = ETCD_AWAY;
    etcd_client_free(AQ_TAKE(api->etcd->client));
}

static void etcd_sync_on_closed(uv_handle_t *handle)
{
    struct etcd_sync *sync = handle->data;

    if (--sync->open_timers == 0)
        free(sync);
}

static void etcd_feature_close(struct api *api)
{
    struct etcd_sync *sync = api->etcd;

    if (!sync)
        return;
    etcd_feature_stop(api);
    etcd_pass_done(&sync->pass);
    etcd_pushes_done(&sync->made);
    etcd_history_done(&sync->history);
    etcd_view_done(&sync->view);
    strbuf_done(&sync->page_key);
    map_done(&sync->ignored);
    free(sync->prefix);
    free(sync->end);
    uv_close((uv_handle_t *)&sync->tick, etcd_sync_on_closed);
    uv_close((uv_handle_t *)&sync->soon, etcd_sync_on_closed);
    api->etcd = NULL;
}

static const struct route_table *const etcd_routes[] = { NULL };

const struct feature etcd_feature = {
    .name = "etcd",
    .routes = etcd_routes,
    .stop = etcd_feature_stop,
    .close = etcd_feature_close,
};
