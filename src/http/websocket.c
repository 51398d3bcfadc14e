#include "http/websocket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <wslay/wslay.h>

#include "http/defer.h"
#include "http/websocket_handshake.h"

#define MESSAGE_MAX ((size_t)1 << 20)
#define QUEUE_MAX ((size_t)8 << 20)
#define PING_MSEC 30000
#define CLOSE_MSEC 5000  /* the peer has to answer our close, and then to hang up */

struct websocket {
    uv_loop_t *loop;
    struct stream *stream;      /* NULL before and after */
    struct request *req;        /* server */
    struct exchange *ex;        /* client, while it asks for the upgrade */
    char key[WEBSOCKET_KEY_MAX]; /* client: what it sent */
    wslay_event_context_ptr ctx;
    const struct websocket_ops *ops;
    void *data;
    struct websocket_options options;
    const char *in;             /* what wslay has yet to read */
    size_t in_len;
    struct strbuf out;          /* what wslay has written */
    struct defer *timer;
    bool heard;                 /* bytes came since the timer was set */
    bool pinged;                /* and nothing came back */
    bool closing;               /* our close is queued */
    bool over;                  /* on_close() was called or is not wanted */
    bool running, dead;         /* inside wslay or a callback; free when it returns */
};

/* ---- wslay's side ---- */

static ssize_t on_recv(wslay_event_context_ptr ctx, uint8_t *buf, size_t len, int flags,
                       void *data)
{
    struct websocket *ws = data;
    size_t n = AQ_MIN(len, ws->in_len);

    (void)flags;
    if (!n || ws->over || (ws->stream && stream_is_paused(ws->stream))) {
        wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    memcpy(buf, ws->in, n);
    ws->in += n;
    ws->in_len -= n;
    return (ssize_t)n;
}

static ssize_t on_send(wslay_event_context_ptr ctx, const uint8_t *bytes, size_t len, int flags,
                       void *data)
{
    struct websocket *ws = data;

    (void)flags;
    strbuf_add(&ws->out, bytes, len);
    if (strbuf_ok(&ws->out))
        return (ssize_t)len;
    wslay_event_set_error(ctx, WSLAY_ERR_CALLBACK_FAILURE);
    return -1;
}

static int on_genmask(wslay_event_context_ptr ctx, uint8_t *buf, size_t len, void *data)
{
    (void)data;
    if (getrandom(buf, len, 0) == (ssize_t)len)
        return 0;
    wslay_event_set_error(ctx, WSLAY_ERR_CALLBACK_FAILURE);
    return -1;
}

static void on_message(wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *msg,
                       void *data)
{
    struct websocket *ws = data;

    (void)ctx;
    if (!ws->over && !wslay_is_ctrl_frame(msg->opcode))
        ws->ops->on_message(ws, msg->opcode == WSLAY_TEXT_FRAME, (const char *)msg->msg,
                            msg->msg_length, ws->data);
}

static const struct wslay_event_callbacks callbacks = {
    .recv_callback = on_recv,
    .send_callback = on_send,
    .genmask_callback = on_genmask,
    .on_msg_recv_callback = on_message,
};

/* ---- ending ---- */

static void free_websocket(struct websocket *ws)
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
    if (ws->ctx)
        wslay_event_context_free(ws->ctx);
    strbuf_done(&ws->out);
    free(ws);
}

static void on_lingered(void *data)
{
    struct websocket *ws = data;

    ws->timer = NULL;
    free_websocket(ws);
}

/* Tell the owner, once; then let the peer read our last words. */
static void finish(struct websocket *ws, uint16_t code, const struct aq_error *err, bool linger)
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
        ws->timer = defer_call(ws->loop, CLOSE_MSEC, on_lingered, ws);
    }
    if (!ws->timer)
        free_websocket(ws);
}

static void fail(struct websocket *ws, int code, const char *text)
{
    struct aq_error err = { .code = 0 };

    (void)aq_fail(&err, code, "%s", text);
    finish(ws, WEBSOCKET_ABNORMAL, &err, false);
}

void websocket_abort(struct websocket *ws)
{
    if (!ws || ws->over)
        return;
    ws->over = true;
    free_websocket(ws);
}

/* ---- sending ---- */

/* Bring what wslay has queued to the stream. 0, -ENOMEM or -EPIPE. */
static int flush(struct websocket *ws)
{
    int r;

    if (wslay_event_send(ws->ctx) < 0)
        return -ENOMEM;
    r = ws->stream ? stream_write(ws->stream, ws->out.data, ws->out.len) : -EPIPE;
    strbuf_clear(&ws->out);
    return r;
}

