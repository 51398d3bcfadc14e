/* SPDX-License-Identifier: Apache-2.0 */
/* eviction.c - asking the API server to evict pods */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/log.h"
#include "base/memory.h"
#include "k8s/limits/limits_internal.h"

#define EVICTIONS_MAX 64
#define AGAIN_MSEC 10000

struct eviction {
    struct list link;
    struct evictions *evictions;
    char namespace[64], pod[254], uid[POD_UID_MAX + 1];
    struct kube_call *call; /* NULL = it is to be asked again */
};

struct evictions {
    struct limits *limits;
    struct list items;
    size_t count;
    uv_timer_t timer; /* its closing frees all this */
};

static void eviction_free(struct eviction *eviction)
{
    kube_call_cancel(eviction->call);
    list_remove(&eviction->link);
    eviction->evictions->count--;
    free(eviction);
}

static void eviction_send(struct eviction *eviction);

static void evictions_on_timer(uv_timer_t *timer)
{
    struct evictions *evictions = timer->data;

    LIST_FOREACH(link, &evictions->items) {
        struct eviction *eviction = LIST_ENTRY(link, struct eviction, link);

        if (!eviction->call)
            eviction_send(eviction);
    }
    if (list_is_empty(&evictions->items))
        (void)uv_timer_stop(timer);
}

/* Done: it is evicted, gone, or another pod by now. */
static void eviction_on_done(void *data, const json_t *answer, const struct aq_error *err)
{
    struct eviction *eviction = data;

    eviction->call = NULL;
    if (answer || err->code == ENOENT || err->code == ESTALE) {
        eviction_free(eviction);
        return;
    }
    log_warning("pod %s/%s is not evicted yet: %s", eviction->namespace, eviction->pod, err->text);
    (void)uv_timer_start(&eviction->evictions->timer, evictions_on_timer, AGAIN_MSEC, AGAIN_MSEC);
}

static void eviction_write(const struct eviction *eviction, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "apiVersion", "policy/v1");
    jsonw_member_str(&w, "kind", "Eviction");
    jsonw_key(&w, "metadata");
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "name", eviction->pod);
    jsonw_member_str(&w, "namespace", eviction->namespace);
    jsonw_object_end(&w);
    jsonw_key(&w, "deleteOptions");
    jsonw_object_begin(&w);
    jsonw_key(&w, "preconditions");
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "uid", eviction->uid);
    jsonw_object_end(&w);
    jsonw_object_end(&w);
    jsonw_object_end(&w);
}

static void eviction_send(struct eviction *eviction)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("/api/v1/namespaces/%s/pods/%s/eviction",
                                                eviction->namespace, eviction->pod);
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    struct kube_ask ask = { .method = METHOD_POST, .path = path, .type = KUBE_JSON };
    struct aq_error err = { 0 };
    int r;

    eviction_write(eviction, &body);
    ask.body = body.data;
    r = kube_api_ask(eviction->evictions->limits->api, &ask, eviction_on_done, eviction,
                     &eviction->call, &err);
    if (r < 0)
        (void)uv_timer_start(&eviction->evictions->timer, evictions_on_timer, AGAIN_MSEC,
                             AGAIN_MSEC);
}

void evictions_ask(struct evictions *evictions, const char *namespace, const char *pod,
                   const char *uid)
{
    struct eviction *eviction;

    LIST_FOREACH(link, &evictions->items)
        if (strcmp(LIST_ENTRY(link, struct eviction, link)->uid, uid) == 0)
            return;
    if (evictions->count >= EVICTIONS_MAX)
        return;
    eviction = aq_alloc(sizeof(*eviction));
    eviction->evictions = evictions;
    (void)snprintf(eviction->namespace, sizeof(eviction->namespace), "%s", namespace);
    (void)snprintf(eviction->pod, sizeof(eviction->pod), "%s", pod);
    (void)snprintf(eviction->uid, sizeof(eviction->uid), "%s", uid);
    list_add(&evictions->items, &eviction->link);
    evictions->count++;
    eviction_send(eviction);
}

static void evictions_on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

struct evictions *evictions_new(struct limits *limits)
{
    struct evictions *evictions = aq_alloc(sizeof(*evictions));

    evictions->limits = limits;
    list_init(&evictions->items);
    (void)uv_timer_init(limits->conf.loop, &evictions->timer);
    evictions->timer.data = evictions;
    return evictions;
}

void evictions_free(struct evictions *evictions)
{
    if (!evictions)
        return;
    LIST_FOREACH(link, &evictions->items)
        eviction_free(LIST_ENTRY(link, struct eviction, link));
    uv_close((uv_handle_t *)&evictions->timer, evictions_on_closed);
}
