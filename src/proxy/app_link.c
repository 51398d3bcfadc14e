/* SPDX-License-Identifier: Apache-2.0 */
/* app_link.c - see app_link.h */
#include "proxy/app_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "proxy/agent_link.h"
#include "proxy/cookie.h"
#include "proxy/route.h"

struct app_link {
    struct proxy *proxy;
    struct uuid session_id;
    char app[COOKIE_APP_MAX + 1];
    char access_key[COOKIE_KEY_MAX];
    struct uuid service_id;  /* nil: not of a model service */
    struct manager_ask *ask; /* one of the two, before there is a stream */
    struct agent_ask *agent;
    bool is_fresh;        /* the ticket of 'use' has just come from the manager */
    struct route_use use; /* by a ticket; else the manager counts */
    struct link_stream *stream;
    bool is_open; /* on_open() was called */
    const struct app_link_ops *ops;
    void *data;
};

static void app_link_free(struct app_link *l)
{
    manager_cancel(l->ask);
    agent_ask_cancel(l->agent);
    route_close(&l->use);
    link_stream_close(l->stream);
    free(l);
}

bool app_link_is_quiet(const struct app_link *l)
{
    return l->stream && link_stream_is_quiet(l->stream);
}

void app_link_close(struct app_link *l)
{
    if (l)
        app_link_free(l);
}

/* Its end is told by the callback that is due. */
static void app_link_end(struct app_link *l, const struct aq_error *err)
{
    struct app_link done = *l;

    app_link_free(l);
    if (done.is_open)
        done.ops->on_close(done.data, err);
    else
        done.ops->on_open(done.data, err);
}

/* What it asks the manager for; texts are the link's. */
static struct msg_app_connect app_link_want(const struct app_link *l)
{
    return (struct msg_app_connect){ .session_id = l->session_id,
                                     .app = l->app,
                                     .access_key = l->access_key,
                                     .service_id = l->service_id };
}

/* ---- the stream ---- */

static void app_link_on_stream_open(void *data, struct link_stream *stream)
{
    struct app_link *l = data;

    (void)stream;
    l->is_open = true;
    l->ops->on_open(l->data, NULL);
}

static void app_link_on_stream_data(void *data, struct link_stream *stream, const char *bytes,
                                    size_t len)
{
    struct app_link *l = data;

    (void)stream;
    if (l->use.route)
        route_count_out(&l->use, len);
    l->ops->on_data(l->data, bytes, len);
}

static void app_link_on_stream_drain(void *data, struct link_stream *stream)
{
    struct app_link *l = data;

    (void)stream;
    l->ops->on_drain(l->data);
}

static void app_link_on_stream_close(void *data, struct link_stream *stream,
                                     const struct aq_error *err)
{
    struct app_link *l = data;
    struct aq_error why = { 0 };

    (void)stream;
    l->stream = NULL;
    if (!err && !l->is_open) {
        (void)aq_fail(&why, ECONNABORTED, "the app has closed the connection without an answer");
        err = &why;
    }
    app_link_end(l, err);
}

static const struct link_stream_ops app_link_stream_ops = {
    .on_open = app_link_on_stream_open,
    .on_data = app_link_on_stream_data,
    .on_drain = app_link_on_stream_drain,
    .on_close = app_link_on_stream_close,
};

static int app_link_put(void *end, const char *bytes, size_t len)
{
    struct app_link *l = end;

    if (l->use.route)
        route_count_in(&l->use, bytes, len);
    return link_stream_write(l->stream, bytes, len);
}

static void app_link_hold(void *end, bool is_paused)
{
    const struct app_link *l = end;

    if (l->stream)
        link_stream_pause(l->stream, is_paused);
}

const struct pump_ops app_link_pump = { .put = app_link_put, .pause = app_link_hold };

/* ---- by the agent ---- */

static int app_link_ask_manager(struct app_link *l, bool direct, struct aq_error *err);

/* Its right has ended. */
static void app_link_cut(void *data, const struct aq_error *err)
{
    app_link_end(data, err);
}

/* The next best way. */
static void app_link_ask_again(struct app_link *l, bool direct)
{
    struct aq_error err = { 0 };

    if (app_link_ask_manager(l, direct, &err) < 0)
        app_link_end(l, &err);
}

