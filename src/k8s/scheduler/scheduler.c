/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler.c - the extender of a kube-scheduler: on which node and which cards a pod gets its
 * parts
 *
 * Its books are what two watches say, of nodes and of pods, so each replica has the same ones, and
 * one that starts has them as soon as it has both lists. Everything belongs to the thread of the
 * libuv loop.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"
#include "k8s/api_server.h"
#include "k8s/role.h"
#include "k8s/scheduler/scheduler_internal.h"
#include "k8s/webhook/webhook.h"

#define EXPIRY_MSEC 1000

/* ---- nodes ---- */

static void scheduler_on_node(void *data, const char *key, const json_t *object)
{
    struct scheduler_daemon *scheduler = data;
    const json_t *annotations = json_object_get(json_object_get(object, "metadata"), "annotations");
    const char *text = json_string_value(json_object_get(annotations, NODE_CARDS));
    const struct book_node *known = books_find_node(scheduler->extender.books, key);
    uint64_t hash = text ? aq_hash(text, strlen(text)) : 0;
    struct node_cards cards = { .count = 0 };
    struct aq_error err = { 0 };

    if (known && known->cards.hash == hash)
        return;
    if (text && node_cards_read(text, &cards, &err) < 0)
        log_warning("node %s: annotation " NODE_CARDS ": %s; it has no cards", key, err.text);
    cards.hash = hash;
    books_set_node(scheduler->extender.books, key, &cards);
}

static void scheduler_on_node_gone(void *data, const char *key)
{
    struct scheduler_daemon *scheduler = data;

    books_remove_node(scheduler->extender.books, key);
}

/* ---- pods ---- */

static void scheduler_on_pod(void *data, const char *key, const json_t *object)
{
    struct scheduler_daemon *scheduler = data;
    struct aq_error err = { 0 };
    struct pod pod;
    int r = pod_read(object, &scheduler->extender.names, &pod, &err);

    if (r == 0)
        books_set_pod(scheduler->extender.books, &pod, true);
    else
        log_warning("pod %s: %s", key, err.text);
}

static void scheduler_on_pod_gone(void *data, const char *key)
{
    struct scheduler_daemon *scheduler = data;

    books_remove_pod(scheduler->extender.books, key);
}

/* ---- watches ---- */

static void scheduler_note_list(struct scheduler_daemon *scheduler)
{
    struct books_sums sums;

    if (scheduler->extender.is_complete || !scheduler->has_nodes || !scheduler->has_pods)
        return;
    scheduler->extender.is_complete = true;
    books_get_sums(scheduler->extender.books, &sums);
    log_info("all is known: %zu nodes with %zu cards, %zu pods on them, %zu wait", sums.nodes,
             sums.cards, sums.placed, sums.waiting);
}

static void scheduler_on_nodes(void *data)
{
    struct scheduler_daemon *scheduler = data;

    scheduler->has_nodes = true;
    scheduler_note_list(scheduler);
}

static void scheduler_on_pods(void *data)
{
    struct scheduler_daemon *scheduler = data;

    scheduler->has_pods = true;
    scheduler_note_list(scheduler);
}

static void scheduler_on_watch_failed(void *data, const struct aq_error *err)
{
    (void)data;
    log_warning("watching nodes and pods: %s", err->text);
}

static void scheduler_watch(struct scheduler_daemon *scheduler)
{
    const struct kube_watch_conf nodes = { .api = scheduler->api,
                                           .path = "/api/v1/nodes",
                                           .on_object = scheduler_on_node,
                                           .on_gone = scheduler_on_node_gone,
                                           .on_synced = scheduler_on_nodes,
                                           .on_failed = scheduler_on_watch_failed,
                                           .data = scheduler };
    const struct kube_watch_conf pods = { .api = scheduler->api,
                                          .path = "/api/v1/pods",
                                          .on_object = scheduler_on_pod,
                                          .on_gone = scheduler_on_pod_gone,
                                          .on_synced = scheduler_on_pods,
                                          .on_failed = scheduler_on_watch_failed,
                                          .data = scheduler };

    scheduler->nodes = kube_watch_new(&nodes);
    scheduler->pods = kube_watch_new(&pods);
}

