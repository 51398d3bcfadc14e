/* SPDX-License-Identifier: Apache-2.0 */
/* Apps of a server: requests of one that is replaced, routed once more, and passed on by others. */
#include "net.h"

#include "http/loopback.h"

#define HOST "Host: a\r\n"
#define CLIENT SERVER_CLIENT_HEADER ": "

struct fixture {
    struct net net;
    struct router *other_router;
    struct server_app other, own;
    struct request *held;
    struct strbuf seen;
    unsigned drained, gone;
};

static void on_gone(struct request *req, void *data)
{
    struct fixture *f = data;

    f->gone++;
    f->held = NULL;
    request_end(req);
}

static void on_hold(struct request *req, void *data)
{
    struct fixture *f = data;

    f->held = req;
    request_add_header(req, "X-Held", "yes");
    request_set_gone(req, on_gone, f);
}

static void on_own(struct request *req, void *data)
{
    (void)data;
    request_reply(req, 200, "text/plain", "own", 3);
}

static void on_address(struct request *req, void *data)
{
    const char *address = request_get_address(req);

    (void)data;
    request_reply(req, 200, "text/plain", address, strlen(address));
}

static void on_events(struct request *req, void *data)
{
    request_begin(req, 200, "text/event-stream", NULL, NULL);
    request_set_gone(req, on_gone, data);
}

static const struct route own_routes[] = {
    { METHOD_GET, "/who", 0, on_own, NULL, "Who" },
    { METHOD_GET, "/address", 0, on_address, NULL, "Address" },
    { METHOD_GET, "/events", 0, on_events, NULL, "Events" },
    { METHOD_GET, "/collected", 0, on_hold, NULL, "Hold" },
    { METHOD_POST, "/hold", 0, on_hold, NULL, "Hold", ROUTE_STREAM_BODY },
    { METHOD_GET, "/hold", 0, on_hold, NULL, "Hold", ROUTE_STREAM_BODY },
};

static void on_other(struct request *req, void *data)
{
    size_t len;
    const char *body = request_get_body(req, &len);

    (void)data;
    request_reply(req, 200, "text/plain", len ? body : "other", len ? len : 5);
}

static const struct route other_routes[] = {
    { METHOD_GET, "/who", 0, on_other, NULL, "Who" },
    { METHOD_GET, "/hold", 0, on_other, NULL, "Hold" },
    { METHOD_POST, "/hold", 0, on_other, NULL, "Hold", 0, 10 },
};

static int refuse(struct request *req, const struct route *route, void *data, struct aq_error *err)
{
    (void)route;
    (void)data;
    if (!request_get_header(req, "X-Refused"))
        return 0;
    return aq_fail_kind(err, EACCES, "auth-failed", "no");
}

static bool name_peer(const char *address, char ret[SERVER_PEER_MAX], void *data)
{
    (void)data;
    (void)snprintf(ret, SERVER_PEER_MAX, "%s", address);
    return true;
}

static int set_up(void **state)
{
    static struct fixture f;
    static const struct server_limits limits = { .connections_max = 60 };

    memset(&f, 0, sizeof(f));
    strbuf_init(&f.seen);
    net_up(&f.net, own_routes, AQ_COUNT(own_routes), &f, &limits, NULL);
    f.other_router = router_new();
    assert_int_equal(router_add(f.other_router, other_routes, AQ_COUNT(other_routes), &f, NULL), 0);
    f.own = (struct server_app){ .router = f.net.router, .name_peer = name_peer };
    f.other = (struct server_app){ .router = f.other_router, .guard = refuse };
    server_set_app(f.net.server, &f.own);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    router_free(f->other_router);
    strbuf_done(&f->seen);
    net_down(&f->net);
    return 0;
}

static void on_drained(void *data)
{
    struct fixture *f = data;

    assert_null(f->held);
    f->drained++;
}

/* Send on a connection in memory, and let the server do what it has to. */
static const char *ask(struct loopback *lb, const char *text)
{
    strbuf_clear(loopback_get_output(lb));
    loopback_send(lb, text, strlen(text));
    loopback_settle(lb);
    return loopback_get_output(lb)->data;
}

#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

