/* SPDX-License-Identifier: Apache-2.0 */
/* Bad days: slow, silent, greedy and numerous clients. */
#include "net.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/sse.h"

#define BIG (16u << 20) /* bytes of an answer: more than the buffers of both sockets take */
#define HOST "Host: a\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

static struct net net;
static struct request *held;
static bool told_gone;

static void on_hello(struct request *req, void *data)
{
    (void)data;
    request_reply(req, 200, "text/plain", "hello", 5);
}

static void on_gone(struct request *req, void *data)
{
    (void)req;
    (void)data;
    told_gone = true;
}

static void on_hold(struct request *req, void *data)
{
    (void)data;
    held = req;
    request_set_gone(req, on_gone, NULL);
}

static void on_stream(struct request *req, void *data)
{
    on_hold(req, data);
    request_begin(req, 200, "text/plain", NULL, NULL);
}

static void on_big(struct request *req, void *data)
{
    static char big[BIG];

    (void)data;
    request_reply(req, 200, "text/plain", big, sizeof(big));
}

static void on_events(struct request *req, void *data)
{
    on_hold(req, data);
    sse_begin(req, NULL, NULL);
}

static const struct route routes[] = {
    { METHOD_GET, "/", 0, on_hello, NULL, "Hello", 0, 0 },
    { METHOD_POST, "/", 0, on_hello, NULL, "Hello", 0, 0 },
    { METHOD_GET, "/hold", 0, on_hold, NULL, "Hold", 0, 0 },
    { METHOD_GET, "/stream", 0, on_stream, NULL, "Stream", 0, 0 },
    { METHOD_GET, "/events", 0, on_events, NULL, "Events", 0, 0 },
    { METHOD_GET, "/big", 0, on_big, NULL, "Big", 0, 0 },
};

static void up(const struct server_limits *limits)
{
    held = NULL;
    told_gone = false;
    net_up(&net, routes, AQ_COUNT(routes), NULL, limits, NULL);
}

/* A new client is answered whatever the others do. */
static void check_served(void)
{
    struct raw raw;

    raw_open(&raw, &net);
    raw_say(&raw, GET("/"));
    RUN_UNTIL(&net, raw.ended || strstr(raw.got.data, "hello"));
    assert_non_null(strstr(raw.got.data, "HTTP/1.1 200 OK"));
    raw_close(&raw);
}

static size_t count_connections(void)
{
    struct server_stats stats;

    server_get_stats(net.server, &stats);
    return stats.connections;
}

/* Those who are there already are served between many that come at once. */
static void test_many_come_at_once(void **state)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fds[100];

    (void)state;
    up(NULL);
    to.sin_port = htons(listener_get_port(net.listener));
    for (size_t i = 0; i < AQ_COUNT(fds); i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fds[i], (struct sockaddr *)&to, sizeof(to)), 0);
    }
    (void)uv_run(&net.loop, UV_RUN_ONCE);
    assert_in_range(count_connections(), 1, 40);
    RUN_UNTIL(&net, count_connections() == AQ_COUNT(fds));
    for (size_t i = 0; i < AQ_COUNT(fds); i++)
        (void)close(fds[i]);
    RUN_UNTIL(&net, count_connections() == 0);
    net_down(&net);
}

static void test_slow_head(void **state)
{
    struct raw raw;

    (void)state;
    up(&(struct server_limits){ .head_msec = 40 });
    raw_open(&raw, &net);
    raw_say(&raw, "GET / HT");
    check_served();
    RUN_UNTIL(&net, raw.ended);
    assert_non_null(strstr(raw.got.data, "HTTP/1.1 408 Request Timeout"));
    assert_non_null(strstr(raw.got.data, "request-timeout"));
    raw_close(&raw);

    raw_open(&raw, &net); /* says nothing at all */
    RUN_UNTIL(&net, raw.ended);
    assert_string_equal(raw.got.data, "");
    raw_close(&raw);
    net_down(&net);
}

static void test_slow_body(void **state)
{
    struct raw raw;

    (void)state;
    up(&(struct server_limits){ .body_msec = 40 });
    raw_open(&raw, &net);
    raw_say(&raw, "POST / HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n012");
    check_served();
    RUN_UNTIL(&net, raw.ended);
    assert_non_null(strstr(raw.got.data, "HTTP/1.1 408 Request Timeout"));
    raw_close(&raw);
    net_down(&net);
}

