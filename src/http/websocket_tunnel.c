/* SPDX-License-Identifier: Apache-2.0 */
/* A WebSocket between a client and another server, whose bytes are passed on as they come. */
#include "http/websocket_tunnel.h"

#include <stdlib.h>

#include "base/memory.h"
#include "http/defer.h"
#include "http/tunnel_frame.h"

#define END_MSEC 5000 /* for what is queued when one side has ended */

struct websocket_tunnel {
    struct request *req;
    struct stream *client, *server; /* the first is the request's */
    struct pump pump;
    struct tunnel_frame frame; /* to the client */
    struct defer *timer;       /* of one whose end has come */
    bool is_told;              /* the client, why it ends */
    const struct websocket_tunnel_ops *ops;
    void *data;
};

void websocket_tunnel_cut(struct websocket_tunnel *tunnel)
{
    stream_close(tunnel->server);
    defer_cancel(tunnel->timer);
    pump_done(&tunnel->pump);
    request_set_gone(tunnel->req, NULL, NULL);
    request_end(tunnel->req);
    tunnel->ops->on_end(tunnel->data);
    free(tunnel);
}

static void websocket_tunnel_on_late(void *data)
{
    struct websocket_tunnel *tunnel = data;

    tunnel->timer = NULL;
    websocket_tunnel_cut(tunnel);
}

static void websocket_tunnel_await_end(struct websocket_tunnel *tunnel)
{
    tunnel->timer = defer_call(request_get_loop(tunnel->req), END_MSEC, websocket_tunnel_on_late,
                               tunnel);
}

/* One side has ended: what it said last still goes out. */
static void websocket_tunnel_finish(struct websocket_tunnel *tunnel, struct stream *other)
{
    if (tunnel->timer || !other || !stream_queued(other))
        websocket_tunnel_cut(tunnel);
    else
        websocket_tunnel_await_end(tunnel);
}

void websocket_tunnel_close(struct websocket_tunnel *tunnel, uint16_t code, const char *reason)
{
    struct websocket_frames ours;

    websocket_frames_init(&ours, true, 0);
    websocket_frames_close(&ours, code, reason);
    stream_close(AQ_TAKE(tunnel->server));
    pump_part(&tunnel->pump, PUMP_KERNEL);
    if (!tunnel->timer && tunnel_frame_is_between(&tunnel->frame)
        && stream_write(tunnel->client, ours.out.data, ours.out.len) == 0) {
        websocket_tunnel_await_end(tunnel);
        tunnel->is_told = true;
    }
    websocket_frames_done(&ours);
    if (tunnel->is_told)
        stream_resume(tunnel->client); /* until it closes, too */
    else
        websocket_tunnel_finish(tunnel, tunnel->client);
}

static void websocket_tunnel_on_drained(struct websocket_tunnel *tunnel, enum pump_side side)
{
    if (!tunnel->timer)
        pump_drained(&tunnel->pump, side);
    else if (!tunnel->is_told)
        websocket_tunnel_cut(tunnel);
}

static void websocket_tunnel_count(struct websocket_tunnel *tunnel, bool from_client, size_t len)
{
    if (tunnel->ops->on_bytes)
        tunnel->ops->on_bytes(tunnel->data, from_client, len);
}

/* ---- the client's ---- */

static void websocket_tunnel_on_client_read(void *data, const char *bytes, size_t len)
{
    struct websocket_tunnel *tunnel = data;

    websocket_tunnel_count(tunnel, true, len);
    if (tunnel->server && pump_give(&tunnel->pump, PUMP_CLIENT, bytes, len) < 0)
        websocket_tunnel_cut(tunnel);
}

static void websocket_tunnel_on_client_end(void *data, const struct aq_error *err)
{
    struct websocket_tunnel *tunnel = data;

    (void)err;
    websocket_tunnel_finish(tunnel, tunnel->server);
}

static void websocket_tunnel_on_client_drain(void *data)
{
    websocket_tunnel_on_drained(data, PUMP_CLIENT);
}

static void websocket_tunnel_on_gone(struct request *req, void *data)
{
    (void)req;
    websocket_tunnel_cut(data);
}

/* ---- the server's ---- */

static void websocket_tunnel_on_server_read(void *data, const char *bytes, size_t len)
{
    struct websocket_tunnel *tunnel = data;

    websocket_tunnel_count(tunnel, false, len);
    tunnel_frame_follow(&tunnel->frame, bytes, len);
    if (pump_give(&tunnel->pump, PUMP_KERNEL, bytes, len) < 0)
        websocket_tunnel_cut(tunnel);
}

static void websocket_tunnel_on_server_end(void *data, const struct aq_error *err)
{
    struct websocket_tunnel *tunnel = data;

    (void)err;
    if (tunnel->frame.is_close)
        websocket_tunnel_finish(tunnel, tunnel->client);
    else
        websocket_tunnel_close(tunnel, tunnel->ops->gone_code, tunnel->ops->gone_reason);
}

static void websocket_tunnel_on_server_drain(void *data)
{
    websocket_tunnel_on_drained(data, PUMP_KERNEL);
}

struct websocket_tunnel *websocket_tunnel_begin(struct request *req, struct exchange *exchange,
                                                const struct websocket_tunnel_ops *ops, void *data)
{
    static const struct stream_ops client_ops = { .on_read = websocket_tunnel_on_client_read,
                                                  .on_end = websocket_tunnel_on_client_end,
                                                  .on_drain = websocket_tunnel_on_client_drain };
    static const struct stream_ops server_ops = { .on_read = websocket_tunnel_on_server_read,
                                                  .on_end = websocket_tunnel_on_server_end,
                                                  .on_drain = websocket_tunnel_on_server_drain };
    struct websocket_tunnel *tunnel = aq_alloc(sizeof(*tunnel));

    tunnel->req = req;
    tunnel->ops = ops;
    tunnel->data = data;
    tunnel->server = exchange_upgrade(exchange, &server_ops, tunnel);
    tunnel->client = request_upgrade(req, "websocket", &client_ops, tunnel);
    if (!tunnel->client) {
        stream_close(tunnel->server);
        free(tunnel);
        return NULL;
    }
    request_set_gone(req, websocket_tunnel_on_gone, tunnel);
    pump_init(&tunnel->pump);
    pump_join(&tunnel->pump, PUMP_CLIENT, &stream_pump, tunnel->client);
    pump_join(&tunnel->pump, PUMP_KERNEL, &stream_pump, tunnel->server);
    (void)pump_open(&tunnel->pump, PUMP_CLIENT);
    (void)pump_open(&tunnel->pump, PUMP_KERNEL);
    return tunnel;
}
