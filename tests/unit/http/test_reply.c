/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing of a handler runs inside a function that answers, or that asks for a body. */
#include "testing.h"

#include "base/list.h"
#include "http/loopback.h"

#define CROWD 5
#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define POST(path, length) "POST " path " HTTP/1.1\r\nHost: a\r\nContent-Length: " length "\r\n\r\n"

/* A request that waits for an answer, in one list with the others. */
struct waiter {
    struct list link;
    struct request *req;
};

static struct {
    uv_loop_t loop;
    struct router *router;
    struct server *server;
    struct loopback *crowd[CROWD];
    struct list waiters;
    struct strbuf seen; /* of bodies */
    bool is_inside;     /* of a function that must not call back */
    size_t handled, gone, answered;
    bool stopped;
} f;

/* The caller unlinks its waiter before it answers, as the header demands. */
static void answer(struct waiter *waiter)
{
    struct request *req = waiter->req;

    list_remove(&waiter->link);
    free(waiter);
    f.is_inside = true;
    request_reply_empty(req, 204);
    f.is_inside = false;
    f.answered++;
}

static void answer_all(void)
{
    while (!list_is_empty(&f.waiters))
        answer(LIST_ENTRY(f.waiters.next, struct waiter, link));
}

static void on_gone(struct request *req, void *data)
{
    (void)req;
    (void)data;
    f.gone++;
    answer_all();
}

static void on_wait(struct request *req, void *data)
{
    struct waiter *waiter = calloc(1, sizeof(*waiter));

    (void)data;
    assert_non_null(waiter);
    assert_false(f.is_inside);
    waiter->req = req;
    list_add(&f.waiters, &waiter->link);
    request_set_gone(req, on_gone, NULL);
}

/* Ends all that wait, as the end of a login or a session does. */
static void on_answer_all(struct request *req, void *data)
{
    (void)data;
    assert_false(f.is_inside);
    f.handled++;
    answer_all();
    request_reply_empty(req, 200);
}

/* The handler fails with this as its client hangs up. */
static void on_gone_failing(struct request *req, void *data)
{
    struct aq_error err = { 0 };

    f.gone++;
    aq_fail(&err, *(const int *)data, "the reason");
    request_fail(req, &err);
}

static void on_log(struct request *req, void *data)
{
    static const int gone = EPIPE, broken = EIO;

    (void)data;
    request_set_gone(req, on_gone_failing,
                     (void *)(uintptr_t)(request_get_method(req) == METHOD_GET ? &gone : &broken));
}

static void on_twice(struct request *req, void *data)
{
    (void)data;
    request_reply_empty(req, 201);
    request_reply_empty(req, 202);
    request_fail(req, &(struct aq_error){ .code = EINVAL });
    request_begin(req, 203, NULL, NULL, NULL);
    assert_int_equal(request_write(req, "x", 1), -EPIPE);
    request_end(req);
    request_abort(req);
}

static void on_piece(struct request *req, const char *bytes, size_t len, int status, void *data)
{
    (void)data;
    assert_false(f.is_inside);
    strbuf_addf(&f.seen, "<%.*s>", (int)len, len ? bytes : "");
    if (len)
        request_pause_body(req);
    else
        request_reply_empty(req, status ? 400 : 204);
}

static const struct route routes[] = {
    { METHOD_GET, "/wait", 0, on_wait, NULL, "Wait", 0, 0 },
    { METHOD_POST, "/wait", 0, on_wait, NULL, "Wait", 0, 0 },
    { METHOD_GET, "/all", 0, on_answer_all, NULL, "Answer all", 0, 0 },
    { METHOD_GET, "/log", 0, on_log, NULL, "Fail once the client has gone", 0, 0 },
    { METHOD_POST, "/log", 0, on_log, NULL, "Fail for another reason", 0, 0 },
    { METHOD_GET, "/twice", 0, on_twice, NULL, "Answer twice", 0, 0 },
    { METHOD_POST, "/upload", 0, on_wait, NULL, "Read later", ROUTE_STREAM_BODY, 100 },
};

static int set_up(void **state)
{
    struct server_options options = { 0 };

    (void)state;
    memset(&f, 0, sizeof(f));
    strbuf_init(&f.seen);
    list_init(&f.waiters);
    assert_int_equal(uv_loop_init(&f.loop), 0);
    f.router = router_new();
    assert_int_equal(router_add(f.router, routes, AQ_COUNT(routes), NULL, NULL), 0);
    options.app.router = f.router;
    f.server = server_new(&f.loop, &options);
    for (size_t i = 0; i < CROWD; i++)
        f.crowd[i] = loopback_new(f.server);
    return 0;
}

static void on_stopped(void *data)
{
    (void)data;
    f.stopped = true;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < CROWD; i++)
        loopback_free(f.crowd[i]);
    if (!f.stopped)
        server_stop(f.server, 0, on_stopped, NULL);
    while (!f.stopped)
        (void)uv_run(&f.loop, UV_RUN_ONCE);
    server_free(f.server);
    router_free(f.router);
    (void)uv_run(&f.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f.loop), 0);
    strbuf_done(&f.seen);
    return 0;
}

static void say(size_t i, const char *text)
{
    loopback_send(f.crowd[i], text, strlen(text));
}

static size_t count(size_t i, const char *what)
{
    size_t n = 0;

    for (const char *at = loopback_get_output(f.crowd[i])->data; (at = strstr(at, what)); at++)
        n++;
    return n;
}

