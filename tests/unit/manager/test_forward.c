/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a manager that does not lead: passed on in TLS to one that does, or to the next. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../http/certs.h"
#include "base/log.h"
#include "base/memory.h"
#include "http/sse.h"
#include "http/websocket.h"
#include "manager/forward/forward.h"
#include "testing.h"

#define HOST "Host: api.example.org\r\n"
#define FULL ((size_t)24 << 20)

#define RUN_UNTIL(f, cond)                         \
    do {                                           \
        while (!(cond))                            \
            (void)uv_run(&(f)->loop, UV_RUN_ONCE); \
    } while (0)

/* A manager that answers itself, directly and for others on its link port. */
struct leader {
    struct router *router;
    struct server *server;
    struct listener *direct, *link;
    char base[64], address[32];
    struct request *held; /* by /hold and /session */
    struct strbuf seen;   /* bodies that came to its handlers */
    size_t count;         /* requests that came to handlers */
    size_t poured;        /* bytes written by /pour */
    bool is_reading, stopped, gone;
};

struct fixture {
    uv_loop_t loop;
    struct cert ca, manager, standby;
    struct tls_context *link_tls, *client_tls;
    struct router *answered_once;
    struct leader leaders[2];
    struct server_app app; /* the standby's own, once it leads: that of leader 1 */
    struct server *server;
    struct listener *listener;
    struct forward *forward;
    char base[64];
    bool stopped;
};

static struct fixture f;

/* ---- what leaders answer ---- */

static void on_echo(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct message_head *head = request_get_head(req);
    struct leader *leader = data;
    size_t len;
    const char *body = request_get_body(req, &len);

    leader->count++;
    strbuf_addf(&out, "%s %s [%s]\n", method_name(request_get_method(req)), request_get_target(req),
                request_get_address(req));
    for (size_t i = 0; i < head->header_count; i++)
        if (strncmp(head->headers[i].name, "X-", 2) == 0
            || strcmp(head->headers[i].name, "Host") == 0)
            strbuf_addf(&out, "%s: %s\n", head->headers[i].name, head->headers[i].value);
    strbuf_add(&out, body, len);
    request_add_header(req, "X-One", "1");
    request_add_header(req, "ETag", "\"a\"");
    request_reply(req, 200, "text/plain", out.data, out.len);
}

static void on_status(struct request *req, void *data)
{
    (void)data;
    request_add_header(req, "ETag", "\"b\"");
    request_reply_empty(req, atoi(request_get_param(req, "status")));
}

static void on_pieces(struct request *req, void *data)
{
    (void)data;
    request_begin(req, 200, "text/plain", NULL, NULL);
    (void)request_write(req, "one", 3);
    (void)request_write(req, "two\r\n0\r\n\r\n", 10);
    request_end(req);
}

static void on_held_gone(struct request *req, void *data)
{
    struct leader *leader = data;

    leader->gone = true;
    leader->held = NULL;
    request_end(req);
}

/* Collected, and answered by the test. */
static void on_hold(struct request *req, void *data)
{
    struct leader *leader = data;
    size_t len;
    const char *body = request_get_body(req, &len);

    leader->count++;
    strbuf_add(&leader->seen, body, len);
    leader->held = req;
    request_set_gone(req, on_held_gone, leader);
}

static void pour(struct request *req, void *data)
{
    static char piece[64 << 10];
    struct leader *leader = data;

    while (leader->poured < FULL && request_get_queued(req) < sizeof(piece)) {
        if (request_write(req, piece, sizeof(piece)) < 0)
            return;
        leader->poured += sizeof(piece);
    }
    if (leader->poured == FULL && !request_get_queued(req))
        request_end(req);
}

static void on_pour(struct request *req, void *data)
{
    struct leader *leader = data;

    leader->poured = 0;
    request_set_gone(req, on_held_gone, leader);
    request_begin_sized(req, 200, "application/octet-stream", FULL, pour, leader);
    pour(req, leader);
}

static void on_part(struct request *req, void *data)
{
    struct leader *leader = data;

    leader->held = req;
    request_set_gone(req, on_held_gone, leader);
    request_begin_sized(req, 200, "text/plain", 10, NULL, NULL);
    (void)request_write(req, "half", 4);
}

static void on_events(struct request *req, void *data)
{
    struct leader *leader = data;

    leader->held = req;
    request_set_gone(req, on_held_gone, leader);
    sse_begin(req, NULL, NULL);
    (void)sse_send(req, "one", "1", "x", 1);
}

static void on_upload_piece(struct request *req, const char *bytes, size_t len, int status,
                            void *data)
{
    struct leader *leader = data;
    char text[32];

    leader->poured += len;
    if (len && leader->poured < 100)
        strbuf_add(&leader->seen, bytes, len);
    if (len)
        return;
    leader->held = NULL;
    if (status < 0) {
        leader->gone = true;
        request_end(req);
        return;
    }
    (void)snprintf(text, sizeof(text), "%zu", leader->poured);
    request_reply(req, 200, "text/plain", text, strlen(text));
}

