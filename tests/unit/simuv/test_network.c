/* SPDX-License-Identifier: Apache-2.0 */
/* TCP between hosts: order, room, ends, resets, cuts, and machines that are gone. */
#include "stage.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/memory.h"

#define MANY 3000000 /* bytes: more than a connection holds */

static int begin(void **state)
{
    (void)state;
    simuv_begin(5);
    return 0;
}

static int end(void **state)
{
    (void)state;
    simuv_end();
    return 0;
}

static void test_bytes_arrive_in_order_and_in_pieces(void **state)
{
    AQ_CLEANUP(aq_freep) char *bytes = aq_alloc(MANY);
    struct stage s;

    (void)state;
    for (size_t i = 0; i < MANY; i++)
        bytes[i] = (char)(i * 7 + i / 256);
    stage_init(&s);
    stage_connect(&s);
    stage_run(SEC);
    assert_int_equal(s.client.connected, 1);
    assert_true(s.server.is_open);
    stage_write(&s.client, bytes, MANY);
    stage_write(&s.server, "pong", 4);
    assert_true(uv_stream_get_write_queue_size((uv_stream_t *)&s.client.tcp) > 0);
    stage_run(SEC);
    assert_int_equal(uv_stream_get_write_queue_size((uv_stream_t *)&s.client.tcp), 0);
    assert_int_equal(s.server.got.len, MANY);
    assert_memory_equal(s.server.got.data, bytes, MANY);
    assert_string_equal(s.client.got.data, "pong");
    stage_done(&s);
}

/* Who does not read stops who writes. */
static void test_a_slow_reader_holds_the_writer_up(void **state)
{
    AQ_CLEANUP(aq_freep) char *bytes = aq_alloc(MANY);
    uv_buf_t buf = uv_buf_init(bytes, MANY);
    struct stage s;
    size_t taken = 0;
    int n;

    (void)state;
    stage_init(&s);
    stage_connect(&s);
    stage_run(SEC);
    assert_int_equal(uv_read_stop((uv_stream_t *)&s.server.tcp), 0);
    while ((n = uv_try_write((uv_stream_t *)&s.client.tcp, &buf, 1)) != UV_EAGAIN
           || taken < MANY / 10) {
        assert_true(n > 0 || n == UV_EAGAIN);
        taken += n > 0 ? (size_t)n : 0;
        stage_run(1000);
    }
    assert_true(taken < MANY);
    assert_int_equal(s.server.got.len, 0);
    stage_done(&s);
}

static void on_shut(uv_shutdown_t *req, int status)
{
    *(int *)req->data = status == 0 ? 1 : status;
}

static void test_an_end_of_one_direction_leaves_the_other(void **state)
{
    uv_shutdown_t shutdown;
    struct stage s;
    int shut = 0;

    (void)state;
    stage_init(&s);
    stage_connect(&s);
    stage_run(SEC);
    shutdown.data = &shut;
    stage_write(&s.client, "last", 4);
    assert_int_equal(uv_shutdown(&shutdown, (uv_stream_t *)&s.client.tcp, on_shut), 0);
    assert_int_equal(shut, 0); /* never within the call */
    stage_run(SEC);
    assert_int_equal(shut, 1);
    assert_int_equal(s.server.ended, UV_EOF);
    assert_string_equal(s.server.got.data, "last");
    stage_write(&s.server, "answer", 6);
    stage_run(SEC);
    assert_string_equal(s.client.got.data, "answer");
    assert_int_equal(s.client.ended, 0);
    stage_close(&s.server);
    stage_run(SEC);
    assert_int_equal(s.client.ended, UV_EOF);
    assert_true(s.server.is_closed);
    stage_done(&s);
}

/* Bytes that nobody reads any more reset the connection. */
static void test_writing_to_who_has_closed_resets(void **state)
{
    char byte = 'x';
    uv_buf_t buf = uv_buf_init(&byte, 1);
    struct stage s;

    (void)state;
    stage_init(&s);
    stage_connect(&s);
    stage_run(SEC);
    assert_int_equal(uv_read_stop((uv_stream_t *)&s.client.tcp), 0);
    stage_close(&s.server);
    stage_run(SEC);
    stage_write(&s.client, "hello", 5);
    stage_run(SEC);
    assert_int_equal(uv_try_write((uv_stream_t *)&s.client.tcp, &buf, 1), UV_ECONNRESET);
    assert_int_equal(uv_try_write((uv_stream_t *)&s.client.tcp, &buf, 1), UV_EPIPE);
    stage_done(&s);
}

