/* SPDX-License-Identifier: Apache-2.0 */
/* A client's connections: sends requests, reads answers, tries again on a fresh one. */
#include "http/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "http/client_internal.h"

#define IDLE_MSEC 20000
#define CONNECT_MSEC 10000

static void client_wire_free(struct wire *wire)
{
    if (wire->running) {
        wire->dead = true;
        return;
    }
    message_parser_free(wire->parser);
    free(wire);
}

void wire_close(struct wire *wire)
{
    if (wire->exchange)
        wire->exchange->wire = NULL;
    wire->exchange = NULL;
    defer_cancel(wire->idle);
    wire->idle = NULL;
    list_remove(&wire->link);
    wire->pool->count--;
    wire->pool->connecting -= !wire->is_open;
    stream_close(wire->stream);
    wire->stream = NULL;
    client_wire_free(wire);
}

static void client_wire_on_idle(void *data)
{
    struct wire *wire = data;

    wire->idle = NULL;
    wire_close(wire);
}

/* The exchange has its whole answer: the wire is free for another. */
static void wire_release(struct wire *wire)
{
    struct client_pool *pool = wire->pool;
    unsigned msec = pool->client->options.idle_msec;

    wire->exchange = NULL;
    list_remove(&wire->link);
    list_add(pool->wires.next, &wire->link); /* to the front */
    wire->idle = defer_call(pool->client->loop, msec ? msec : IDLE_MSEC, client_wire_on_idle, wire);
}

/* ---- the answer ---- */

static void client_wire_on_answer_late(void *data)
{
    struct exchange *ex = data;
    struct aq_error err = { .code = 0 };

    ex->timer = NULL;
    (void)aq_fail(&err, ETIMEDOUT, "the server did not answer in time");
    wire_close(ex->wire);
    exchange_fail(ex, false, &err);
}

static void client_wire_await_answer(struct exchange *ex)
{
    if (ex->answer_msec && ex->finished && !ex->timer)
        ex->timer = defer_call(ex->client->loop, ex->answer_msec, client_wire_on_answer_late, ex);
}

static void client_wire_on_head(struct wire *wire, struct exchange *ex)
{
    const struct message_head *head = message_get_head(wire->parser);

    if (head->status == 100 && ex->ops->on_continue)
        ex->ops->on_continue(ex, ex->data);
    if (head->status < 200 && head->status != 101)
        return;
    defer_cancel(ex->timer);
    ex->timer = NULL;
    if (ex->method == METHOD_HEAD)
        message_skip_body(wire->parser);
    else if (ex->body_max)
        message_set_body_max(wire->parser, ex->body_max);
    exchange_note_outcome(ex, head->status);
    if (ex->ops->on_head)
        ex->ops->on_head(ex, head, ex->data);
}

/* The answer is complete. The parser stays with the exchange until its owner
 * was told, so that the head can still be read then.
 */
static void client_wire_on_message_end(struct wire *wire, struct exchange *ex, bool clean)
{
    const struct message_head *head = message_get_head(wire->parser);
    struct client *client = ex->client;
    struct client_pool *pool = wire->pool;
    struct message_parser *parser = wire->parser;
    struct aq_error none = { .code = 0 };

    if (head->status < 200 && head->status != 101) {
        message_reset(parser); /* 100 Continue and the like: the answer follows */
        return;
    }
    if (head->status == 101) {
        (void)aq_fail(&none, EPROTO, "the server changed the protocol without being asked");
        clean = false;
    }
    wire->parser = NULL;
    ex->wire = NULL;
    wire->exchange = NULL;
    if (clean && head->keep_alive && !head->until_close && ex->finished)
        wire_release(wire);
    else
        wire_close(wire);
    exchange_end(ex, &none);
    message_reset(parser);
    if (client->spare)
        message_parser_free(parser);
    else
        client->spare = parser;
    pool_serve(pool);
}

static void client_wire_fail(struct wire *wire, const struct aq_error *err)
{
    struct exchange *ex = wire->exchange;
    bool reused = wire->reused && wire->is_open;

    wire_close(wire);
    if (ex)
        exchange_fail(ex, reused, err);
}

