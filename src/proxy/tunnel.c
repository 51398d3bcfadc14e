/* SPDX-License-Identifier: Apache-2.0 */
/* tunnel.c - a connection to a TCP port: bytes both ways */
#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "link/graceful_close.h"
#include "proxy/app_link.h"
#include "proxy/connections.h"
#include "proxy/port.h"

struct tunnel {
    struct list link;
    struct port *port;
    struct stream *stream;
    struct client_share *share, *user; /* connections.h */
    struct app_link *app;
    struct pump pump; /* stream and app */
};

static void tunnel_free(struct tunnel *t)
{
    struct proxy *p = t->port->proxy;
    struct client_share *share = t->share, *user = t->user;

    list_remove(&t->link);
    t->port->connection_count--;
    app_link_close(t->app);
    stream_close(t->stream);
    pump_done(&t->pump);
    free(t);
    connections_leave(p, share, user);
}

void tunnels_cut(struct port *port)
{
    while (!list_is_empty(&port->tunnels))
        tunnel_free(LIST_ENTRY(port->tunnels.next, struct tunnel, link));
}

/* ---- from the app ---- */

static void tunnel_on_app_open(void *data, const struct aq_error *err)
{
    struct tunnel *t = data;

    if (err) {
        t->app = NULL;
        t->port->proxy->counts.refused++;
        tunnel_free(t);
        return;
    }
    pump_join(&t->pump, PUMP_KERNEL, &app_link_pump, t->app);
    if (pump_open(&t->pump, PUMP_KERNEL) < 0)
        tunnel_free(t);
}

static void tunnel_on_app_data(void *data, const char *bytes, size_t len)
{
    struct tunnel *t = data;

    t->port->proxy->counts.bytes_out += len;
    if (pump_give(&t->pump, PUMP_KERNEL, bytes, len) < 0)
        tunnel_free(t);
}

static void tunnel_on_app_drain(void *data)
{
    struct tunnel *t = data;

    pump_drained(&t->pump, PUMP_KERNEL);
}

/* What it said still goes out. */
static void tunnel_on_app_close(void *data, const struct aq_error *err)
{
    struct tunnel *t = data;

    (void)err;
    t->app = NULL;
    graceful_close(t->port->proxy->loop, AQ_TAKE(t->stream));
    tunnel_free(t);
}

static const struct app_link_ops tunnel_app_ops = {
    .on_open = tunnel_on_app_open,
    .on_data = tunnel_on_app_data,
    .on_drain = tunnel_on_app_drain,
    .on_close = tunnel_on_app_close,
};

/* ---- from the client ---- */

static void tunnel_on_open(void *data)
{
    (void)data;
}

static void tunnel_on_read(void *data, const char *bytes, size_t len)
{
    struct tunnel *t = data;

    int r = pump_give(&t->pump, PUMP_CLIENT, bytes, len);

    t->port->proxy->counts.bytes_in += len;
    if (r < 0 && r != -EPIPE) /* of its end it is told, after its last words */
        tunnel_free(t);
}

static void tunnel_on_end(void *data, const struct aq_error *err)
{
    (void)err;
    tunnel_free(data);
}

static void tunnel_on_drain(void *data)
{
    struct tunnel *t = data;

    pump_drained(&t->pump, PUMP_CLIENT);
}

static const struct stream_ops tunnel_stream_ops = {
    .on_open = tunnel_on_open,
    .on_read = tunnel_on_read,
    .on_end = tunnel_on_end,
    .on_drain = tunnel_on_drain,
};

static bool tunnel_connect(struct tunnel *t)
{
    const struct port *port = t->port;
    const struct msg_app_connect want = { .session_id = port->of.session_id,
                                          .app = port->of.app,
                                          .access_key = port->of.access_key };
    struct aq_error err = { 0 };

    return port_admits(port, stream_get_address(t->stream))
           && connections_take_user(port->proxy, port->of.access_key, &t->user, &err) == 0
           && app_link_open(port->proxy, &want, &tunnel_app_ops, t, &t->app, &err) == 0;
}

void tunnel_accept(struct port *port)
{
    struct tunnel *t = aq_alloc(sizeof(*t));
    struct aq_error err = { 0 };
    bool has_room;

    if (listener_accept(port->listener, &tunnel_stream_ops, t, &t->stream, &err) < 0) {
        free(t);
        return;
    }
    t->port = port;
    pump_init(&t->pump);
    pump_join(&t->pump, PUMP_CLIENT, &stream_pump, t->stream);
    (void)pump_open(&t->pump, PUMP_CLIENT);
    pump_set_early(&t->pump, PUMP_KERNEL, PUMP_QUEUE_HIGH);
    list_add(&port->tunnels, &t->link);
    port->connection_count++;
    has_room = connections_enter(port->proxy, t->stream, true, &t->share);
    if (has_room && tunnel_connect(t))
        return;
    port->proxy->counts.refused += has_room;
    tunnel_free(t);
}