/* Reads its body when the test says so. */
static void on_upload(struct request *req, void *data)
{
    struct leader *leader = data;

    leader->count++;
    leader->poured = 0;
    leader->held = req;
    request_set_gone(req, on_held_gone, leader);
    if (leader->is_reading)
        request_read_body(req, on_upload_piece, leader);
}

static void on_ws_message(struct websocket *ws, bool is_text, const char *bytes, size_t len,
                          void *data)
{
    (void)data;
    (void)websocket_send(ws, is_text, bytes, len);
}

static void on_ws_close(struct websocket *ws, uint16_t code, const struct aq_error *err, void *data)
{
    (void)ws;
    (void)code;
    (void)err;
    (void)data;
}

static void on_ws(struct request *req, void *data)
{
    static const struct websocket_ops ops = { .on_message = on_ws_message,
                                              .on_close = on_ws_close };
    static const struct websocket_options options = { .protocol = "echo" };
    struct websocket *ws;
    struct aq_error err = { .code = 0 };

    (void)data;
    request_add_header(req, "X-Socket", "yes");
    if (websocket_accept(req, &options, &ops, NULL, &ws, &err) < 0)
        request_fail(req, &err);
}

static const struct route routes[] = {
    { METHOD_GET, "/echo", 0, on_echo, NULL, "Echo" },
    { METHOD_POST, "/echo", 0, on_echo, NULL, "Echo", 0, 1000 },
    { METHOD_PATCH, "/echo", 0, on_echo, NULL, "Echo" },
    { METHOD_DELETE, "/echo", 0, on_echo, NULL, "Echo" },
    { METHOD_GET, "/status/{status}", 0, on_status, NULL, "Status" },
    { METHOD_POST, "/status/{status}", 0, on_status, NULL, "Status", ROUTE_STREAM_BODY },
    { METHOD_GET, "/pieces", 0, on_pieces, NULL, "Pieces" },
    { METHOD_GET, "/hold", 0, on_hold, NULL, "Hold" },
    { METHOD_POST, "/hold", 0, on_hold, NULL, "Hold" },
    { METHOD_DELETE, "/hold", 0, on_hold, NULL, "Hold" },
    { METHOD_POST, "/session", 0, on_hold, NULL, "Create" },
    { METHOD_GET, "/pour", 0, on_pour, NULL, "Pour" },
    { METHOD_GET, "/part", 0, on_part, NULL, "Part" },
    { METHOD_GET, "/events", 0, on_events, NULL, "Events" },
    { METHOD_POST, "/upload", 0, on_upload, NULL, "Upload", ROUTE_STREAM_BODY, UINT64_MAX },
    { METHOD_GET, "/ws", 0, on_ws, NULL, "WebSocket" },
};

static const struct route once_routes[] = {
    { METHOD_POST, "/session", 0, on_hold, NULL, "Create" },
};

/* ---- a leader ---- */

struct incoming {
    struct leader *leader;
    struct stream *stream;
};

static void incoming_on_open(void *data)
{
    struct incoming *in = data;
    struct tls_peer peer;

    assert_true(stream_get_peer(in->stream, &peer));
    assert_string_equal(peer.common_name, "manager:b");
    server_adopt(in->leader->server, in->stream, "", 0);
    free(in);
}

static void incoming_on_read(void *data, const char *bytes, size_t len)
{
    (void)data;
    (void)bytes;
    (void)len;
    fail();
}

static void incoming_on_end(void *data, const struct aq_error *err)
{
    struct incoming *in = data;

    (void)err;
    stream_close(in->stream);
    free(in);
}

static void on_incoming(struct listener *listener, void *data)
{
    static const struct stream_ops ops = { .on_open = incoming_on_open,
                                           .on_read = incoming_on_read,
                                           .on_end = incoming_on_end };
    struct incoming *in = aq_alloc(sizeof(*in));

    in->leader = data;
    assert_int_equal(listener_accept(listener, &ops, in, &in->stream, NULL), 0);
}

static void leader_up(struct leader *leader)
{
    static char page[] = "https://page.example", *pages[] = { page };
    static const struct origin_rules origins = { .allowed = pages, .count = 1 };
    static const struct listener_options direct = { .address = "127.0.0.1:0" };
    const struct listener_options link = { .address = "127.0.0.1:0", .tls = f.link_tls };
    struct server_options options = { .app.origins = &origins };

    strbuf_init(&leader->seen);
    leader->router = router_new();
    assert_int_equal(router_add(leader->router, routes, AQ_COUNT(routes), leader, NULL), 0);
    options.app.router = leader->router;
    leader->server = server_new(&f.loop, &options);
    assert_int_equal(server_listen(leader->server, &direct, &leader->direct, NULL), 0);
    (void)snprintf(leader->base, sizeof(leader->base), "127.0.0.1:%u",
                   listener_get_port(leader->direct));
    assert_int_equal(listener_new(&f.loop, &link, on_incoming, leader, &leader->link, NULL), 0);
    (void)snprintf(leader->address, sizeof(leader->address), "127.0.0.1:%u",
                   listener_get_port(leader->link));
}

static void leader_on_stopped(void *data)
{
    ((struct leader *)data)->stopped = true;
}

