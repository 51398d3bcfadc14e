/* SPDX-License-Identifier: Apache-2.0 */
/* The client against our server and against servers that misbehave. */
#include "net.h"

#include <unistd.h>

#include "certs.h"
#include "http/client_sync.h"
#include "http/sse.h"

static struct request *held;

static void on_echo(struct request *req, void *data)
{
    const char *later = request_get_query(req, "status");
    size_t len;
    const char *body = request_get_body(req, &len);

    (void)data;
    request_add_header(req, "X-Method", method_name(request_get_method(req)));
    request_reply(req, later ? atoi(later) : 200, "text/plain", body, len);
}

static void on_hold(struct request *req, void *data)
{
    (void)data;
    held = req;
}

/* "count" pieces of 1000 bytes, as fast as the reader takes them. */
struct flow {
    size_t left;
};

static void pour(struct request *req, void *data)
{
    struct flow *flow = data;
    char piece[1000];

    memset(piece, 'x', sizeof(piece));
    while (flow->left && !request_get_queued(req)) {
        flow->left--;
        if (request_write(req, piece, sizeof(piece)) < 0)
            flow->left = 0;
    }
    if (!flow->left && !request_get_queued(req))
        request_end(req);
}

static void on_flow_gone(struct request *req, void *data)
{
    (void)data;
    request_end(req);
}

static void on_flow(struct request *req, void *data)
{
    struct flow *flow = arena_alloc(request_get_arena(req), sizeof(*flow));

    (void)data;
    flow->left = (size_t)atoi(request_get_query(req, "count"));
    request_set_gone(req, on_flow_gone, NULL);
    request_begin(req, 200, "text/plain", pour, flow);
    pour(req, flow);
}

static void on_upload_piece(struct request *req, const char *bytes, size_t len, int status,
                            void *data)
{
    size_t *total = data;
    char text[32];

    (void)bytes;
    *total += len;
    if (len)
        return;
    (void)snprintf(text, sizeof(text), "%zu %d", *total, status);
    request_reply(req, 200, "text/plain", text, strlen(text));
}

static void on_upload(struct request *req, void *data)
{
    (void)data;
    request_read_body(req, on_upload_piece, arena_alloc(request_get_arena(req), sizeof(size_t)));
}

static void on_events(struct request *req, void *data)
{
    (void)data;
    sse_begin(req, NULL, NULL);
    assert_int_equal(sse_send(req, "session_started", "7", "{\"a\":1}", 7), 0);
    assert_int_equal(sse_send(req, NULL, NULL, "two\nlines", 9), 0);
    request_end(req);
}

static const struct route routes[] = {
    { METHOD_GET, "/echo", 0, on_echo, NULL, "Echo", 0, 0 },
    { METHOD_POST, "/echo", 0, on_echo, NULL, "Echo", 0, 0 },
    { METHOD_DELETE, "/echo", 0, on_echo, NULL, "Echo", 0, 0 },
    { METHOD_GET, "/hold", 0, on_hold, NULL, "Never answer", 0, 0 },
    { METHOD_GET, "/flow", 0, on_flow, NULL, "Stream", 0, 0 },
    { METHOD_POST, "/upload", 0, on_upload, NULL, "Count", ROUTE_STREAM_BODY, UINT64_C(1) << 40 },
    { METHOD_GET, "/events", 0, on_events, NULL, "Events", 0, 0 },
};

static struct net net;
static struct client *client;

static void up(const struct client_options *options, const struct listener_options *listen)
{
    held = NULL;
    net_up(&net, routes, AQ_COUNT(routes), NULL, NULL, listen);
    client = client_new(&net.loop, options);
}

static void down(void)
{
    client_free(client);
    net_down(&net);
}

static void send_as(struct answer *answer, enum method method, const char *path, const char *body,
                    const char *owner)
{
    char url[128];
    struct client_request request = { .method = method, .url = url, .owner = owner };

    memset(answer, 0, sizeof(*answer));
    (void)snprintf(url, sizeof(url), "%s%s", net.base, path);
    request.body = body;
    request.body_len = body ? strlen(body) : 0;
    assert_int_equal(client_fetch(client, &request, answer_take, answer, NULL, NULL), 0);
    assert_false(answer->done);
}