/* One step of the parser; false if it waits for more or the wire is gone. */
static bool client_wire_step(struct wire *wire, const char **bytes, size_t *len)
{
    struct exchange *ex = wire->exchange;
    struct message_piece piece;
    struct aq_error err = { .code = 0 };
    ssize_t used = message_feed(wire->parser, *bytes, *len, &piece, &err);

    if (used < 0) {
        *len = 0;
        (void)aq_error_wrap(&err, "the server's answer cannot be understood");
        client_wire_fail(wire, &err);
        return false;
    }
    *bytes += used;
    *len -= (size_t)used;
    if (piece.event == MESSAGE_HEAD)
        client_wire_on_head(wire, ex);
    else if (piece.event == MESSAGE_BODY && ex->ops->on_body)
        ex->ops->on_body(ex, piece.bytes, piece.len, ex->data);
    else if (piece.event == MESSAGE_END)
        client_wire_on_message_end(wire, ex, !*len);
    return piece.event != MESSAGE_MORE;
}

static void client_wire_on_read(void *data, const char *bytes, size_t len)
{
    struct wire *wire = data;

    if (!wire->exchange) {
        /* An idle server has nothing to say; 408 before it closes, at most. */
        wire_close(wire);
        return;
    }
    wire->exchange->answered = true;
    wire->running = true;
    while (wire->exchange && !stream_is_paused(wire->stream)
           && client_wire_step(wire, &bytes, &len))
        continue;
    wire->running = false;
    if (wire->taken)
        stream_push_back(wire->taken, bytes, len);
    else if (wire->stream && wire->exchange && len)
        stream_push_back(wire->stream, bytes, len);
    if (wire->dead)
        client_wire_free(wire);
}

static void client_wire_on_end(void *data, const struct aq_error *err)
{
    struct wire *wire = data;
    struct exchange *ex = wire->exchange;
    struct aq_error why = *err;

    if (ex && ex->answered && !why.code && message_get_head(wire->parser)->until_close
        && message_finish(wire->parser, &why) == 0) {
        client_wire_on_message_end(wire, ex, false);
        return;
    }
    if (!why.code)
        (void)aq_fail(&why, ECONNRESET,
                      ex && ex->answered
                          ? "the server closed the connection in the middle of its answer"
                          : "the server closed the connection without an answer");
    client_wire_fail(wire, &why);
}

/* ---- the request ---- */

static void client_wire_send_request(struct wire *wire)
{
    struct exchange *ex = wire->exchange;

    ex->sent = true;
    (void)stream_write(wire->stream, ex->out.data,
                       ex->out.len); /* failure comes as client_wire_on_end() */
    if (ex->stream_body)
        strbuf_clear(&ex->out);
    client_wire_await_answer(ex);
}

static void client_wire_on_drain(void *data)
{
    struct wire *wire = data;
    struct exchange *ex = wire->exchange;

    if (ex && ex->stream_body && ex->ops->on_drain)
        ex->ops->on_drain(ex, ex->data);
}

/* Bytes that were written while the exchange waited for this wire may all be with the system at
 * once; then no drain of the stream follows. The wire may be taken inside a call of any owner.
 */
static void client_wire_on_taken(void *data)
{
    struct exchange *ex = data;

    ex->drain = NULL;
    if (ex->ops->on_drain && !exchange_get_queued(ex))
        ex->ops->on_drain(ex, ex->data);
}

static void client_wire_on_open(void *data)
{
    struct wire *wire = data;

    struct client_pool *pool = wire->pool;

    wire->is_open = true;
    pool->connecting--;
    client_wire_send_request(wire);
    if (!stream_queued(wire->stream))
        client_wire_on_drain(wire);
    pool_serve(pool);
}

static const struct stream_ops wire_ops = {
    .on_open = client_wire_on_open,
    .on_read = client_wire_on_read,
    .on_end = client_wire_on_end,
    .on_drain = client_wire_on_drain,
    .hears_out = true,
};

static void client_wire_give_parser(struct wire *wire)
{
    struct client *client = wire->pool->client;

    if (!wire->parser)
        wire->parser = AQ_TAKE(client->spare);
    if (!wire->parser)
        (void)message_parser_new(false, &client->options.limits, &wire->parser, NULL);
}

