/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket connections (RFC 6455), server and client. */
#include "http/websocket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "http/defer.h"
#include "http/websocket_frames.h"
#include "http/websocket_handshake.h"

#define MESSAGE_MAX ((size_t)1 << 20)
#define QUEUE_MAX ((size_t)8 << 20)
#define PONG_QUEUE_MAX ((size_t)64 << 10) /* a peer that does not read more than this gets none */
#define PING_MSEC 30000
#define CLOSE_MSEC 5000 /* the peer has to answer our close, and then to hang up */

struct websocket {
    uv_loop_t *loop;
    struct stream *stream;       /* NULL before and after */
    struct request *req;         /* server */
    struct exchange *ex;         /* client, while it asks for the upgrade */
    char key[WEBSOCKET_KEY_MAX]; /* client: what it sent */
    struct websocket_frames frames;
    const struct websocket_ops *ops;
    void *data;
    struct websocket_options options;
    struct defer *timer;
    bool heard;         /* bytes came since the timer was set */
    bool pinged;        /* and nothing came back */
    bool closing;       /* our close is queued */
    bool over;          /* on_close() was called or is not wanted */
    bool running, dead; /* inside websocket_on_read(); free when it returns */
};

/* ---- ending ---- */

static void websocket_release(struct websocket *ws)
{
    struct request *req = ws->req;

    if (ws->running) {
        ws->dead = true;
        return;
    }
    defer_cancel(ws->timer);
    if (req) {
        request_set_gone(req, NULL, NULL);
        request_end(req); /* closes the stream */
    } else
        stream_close(ws->stream);
    if (ws->ex)
        exchange_cancel(ws->ex);
    websocket_frames_done(&ws->frames);
    free(ws);
}

static void websocket_on_lingered(void *data)
{
    struct websocket *ws = data;

    ws->timer = NULL;
    websocket_release(ws);
}

/* Tell the owner, once; then let the peer read our last words. */
static void websocket_finish(struct websocket *ws, uint16_t code, const struct aq_error *err,
                             bool linger)
{
    if (ws->over)
        return;
    ws->over = true;
    defer_cancel(ws->timer);
    ws->timer = NULL;
    ws->ops->on_close(ws, code, err, ws->data);
    if (linger && ws->stream) {
        stream_shutdown(ws->stream);
        stream_resume(ws->stream);
        ws->timer = defer_call(ws->loop, CLOSE_MSEC, websocket_on_lingered, ws);
    } else {
        websocket_release(ws);
    }
}

static void websocket_fail(struct websocket *ws, int code, const char *text)
{
    struct aq_error err = { .code = 0 };

    (void)aq_fail(&err, code, "%s", text);
    websocket_finish(ws, WEBSOCKET_ABNORMAL, &err, false);
}

void websocket_abort(struct websocket *ws)
{
    if (!ws || ws->over)
        return;
    ws->over = true;
    websocket_release(ws);
}

/* ---- sending ---- */

size_t websocket_get_queued(const struct websocket *ws)
{
    return ws->stream ? stream_queued(ws->stream) : 0;
}

/* Bring the frames to the stream, and a pong if there is room for it. 0 or -EPIPE. */
static int websocket_flush(struct websocket *ws)
{
    struct strbuf *out = &ws->frames.out;
    int r = -EPIPE;

    if (websocket_get_queued(ws) < PONG_QUEUE_MAX)
        websocket_frames_add_pong(&ws->frames);
    if (ws->stream)
        r = stream_write(ws->stream, out->data, out->len);
    strbuf_clear(out);
    return r;
}

int websocket_send(struct websocket *ws, bool is_text, const void *bytes, size_t len)
{
    size_t queued = websocket_get_queued(ws);

    if (!ws->stream || ws->over || ws->closing)
        return -EPIPE;
    if (queued && queued + len > ws->options.queue_max)
        return -ENOBUFS;
    websocket_frames_add(&ws->frames, is_text ? WEBSOCKET_TEXT : WEBSOCKET_BINARY, bytes, len);
    return websocket_flush(ws);
}

static int websocket_put(struct websocket *ws, bool is_text, const char *bytes, size_t len)
{
    int r = websocket_send(ws, is_text, bytes, len);

    return r < 0 ? r : websocket_get_queued(ws) > PUMP_QUEUE_HIGH;
}

static int websocket_put_binary(void *end, const char *bytes, size_t len)
{
    return websocket_put(end, false, bytes, len);
}

static int websocket_put_text(void *end, const char *bytes, size_t len)
{
    return websocket_put(end, true, bytes, len);
}

static void websocket_hold(void *end, bool is_paused)
{
    if (is_paused)
        websocket_pause(end);
    else
        websocket_resume(end);
}