/* An old ticket may be of an app that has ended, which the manager starts again. */
static void app_link_on_agent_failed(struct app_link *l, struct app_route *route,
                                     const struct aq_error *err)
{
    struct proxy *p = l->proxy;
    bool is_down = err->kind && strcmp(err->kind, "connect-failed") == 0;

    if (is_down && !uuid_is_nil(&l->service_id)) {
        app_link_end(l, err); /* the manager starts no replica, and the ticket is good */
        return;
    }
    if (!err->kind)
        routes_note_way(p->routes, route_agent(route), ROUTE_MANAGER, err->text);
    else
        route_drop(route);
    app_link_ask_again(l, err->kind && !l->is_fresh);
}

static void app_link_on_opened(void *data, struct agent_opened *opened, const struct aq_error *err)
{
    struct app_link *l = data;
    struct proxy *p = l->proxy;
    const struct msg_app_connect want = app_link_want(l);
    struct app_route *route = routes_find(p->routes, &want);
    struct aq_error why = { 0 };
    bool by_socket;

    l->agent = NULL;
    if (!route) { /* the right has ended meanwhile, or the ticket: the manager says */
        app_link_ask_again(l, true);
        return;
    }
    if (err) {
        app_link_on_agent_failed(l, route, err);
        return;
    }
    by_socket = agent_opened_by_socket(opened);
    routes_note_way(p->routes, route_agent(route), by_socket ? ROUTE_SOCKET : ROUTE_TLS, NULL);
    p->counts.by_socket += by_socket;
    p->counts.by_tls += !by_socket;
    route_open(route, &l->use, app_link_cut, l);
    if (agent_opened_attach(opened, &app_link_stream_ops, l, &l->stream, &why) < 0)
        app_link_end(l, &why);
}

static void app_link_ask_agent(struct app_link *l, struct app_route *route)
{
    const struct agent_target target = { .agent_id = route_agent(route),
                                         .address = route_address(route),
                                         .ticket = route_ticket(route) };

    agent_link_open(l->proxy->agent_links, &target, app_link_on_opened, l, &l->agent);
}

/* ---- by the manager ---- */

static void app_link_on_manager(void *data, struct link_stream *stream,
                                const struct msg_app_route *got, const struct aq_error *err)
{
    struct app_link *l = data;
    const struct msg_app_connect want = app_link_want(l);

    l->ask = NULL;
    if (err) {
        app_link_end(l, err);
    } else if (got) {
        l->is_fresh = true;
        app_link_ask_agent(l, routes_add(l->proxy->routes, &want, got));
    } else {
        l->proxy->counts.by_manager++;
        l->stream = stream;
    }
}

static int app_link_ask_manager(struct app_link *l, bool direct, struct aq_error *err)
{
    struct msg_app_connect want = app_link_want(l);

    want.direct = direct;
    return manager_connect(&l->proxy->manager, &want, &app_link_stream_ops, app_link_on_manager, l,
                           &l->ask, err);
}

int app_link_open(struct proxy *proxy, const struct msg_app_connect *want,
                  const struct app_link_ops *ops, void *data, struct app_link **ret,
                  struct aq_error *err)
{
    struct app_route *route = routes_find(proxy->routes, want);
    bool is_reachable = !route || !routes_is_unreachable(proxy->routes, route_agent(route));
    struct app_link *l = aq_alloc(sizeof(*l));
    int r = 0;

    *l = (struct app_link){ .proxy = proxy,
                            .session_id = want->session_id,
                            .service_id = want->service_id,
                            .ops = ops,
                            .data = data };
    (void)snprintf(l->app, sizeof(l->app), "%s", want->app);
    (void)snprintf(l->access_key, sizeof(l->access_key), "%s", want->access_key);
    /* an agent that was not reached is tried nevertheless where the manager is no way either */
    if (route && (is_reachable || !front_is_connected(proxy->front)))
        app_link_ask_agent(l, route);
    else
        r = app_link_ask_manager(l, !route, err);
    if (r < 0)
        free(l);
    else
        *ret = l;
    return r;
}