static void test_requests_end_under_the_app_they_began_under(void **state)
{
    struct fixture *f = *state;
    struct loopback *lb = loopback_new(f->net.server);

    ask(lb, GET("/collected") GET("/who"));
    assert_non_null(f->held);
    server_set_app(f->net.server, &f->other);
    server_drain(f->net.server, &f->own, 60000, on_drained, f);
    loopback_settle(lb);
    assert_int_equal(f->drained, 0);
    request_reply(AQ_TAKE(f->held), 200, "text/plain", "late", 4);
    RUN_UNTIL(&f->net, f->drained);
    loopback_settle(lb);
    assert_non_null(strstr(loopback_get_output(lb)->data, "late"));
    assert_non_null(strstr(loopback_get_output(lb)->data, "other")); /* of the second request */
    assert_int_equal(f->drained, 1);
    assert_int_equal(f->gone, 0);
    loopback_free(lb);
}

static void test_an_idle_app_is_drained_at_once(void **state)
{
    struct fixture *f = *state;
    struct loopback *lb = loopback_new(f->net.server);

    assert_non_null(strstr(ask(lb, GET("/who")), "own"));
    server_set_app(f->net.server, &f->other);
    server_drain(f->net.server, &f->own, 60000, on_drained, f);
    RUN_UNTIL(&f->net, f->drained);
    assert_non_null(strstr(ask(lb, GET("/who")), "other")); /* on the same connection */
    loopback_free(lb);
}

static void test_streams_are_cut_after_the_grace(void **state)
{
    struct fixture *f = *state;
    struct loopback *streaming = loopback_new(f->net.server), *idle = loopback_new(f->net.server);

    ask(streaming, GET("/events"));
    ask(idle, GET("/who"));
    server_set_app(f->net.server, &f->other);
    server_drain(f->net.server, &f->own, 1, on_drained, f);
    RUN_UNTIL(&f->net, f->drained);
    assert_int_equal(f->gone, 1);
    assert_true(loopback_is_closed(streaming));
    assert_false(loopback_is_closed(idle));
    loopback_free(streaming);
    loopback_free(idle);
}

static void test_a_held_request_is_answered_by_the_next_app(void **state)
{
    struct fixture *f = *state;
    struct loopback *lb = loopback_new(f->net.server);
    const char *out;

    ask(lb, "POST /hold HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello" GET("/who"));
    server_set_app(f->net.server, &f->other);
    assert_int_equal(request_reroute(AQ_TAKE(f->held)), 0);
    loopback_settle(lb);
    out = loopback_get_output(lb)->data;
    assert_non_null(strstr(out, "hello"));
    assert_null(strstr(out, "X-Held"));
    assert_non_null(strstr(out, "other"));

    server_set_app(f->net.server, &f->own);
    ask(lb, GET("/hold"));
    server_set_app(f->net.server, &f->other);
    assert_int_equal(request_reroute(AQ_TAKE(f->held)), 0);
    loopback_settle(lb);
    assert_non_null(strstr(loopback_get_output(lb)->data, "other"));
    loopback_free(lb);
}

static void on_piece(struct request *req, const char *bytes, size_t len, int status, void *data)
{
    struct fixture *f = data;

    (void)req;
    (void)status;
    strbuf_add(&f->seen, bytes, len);
}

static void test_what_was_read_of_a_body_is_given_again(void **state)
{
    static const char *const rest[] = { "", "lo" }; /* the whole body, and what has yet to come */
    struct fixture *f = *state;
    struct loopback *lb = loopback_new(f->net.server);

    for (size_t i = 0; i < AQ_COUNT(rest); i++) {
        server_set_app(f->net.server, &f->own);
        strbuf_clear(&f->seen);
        ask(lb, i ? "POST /hold HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhel"
                  : "POST /hold HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello" GET("/who"));
        request_read_body(f->held, on_piece, f);
        loopback_settle(lb);
        assert_string_equal(f->seen.data, i ? "hel" : "hello");
        assert_int_equal(request_reroute(f->held), -EINVAL);
        server_set_app(f->net.server, &f->other);
        assert_int_equal(request_reroute_read(AQ_TAKE(f->held), f->seen.data, f->seen.len), 0);
        loopback_settle(lb);
        loopback_send(lb, rest[i], strlen(rest[i]));
        loopback_settle(lb);
        assert_non_null(strstr(loopback_get_output(lb)->data, "\r\n\r\nhello"));
        if (!i)
            assert_non_null(strstr(loopback_get_output(lb)->data, "other"));
    }
    loopback_free(lb);
}