const struct pump_ops websocket_pump_binary = { .put = websocket_put_binary,
                                                .pause = websocket_hold };
const struct pump_ops websocket_pump_text = { .put = websocket_put_text, .pause = websocket_hold };

/* ---- time ---- */

static void websocket_on_timer(void *data);

static void websocket_set_timer(struct websocket *ws)
{
    unsigned closing_msec = ws->stream ? CLOSE_MSEC : 0; /* nobody to say goodbye to */

    ws->heard = false;
    ws->timer = defer_call(ws->loop, ws->closing ? closing_msec : ws->options.ping_msec,
                           websocket_on_timer, ws);
}

static void websocket_on_timer(void *data)
{
    struct websocket *ws = data;

    ws->timer = NULL;
    if (!ws->closing && ws->stream && stream_is_paused(ws->stream))
        ws->heard = true; /* for what we know: its owner does not listen */
    if (ws->closing || (ws->pinged && !ws->heard)) {
        websocket_fail(ws, ETIMEDOUT, "the peer has fallen silent");
        return;
    }
    ws->pinged = !ws->heard;
    websocket_set_timer(ws);
    if (ws->pinged) {
        websocket_frames_add(&ws->frames, WEBSOCKET_PING, NULL, 0);
        (void)websocket_flush(ws);
    }
}

void websocket_close(struct websocket *ws, uint16_t code, const char *reason)
{
    if (ws->over || ws->closing)
        return;
    ws->closing = true;
    if (ws->stream) {
        websocket_frames_close(&ws->frames, code, reason);
        (void)websocket_flush(ws);
        stream_resume(ws->stream); /* to see the peer's close */
    }
    defer_cancel(ws->timer);
    websocket_set_timer(ws);
}

/* ---- receiving ---- */

/* Hand over the messages in bytes[len], until the owner has enough. Returns how many bytes
 * they were.
 */
static size_t websocket_take_messages(struct websocket *ws, const char *bytes, size_t len)
{
    struct websocket_message message;
    size_t used = 0;

    while (used < len && !ws->over && !(ws->stream && stream_is_paused(ws->stream))) {
        used += websocket_frames_read(&ws->frames, bytes + used, len - used, &message);
        if (message.bytes)
            ws->ops->on_message(ws, message.is_text, message.bytes, message.len, ws->data);
    }
    return used;
}

/* Both have closed; the text of what is no error is what the peer said. */
static void websocket_finish_in_order(struct websocket *ws)
{
    struct aq_error said = { .code = 0 };
    size_t len;
    const char *reason = websocket_frames_get_reason(&ws->frames, &len);

    (void)snprintf(said.text, sizeof(said.text), "%.*s", (int)len, reason);
    websocket_finish(ws, websocket_frames_get_code(&ws->frames), &said, true);
}

static void websocket_on_read(void *data, const char *bytes, size_t len)
{
    struct websocket *ws = data;
    size_t used;

    if (ws->over) /* lingering */
        return;
    ws->heard = true;
    ws->pinged = false;
    ws->running = true;
    used = websocket_take_messages(ws, bytes, len);
    if (!ws->over)
        (void)websocket_flush(ws);
    ws->running = false;
    if (ws->dead)
        websocket_release(ws);
    else if (websocket_frames_is_over(&ws->frames))
        websocket_finish_in_order(ws);
    else if (used < len)
        stream_push_back(ws->stream, bytes + used, len - used);
}

static void websocket_on_end(void *data, const struct aq_error *err)
{
    struct websocket *ws = data;

    if (ws->over)
        websocket_release(ws);
    else if (err->code)
        websocket_finish(ws, WEBSOCKET_ABNORMAL, err, false);
    else
        websocket_fail(ws, ECONNRESET, "the peer hung up without closing the WebSocket");
}

static void websocket_on_drain(void *data)
{
    struct websocket *ws = data;

    if (ws->over)
        return;
    (void)websocket_flush(ws);
    if (ws->ops->on_drain)
        ws->ops->on_drain(ws, ws->data);
}

static const struct stream_ops stream_ops = {
    .on_read = websocket_on_read,
    .on_end = websocket_on_end,
    .on_drain = websocket_on_drain,
};

void websocket_pause(struct websocket *ws)
{
    if (ws->stream && !ws->over)
        stream_pause(ws->stream);
}

void websocket_resume(struct websocket *ws)
{
    if (ws->stream && !ws->over)
        stream_resume(ws->stream);
}

/* ---- beginning ---- */

