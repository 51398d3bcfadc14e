/* SPDX-License-Identifier: Apache-2.0 */
/* Requests through the router, guard and handlers, without a socket. */
#include "testing.h"

#include <errno.h>

#include "base/clock.h"
#include "http/loopback.h"
#include "http/problem.h"
#include "http/sign.h"

#define HOST "Host: a\r\n"
#define COUNT(text, what) count_of(text, what)

struct fixture {
    uv_loop_t loop;
    struct router *router;
    struct server *server;
    struct request *held; /* left open by "/hold" */
    struct strbuf seen;   /* what streaming handlers saw */
    bool gone, stopped;
};

static size_t count_of(const char *text, const char *what)
{
    size_t n = 0;

    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

static void on_hello(struct request *req, void *data)
{
    (void)data;
    request_reply(req, 200, "application/json", "{\"ok\":true}", 11);
}

/* Method, name, query x and body, as text. */
static void on_echo(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const char *name = request_get_param(req, "name"), *x = request_get_query(req, "x");
    size_t len;

    (void)data;
    strbuf_addf(&out, "%s %s %s [%s]", method_name(request_get_method(req)), name ? name : "-",
                x ? x : "-", request_get_body(req, &len));
    assert_int_equal(len, strlen(request_get_body(req, NULL)));
    request_add_header(req, "X-Test", "yes");
    request_add_header(req, "X-Bad", "a\r\nb");
    request_reply(req, 200, "text/plain", out.data, out.len);
}

static void on_gone(struct request *req, void *data)
{
    struct fixture *f = data;

    assert_true(request_is_gone(req));
    f->gone = true;
}

static void on_hold(struct request *req, void *data)
{
    struct fixture *f = data;

    f->held = req;
    request_set_gone(req, on_gone, f);
}

static void on_stream(struct request *req, void *data)
{
    (void)data;
    request_begin(req, 200, "text/plain", NULL, NULL);
    assert_int_equal(request_write(req, "one", 3), 0);
    assert_int_equal(request_write(req, "", 0), 0);
    assert_int_equal(request_write(req, "0123456789abcdef", 16), 0);
    request_end(req);
}

static void on_piece(struct request *req, const char *bytes, size_t len, int status, void *data)
{
    struct fixture *f = data;

    if (len) {
        strbuf_addf(&f->seen, "<%.*s>", (int)len, bytes);
        return;
    }
    strbuf_addf(&f->seen, "%d", status);
    request_reply_empty(req, 204);
}

static void on_upload(struct request *req, void *data)
{
    struct fixture *f = data;

    f->held = req;
    request_read_body(req, on_piece, f);
}

static void on_secret(struct request *req, void *data)
{
    (void)data;
    request_reply_empty(req, 204);
}

static void on_error(struct request *req, void *data)
{
    struct aq_error err = { .code = 0 };

    (void)data;
    (void)aq_fail_field(&err, EINVAL, "mem", "'12x' is not a size");
    request_fail(req, &err);
}

static void on_get_x(struct request *req, void *data)
{
    (void)data;
    request_reply(req, 200, "text/plain", "literal", 7);
}

static const struct route routes[] = {
    { METHOD_GET, "/", 0, on_hello, NULL, "Say hello", 0, 0 },
    { METHOD_GET, "/echo", 0, on_echo, NULL, "Echo", 0, 0 },
    { METHOD_POST, "/echo", 0, on_echo, NULL, "Echo", 0, 100 },
    { METHOD_DELETE, "/echo", 0, on_echo, NULL, "Echo", 0, 0 },
    { METHOD_PATCH, "/echo", 0, on_echo, NULL, "Echo", 0, 0 },
    { METHOD_GET, "/session/{name}", 0, on_echo, NULL, "Echo", 0, 0 },
    { METHOD_GET, "/session/_/x", 0, on_get_x, NULL, "A literal", 0, 0 },
    { METHOD_GET, "/session/{name}/logs", 0, on_echo, NULL, "Echo", 0, 0 },
    { METHOD_GET, "/hold", 0, on_hold, NULL, "Answer later", 0, 0 },
    { METHOD_POST, "/hold", 0, on_hold, NULL, "Answer later", 0, 0 },
    { METHOD_GET, "/stream", 0, on_stream, NULL, "Stream", 0, 0 },
    { METHOD_POST, "/upload", 0, on_upload, NULL, "Stream in", ROUTE_STREAM_BODY, 50 },
    { METHOD_POST, "/secret", 1, on_secret, NULL, "For some", 0, 0 },
    { METHOD_GET, "/error", 0, on_error, NULL, "Fail", 0, 0 },
};

static int guard(struct request *req, const struct route *route, void *data, struct aq_error *err)
{
    (void)data;
    if (!route->role || request_get_header(req, "X-Key"))
        return 0;
    return aq_fail_kind(err, EACCES, "auth-failed", "Unauthorized access");
}

static int set_up(void **state)
{
    static struct fixture f;
    struct server_options options = { .app.guard = guard };

    memset(&f, 0, sizeof(f));
    strbuf_init(&f.seen);
    assert_int_equal(uv_loop_init(&f.loop), 0);
    f.router = router_new();
    assert_int_equal(router_add(f.router, routes, AQ_COUNT(routes), &f, NULL), 0);
    options.app.router = f.router;
    f.server = server_new(&f.loop, &options);
    *state = &f;
    return 0;
}

static void on_stopped(void *data)
{
    ((struct fixture *)data)->stopped = true;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    server_stop(f->server, 0, on_stopped, f);
    while (!f->stopped)
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    server_free(f->server);
    router_free(f->router);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    strbuf_done(&f->seen);
    return 0;
}

/* Send text on a fresh connection, in pieces of 'step'; the answer, malloc'ed. */
static char *talk(struct fixture *f, const char *text, size_t step)
{
    struct loopback *lb = NULL;
    size_t len = strlen(text);
    char *answer;

    lb = loopback_new(f->server);
    for (size_t at = 0; at < len; at += step)
        loopback_send(lb, text + at, AQ_MIN(step, len - at));
    answer = strdup(loopback_get_output(lb)->data);
    loopback_free(lb);
    return answer;
}

static void test_table(void **state)
{
    static const struct {
        const char *request, *status;
        const char *wants[3]; /* pieces of the answer */
    } rows[] = {
        { "GET / HTTP/1.1\r\n" HOST "\r\n",
          "200 OK",
          { "Server: BackendAI\r\n", "Content-Length: 11\r\n", "\r\n\r\n{\"ok\":true}" } },
        { "GET / HTTP/1.1\r\n" HOST "\r\n", "200 OK", { "Date: ", " GMT\r\n" } },
        { "HEAD / HTTP/1.1\r\n" HOST "\r\n", "200 OK", { "Content-Length: 11\r\n" } },
        { "GET / HTTP/1.0\r\n\r\n", "200 OK", { "Connection: close\r\n" } },
        { "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
          "200 OK",
          { "Connection: keep-alive\r\n" } },
        { "GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n",
          "200 OK",
          { "Connection: close\r\n" } },
        { "GET /echo?x=a%20b+c HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhi",
          "200 OK",
          { "GET - a b c [hi]", "X-Test: yes\r\n" } },
        { "DELETE /echo HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhi",
          "200 OK",
          { "DELETE - - [hi]" } },
        { "POST /echo HTTP/1.1\r\n" HOST "X-Method-Override: PATCH\r\n\r\n",
          "200 OK",
          { "PATCH - - []" } },
        { "GET /echo HTTP/1.1\r\n" HOST "X-Method-Override: PATCH\r\n\r\n",
          "200 OK",
          { "GET - - []" } },
        { "POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
          "100 Continue",
          { "\r\n\r\nHTTP/1.1 200 OK\r\n", "POST - - [hi]" } },
        { "GET /session/a%2Fb HTTP/1.1\r\n" HOST "\r\n", "200 OK", { "GET a/b - []" } },
        { "GET /session/_ HTTP/1.1\r\n" HOST "\r\n", "200 OK", { "GET _ - []" } },
        { "GET /session/_/x HTTP/1.1\r\n" HOST "\r\n", "200 OK", { "literal" } },
        { "GET /session/_/logs HTTP/1.1\r\n" HOST "\r\n", "200 OK", { "GET _ - []" } },
        { "GET /stream HTTP/1.1\r\n" HOST "\r\n",
          "200 OK",
          { "Transfer-Encoding: chunked\r\n",
            "\r\n\r\n3\r\none\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n" } },
        { "GET /stream HTTP/1.0\r\n\r\n",
          "200 OK",
          { "Connection: close\r\n", "\r\n\r\none0123456789abcdef" } },
        { "OPTIONS /echo HTTP/1.1\r\n" HOST "Access-Control-Request-Headers: authorization\r\n\r\n",
          "200 OK",
          { "Access-Control-Allow-Methods: GET, HEAD, POST, PATCH, DELETE, OPTIONS\r\n",
            "Access-Control-Allow-Headers: authorization\r\n", "Content-Length: 0\r\n" } },

        { "GET /nowhere?a HTTP/1.1\r\n" HOST "\r\n",
          "404 Not Found",
          { "Content-Type: application/problem+json\r\n",
            "{\"type\":\"https://api.backend.ai/probs/url-not-found\",\"title\":\"Unknown URL "
            "path.\",",
            "\"data\":\"/nowhere\"" } },
        { "GET /session/ HTTP/1.1\r\n" HOST "\r\n", "404 Not Found", { "url-not-found" } },
        { "GET //echo HTTP/1.1\r\n" HOST "\r\n", "404 Not Found", { "url-not-found" } },
        { "GET /echo/ HTTP/1.1\r\n" HOST "\r\n", "404 Not Found", { "url-not-found" } },
        { "OPTIONS /nowhere HTTP/1.1\r\n" HOST "\r\n", "404 Not Found", { "url-not-found" } },
        { "PUT /echo HTTP/1.1\r\n" HOST "\r\n",
          "405 Method Not Allowed",
          { "Allow: GET, HEAD, POST, PATCH, DELETE\r\n", "method-not-allowed" } },
        { "PROPFIND /echo HTTP/1.1\r\n" HOST "\r\n",
          "405 Method Not Allowed",
          { "method-not-allowed" } },
        { "GET /session/%zz HTTP/1.1\r\n" HOST "\r\n",
          "400 Bad Request",
          { "generic-bad-request" } },
        { "GET /session/%ff HTTP/1.1\r\n" HOST "\r\n",
          "400 Bad Request",
          { "generic-bad-request" } },
        { "GET /session/%00 HTTP/1.1\r\n" HOST "\r\n",
          "400 Bad Request",
          { "generic-bad-request" } },
        { "GET /echo?x=%f HTTP/1.1\r\n" HOST "\r\n", "400 Bad Request", { "generic-bad-request" } },
        { "GET /error HTTP/1.1\r\n" HOST "\r\n",
          "400 Bad Request",
          { "invalid-api-params", "\"msg\":\"Input validation error\"",
            "\"data\":{\"mem\":\"'12x' is not a size\"}" } },
        { "POST /secret HTTP/1.1\r\n" HOST "\r\n",
          "401 Unauthorized",
          { "auth-failed", "Unauthorized access", "error_code" } },
        { "POST /secret HTTP/1.1\r\n" HOST "X-Key: 1\r\n\r\n", "204 No Content", { NULL } },
        { "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 101\r\n\r\n",
          "413 Payload Too Large",
          { NULL } },
        { "POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 101\r\n\r\n",
          "413 ",
          { "request-too-large", "Connection: close\r\n" } },
        { "GET / HTTP/1.1\r\n" HOST "Expect: x\r\n\r\n",
          "417 Expectation Failed",
          { "Connection: close\r\n" } },
        { "GET / HTTP/1.1\n\n",
          "400 Bad Request",
          { "Connection: close\r\n", "generic-bad-request" } },
        { "GET / HTTP/3.0\r\n\r\n", "505 HTTP Version Not Supported", { NULL } },
    };
    static const size_t steps[] = { 100000, 1, 13 };

    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        for (size_t k = 0; k < AQ_COUNT(steps); k++) {
            AQ_CLEANUP(aq_freep) char *answer = talk(*state, rows[i].request, steps[k]);
            const char *want = rows[i].status;

            assert_row(!strncmp(answer, "HTTP/1.1 ", 9) && !strncmp(answer + 9, want, strlen(want)),
                       "%s: %s", rows[i].request, answer);
            for (size_t w = 0; w < 3 && rows[i].wants[w]; w++)
                assert_row(strstr(answer, rows[i].wants[w]), "%s lacks '%s': %s", rows[i].request,
                           rows[i].wants[w], answer);
            assert_row(!strstr(answer, "X-Bad"), "%s", rows[i].request);
        }
}

static void test_head_has_no_body(void **state)
{
    AQ_CLEANUP(aq_freep) char *answer = talk(
        *state, "HEAD / HTTP/1.1\r\n" HOST "\r\nHEAD /stream HTTP/1.1\r\n" HOST "\r\n", 1000);

    assert_int_equal(COUNT(answer, "HTTP/1.1 200 OK"), 2);
    assert_null(strstr(answer, "true"));
    assert_null(strstr(answer, "one"));
}

static void test_pipeline(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *answer = NULL;
    const char *at;

    for (int i = 0; i < 200; i++)
        strbuf_addf(&text, "GET /echo?x=%d HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nb", i);
    answer = talk(*state, text.data, 100000);
    at = answer;
    for (int i = 0; i < 200; i++) {
        char want[32];

        (void)snprintf(want, sizeof(want), "GET - %d [b]", i);
        at = strstr(at, want);
        assert_row(at, "answer %d", i);
    }
}

#define REFUSED_LENGTH "POST /secret HTTP/1.1\r\n" HOST "Content-Length: 20\r\n\r\n"
#define REFUSED_CHUNKED "POST /secret HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n14\r\n"
#define EVIL_BODY "GET /evil HTTP/1.1\r\n" /* 20 bytes */
#define NEXT "GET / HTTP/1.1\r\n" HOST "\r\n"

/* A refused request's small body is read, and never as a request of its own; the next request is
 * served.
 */
static void test_refused_body_skipped(void **state)
{
    static const char *const rows[] = {
        REFUSED_LENGTH EVIL_BODY NEXT,
        REFUSED_CHUNKED EVIL_BODY "\r\n0\r\n\r\n" NEXT,
    };

    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        for (size_t step = 1; step <= strlen(rows[i]); step++) {
            AQ_CLEANUP(aq_freep) char *answer = talk(*state, rows[i], step);

            assert_row(COUNT(answer, "HTTP/1.1 401") == 1 && COUNT(answer, "HTTP/1.1 200") == 1
                           && COUNT(answer, "HTTP/1.1 ") == 2
                           && !strstr(answer, "Connection: close"),
                       "%zu in pieces of %zu: %s", i, step, answer);
        }
}

/* A client that is told early may not send the rest, and yet use the connection again: nothing is
 * said before the last byte has come.
 */
static void test_refused_body_comes_first(void **state)
{
    static const char *const rows[] = {
        REFUSED_LENGTH EVIL_BODY,
        REFUSED_CHUNKED EVIL_BODY "\r\n0\r\n\r\n",
        "POST /nothing HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx",
        "POST /session/s HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx",
        "POST /echo?x=%zz HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx",
        "OPTIONS /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct loopback *lb = NULL;
        size_t len = strlen(rows[i]);

        lb = loopback_new(f->server);
        for (size_t at = 0; at < len; at++) {
            assert_row(!loopback_get_output(lb)->len, "row %zu: answered after %zu bytes", i, at);
            loopback_send(lb, rows[i] + at, 1);
        }
        assert_row(COUNT(loopback_get_output(lb)->data, "HTTP/1.1 ") == 1, "row %zu", i);
        loopback_send(lb, NEXT, strlen(NEXT));
        assert_row(COUNT(loopback_get_output(lb)->data, "HTTP/1.1 200") >= 1
                       && COUNT(loopback_get_output(lb)->data, "HTTP/1.1 ") == 2,
                   "row %zu: the next request", i);
        loopback_free(lb);
    }
}

/* A body that is too long to be read, or breaks off, ends the connection; what comes after the
 * answer is no request.
 */
static void test_refused_body_closes(void **state)
{
    static const char *const rows[] = {
        "POST /secret HTTP/1.1\r\n" HOST "Content-Length: 1000000\r\n\r\nabc",
        "POST /secret HTTP/1.1\r\n" HOST "Content-Length: 65537\r\n\r\n",
        "POST /secret HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n",
        "POST /secret HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\nab",
        "POST /secret HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nFFFFFFF\r\n",
    };

    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        for (size_t step = 1; step <= strlen(rows[i]); step++) {
            AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
            AQ_CLEANUP(aq_freep) char *answer = NULL;

            strbuf_addf(&text, "%s" NEXT, rows[i]);
            answer = talk(*state, text.data, step);
            assert_row(COUNT(answer, "HTTP/1.1 401") == 1 && COUNT(answer, "HTTP/1.1 ") == 1
                           && COUNT(answer, "Connection: close\r\n") == 1
                           && strstr(answer, "\r\n\r\n{") && !strstr(answer, "100 Continue"),
                       "%s: %s", rows[i], answer);
        }
}

/* Chunks that are more than is read of a refused body, and a client that stops in the middle. */
static void test_refused_body_without_end(void **state)
{
    static char chunk[1006];
    struct fixture *f = *state;
    struct loopback *lb = NULL;
    const char *answer;
    size_t sent = 0;

    memcpy(chunk, "3e8\r\n", 5); /* 1000 bytes; their CR LF begin the next step */
    memset(chunk + 5, 'x', 1000);
    lb = loopback_new(f->server);
    loopback_send(lb, REFUSED_CHUNKED EVIL_BODY "\r\n", strlen(REFUSED_CHUNKED EVIL_BODY "\r\n"));
    for (; !loopback_is_closed(lb); sent += 1000) {
        assert_true(sent <= 65536);
        assert_int_equal(loopback_get_output(lb)->len, 0);
        loopback_send(lb, chunk, 1005);
        loopback_send(lb, "\r\n", 2);
    }
    answer = loopback_get_output(lb)->data;
    assert_int_equal(COUNT(answer, "HTTP/1.1 401"), 1);
    assert_non_null(strstr(answer, "Connection: close\r\n"));
    loopback_free(lb);

    lb = loopback_new(f->server);
    loopback_send(lb, REFUSED_LENGTH "abc", strlen(REFUSED_LENGTH "abc"));
    assert_int_equal(loopback_get_output(lb)->len, 0);
    loopback_hang_up(lb);
    answer = loopback_get_output(lb)->data;
    assert_int_equal(COUNT(answer, "HTTP/1.1 401"), 1);
    assert_non_null(strstr(answer, "Connection: close\r\n"));
    loopback_free(lb);
}

static void test_answer_later(void **state)
{
    struct fixture *f = *state;
    struct loopback *lb = NULL;
    static const char two[] = "GET /hold HTTP/1.1\r\n" HOST "\r\nGET / HTTP/1.1\r\n" HOST "\r\n";

    lb = loopback_new(f->server);
    loopback_send(lb, two, sizeof(two) - 1);
    assert_string_equal(loopback_get_output(lb)->data, ""); /* in order */
    request_reply(f->held, 201, "text/plain", "later", 5);
    assert_int_equal(COUNT(loopback_get_output(lb)->data, "HTTP/1.1 201"), 1);
    assert_int_equal(COUNT(loopback_get_output(lb)->data, "HTTP/1.1 200"), 0);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_int_equal(COUNT(loopback_get_output(lb)->data, "HTTP/1.1 200"), 1);
    loopback_send(lb, "GET / HTTP/1.1\r\n" HOST "\r\n", 27);
    assert_int_equal(COUNT(loopback_get_output(lb)->data, "HTTP/1.1 200"), 2);
    loopback_free(lb);
}

static void test_client_gone(void **state)
{
    struct fixture *f = *state;
    struct loopback *lb = NULL;

    lb = loopback_new(f->server);
    loopback_send(lb, "GET /hold HTTP/1.1\r\n" HOST "\r\n", 31);
    assert_false(f->gone);
    loopback_hang_up(lb);
    assert_true(f->gone);
    assert_int_equal(request_write(f->held, "x", 1), -EPIPE);
    assert_string_equal(request_get_target(f->held), "/hold");
    request_reply_empty(f->held, 204);
    loopback_free(lb);
}

static void test_upload(void **state)
{
    struct fixture *f = *state;
    struct loopback *lb = NULL;
    static const char head[] = "POST /upload HTTP/1.1\r\n" HOST "Content-Length: 6\r\n\r\n";

    lb = loopback_new(f->server);
    loopback_send(lb, head, sizeof(head) - 1);
    loopback_send(lb, "abc", 3);
    assert_string_equal(f->seen.data, "<abc>");
    request_pause_body(f->held);
    loopback_send(lb, "def", 3);
    assert_string_equal(f->seen.data, "<abc>");
    request_resume_body(f->held);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_string_equal(f->seen.data, "<abc><def>0");
    assert_int_equal(COUNT(loopback_get_output(lb)->data, "HTTP/1.1 204"), 1);

    /* broken off by the client, and too long by the chunk */
    strbuf_clear(&f->seen);
    loopback_send(lb, head, sizeof(head) - 1);
    loopback_send(lb, "abc", 3);
    loopback_hang_up(lb);
    assert_string_equal(f->seen.data, "<abc>-104");
    loopback_free(lb);
}

static void test_upload_too_long(void **state)
{
    struct fixture *f = *state;
    AQ_CLEANUP(aq_freep) char *answer = talk(f,
                                             "POST /upload HTTP/1.1\r\n" HOST
                                             "Transfer-Encoding: chunked\r\n\r\n"
                                             "2\r\nab\r\n31\r\n",
                                             1000);

    assert_string_equal(f->seen.data, "<ab>-27");
    assert_non_null(strstr(answer, "Connection: close\r\n"));
}

static void test_stop_grace(void **state)
{
    struct fixture *f = *state;
    struct loopback *idle = NULL, *busy = NULL;

    idle = loopback_new(f->server);
    busy = loopback_new(f->server);
    loopback_send(busy, "GET /hold HTTP/1.1\r\n" HOST "\r\n", 31);
    server_stop(f->server, 60000, on_stopped, f);
    assert_true(loopback_is_closed(idle));
    assert_false(loopback_is_closed(busy));
    request_reply_empty(f->held, 204);
    assert_int_equal(COUNT(loopback_get_output(busy)->data, "Connection: close"), 1);
    loopback_free(busy);
    loopback_free(idle);
    while (!f->stopped)
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    f->stopped = false;
}

/* ---- signatures through a server ---- */

static int sign_guard(struct request *req, const struct route *route, void *data,
                      struct aq_error *err)
{
    const int64_t *now = data;
    struct sign_claim claim;
    int r;

    (void)route;
    r = sign_claim_from_request(req, *now, &claim, err);
    if (r < 0)
        return r;
    if (strcmp(claim.access_key, "AKIAIOSFODNN7EXAMPLE"))
        return sign_fail_unknown_key(err);
    return sign_verify(NULL, &claim, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", err);
}

#define DATE "Date: 2026-11-21T01:02:03.456789+00:00\r\n"
#define AUTH(key)                                                      \
    "Authorization: BackendAI signMethod=HMAC-SHA256, credential=" key \
    ":17daad851ab0d045e614ef448de0c8cef3c8f0e3538c6ddecc6618e4c2ec1f3c\r\n"
#define KEY "AKIAIOSFODNN7EXAMPLE"
#define TARGET "/session/mysess1?owner_access_key=AKIAX"
#define REST "Content-Type: text/plain\r\nX-BackendAI-Version: v6.20220315\r\n"
#define HOST1 "Host: 127.0.0.1:8081\r\n"

static void test_signed(void **state)
{
    static const struct {
        const char *what, *request;
        int skew_sec;
        const char *status, *slug, *msg;
    } rows[] = {
        { "good", "GET " TARGET " HTTP/1.1\r\n" HOST1 DATE AUTH(KEY) REST "\r\n", 0, "200", "",
          "" },
        { "a body is not signed",
          "GET " TARGET " HTTP/1.1\r\n" HOST1 DATE AUTH(KEY) REST "Content-Length: 2\r\n\r\nhi", 0,
          "200", "", "" },
        { "14 minutes late", "GET " TARGET " HTTP/1.1\r\n" HOST1 DATE AUTH(KEY) REST "\r\n", 840,
          "200", "", "" },
        { "15 minutes late", "GET " TARGET " HTTP/1.1\r\n" HOST1 DATE AUTH(KEY) REST "\r\n", 901,
          "400", "invalid-auth-params", "Date/time sync error" },
        { "15 minutes early", "GET " TARGET " HTTP/1.1\r\n" HOST1 DATE AUTH(KEY) REST "\r\n", -901,
          "400", "invalid-auth-params", "Date/time sync error" },
        { "no date", "GET " TARGET " HTTP/1.1\r\n" HOST1 AUTH(KEY) REST "\r\n", 0, "400",
          "invalid-auth-params", "Date/time sync error" },
        { "date in another header",
          "GET " TARGET " HTTP/1.1\r\n" HOST1 "X-BackendAI-" DATE AUTH(KEY) REST "\r\n", 0, "200",
          "", "" },
        { "bad date before no authorization", "GET " TARGET " HTTP/1.1\r\n" HOST1 "Date: x\r\n\r\n",
          0, "400", "invalid-auth-params", "Date/time sync error" },
        { "no authorization", "GET " TARGET " HTTP/1.1\r\n" HOST1 DATE REST "\r\n", 0, "401",
          "auth-failed", "Unauthorized access" },
        { "no version",
          "GET " TARGET " HTTP/1.1\r\n" HOST1 DATE AUTH(KEY) "Content-Type: text/plain\r\n\r\n", 0,
          "400", "invalid-auth-params", "API version missing in request headers" },
        { "unknown key", "GET " TARGET " HTTP/1.1\r\n" HOST1 DATE AUTH("AKIA1") REST "\r\n", 0,
          "401", "auth-failed", "Access key not found" },
        { "other path",
          "GET /session/mysess2?owner_access_key=AKIAX HTTP/1.1\r\n" HOST1 DATE AUTH(KEY) REST
          "\r\n",
          0, "401", "auth-failed", "Signature mismatch" },
        { "other query",
          "GET /session/mysess1?owner_access_key=AKIAY HTTP/1.1\r\n" HOST1 DATE AUTH(KEY) REST
          "\r\n",
          0, "401", "auth-failed", "Signature mismatch" },
        { "other host",
          "GET " TARGET " HTTP/1.1\r\nHost: localhost:8081\r\n" DATE AUTH(KEY) REST "\r\n", 0,
          "401", "auth-failed", "Signature mismatch" },
        { "other method", "HEAD " TARGET " HTTP/1.1\r\n" HOST1 DATE AUTH(KEY) REST "\r\n", 0, "401",
          NULL, NULL },
        { "other version",
          "GET " TARGET " HTTP/1.1\r\n" HOST1 DATE AUTH(
              KEY) "Content-Type: text/plain\r\nX-BackendAI-Version: v6.20220615\r\n\r\n",
          0, "401", "auth-failed", "Signature mismatch" },
        { "other content type",
          "GET " TARGET " HTTP/1.1\r\n" HOST1 DATE AUTH(
              KEY) "Content-Type: application/json\r\nX-BackendAI-Version: v6.20220315\r\n\r\n",
          0, "401", "auth-failed", "Signature mismatch" },
    };
    struct fixture *f = *state;
    int64_t date, now;
    struct server_options options = {
        .app = { .router = f->router, .guard = sign_guard, .guard_data = &now }
    };
    struct server *plain = f->server;

    assert_int_equal(clock_parse_date("2026-11-21T01:02:03.456789+00:00", &date), 0);
    f->server = server_new(&f->loop, &options);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(aq_freep) char *answer = NULL;

        now = date + rows[i].skew_sec * USEC_PER_SEC;
        answer = talk(f, rows[i].request, 10000);
        assert_row(!strncmp(answer + 9, rows[i].status, 3), "%s: %s", rows[i].what, answer);
        assert_row(!rows[i].slug || (strstr(answer, rows[i].slug) && strstr(answer, rows[i].msg)),
                   "%s: %s", rows[i].what, answer);
    }
    server_free(f->server);
    f->server = plain;
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_table),
        T(test_head_has_no_body),
        T(test_pipeline),
        T(test_refused_body_skipped),
        T(test_refused_body_comes_first),
        T(test_refused_body_closes),
        T(test_refused_body_without_end),
        T(test_answer_later),
        T(test_client_gone),
        T(test_upload),
        T(test_upload_too_long),
        T(test_stop_grace),
        T(test_signed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
