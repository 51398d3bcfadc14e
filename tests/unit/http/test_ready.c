/* SPDX-License-Identifier: Apache-2.0 */
/* A turn of the loop does so much for connections, and clients take turns. */
#include "net.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CROWD 40
#define GET_AS(who) "GET / HTTP/1.1\r\nHost: a\r\nX-Client: " who "\r\n\r\n"

static struct net net;
static struct strbuf order; /* a letter of the client for each request handled */
static size_t admitted;     /* requests, handled or not */

static int64_t cpu_nsec(void)
{
    struct timespec now;

    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Takes more than the time of a turn. */
static void on_dear(struct request *req, void *data)
{
    int64_t end = cpu_nsec() + 2000000;

    (void)data;
    strbuf_add(&order, request_get_header(req, "X-Client"), 1);
    while (cpu_nsec() < end)
        continue;
    request_reply_empty(req, 204);
}

static const struct route routes[] = { { METHOD_GET, "/", 0, on_dear, NULL, "Dear", 0, 0 } };

static int guard(struct request *req, const struct route *route, void *data, struct aq_error *err)
{
    (void)route;
    (void)data;
    admitted++;
    return request_set_client(req, request_get_header(req, "X-Client"), err);
}

static int set_up(void **state)
{
    (void)state;
    strbuf_init(&order);
    admitted = 0;
    net_up_guarded(&net, routes, AQ_COUNT(routes), guard);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    net_down(&net);
    strbuf_done(&order);
    return 0;
}

static size_t count_connections(void)
{
    struct server_stats stats;

    server_get_stats(net.server, &stats);
    return stats.connections;
}

/* Connections of one client that all ask in the same turn, and the last of another's. */
static void ask_at_once(struct raw *raws, size_t count)
{
    for (size_t i = 0; i < count; i++)
        raw_open(&raws[i], &net);
    RUN_UNTIL(&net, count_connections() == count);
    for (size_t i = 0; i + 1 < count; i++)
        raw_say(&raws[i], GET_AS("a"));
    raw_say(&raws[count - 1], GET_AS("b"));
}

/* No turn handles more than a few, until 'count' are handled. */
static void check_turns(size_t count)
{
    while (order.len < count) {
        size_t before = order.len;

        (void)uv_run(&net.loop, UV_RUN_NOWAIT);
        assert_in_range(order.len - before, 0, 2);
    }
}

static void test_one_goes_before_the_crowd_of_another(void **state)
{
    struct raw raws[CROWD + 1];

    (void)state;
    ask_at_once(raws, AQ_COUNT(raws));
    check_turns(AQ_COUNT(raws));
    assert_in_range(strchr(order.data, 'b') - order.data, 0, CROWD / 2);
    for (size_t i = 0; i < AQ_COUNT(raws); i++) {
        RUN_UNTIL(&net, strstr(raws[i].got.data, "204"));
        raw_close(&raws[i]);
    }
    RUN_UNTIL(&net, count_connections() == 0);
}

static void test_pipeline_takes_several_turns(void **state)
{
    struct raw raw;

    (void)state;
    raw_open(&raw, &net);
    RUN_UNTIL(&net, count_connections() == 1);
    for (size_t i = 0; i < CROWD; i++)
        raw_say(&raw, GET_AS("a"));
    check_turns(CROWD);
    raw_close(&raw);
    RUN_UNTIL(&net, count_connections() == 0);
}

/* Nothing is left of who goes while the request waits. */
static void test_gone_while_waiting(void **state)
{
    struct raw raws[CROWD];

    (void)state;
    ask_at_once(raws, AQ_COUNT(raws));
    RUN_UNTIL(&net, order.len > 0);
    for (size_t i = 0; i < AQ_COUNT(raws); i++)
        raw_close(&raws[i]);
    RUN_UNTIL(&net, count_connections() == 0);
    assert_in_range(order.len, 1, CROWD);
}

/* Who ends its sending still gets its answers, and is gone then. */
static void check_answers_then_end(struct raw *raw, size_t count)
{
    const char *at;

    RUN_UNTIL(&net, raw->ended);
    for (at = raw->got.data; (at = strstr(at, "HTTP/1.1 204")); at++)
        count--;
    assert_int_equal(count, 0);
    raw_close(raw);
}

static void test_crowd_ends_its_sending(void **state)
{
    struct raw raws[CROWD];

    (void)state;
    ask_at_once(raws, AQ_COUNT(raws));
    for (size_t i = 0; i < AQ_COUNT(raws); i++)
        stream_shutdown(raws[i].stream);
    for (size_t i = 0; i < AQ_COUNT(raws); i++)
        check_answers_then_end(&raws[i], 1);
    RUN_UNTIL(&net, count_connections() == 0);
}

static void test_pipeline_ends_its_sending(void **state)
{
    struct raw raw;

    (void)state;
    raw_open(&raw, &net);
    for (size_t i = 0; i < CROWD; i++)
        raw_say(&raw, GET_AS("a"));
    stream_shutdown(raw.stream);
    check_answers_then_end(&raw, CROWD);
    RUN_UNTIL(&net, count_connections() == 0);
}

static int connect_socket(void)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                              .sin_port = htons((uint16_t)listener_get_port(net.listener)) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

/* Nobody reads the answer after a reset: the request is not handled. */
static void test_reset_while_waiting(void **state)
{
    static const struct linger reset = { .l_onoff = 1 };
    size_t len = strlen(GET_AS("a"));
    int fds[CROWD];

    (void)state;
    for (size_t i = 0; i < CROWD; i++)
        fds[i] = connect_socket();
    RUN_UNTIL(&net, count_connections() == CROWD);
    for (size_t i = 0; i < CROWD; i++)
        assert_int_equal(send(fds[i], GET_AS("a"), len, 0), len);
    RUN_UNTIL(&net, admitted == CROWD);
    for (size_t i = 0; i < CROWD; i++) {
        assert_int_equal(setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
        assert_int_equal(close(fds[i]), 0);
    }
    RUN_UNTIL(&net, count_connections() == 0);
    assert_in_range(order.len, 1, CROWD - 1);
}

/* As above, but the server drops them. */
static void test_stopped_while_waiting(void **state)
{
    struct raw raws[CROWD];

    (void)state;
    ask_at_once(raws, AQ_COUNT(raws));
    RUN_UNTIL(&net, order.len > 0);
    server_stop(net.server, 0, net_on_stopped, &net);
    RUN_UNTIL(&net, net.stopped);
    for (size_t i = 0; i < AQ_COUNT(raws); i++)
        raw_close(&raws[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_goes_before_the_crowd_of_another, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_pipeline_takes_several_turns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_gone_while_waiting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_crowd_ends_its_sending, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pipeline_ends_its_sending, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reset_while_waiting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_stopped_while_waiting, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
