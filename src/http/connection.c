/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of the server: reads requests, keeps its deadlines, lingers, ends. */
#include "http/server_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/memory.h"

#define INPUT_MAX 65536                 /* bytes of further requests taken in advance */
#define LINGER_MAX (UINT64_C(32) << 20) /* bytes that come after our last word */
#define LINGER_MSEC 30000               /* for these; silence ends it earlier */
#define BODY_STEP 65536                 /* of a body must come within one body_msec */

static void connection_on_read(void *data, const char *bytes, size_t len);
static void connection_on_end(void *data, const struct aq_error *err);
static void connection_on_drain(void *data);

const struct stream_ops connection_ops = {
    .on_read = connection_on_read,
    .on_end = connection_on_end,
    .on_drain = connection_on_drain,
};

/* ---- life ---- */

struct connection *connection_new(struct server *server)
{
    struct connection *conn = aq_alloc(sizeof(*conn));

    (void)message_parser_new(true, &server->limits.message, &conn->parser, NULL);
    conn->server = server;
    conn->timer = TIMER_NONE;
    strbuf_init(&conn->input);
    strbuf_init(&conn->again);
    strbuf_init(&conn->held);
    list_init(&conn->timer_link);
    list_init(&conn->ready_link);
    list_add(&server->connections, &conn->all);
    return conn;
}

void connection_free(struct connection *conn)
{
    if (conn->running) {
        conn->dead = true;
        return;
    }
    list_remove(&conn->all);
    list_remove(&conn->timer_link);
    message_parser_free(conn->parser);
    strbuf_done(&conn->input);
    strbuf_done(&conn->again);
    strbuf_done(&conn->held);
    free(conn);
}

/* The handler must still end its request; tell it. */
static void connection_tell_gone(struct request *req, int status)
{
    req->gone = true;
    if (req->on_body && !req->body_complete) {
        req->body_complete = true;
        req->on_body(req, NULL, 0, status, req->body_data);
    } else if (req->on_gone)
        req->on_gone(req, req->gone_data);
}

/* The client has taken its answer, or never will. */
static void connection_leave_answer(struct connection *conn)
{
    if (conn->unsent_bytes)
        quota_leave(&conn->server->quota, conn->unsent_client, conn->unsent_bytes);
    conn->unsent_client = NULL;
    conn->unsent_bytes = 0;
    if (conn->is_adopted && !conn->has_request)
        places_leave(conn);
}

/* Close the stream; a handler's request and its connection stay. */
static void connection_close_stream(struct connection *conn)
{
    struct server *server = conn->server;

    ready_remove(conn);
    if (!conn->is_adopted)
        (void)snprintf(conn->address, sizeof(conn->address), "%s",
                       stream_get_address(conn->stream));
    stream_close(conn->stream);
    conn->stream = NULL;
    server_set_timer(conn, TIMER_NONE);
    server->refusing -= conn->refused;
    places_leave(conn);
    connection_leave_answer(conn);
    strbuf_done(&conn->input);
    server_count_down(server);
}

static void connection_end(struct connection *conn, int status)
{
    if (!conn->stream)
        return;
    connection_close_stream(conn);
    if (conn->has_request
        && (conn->state == CONNECTION_HANDLER || conn->state == CONNECTION_UPGRADED)) {
        connection_tell_gone(&conn->req, status);
        return;
    }
    if (conn->has_request)
        request_done(&conn->req);
    connection_free(conn);
}

void connection_drop(struct connection *conn)
{
    connection_end(conn, -ECONNRESET);
}

static void connection_shut(struct connection *conn)
{
    conn->body_follows = false;
    conn->linger_mark = conn->mark;
    server_set_timer(conn, TIMER_LINGER);
    stream_shutdown(conn->stream);
}

/* Our last word is said: wait a moment for the client to have read it. A plain
 * close would throw away what is still under way if the client sent more. While
 * it sends a body our side stays open, too: some clients (aiohttp 3.9) take an
 * end for a failure, although they have the answer.
 */
static void connection_linger(struct connection *conn)
{
    conn->state = CONNECTION_LINGER;
    conn->mark = conn->linger_mark = 0;
    conn->linger_end = uv_now(conn->server->loop) + LINGER_MSEC;
    strbuf_done(&conn->input);
    if (conn->body_follows)
        server_set_timer(conn, TIMER_BODY_PAUSE);
    else
        connection_shut(conn);
    stream_resume(conn->stream);
}