static void send_one(struct answer *answer, enum method method, const char *path, const char *body)
{
    send_as(answer, method, path, body, NULL);
}

static void fetch(struct answer *answer, enum method method, const char *path, const char *body)
{
    send_one(answer, method, path, body);
    RUN_UNTIL(&net, answer->done);
}

/* Says what it is asked, and allows nothing but what 'data' says. */
static bool may_reach(void *data, const struct sockaddr *addr)
{
    return addr->sa_family == AF_INET && *(bool *)data;
}

static void test_may_reach(void **state)
{
    static const char *const hosts[] = { "127.0.0.1", "localhost", "127.1" };
    bool allowed = false;
    struct client_options options = { .may_reach = may_reach, .reach_data = &allowed };
    struct server_stats stats;
    struct answer answer;

    (void)state;
    up(&options, NULL);
    for (size_t i = 0; i < AQ_COUNT(hosts); i++) {
        AQ_CLEANUP(aq_freep) char *url = aq_format("http://%s%s/echo", hosts[i],
                                                   strrchr(net.base, ':'));
        struct client_request request = { .method = METHOD_GET, .url = url };

        memset(&answer, 0, sizeof(answer));
        assert_int_equal(client_fetch(client, &request, answer_take, &answer, NULL, NULL), 0);
        RUN_UNTIL(&net, answer.done);
        assert_int_equal(answer.err.code, EACCES);
    }
    server_get_stats(net.server, &stats);
    assert_int_equal(stats.connections_total, 0);
    allowed = true;
    fetch(&answer, METHOD_GET, "/echo", NULL);
    assert_int_equal(answer.status, 200);
    strbuf_done(&answer.body);
    down();
}

static void test_methods(void **state)
{
    struct server_stats stats;
    struct answer answer;

    (void)state;
    up(&(struct client_options){ 0 }, NULL);
    for (int i = 0; i < 5; i++) {
        fetch(&answer, METHOD_GET, "/echo", "with a body");
        assert_int_equal(answer.status, 200);
        assert_string_equal(answer.body.data, "with a body");
        strbuf_done(&answer.body);
        fetch(&answer, METHOD_DELETE, "/echo?status=404", "gone");
        assert_int_equal(answer.status, 404);
        assert_string_equal(answer.body.data, "gone");
        strbuf_done(&answer.body);
        fetch(&answer, METHOD_HEAD, "/echo", NULL);
        assert_int_equal(answer.status, 200);
        assert_int_equal(answer.body.len, 0);
        fetch(&answer, METHOD_POST, "/echo?status=204", NULL);
        assert_int_equal(answer.status, 204);
        fetch(&answer, METHOD_GET, "/flow?count=3", NULL);
        assert_int_equal(answer.body.len, 3000);
        strbuf_done(&answer.body);
    }
    server_get_stats(net.server, &stats);
    assert_int_equal(stats.connections_total, 1); /* kept and used again */
    assert_int_equal(stats.requests, 25);
    down();
}

static void test_large(void **state)
{
    AQ_CLEANUP(aq_freep) char *big = malloc(7000001);
    struct answer answer;

    (void)state;
    up(&(struct client_options){ 0 }, NULL);
    memset(big, 'b', 7000000);
    big[7000000] = '\0';
    fetch(&answer, METHOD_POST, "/echo", big);
    assert_int_equal(answer.status, 200);
    assert_int_equal(answer.body.len, 7000000);
    strbuf_done(&answer.body);
    fetch(&answer, METHOD_GET, "/flow?count=9000", NULL); /* beyond our own limit of 8 MiB */
    assert_int_equal(answer.err.code, EFBIG);
    down();
}

static void test_pool(void **state)
{
    struct answer answers[20];
    struct server_stats stats;

    (void)state;
    up(&(struct client_options){ .connections_max = 3 }, NULL);
    for (size_t i = 0; i < AQ_COUNT(answers); i++)
        send_one(&answers[i], METHOD_GET, "/echo", "x");
    for (size_t i = 0; i < AQ_COUNT(answers); i++) {
        RUN_UNTIL(&net, answers[i].done);
        assert_int_equal(answers[i].status, 200);
        strbuf_done(&answers[i].body);
    }
    server_get_stats(net.server, &stats);
    assert_int_equal(stats.connections_total, 3);
    down();
}