size_t websocket_get_queued(const struct websocket *ws)
{
    return ws->stream ? stream_queued(ws->stream) : 0;
}

int websocket_send(struct websocket *ws, bool is_text, const void *bytes, size_t len)
{
    struct wslay_event_msg msg = {
        .opcode = is_text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME,
        .msg = bytes,
        .msg_length = len,
    };
    size_t queued = websocket_get_queued(ws);
    int r;

    if (!ws->stream || ws->over || ws->closing)
        return -EPIPE;
    if (queued && queued + len > ws->options.queue_max)
        return -ENOBUFS;
    r = wslay_event_queue_msg(ws->ctx, &msg);
    if (r < 0)
        return r == WSLAY_ERR_NO_MORE_MSG ? -EPIPE : -ENOMEM;
    return flush(ws);
}

/* ---- time ---- */

static void on_timer(void *data);

static void set_timer(struct websocket *ws)
{
    unsigned closing_msec = ws->stream ? CLOSE_MSEC : 0; /* nobody to say goodbye to */

    ws->heard = false;
    ws->timer = defer_call(ws->loop, ws->closing ? closing_msec : ws->options.ping_msec, on_timer,
                           ws);
}

static void on_timer(void *data)
{
    struct websocket *ws = data;
    struct wslay_event_msg ping = { .opcode = WSLAY_PING };

    ws->timer = NULL;
    if (ws->closing || (ws->pinged && !ws->heard)) {
        fail(ws, ETIMEDOUT, "the peer has fallen silent");
        return;
    }
    ws->pinged = !ws->heard;
    set_timer(ws);
    if (ws->pinged && wslay_event_queue_msg(ws->ctx, &ping) == 0)
        (void)flush(ws);
}

void websocket_close(struct websocket *ws, uint16_t code, const char *reason)
{
    size_t len = reason ? strlen(reason) : 0;

    if (ws->over || ws->closing)
        return;
    ws->closing = true;
    if (ws->stream) {
        (void)wslay_event_queue_close(ws->ctx, code, (const uint8_t *)reason, AQ_MIN(len, 122));
        (void)flush(ws);
        stream_resume(ws->stream); /* to see the peer's close */
    }
    defer_cancel(ws->timer);
    set_timer(ws);
}

/* ---- receiving ---- */

/* How it ended: by the peer's close, or ours for what the peer did wrong. */
static uint16_t end_code(const struct websocket *ws)
{
    return wslay_event_get_close_received(ws->ctx) ? wslay_event_get_status_code_received(ws->ctx)
                                                   : wslay_event_get_status_code_sent(ws->ctx);
}

static void on_read(void *data, const char *bytes, size_t len)
{
    struct websocket *ws = data;
    int r;

    if (ws->over) /* lingering */
        return;
    ws->heard = true;
    ws->pinged = false;
    ws->in = bytes;
    ws->in_len = len;
    ws->running = true;
    r = wslay_event_recv(ws->ctx);
    if (r == 0 && !ws->over)
        r = flush(ws) == -ENOMEM ? WSLAY_ERR_NOMEM : 0;
    ws->running = false;
    if (ws->dead) {
        free_websocket(ws);
        return;
    }
    if (r < 0)
        fail(ws, EPROTO, "the WebSocket connection failed");
    else if (!wslay_event_want_read(ws->ctx) && !wslay_event_want_write(ws->ctx))
        finish(ws, end_code(ws), &(struct aq_error){ .code = 0 }, true);
    else if (ws->in_len)
        (void)stream_push_back(ws->stream, ws->in, ws->in_len);
}

static void on_end(void *data, const struct aq_error *err)
{
    struct websocket *ws = data;

    if (ws->over)
        free_websocket(ws);
    else if (err->code)
        finish(ws, WEBSOCKET_ABNORMAL, err, false);
    else
        fail(ws, ECONNRESET, "the peer hung up without closing the WebSocket");
}

static void on_drain(void *data)
{
    struct websocket *ws = data;

    if (!ws->over && ws->ops->on_drain)
        ws->ops->on_drain(ws, ws->data);
}