/* As if its process was killed: its connections and its port are closed. */
static void leader_kill(struct leader *leader)
{
    listener_close(AQ_TAKE(leader->link));
    server_stop(leader->server, 0, leader_on_stopped, leader);
    RUN_UNTIL(&f, leader->stopped);
}

/* ---- the manager that passes on ---- */

static void standby_up(const struct forward_options *more)
{
    static const struct listener_options listen = { .address = "127.0.0.1:0" };
    struct server_options options = { .limits = { .connections_max = 1000 } };
    struct forward_options forward = more ? *more : (struct forward_options){ 0 };

    f.server = server_new(&f.loop, &options);
    forward.loop = &f.loop;
    forward.server = f.server;
    forward.tls = f.client_tls;
    forward.answered_once = f.answered_once;
    f.forward = forward_new(&forward);
    server_set_app(f.server, forward_get_app(f.forward));
    assert_int_equal(server_listen(f.server, &listen, &f.listener, NULL), 0);
    (void)snprintf(f.base, sizeof(f.base), "127.0.0.1:%u", listener_get_port(f.listener));
}

static void on_stopped(void *data)
{
    (void)data;
    f.stopped = true;
}

static void standby_down(void)
{
    f.stopped = false;
    server_stop(f.server, 0, on_stopped, NULL);
    RUN_UNTIL(&f, f.stopped);
    forward_free(AQ_TAKE(f.forward));
    server_free(f.server);
}

static int set_up(void **state)
{
    struct tls_options link = { .is_server = true, .require_peer_cert = true };
    struct tls_options client = { .any_name = true };

    (void)state;
    memset(&f, 0, sizeof(f));
    log_init("test", LOG_LEVEL_ERR);
    assert_int_equal(uv_loop_init(&f.loop), 0);
    f.ca = cert_make("authority", 1, NULL, -60, 3600);
    f.manager = cert_make("manager", 2, &f.ca, -60, 3600);
    f.standby = cert_make("manager:b", 3, &f.ca, -60, 3600);
    link.ca_pem = client.ca_pem = f.ca.cert_pem;
    link.cert_pem = f.manager.cert_pem;
    link.key_pem = f.manager.key_pem;
    client.cert_pem = f.standby.cert_pem;
    client.key_pem = f.standby.key_pem;
    assert_int_equal(tls_context_new(&link, &f.link_tls, NULL), 0);
    assert_int_equal(tls_context_new(&client, &f.client_tls, NULL), 0);
    f.answered_once = router_new();
    assert_int_equal(router_add(f.answered_once, once_routes, 1, NULL, NULL), 0);
    for (size_t i = 0; i < AQ_COUNT(f.leaders); i++)
        leader_up(&f.leaders[i]);
    f.app = (struct server_app){ .router = f.leaders[1].router };
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (f.forward)
        standby_down();
    for (size_t i = 0; i < AQ_COUNT(f.leaders); i++) {
        if (!f.leaders[i].stopped)
            leader_kill(&f.leaders[i]);
        server_free(f.leaders[i].server);
        router_free(f.leaders[i].router);
        strbuf_done(&f.leaders[i].seen);
    }
    (void)uv_run(&f.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f.loop), 0);
    router_free(f.answered_once);
    tls_context_free(f.link_tls);
    tls_context_free(f.client_tls);
    cert_done(&f.ca);
    cert_done(&f.manager);
    cert_done(&f.standby);
    return 0;
}

static void lead(size_t i)
{
    forward_set_leader(f.forward, f.leaders[i].address);
}

/* ---- a client that says exactly what it is told ---- */

struct raw {
    struct stream *stream;
    struct strbuf got;
    size_t total;
    bool open, ended, keeps_none;
};

static void raw_on_open(void *data)
{
    ((struct raw *)data)->open = true;
}

static void raw_on_read(void *data, const char *bytes, size_t len)
{
    struct raw *raw = data;

    raw->total += len;
    if (!raw->keeps_none)
        strbuf_add(&raw->got, bytes, len);
}

static void raw_on_end(void *data, const struct aq_error *err)
{
    (void)err;
    ((struct raw *)data)->ended = true;
}

static void raw_open(struct raw *raw, const char *base)
{
    static const struct stream_ops ops = { raw_on_open, raw_on_read, raw_on_end, NULL };
    struct stream_options options = { .tls = NULL };
    struct address to;

    memset(raw, 0, sizeof(*raw));
    strbuf_init(&raw->got);
    assert_int_equal(address_parse(base, 0, &to, NULL), 0);
    assert_int_equal(stream_connect(&f.loop, &to, &options, &ops, raw, &raw->stream, NULL), 0);
    RUN_UNTIL(&f, raw->open);
}

static void raw_say(struct raw *raw, const char *text)
{
    assert_int_equal(stream_write(raw->stream, text, strlen(text)), 0);
}

static void raw_close(struct raw *raw)
{
    stream_close(raw->stream);
    strbuf_done(&raw->got);
}

static bool raw_has(const struct raw *raw, const char *text)
{
    return raw->got.len && strstr(raw->got.data, text);
}

