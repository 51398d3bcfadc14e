/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket on both sides, and servers that refuse. */
#include "net.h"

#include "http/websocket.h"

#define HOST "Host: a\r\n"
#define GOOD                                                                     \
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

/* One end of a connection. */
struct end {
    struct websocket *ws;
    struct strbuf got;
    size_t bytes, messages;
    bool opened, closed, drained;
    uint16_t code;
    struct aq_error err;
};

static struct net net;
static struct client *client;
static struct end served, asked;

static void on_message(struct websocket *ws, bool is_text, const char *bytes, size_t len,
                       void *data)
{
    struct end *end = data;

    end->messages++;
    end->bytes += len;
    if (len < 100)
        strbuf_addf(&end->got, "%c%.*s;", is_text ? 't' : 'b', (int)len, bytes);
    if (end != &served)
        return;
    if (len == 3 && !memcmp(bytes, "bye", 3))
        websocket_close(ws, WEBSOCKET_GOING_AWAY, "as you wish");
    else if (len == 5 && !memcmp(bytes, "abort", 5)) {
        websocket_abort(ws);
        end->closed = true;
    } else
        assert_int_equal(websocket_send(ws, is_text, bytes, len), 0);
}

static void on_open(struct websocket *ws, void *data)
{
    struct end *end = data;

    assert_ptr_equal(ws, end->ws);
    end->opened = true;
}

static void on_drain(struct websocket *ws, void *data)
{
    (void)ws;
    ((struct end *)data)->drained = true;
}

static void on_close(struct websocket *ws, uint16_t code, const struct aq_error *err, void *data)
{
    struct end *end = data;

    assert_ptr_equal(ws, end->ws);
    assert_false(end->closed);
    end->closed = true;
    end->code = code;
    end->err = *err;
}

static const struct websocket_ops end_ops = { on_open, on_message, on_drain, on_close };
static struct websocket_options server_options;

static void on_ws(struct request *req, void *data)
{
    struct aq_error err = { .code = 0 };

    (void)data;
    if (websocket_accept(req, &server_options, &end_ops, &served, &served.ws, &err) < 0)
        request_fail(req, &err);
}

static const struct route routes[] = {
    { METHOD_GET, "/ws", 0, on_ws, NULL, "Echo", 0, 0 },
};

static void connect_to(const char *path, const struct websocket_options *options)
{
    char url[128];
    struct client_request request = { .url = url };

    (void)snprintf(url, sizeof(url), "ws%s%s", net.base + 4, path);
    assert_int_equal(
        websocket_connect(client, &request, options, &end_ops, &asked, &asked.ws, NULL), 0);
}

static void up(const struct websocket_options *server, const struct websocket_options *own,
               const char *path)
{
    memset(&served, 0, sizeof(served));
    memset(&asked, 0, sizeof(asked));
    strbuf_init(&served.got);
    strbuf_init(&asked.got);
    server_options = server ? *server : (struct websocket_options){ 0 };
    net_up(&net, routes, AQ_COUNT(routes), NULL, NULL, NULL);
    client = client_new(&net.loop, &(struct client_options){ 0 });
    connect_to(path, own ? own : &(struct websocket_options){ 0 });
    RUN_UNTIL(&net, asked.opened || asked.closed);
}

static void down(void)
{
    client_free(client);
    net_down(&net);
    strbuf_done(&served.got);
    strbuf_done(&asked.got);
}

static void test_echo(void **state)
{
    (void)state;
    up(NULL, &(struct websocket_options){ .protocol = "chat" }, "/ws");
    assert_true(asked.opened);
    assert_int_equal(websocket_send(asked.ws, true, "hello", 5), 0);
    assert_int_equal(websocket_send(asked.ws, false, "\x01\x02", 2), 0);
    assert_int_equal(websocket_send(asked.ws, true, "", 0), 0);
    RUN_UNTIL(&net, asked.messages == 3);
    assert_string_equal(asked.got.data, "thello;b\x01\x02;t;");
    websocket_close(asked.ws, WEBSOCKET_NORMAL, "done");
    assert_int_equal(websocket_send(asked.ws, true, "x", 1), -EPIPE);
    RUN_UNTIL(&net, asked.closed && served.closed);
    assert_int_equal(served.code, WEBSOCKET_NORMAL);
    assert_int_equal(asked.code, WEBSOCKET_NORMAL);
    assert_int_equal(asked.err.code, 0);
    down();
}

static void test_server_closes(void **state)
{
    (void)state;
    up(NULL, NULL, "/ws");
    assert_int_equal(websocket_send(asked.ws, true, "bye", 3), 0);
    RUN_UNTIL(&net, asked.closed && served.closed);
    assert_int_equal(asked.code, WEBSOCKET_GOING_AWAY);
    down();
}

