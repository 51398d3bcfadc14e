/* SPDX-License-Identifier: Apache-2.0 */
/* What a handler answers: heads, whole bodies, and bodies in pieces. */
#include "http/server_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "http/problem.h"

/* What our work needs is away, the database say: when to ask again. */
#define AWAY_SEC 5

#define UNSENT_FREE 65536 /* bytes of an answer that is not counted */
#define JOIN_MAX 16384    /* a body up to this is sent in one piece with the head */

/* What every answer says; rebuilt each second. */
static void reply_add_common(struct server *server, struct strbuf *out)
{
    int64_t second = clock_realtime_usec() / USEC_PER_SEC;

    if (second != server->common_second) {
        char date[40] = "";
        time_t t = (time_t)second;
        struct tm tm;

        if (gmtime_r(&t, &tm))
            (void)strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
        server->common_len = (size_t)snprintf(server->common, sizeof(server->common),
                                              "Server: BackendAI\r\n"
                                              "Date: %s\r\n",
                                              date);
        server->common_second = second;
    }
    strbuf_add(out, server->common, server->common_len);
}

static void reply_add_status_line(struct strbuf *out, int status)
{
    if (status == 200) {
        strbuf_add(out, "HTTP/1.1 200 OK\r\n", 17);
        return;
    }
    strbuf_add(out, "HTTP/1.1 ", 9);
    strbuf_addi(out, status);
    strbuf_addc(out, ' ');
    strbuf_adds(out, status_text(status));
    strbuf_add(out, "\r\n", 2);
}

static void reply_add_length(struct strbuf *out, uint64_t len)
{
    strbuf_add(out, "Content-Length: ", 16);
    strbuf_addi(out, (int64_t)len);
    strbuf_add(out, "\r\n", 2);
}

/* Is there a body of which the end has not come? */
static bool reply_is_early(const struct request *req)
{
    const struct message_head *head = request_get_head(req);

    return !req->body_complete && (head->is_chunked || head->content_length);
}

/* May the connection serve another request? After an early answer only if the
 * rest of the body is surely sent, and is little: one that a handler reads as it comes
 * may last as long as it likes. A client that waits for "100 Continue" decides for itself
 * whether it still sends it.
 */
static bool reply_can_keep(const struct request *req)
{
    const struct message_head *head = request_get_head(req);

    if (!req->keep_alive || req->conn->server->stopping)
        return false;
    if (!reply_is_early(req))
        return true;
    return !req->begun && !req->on_body && !head->expect_continue
           && head->content_length <= CONNECTION_UNREAD_MAX;
}

/* The header for the connection, "" if what is usual holds. */
static const char *reply_connection_line(const struct message_head *head, bool keep_alive)
{
    if (!keep_alive)
        return "Connection: close\r\n";
    return head->is_http10 ? "Connection: keep-alive\r\n" : "";
}

/* Clients exist that give up sending a body once they have the answer, and then
 * use the connection again: the answer waits until the body is through.
 */
static bool reply_is_held(const struct request *req)
{
    return req->keep_alive && reply_is_early(req);
}

static void reply_add_head(struct request *req, int status, const char *content_type)
{
    struct strbuf *out = &req->conn->server->scratch;

    req->keep_alive = reply_can_keep(req);
    strbuf_clear(out);
    reply_add_status_line(out, status);
    reply_add_common(req->conn->server, out);
    if (content_type) {
        strbuf_adds(out, "Content-Type: ");
        strbuf_adds(out, content_type);
        strbuf_add(out, "\r\n", 2);
    }
    strbuf_add(out, req->headers.data, req->headers.len);
    if (!reply_is_held(req))
        strbuf_adds(out, reply_connection_line(request_get_head(req), req->keep_alive));
}

static bool reply_has_no_body(int status)
{
    return status < 200 || status == 204 || status == 304;
}