/* The client has bytes to take. */
static void connection_await_reader(struct connection *conn)
{
    conn->mark = stream_sent(conn->stream);
    server_set_timer(conn, TIMER_WRITE);
}

/* The last answer is given: close once the client has taken it. */
static void connection_finish(struct connection *conn)
{
    if (!stream_queued(conn->stream)) {
        connection_leave_answer(conn);
        connection_linger(conn);
        return;
    }
    conn->state = CONNECTION_FLUSH;
    conn->close_after = true;
    connection_await_reader(conn);
}

/* The rest of a body is too much or does not come: answer without it, and close. */
static void connection_stop_discarding(struct connection *conn)
{
    reply_send_held(conn, false);
    connection_finish(conn);
}

/* ---- what the parser finds ---- */

/* Answer what is not a request at all, and close. */
static void connection_answer_error(struct connection *conn, const struct aq_error *err)
{
    if (!conn->has_request)
        request_init(&conn->req, conn);
    conn->req.keep_alive = false;
    conn->state = CONNECTION_HANDLER;
    request_fail(&conn->req, err);
}

/* The parser cannot go on. */
static void connection_break_off(struct connection *conn, const struct aq_error *err)
{
    struct request *req = &conn->req;

    if (conn->state == CONNECTION_DISCARD)
        connection_stop_discarding(conn);
    else if (conn->state != CONNECTION_HANDLER)
        connection_answer_error(conn, err);
    else {
        req->keep_alive = false;
        req->body_complete = true;
        stream_pause(conn->stream);
        req->on_body(req, NULL, 0, -err->code, req->body_data);
    }
}

