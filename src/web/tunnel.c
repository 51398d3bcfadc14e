/* SPDX-License-Identifier: Apache-2.0 */
/* tunnel.c - a WebSocket between browser and manager, whose bytes are passed on as they come */
#include "web/relay.h"

#include "http/websocket.h"

#define END_MSEC 5000 /* for what is queued when one side has ended */

void tunnel_cut(struct relay *relay)
{
    struct request *req = relay->req;

    stream_close(AQ_TAKE(relay->manager));
    request_set_gone(req, NULL, NULL);
    relay_free(relay);
    request_end(req);
}

static void tunnel_on_late(void *data)
{
    struct relay *relay = data;

    relay->timer = NULL;
    tunnel_cut(relay);
}

/* One side has ended: what it said last still goes out. */
static void tunnel_finish(struct relay *relay, struct stream *other)
{
    if (relay->timer || !other || !stream_queued(other))
        tunnel_cut(relay);
    else
        relay->timer = defer_call(relay->web->loop, END_MSEC, tunnel_on_late, relay);
}

void tunnel_close(struct relay *relay, uint16_t code, const char *reason)
{
    struct websocket_frames ours;

    websocket_frames_init(&ours, true, 0);
    websocket_frames_close(&ours, code, reason);
    stream_close(AQ_TAKE(relay->manager));
    pump_part(&relay->pump, PUMP_KERNEL);
    if (!relay->timer && tunnel_frame_is_between(&relay->frame)
        && stream_write(relay->browser, ours.out.data, ours.out.len) == 0) {
        relay->timer = defer_call(relay->web->loop, END_MSEC, tunnel_on_late, relay);
        relay->is_told = true;
    }
    websocket_frames_done(&ours);
    if (relay->is_told)
        stream_resume(relay->browser); /* until it closes, too */
    else
        tunnel_finish(relay, relay->browser);
}

static void tunnel_on_drained(struct relay *relay, enum pump_side side)
{
    if (!relay->timer)
        pump_drained(&relay->pump, side);
    else if (!relay->is_told)
        tunnel_cut(relay);
}

/* ---- the browser's ---- */

static void tunnel_on_browser_read(void *data, const char *bytes, size_t len)
{
    struct relay *relay = data;

    relay->web->counts.bytes_in += len;
    if (relay->manager && pump_give(&relay->pump, PUMP_CLIENT, bytes, len) < 0)
        tunnel_cut(relay);
}

static void tunnel_on_browser_end(void *data, const struct aq_error *err)
{
    struct relay *relay = data;

    (void)err;
    tunnel_finish(relay, relay->manager);
}

static void tunnel_on_browser_drain(void *data)
{
    tunnel_on_drained(data, PUMP_CLIENT);
}

static void tunnel_on_gone(struct request *req, void *data)
{
    (void)req;
    tunnel_cut(data);
}

/* ---- the manager's ---- */

static void tunnel_on_manager_read(void *data, const char *bytes, size_t len)
{
    struct relay *relay = data;

    relay->web->counts.bytes_out += len;
    tunnel_frame_follow(&relay->frame, bytes, len);
    if (pump_give(&relay->pump, PUMP_KERNEL, bytes, len) < 0)
        tunnel_cut(relay);
}

static void tunnel_on_manager_end(void *data, const struct aq_error *err)
{
    struct relay *relay = data;

    (void)err;
    if (relay->frame.is_close)
        tunnel_finish(relay, relay->browser);
    else
        tunnel_close(relay, WEBSOCKET_GOING_AWAY, "the manager is away");
}

static void tunnel_on_manager_drain(void *data)
{
    tunnel_on_drained(data, PUMP_KERNEL);
}

void tunnel_begin(struct relay *relay, const struct message_head *head)
{
    static const struct stream_ops browser_ops = { .on_read = tunnel_on_browser_read,
                                                   .on_end = tunnel_on_browser_end,
                                                   .on_drain = tunnel_on_browser_drain };
    static const struct stream_ops manager_ops = { .on_read = tunnel_on_manager_read,
                                                   .on_end = tunnel_on_manager_end,
                                                   .on_drain = tunnel_on_manager_drain };
    static const char *const names[] = { "Sec-WebSocket-Accept", "Sec-WebSocket-Protocol",
                                         "Sec-WebSocket-Extensions" };

    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        const char *value = message_get_header(head, names[i]);

        if (value)
            request_add_header(relay->req, names[i], value);
    }
    relay->manager = exchange_upgrade(AQ_TAKE(relay->exchange), &manager_ops, relay);
    relay->browser = request_upgrade(relay->req, "websocket", &browser_ops, relay);
    if (!relay->browser) {
        tunnel_cut(relay);
        return;
    }
    relay->web->counts.upgrades++;
    request_set_gone(relay->req, tunnel_on_gone, relay);
    pump_done(&relay->pump);
    pump_init(&relay->pump);
    pump_join(&relay->pump, PUMP_CLIENT, &stream_pump, relay->browser);
    pump_join(&relay->pump, PUMP_KERNEL, &stream_pump, relay->manager);
    (void)pump_open(&relay->pump, PUMP_CLIENT);
    (void)pump_open(&relay->pump, PUMP_KERNEL);
}