static void test_idle(void **state)
{
    struct raw raw;

    (void)state;
    up(&(struct server_limits){ .idle_msec = 40 });
    raw_open(&raw, &net);
    raw_say(&raw, GET("/"));
    RUN_UNTIL(&net, raw.ended);
    assert_non_null(strstr(raw.got.data, "hello"));
    raw_close(&raw);
    net_down(&net);
}

/* A handler may think as long as it likes. */
static void test_slow_handler(void **state)
{
    struct raw raw, other;

    (void)state;
    up(&(struct server_limits){ .head_msec = 20, .idle_msec = 20, .body_msec = 20 });
    raw_open(&raw, &net);
    raw_say(&raw, GET("/hold"));
    RUN_UNTIL(&net, held);
    raw_open(&other, &net);
    RUN_UNTIL(&net, other.ended); /* some time has passed */
    assert_false(raw.ended);
    request_reply_empty(held, 204);
    RUN_UNTIL(&net, strstr(raw.got.data, "204 No Content"));
    raw_close(&other);
    raw_close(&raw);
    net_down(&net);
}

/* Somebody who never reads: bounded in memory, and dropped in the end. */
static void test_slow_reader(void **state)
{
    static char piece[65536];
    struct raw raw;
    size_t most = 0;
    int r = 0;

    (void)state;
    up(&(struct server_limits){ .write_msec = 60, .queue_max = 1 << 20 });
    raw_open(&raw, &net);
    raw_say(&raw, GET("/stream"));
    RUN_UNTIL(&net, held);
    stream_pause(raw.stream);
    for (int i = 0; i < 1000 && r == 0; i++) {
        r = request_write(held, piece, sizeof(piece));
        most = AQ_MAX(most, request_get_queued(held));
    }
    assert_int_equal(r, -ENOBUFS);
    assert_true(most <= (1 << 20) + 100);
    check_served();
    RUN_UNTIL(&net, told_gone);
    assert_int_equal(request_write(held, piece, 1), -EPIPE);
    request_end(held);
    raw_close(&raw);
    net_down(&net);
}

/* An event stream without events shows signs of life. */
static void test_silent_events(void **state)
{
    struct raw raw;

    (void)state;
    up(&(struct server_limits){ .keepalive_msec = 20 });
    raw_open(&raw, &net);
    raw_say(&raw, GET("/events"));
    RUN_UNTIL(&net, strstr(raw.got.data, "3\r\n:\n\n\r\n3\r\n:\n\n\r\n"));
    assert_non_null(strstr(raw.got.data, "Content-Type: text/event-stream\r\n"));
    request_end(held);
    RUN_UNTIL(&net, strstr(raw.got.data, "0\r\n\r\n"));
    raw_close(&raw);
    net_down(&net);
}

/* Asking again and again without reading the answers. */
static void test_greedy_pipeline(void **state)
{
    struct server_stats stats;
    struct raw raw;

    (void)state;
    up(&(struct server_limits){ .write_msec = 60 });
    raw_open(&raw, &net);
    stream_pause(raw.stream);
    for (int i = 0; i < 500; i++)
        raw_say(&raw, GET("/big"));
    do
        (void)uv_run(&net.loop, UV_RUN_ONCE), server_get_stats(net.server, &stats);
    while (stats.connections);
    assert_true(stats.requests < 20); /* most were never begun */
    raw_close(&raw);
    net_down(&net);
}

/* An answer is complete although the connection is closed after it. */
static void test_last_answer_whole(void **state)
{
    struct raw raw;

    (void)state;
    up(NULL);
    raw_open(&raw, &net);
    raw_say(&raw, "GET /big HTTP/1.1\r\n" HOST "Connection: close\r\n\r\nextra bytes");
    RUN_UNTIL(&net, raw.ended);
    assert_true(raw.got.len > 4 << 20);
    raw_close(&raw);
    net_down(&net);
}

