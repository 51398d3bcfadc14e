/* SPDX-License-Identifier: Apache-2.0 */
/* bus.c - who hears of what happens: see bus.h */
#include <assert.h>

#include "base/clock.h"
#include "base/memory.h"
#include "manager/core/bus.h"
#include "manager/core/events/bus_internal.h"
#include "manager/core/lookup.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/state.h"

struct core_subscriber {
    struct list link; /* core.subscribers, or the topic's */
    struct uuid session_id;
    bool is_for_one;
    core_event_fn fn;
    void *data;
};

/* Subscribers of one session. */
struct topic {
    struct list subscribers;
};

static struct topic *bus_get_topic(struct core *core, const struct uuid *id)
{
    struct topic *t = map_get(&core->session_subscribers, id->bytes, sizeof(id->bytes));

    if (t)
        return t;
    t = aq_alloc(sizeof(*t));
    map_set(&core->session_subscribers, id->bytes, sizeof(id->bytes), t);
    list_init(&t->subscribers);
    return t;
}

struct core_subscriber *core_subscribe(struct core *core, const struct uuid *session_id,
                                       core_event_fn fn, void *data)
{
    struct core_subscriber *s = aq_alloc(sizeof(*s));
    struct list *place = &core->subscribers;

    if (session_id) {
        place = &bus_get_topic(core, session_id)->subscribers;
        s->session_id = *session_id;
        s->is_for_one = true;
    }
    s->fn = fn;
    s->data = data;
    list_add(place, &s->link);
    return s;
}

/* A topic goes with its last subscriber, also during a walk: that reads no head. */
static void bus_drop_topic(struct core *core, const struct uuid *id)
{
    struct topic *t = map_get(&core->session_subscribers, id->bytes, sizeof(id->bytes));

    if (t && list_is_empty(&t->subscribers))
        free(map_remove(&core->session_subscribers, id->bytes, sizeof(id->bytes)));
}

void core_unsubscribe(struct core *core, struct core_subscriber *subscriber)
{
    if (!subscriber)
        return;
    list_remove(&subscriber->link);
    if (subscriber->is_for_one)
        bus_drop_topic(core, &subscriber->session_id);
    free(subscriber);
}

/* A subscriber replies to requests, so anything may happen to the others meanwhile. */
static void bus_tell(struct list_cursor *cursor, const struct core_event *event)
{
    struct list *link;

    while ((link = list_cursor_next(cursor))) {
        struct core_subscriber *s = LIST_ENTRY(link, struct core_subscriber, link);

        s->fn(s->data, event);
    }
}

void bus_publish(struct core *core, const struct core_event *event)
{
    AQ_CLEANUP(list_cursor_end) struct list_cursor all;
    AQ_CLEANUP(list_cursor_end) struct list_cursor of_session;
    const struct uuid *id = &event->session->id;
    struct topic *t = map_get(&core->session_subscribers, id->bytes, sizeof(id->bytes));
    struct list none;

    assert(core_is_own_thread(core));
    list_init(&none);
    /* Both begin before the first call: what is subscribed in it gets the next event. */
    list_cursor_begin(&all, &core->subscribers);
    list_cursor_begin(&of_session, t ? &t->subscribers : &none);
    bus_tell(&all, event);
    bus_tell(&of_session, event);
}

static void bus_free_subscribers(struct list *subscribers)
{
    struct list *link;

    while ((link = list_take(subscribers)))
        free(LIST_ENTRY(link, struct core_subscriber, link));
}

void bus_free(struct core *core)
{
    bus_free_subscribers(&core->subscribers);
    for (size_t i = 0; i < core->session_subscribers.count; i++) {
        struct topic *t = core->session_subscribers.entries[i].value;

        bus_free_subscribers(&t->subscribers);
        free(t);
    }
    map_done(&core->session_subscribers);
}

/* ---- what an applied event has changed: the names are in bus.h ---- */

void announce(struct core *core, const char *name, const struct session_entry *l,
              const struct kernel *k, const char *reason, struct session_event_place place)
{
    const struct kernel *exited = k ? k : &l->s.kernels[0];
    struct core_event event = {
        .name = name,
        .session = &l->s,
        .kernel = k,
        .reason = reason ? reason : "",
        .has_exit = exited->has_exit,
        .exit_code = exited->exit_code,
        .at_usec = place.at_usec,
        .number = place.number,
    };

    if (!name || !core->is_started)
        return;
    core->last_event = place;
    bus_publish(core, &event);
}

struct session_event_place core_last_event(const struct core *core)
{
    return core->last_event;
}

void core_announce_execution(struct core *core, const struct uuid *session_id, const char *name,
                             const char *run_id, const int *exit_code)
{
    const struct core_event event = {
        .name = name,
        .session = core_find_session(core, session_id),
        .reason = "",
        .has_exit = exit_code != NULL,
        .exit_code = exit_code ? *exit_code : 0,
        .at_usec = clock_realtime_usec(),
        .run_id = run_id,
    };

    if (event.session)
        bus_publish(core, &event);
}