static void test_a_body_that_the_next_app_refuses_is_dropped(void **state)
{
    struct fixture *f = *state;
    struct loopback *lb = loopback_new(f->net.server);

    ask(lb, "POST /hold HTTP/1.1\r\n" HOST "X-Refused: 1\r\nContent-Length: 5\r\n\r\nhello");
    request_read_body(f->held, on_piece, f);
    loopback_settle(lb);
    server_set_app(f->net.server, &f->other);
    assert_int_equal(request_reroute_read(AQ_TAKE(f->held), "hello", 5), 0);
    loopback_settle(lb);
    assert_non_null(strstr(loopback_get_output(lb)->data, "HTTP/1.1 401 "));
    assert_non_null(strstr(ask(lb, GET("/who")), "other"));

    server_set_app(f->net.server, &f->own);
    ask(lb, "POST /hold HTTP/1.1\r\n" HOST "Content-Length: 20\r\n\r\n12345678901234567890");
    request_read_body(f->held, on_piece, f);
    loopback_settle(lb);
    server_set_app(f->net.server, &f->other);
    assert_int_equal(request_reroute_read(AQ_TAKE(f->held), "12345678901234567890", 20), 0);
    loopback_settle(lb);
    assert_non_null(strstr(loopback_get_output(lb)->data, "HTTP/1.1 413 "));
    loopback_free(lb);
}

static void test_a_rerouted_request_passes_the_guard_again(void **state)
{
    struct fixture *f = *state;
    struct loopback *lb = loopback_new(f->net.server);

    ask(lb, "POST /hold HTTP/1.1\r\n" HOST "X-Refused: 1\r\nContent-Length: 2\r\n\r\nab");
    server_set_app(f->net.server, &f->other);
    assert_int_equal(request_reroute(AQ_TAKE(f->held)), 0);
    loopback_settle(lb);
    assert_non_null(strstr(loopback_get_output(lb)->data, "HTTP/1.1 401 "));
    assert_non_null(strstr(ask(lb, GET("/who")), "other"));
    loopback_free(lb);
}

static void test_a_client_that_waits_is_told_once_to_continue(void **state)
{
    struct fixture *f = *state;
    struct loopback *lb = loopback_new(f->net.server);

    assert_string_equal(
        ask(lb, "POST /hold HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"),
        "");
    server_set_app(f->net.server, &f->other);
    assert_int_equal(request_reroute(AQ_TAKE(f->held)), 0);
    loopback_settle(lb);
    assert_string_equal(loopback_get_output(lb)->data, "HTTP/1.1 100 Continue\r\n\r\n");
    assert_non_null(strstr(ask(lb, "hi"), "\r\n\r\nhi"));
    loopback_free(lb);
}

static void test_only_unread_requests_are_rerouted(void **state)
{
    struct fixture *f = *state;
    struct loopback *lb = loopback_new(f->net.server);

    ask(lb, GET("/collected"));
    assert_int_equal(request_reroute(f->held), -EINVAL);
    request_begin(f->held, 200, "text/plain", NULL, NULL);
    assert_int_equal(request_reroute(f->held), -EINVAL);
    request_end(AQ_TAKE(f->held));
    ask(lb, GET("/hold"));
    server_set_app(f->net.server, &f->other);
    assert_int_equal(request_reroute(AQ_TAKE(f->held)), 0);
    loopback_free(lb); /* before its turn: nothing answers it */
    (void)uv_run(&f->net.loop, UV_RUN_NOWAIT);
    assert_int_equal(f->gone, 0);
}

/* ---- adopted ---- */

struct adopted {
    struct strbuf out;
    struct stream *stream;
};

static void never(void *data, const char *bytes, size_t len)
{
    (void)data;
    (void)bytes;
    (void)len;
    fail();
}

static void never_ends(void *data, const struct aq_error *err)
{
    (void)data;
    (void)err;
    fail();
}

