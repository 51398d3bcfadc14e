/* SPDX-License-Identifier: Apache-2.0 */
/* app_ticket.c - see app_ticket.h */
#include "manager/stream/app_ticket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "base/sum.h"
#include "http/defer.h"
#include "manager/stream/app_proxy.h"
#include "manager/stream/replica_app.h"
#include "model/model_service.h"

#define CHECK_MSEC 500
#define TICKETS_MAX 65536 /* that are looked at; beyond, apps are reached through the manager */
#define LIFETIME_USEC (3600 * USEC_PER_SEC)

struct app_tickets {
    struct api *api;
    struct map known; /* id, 16 bytes -> struct app_ticket */
    struct defer *timer;
    int64_t lifetime_usec;
};

struct app_ticket {
    struct uuid id, session_id; /* as proxies call it */
    struct uuid counted_id;     /* the session itself */
    struct uuid service_id;     /* whose replica it is; nil = the app is not a model service's */
    char proxy[AGENT_ID_MAX + 1];
    char app[SERVICE_NAME_MAX + 1];
    char access_key[TICKET_KEY_MAX];
    int64_t expires_usec; /* wall clock; a connection that is open stays watched */
    int64_t connections;  /* open, as the proxy said last */
};

/* ---- what is watched ---- */

static struct app_ticket *app_ticket_find(const struct app_tickets *ts, const struct uuid *id)
{
    return map_get(&ts->known, id->bytes, sizeof(id->bytes));
}

static void app_ticket_count(const struct app_tickets *ts, const struct app_ticket *t,
                             struct app_use more)
{
    (void)snprintf(more.name, sizeof(more.name), "%s", t->app);
    core_note_app_use(ts->api->core, &t->counted_id, &more);
}

static void app_ticket_drop(struct app_tickets *ts, struct app_ticket *t)
{
    if (t->connections)
        app_ticket_count(ts, t, (struct app_use){ .connections = -t->connections });
    (void)map_remove(&ts->known, t->id.bytes, sizeof(t->id.bytes));
    free(t);
}

static bool app_ticket_is_good(const struct app_tickets *ts, const struct app_ticket *t,
                               struct aq_error *err)
{
    uint16_t port;

    if (uuid_is_nil(&t->service_id))
        return app_proxy_find_kernel(ts->api, &t->session_id, t->app, t->access_key, err);
    return replica_app_find(ts->api->core, &t->session_id, &t->service_id, t->access_key, &port,
                            err);
}

/* True if it is watched no more. */
static bool app_ticket_look(struct app_tickets *ts, struct app_ticket *t, int64_t now)
{
    struct aq_error err = { 0 };
    struct message no = { .type = MSG_APP_REFUSED,
                          .app_refused = { .request_id = t->id, .text = err.text } };

    if (app_ticket_is_good(ts, t, &err)) {
        if (now < t->expires_usec || t->connections)
            return false;
    } else {
        no.app_refused.kind = err.kind;
        (void)core_send_front(ts->api->core, t->proxy, &no, NULL);
    }
    app_ticket_drop(ts, t);
    return true;
}

static void app_tickets_on_timer(void *data)
{
    struct app_tickets *ts = data;
    int64_t now = clock_realtime_usec();

    for (size_t i = 0; i < ts->known.count;)
        if (!app_ticket_look(ts, ts->known.entries[i].value, now))
            i++;
    if (ts->known.count)
        defer_start(ts->timer, CHECK_MSEC);
}

static struct app_ticket *app_ticket_watch(struct app_tickets *ts, const char *proxy,
                                           const struct uuid *id, const struct uuid *session_id,
                                           const char *app, const char *access_key,
                                           int64_t expires_usec)
{
    const struct kernel *kernel = core_find_kernel(ts->api->core, session_id);
    struct app_ticket *t = app_ticket_find(ts, id);

    if (t && strcmp(t->proxy, proxy) != 0)
        return NULL; /* another proxy's */
    if (!t && ts->known.count >= TICKETS_MAX)
        return NULL;
    if (!t) {
        t = aq_alloc(sizeof(*t));
        *t = (struct app_ticket){ .id = *id,
                                  .session_id = *session_id,
                                  .counted_id = kernel ? kernel->session->id : *session_id };
        if (strcmp(app, MODEL_SERVICE_APP) == 0)
            t->service_id = replica_app_service(ts->api->core, session_id);
        (void)snprintf(t->proxy, sizeof(t->proxy), "%s", proxy);
        (void)snprintf(t->app, sizeof(t->app), "%s", app);
        (void)snprintf(t->access_key, sizeof(t->access_key), "%s", access_key);
        (void)map_set(&ts->known, t->id.bytes, sizeof(t->id.bytes), t);
        defer_start(ts->timer, CHECK_MSEC);
    }
    t->expires_usec = AQ_MAX(t->expires_usec, expires_usec);
    return t;
}

/* ---- giving ---- */

bool app_tickets_are_for(const struct app_tickets *ts, const struct kernel *kernel)
{
    const struct session *session = kernel->session;

    return ts->known.count < TICKETS_MAX && kernel->agent_id && session->status == SESSION_RUNNING
           && session->image && strcmp(session->image, IMAGE_OF_PROCESSES) != 0
           && core_agent_data_address(ts->api->core, kernel->agent_id);
}

