/* SPDX-License-Identifier: Apache-2.0 */
/* callbacks.c - tells a session's callback_url what happens to it */
#include "manager/notification/callbacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/memory.h"

#define ANSWER_MSEC 10000
#define CALLBACK_HEADERS "Content-Type: application/json\r\nUser-Agent: aliquot-manager\r\n"

struct callbacks {
    struct core *core;
    struct core_subscriber *subscriber;
    struct deliveries *deliveries;
};

static const char *const callback_events[] = { "enqueued",   "scheduled", "preparing", "started",
                                               "terminated", "cancelled", "success",   "failure" };

/* As Backend.AI calls it; NULL = it does not tell. */
static const char *callback_event_name(const struct core_event *event)
{
    static const char prefix[] = "session_";

    if (event->kernel || strncmp(event->name, prefix, sizeof(prefix) - 1) != 0)
        return NULL;
    for (size_t i = 0; i < AQ_COUNT(callback_events); i++)
        if (strcmp(event->name + sizeof(prefix) - 1, callback_events[i]) == 0)
            return callback_events[i];
    return NULL;
}

static char *callback_make_body(const char *name, const struct core_event *event)
{
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    char id[UUID_TEXT_MAX], when[CLOCK_ISO_MAX];

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "type", "session_lifecycle");
    jsonw_member_str(&w, "event", name);
    jsonw_member_str(&w, "session_id", uuid_format(&event->session->id, id));
    jsonw_member_str(&w, "when", clock_format_iso(event->at_usec, when));
    jsonw_object_end(&w);
    return strbuf_steal(&text);
}

static void callbacks_on_event(void *data, const struct core_event *event)
{
    const struct callbacks *callbacks = data;
    const char *name = callback_event_name(event);
    const struct session_spec *spec = event->session->spec;
    struct delivery *delivery;

    if (!name || !spec || !spec->callback_url)
        return;
    delivery = aq_alloc(sizeof(*delivery));
    delivery->method = METHOD_POST;
    delivery->url = aq_strdup(spec->callback_url);
    delivery->headers = aq_strdup(CALLBACK_HEADERS);
    delivery->body = callback_make_body(name, event);
    delivery->answer_msec = ANSWER_MSEC;
    deliveries_add(callbacks->deliveries, &event->session->user_id, delivery);
}

struct callbacks *callbacks_new(struct core *core, struct deliveries *deliveries)
{
    struct callbacks *callbacks = aq_alloc(sizeof(*callbacks));

    callbacks->core = core;
    callbacks->deliveries = deliveries;
    callbacks->subscriber = core_subscribe(core, NULL, callbacks_on_event, callbacks);
    return callbacks;
}

void callbacks_free(struct callbacks *callbacks)
{
    if (!callbacks)
        return;
    core_unsubscribe(callbacks->core, callbacks->subscriber);
    free(callbacks);
}