static void adopt(struct fixture *f, struct adopted *a, const char *first)
{
    static const struct stream_ops before = { .on_read = never, .on_end = never_ends };

    strbuf_init(&a->out);
    a->stream = stream_memory(&f->net.loop, &a->out, &before, NULL);
    server_adopt(f->net.server, a->stream, first, strlen(first));
    for (int i = 0; i < 3; i++)
        (void)uv_run(&f->net.loop, UV_RUN_NOWAIT);
}

#define GET_FOR(path, client) "GET " path " HTTP/1.1\r\n" HOST CLIENT client "\r\n\r\n"

static void test_requests_that_are_passed_on_have_their_clients_address(void **state)
{
    struct fixture *f = *state;
    struct loopback *direct = loopback_new(f->net.server);
    struct adopted a;

    adopt(f, &a, GET_FOR("/address", "192.0.2.7") GET_FOR("/address", "::ffff:192.0.2.8"));
    assert_non_null(strstr(a.out.data, "\r\n\r\n192.0.2.7"));
    assert_non_null(strstr(a.out.data, "\r\n\r\n192.0.2.8"));
    strbuf_clear(&a.out);
    stream_memory_feed(a.stream, GET_FOR("/address", "unix"), strlen(GET_FOR("/address", "unix")));
    (void)uv_run(&f->net.loop, UV_RUN_NOWAIT);
    assert_non_null(strstr(a.out.data, "\r\n\r\nunix"));
    assert_non_null(strstr(ask(direct, GET_FOR("/address", "192.0.2.7")), "\r\n\r\nmemory"));
    stream_memory_end(a.stream);
    strbuf_done(&a.out);
    loopback_free(direct);
}

static void test_requests_that_are_passed_on_without_an_address_are_refused(void **state)
{
    static const char *const bad[] = { GET("/address"), GET_FOR("/address", "nobody"),
                                       GET_FOR("/address", "192.0.2.7, 192.0.2.8") };
    struct fixture *f = *state;

    for (size_t i = 0; i < AQ_COUNT(bad); i++) {
        struct adopted a;

        adopt(f, &a, bad[i]);
        assert_non_null(strstr(a.out.data, "HTTP/1.1 400 "));
        assert_non_null(strstr(a.out.data, SERVER_CLIENT_HEADER));
        stream_memory_end(a.stream);
        strbuf_done(&a.out);
    }
}

#define SLOW "POST /hold HTTP/1.1\r\n" HOST CLIENT "192.0.2.2\r\nContent-Length: 9\r\n\r\n"

/* A client with many requests by way of another server loses its own places, not those of others. */
static void test_places_are_counted_by_the_address_of_the_client(void **state)
{
    enum { MANY = 40 };
    struct fixture *f = *state;
    struct adopted many[MANY], other;
    struct server_stats stats;

    adopt(f, &other, GET_FOR("/events", "192.0.2.1"));
    for (size_t i = 0; i < MANY; i++) {
        adopt(f, &many[i], SLOW);
        request_reply_empty(AQ_TAKE(f->held), 204); /* held back until the body has come */
    }
    server_get_stats(f->net.server, &stats);
    assert_in_range(stats.connections, 16 + 1, MANY);
    assert_int_equal(f->gone, 0);
    server_stop(f->net.server, 0, net_on_stopped, &f->net);
    RUN_UNTIL(&f->net, f->net.stopped);
    assert_int_equal(f->gone, 1);
    for (size_t i = 0; i < MANY; i++)
        strbuf_done(&many[i].out);
    strbuf_done(&other.out);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_requests_end_under_the_app_they_began_under),
        T(test_an_idle_app_is_drained_at_once),
        T(test_streams_are_cut_after_the_grace),
        T(test_a_held_request_is_answered_by_the_next_app),
        T(test_what_was_read_of_a_body_is_given_again),
        T(test_a_body_that_the_next_app_refuses_is_dropped),
        T(test_a_rerouted_request_passes_the_guard_again),
        T(test_a_client_that_waits_is_told_once_to_continue),
        T(test_only_unread_requests_are_rerouted),
        T(test_requests_that_are_passed_on_have_their_clients_address),
        T(test_requests_that_are_passed_on_without_an_address_are_refused),
        T(test_places_are_counted_by_the_address_of_the_client),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