/* An owner of many that wait holds up those of few by one at a time. */
static void test_owners_take_turns(void **state)
{
    struct answer many[40], few[3];
    size_t done = 0;

    (void)state;
    up(&(struct client_options){ .connections_max = 1 }, NULL);
    for (size_t i = 0; i < AQ_COUNT(many); i++)
        send_as(&many[i], METHOD_GET, "/echo", "x", "a");
    send_as(&few[0], METHOD_GET, "/echo", "x", "b");
    send_as(&few[1], METHOD_GET, "/echo", "x", NULL);
    send_as(&few[2], METHOD_GET, "/echo", "x", "b");
    for (size_t i = 0; i < AQ_COUNT(few); i++) {
        RUN_UNTIL(&net, few[i].done);
        assert_int_equal(few[i].status, 200);
        strbuf_done(&few[i].body);
    }
    for (size_t i = 0; i < AQ_COUNT(many); i++)
        done += many[i].done;
    assert_in_range(done, 1, 5);
    for (size_t i = 0; i < AQ_COUNT(many); i++) {
        RUN_UNTIL(&net, many[i].done);
        assert_int_equal(many[i].status, 200);
        strbuf_done(&many[i].body);
    }
    down();
}

static void test_errors(void **state)
{
    struct answer answer;
    struct exchange *ex = NULL;
    char url[80];
    struct client_request request = { .url = url };
    static const char *const bad_headers[] = { "A: b", "A: b\r\n\r\n", "A: b\nC: d\r\n", "\r\n" };

    (void)state;
    up(&(struct client_options){ .answer_msec = 30 }, NULL);
    fetch(&answer, METHOD_GET, "/hold", NULL);
    assert_int_equal(answer.err.code, ETIMEDOUT);
    RUN_UNTIL(&net, request_is_gone(held));
    request_reply_empty(held, 204);

    (void)snprintf(url, sizeof(url), "http://127.0.0.1:1/"); /* nobody listens there */
    memset(&answer, 0, sizeof(answer));
    assert_int_equal(client_fetch(client, &request, answer_take, &answer, NULL, NULL), 0);
    RUN_UNTIL(&net, answer.done);
    assert_int_equal(answer.err.code, ECONNREFUSED);
    assert_non_null(strstr(answer.err.text, "127.0.0.1 port 1"));

    (void)snprintf(url, sizeof(url), "ftp://127.0.0.1/");
    assert_int_equal(client_fetch(client, &request, answer_take, &answer, NULL, NULL), -EINVAL);
    (void)snprintf(url, sizeof(url), "%s/echo", net.base);
    for (size_t i = 0; i < AQ_COUNT(bad_headers); i++) {
        request.headers = bad_headers[i];
        assert_row(client_fetch(client, &request, answer_take, &answer, NULL, NULL) == -EINVAL,
                   "%zu", i);
    }
    request.headers = NULL;
    assert_int_equal(client_fetch(client, &request, answer_take, &answer, &ex, NULL), 0);
    exchange_cancel(ex); /* nobody is told */
    send_one(&answer, METHOD_GET, "/echo", NULL);
    client_free(client);
    assert_int_equal(answer.err.code, ECANCELED);
    client = NULL;
    down();
}

/* ---- streaming ---- */

struct transfer {
    struct exchange *ex;
    size_t to_send, got;
    unsigned pauses;
    bool done;
    int status;
    struct strbuf text;
    struct aq_error err;
};

static void push(struct exchange *ex, void *data)
{
    struct transfer *t = data;
    char piece[5000];

    memset(piece, 'u', sizeof(piece));
    while (t->to_send && !exchange_get_queued(ex)) {
        size_t n = AQ_MIN(t->to_send, sizeof(piece));

        assert_int_equal(exchange_write(ex, piece, n), 0);
        t->to_send -= n;
        if (!t->to_send)
            assert_int_equal(exchange_finish(ex), 0);
    }
}