static int app_ticket_send(struct app_tickets *ts, const struct ticket *ticket,
                           const struct uuid *request_id, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct core *core = ts->api->core;
    struct message msg = { .type = MSG_APP_ROUTE,
                           .app_route = { .request_id = *request_id,
                                          .ticket_id = ticket->id,
                                          .agent_id = ticket->agent,
                                          .address = core_agent_data_address(core, ticket->agent),
                                          .expires_usec = ticket->expires_usec } };
    int r = core_write_ticket(core, ticket, &text, err);

    if (r < 0)
        return r;
    if (!app_ticket_watch(ts, ticket->proxy, &ticket->id, &ticket->session_id, ticket->app,
                          ticket->access_key, ticket->expires_usec))
        return aq_fail_kind(err, EAGAIN, "service-unavailable", "too many apps are in use");
    AQ_FAULT("data.ticket.made");
    msg.app_route.ticket = text.data;
    return core_send_front(core, ticket->proxy, &msg, err);
}

int app_tickets_give(struct app_tickets *ts, const char *proxy, const struct kernel *kernel,
                     const struct msg_app_connect *want, uint16_t port, struct aq_error *err)
{
    struct ticket ticket = { .id = uuid_random(),
                             .session_id = want->session_id,
                             .kernel_id = kernel->id,
                             .port = port,
                             .expires_usec = clock_realtime_usec() + ts->lifetime_usec };

    (void)snprintf(ticket.proxy, sizeof(ticket.proxy), "%s", proxy);
    (void)snprintf(ticket.agent, sizeof(ticket.agent), "%s", kernel->agent_id);
    (void)snprintf(ticket.app, sizeof(ticket.app), "%s", want->app);
    (void)snprintf(ticket.access_key, sizeof(ticket.access_key), "%s", want->access_key);
    return app_ticket_send(ts, &ticket, &want->request_id, err);
}

/* ---- what proxies say ---- */

void app_tickets_keep(struct app_tickets *ts, const char *proxy, const struct kernel *kernel,
                      const struct msg_app_connect *have)
{
    int64_t now = clock_realtime_usec();
    struct aq_error err = { 0 };
    struct ticket ticket;

    if (!have->ticket) {
        (void)app_ticket_watch(ts, proxy, &have->request_id, &have->session_id, have->app,
                               have->access_key, now + ts->lifetime_usec);
        return;
    }
    /* one that does not fit any more is let expire: the next connection gets a new one */
    if (core_read_ticket(ts->api->core, have->ticket, now, &ticket, &err) < 0
        || !uuid_equals(&ticket.id, &have->request_id) || strcmp(ticket.proxy, proxy) != 0
        || !uuid_equals(&ticket.session_id, &have->session_id) || strcmp(ticket.app, have->app) != 0
        || strcmp(ticket.access_key, have->access_key) != 0
        || !uuid_equals(&ticket.kernel_id, &kernel->id) || !app_tickets_are_for(ts, kernel)
        || strcmp(ticket.agent, kernel->agent_id) != 0)
        return;
    ticket.expires_usec = now + ts->lifetime_usec;
    (void)app_ticket_send(ts, &ticket, &ticket.id, &err);
}

void app_tickets_count(struct app_tickets *ts, const char *proxy, const struct msg_app_use *use)
{
    struct core *core = ts->api->core;
    struct app_ticket *t = app_ticket_watch(ts, proxy, &use->ticket_id, &use->session_id, use->app,
                                            use->access_key, 0);
    struct app_use more = { .requests = use->requests,
                            .bytes_in = use->bytes_in,
                            .bytes_out = use->bytes_out };

    if (!t || !sum_is_sane(use->connections) || !sum_is_sane(use->requests)
        || !sum_is_sane(use->bytes_in) || !sum_is_sane(use->bytes_out))
        return;
    more.connections = use->connections - t->connections;
    t->connections = use->connections;
    app_ticket_count(ts, t, more);
    if (!uuid_is_nil(&t->service_id)) /* requests of programs: no person works in the session */
        return;
    if (use->is_work)
        core_note_work(core, &t->counted_id);
    core_note_traffic(core, &t->counted_id, use->traffic);
}

void app_tickets_lose(struct app_tickets *ts, const char *proxy)
{
    for (size_t i = 0; i < ts->known.count;) {
        struct app_ticket *t = ts->known.entries[i].value;

        if (strcmp(t->proxy, proxy) == 0)
            app_ticket_drop(ts, t);
        else
            i++;
    }
}

/* ---- life ---- */

struct app_tickets *app_tickets_new(struct api *api)
{
    struct app_tickets *ts = aq_alloc(sizeof(*ts));

    *ts = (struct app_tickets){ .api = api, .lifetime_usec = LIFETIME_USEC };
    ts->timer = defer_new(core_loop(api->core), app_tickets_on_timer, ts);
    return ts;
}

void app_tickets_set_lifetime(struct app_tickets *ts, int64_t usec)
{
    ts->lifetime_usec = usec;
}

void app_tickets_free(struct app_tickets *ts)
{
    if (!ts)
        return;
    while (ts->known.count)
        app_ticket_drop(ts, ts->known.entries[0].value);
    map_done(&ts->known);
    defer_cancel(ts->timer);
    free(ts);
}