/* ---- life ---- */

static void scheduler_on_expiry(uv_timer_t *timer)
{
    struct scheduler_daemon *scheduler = timer->data;

    books_expire(scheduler->extender.books, clock_monotonic_usec());
}

static void scheduler_release(struct scheduler_daemon *scheduler)
{
    if (scheduler->is_timer_open || scheduler->server)
        return;
    router_free(scheduler->router);
    books_free(scheduler->extender.books);
    free(scheduler);
}

static void scheduler_on_timer_closed(uv_handle_t *handle)
{
    struct scheduler_daemon *scheduler = handle->data;

    scheduler->is_timer_open = false;
    scheduler_release(scheduler);
}

static void scheduler_on_stopped(void *data)
{
    struct scheduler_daemon *scheduler = data;

    server_free(AQ_TAKE(scheduler->server));
    scheduler_release(scheduler);
}

static void scheduler_end(void *data)
{
    struct scheduler_daemon *scheduler = data;

    kube_watch_free(scheduler->nodes);
    kube_watch_free(scheduler->pods);
    scheduler_end_binds(scheduler);
    webhook_free(scheduler->webhook);
    kube_api_free(scheduler->api);
    metrics_close(scheduler->metrics);
    uv_close((uv_handle_t *)&scheduler->expiry, scheduler_on_timer_closed);
    if (scheduler->server)
        server_stop(scheduler->server, 0, scheduler_on_stopped, scheduler);
}

static void scheduler_endp(struct scheduler_daemon **scheduler)
{
    if (*scheduler)
        scheduler_end(*scheduler);
}

static int scheduler_open_metrics(struct scheduler_daemon *scheduler, struct aq_error *err)
{
    const struct metrics_conf conf = { .address = scheduler->settings->scheduler_metrics,
                                       .insecure = true,
                                       .write = scheduler_write_metrics,
                                       .data = scheduler };

    return metrics_listen(scheduler->loop, &conf, &scheduler->metrics, err);
}

static int scheduler_begin(uv_loop_t *loop, const struct settings *settings, void **ret,
                           struct aq_error *err)
{
    AQ_CLEANUP(scheduler_endp) struct scheduler_daemon *scheduler = aq_alloc(sizeof(*scheduler));
    int r;

    *scheduler = (struct scheduler_daemon){
        .loop = loop,
        .settings = settings,
        .is_timer_open = true,
        .extender = { .names = { settings->memory_name, settings->compute_name },
                      .policy = (enum card_policy)card_policy_find(settings->scheduler_policy) },
    };
    list_init(&scheduler->binds);
    (void)uv_timer_init(loop, &scheduler->expiry);
    scheduler->expiry.data = scheduler;
    (void)uv_timer_start(&scheduler->expiry, scheduler_on_expiry, EXPIRY_MSEC, EXPIRY_MSEC);
    scheduler->extender.books = books_new();
    r = api_server_new(loop, settings, &scheduler->api, err);
    if (r == 0)
        scheduler_watch(scheduler);
    if (r == 0)
        r = scheduler_listen(scheduler, err);
    if (r == 0)
        r = scheduler_open_metrics(scheduler, err);
    if (r == 0)
        r = webhook_new(loop, settings, scheduler->api, &scheduler->webhook, err);
    if (r < 0)
        return r;
    *ret = AQ_TAKE(scheduler);
    return 0;
}

const struct role scheduler_role = {
    .name = "scheduler",
    .usage = "beside kube-scheduler: which card a pod's containers get, and what they may ask for",
    .begin = scheduler_begin,
    .end = scheduler_end,
};
