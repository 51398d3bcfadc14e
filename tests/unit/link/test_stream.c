/* SPDX-License-Identifier: Apache-2.0 */
/* Streams beside the link: their bytes, who may open them, how they end, and their connections. */
#include "scene.h"

#include <errno.h>
#include <signal.h>

static void open_stream(struct scene *s)
{
    struct msg_stream_open open = { .kind = "logs", .kernel_id = scene_id_of(1), .follow = true };
    struct aq_error err = { 0 };

    s->client = scene_start_client(s, "node-1", &scene_client_ops, s);
    RUN_UNTIL(s, s->connects == 1);
    assert_row(link_server_open_stream(s->server, "node-1", &open, &scene_stream_ops, s,
                                       &s->server_stream, &err)
                   == 0,
               "%s", err.text);
}

static void carry_bytes_both_ways(bool is_old)
{
    static char big[3 << 20];
    struct scene s;
    size_t sent = 0;

    memset(big, 'x', sizeof(big));
    scene_init(&s);
    s.auto_stream = true;
    s.is_old = is_old;
    open_stream(&s);
    assert_int_equal(link_stream_write(s.server_stream, "early", 5), -ENOTCONN);
    RUN_UNTIL(&s, s.stream_opens == 2);
    assert_int_equal(link_stream_write(s.server_stream, "hello", 5), 0);
    RUN_UNTIL(&s, s.at_client_bytes.len == 5);
    assert_string_equal(s.at_client_bytes.data, "hello");

    /* a reader that pauses holds the writer back */
    link_stream_pause(s.server_stream, true);
    while (sent < sizeof(big) / 2) {
        int r = link_stream_write(s.client_stream, big + sent, 65536);

        assert_true(r >= 0);
        sent += 65536;
        if (r == 1)
            break;
    }
    while (link_stream_write(s.client_stream, big, 65536) == 0 || sent < sizeof(big))
        sent += 65536;
    sent += 65536;
    link_stream_pause(s.server_stream, false);
    RUN_UNTIL(&s, s.at_server_bytes.len == sent && s.drains);
    link_stream_close(AQ_TAKE(s.client_stream));
    RUN_UNTIL(&s, s.stream_closes == 1);
    assert_int_equal(s.stream_error, 0);
    scene_done(&s);
}

static void test_stream_carries_bytes_both_ways(void **state)
{
    (void)state;
    carry_bytes_both_ways(false);
    carry_bytes_both_ways(true);
}

/* What was written before the close arrives, all of it. */
static void test_stream_close_sends_all(void **state)
{
    static char big[1 << 20];
    struct scene s;

    (void)state;
    memset(big, 'y', sizeof(big));
    scene_init(&s);
    s.auto_stream = true;
    open_stream(&s);
    RUN_UNTIL(&s, s.stream_opens == 2);
    assert_true(link_stream_write(s.client_stream, big, sizeof(big)) >= 0);
    link_stream_close(AQ_TAKE(s.client_stream));
    RUN_UNTIL(&s, s.stream_closes == 1);
    assert_int_equal(s.at_server_bytes.len, sizeof(big));
    assert_int_equal(s.stream_error, 0);
    scene_done(&s);
}

static void open_next(struct scene *s, int opens)
{
    struct msg_stream_open open = { .kind = "logs", .kernel_id = scene_id_of(1) };

    strbuf_clear(&s->at_server_bytes);
    strbuf_clear(&s->at_client_bytes);
    assert_int_equal(link_server_open_stream(s->server, "node-1", &open, &scene_stream_ops, s,
                                             &s->server_stream, NULL),
                     0);
    RUN_UNTIL(s, s->stream_opens == opens);
}

/* One connection for three streams: the first is ended by the agent, the
 * second by the manager under the agent's bytes, the third by both at once.
 */
static void test_streams_take_over_connections(void **state)
{
    static char big[1 << 20];
    struct scene s;

    (void)state;
    memset(big, 'z', sizeof(big));
    scene_init(&s);
    s.auto_stream = true;
    open_stream(&s);
    RUN_UNTIL(&s, s.stream_opens == 2);
    assert_int_equal(link_stream_write(s.client_stream, "one", 3), 0);
    link_stream_close(AQ_TAKE(s.client_stream));
    RUN_UNTIL(&s, s.stream_closes == 1 && s.server->idle_count == 1);
    assert_string_equal(s.at_server_bytes.data, "one");

    open_next(&s, 4);
    assert_int_equal(s.server->idle_count, 0); /* it was taken: nothing else was there */
    assert_true(link_stream_write(s.client_stream, big, sizeof(big)) >= 0);
    link_stream_close(AQ_TAKE(s.server_stream));
    RUN_UNTIL(&s, s.stream_closes == 2 && s.server->idle_count == 1);
    assert_int_equal(s.stream_error, 0);
    assert_int_equal(s.at_server_bytes.len, 0);

    open_next(&s, 6);
    assert_int_equal(s.server->idle_count, 0);
    assert_int_equal(link_stream_write(s.client_stream, "three", 5), 0);
    RUN_UNTIL(&s, s.at_server_bytes.len == 5);
    assert_string_equal(s.at_server_bytes.data, "three");
    link_stream_close(AQ_TAKE(s.server_stream));
    link_stream_close(AQ_TAKE(s.client_stream));
    RUN_UNTIL(&s, s.server->idle_count == 1);
    assert_int_equal(s.stream_closes, 2);
    assert_int_equal(s.server->guest_count, 0);

    link_client_free(AQ_TAKE(s.client)); /* its idle connections go with it */
    RUN_UNTIL(&s, s.server->idle_count == 0);
    scene_done(&s);
}