static void test_abort(void **state)
{
    (void)state;
    up(NULL, NULL, "/ws");
    assert_int_equal(websocket_send(asked.ws, true, "abort", 5), 0);
    RUN_UNTIL(&net, asked.closed);
    assert_int_equal(asked.code, WEBSOCKET_ABNORMAL);
    assert_int_equal(asked.err.code, ECONNRESET);
    down();
}

static void test_large(void **state)
{
    AQ_CLEANUP(aq_freep) char *big = calloc(1, 900000);

    (void)state;
    up(NULL, NULL, "/ws");
    for (int i = 0; i < 5; i++)
        assert_int_equal(websocket_send(asked.ws, false, big, 900000), 0);
    RUN_UNTIL(&net, asked.messages == 5);
    assert_int_equal(asked.bytes, 4500000);
    assert_true(asked.drained);
    websocket_abort(asked.ws);
    RUN_UNTIL(&net, served.closed);
    down();
}

static void test_too_big(void **state)
{
    (void)state;
    up(&(struct websocket_options){ .message_max = 10 }, NULL, "/ws");
    assert_int_equal(websocket_send(asked.ws, true, "0123456789", 10), 0);
    assert_int_equal(websocket_send(asked.ws, true, "0123456789a", 11), 0);
    RUN_UNTIL(&net, asked.closed && served.closed);
    assert_int_equal(asked.code, WEBSOCKET_TOO_BIG);
    assert_string_equal(asked.err.text,
                        "the message exceeds 10 bytes, the limit here; send smaller ones");
    assert_int_equal(served.messages, 1);
    down();
}

static void test_not_utf8(void **state)
{
    (void)state;
    up(NULL, NULL, "/ws");
    assert_int_equal(websocket_send(asked.ws, true, "\xff\xfe", 2), 0);
    RUN_UNTIL(&net, asked.closed && served.closed);
    assert_int_equal(asked.code, 1007);
    assert_string_equal(asked.err.text, "the text is not valid UTF-8");
    down();
}

static void test_slow_reader(void **state)
{
    static char piece[65536];
    int r = 0;

    (void)state;
    up(&(struct websocket_options){ .queue_max = 1 << 20 }, NULL, "/ws");
    assert_int_equal(websocket_send(asked.ws, true, "x", 1), 0);
    RUN_UNTIL(&net, served.messages);
    websocket_pause(asked.ws);
    for (int i = 0; i < 1000 && r == 0; i++)
        r = websocket_send(served.ws, false, piece, sizeof(piece));
    assert_int_equal(r, -ENOBUFS);
    assert_true(websocket_get_queued(served.ws) <= (1 << 20) + 1000);
    websocket_resume(asked.ws);
    RUN_UNTIL(&net, served.drained);
    websocket_abort(asked.ws);
    RUN_UNTIL(&net, served.closed);
    down();
}