static const struct stream_ops stream_ops = {
    .on_read = on_read,
    .on_end = on_end,
    .on_drain = on_drain,
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

static int make(uv_loop_t *loop, bool is_server, const struct websocket_options *options,
                const struct websocket_ops *ops, void *data, struct websocket **ret,
                struct aq_error *err)
{
    struct websocket *ws = calloc(1, sizeof(*ws));
    int r;

    if (!ws)
        return aq_fail(err, ENOMEM, "no memory for a WebSocket");
    r = is_server ? wslay_event_context_server_init(&ws->ctx, &callbacks, ws)
                  : wslay_event_context_client_init(&ws->ctx, &callbacks, ws);
    if (r < 0) {
        free(ws);
        return aq_fail(err, ENOMEM, "no memory for a WebSocket");
    }
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
    wslay_event_config_set_max_recv_msg_length(ws->ctx, ws->options.message_max);
    strbuf_init(&ws->out);
    *ret = ws;
    return 0;
}

int websocket_new(uv_loop_t *loop, struct stream *stream, bool is_server,
                  const struct websocket_options *options, const struct websocket_ops *ops,
                  void *data, struct websocket **ret, struct aq_error *err)
{
    struct websocket *ws = NULL;
    int r = make(loop, is_server, options, ops, data, &ws, err);

    if (r < 0)
        return r;
    ws->stream = stream;
    stream_set_ops(stream, &stream_ops, ws);
    set_timer(ws);
    *ret = ws;
    return 0;
}

/* The server has closed the stream. */
static void on_gone(struct request *req, void *data)
{
    struct websocket *ws = data;

    (void)req;
    ws->stream = NULL;
    if (ws->over)
        free_websocket(ws);
    else
        fail(ws, ECONNRESET, "the connection was closed");
}

static int answer(struct request *req, const struct websocket_options *options,
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
    struct websocket *ws = NULL;
    int r;

    if (request_is_gone(req))
        return aq_fail(err, EPIPE, "the client has gone");
    r = answer(req, options, err);
    if (r == 0)
        r = make(request_get_loop(req), true, options, ops, data, &ws, err);
    if (r < 0)
        return r;
    ws->stream = request_upgrade(req, "websocket", &stream_ops, ws);
    ws->req = req;
    request_set_gone(req, on_gone, ws);
    set_timer(ws);
    *ret = ws;
    return 0;
}

/* ---- asking for it ---- */

static void on_answer(struct exchange *ex, const struct message_head *head, void *data)
{
    struct websocket *ws = data;
    struct aq_error err = { .code = 0 };

    if (websocket_check_response(head, ws->key, &err) < 0) {
        ws->ex = NULL;
        exchange_cancel(ex);
        finish(ws, WEBSOCKET_ABNORMAL, &err, false);
        return;
    }
    ws->ex = NULL;
    ws->stream = exchange_upgrade(ex, &stream_ops, ws);
    defer_cancel(ws->timer);
    set_timer(ws);
    if (ws->ops->on_open)
        ws->ops->on_open(ws, ws->data);
}

static void on_no_answer(struct exchange *ex, const struct aq_error *err, void *data)
{
    struct websocket *ws = data;

    (void)ex;
    ws->ex = NULL;
    finish(ws, WEBSOCKET_ABNORMAL, err, false);
}

static const struct exchange_ops exchange_ops = {
    .on_head = on_answer,
    .on_end = on_no_answer,
};

int websocket_connect(struct client *client, const struct client_request *request,
                      const struct websocket_options *options, const struct websocket_ops *ops,
                      void *data, struct websocket **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT;
    struct client_request upgrade = *request;
    struct websocket *ws = NULL;
    int r;

    r = make(client_get_loop(client), false, options, ops, data, &ws, err);
    if (r < 0)
        return r;
    r = websocket_make_key(ws->key, err);
    strbuf_addf(&headers,
                "%sConnection: Upgrade\r\nUpgrade: websocket\r\n"
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n",
                request->headers ? request->headers : "", ws->key);
    if (options->protocol)
        strbuf_addf(&headers, "Sec-WebSocket-Protocol: %s\r\n", options->protocol);
    upgrade.method = METHOD_GET;
    upgrade.headers = headers.data;
    if (r == 0)
        r = strbuf_ok(&headers) ? client_send(client, &upgrade, &exchange_ops, ws, &ws->ex, err)
                                : aq_fail(err, ENOMEM, "no memory for a WebSocket");
    if (r < 0) {
        free_websocket(ws);
        return r;
    }
    *ret = ws;
    return 0;
}