void wire_take(struct wire *wire, struct exchange *ex)
{
    client_wire_give_parser(wire);
    defer_cancel(wire->idle);
    wire->idle = NULL;
    list_remove(&wire->link);
    list_add(&wire->pool->wires, &wire->link); /* to the end */
    wire->reused = true;
    wire->exchange = ex;
    ex->wire = wire;
    stream_resume(wire->stream);
    client_wire_send_request(wire);
    if (ex->stream_body && !stream_queued(wire->stream))
        ex->drain = defer_call(ex->client->loop, 0, client_wire_on_taken, ex);
}

int wire_open(struct client_pool *pool, struct exchange *ex, struct aq_error *err)
{
    struct client *client = pool->client;
    unsigned msec = client->options.connect_msec;
    struct stream_options options = {
        .tls = pool->tls ? client->tls : NULL,
        .server_name = pool->server_name,
        .connect_msec = msec ? msec : CONNECT_MSEC,
        .may_reach = client->options.may_reach,
        .reach_data = client->options.reach_data,
    };
    struct wire *wire = aq_alloc(sizeof(*wire));
    int r;

    wire->pool = pool;
    client_wire_give_parser(wire);
    r = stream_connect(client->loop, &pool->address, &options, &wire_ops, wire, &wire->stream, err);
    if (r < 0) {
        client_wire_free(wire);
        return r;
    }
    list_add(&pool->wires, &wire->link);
    pool->count++;
    pool->connecting++;
    wire->exchange = ex;
    ex->wire = wire;
    return 0;
}

/* ---- what the owner does while it runs ---- */

/* Bytes of the request after its head. */
static int client_wire_write_more(struct exchange *ex, const uv_buf_t *bufs, unsigned count)
{
    if (ex->wire && ex->wire->is_open)
        return stream_writev(ex->wire->stream, bufs, count);
    for (unsigned i = 0; i < count; i++)
        strbuf_add(&ex->out, bufs[i].base, bufs[i].len);
    return 0;
}

int exchange_write(struct exchange *ex, const void *bytes, size_t len)
{
    char size[24];
    uv_buf_t bufs[3];

    if (!ex->stream_body || ex->finished)
        return -EPIPE;
    if (!len)
        return 0;
    bufs[1] = (uv_buf_t){ .base = (char *)(uintptr_t)bytes, .len = len };
    if (ex->is_sized)
        return client_wire_write_more(ex, bufs + 1, 1);
    bufs[0] = uv_buf_init(size, (unsigned)snprintf(size, sizeof(size), "%zx\r\n", len));
    bufs[2] = (uv_buf_t){ .base = size + bufs[0].len - 2, .len = 2 };
    return client_wire_write_more(ex, bufs, 3);
}

int exchange_finish(struct exchange *ex)
{
    char last[] = "0\r\n\r\n";
    uv_buf_t buf = uv_buf_init(last, ex->is_sized ? 0 : 5);

    if (!ex->stream_body || ex->finished)
        return -EPIPE;
    ex->finished = true;
    if (ex->wire && ex->wire->is_open)
        client_wire_await_answer(ex);
    return client_wire_write_more(ex, &buf, 1);
}

bool exchange_is_sent(const struct exchange *ex)
{
    return ex->sent;
}

size_t exchange_get_queued(const struct exchange *ex)
{
    return ex->wire && ex->wire->is_open ? stream_queued(ex->wire->stream) : ex->out.len;
}

void exchange_pause(struct exchange *ex)
{
    if (ex->wire)
        stream_pause(ex->wire->stream);
}

void exchange_resume(struct exchange *ex)
{
    if (ex->wire)
        stream_resume(ex->wire->stream);
}

static int exchange_put(void *end, const char *bytes, size_t len)
{
    int r = exchange_write(end, bytes, len);

    return r < 0 ? r : exchange_get_queued(end) > PUMP_QUEUE_HIGH;
}

static void exchange_hold(void *end, bool is_paused)
{
    if (is_paused)
        exchange_pause(end);
    else
        exchange_resume(end);
}

static void exchange_end_body(void *end)
{
    (void)exchange_finish(end);
}

const struct pump_ops exchange_pump = { .put = exchange_put,
                                        .pause = exchange_hold,
                                        .finish = exchange_end_body };

struct stream *exchange_upgrade(struct exchange *ex, const struct stream_ops *ops, void *data)
{
    struct wire *wire = ex->wire;
    struct stream *stream = wire->stream;

    wire->taken = AQ_TAKE(wire->stream);
    stream_set_ops(stream, ops, data);
    wire_close(wire);
    exchange_free(ex);
    return stream;
}
