/* SPDX-License-Identifier: Apache-2.0 */
/* Every strictness rule as a row: accepted and refused, fed whole and byte by byte. */
#include "testing.h"

#include <errno.h>

#include "http/message.h"

#define HOST "Host: a\r\n"
#define GET "GET / HTTP/1.1\r\n" HOST

struct row {
    const char *what;
    const char *text;
    const char *kind; /* NULL = accepted */
    const char *body; /* expected where accepted; NULL = "" */
};

static const struct row requests[] = {
    { "plain GET", GET "\r\n", NULL, NULL },
    { "one empty line before", "\r\n" GET "\r\n", NULL, NULL },
    { "GET with a body", GET "Content-Length: 2\r\n\r\nhi", NULL, "hi" },
    { "DELETE with a chunked body",
      "DELETE /x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", NULL,
      "hi" },
    { "coding in capitals", GET "Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n", NULL, NULL },
    { "several chunks",
      GET "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n00A\r\n0123456789\r\n0\r\n\r\n", NULL,
      "hi0123456789" },
    { "chunk extension", GET "Transfer-Encoding: chunked\r\n\r\n2;a=b\r\nhi\r\n0;x\r\n\r\n", NULL,
      "hi" },
    { "trailer", GET "Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\nC: d\r\n\r\n", NULL, NULL },
    { "empty value", GET "A:\r\n\r\n", NULL, NULL },
    { "blanks around a value", GET "A: \t b \t\r\n\r\n", NULL, NULL },
    { "HTTP/1.0 without Host", "GET / HTTP/1.0\r\n\r\n", NULL, NULL },
    { "repeated harmless header", GET "A: 1\r\nA: 2\r\n\r\n", NULL, NULL },
    { "UTF-8 in a value", GET "A: \xc3\xa9\r\n\r\n", NULL, NULL },
    { "OPTIONS *", "OPTIONS * HTTP/1.1\r\n" HOST "\r\n", NULL, NULL },

    { "two empty lines before", "\r\n\r\n" GET "\r\n", "generic-bad-request", NULL },
    { "bare LF after the request line", "GET / HTTP/1.1\n" HOST "\r\n", "generic-bad-request",
      NULL },
    { "bare LF after a header", GET "A: b\n\r\n", "generic-bad-request", NULL },
    { "bare LF at the end", GET "\n", "generic-bad-request", NULL },
    { "bare CR in a value", GET "A: b\rc\r\n\r\n", "generic-bad-request", NULL },
    { "bare CR in the target", "GET /\r HTTP/1.1\r\n" HOST "\r\n", "generic-bad-request", NULL },
    { "folded header", GET "A: b\r\n c\r\n\r\n", "generic-bad-request", NULL },
    { "folded with a tab", GET "A: b\r\n\tc\r\n\r\n", "generic-bad-request", NULL },
    { "blank before the first header", "GET / HTTP/1.1\r\n " HOST "\r\n", "generic-bad-request",
      NULL },
    { "blank before the colon", GET "A : b\r\n\r\n", "generic-bad-request", NULL },
    { "blank in a name", GET "A B: b\r\n\r\n", "generic-bad-request", NULL },
    { "no colon", GET "Abc\r\n\r\n", "generic-bad-request", NULL },
    { "empty name", GET ": b\r\n\r\n", "generic-bad-request", NULL },
    { "bracket in a name", GET "A[]: b\r\n\r\n", "generic-bad-request", NULL },
    { "control character in a value", GET "A: b\x01\r\n\r\n", "generic-bad-request", NULL },
    { "DEL in a value", GET "A: b\x7f\r\n\r\n", "generic-bad-request", NULL },
    { "no Host", "GET / HTTP/1.1\r\n\r\n", "generic-bad-request", NULL },
    { "empty Host", "GET / HTTP/1.1\r\nHost: \r\n\r\n", "generic-bad-request", NULL },
    { "two Hosts", GET HOST "\r\n", "generic-bad-request", NULL },
    { "a list as Host", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", "generic-bad-request", NULL },
    { "a user in Host", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", "generic-bad-request", NULL },
    { "two Content-Lengths", GET "Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
      "generic-bad-request", NULL },
    { "a list of lengths", GET "Content-Length: 1, 1\r\n\r\na", "generic-bad-request", NULL },
    { "signed length", GET "Content-Length: +1\r\n\r\na", "generic-bad-request", NULL },
    { "negative length", GET "Content-Length: -1\r\n\r\n", "generic-bad-request", NULL },
    { "hexadecimal length", GET "Content-Length: 0x1\r\n\r\na", "generic-bad-request", NULL },
    { "empty length", GET "Content-Length:\r\n\r\n", "generic-bad-request", NULL },
    { "huge length", GET "Content-Length: 99999999999999999999999\r\n\r\n", "generic-bad-request",
      NULL },
    { "length and coding", GET "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "generic-bad-request", NULL },
    { "coding and length", GET "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
      "generic-bad-request", NULL },
    { "gzip, chunked", GET "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      "generic-bad-request", NULL },
    { "chunked twice", GET "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
      "generic-bad-request", NULL },
    { "two codings", GET "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
      "generic-bad-request", NULL },
    { "identity", GET "Transfer-Encoding: identity\r\n\r\n", "generic-bad-request", NULL },
    { "chunked with a tail", GET "Transfer-Encoding: chunkedx\r\n\r\n", "generic-bad-request",
      NULL },
    { "chunked in HTTP/1.0", "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "generic-bad-request", NULL },
    { "two Authorizations", GET "Authorization: a\r\nauthorization: b\r\n\r\n",
      "generic-bad-request", NULL },
    { "two Dates", GET "Date: a\r\nDate: a\r\n\r\n", "generic-bad-request", NULL },
    { "two Content-Types", GET "Content-Type: a/b\r\nContent-Type: a/b\r\n\r\n",
      "generic-bad-request", NULL },
    { "two blanks after the method", "GET  / HTTP/1.1\r\n" HOST "\r\n", "generic-bad-request",
      NULL },
    { "two blanks before the version", "GET /  HTTP/1.1\r\n" HOST "\r\n", "generic-bad-request",
      NULL },
    { "blank at the end of the line", "GET / HTTP/1.1 \r\n" HOST "\r\n", "generic-bad-request",
      NULL },
    { "tab in the request line", "GET\t/ HTTP/1.1\r\n" HOST "\r\n", "generic-bad-request", NULL },
    { "HTTP/0.9", "GET /\r\n\r\n", "http-version-not-supported", NULL },
    { "HTTP/2.0", "GET / HTTP/2.0\r\n" HOST "\r\n", "http-version-not-supported", NULL },
    { "HTTP/1.2", "GET / HTTP/1.2\r\n" HOST "\r\n", "http-version-not-supported", NULL },
    { "preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "generic-bad-request", NULL },
    { "lower-case method", "get / HTTP/1.1\r\n" HOST "\r\n", "generic-bad-request", NULL },
    { "unknown method", "FETCH / HTTP/1.1\r\n" HOST "\r\n", "generic-bad-request", NULL },
    { "absolute target", "GET http://a/ HTTP/1.1\r\n" HOST "\r\n", "generic-bad-request", NULL },
    { "CONNECT", "CONNECT a:1 HTTP/1.1\r\n" HOST "\r\n", "generic-bad-request", NULL },
    { "fragment", "GET /#a HTTP/1.1\r\n" HOST "\r\n", "generic-bad-request", NULL },
    { "8-bit target", "GET /\xc3\xa9 HTTP/1.1\r\n" HOST "\r\n", "generic-bad-request", NULL },
    { "TLS hello", "\x16\x03\x01\x02\x01\r\n\r\n", "generic-bad-request", NULL },
    { "unknown expectation", GET "Expect: 200-ok\r\n\r\n", "expectation-failed", NULL },
    { "chunk size with a sign", GET "Transfer-Encoding: chunked\r\n\r\n+2\r\nhi\r\n",
      "generic-bad-request", NULL },
    { "chunk size 0x", GET "Transfer-Encoding: chunked\r\n\r\n0x2\r\nhi\r\n", "generic-bad-request",
      NULL },
    { "blank before a chunk size", GET "Transfer-Encoding: chunked\r\n\r\n 2\r\nhi\r\n",
      "generic-bad-request", NULL },
    { "no chunk size", GET "Transfer-Encoding: chunked\r\n\r\n\r\n", "generic-bad-request", NULL },
    { "huge chunk size", GET "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
      "generic-bad-request", NULL },
    { "LF after a chunk size", GET "Transfer-Encoding: chunked\r\n\r\n2\nhi\r\n0\r\n\r\n",
      "generic-bad-request", NULL },
    { "LF in a chunk extension", GET "Transfer-Encoding: chunked\r\n\r\n2;a\nb\r\nhi\r\n0\r\n\r\n",
      "generic-bad-request", NULL },
    { "chunk longer than said", GET "Transfer-Encoding: chunked\r\n\r\n2\r\nhi!\r\n0\r\n\r\n",
      "generic-bad-request", NULL },
    { "any two bytes after a chunk", GET "Transfer-Encoding: chunked\r\n\r\n2\r\nhixx0\r\n\r\n",
      "generic-bad-request", NULL },
    { "folded trailer", GET "Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n c\r\n\r\n",
      "generic-bad-request", NULL },
    { "LF in a trailer", GET "Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\nc\r\n\r\n",
      "generic-bad-request", NULL },
};

static const struct row responses[] = {
    { "with a length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", NULL, "hi" },
    { "chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", NULL,
      "hi" },
    { "no reason", "HTTP/1.1 204\r\n\r\n", NULL, NULL },
    { "304 with a length", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", NULL, NULL },
    { "101", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", NULL,
      NULL },
    { "length and coding",
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "generic-bad-request", NULL },
    { "status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", "generic-bad-request", NULL },
    { "status 99", "HTTP/1.1 099 OK\r\n\r\n", "generic-bad-request", NULL },
    { "no status", "HTTP/1.1 OK\r\n\r\n", "generic-bad-request", NULL },
    { "ICY", "ICY 200 OK\r\n\r\n", "generic-bad-request", NULL },
    { "bare LF", "HTTP/1.1 200 OK\n\n", "generic-bad-request", NULL },
    { "two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
      "generic-bad-request", NULL },
};

/* Feed 'step' bytes at a time. Returns 1 at the end, 0 if more is needed, -errno. */
static int feed_all(struct message_parser *p, const char *text, size_t len, size_t step,
                    struct strbuf *body, struct aq_error *err)
{
    struct message_piece piece = { MESSAGE_MORE, NULL, 0 };
    size_t at = 0;

    for (;;) {
        size_t n = AQ_MIN(step, len - at);
        ssize_t used = message_feed(p, text + at, n, &piece, err);

        if (used < 0)
            return (int)used;
        at += (size_t)used;
        if (piece.event == MESSAGE_END)
            return at == len ? 1 : 2;
        if (piece.event == MESSAGE_BODY)
            strbuf_add(body, piece.bytes, piece.len);
        if (piece.event == MESSAGE_MORE && at == len)
            return 0;
    }
}

static void check_rows(const struct row *rows, size_t count, bool is_request)
{
    static const size_t steps[] = { 1, 7, 100000 };

    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < AQ_COUNT(steps); k++) {
            AQ_CLEANUP(message_parser_freep) struct message_parser *p = NULL;
            AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
            const struct row *row = &rows[i];
            struct aq_error err = { .code = 0 };
            int r;

            assert_int_equal(message_parser_new(is_request, &message_limits_default, &p, NULL), 0);
            r = feed_all(p, row->text, strlen(row->text), steps[k], &body, &err);
            if (row->kind) {
                assert_row(r < 0, "%s: accepted", row->what);
                assert_row(err.kind && !strcmp(err.kind, row->kind), "%s: %s", row->what, err.text);
                r = feed_all(p, GET "\r\n", strlen(GET "\r\n"), steps[k], &body, &err);
                assert_row(r < 0, "%s: read on after a failure", row->what);
            } else {
                assert_row(r == 1, "%s: %d %s", row->what, r, err.text);
                assert_row(!strcmp(body.data, row->body ? row->body : ""), "%s: body '%s'",
                           row->what, body.data);
            }
        }
}

static void test_requests(void **state)
{
    (void)state;
    check_rows(requests, AQ_COUNT(requests), true);
}

static void test_responses(void **state)
{
    (void)state;
    check_rows(responses, AQ_COUNT(responses), false);
}

static void test_nul(void **state)
{
    static const char text[] = GET "A: b\0c\r\n\r\n";
    AQ_CLEANUP(message_parser_freep) struct message_parser *p = NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;

    (void)state;
    assert_int_equal(message_parser_new(true, &message_limits_default, &p, NULL), 0);
    assert_true(feed_all(p, text, sizeof(text) - 1, 1, &body, NULL) < 0);
}

static const struct message_limits small = {
    .line_max = 40,
    .head_max = 100,
    .headers_max = 3,
    .body_max = 10,
};

static void test_limits(void **state)
{
    static const struct row rows[] = {
        { "within", GET "A: 1\r\nContent-Length: 10\r\n\r\n0123456789", "", NULL },
        { "long line", "GET /0123456789012345678901234567890 HTTP/1.1\r\n", "uri-too-long", NULL },
        { "endless line", "GET /01234567890123456789012345678901234567890", "uri-too-long", NULL },
        { "headers", GET "A: 1\r\nB: 2\r\nC: 3\r\n\r\n", "head-too-large", NULL },
        { "long head",
          GET
          "A: 012345678901234567890123456789012345678901234567890123456789012345678901234567\r\n",
          "head-too-large", NULL },
        { "long body", GET "Content-Length: 11\r\n\r\n", "request-too-large", NULL },
        { "long chunk", GET "Transfer-Encoding: chunked\r\n\r\nb\r\n", "request-too-large", NULL },
        { "long chunks", GET "Transfer-Encoding: chunked\r\n\r\n9\r\n012345678\r\n2\r\n",
          "request-too-large", NULL },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(message_parser_freep) struct message_parser *p = NULL;
        AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
        struct aq_error err = { .code = 0 };

        assert_int_equal(message_parser_new(true, &small, &p, NULL), 0);
        (void)feed_all(p, rows[i].text, strlen(rows[i].text), 1000, &body, &err);
        assert_row(!strcmp(err.code ? err.kind : "", rows[i].kind), "%s: %s", rows[i].what,
                   err.text);
    }
}

static void test_endless_trailer(void **state)
{
    static const char start[] = GET "Transfer-Encoding: chunked\r\n\r\n0\r\n";
    AQ_CLEANUP(message_parser_freep) struct message_parser *p = NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    int r;

    (void)state;
    assert_int_equal(message_parser_new(true, &message_limits_default, &p, NULL), 0);
    r = feed_all(p, start, sizeof(start) - 1, 1000, &body, NULL);
    for (int i = 0; i < 10000 && r == 0; i++)
        r = feed_all(p, "A: b\r\n", 6, 6, &body, NULL);
    assert_true(r < 0);
}

static void test_head(void **state)
{
    static const char text[] = "POST /a?b=c HTTP/1.1\r\nhost: h:1\r\nX-Empty:\r\nCONNECTION: a , "
                               "Upgrade\r\nUpgrade: websocket\r\nX-Pad:  v \r\n\r\n";
    AQ_CLEANUP(message_parser_freep) struct message_parser *p = NULL;
    const struct message_head *head;
    struct message_piece piece;

    (void)state;
    assert_int_equal(message_parser_new(true, &message_limits_default, &p, NULL), 0);
    assert_int_equal(message_feed(p, text, sizeof(text) - 1, &piece, NULL), sizeof(text) - 1);
    assert_int_equal(piece.event, MESSAGE_HEAD);
    head = message_get_head(p);
    assert_int_equal(head->method, METHOD_POST);
    assert_string_equal(head->target, "/a?b=c");
    assert_int_equal(head->header_count, 5);
    assert_string_equal(message_get_header(head, "HOST"), "h:1");
    assert_string_equal(message_get_header(head, "x-empty"), "");
    assert_string_equal(message_get_header(head, "x-pad"), "v");
    assert_null(message_get_header(head, "x-pa"));
    assert_true(message_has_token(head, "connection", "upgrade"));
    assert_false(message_has_token(head, "connection", "up"));
    assert_true(head->is_upgrade);
    assert_true(head->keep_alive);
    assert_int_equal(message_feed(p, NULL, 0, &piece, NULL), 0);
    assert_int_equal(piece.event, MESSAGE_END);
    assert_true(message_feed(p, "x", 1, &piece, NULL) < 0);
}

static void test_until_close(void **state)
{
    static const char text[] = "HTTP/1.1 200 OK\r\n\r\nsome";
    AQ_CLEANUP(message_parser_freep) struct message_parser *p = NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;

    (void)state;
    assert_int_equal(message_parser_new(false, &message_limits_default, &p, NULL), 0);
    assert_int_equal(feed_all(p, text, sizeof(text) - 1, 1, &body, NULL), 0);
    assert_int_equal(message_finish(p, NULL), 0);
    assert_string_equal(body.data, "some");
    message_reset(p);
    assert_int_equal(message_finish(p, NULL), 0);
    assert_int_equal(feed_all(p, "HTTP/1.1 200", 12, 1, &body, NULL), 0);
    assert_int_equal(message_finish(p, NULL), -EPROTO);
}

static void test_skip_body(void **state)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n";
    AQ_CLEANUP(message_parser_freep) struct message_parser *p = NULL;
    struct message_piece piece;

    (void)state;
    assert_int_equal(message_parser_new(false, &message_limits_default, &p, NULL), 0);
    assert_true(message_feed(p, text, sizeof(text) - 1, &piece, NULL) > 0);
    message_skip_body(p);
    assert_int_equal(message_feed(p, NULL, 0, &piece, NULL), 0);
    assert_int_equal(piece.event, MESSAGE_END);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_responses),
        cmocka_unit_test(test_nul),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_endless_trailer),
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_until_close),
        cmocka_unit_test(test_skip_body),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