static void on_transfer_head(struct exchange *ex, const struct message_head *head, void *data)
{
    struct transfer *t = data;

    (void)ex;
    t->status = head->status;
}

static void on_transfer_body(struct exchange *ex, const char *bytes, size_t len, void *data)
{
    struct transfer *t = data;

    t->got += len;
    if (t->got < 100)
        strbuf_add(&t->text, bytes, len);
    if (t->pauses) {
        t->pauses--;
        exchange_pause(ex);
    }
}

static void on_transfer_end(struct exchange *ex, const struct aq_error *err, void *data)
{
    struct transfer *t = data;

    (void)ex;
    t->done = true;
    t->err = *err;
}

static const struct exchange_ops transfer_ops = {
    .on_head = on_transfer_head,
    .on_body = on_transfer_body,
    .on_end = on_transfer_end,
    .on_drain = push,
};

static void begin_transfer(struct transfer *t, struct client_request *request, const char *path)
{
    char url[128];

    (void)snprintf(url, sizeof(url), "%s%s", net.base, path);
    request->url = url;
    strbuf_init(&t->text);
    assert_int_equal(client_send(client, request, &transfer_ops, t, &t->ex, NULL), 0);
}

static void test_upload(void **state)
{
    struct transfer t = { .to_send = 20000000 };
    struct client_request request = { .method = METHOD_POST, .stream_body = true };

    (void)state;
    up(&(struct client_options){ 0 }, NULL);
    begin_transfer(&t, &request, "/upload");
    assert_int_equal(exchange_write(t.ex, "before", 6), 0); /* not connected yet */
    RUN_UNTIL(&net, t.done);
    assert_int_equal(t.status, 200);
    assert_string_equal(t.text.data, "20000006 0");
    strbuf_done(&t.text);
    down();
}

/* It took its wire when another exchange gave it back: the rest follows its first bytes. */
static void test_upload_that_waits(void **state)
{
    struct transfer t = { .to_send = 20000000 };
    struct client_request request = { .method = METHOD_POST, .stream_body = true };
    struct answer first;

    (void)state;
    up(&(struct client_options){ .connections_max = 1 }, NULL);
    send_one(&first, METHOD_GET, "/hold", NULL);
    RUN_UNTIL(&net, held);
    begin_transfer(&t, &request, "/upload");
    assert_int_equal(exchange_write(t.ex, "before", 6), 0);
    request_reply_empty(held, 204);
    RUN_UNTIL(&net, t.done);
    assert_int_equal(first.status, 204);
    assert_int_equal(t.status, 200);
    assert_string_equal(t.text.data, "20000006 0");
    strbuf_done(&t.text);
    strbuf_done(&first.body);
    down();
}

static void test_download_paused(void **state)
{
    struct transfer t = { .pauses = 50 };
    struct client_request request = { .method = METHOD_GET, .body_max = UINT64_MAX };

    (void)state;
    up(&(struct client_options){ 0 }, NULL);
    begin_transfer(&t, &request, "/flow?count=20000");
    while (!t.done) {
        (void)uv_run(&net.loop, UV_RUN_NOWAIT);
        if (!t.done)
            exchange_resume(t.ex);
    }
    assert_int_equal(t.got, 20000000);
    assert_int_equal(t.err.code, 0);
    down();
}

static int on_event(void *data, const struct sse_event *event)
{
    strbuf_addf(data, "%s|%s|%s;", event->event, event->id, event->data);
    return 0;
}

static void test_events(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf seen = STRBUF_INIT;
    AQ_CLEANUP(sse_reader_freep) struct sse_reader *reader = NULL;
    struct transfer t = { .to_send = 0 };
    struct client_request request = { .method = METHOD_GET };

    (void)state;
    up(&(struct client_options){ 0 }, NULL);
    begin_transfer(&t, &request, "/events");
    RUN_UNTIL(&net, t.done);
    reader = sse_reader_new(1000, on_event, &seen);
    assert_int_equal(sse_reader_feed(reader, t.text.data, t.text.len, NULL), 0);
    assert_string_equal(seen.data, "session_started|7|{\"a\":1};message|7|two\nlines;");
    strbuf_done(&t.text);
    down();
}