static struct websocket *websocket_make(uv_loop_t *loop, bool is_server,
                                        const struct websocket_options *options,
                                        const struct websocket_ops *ops, void *data)
{
    struct websocket *ws = aq_alloc(sizeof(*ws));

    ws->loop = loop;
    ws->ops = ops;
    ws->data = data;
    ws->options = *options;
    if (!ws->options.message_max)
        ws->options.message_max = MESSAGE_MAX;
    if (!ws->options.queue_max)
        ws->options.queue_max = QUEUE_MAX;
    if (!ws->options.ping_msec)
        ws->options.ping_msec = PING_MSEC;
    websocket_frames_init(&ws->frames, is_server, ws->options.message_max);
    return ws;
}

struct websocket *websocket_new(uv_loop_t *loop, struct stream *stream, bool is_server,
                                const struct websocket_options *options,
                                const struct websocket_ops *ops, void *data)
{
    struct websocket *ws = websocket_make(loop, is_server, options, ops, data);

    ws->stream = stream;
    stream_set_ops(stream, &stream_ops, ws);
    websocket_set_timer(ws);
    return ws;
}

/* The server has closed the stream. */
static void websocket_on_gone(struct request *req, void *data)
{
    struct websocket *ws = data;

    (void)req;
    ws->stream = NULL;
    if (ws->over)
        websocket_release(ws);
    else
        websocket_fail(ws, ECONNRESET, "the connection was closed");
}

static int websocket_answer(struct request *req, const struct websocket_options *options,
                            struct aq_error *err)
{
    const struct message_head *head = request_get_head(req);
    char accept[WEBSOCKET_ACCEPT_MAX];
    int r;

    r = websocket_check_request(head, err);
    if (r < 0) {
        request_add_header(req, "Sec-WebSocket-Version", "13");
        return r;
    }
    r = websocket_answer_key(message_get_header(head, "Sec-WebSocket-Key"), accept, err);
    if (r < 0)
        return r;
    request_add_header(req, "Sec-WebSocket-Accept", accept);
    if (options->protocol && message_has_token(head, "Sec-WebSocket-Protocol", options->protocol))
        request_add_header(req, "Sec-WebSocket-Protocol", options->protocol);
    return 0;
}

int websocket_accept(struct request *req, const struct websocket_options *options,
                     const struct websocket_ops *ops, void *data, struct websocket **ret,
                     struct aq_error *err)
{
    struct websocket *ws;
    int r;

    if (request_is_gone(req))
        return aq_fail(err, EPIPE, "the client has gone");
    r = websocket_answer(req, options, err);
    if (r < 0)
        return r;
    ws = websocket_make(request_get_loop(req), true, options, ops, data);
    ws->stream = request_upgrade(req, "websocket", &stream_ops, ws);
    ws->req = req;
    request_set_gone(req, websocket_on_gone, ws);
    websocket_set_timer(ws);
    *ret = ws;
    return 0;
}

/* ---- asking for it ---- */

static void websocket_on_answer(struct exchange *ex, const struct message_head *head, void *data)
{
    struct websocket *ws = data;
    struct aq_error err = { .code = 0 };

    if (websocket_check_response(head, ws->key, &err) < 0) {
        ws->ex = NULL;
        exchange_cancel(ex);
        websocket_finish(ws, WEBSOCKET_ABNORMAL, &err, false);
        return;
    }
    ws->ex = NULL;
    ws->stream = exchange_upgrade(ex, &stream_ops, ws);
    defer_cancel(ws->timer);
    websocket_set_timer(ws);
    if (ws->ops->on_open)
        ws->ops->on_open(ws, ws->data);
}

static void websocket_on_no_answer(struct exchange *ex, const struct aq_error *err, void *data)
{
    struct websocket *ws = data;

    (void)ex;
    ws->ex = NULL;
    websocket_finish(ws, WEBSOCKET_ABNORMAL, err, false);
}

static const struct exchange_ops exchange_ops = {
    .on_head = websocket_on_answer,
    .on_end = websocket_on_no_answer,
};

int websocket_connect(struct client *client, const struct client_request *request,
                      const struct websocket_options *options, const struct websocket_ops *ops,
                      void *data, struct websocket **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT;
    struct client_request upgrade = *request;
    struct websocket *ws = websocket_make(client_get_loop(client), false, options, ops, data);
    int r = websocket_make_key(ws->key, err);

    strbuf_addf(&headers,
                "%sConnection: Upgrade\r\nUpgrade: websocket\r\n"
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n",
                request->headers ? request->headers : "", ws->key);
    if (options->protocol)
        strbuf_addf(&headers, "Sec-WebSocket-Protocol: %s\r\n", options->protocol);
    upgrade.method = METHOD_GET;
    upgrade.headers = headers.data;
    if (r == 0)
        r = client_send(client, &upgrade, &exchange_ops, ws, &ws->ex, err);
    if (r < 0) {
        websocket_release(ws);
        return r;
    }
    *ret = ws;
    return 0;
}