/* The answers up to the end of the last, of which the requests ask to close; without its date. */
static char *ask(const char *base, const char *text)
{
    struct raw raw;
    char *answer, *date;

    raw_open(&raw, base);
    raw_say(&raw, text);
    RUN_UNTIL(&f, raw.ended);
    answer = aq_strdup(raw.got.data);
    for (date = answer; (date = strstr(date, "\r\nDate: ")); date += 8)
        memset(date + 8, 'x', strcspn(date + 8, "\r"));
    raw_close(&raw);
    return answer;
}

#define CLOSE "Connection: close\r\n"
#define REQUEST(line, headers) line " HTTP/1.1\r\n" HOST headers "\r\n"

static void test_answers_are_those_of_the_leader(void **state)
{
    static const char *const requests[] = {
        REQUEST("GET /echo?a=b%20c", CLOSE "X-A: 1\r\nX-A: 2\r\n"),
        REQUEST("HEAD /echo", CLOSE),
        REQUEST("GET /nowhere", CLOSE),
        REQUEST("PUT /echo", CLOSE "Content-Length: 3\r\n") "abc",
        REQUEST("POST /echo", CLOSE "Content-Length: 5\r\n") "hello",
        REQUEST("POST /echo",
                CLOSE "Transfer-Encoding: chunked\r\n") "3;x=y\r\nabc\r\n2\r\nde\r\n0\r\n"
                                                        "X-Trailer: 1\r\n\r\n",
        REQUEST("POST /echo", CLOSE "X-Method-Override: PATCH\r\nContent-Length: 1\r\n") "a",
        REQUEST("POST /echo", CLOSE "Content-Length: 2000\r\nExpect: 100-continue\r\n"),
        REQUEST("POST /echo", CLOSE "Content-Length: 2\r\nExpect: 100-continue\r\n") "hi",
        REQUEST("OPTIONS /echo", CLOSE "Origin: https://page.example\r\n"
                                       "Access-Control-Request-Method: POST\r\n"
                                       "Access-Control-Request-Headers: X-A\r\n"),
        REQUEST("GET /echo", CLOSE "Origin: https://other.example\r\n"),
        REQUEST("OPTIONS *", CLOSE),
        REQUEST("PROPFIND /echo", CLOSE),
        REQUEST("TRACE /nowhere", CLOSE),
        REQUEST("GET /status/204", CLOSE),
        REQUEST("GET /status/304", CLOSE),
        REQUEST("HEAD /status/200", CLOSE),
        REQUEST("GET /status/418", CLOSE),
        REQUEST("GET /pieces", CLOSE),
        REQUEST("HEAD /pieces", CLOSE),
        REQUEST("GET /pieces", "Connection: close, Upgrade\r\nUpgrade: h2c\r\n"
                               "HTTP2-Settings: AAMAAABkAAQAAP__\r\n"),
        REQUEST("GET /ws", CLOSE),
        REQUEST("GET /echo", "") REQUEST("DELETE /echo", "") REQUEST("GET /pieces", "")
            REQUEST("POST /echo", "Content-Length: 1\r\n") "x" REQUEST("GET /status/204", CLOSE),
        "GET /echo HTTP/1.0\r\n" HOST "\r\n",
        "POST /echo HTTP/1.0\r\n" HOST "Content-Length: 2\r\n\r\nhi",
    };

    (void)state;
    standby_up(NULL);
    lead(0);
    for (size_t i = 0; i < AQ_COUNT(requests); i++) {
        char *direct = ask(f.leaders[0].base, requests[i]), *passed = ask(f.base, requests[i]);

        assert_string_equal(passed, direct);
        free(direct);
        free(passed);
    }
}

static void test_the_leader_knows_the_client(void **state)
{
    char *answer;

    (void)state;
    standby_up(NULL);
    lead(0);
    answer = ask(f.base,
                 REQUEST("GET /echo", "Connection: close, X-Gone\r\nX-Gone: 1\r\nX-Kept: 2\r\n"
                                      "Aliquot-Client: 192.0.2.9\r\n"));
    assert_non_null(strstr(answer, "[127.0.0.1]"));
    assert_non_null(strstr(answer, "Host: api.example.org\n"));
    assert_non_null(strstr(answer, "X-Kept: 2"));
    assert_null(strstr(answer, "X-Gone"));
    free(answer);
}