static void test_a_connection_is_refused_where_nobody_listens(void **state)
{
    static struct stage s;

    (void)state;
    stage_init(&s);
    stage_connect(&s);
    stage_run(SEC);
    assert_int_equal(s.client.connected, 1);
    stage_crash_server(&s, false); /* the machine answers, no process does */
    stage_run(SEC);
    assert_true(s.client.ended == UV_EOF || s.client.ended == UV_ECONNRESET);
    stage_close(&s.client);
    stage_run(SEC);
    stage_connect(&s);
    stage_run(SEC);
    assert_int_equal(s.client.connected, UV_ECONNREFUSED);
    stage_done(&s);
}

static void test_what_was_sent_over_a_cut_comes_after_it(void **state)
{
    struct stage s;

    (void)state;
    stage_init(&s);
    stage_connect(&s);
    stage_run(SEC);
    stage_set_cut(&s, true);
    stage_write(&s.client, "one ", 4);
    stage_run(60 * SEC);
    assert_int_equal(s.server.got.len, 0);
    assert_int_equal(s.client.ended, 0);
    stage_write(&s.client, "two", 3);
    stage_set_cut(&s, false);
    stage_run(200 * SEC);
    assert_string_equal(s.server.got.data, "one two");
    stage_done(&s);
}

/* Data that is not acknowledged is given up after a quarter of an hour; the other end of the
 * connection does not know, and stays half open.
 */
static void test_a_long_cut_ends_who_writes(void **state)
{
    struct stage s;

    (void)state;
    stage_init(&s);
    stage_connect(&s);
    stage_run(SEC);
    stage_set_cut(&s, true);
    stage_write(&s.client, "one", 3);
    stage_run(900 * SEC);
    assert_int_equal(s.client.ended, 0);
    stage_run(100 * SEC);
    assert_int_equal(s.client.ended, UV_ETIMEDOUT);
    assert_int_equal(s.server.ended, 0);
    stage_done(&s);
}

static void test_a_machine_that_is_gone_is_found_by_probes(void **state)
{
    static struct stage s;

    (void)state;
    stage_init(&s);
    stage_connect(&s);
    stage_run(SEC);
    assert_int_equal(uv_tcp_keepalive(&s.client.tcp, 1, 60), 0);
    stage_crash_server(&s, true);
    stage_run(600 * SEC);
    assert_int_equal(s.client.ended, 0);
    stage_run(200 * SEC);
    assert_int_equal(s.client.ended, UV_ETIMEDOUT);
    stage_close(&s.client);
    stage_run(SEC);
    stage_connect(&s);
    stage_run(126 * SEC);
    assert_int_equal(s.client.connected, 0);
    stage_run(2 * SEC);
    assert_int_equal(s.client.connected, UV_ETIMEDOUT);
    stage_done(&s);
}

/* A new process on the machine knows nothing of the connection. */
static void test_a_machine_that_is_back_resets_old_connections(void **state)
{
    static struct stage s;

    (void)state;
    stage_init(&s);
    stage_connect(&s);
    stage_run(SEC);
    stage_crash_server(&s, true);
    stage_write(&s.client, "one", 3);
    stage_run(60 * SEC);
    assert_int_equal(s.client.ended, 0);
    simuv_boot(s.server_host);
    stage_run(130 * SEC);
    assert_int_equal(s.client.ended, UV_ECONNRESET);
    stage_done(&s);
}