static void run_loop(void)
{
    loopback_settle(f.crowd[0]);
}

/* Behind each request that waits stands one that answers all others, so the walk over those that
 * wait would lose its next item if an answer ran the request behind it.
 */
static void test_next_request_runs_later(void **state)
{
    (void)state;
    for (size_t i = 0; i < CROWD; i++)
        say(i, GET("/wait") GET("/all"));
    answer_all();
    assert_int_equal(f.answered, CROWD);
    assert_int_equal(f.handled, 0);
    run_loop();
    assert_int_equal(f.handled, CROWD);
    for (size_t i = 0; i < CROWD; i++) {
        assert_int_equal(count(i, "HTTP/1.1 204"), 1);
        assert_int_equal(count(i, "HTTP/1.1 200"), 1);
    }
}

/* What one connection's handler answers for another's. */
static void test_answered_by_another_handler(void **state)
{
    (void)state;
    say(0, GET("/wait") GET("/wait"));
    say(1, GET("/all") GET("/wait"));
    assert_int_equal(f.answered, 1);
    assert_int_equal(count(0, "HTTP/1.1 204"), 1);
    run_loop();
    say(2, GET("/all"));
    assert_int_equal(f.answered, 3);
    run_loop();
    assert_int_equal(count(0, "HTTP/1.1 204"), 2);
    assert_int_equal(count(1, "HTTP/1.1 204"), 1);
}

/* The client has gone, or goes with its next request on the way. */
static void test_clients_that_leave(void **state)
{
    (void)state;
    for (size_t i = 0; i < CROWD; i++)
        say(i, GET("/wait") GET("/wait"));
    loopback_hang_up(f.crowd[2]);
    assert_int_equal(f.gone, 1);
    assert_int_equal(f.answered, CROWD);
    loopback_hang_up(f.crowd[3]); /* its next request comes first, and hears of the end */
    run_loop();
    assert_int_equal(f.gone, 2);
    assert_int_equal(f.answered, 2 * CROWD - 1);
}

/* How many bytes the log gets while the client hangs up. */
static off_t hang_up_logged(size_t client)
{
    FILE *log = tmpfile();
    int kept = dup(STDERR_FILENO);
    off_t size;

    assert_non_null(log);
    assert_true(dup2(fileno(log), STDERR_FILENO) >= 0);
    loopback_hang_up(f.crowd[client]);
    size = lseek(fileno(log), 0, SEEK_END);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    (void)close(kept);
    (void)fclose(log);
    return size;
}

static void test_clients_that_leave_are_no_error(void **state)
{
    (void)state;
    say(0, GET("/log"));
    say(1, POST("/log", "0"));
    assert_int_equal(hang_up_logged(0), 0);
    assert_true(hang_up_logged(1) > 0);
    assert_int_equal(f.gone, 2);
}

/* The server drops all connections, and each handler that hears of it ends the others. */
static void test_stop_with_handlers_that_end_others(void **state)
{
    (void)state;
    for (size_t i = 0; i < CROWD; i++)
        say(i, GET("/wait"));
    server_stop(f.server, 0, on_stopped, NULL);
    while (!f.stopped)
        (void)uv_run(&f.loop, UV_RUN_ONCE);
    assert_int_equal(f.answered, CROWD);
    assert_true(f.gone >= 1);
}

static void test_second_answer_is_dropped(void **state)
{
    (void)state;
    say(0, GET("/twice") GET("/twice"));
    assert_int_equal(count(0, "HTTP/1.1 201"), 2);
    assert_int_equal(count(0, "HTTP/1.1 "), 2);
}

/* The body comes from the loop: when it is asked for, when it is let go on, and its end, too. */
static void test_body_comes_later(void **state)
{
    struct waiter *waiter;
    struct request *req;

    (void)state;
    say(0, POST("/upload", "6") "abcdef" GET("/all"));
    waiter = LIST_ENTRY(f.waiters.next, struct waiter, link);
    req = waiter->req;
    list_remove(&waiter->link);
    free(waiter);
    request_set_gone(req, NULL, NULL);

    f.is_inside = true;
    request_read_body(req, on_piece, NULL);
    f.is_inside = false;
    assert_int_equal(f.seen.len, 0);
    run_loop();
    assert_string_equal(f.seen.data, "<abcdef>");
    f.is_inside = true;
    request_resume_body(req);
    f.is_inside = false;
    assert_string_equal(f.seen.data, "<abcdef>");
    run_loop();
    assert_string_equal(f.seen.data, "<abcdef><>");
    assert_int_equal(f.handled, 1);
    assert_int_equal(count(0, "HTTP/1.1 204"), 1);
}

/* Answered before its body has come: the rest is read later, then the next request. */
static void test_early_answer(void **state)
{
    (void)state;
    say(0, POST("/upload", "3") "a");
    answer_all();
    assert_int_equal(loopback_get_output(f.crowd[0])->len, 0);
    run_loop();
    say(0, "bc" GET("/all"));
    run_loop();
    assert_int_equal(f.handled, 1);
    assert_int_equal(count(0, "HTTP/1.1 204"), 1);
    assert_int_equal(count(0, "HTTP/1.1 200"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_next_request_runs_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_answered_by_another_handler, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_clients_that_leave, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_clients_that_leave_are_no_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_stop_with_handlers_that_end_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_second_answer_is_dropped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_body_comes_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_early_answer, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