/* Silence is broken by pings; a peer that does not answer them is dropped. */
static void test_ping(void **state)
{
    struct raw raw;

    (void)state;
    up(&(struct websocket_options){ .ping_msec = 20 }, NULL, "/ws");
    raw_open(&raw, &net);
    /* our client answers pings: many silences later it is still there */
    raw_say(&raw, "GET /ws HTTP/1.1\r\n" HOST GOOD "\r\n");
    websocket_abort(asked.ws);
    RUN_UNTIL(&net, served.closed);
    served.closed = false;
    RUN_UNTIL(&net, served.closed); /* the raw one answers nothing */
    assert_int_equal(served.code, WEBSOCKET_ABNORMAL);
    assert_int_equal(served.err.code, ETIMEDOUT);
    RUN_UNTIL(&net, raw.ended);
    assert_non_null(strstr(raw.got.data, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    assert_non_null(memmem(raw.got.data, raw.got.len, "\r\n\r\n\x89\x00", 6));
    raw_close(&raw);
    down();
}

static void test_pong(void **state)
{
    uint64_t start;

    (void)state;
    up(&(struct websocket_options){ .ping_msec = 10 },
       &(struct websocket_options){ .ping_msec = 1000000 }, "/ws");
    start = uv_now(&net.loop);
    RUN_UNTIL(&net, uv_now(&net.loop) > start + 100);
    assert_false(served.closed);
    websocket_abort(asked.ws);
    RUN_UNTIL(&net, served.closed);
    down();
}

/* Whom nobody listens to is not silent. */
static void test_paused(void **state)
{
    uint64_t start;

    (void)state;
    up(&(struct websocket_options){ .ping_msec = 10 },
       &(struct websocket_options){ .ping_msec = 1000000 }, "/ws");
    websocket_pause(served.ws);
    start = uv_now(&net.loop);
    RUN_UNTIL(&net, uv_now(&net.loop) > start + 100);
    assert_false(served.closed);
    websocket_resume(served.ws);
    websocket_abort(asked.ws);
    RUN_UNTIL(&net, served.closed);
    down();
}

static void test_refused(void **state)
{
    static const struct {
        const char *what, *request, *wants;
    } rows[] = {
        { "no upgrade", "GET /ws HTTP/1.1\r\n" HOST "\r\n", "400 Bad Request" },
        { "other version",
          "GET /ws HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n"
          "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
          "Sec-WebSocket-Version: 13" },
        { "bad key",
          "GET /ws HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n"
          "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhl\r\n\r\n",
          "400 Bad Request" },
        { "a body", "GET /ws HTTP/1.1\r\n" HOST GOOD "Content-Length: 1\r\n\r\nx",
          "400 Bad Request" },
        { "HTTP/1.0", "GET /ws HTTP/1.0\r\n" GOOD "\r\n", "400 Bad Request" },
    };

    (void)state;
    up(NULL, NULL, "/ws");
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct raw raw;

        raw_open(&raw, &net);
        raw_say(&raw, rows[i].request);
        RUN_UNTIL(&net, strstr(raw.got.data, "error_code"));
        assert_row(strstr(raw.got.data, rows[i].wants), "%s: %s", rows[i].what, raw.got.data);
        raw_close(&raw);
    }
    websocket_abort(asked.ws);
    RUN_UNTIL(&net, served.closed);
    down();

    up(NULL, NULL, "/nowhere");
    assert_false(asked.opened);
    assert_int_equal(asked.code, WEBSOCKET_ABNORMAL);
    assert_non_null(strstr(asked.err.text, "404"));
    down();
}

/* Frames that come in the same packet as the handshake. */
static void test_early_frames(void **state)
{
    static const char frames[] = "GET /ws HTTP/1.1\r\n" HOST GOOD "\r\n"
                                 "\x81\x82\x01\x01\x01\x01ij\x88\x80\x01\x01\x01\x01";
    struct raw raw;

    (void)state;
    up(NULL, NULL, "/ws");
    websocket_abort(asked.ws);
    RUN_UNTIL(&net, served.closed);
    served.closed = false;
    raw_open(&raw, &net);
    (void)stream_write(raw.stream, frames, sizeof(frames) - 1);
    RUN_UNTIL(&net, served.closed);
    assert_string_equal(served.got.data, "thk;");
    assert_int_equal(served.code, WEBSOCKET_NO_STATUS);
    RUN_UNTIL(&net, raw.ended);
    assert_non_null(memmem(raw.got.data, raw.got.len, "\x81\x02hk\x88\x00", 6));
    raw_close(&raw);
    down();
}

/* So many of them that the first read does not take all. */
static void test_many_early_frames(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct raw raw;

    (void)state;
    up(&(struct websocket_options){ .queue_max = 64 << 20 }, NULL, "/ws");
    websocket_abort(asked.ws);
    RUN_UNTIL(&net, served.closed);
    served.closed = false;
    strbuf_adds(&text, "GET /ws HTTP/1.1\r\n" HOST GOOD "\r\n");
    for (int i = 0; i < 30000; i++) {
        unsigned char frame[] = { 0x82, 0x84, 0, 0, 0, 0, 0, 0, 0, 0 };

        memcpy(frame + 6, &i, sizeof(i));
        strbuf_add(&text, frame, sizeof(frame));
    }
    raw_open(&raw, &net);
    (void)stream_write(raw.stream, text.data, text.len);
    RUN_UNTIL(&net, served.messages == 30000 || served.closed);
    assert_false(served.closed);
    assert_int_equal(served.bytes, 120000);
    raw_close(&raw);
    RUN_UNTIL(&net, served.closed);
    down();
}

static void test_server_stops(void **state)
{
    (void)state;
    up(NULL, NULL, "/ws");
    net_down(&net);
    /* net_down() ran the loop until nothing was left */
    assert_true(served.closed);
    assert_int_equal(served.err.code, ECONNRESET);
    assert_true(asked.closed);
    client_free(client);
    strbuf_done(&served.got);
    strbuf_done(&asked.got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_echo),         cmocka_unit_test(test_server_closes),
        cmocka_unit_test(test_abort),        cmocka_unit_test(test_large),
        cmocka_unit_test(test_too_big),      cmocka_unit_test(test_not_utf8),
        cmocka_unit_test(test_slow_reader),  cmocka_unit_test(test_ping),
        cmocka_unit_test(test_pong),         cmocka_unit_test(test_refused),
        cmocka_unit_test(test_paused),       cmocka_unit_test(test_refused),
        cmocka_unit_test(test_early_frames), cmocka_unit_test(test_many_early_frames),
        cmocka_unit_test(test_server_stops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