/* What looks like a request within a body is body, however it was framed. */
static void test_bodies_are_framed_anew(void **state)
{
    char *answer;

    (void)state;
    standby_up(NULL);
    lead(0);
    answer = ask(
        f.base,
        REQUEST(
            "POST /echo", CLOSE
            "Transfer-Encoding: chunked\r\n") "2e\r\nGET /hold HTTP/1.1\r\nHost: a\r\nX: 0\r\n\r\n0\r\n\r\nGET \r\n0\r\n\r\n");
    assert_non_null(strstr(answer, "GET /hold"));
    assert_int_equal(f.leaders[0].count, 1);
    free(answer);
    answer = ask(
        f.base,
        REQUEST("POST /echo", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n") "0\r\n\r\n");
    assert_non_null(strstr(answer, " 400 "));
    free(answer);
    answer = ask(f.base, REQUEST("POST /upload", CLOSE "Transfer-Encoding: chunked\r\n") "zz\r\n");
    assert_non_null(strstr(answer, " 400 "));
    assert_int_equal(f.leaders[0].count, 2);
    free(answer);
}

static void test_a_client_waits_for_the_leader_to_continue(void **state)
{
    struct raw raw;

    (void)state;
    standby_up(NULL);
    lead(0);
    raw_open(&raw, f.base);
    raw_say(&raw, REQUEST("POST /upload", "Content-Length: 5\r\nExpect: 100-continue\r\n"));
    RUN_UNTIL(&f, f.leaders[0].held);
    assert_int_equal(raw.got.len, 0);
    request_read_body(f.leaders[0].held, on_upload_piece, &f.leaders[0]);
    RUN_UNTIL(&f, raw.got.len);
    assert_string_equal(raw.got.data, "HTTP/1.1 100 Continue\r\n\r\n");
    raw_say(&raw, "hello");
    RUN_UNTIL(&f, raw_has(&raw, "\r\n\r\n5"));
    raw_close(&raw);
}

/* ---- back-pressure ---- */

#define SLACK ((size_t)12 << 20) /* what sockets and queues between the ends can hold */

static void test_a_slow_reader_slows_the_leader_down(void **state)
{
    struct raw raw;
    size_t poured = 0;

    (void)state;
    standby_up(NULL);
    lead(0);
    raw_open(&raw, f.base);
    raw.keeps_none = true;
    raw_say(&raw, REQUEST("GET /pour", ""));
    stream_pause(raw.stream);
    for (int still = 0; still < 50; still = f.leaders[0].poured == poured ? still + 1 : 0) {
        poured = f.leaders[0].poured;
        (void)uv_run(&f.loop, UV_RUN_NOWAIT);
    }
    assert_in_range(poured, 0, SLACK);
    stream_resume(raw.stream);
    RUN_UNTIL(&f, raw.total >= FULL);
    raw_close(&raw);
}

static void test_a_slow_leader_slows_an_upload_down(void **state)
{
    static char piece[1 << 20];
    struct raw raw;
    char head[128];

    (void)state;
    standby_up(NULL);
    lead(0);
    raw_open(&raw, f.base);
    (void)snprintf(head, sizeof(head), REQUEST("POST /upload", "Content-Length: %zu\r\n"), FULL);
    raw_say(&raw, head);
    memset(piece, 'u', sizeof(piece));
    for (size_t sent = 0; sent < FULL; sent += sizeof(piece))
        assert_int_equal(stream_write(raw.stream, piece, sizeof(piece)), 0);
    RUN_UNTIL(&f, f.leaders[0].held);
    for (int i = 0; i < 200; i++)
        (void)uv_run(&f.loop, UV_RUN_NOWAIT);
    assert_in_range(stream_sent(raw.stream), 0, SLACK);
    request_read_body(f.leaders[0].held, on_upload_piece, &f.leaders[0]);
    RUN_UNTIL(&f, raw_has(&raw, "\r\n\r\n25165824"));
    raw_close(&raw);
}

/* ---- no leader ---- */

static void test_requests_wait_for_a_leader(void **state)
{
    struct raw raws[3];

    (void)state;
    standby_up(NULL);
    for (size_t i = 0; i < AQ_COUNT(raws); i++) {
        raw_open(&raws[i], f.base);
        raw_say(&raws[i], i ? REQUEST("POST /echo", "Content-Length: 5\r\n") "hello"
                            : REQUEST("GET /echo", ""));
    }
    for (int i = 0; i < 20; i++)
        (void)uv_run(&f.loop, UV_RUN_NOWAIT);
    assert_int_equal(f.leaders[0].count, 0);
    raw_close(&raws[2]); /* one has left */
    lead(0);
    RUN_UNTIL(&f, raw_has(&raws[0], " 200 ") && raw_has(&raws[1], "hello"));
    assert_in_range(f.leaders[0].count, 2, 2 + 1);
    raw_close(&raws[0]);
    raw_close(&raws[1]);
}

static void test_waiting_is_bounded(void **state)
{
    static const struct forward_options short_hold = { .hold_msec = 1 }, few = { .hold_max = 1 };
    struct raw first;
    char *answer;

    (void)state;
    standby_up(&short_hold);
    answer = ask(f.base, REQUEST("GET /echo", CLOSE));
    assert_non_null(strstr(answer, "HTTP/1.1 503 "));
    assert_non_null(strstr(answer, "Retry-After: 5\r\n"));
    free(answer);
    standby_down();
    standby_up(&few);
    raw_open(&first, f.base);
    raw_say(&first, REQUEST("GET /echo", ""));
    for (int i = 0; i < 20; i++)
        (void)uv_run(&f.loop, UV_RUN_NOWAIT);
    answer = ask(f.base, REQUEST("GET /echo", CLOSE));
    assert_non_null(strstr(answer, "HTTP/1.1 503 "));
    free(answer);
    raw_close(&first);
}

static void test_a_leader_that_cannot_be_reached_is_tried_again(void **state)
{
    struct raw raw;

    (void)state;
    standby_up(NULL);
    listener_close(AQ_TAKE(f.leaders[1].link));
    lead(1);
    raw_open(&raw, f.base);
    raw_say(&raw, REQUEST("POST /echo", "Content-Length: 5\r\n") "hello");
    for (int i = 0; i < 5; i++)
        (void)uv_run(&f.loop, UV_RUN_ONCE);
    lead(0);
    RUN_UNTIL(&f, raw_has(&raw, "hello"));
    raw_close(&raw);
}

static void test_what_another_manager_passes_on_is_not_passed_on_again(void **state)
{
    static const struct forward_options options = { .hold_msec = 1 };
    struct strbuf out = STRBUF_INIT;
    struct stream *stream;
    static const char request[] = REQUEST("GET /echo", "Aliquot-Client: 192.0.2.1\r\n" CLOSE);

    (void)state;
    standby_up(&options);
    lead(0);
    stream = stream_memory(&f.loop, &out, &(struct stream_ops){ .on_read = incoming_on_read },
                           NULL);
    server_adopt(f.server, stream, request, strlen(request));
    RUN_UNTIL(&f, out.len);
    assert_non_null(strstr(out.data, "HTTP/1.1 503 "));
    assert_int_equal(f.leaders[0].count, 0);
    standby_down();
    strbuf_done(&out);
}

/* ---- a leader that is lost ---- */

/* Let leader 0 have the request, be lost, and leader 1 lead. */
static void lose(struct raw *raw, const char *request)
{
    standby_up(NULL);
    lead(0);
    raw_open(raw, f.base);
    raw_say(raw, request);
    RUN_UNTIL(&f, f.leaders[0].held);
    leader_kill(&f.leaders[0]);
    forward_set_leader(f.forward, NULL);
    lead(1);
}

static void expect_repeated(const char *request, const char *body)
{
    struct raw raw;

    lose(&raw, request);
    RUN_UNTIL(&f, f.leaders[1].held || raw.got.len);
    assert_non_null(f.leaders[1].held);
    assert_string_equal(f.leaders[1].seen.data, body);
    request_reply(AQ_TAKE(f.leaders[1].held), 200, "text/plain", "second", 6);
    RUN_UNTIL(&f, raw_has(&raw, "second"));
    raw_close(&raw);
}

static void expect_refused(const char *request)
{
    struct raw raw;

    lose(&raw, request);
    RUN_UNTIL(&f, raw.got.len);
    assert_true(raw_has(&raw, "HTTP/1.1 502 "));
    assert_true(raw_has(&raw, "may have been processed"));
    assert_int_equal(f.leaders[1].count, 0);
    raw_close(&raw);
}

static void test_a_reading_request_goes_to_the_next_leader(void **state)
{
    (void)state;
    expect_repeated(REQUEST("GET /hold", ""), "");
}

static void test_a_request_with_a_key_goes_to_the_next_leader(void **state)
{
    (void)state;
    expect_repeated(REQUEST("POST /hold", "Idempotency-Key: k1\r\nContent-Length: 5\r\n") "hello",
                    "hello");
}

static void test_a_request_in_chunks_with_a_key_goes_to_the_next_leader(void **state)
{
    (void)state;
    expect_repeated(
        REQUEST(
            "POST /hold",
            "Idempotency-Key: k1\r\nTransfer-Encoding: chunked\r\n") "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
        "hello");
}

static void test_a_request_whose_answer_is_kept_goes_to_the_next_leader(void **state)
{
    (void)state;
    expect_repeated(REQUEST("POST /session", "Content-Length: 2\r\n") "{}", "{}");
}

static void test_a_request_that_waits_to_continue_goes_to_the_next_leader(void **state)
{
    struct raw raw;

    (void)state;
    lose(&raw, REQUEST("POST /upload", "Content-Length: 5\r\nExpect: 100-continue\r\n"));
    f.leaders[1].is_reading = true;
    RUN_UNTIL(&f, raw.got.len);
    assert_string_equal(raw.got.data, "HTTP/1.1 100 Continue\r\n\r\n");
    raw_say(&raw, "hello");
    RUN_UNTIL(&f, raw_has(&raw, "\r\n\r\n5"));
    raw_close(&raw);
}

static void test_a_changing_request_is_not_repeated(void **state)
{
    (void)state;
    expect_refused(REQUEST("POST /hold", "Content-Length: 5\r\n") "hello");
}

static void test_a_changing_request_without_a_body_is_not_repeated(void **state)
{
    (void)state;
    expect_refused(REQUEST("DELETE /hold", ""));
}

static void test_a_body_that_is_half_sent_is_not_repeated(void **state)
{
    f.leaders[0].is_reading = true;
    (void)state;
    expect_refused(REQUEST("POST /upload", "Content-Length: 50\r\n") "half");
}

static void test_a_body_that_is_too_long_to_keep_is_not_repeated(void **state)
{
    static char piece[256 << 10];
    struct raw raw;

    (void)state;
    standby_up(NULL);
    lead(0);
    f.leaders[0].is_reading = true;
    raw_open(&raw, f.base);
    raw_say(&raw, REQUEST("POST /upload",
                          "Idempotency-Key: k\r\nTransfer-Encoding: chunked\r\n") "c0001\r\n");
    for (int i = 0; i < 3; i++)
        assert_int_equal(stream_write(raw.stream, piece, sizeof(piece)), 0);
    RUN_UNTIL(&f, f.leaders[0].poured == 3 * sizeof(piece));
    leader_kill(&f.leaders[0]);
    lead(1);
    RUN_UNTIL(&f, raw.got.len);
    assert_true(raw_has(&raw, "HTTP/1.1 502 "));
    raw_close(&raw);
}

static void test_a_leader_that_hangs_is_left_when_another_leads(void **state)
{
    struct raw reading, changing;

    (void)state;
    standby_up(NULL);
    lead(0);
    raw_open(&reading, f.base);
    raw_say(&reading, REQUEST("GET /hold", ""));
    RUN_UNTIL(&f, f.leaders[0].held);
    raw_open(&changing, f.base);
    raw_say(&changing, REQUEST("POST /hold", "Content-Length: 1\r\n") "x");
    RUN_UNTIL(&f, f.leaders[0].count == 2);
    forward_set_leader(f.forward, NULL);
    for (int i = 0; i < 20; i++)
        (void)uv_run(&f.loop, UV_RUN_NOWAIT);
    assert_int_equal(reading.got.len + changing.got.len, 0); /* the same may lead still */
    lead(1);
    RUN_UNTIL(&f, changing.got.len && f.leaders[1].held);
    assert_true(raw_has(&changing, "HTTP/1.1 502 "));
    request_reply(AQ_TAKE(f.leaders[1].held), 200, "text/plain", "second", 6);
    RUN_UNTIL(&f, raw_has(&reading, "second"));
    raw_close(&reading);
    raw_close(&changing);
}

static void test_a_leader_that_comes_back_goes_on_with_its_requests(void **state)
{
    struct raw raw;

    (void)state;
    standby_up(NULL);
    lead(0);
    raw_open(&raw, f.base);
    raw_say(&raw, REQUEST("POST /hold", "Content-Length: 1\r\n") "x");
    RUN_UNTIL(&f, f.leaders[0].held);
    forward_set_leader(f.forward, NULL);
    lead(0);
    request_reply(AQ_TAKE(f.leaders[0].held), 200, "text/plain", "first", 5);
    RUN_UNTIL(&f, raw_has(&raw, "first"));
    assert_int_equal(f.leaders[0].count, 1);
    raw_close(&raw);
}

static void test_an_answer_that_has_begun_is_broken_off(void **state)
{
    struct raw raw;

    (void)state;
    lose(&raw, REQUEST("GET /part", ""));
    RUN_UNTIL(&f, raw.ended);
    assert_true(raw_has(&raw, "Content-Length: 10\r\n"));
    assert_int_equal(f.leaders[1].count, 0);
    raw_close(&raw);
}

static void test_an_event_stream_ends_with_its_leader(void **state)
{
    struct raw raw;

    (void)state;
    lose(&raw, REQUEST("GET /events", ""));
    RUN_UNTIL(&f, raw_has(&raw, "\r\n0\r\n\r\n"));
    raw_say(&raw, REQUEST("GET /echo", ""));
    RUN_UNTIL(&f, raw_has(&raw, "GET /echo")); /* of the next leader, on the same connection */
    raw_close(&raw);
}

static void test_an_event_stream_ends_when_another_leads(void **state)
{
    struct raw raw;

    (void)state;
    standby_up(NULL);
    lead(0);
    raw_open(&raw, f.base);
    raw_say(&raw, REQUEST("GET /events", ""));
    RUN_UNTIL(&f, raw_has(&raw, "event: one"));
    lead(1);
    RUN_UNTIL(&f, raw_has(&raw, "\r\n0\r\n\r\n") && f.leaders[0].gone);
    raw_close(&raw);
}

static void test_the_leader_hears_that_a_client_has_left(void **state)
{
    struct raw raw;

    (void)state;
    standby_up(NULL);
    lead(0);
    raw_open(&raw, f.base);
    raw_say(&raw, REQUEST("GET /hold", ""));
    RUN_UNTIL(&f, f.leaders[0].held);
    raw_close(&raw);
    RUN_UNTIL(&f, f.leaders[0].gone);
    f.leaders[0].gone = false;
    f.leaders[0].is_reading = true;
    raw_open(&raw, f.base);
    raw_say(&raw, REQUEST("POST /upload", "Content-Length: 50\r\n") "half");
    RUN_UNTIL(&f, f.leaders[0].poured == 4);
    raw_close(&raw);
    RUN_UNTIL(&f, f.leaders[0].gone);
}

/* ---- WebSockets ---- */

struct talk {
    struct websocket *ws;
    struct strbuf got;
    bool open, closed;
    uint16_t code;
};

static void talk_on_open(struct websocket *ws, void *data)
{
    (void)ws;
    ((struct talk *)data)->open = true;
}

static void talk_on_message(struct websocket *ws, bool is_text, const char *bytes, size_t len,
                            void *data)
{
    (void)ws;
    (void)is_text;
    strbuf_add(&((struct talk *)data)->got, bytes, len);
}

static void talk_on_close(struct websocket *ws, uint16_t code, const struct aq_error *err,
                          void *data)
{
    struct talk *talk = data;

    (void)ws;
    (void)err;
    talk->closed = true;
    talk->code = code;
}

/* A WebSocket to leader 0 that has said something; what ends it comes by 'end'. */
static void expect_restart(void (*end)(void))
{
    static const struct websocket_ops ops = { talk_on_open, talk_on_message, NULL, talk_on_close };
    struct client *client = client_new(&f.loop, &(struct client_options){ .tls = NULL });
    struct talk talk = { .got = STRBUF_INIT };
    char url[96];

    standby_up(NULL);
    lead(0);
    (void)snprintf(url, sizeof(url), "ws://%s/ws", f.base);
    assert_int_equal(websocket_connect(client, &(struct client_request){ .url = url },
                                       &(struct websocket_options){ .protocol = "echo" }, &ops,
                                       &talk, &talk.ws, NULL),
                     0);
    RUN_UNTIL(&f, talk.open);
    assert_int_equal(websocket_send(talk.ws, true, "hello", 5), 0);
    RUN_UNTIL(&f, talk.got.len == 5);
    end();
    RUN_UNTIL(&f, talk.closed);
    assert_int_equal(talk.code, 1012);
    client_free(client);
    strbuf_done(&talk.got);
}

static void end_by_kill(void)
{
    leader_kill(&f.leaders[0]);
}

static void end_by_change(void)
{
    lead(1);
}

static void test_a_websocket_is_closed_with_1012_when_its_leader_is_lost(void **state)
{
    (void)state;
    expect_restart(end_by_kill);
}

static void test_a_websocket_is_closed_with_1012_when_another_leads(void **state)
{
    (void)state;
    expect_restart(end_by_change);
}

/* ---- this manager leads ---- */

static void release(void)
{
    server_set_app(f.server, &f.app);
    forward_release(f.forward);
}

static void test_waiting_requests_are_answered_here_once_it_leads(void **state)
{
    struct raw raw;

    (void)state;
    standby_up(NULL);
    raw_open(&raw, f.base);
    raw_say(&raw,
            REQUEST("POST /echo", "Content-Length: 5\r\n") "hello" REQUEST("GET /echo?2", ""));
    for (int i = 0; i < 20; i++)
        (void)uv_run(&f.loop, UV_RUN_NOWAIT);
    release();
    RUN_UNTIL(&f, raw_has(&raw, "hello") && raw_has(&raw, "GET /echo?2"));
    raw_close(&raw);
}

static void test_requests_of_a_lost_leader_are_answered_here_once_it_leads(void **state)
{
    struct raw keyed, changing;

    (void)state;
    standby_up(NULL);
    lead(0);
    raw_open(&keyed, f.base);
    raw_say(&keyed, REQUEST("POST /session", "Content-Length: 5\r\n") "hello");
    RUN_UNTIL(&f, f.leaders[0].held);
    raw_open(&changing, f.base);
    raw_say(&changing, REQUEST("POST /hold", "Content-Length: 1\r\n") "x");
    RUN_UNTIL(&f, f.leaders[0].count == 2);
    release();
    RUN_UNTIL(&f, changing.got.len && f.leaders[1].held);
    assert_true(raw_has(&changing, "HTTP/1.1 502 "));
    assert_string_equal(f.leaders[1].seen.data, "hello");
    request_reply(AQ_TAKE(f.leaders[1].held), 200, "text/plain", "here", 4);
    RUN_UNTIL(&f, raw_has(&keyed, "here"));
    raw_close(&keyed);
    raw_close(&changing);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_answers_are_those_of_the_leader),
        T(test_the_leader_knows_the_client),
        T(test_bodies_are_framed_anew),
        T(test_a_client_waits_for_the_leader_to_continue),
        T(test_a_slow_reader_slows_the_leader_down),
        T(test_a_slow_leader_slows_an_upload_down),
        T(test_requests_wait_for_a_leader),
        T(test_waiting_is_bounded),
        T(test_a_leader_that_cannot_be_reached_is_tried_again),
        T(test_what_another_manager_passes_on_is_not_passed_on_again),
        T(test_a_reading_request_goes_to_the_next_leader),
        T(test_a_request_with_a_key_goes_to_the_next_leader),
        T(test_a_request_in_chunks_with_a_key_goes_to_the_next_leader),
        T(test_a_request_whose_answer_is_kept_goes_to_the_next_leader),
        T(test_a_request_that_waits_to_continue_goes_to_the_next_leader),
        T(test_a_changing_request_is_not_repeated),
        T(test_a_changing_request_without_a_body_is_not_repeated),
        T(test_a_body_that_is_half_sent_is_not_repeated),
        T(test_a_body_that_is_too_long_to_keep_is_not_repeated),
        T(test_a_leader_that_hangs_is_left_when_another_leads),
        T(test_a_leader_that_comes_back_goes_on_with_its_requests),
        T(test_an_answer_that_has_begun_is_broken_off),
        T(test_an_event_stream_ends_with_its_leader),
        T(test_an_event_stream_ends_when_another_leads),
        T(test_the_leader_hears_that_a_client_has_left),
        T(test_a_websocket_is_closed_with_1012_when_its_leader_is_lost),
        T(test_a_websocket_is_closed_with_1012_when_another_leads),
        T(test_waiting_requests_are_answered_here_once_it_leads),
        T(test_requests_of_a_lost_leader_are_answered_here_once_it_leads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