static void test_body_without_end(void **state)
{
    static char chunk[65544];
    struct raw raw;

    (void)state;
    up(&(struct server_limits){ .message = { 8192, 32768, 100, 1 << 20 } });
    memcpy(chunk, "10000\r\n", 7);
    memset(chunk + 7, 'x', 65536);
    raw_open(&raw, &net);
    raw_say(&raw, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 100 && !raw.ended; i++) {
        (void)stream_write(raw.stream, chunk, 7 + 65536);
        (void)stream_write(raw.stream, "\r\n", 2);
        (void)uv_run(&net.loop, UV_RUN_NOWAIT);
    }
    RUN_UNTIL(&net, raw.ended);
    assert_non_null(strstr(raw.got.data, "HTTP/1.1 413 Payload Too Large"));
    check_served();
    raw_close(&raw);
    net_down(&net);
}

/* Each is within its limit, but all of them together are too much. */
static void test_many_bodies(void **state)
{
    static char part[600];
    struct raw raws[3];

    (void)state;
    up(&(struct server_limits){ .bodies_max = 1000 });
    memset(part, 'x', sizeof(part));
    for (size_t i = 0; i < 2; i++) {
        raw_open(&raws[i], &net);
        raw_say(&raws[i], "POST / HTTP/1.1\r\n" HOST "Content-Length: 601\r\n\r\n");
        (void)stream_write(raws[i].stream, part, sizeof(part));
        check_served();
    }
    RUN_UNTIL(&net, raws[1].ended);
    assert_non_null(strstr(raws[1].got.data, "HTTP/1.1 503 Service Unavailable"));
    assert_non_null(strstr(raws[1].got.data, "service-unavailable"));
    raw_say(&raws[0], "x");
    RUN_UNTIL(&net, strstr(raws[0].got.data, "hello"));

    raw_open(&raws[2], &net); /* there is room again */
    raw_say(&raws[2], "POST / HTTP/1.1\r\n" HOST "Content-Length: 600\r\n\r\n");
    (void)stream_write(raws[2].stream, part, sizeof(part));
    RUN_UNTIL(&net, strstr(raws[2].got.data, "hello"));
    for (size_t i = 0; i < 3; i++)
        raw_close(&raws[i]);
    net_down(&net);
}

/* What clients do not read is limited, too. */
static void test_many_unread_answers(void **state)
{
    struct raw raws[3];

    (void)state;
    up(&(struct server_limits){ .bodies_max = BIG + 1000 });
    for (size_t i = 0; i < 2; i++) {
        raw_open(&raws[i], &net);
        RUN_UNTIL(&net, raws[i].open);
        if (i == 0)
            stream_pause(raws[i].stream);
        raw_say(&raws[i], GET("/big"));
        check_served();
    }
    RUN_UNTIL(&net, strstr(raws[1].got.data ? raws[1].got.data : "", "you have not read"));
    assert_non_null(strstr(raws[1].got.data, "HTTP/1.1 429 Too Many Requests"));
    assert_non_null(strstr(raws[1].got.data, "rate-limit-exceeded"));
    stream_resume(raws[0].stream);
    RUN_UNTIL(&net, raws[0].got.len > BIG);
    check_served();

    raw_open(&raws[2], &net); /* there is room again */
    raw_say(&raws[2], GET("/big"));
    RUN_UNTIL(&net, raws[2].got.len > BIG);
    for (size_t i = 0; i < 3; i++)
        raw_close(&raws[i]);
    net_down(&net);
}

static void test_long_head(void **state)
{
    struct raw raw;

    (void)state;
    up(NULL);
    raw_open(&raw, &net);
    raw_say(&raw, "GET / HTTP/1.1\r\n" HOST);
    for (int i = 0; i < 10000 && !raw.ended; i++) {
        raw_say(&raw, "A: 0123456789012345678901234567890123456789\r\n");
        (void)uv_run(&net.loop, UV_RUN_NOWAIT);
    }
    RUN_UNTIL(&net, raw.ended);
    assert_non_null(strstr(raw.got.data, "HTTP/1.1 431 Request Header Fields Too Large"));
    raw_close(&raw);
    net_down(&net);
}