void connection_call_handler(struct connection *conn)
{
    struct request *req = &conn->req;
    const struct server_app *app = req->app;
    struct aq_error err = { .code = 0 };

    conn->state = CONNECTION_HANDLER;
    server_set_timer(conn, TIMER_NONE);
    AQ_FAULT("http.request.complete");
    if (app->recheck && app->recheck(req, req->match.route, app->guard_data, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    req->match.route->handler(req, req->match.data);
}

/* The parser sees no more what was read under another limit. */
static void connection_refuse_length(struct connection *conn, uint64_t max)
{
    struct aq_error err = { .code = 0 };

    (void)aq_fail_kind(&err, EFBIG, "request-too-large", "the body is larger than %llu bytes",
                       (unsigned long long)max);
    connection_answer_error(conn, &err);
}

void connection_invite_body(struct connection *conn)
{
    const struct message_head *head = message_get_head(conn->parser);

    if (!head->expect_continue || conn->body_follows || conn->req.begun || !conn->stream)
        return;
    conn->body_follows = true;
    reply_continue(conn);
}

/* The request is there, with its head. */
static void connection_begin_request(struct connection *conn)
{
    const struct message_head *head = message_get_head(conn->parser);
    const struct route *route;
    uint64_t body_max;

    conn->state = CONNECTION_HANDLER;
    if (!connection_admit(conn))
        return;
    route = conn->req.match.route;
    body_max = route->body_max ? route->body_max : conn->server->limits.message.body_max;
    message_set_body_max(conn->parser, body_max);
    if (conn->again.len && AQ_MAX(conn->again.len, head->content_length) > body_max) {
        connection_refuse_length(conn, body_max);
        return;
    }
    conn->state = CONNECTION_BODY;
    conn->mark = 0;
    if (head->is_chunked || head->content_length) {
        server_set_timer(conn, TIMER_BODY);
        if (!(route->flags & ROUTE_STREAM_BODY) && head->content_length <= body_max)
            connection_invite_body(conn);
    }
    if (route->flags & ROUTE_STREAM_BODY && head->content_length <= body_max)
        connection_call_handler(conn);
}

static void connection_on_head(struct connection *conn)
{
    const struct message_head *head = message_get_head(conn->parser);

    request_init(&conn->req, conn);
    conn->body_follows = (head->is_chunked || head->content_length) && !head->expect_continue;
    conn->server->stats.requests++;
    connection_begin_request(conn);
}

/* All bodies that are being collected, or those of one client, are too much together. */
static void connection_refuse_body(struct connection *conn)
{
    struct aq_error err = { .code = 0 };

    request_add_header_int(&conn->req, "Retry-After", 1);
    (void)aq_fail_kind(&err, EAGAIN, "service-unavailable",
                       "Too much is being sent at one time; try again later");
    connection_answer_error(conn, &err);
}

static void connection_on_body(struct connection *conn, const char *bytes, size_t len)
{
    const struct message_head *head = message_get_head(conn->parser);
    struct request *req = &conn->req;

    conn->mark += len;
    if (conn->state == CONNECTION_DISCARD) {
        if (conn->mark > CONNECTION_UNREAD_MAX)
            connection_stop_discarding(conn);
        return;
    }
    if (conn->mark >= BODY_STEP) {
        if (conn->timer == TIMER_BODY)
            server_set_timer(conn, TIMER_BODY);
        conn->mark = 0;
    }
    if (conn->state == CONNECTION_HANDLER) {
        req->on_body(req, bytes, len, 0, req->body_data);
        return;
    }
    if (!quota_add_bytes(&conn->server->quota, req->client, len)) {
        connection_refuse_body(conn);
        return;
    }
    if (!req->body.cap)
        (void)strbuf_reserve(&req->body, (size_t)AQ_MIN(head->content_length, BODY_STEP));
    strbuf_add(&req->body, bytes, len);
    req->body_bytes += len;
}

/* The request and its body are through. The next one has to wait until the
 * client has taken the answer, so that nobody can pile up answers.
 */
static void connection_become_ready(struct connection *conn)
{
    message_reset(conn->parser);
    if (stream_queued(conn->stream)) {
        conn->state = CONNECTION_FLUSH;
        connection_await_reader(conn);
    } else {
        connection_leave_answer(conn);
        conn->state = CONNECTION_HEAD;
    }
}

static void connection_on_message_end(struct connection *conn)
{
    struct request *req = &conn->req;

    conn->body_follows = false;
    if (conn->state == CONNECTION_DISCARD) {
        reply_send_held(conn, !conn->server->stopping);
        connection_become_ready(conn);
        return;
    }
    req->body_complete = true;
    if (conn->state == CONNECTION_HANDLER) {
        server_set_timer(conn, TIMER_NONE);
        req->on_body(req, NULL, 0, 0, req->body_data);
    } else if (ready_must_wait(conn->server)) {
        conn->state = CONNECTION_READY;
        server_set_timer(conn, TIMER_NONE);
        ready_add_request(conn);
    } else
        connection_call_handler(conn);
}

/* ---- once more ---- */

int request_reroute_read(struct request *req, const char *body, size_t len)
{
    struct connection *conn = req->conn;

    if (!conn->stream)
        return -EPIPE;
    if (conn->state != CONNECTION_HANDLER || !(req->match.route->flags & ROUTE_STREAM_BODY)
        || req->begun)
        return -EINVAL;
    strbuf_add(&conn->again, body, len);
    conn->is_whole = req->body_complete;
    request_done(req);
    request_init(req, conn);
    conn->state = CONNECTION_AGAIN;
    connection_resume(conn);
    return 0;
}

int request_reroute(struct request *req)
{
    return req->on_body ? -EINVAL : request_reroute_read(req, "", 0);
}

/* A piece of the body, or its end, that a handler has read before. */
static bool connection_give_again(struct connection *conn)
{
    struct strbuf body = conn->again;

    if (!body.len && !conn->is_whole)
        return false;
    strbuf_init(&conn->again);
    if (body.len) {
        connection_on_body(conn, body.data, body.len);
    } else {
        conn->is_whole = false;
        connection_on_message_end(conn);
    }
    strbuf_done(&body);
    return true;
}

/* ---- feeding it ---- */

/* May the parser have more bytes now? */
static bool connection_is_hungry(const struct connection *conn)
{
    const struct request *req = &conn->req;

    if (!conn->stream || conn->dead)
        return false;
    switch (conn->state) {
    case CONNECTION_HEAD:
    case CONNECTION_AGAIN:
    case CONNECTION_BODY:
    case CONNECTION_DISCARD:
        return true;
    case CONNECTION_HANDLER:
        return req->on_body && !req->body_complete && !req->body_paused;
    default:
        return false;
    }
}

/* One step; false if the parser waits for more bytes. */
static bool connection_step(struct connection *conn, const char **bytes, size_t *len)
{
    struct message_piece piece;
    struct aq_error err = { .code = 0 };
    ssize_t used;

    if (conn->state == CONNECTION_AGAIN) {
        connection_begin_request(conn);
        return true;
    }
    if (connection_give_again(conn))
        return true;
    used = message_feed(conn->parser, *bytes, *len, &piece, &err);
    if (used < 0) {
        *len = 0;
        connection_break_off(conn, &err);
        return true;
    }
    *bytes += used;
    *len -= (size_t)used;
    switch (piece.event) {
    case MESSAGE_MORE:
        return false;
    case MESSAGE_HEAD:
        connection_on_head(conn);
        break;
    case MESSAGE_BODY:
        connection_on_body(conn, piece.bytes, piece.len);
        break;
    case MESSAGE_END:
        connection_on_message_end(conn);
        break;
    }
    return true;
}

/* Set the clock for the client's next move. */
static void connection_await_client(struct connection *conn)
{
    if (conn->state != CONNECTION_HEAD)
        return;
    if (conn->server->stopping && !message_has_begun(conn->parser))
        connection_linger(conn);
    else if (!message_has_begun(conn->parser))
        server_set_timer(conn, TIMER_IDLE);
    else if (conn->timer != TIMER_HEAD)
        server_set_timer(conn, TIMER_HEAD);
}

/* Bytes whose turn has not come; beyond a measure the client has to wait. */
static void connection_keep_input(struct connection *conn, const char *bytes, size_t len)
{
    strbuf_add(&conn->input, bytes, len);
    if (conn->input.len >= INPUT_MAX || conn->req.body_paused)
        stream_pause(conn->stream);
}

/* Go on in a later turn. */
static void connection_await_turn(struct connection *conn)
{
    if (conn->state == CONNECTION_HEAD && conn->timer != TIMER_HEAD)
        server_set_timer(conn, TIMER_HEAD);
    ready_add_unread(conn);
}

/* Parse and answer as far as it goes in this turn; keep what is left for later. */
static void connection_run(struct connection *conn, const char *bytes, size_t len)
{
    conn->running = true;
    while (connection_is_hungry(conn) && connection_step(conn, &bytes, &len)
           && (!len || ready_has_time(conn->server)))
        continue;
    conn->running = false;
    if (conn->dead) {
        connection_free(conn);
        return;
    }
    if (!conn->stream)
        return;
    if (conn->state == CONNECTION_UPGRADED)
        stream_push_back(conn->stream, bytes, len);
    else if (conn->state != CONNECTION_LINGER)
        connection_keep_input(conn, bytes, len);
    if (conn->has_ended || (conn->input.len && connection_is_hungry(conn)))
        connection_await_turn(conn);
    else
        connection_await_client(conn);
}

/* Give the parser what was kept for it. Only from the loop: it may call handlers. */
static void connection_take_input(struct connection *conn)
{
    struct strbuf input = conn->input;

    conn->is_due = false;
    strbuf_init(&conn->input);
    stream_resume(conn->stream);
    connection_run(conn, input.data, input.len);
    strbuf_done(&input);
}

void connection_resume(struct connection *conn)
{
    if (conn->running || !conn->stream)
        return;
    conn->is_due = true;
    stream_resume(conn->stream);
    connection_await_turn(conn);
}

/* ---- events ---- */

static void connection_on_read(void *data, const char *bytes, size_t len)
{
    struct connection *conn = data;

    if (conn->state == CONNECTION_LINGER) {
        conn->mark += len;
        if (conn->mark > LINGER_MAX)
            connection_drop(conn);
    } else if (conn->input.len || !connection_is_hungry(conn))
        connection_keep_input(conn, bytes, len);
    else if (ready_has_time(conn->server))
        connection_run(conn, bytes, len);
    else {
        connection_keep_input(conn, bytes, len);
        connection_await_turn(conn);
    }
}

static void connection_take_end(struct connection *conn)
{
    /* Half a goodbye: the client may still read what it has asked for. */
    if (conn->ends_well && conn->state == CONNECTION_FLUSH)
        conn->close_after = true;
    else if (conn->ends_well && conn->state == CONNECTION_DISCARD)
        connection_stop_discarding(conn);
    else
        connection_drop(conn);
}

/* An end of its sending waits for what came before it: for the turn of the bytes, or until
 * ready.c has called the handler.
 */
static void connection_on_end(void *data, const struct aq_error *err)
{
    struct connection *conn = data;

    conn->has_ended = true;
    conn->ends_well = !err->code;
    if (conn->state == CONNECTION_READY ? !conn->ends_well : !ready_must_wait(conn->server))
        connection_take_end(conn);
    else
        ready_add_unread(conn);
}

void connection_take_unread(struct connection *conn)
{
    bool is_gone = conn->has_ended && !conn->ends_well;

    if ((conn->input.len || conn->is_due) && connection_is_hungry(conn) && !is_gone)
        connection_take_input(conn);
    else if (conn->has_ended)
        connection_take_end(conn);
}

static void connection_on_drain(void *data)
{
    struct connection *conn = data;
    struct request *req = &conn->req;

    connection_leave_answer(conn);
    if (conn->state == CONNECTION_FLUSH && conn->close_after)
        connection_linger(conn);
    else if (conn->state == CONNECTION_FLUSH) {
        conn->state = CONNECTION_HEAD;
        connection_take_input(conn);
    } else if (conn->state == CONNECTION_HANDLER && req->begun) {
        server_set_timer(conn, req->keepalive ? TIMER_KEEPALIVE : TIMER_NONE);
        if (req->on_drain)
            req->on_drain(req, req->drain_data);
    }
}

void connection_next(struct connection *conn)
{
    bool keep = conn->req.keep_alive && !conn->server->stopping;
    bool body_complete = conn->req.body_complete;

    if (conn->stream && conn->state == CONNECTION_UPGRADED)
        connection_close_stream(conn);
    request_done(&conn->req);
    if (!conn->stream) {
        connection_free(conn);
        return;
    }
    if (!keep) {
        connection_finish(conn);
        return;
    }
    if (!body_complete) {
        conn->state = CONNECTION_DISCARD;
        conn->mark = 0;
        server_set_timer(conn, TIMER_BODY);
        connection_resume(conn);
        return;
    }
    connection_become_ready(conn);
    if (conn->state == CONNECTION_HEAD && (conn->input.len || conn->has_ended))
        connection_resume(conn);
    else if (conn->state == CONNECTION_HEAD && !conn->running) {
        stream_resume(conn->stream);
        connection_await_client(conn);
    }
}

static void connection_expire_body(struct connection *conn)
{
    struct aq_error err = { .code = 0 };

    (void)aq_fail_kind(&err, ETIMEDOUT, "request-timeout", "The request's body came too slowly");
    server_set_timer(conn, TIMER_NONE);
    connection_break_off(conn, &err);
}

/* The client still sends, and may. */
static bool connection_may_linger(struct connection *conn)
{
    bool has_come = conn->mark > conn->linger_mark;

    conn->linger_mark = conn->mark;
    return has_come && uv_now(conn->server->loop) < conn->linger_end;
}

void connection_expire(struct connection *conn)
{
    struct aq_error err = { .code = 0 };

    switch (conn->timer) {
    case TIMER_HEAD:
        (void)aq_fail_kind(&err, ETIMEDOUT, "request-timeout",
                           "The request's head came too slowly");
        connection_answer_error(conn, &err);
        break;
    case TIMER_BODY:
        connection_expire_body(conn);
        break;
    case TIMER_KEEPALIVE:
        server_set_timer(conn, TIMER_KEEPALIVE);
        reply_keepalive(&conn->req);
        break;
    case TIMER_BODY_PAUSE:
        if (connection_may_linger(conn))
            server_set_timer(conn, TIMER_BODY_PAUSE);
        else
            connection_shut(conn);
        break;
    case TIMER_LINGER:
        if (connection_may_linger(conn))
            server_set_timer(conn, TIMER_LINGER);
        else
            connection_drop(conn);
        break;
    case TIMER_WRITE:
        /* The other server ends those of its clients that do not read. */
        if (conn->is_adopted || stream_sent(conn->stream) > conn->mark)
            connection_await_reader(conn);
        else
            connection_end(conn, -ETIMEDOUT);
        break;
    default:
        connection_drop(conn);
        break;
    }
}

void connection_refuse(struct connection *conn)
{
    struct aq_error err = { .code = 0 };

    (void)aq_fail_kind(&err, EAGAIN, "service-unavailable",
                       "Too many connections; try again later");
    connection_answer_error(conn, &err);
}
