/* SPDX-License-Identifier: Apache-2.0 */
/* uninstall.c - the role that removes what the plugins have written about their nodes, and ends
 *
 * A hook of the chart runs it after everything else has been deleted: the plugins' rights are gone
 * then, so nobody writes it again. It has ended when the API server shows no node with it.
 */
#include <signal.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "k8s/api_server.h"
#include "k8s/role.h"
#include "kube/object.h"
#include "kube/watch.h"

#define AGAIN_MSEC 1000

struct uninstall {
    struct kube_api *api;
    struct kube_watch *watch;
    struct kube_call *call;
    struct map nodes; /* that have the annotation */
    size_t asked;
    bool is_synced;
    uv_timer_t timer; /* its closing frees all this */
};

static void uninstall_on_timer(uv_timer_t *timer);

static void uninstall_start(struct uninstall *uninstall, unsigned msec)
{
    if (!uv_is_active((uv_handle_t *)&uninstall->timer))
        (void)uv_timer_start(&uninstall->timer, uninstall_on_timer, msec, 0);
}

/* ---- nodes ---- */

static void uninstall_on_gone(void *data, const char *key)
{
    struct uninstall *uninstall = data;

    (void)map_removes(&uninstall->nodes, key);
    uninstall_start(uninstall, 0);
}

static void uninstall_on_node(void *data, const char *key, const json_t *node)
{
    struct uninstall *uninstall = data;
    const json_t *annotations = json_object_get(json_object_get(node, "metadata"), "annotations");

    if (!json_object_get(annotations, NODE_CARDS))
        uninstall_on_gone(uninstall, key);
    else
        map_sets(&uninstall->nodes, key, uninstall);
}

static void uninstall_on_synced(void *data)
{
    struct uninstall *uninstall = data;

    uninstall->is_synced = true;
    uninstall_start(uninstall, 0);
}

static void uninstall_on_failed(void *data, const struct aq_error *err)
{
    (void)data;
    log_warning("the API server cannot be asked for nodes: %s", err->text);
}

/* ---- removing ---- */

static void uninstall_on_patched(void *data, const json_t *answer, const struct aq_error *err)
{
    struct uninstall *uninstall = data;
    char key[KUBE_KEY_MAX + 1];

    uninstall->call = NULL;
    if (answer && kube_object_key(answer, key))
        uninstall_on_node(uninstall, key, answer);
    if (!answer)
        log_warning("an annotation is not removed: %s", err->text);
    uninstall_start(uninstall, answer ? 0 : AGAIN_MSEC);
}

static int uninstall_patch(struct uninstall *uninstall, const char *node, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("/api/v1/nodes/%s", node);
    const struct kube_ask ask = {
        .method = METHOD_PATCH,
        .path = path,
        .body = "{\"metadata\":{\"annotations\":{\"" NODE_CARDS "\":null}}}",
        .type = KUBE_MERGE_PATCH,
    };

    return kube_api_ask(uninstall->api, &ask, uninstall_on_patched, uninstall, &uninstall->call,
                        err);
}

/* One after the other, also if one cannot be changed. */
static void uninstall_on_timer(uv_timer_t *timer)
{
    struct uninstall *uninstall = timer->data;
    struct aq_error err = { 0 };
    size_t at;

    if (uninstall->call || !uninstall->is_synced)
        return;
    if (!uninstall->nodes.count) {
        log_info("no node has the annotation " NODE_CARDS);
        (void)raise(SIGTERM);
        return;
    }
    at = uninstall->asked++ % uninstall->nodes.count;
    if (uninstall_patch(uninstall, uninstall->nodes.entries[at].key, &err) < 0) {
        log_warning("%s", err.text);
        uninstall_start(uninstall, AGAIN_MSEC);
    }
}

/* ---- life ---- */

static void uninstall_on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void uninstall_end(void *data)
{
    struct uninstall *uninstall = data;

    kube_call_cancel(uninstall->call);
    kube_watch_free(uninstall->watch);
    kube_api_free(uninstall->api);
    map_done(&uninstall->nodes);
    uv_close((uv_handle_t *)&uninstall->timer, uninstall_on_closed);
}

static int uninstall_begin(uv_loop_t *loop, const struct settings *settings, void **ret,
                           struct aq_error *err)
{
    struct uninstall *uninstall = aq_alloc(sizeof(*uninstall));
    struct kube_watch_conf conf = { .path = "/api/v1/nodes",
                                    .on_object = uninstall_on_node,
                                    .on_gone = uninstall_on_gone,
                                    .on_synced = uninstall_on_synced,
                                    .on_failed = uninstall_on_failed,
                                    .data = uninstall };
    int r;

    (void)uv_timer_init(loop, &uninstall->timer);
    uninstall->timer.data = uninstall;
    r = api_server_new(loop, settings, &uninstall->api, err);
    conf.api = uninstall->api;
    if (r == 0)
        uninstall->watch = kube_watch_new(&conf);
    if (r < 0)
        uninstall_end(uninstall);
    else
        *ret = uninstall;
    return r;
}

const struct role uninstall_role = {
    .name = "uninstall",
    .usage = "after all objects are deleted: removes annotations of nodes, and ends",
    .begin = uninstall_begin,
    .end = uninstall_end,
};