/* ---- other transports ---- */

static void on_waiting_never(struct listener *listener, void *data)
{
    (void)listener;
    (void)data;
}

/* Somebody has removed our socket and made another of its name. */
static void test_unix_socket_of_another_stays(void **state)
{
    const struct listener_options options = { .address = "unix:test_stays.sock" };
    struct listener *first, *second, *third;
    uv_loop_t loop;

    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(listener_new(&loop, &options, on_waiting_never, NULL, &first, NULL), 0);
    assert_int_equal(listener_new(&loop, &options, on_waiting_never, NULL, &third, NULL),
                     -EADDRINUSE);
    assert_int_equal(unlink("test_stays.sock"), 0);
    assert_int_equal(listener_new(&loop, &options, on_waiting_never, NULL, &second, NULL), 0);
    listener_close(first);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(access("test_stays.sock", F_OK), 0);
    listener_close(second);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(access("test_stays.sock", F_OK), -1);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void test_unix(void **state)
{
    struct listener_options listen = { .address = "unix:test_client.sock" };
    struct client_request request = {
        .url = "http://localhost/echo", .socket = listen.address, .body = "u", .body_len = 1
    };
    struct answer answer = { .done = false };
    mode_t before = umask(0177);
    struct stat st;

    (void)state;
    listen.mode = 0660;
    up(&(struct client_options){ 0 }, &listen);
    assert_int_equal(umask(before), 0177);
    assert_int_equal(stat("test_client.sock", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0660);
    assert_int_equal(client_fetch(client, &request, answer_take, &answer, NULL, NULL), 0);
    RUN_UNTIL(&net, answer.done);
    assert_int_equal(answer.status, 200);
    strbuf_done(&answer.body);
    down();
    assert_int_equal(access("test_client.sock", F_OK), -1);
}

static void test_https(void **state)
{
    struct cert ca = cert_make("CA", 1, NULL, -100, 1000);
    struct cert cert = cert_make("server", 2, &ca, -100, 1000);
    struct tls_options server_options = { .is_server = true,
                                          .cert_pem = cert.cert_pem,
                                          .key_pem = cert.key_pem };
    struct tls_options client_options = { .ca_pem = ca.cert_pem };
    struct listener_options listen = { .address = "127.0.0.1:0" };
    struct client_options options = { .tls = NULL };
    struct tls_context *own = NULL;
    AQ_CLEANUP(aq_freep) char *big = malloc(3000001);
    struct transfer t = { .pauses = 20 };
    struct client_request request = { .method = METHOD_GET, .body_max = UINT64_MAX };
    struct answer answer;

    (void)state;
    assert_int_equal(tls_context_new(&server_options, &own, NULL), 0);
    listen.tls = own;
    assert_int_equal(tls_context_new(&client_options, &options.tls, NULL), 0);
    up(&options, &listen);
    memset(big, 'b', 3000000);
    big[3000000] = '\0';
    for (int i = 0; i < 3; i++) {
        fetch(&answer, METHOD_POST, "/echo", big);
        assert_int_equal(answer.status, 200);
        assert_int_equal(answer.body.len, 3000000);
        strbuf_done(&answer.body);
    }
    begin_transfer(&t, &request, "/flow?count=5000");
    while (!t.done) {
        (void)uv_run(&net.loop, UV_RUN_NOWAIT);
        if (!t.done)
            exchange_resume(t.ex);
    }
    assert_int_equal(t.got, 5000000);
    down();
    tls_context_free(options.tls);
    tls_context_free(own);
    cert_done(&cert);
    cert_done(&ca);
}

/* ---- servers that misbehave ---- */

struct liar {
    const char *const *answers; /* one per request; NULL = hang up */
    size_t count, next;
    struct listener *listener;
    struct liar_conn {
        struct liar *liar;
        struct stream *stream;
    } conns[8];
    size_t conn_count;
};

static void liar_on_read(void *data, const char *bytes, size_t len)
{
    struct liar_conn *conn = data;
    struct liar *liar = conn->liar;
    const char *answer = liar->next < liar->count ? liar->answers[liar->next++] : NULL;

    (void)bytes;
    (void)len;
    if (answer)
        (void)stream_write(conn->stream, answer, strlen(answer));
    if (!answer || strstr(answer, "close\r\n")) {
        stream_close(conn->stream);
        conn->stream = NULL;
    }
}

static void liar_on_end(void *data, const struct aq_error *err)
{
    struct liar_conn *conn = data;

    (void)err;
    stream_close(conn->stream);
    conn->stream = NULL;
}

static void liar_on_waiting(struct listener *listener, void *data)
{
    static const struct stream_ops ops = { .on_read = liar_on_read, .on_end = liar_on_end };
    struct liar *liar = data;
    struct liar_conn *conn = &liar->conns[liar->conn_count++];

    conn->liar = liar;
    assert_int_equal(listener_accept(listener, &ops, conn, &conn->stream, NULL), 0);
}

/* Send 'count' requests one after the other; the last answer. */
static void ask_liar(const char *const *answers, size_t count, enum method method, size_t requests,
                     struct answer *answer)
{
    struct liar liar = { .answers = answers, .count = count };
    struct listener_options listen = { .address = "127.0.0.1:0" };
    char url[64];
    struct client_request request = { .method = method, .url = url };
    uv_loop_t *loop = &net.loop;

    assert_int_equal(uv_loop_init(loop), 0);
    assert_int_equal(listener_new(loop, &listen, liar_on_waiting, &liar, &liar.listener, NULL), 0);
    client = client_new(loop, &(struct client_options){ 0 });
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/", listener_get_port(liar.listener));
    for (size_t i = 0; i < requests; i++) {
        memset(answer, 0, sizeof(*answer));
        assert_int_equal(client_fetch(client, &request, answer_take, answer, NULL, NULL), 0);
        RUN_UNTIL(&net, answer->done);
        if (i + 1 < requests)
            strbuf_done(&answer->body);
    }
    client_free(client);
    listener_close(liar.listener);
    for (size_t i = 0; i < liar.conn_count; i++)
        stream_close(liar.conns[i].stream);
    (void)uv_run(loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(loop), 0);
}

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static void test_liars(void **state)
{
    static const struct {
        const char *what;
        enum method method;
        size_t requests;
        const char *answers[3];
        int code;
        const char *body;
    } rows[] = {
        { "honest", METHOD_GET, 3, { OK, OK, OK }, 0, "ok" },
        { "100 before the answer", METHOD_GET, 1, { "HTTP/1.1 100 Continue\r\n\r\n" OK }, 0, "ok" },
        { "until close",
          METHOD_GET,
          1,
          { "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok" },
          0,
          "ok" },
        { "kept connection hung up on: GET again", METHOD_GET, 2, { OK, NULL, OK }, 0, "ok" },
        { "kept connection hung up on: POST not",
          METHOD_POST,
          2,
          { OK, NULL, OK },
          ECONNRESET,
          "" },
        { "fresh connection hung up on", METHOD_GET, 1, { NULL, OK }, ECONNRESET, "" },
        { "more than said", METHOD_GET, 2, { OK "more", OK }, 0, "ok" },
        { "less than said",
          METHOD_GET,
          1,
          { "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nok" },
          ECONNRESET,
          "" },
        { "chunk cut off",
          METHOD_GET,
          1,
          { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n9\r\nok" },
          ECONNRESET,
          "" },
        { "two lengths",
          METHOD_GET,
          1,
          { "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok" },
          EBADMSG,
          "" },
        { "not HTTP", METHOD_GET, 1, { "220 mail ready\r\n\r\n" }, EBADMSG, "" },
        { "101 unasked",
          METHOD_GET,
          1,
          { "HTTP/1.1 101 Switching Protocols\r\n\r\n" },
          EPROTO,
          "" },
        { "huge",
          METHOD_GET,
          1,
          { "HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n" },
          EFBIG,
          "" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct answer answer;

        ask_liar(rows[i].answers, AQ_COUNT(rows[i].answers), rows[i].method, rows[i].requests,
                 &answer);
        assert_row(answer.err.code == rows[i].code, "%s: %d %s", rows[i].what, answer.err.code,
                   answer.err.text);
        assert_row(!strcmp(answer.body.data, rows[i].body), "%s: %s", rows[i].what,
                   answer.body.data);
        strbuf_done(&answer.body);
    }
}

/* ---- programs that wait ---- */

static uv_async_t stop_async;

static void on_stop_wanted(uv_async_t *async)
{
    uv_close((uv_handle_t *)async, NULL);
    uv_stop(&net.loop);
}

static void serve(void *data)
{
    (void)data;
    (void)uv_run(&net.loop, UV_RUN_DEFAULT);
}

static int take_two_pieces(void *data, const char *bytes, size_t len)
{
    unsigned *count = data;

    (void)bytes;
    (void)len;
    return ++*count == 2 ? 77 : 0;
}

static void test_sync(void **state)
{
    struct client_sync *cs = NULL;
    struct client_reply reply = CLIENT_REPLY_INIT;
    char url[128];
    struct client_request request = {
        .method = METHOD_POST, .url = url, .body = "abc", .body_len = 3
    };
    struct aq_error err = { .code = 0 };
    unsigned pieces = 0;
    uv_thread_t thread;

    (void)state;
    net_up(&net, routes, AQ_COUNT(routes), NULL, NULL, NULL);
    assert_int_equal(uv_async_init(&net.loop, &stop_async, on_stop_wanted), 0);
    assert_int_equal(uv_thread_create(&thread, serve, NULL), 0);
    assert_int_equal(client_sync_new(&(struct client_options){ 0 }, &cs, NULL), 0);
    (void)snprintf(url, sizeof(url), "%s/echo?status=201", net.base);
    assert_int_equal(client_sync_stream(cs, &request, NULL, NULL, &reply, &err), 0);
    assert_int_equal(reply.status, 201);
    assert_string_equal(reply.content_type, "text/plain");
    assert_string_equal(reply.body.data, "abc");
    assert_non_null(strstr(reply.headers.data, "X-Method: POST\n"));
    client_reply_done(&reply);

    (void)snprintf(url, sizeof(url), "%s/flow?count=100000", net.base);
    request = (struct client_request){ .url = url, .body_max = UINT64_MAX };
    assert_int_equal(client_sync_stream(cs, &request, take_two_pieces, &pieces, &reply, &err), 77);
    assert_int_equal(reply.status, 200);
    client_reply_done(&reply);

    (void)snprintf(url, sizeof(url), "%s/nowhere", net.base);
    assert_int_equal(client_sync_stream(cs, &request, take_two_pieces, &pieces, &reply, &err), 0);
    assert_int_equal(reply.status, 404);
    assert_non_null(strstr(reply.body.data, "url-not-found"));
    client_reply_done(&reply);

    (void)snprintf(url, sizeof(url), "http://127.0.0.1:1/");
    assert_int_equal(client_sync_stream(cs, &request, NULL, NULL, &reply, &err), -ECONNREFUSED);
    client_sync_free(cs);
    assert_int_equal(uv_async_send(&stop_async), 0);
    assert_int_equal(uv_thread_join(&thread), 0);
    net_down(&net);
}

/* ---- a peer that resets the connection ---- */

struct last_words {
    struct strbuf got;
    bool is_open, is_ended;
    struct aq_error err;
};

static void last_words_on_open(void *data)
{
    ((struct last_words *)data)->is_open = true;
}

static void last_words_on_read(void *data, const char *bytes, size_t len)
{
    strbuf_add(&((struct last_words *)data)->got, bytes, len);
}

static void last_words_on_end(void *data, const struct aq_error *err)
{
    struct last_words *words = data;

    words->is_ended = true;
    words->err = *err;
}

/* What it said before is read, although writing fails first. */
static void test_last_words(void **state)
{
    static const struct stream_ops ops = { .on_open = last_words_on_open,
                                           .on_read = last_words_on_read,
                                           .on_end = last_words_on_end,
                                           .hears_out = true };
    const struct linger reset = { .l_onoff = 1 };
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), peer;
    struct last_words words = { .got = STRBUF_INIT };
    struct aq_error err = { 0 };
    socklen_t len = sizeof(at);
    struct address address;
    struct stream *stream;
    char text[32];
    uv_loop_t loop;

    (void)state;
    assert_int_equal(bind(listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    (void)snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(at.sin_port));
    assert_int_equal(address_parse(text, 0, &address, &err), 0);
    (void)uv_loop_init(&loop);
    assert_int_equal(
        stream_connect(&loop, &address, &(struct stream_options){ 0 }, &ops, &words, &stream, &err),
        0);
    while (!words.is_open)
        (void)uv_run(&loop, UV_RUN_ONCE);
    peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_int_equal(write(peer, "this is why", 11), 11);
    assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
    (void)close(peer);
    (void)stream_write(stream, "more", 4);
    while (!words.is_ended)
        (void)uv_run(&loop, UV_RUN_ONCE);
    assert_string_equal(words.got.data, "this is why");
    assert_int_not_equal(words.err.code, 0);
    stream_close(stream);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    strbuf_done(&words.got);
    (void)close(listener);
}

/* ---- several servers of the same ---- */

struct outcomes {
    int count, status;
    bool was_sent;
    uint16_t port;
};

static void note_outcome(void *data, const struct client_outcome *outcome)
{
    struct outcomes *seen = data;

    seen->count++;
    seen->status = outcome->status;
    seen->was_sent = outcome->was_sent;
    seen->port = outcome->address->port;
}

static void ask(struct answer *answer, const char *url)
{
    const struct client_request request = { .method = METHOD_GET, .url = url };

    memset(answer, 0, sizeof(*answer));
    assert_int_equal(client_fetch(client, &request, answer_take, answer, NULL, NULL), 0);
}

static void test_outcomes(void **state)
{
    struct outcomes seen = { 0 };
    const struct client_options options = { .on_outcome = note_outcome, .outcome_data = &seen };
    struct answer answer;
    struct url url;

    (void)state;
    up(&options, NULL);
    assert_int_equal(url_parse(net.base, &url, NULL), 0);
    fetch(&answer, METHOD_POST, "/echo?status=503", "x");
    strbuf_done(&answer.body);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.status, 503);
    assert_true(seen.was_sent);
    assert_int_equal(seen.port, url.address.port);
    ask(&answer, "http://127.0.0.1:1/");
    RUN_UNTIL(&net, answer.done);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.status, 0);
    assert_false(seen.was_sent);
    assert_int_equal(seen.port, 1);
    down();
    assert_int_equal(seen.count, 2);
}

/* What was asked ends; what is asked from then on does not. */
static void test_break(void **state)
{
    struct answer first, second;
    struct aq_error gone = { 0 };
    char hold[128];
    struct url url;

    (void)state;
    up(&(struct client_options){ 0 }, NULL);
    (void)snprintf(hold, sizeof(hold), "%s/hold", net.base);
    assert_int_equal(url_parse(net.base, &url, NULL), 0);
    ask(&first, hold);
    RUN_UNTIL(&net, held);
    (void)aq_fail(&gone, ECONNRESET, "gone");
    client_break(client, &url.address, &gone);
    assert_true(first.done);
    assert_int_equal(first.err.code, ECONNRESET);
    RUN_UNTIL(&net, request_is_gone(held));
    request_reply_empty(held, 204);
    held = NULL;
    ask(&second, hold);
    RUN_UNTIL(&net, held);
    url.address.port++;
    client_break(client, &url.address, &gone);
    assert_false(second.done);
    request_reply_empty(held, 204);
    RUN_UNTIL(&net, second.done);
    assert_int_equal(second.status, 204);
    strbuf_done(&second.body);
    down();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_may_reach),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_owners_take_turns),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_upload),
        cmocka_unit_test(test_upload_that_waits),
        cmocka_unit_test(test_download_paused),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_unix),
        cmocka_unit_test(test_unix_socket_of_another_stays),
        cmocka_unit_test(test_https),
        cmocka_unit_test(test_liars),
        cmocka_unit_test(test_sync),
        cmocka_unit_test(test_last_words),
        cmocka_unit_test(test_outcomes),
        cmocka_unit_test(test_break),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