/* The reset of a process that ended behind a cut is lost: probes find it later. */
static void test_an_end_behind_a_cut_is_found_by_probes(void **state)
{
    static struct stage s;

    (void)state;
    stage_init(&s);
    stage_connect(&s);
    stage_run(SEC);
    assert_int_equal(uv_tcp_keepalive(&s.client.tcp, 1, 60), 0);
    stage_break(&s.server);
    stage_set_cut(&s, true);
    stage_close(&s.server);
    stage_run(10 * SEC);
    stage_set_cut(&s, false);
    stage_run(40 * SEC);
    assert_int_equal(s.client.ended, 0);
    stage_run(20 * SEC);
    assert_int_equal(s.client.ended, UV_ECONNRESET);
    stage_done(&s);
}

/* Who was accepted after the client gave up is told so. */
static void test_a_connection_that_comes_too_late_is_reset(void **state)
{
    const struct simuv_path cut = { .is_cut = true };
    const struct simuv_path whole = { .latency_min_usec = 100, .latency_max_usec = 100 };
    struct stage s;

    (void)state;
    stage_init(&s);
    simuv_set_path(s.server_host, s.client_host, &cut);
    stage_connect(&s);
    stage_run(SEC);
    assert_true(s.server.is_open);
    assert_int_equal(s.client.connected, 0);
    stage_run(130 * SEC);
    assert_int_equal(s.client.connected, UV_ETIMEDOUT);
    assert_int_equal(s.server.ended, 0);
    simuv_set_path(s.server_host, s.client_host, &whole);
    stage_run(130 * SEC);
    assert_int_equal(s.server.ended, UV_ECONNRESET);
    stage_done(&s);
}

static void test_a_path_may_reset_connections(void **state)
{
    const struct simuv_path bad = { .latency_min_usec = 10, .latency_max_usec = 10, .reset = 1 };
    struct stage s;

    (void)state;
    stage_init(&s);
    stage_connect(&s);
    stage_run(SEC);
    simuv_set_path(s.client_host, s.server_host, &bad);
    stage_write(&s.client, "one", 3);
    stage_run(SEC);
    assert_int_equal(s.client.ended, UV_ECONNRESET);
    assert_int_equal(s.server.ended, UV_ECONNRESET);
    assert_int_equal(s.server.got.len, 0);
    stage_done(&s);
}

/* Code may look at the socket past libuv. */
static void test_a_descriptor_shows_what_waits(void **state)
{
    struct pollfd look = { .events = POLLRDHUP };
    struct stage s;
    char byte = 0;

    (void)state;
    stage_init(&s);
    stage_connect(&s);
    stage_run(SEC);
    assert_int_equal(uv_fileno((uv_handle_t *)&s.server.tcp, &look.fd), 0);
    assert_int_equal(uv_read_stop((uv_stream_t *)&s.server.tcp), 0);
    assert_int_equal(recv(look.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    stage_write(&s.client, "x", 1);
    stage_run(SEC);
    assert_int_equal(poll(&look, 1, 0), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(recv(look.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT), 1);
    assert_int_equal(byte, 'x');
    assert_int_equal(recv(look.fd, &byte, 1, MSG_DONTWAIT), 1);
    stage_close(&s.client);
    stage_run(SEC);
    assert_int_equal(poll(&look, 1, 0), 1);
    assert_int_equal(look.revents, POLLRDHUP);
    assert_int_equal(recv(look.fd, &byte, 1, MSG_DONTWAIT), 0);
    stage_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_arrive_in_order_and_in_pieces),
        cmocka_unit_test(test_a_slow_reader_holds_the_writer_up),
        cmocka_unit_test(test_an_end_of_one_direction_leaves_the_other),
        cmocka_unit_test(test_writing_to_who_has_closed_resets),
        cmocka_unit_test(test_a_connection_is_refused_where_nobody_listens),
        cmocka_unit_test(test_what_was_sent_over_a_cut_comes_after_it),
        cmocka_unit_test(test_a_long_cut_ends_who_writes),
        cmocka_unit_test(test_a_machine_that_is_gone_is_found_by_probes),
        cmocka_unit_test(test_a_machine_that_is_back_resets_old_connections),
        cmocka_unit_test(test_an_end_behind_a_cut_is_found_by_probes),
        cmocka_unit_test(test_a_connection_that_comes_too_late_is_reset),
        cmocka_unit_test(test_a_path_may_reset_connections),
        cmocka_unit_test(test_a_descriptor_shows_what_waits),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