/* All places are taken by requests under way: 503. */
static void test_full(void **state)
{
    struct request *first = NULL;
    struct raw raws[3];

    (void)state;
    up(&(struct server_limits){ .connections_max = 2 });
    for (size_t i = 0; i < 2; i++) {
        first = held;
        held = NULL;
        raw_open(&raws[i], &net);
        raw_say(&raws[i], GET("/hold"));
        RUN_UNTIL(&net, held);
    }
    raw_open(&raws[2], &net);
    RUN_UNTIL(&net, raws[2].ended);
    assert_non_null(strstr(raws[2].got.data, "HTTP/1.1 503 Service Unavailable"));
    assert_non_null(strstr(raws[2].got.data, "service-unavailable"));
    request_reply_empty(held, 204); /* its connection is idle now and may make room */
    RUN_UNTIL(&net, strstr(raws[1].got.data, "204"));
    check_served();
    for (size_t i = 0; i < 3; i++)
        raw_close(&raws[i]);
    RUN_UNTIL(&net, told_gone);
    request_reply_empty(first, 204);
    net_down(&net);
}

/* Clients that have their answer and go on sending make room. */
static void test_lingering_crowd(void **state)
{
    struct server_stats stats;
    struct raw raws[3];

    (void)state;
    up(&(struct server_limits){ .connections_max = 2 });
    for (size_t i = 0; i < AQ_COUNT(raws); i++) {
        raw_open(&raws[i], &net);
        raw_say(&raws[i], "POST /nothing HTTP/1.1\r\n" HOST "Connection: close\r\n"
                          "Content-Length: 1000000\r\n\r\nx");
        RUN_UNTIL(&net, memmem(raws[i].got.data, raws[i].got.len, "HTTP/1.1 404", 12));
    }
    check_served();
    server_get_stats(net.server, &stats);
    assert_int_equal(stats.refused, 0);
    for (size_t i = 0; i < AQ_COUNT(raws); i++)
        raw_close(&raws[i]);
    net_down(&net);
}

/* What was asked before the stop is answered; then the connection ends by itself. */
static void test_stop_while_flushing(void **state)
{
    struct server_stats stats;
    struct raw raw;

    (void)state;
    up(NULL);
    raw_open(&raw, &net);
    stream_pause(raw.stream);
    raw_say(&raw, GET("/big"));
    raw_say(&raw, GET("/hold"));
    do
        (void)uv_run(&net.loop, UV_RUN_ONCE), server_get_stats(net.server, &stats);
    while (!stats.requests);
    server_stop(net.server, 600000, net_on_stopped, &net);
    stream_resume(raw.stream);
    RUN_UNTIL(&net, held);
    request_reply_empty(held, 204);
    RUN_UNTIL(&net, raw.ended);
    assert_non_null(memmem(raw.got.data, raw.got.len, "HTTP/1.1 204", 12));
    raw_close(&raw);
    RUN_UNTIL(&net, net.stopped);
    net.stopped = false;
    net_down(&net);
}

/* Thousands who connect and say nothing: the oldest make room. */
static void test_idle_crowd(void **state)
{
    enum { CROWD = 5000, PLACES = 500 };
    struct rlimit files;
    struct server_stats stats;
    struct raw *raws = calloc(CROWD, sizeof(*raws));
    size_t crowd = CROWD;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < CROWD + PLACES + 100)
        crowd = (size_t)files.rlim_cur - PLACES - 100;
    print_message("# crowd of %zu\n", crowd);
    up(&(struct server_limits){ .connections_max = PLACES, .head_msec = 600000 });
    for (size_t i = 0; i < crowd; i++)
        raw_open(&raws[i], &net);
    check_served();
    server_get_stats(net.server, &stats);
    assert_true(stats.connections <= PLACES);
    assert_int_equal(stats.refused, 0);
    for (size_t i = 0; i < crowd; i++)
        raw_close(&raws[i]);
    free(raws);
    net_down(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_come_at_once), cmocka_unit_test(test_slow_head),
        cmocka_unit_test(test_slow_body),         cmocka_unit_test(test_idle),
        cmocka_unit_test(test_slow_handler),      cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_greedy_pipeline),   cmocka_unit_test(test_silent_events),
        cmocka_unit_test(test_last_answer_whole), cmocka_unit_test(test_body_without_end),
        cmocka_unit_test(test_many_bodies),       cmocka_unit_test(test_many_unread_answers),
        cmocka_unit_test(test_long_head),         cmocka_unit_test(test_full),
        cmocka_unit_test(test_lingering_crowd),   cmocka_unit_test(test_stop_while_flushing),
        cmocka_unit_test(test_idle_crowd),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