void request_add_header(struct request *req, const char *name, const char *value)
{
    for (const char *p = value; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return;
    strbuf_adds(&req->headers, name);
    strbuf_add(&req->headers, ": ", 2);
    strbuf_adds(&req->headers, value);
    strbuf_add(&req->headers, "\r\n", 2);
}

void request_add_header_int(struct request *req, const char *name, int64_t value)
{
    strbuf_adds(&req->headers, name);
    strbuf_add(&req->headers, ": ", 2);
    strbuf_addi(&req->headers, value);
    strbuf_add(&req->headers, "\r\n", 2);
}

void reply_continue(struct connection *conn)
{
    (void)stream_write(conn->stream, "HTTP/1.1 100 Continue\r\n\r\n", 25);
}

/* Send what is in the scratch buffer, then a large body. */
static void reply_send_answer(struct request *req, const void *body, size_t len)
{
    struct strbuf *head = &req->conn->server->scratch;
    uv_buf_t bufs[2];

    if (len <= JOIN_MAX) {
        strbuf_add(head, body, len);
        len = 0;
    }
    bufs[0] = uv_buf_init(head->data, (unsigned)head->len);
    bufs[1] = (uv_buf_t){ .base = (char *)(uintptr_t)body, .len = len };
    (void)stream_writev(req->conn->stream, bufs, len ? 2 : 1);
}

/* Keep what is in the scratch buffer, and the body, for reply_send_held(). */
static void reply_hold_answer(struct request *req, const void *body, size_t len)
{
    struct strbuf *held = &req->conn->held, *head = &req->conn->server->scratch;

    strbuf_add(held, head->data, head->len);
    strbuf_add(held, body, len);
}

void reply_send_held(struct connection *conn, bool keep_alive)
{
    struct strbuf *held = &conn->held;
    const char *line = reply_connection_line(message_get_head(conn->parser), keep_alive);
    const char *rest = held->len ? (const char *)memchr(held->data, '\n', held->len) + 1 : NULL;
    size_t first = rest ? (size_t)(rest - held->data) : 0;
    uv_buf_t bufs[3];

    if (!rest)
        return;
    bufs[0] = uv_buf_init(held->data, (unsigned)first);
    bufs[1] = uv_buf_init((char *)(uintptr_t)line, (unsigned)strlen(line));
    bufs[2] = uv_buf_init(held->data + first, (unsigned)(held->len - first));
    (void)stream_writev(conn->stream, bufs, 3);
    strbuf_done(held);
}

/* A second answer would be that of the connection's next request. */
static bool reply_is_first(const struct request *req)
{
    if (!req->conn->has_request)
        log_error("a handler answered a request twice; the second answer is dropped");
    return req->conn->has_request;
}

/* Nobody piles up answers by many connections, each with one that it does not read. */
static bool reply_has_room(const struct request *req, size_t len)
{
    return len <= UNSENT_FREE || quota_has_room(&req->conn->server->quota, req->client, len);
}

static void reply_refuse_room(struct request *req, size_t len)
{
    struct aq_error err;

    (void)aq_fail_kind(
        &err, EAGAIN, "rate-limit-exceeded",
        "the answer of %zu bytes is not sent, because you have not read earlier ones; "
        "read them first",
        len);
    request_fail(req, &err);
}

/* Count what is not with the client yet. */
static void reply_count_unsent(struct request *req)
{
    size_t unsent = stream_queued(req->conn->stream) + req->conn->held.len;

    if (unsent > UNSENT_FREE && quota_add_bytes(&req->conn->server->quota, req->client, unsent))
        req->unsent_bytes = unsent;
}

void request_reply(struct request *req, int status, const char *content_type, const void *body,
                   size_t len)
{
    struct connection *conn = req->conn;

    if (!reply_is_first(req))
        return;
    if (conn->stream && !reply_has_room(req, len)) {
        reply_refuse_room(req, len);
        return;
    }
    if (conn->stream) {
        reply_add_head(req, status, content_type);
        if (!reply_has_no_body(status))
            reply_add_length(&conn->server->scratch, len);
        strbuf_add(&conn->server->scratch, "\r\n", 2);
        if (req->method == METHOD_HEAD || reply_has_no_body(status))
            len = 0;
        if (reply_is_held(req))
            reply_hold_answer(req, body, len);
        else
            reply_send_answer(req, body, len);
        reply_count_unsent(req);
        AQ_FAULT("http.reply.sent");
    }
    connection_next(conn);
}

void request_reply_json(struct request *req, int status, const struct strbuf *json)
{
    request_reply(req, status, "application/json", json->data, json->len);
}

void request_reply_empty(struct request *req, int status)
{
    request_reply(req, status, NULL, NULL, 0);
}

/* A database that is away, has no room, or has just been taken over by another manager. */
static bool reply_may_succeed_later(const struct problem_type *type, const struct aq_error *err)
{
    if (strcmp(type->slug, "database-away") == 0)
        return true;
    return type->status == 503
           && (err->code == ENOSPC || err->code == EROFS || err->code == EOWNERDEAD);
}

void request_fail_data(struct request *req, const struct aq_error *err, const char *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const struct problem_type *type = problem_of(err);

    if (!reply_is_first(req))
        return;
    /* The log has what clients are not told, but not that they hung up before the answer. */
    if (type->status == 500 && !(err->code == EPIPE && !req->conn->stream))
        log_error("%s %s: %s", method_name(req->method), request_get_path(req), err->text);
    if (reply_may_succeed_later(type, err))
        request_add_header_int(req, "Retry-After", AWAY_SEC);
    problem_write(&text, err, data);
    request_reply(req, type->status, "application/problem+json", text.data, text.len);
}

void request_fail(struct request *req, const struct aq_error *err)
{
    request_fail_data(req, err, NULL);
}

/* ---- answers of unknown length ---- */

/* How the body follows, and the end of the head. */
static void reply_add_framing(const struct request *req, struct strbuf *out)
{
    if (req->chunked)
        strbuf_adds(out, "Transfer-Encoding: chunked\r\n");
    if (req->sized)
        reply_add_length(out, req->left);
    strbuf_add(out, "\r\n", 2);
}

static void reply_begin(struct request *req, int status, const char *content_type,
                        void (*on_drain)(struct request *req, void *data), void *data)
{
    struct connection *conn = req->conn;

    if (!reply_is_first(req))
        return;
    req->begun = true;
    req->on_drain = on_drain;
    req->drain_data = data;
    if (!conn->stream)
        return;
    req->keep_alive = req->keep_alive && (req->chunked || req->sized);
    reply_add_head(req, status, content_type);
    reply_add_framing(req, &conn->server->scratch);
    reply_send_answer(req, NULL, 0);
}

void request_begin(struct request *req, int status, const char *content_type,
                   void (*on_drain)(struct request *req, void *data), void *data)
{
    req->chunked = !request_get_head(req)->is_http10;
    reply_begin(req, status, content_type, on_drain, data);
}

void request_begin_sized(struct request *req, int status, const char *content_type, uint64_t length,
                         void (*on_drain)(struct request *req, void *data), void *data)
{
    req->sized = true;
    req->left = length;
    reply_begin(req, status, content_type, on_drain, data);
}

/* The client has bytes to take. */
static void reply_await_reader(struct connection *conn)
{
    if (!stream_queued(conn->stream) || conn->timer == TIMER_WRITE)
        return;
    conn->mark = stream_sent(conn->stream);
    server_set_timer(conn, TIMER_WRITE);
}

static void reply_add_line(struct strbuf *out, const struct message_header *header)
{
    strbuf_adds(out, header->name);
    strbuf_add(out, ": ", 2);
    strbuf_adds(out, header->value);
    strbuf_add(out, "\r\n", 2);
}

void request_begin_as(struct request *req, const struct message_head *head, const char *bytes,
                      size_t len, void (*on_drain)(struct request *req, void *data), void *data)
{
    struct strbuf *out = &req->conn->server->scratch;
    bool has_length = message_get_header(head, "Content-Length");

    if (!reply_is_first(req))
        return;
    req->begun = true;
    req->on_drain = on_drain;
    req->drain_data = data;
    req->sized = has_length && !reply_has_no_body(head->status);
    req->left = req->sized ? head->content_length : 0;
    req->chunked = !req->sized && !reply_has_no_body(head->status)
                   && !request_get_head(req)->is_http10;
    req->is_bodiless = reply_has_no_body(head->status);
    if (!req->conn->stream)
        return;
    req->keep_alive = req->keep_alive && (req->chunked || req->sized || req->is_bodiless)
                      && reply_can_keep(req);
    strbuf_clear(out);
    reply_add_status_line(out, head->status);
    for (size_t i = 0; i < head->header_count; i++)
        if (!message_is_hop_header(head, head->headers[i].name))
            reply_add_line(out, &head->headers[i]);
    strbuf_adds(out, reply_connection_line(request_get_head(req), req->keep_alive));
    reply_add_framing(req, out);
    if (!req->sized || req->method == METHOD_HEAD) {
        reply_send_answer(req, NULL, 0);
        (void)request_write(req, bytes, len);
        return;
    }
    reply_send_answer(req, bytes, len);
    req->left -= AQ_MIN(req->left, (uint64_t)len);
    reply_await_reader(req->conn);
}

size_t request_get_queued(const struct request *req)
{
    return req->conn->stream ? stream_queued(req->conn->stream) : 0;
}

int request_write(struct request *req, const void *bytes, size_t len)
{
    struct connection *conn = req->conn;
    size_t queued = request_get_queued(req);
    char size[24];
    uv_buf_t bufs[3];
    int r;

    if (!conn->stream || !conn->has_request)
        return -EPIPE;
    if (!len || req->method == METHOD_HEAD || req->is_bodiless)
        return 0;
    if (queued && queued + len > conn->server->limits.queue_max)
        return -ENOBUFS;
    bufs[0] = uv_buf_init(size, (unsigned)snprintf(size, sizeof(size), "%zx\r\n", len));
    bufs[1] = (uv_buf_t){ .base = (char *)(uintptr_t)bytes, .len = len };
    bufs[2] = (uv_buf_t){ .base = size + bufs[0].len - 2, .len = 2 };
    r = req->chunked ? stream_writev(conn->stream, bufs, 3)
                     : stream_writev(conn->stream, bufs + 1, 1);
    if (r < 0)
        return r;
    req->left -= AQ_MIN(req->left, (uint64_t)len);
    reply_await_reader(conn);
    if (!stream_queued(conn->stream) && req->keepalive)
        server_set_timer(conn, TIMER_KEEPALIVE);
    return 0;
}

static int request_put(void *end, const char *bytes, size_t len)
{
    int r = request_write(end, bytes, len);

    return r < 0 ? r : request_get_queued(end) > PUMP_QUEUE_HIGH;
}

static void request_hold(void *end, bool is_paused)
{
    if (is_paused)
        request_pause_body(end);
    else
        request_resume_body(end);
}

const struct pump_ops request_pump = { .put = request_put, .pause = request_hold };

void request_end(struct request *req)
{
    struct connection *conn = req->conn;

    if (!reply_is_first(req))
        return;
    if (req->left && req->method != METHOD_HEAD) {
        request_abort(req);
        return;
    }
    if (conn->stream && req->begun && req->chunked && req->method != METHOD_HEAD)
        (void)stream_write(conn->stream, "0\r\n\r\n", 5);
    connection_next(conn);
}

void request_abort(struct request *req)
{
    struct connection *conn = req->conn;

    if (!reply_is_first(req))
        return;
    req->on_gone = NULL;
    req->on_body = NULL;
    connection_drop(conn);
    connection_next(conn);
}

void request_set_keepalive(struct request *req, const char *text)
{
    req->keepalive = text;
    if (req->conn->stream && req->conn->timer != TIMER_WRITE)
        server_set_timer(req->conn, TIMER_KEEPALIVE);
}

void reply_keepalive(struct request *req)
{
    (void)request_write(req, req->keepalive, strlen(req->keepalive));
}

/* ---- other protocols ---- */

struct stream *request_upgrade(struct request *req, const char *protocol,
                               const struct stream_ops *ops, void *data)
{
    struct connection *conn = req->conn;
    struct strbuf *out = &conn->server->scratch;

    if (!conn->stream || !reply_is_first(req))
        return NULL;
    strbuf_clear(out);
    reply_add_status_line(out, 101);
    reply_add_common(conn->server, out);
    strbuf_addf(out, "Connection: Upgrade\r\nUpgrade: %s\r\n", protocol);
    strbuf_add(out, req->headers.data, req->headers.len);
    strbuf_add(out, "\r\n", 2);
    reply_send_answer(req, NULL, 0);
    conn->state = CONNECTION_UPGRADED;
    server_set_timer(conn, TIMER_NONE);
    stream_set_ops(conn->stream, ops, data);
    stream_push_back(conn->stream, conn->input.data, conn->input.len);
    strbuf_done(&conn->input);
    stream_resume(conn->stream);
    return conn->stream;
}
