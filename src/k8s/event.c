/* SPDX-License-Identifier: Apache-2.0 */
/* event.c - see event.h */
#include "k8s/event.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/list.h"
#include "base/log.h"
#include "base/memory.h"

#define COMPONENT "aliquot-plugin"
#define WAITING_MAX 64 /* events that are under way; further ones are lost */

struct events {
    struct kube_api *api;
    const char *node;
    struct list sending;
    size_t count;
};

struct sending {
    struct list link;
    struct events *events;
    struct kube_call *call;
};

static void events_write(const struct events *events, const struct event *event, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);
    time_t now = (time_t)(clock_realtime_usec() / USEC_PER_SEC);
    char at[32] = "";
    struct tm tm;

    if (gmtime_r(&now, &tm))
        (void)strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", &tm);
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "apiVersion", "v1");
    jsonw_member_str(&w, "kind", "Event");
    jsonw_key(&w, "metadata");
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "generateName", "aliquot-");
    jsonw_member_str(&w, "namespace", event->pod ? event->namespace : "default");
    jsonw_object_end(&w);
    jsonw_key(&w, "involvedObject");
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "apiVersion", "v1");
    jsonw_member_str(&w, "kind", event->pod ? "Pod" : "Node");
    if (event->pod)
        jsonw_member_str(&w, "namespace", event->namespace);
    jsonw_member_str(&w, "name", event->pod ? event->pod : events->node);
    jsonw_member_str(&w, "uid", event->pod ? event->uid : events->node);
    jsonw_object_end(&w);
    jsonw_member_str(&w, "type", "Warning");
    jsonw_member_str(&w, "reason", event->reason);
    jsonw_member_str(&w, "message", event->text);
    jsonw_key(&w, "source");
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "component", COMPONENT);
    jsonw_member_str(&w, "host", events->node);
    jsonw_object_end(&w);
    jsonw_member_str(&w, "firstTimestamp", at);
    jsonw_member_str(&w, "lastTimestamp", at);
    jsonw_member_int(&w, "count", 1);
    jsonw_object_end(&w);
}

static void events_on_done(void *data, const json_t *answer, const struct aq_error *err)
{
    struct sending *sending = data;

    if (!answer)
        log_warning("the API server does not take an event: %s", err->text);
    list_remove(&sending->link);
    sending->events->count--;
    free(sending);
}

void events_tell(struct events *events, const struct event *event)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("/api/v1/namespaces/%s/events",
                                                event->pod ? event->namespace : "default");
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) struct sending *sending = NULL;
    struct kube_ask ask = { .method = METHOD_POST, .path = path, .type = KUBE_JSON };
    struct aq_error err = { 0 };

    log_warning("%s %s%s%s: %s", event->reason, event->pod ? event->namespace : "node",
                event->pod ? "/" : " ", event->pod ? event->pod : events->node, event->text);
    events_write(events, event, &body);
    ask.body = body.data;
    if (events->count >= WAITING_MAX)
        return;
    sending = aq_alloc(sizeof(*sending));
    sending->events = events;
    if (kube_api_ask(events->api, &ask, events_on_done, sending, &sending->call, &err) < 0) {
        log_warning("the API server does not take an event: %s", err.text);
        return;
    }
    events->count++;
    list_add(&events->sending, &sending->link);
    sending = NULL;
}

struct events *events_new(struct kube_api *api, const char *node)
{
    struct events *events = aq_alloc(sizeof(*events));

    *events = (struct events){ .api = api, .node = node };
    list_init(&events->sending);
    return events;
}

void events_free(struct events *events)
{
    if (!events)
        return;
    LIST_FOREACH(link, &events->sending) {
        struct sending *sending = LIST_ENTRY(link, struct sending, link);

        kube_call_cancel(sending->call);
        free(sending);
    }
    free(events);
}