/* An agent whose certificate was revoked since gets no further stream. */
static void test_idle_connection_is_looked_at_again(void **state)
{
    struct msg_stream_open open = { .kind = "logs", .kernel_id = scene_id_of(1) };
    struct pki_cert cert;
    struct scene s;

    (void)state;
    scene_init(&s);
    s.auto_stream = true;
    open_stream(&s);
    RUN_UNTIL(&s, s.stream_opens == 2);
    link_stream_close(AQ_TAKE(s.client_stream));
    RUN_UNTIL(&s, s.stream_closes == 1 && s.server->idle_count == 1);
    assert_int_equal(pki_cert_read(s.cert, &cert, NULL), 0);
    assert_int_equal(pki_revoke(scene_ca, cert.serial, NULL), 0);
    assert_int_equal(link_server_open_stream(s.server, "node-1", &open, &scene_stream_ops, &s,
                                             &s.server_stream, NULL),
                     0);
    RUN_UNTIL(&s, s.stream_closes == 2);
    assert_null(s.client_stream);
    assert_int_equal(s.stream_opens, 3); /* at the agent alone */
    assert_int_equal(s.server->idle_count, 0);
    assert_int_equal(s.at_client_bytes.len, 0); /* a refusal is no data */
    scene_done(&s);
}

/* Nothing more of an agent that is put out reaches who reads its streams. */
static void test_streams_of_who_is_put_out_end(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    s.auto_stream = true;
    open_stream(&s);
    RUN_UNTIL(&s, s.stream_opens == 2);
    link_server_drop(s.server, "node-1", "you were removed");
    assert_null(s.server_stream);
    assert_int_equal(s.stream_error, ENOTCONN);
    RUN_UNTIL(&s, s.stream_closes == 2);
    scene_done(&s);
}

static void test_stream_may_be_refused(void **state)
{
    struct scene s;
    struct message msg = { .type = MSG_STREAM_REFUSED };
    struct aq_error err = { 0 };

    (void)state;
    scene_init(&s);
    open_stream(&s);
    RUN_UNTIL(&s, s.was_opened);
    msg.stream_refused = (struct msg_stream_refused){ .stream_id = s.opened.stream_id,
                                                      .kind = "not-found",
                                                      .text = "no kernel" };
    assert_int_equal(link_client_send(s.client, &msg, &err), 0);
    RUN_UNTIL(&s, s.stream_closes == 1);
    assert_int_equal(s.stream_error, ENOENT);
    scene_done(&s);
}

static void try_wrong_key(bool is_old)
{
    struct scene s;
    struct aq_error err = { 0 };

    scene_init(&s);
    s.is_old = is_old;
    open_stream(&s);
    RUN_UNTIL(&s, s.was_opened);
    s.opened_key[0] = s.opened_key[0] == 'a' ? 'b' : 'a';
    assert_int_equal(
        link_client_open_stream(s.client, &s.opened, &scene_stream_ops, &s, &s.client_stream, &err),
        0);
    RUN_UNTIL(&s, s.stream_closes == 1);
    assert_null(s.client_stream);
    assert_non_null(s.server_stream);
    assert_int_equal(s.at_client_bytes.len, 0); /* a refusal is no data */
    scene_done(&s);
}

static void test_stream_key_must_be_right(void **state)
{
    (void)state;
    try_wrong_key(false);
    try_wrong_key(true);
}

static void test_stream_ends_with_its_agent(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    open_stream(&s);
    RUN_UNTIL(&s, s.was_opened);
    link_client_free(AQ_TAKE(s.client));
    RUN_UNTIL(&s, s.stream_closes == 1);
    assert_int_equal(s.stream_error, ENOTCONN);
    scene_done(&s);
}

static void test_sending_to_strangers_fails(void **state)
{
    struct scene s;
    struct message msg = { .type = MSG_DRAIN, .drain = { .on = true } };
    struct aq_error err = { 0 };

    (void)state;
    scene_init(&s);
    assert_int_equal(link_server_send(s.server, "node-1", &msg, &err), -ENOTCONN);
    s.client = scene_start_client(&s, "node-1", &scene_client_ops, &s);
    msg = (struct message){ .type = MSG_BYE };
    assert_int_equal(link_client_send(s.client, &msg, &err), -ENOTCONN);
    RUN_UNTIL(&s, s.connects == 1);
    link_server_drop(s.server, "node-1", "you were removed");
    RUN_UNTIL(&s, s.refused_kind[0]);
    assert_string_equal(s.refused_text, "you were removed");
    scene_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream_carries_bytes_both_ways),
        cmocka_unit_test(test_stream_close_sends_all),
        cmocka_unit_test(test_streams_take_over_connections),
        cmocka_unit_test(test_idle_connection_is_looked_at_again),
        cmocka_unit_test(test_streams_of_who_is_put_out_end),
        cmocka_unit_test(test_stream_may_be_refused),
        cmocka_unit_test(test_stream_key_must_be_right),
        cmocka_unit_test(test_stream_ends_with_its_agent),
        cmocka_unit_test(test_sending_to_strangers_fails),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, scene_make_folder, scene_remove_folder);
}
