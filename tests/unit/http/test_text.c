/* SPDX-License-Identifier: Apache-2.0 */
/* URLs, queries, addresses, routes and problem documents: accepted and refused. */
#include "testing.h"

#include <errno.h>

#include "http/problem.h"
#include "http/router.h"
#include "http/url.h"

static void test_query(void **state)
{
    static const struct {
        const char *text, *want; /* "name=value;" each; NULL = refused */
    } rows[] = {
        { "", "" },
        { "a=1", "a=1;" },
        { "a=1&b=2&a=3", "a=1;b=2;a=3;" },
        { "a&b=&=c", "a=;b=;=c;" },
        { "&&a=1&", "a=1;" },
        { "a+b=c%20d%2B", "a b=c d+;" },
        { "a=b=c", "a=b=c;" },
        { "%C3%A9=%c3%a9", "\xc3\xa9=\xc3\xa9;" },
        { "a=%", NULL },
        { "a=%4", NULL },
        { "a=%4g", NULL },
        { "a=%00", NULL },
        { "a=%ff", NULL },
        { "a=%c0%80", NULL },
        { "%ed%a0%80=1", NULL },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        AQ_CLEANUP(strbuf_donep) struct strbuf got = STRBUF_INIT;
        struct url_query query = { .count = 0 };
        int r = url_query_parse(&arena, rows[i].text, strlen(rows[i].text), &query, NULL);

        assert_row(r == (rows[i].want ? 0 : -EINVAL), "%s: %d", rows[i].text, r);
        for (size_t k = 0; k < query.count; k++)
            strbuf_addf(&got, "%s=%s;", query.pairs[k].name, query.pairs[k].value);
        assert_row(!rows[i].want || !strcmp(got.data, rows[i].want), "%s: %s", rows[i].text,
                   got.data);
    }
}

static void test_query_limit(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct url_query query;

    (void)state;
    for (int i = 0; i < URL_QUERY_MAX; i++)
        strbuf_adds(&text, "a=1&");
    assert_int_equal(url_query_parse(&arena, text.data, text.len, &query, NULL), 0);
    assert_int_equal(query.count, URL_QUERY_MAX);
    assert_string_equal(url_query_get(&query, "a"), "1");
    assert_null(url_query_get(&query, "b"));
    strbuf_adds(&text, "a=1");
    assert_int_equal(url_query_parse(&arena, text.data, text.len, &query, NULL), -E2BIG);
}

static void test_encode(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    (void)state;
    url_encode(&out, "aZ09-._~ /?&=+%\xc3\xa9");
    assert_string_equal(out.data, "aZ09-._~%20%2F%3F%26%3D%2B%25%C3%A9");
}

static void test_address(void **state)
{
    static const struct {
        const char *text;
        uint16_t default_port;
        const char *host; /* NULL = refused */
        uint16_t port;
        bool is_local;
    } rows[] = {
        { "127.0.0.1:8081", 0, "127.0.0.1", 8081, true },
        { "127.1.2.3:0", 0, "127.1.2.3", 0, true },
        { "localhost", 80, "localhost", 80, true },
        { "LOCALHOST:1", 0, "LOCALHOST", 1, true },
        { "[::1]:8081", 0, "::1", 8081, true },
        { "[::]:65535", 0, "::", 65535, false },
        { "[2001:db8::1]", 443, "2001:db8::1", 443, false },
        { "example.com:443", 0, "example.com", 443, false },
        { "0.0.0.0:1", 0, "0.0.0.0", 1, false },
        { "128.0.0.1:1", 0, "128.0.0.1", 1, false },
        { "unix:/run/a.sock", 0, "", 0, true },
        { "example.com", 0, NULL, 0, false },
        { "example.com:", 80, NULL, 0, false },
        { "example.com:65536", 0, NULL, 0, false },
        { "example.com:+1", 0, NULL, 0, false },
        { "example.com:1x", 0, NULL, 0, false },
        { ":80", 0, NULL, 0, false },
        { "::1:80", 0, NULL, 0, false },
        { "[::1", 80, NULL, 0, false },
        { "[a.b]:80", 0, NULL, 0, false },
        { "[::1]80", 0, NULL, 0, false },
        { "a b:80", 0, NULL, 0, false },
        { "a/b:80", 0, NULL, 0, false },
        { "unix:", 0, NULL, 0, false },
        { "", 80, NULL, 0, false },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct address address = { .port = 0 };
        int r = address_parse(rows[i].text, rows[i].default_port, &address, NULL);

        assert_row(r == (rows[i].host ? 0 : -EINVAL), "'%s': %d", rows[i].text, r);
        if (r < 0)
            continue;
        assert_row(!strcmp(address.host, rows[i].host) && address.port == rows[i].port, "'%s'",
                   rows[i].text);
        assert_row(address_is_local(&address) == rows[i].is_local, "'%s'", rows[i].text);
    }
}

static void test_url(void **state)
{
    static const struct {
        const char *text, *authority, *target; /* NULL = refused */
        bool tls;
        uint16_t port;
    } rows[] = {
        { "http://a.b", "a.b", "/", false, 80 },
        { "HTTPS://a.b/", "a.b", "/", true, 443 },
        { "http://127.0.0.1:8081/a?b=c", "127.0.0.1:8081", "/a?b=c", false, 8081 },
        { "ws://[::1]:80/x", "[::1]:80", "/x", false, 80 },
        { "wss://a", "a", "/", true, 443 },
        { "a.b/c", NULL, NULL, false, 0 },
        { "ftp://a", NULL, NULL, false, 0 },
        { "http://", NULL, NULL, false, 0 },
        { "http:///a", NULL, NULL, false, 0 },
        { "http://u:p@a/", NULL, NULL, false, 0 },
        { "http://u@a/", NULL, NULL, false, 0 },
        { "http://a?b", NULL, NULL, false, 0 },
        { "http://a/b#c", NULL, NULL, false, 0 },
        { "http://a/b c", NULL, NULL, false, 0 },
        { "http://a/\r\nX: y", NULL, NULL, false, 0 },
        { "http://a\r\nX: y/", NULL, NULL, false, 0 },
        { "http://unix:/x", NULL, NULL, false, 0 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct url url;
        int r = url_parse(rows[i].text, &url, NULL);

        assert_row(r == (rows[i].target ? 0 : -EINVAL), "%s: %d", rows[i].text, r);
        if (r == 0)
            assert_row(!strcmp(url.target, rows[i].target)
                           && !strcmp(url.authority, rows[i].authority) && url.tls == rows[i].tls
                           && url.address.port == rows[i].port,
                       "%s: %s %s", rows[i].text, url.authority, url.target);
    }
}

/* ---- routes ---- */

static void handler(struct request *req, void *data)
{
    (void)req;
    (void)data;
}

#define ROW(method, path)                           \
    {                                               \
        method, path, 0, handler, NULL, "doc", 0, 0 \
    }

static void test_bad_routes(void **state)
{
    static const struct {
        const char *what;
        struct route rows[2];
    } cases[] = {
        { "no doc", { { METHOD_GET, "/", 0, handler, NULL, "", 0, 0 } } },
        { "no handler", { { METHOD_GET, "/", 0, NULL, NULL, "doc", 0, 0 } } },
        { "no path", { ROW(METHOD_GET, NULL) } },
        { "no slash", { ROW(METHOD_GET, "a") } },
        { "no such method", { ROW(METHOD_OTHER, "/") } },
        { "empty segment", { ROW(METHOD_GET, "/a//b") } },
        { "half a parameter", { ROW(METHOD_GET, "/{a") } },
        { "parameter in a segment", { ROW(METHOD_GET, "/a{b}") } },
        { "nameless parameter", { ROW(METHOD_GET, "/{}") } },
        { "query", { ROW(METHOD_GET, "/a?b") } },
        { "too deep", { ROW(METHOD_GET, "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17") } },
        { "the same twice", { ROW(METHOD_GET, "/a"), ROW(METHOD_GET, "/a") } },
        { "the same but for a name", { ROW(METHOD_GET, "/{a}"), ROW(METHOD_GET, "/{b}") } },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        AQ_CLEANUP(router_freep) struct router *router = NULL;
        size_t count = cases[i].rows[1].path ? 2 : 1;
        struct aq_error err = { .code = 0 };

        router = router_new();
        assert_row(router_add(router, cases[i].rows, count, NULL, &err) == -EINVAL, "%s",
                   cases[i].what);
        assert_row(err.text[0], "%s", cases[i].what);
    }
}

static void test_routes(void **state)
{
    static const struct route rows[] = {
        ROW(METHOD_GET, "/s/{id}/logs"),
        ROW(METHOD_GET, "/s/{id}"),
        ROW(METHOD_DELETE, "/s/{id}"),
        ROW(METHOD_GET, "/s/_/match"),
        ROW(METHOD_GET, "/"),
        ROW(METHOD_POST, "/s"),
        ROW(METHOD_PUT, "/{any}/logs/x"),
        ROW(METHOD_GET, "/{a}/{b}/{c}/end"),
    };
    static const struct {
        const char *path;
        enum method method;
        int want;
        const char *route, *first; /* the row's path, its first parameter */
    } cases[] = {
        { "/", METHOD_GET, 0, "/", NULL },
        { "/s", METHOD_POST, 0, "/s", NULL },
        { "/s/1", METHOD_GET, 0, "/s/{id}", "1" },
        { "/s/1", METHOD_HEAD, 0, "/s/{id}", "1" },
        { "/s/%C3%A9", METHOD_DELETE, 0, "/s/{id}", "\xc3\xa9" },
        { "/s/_/match", METHOD_GET, 0, "/s/_/match", NULL },
        { "/s/%5F/match", METHOD_GET, 0, "/s/_/match", NULL },
        { "/s/_/logs", METHOD_GET, 0, "/s/{id}/logs", "_" },
        { "/s/logs/x", METHOD_PUT, 0, "/{any}/logs/x", "s" },
        { "/s/_/match/end", METHOD_GET, 0, "/{a}/{b}/{c}/end", "s" },
        { "/s", METHOD_GET, -EOPNOTSUPP, NULL, NULL },
        { "/s/1", METHOD_OTHER, -EOPNOTSUPP, NULL, NULL },
        { "/s/", METHOD_GET, -ENOENT, NULL, NULL },
        { "/S/1", METHOD_GET, -ENOENT, NULL, NULL },
        { "/s/1/log", METHOD_GET, -ENOENT, NULL, NULL },
        { "/s/%F", METHOD_GET, -EINVAL, NULL, NULL },
        { "*", METHOD_OPTIONS, -ENOENT, NULL, NULL },
        { "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", METHOD_GET, -ENOENT, NULL, NULL },
    };
    AQ_CLEANUP(router_freep) struct router *router = NULL;
    const struct route *const *list;
    size_t count;

    (void)state;
    router = router_new();
    assert_int_equal(router_add(router, rows, 4, NULL, NULL), 0);
    assert_int_equal(router_add(router, rows + 4, AQ_COUNT(rows) - 4, router, NULL), 0);
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct route_match match;
        int r = router_match(router, cases[i].method, cases[i].path, strlen(cases[i].path), &arena,
                             &match, NULL);

        assert_row(r == cases[i].want, "%s: %d", cases[i].path, r);
        if (r < 0)
            continue;
        assert_row(!strcmp(match.route->path, cases[i].route), "%s: %s", cases[i].path,
                   match.route->path);
        assert_row(!cases[i].first == !match.param_count, "%s", cases[i].path);
        assert_row(!cases[i].first || !strcmp(match.params[0].value, cases[i].first), "%s",
                   cases[i].path);
        assert_ptr_equal(match.data, match.route >= rows + 4 ? router : NULL);
    }
    list = router_list(router, &count);
    assert_int_equal(count, AQ_COUNT(rows));
    for (size_t i = 1; i < count; i++)
        assert_true(strcmp(list[i - 1]->path, list[i]->path) <= 0);
}

/* ---- problems ---- */

static void test_problem_types(void **state)
{
    static const struct {
        const char *slug;
        int status;
    } rows[] = {
        { "url-not-found", 404 },
        { "object-not-found", 404 },
        { "too-many-sessions-matched", 404 },
        { "too-many-kernels", 404 },
        { "method-not-allowed", 405 },
        { "generic-bad-request", 400 },
        { "invalid-api-params", 400 },
        { "invalid-auth-params", 400 },
        { "invalid-credentials", 400 },
        { "rejected-by-hook", 400 },
        { "session-already-exists", 400 },
        { "vfolder-creation-failed", 400 },
        { "vfolder-already-exists", 400 },
        { "vfolder-operation-failed", 400 },
        { "graphql-error", 400 },
        { "quota-exceeded", 412 },
        { "auth-failed", 401 },
        { "rate-limit-exceeded", 429 },
        { "generic-forbidden", 403 },
        { "insufficient-privilege", 403 },
        { "server-frozen", 503 },
        { "service-unavailable", 503 },
        { "instance-not-available", 503 },
        { "not-implemented", 503 },
        { "internal-server-error", 500 },
        { "server-misconfigured", 500 },
        { "kernel-creation-failed", 500 },
        { "kernel-destruction-failed", 500 },
        { "kernel-restart-failed", 500 },
        { "kernel-execution-failed", 500 },
        { "storage-proxy-error", 502 },
        { "request-too-large", 413 },
        { "head-too-large", 431 },
        { "uri-too-long", 414 },
        { "request-timeout", 408 },
        { "expectation-failed", 417 },
        { "http-version-not-supported", 505 },
        { "too-many-requests", 429 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const struct problem_type *type = problem_find(rows[i].slug);

        assert_row(type && type->status == rows[i].status, "%s", rows[i].slug);
        assert_row(type->title[0] && strchr(type->error_code, '_'), "%s", rows[i].slug);
    }
    assert_null(problem_find("no-such-problem"));
    assert_null(problem_find(""));
}

static void test_problem_codes(void **state)
{
    static const struct {
        struct aq_error err;
        const char *slug;
    } rows[] = {
        { { .code = EINVAL }, "generic-bad-request" },
        { { .code = EINVAL, .field = "mem" }, "invalid-api-params" },
        { { .code = ENOENT }, "object-not-found" },
        { { .code = EPERM }, "generic-forbidden" },
        { { .code = EDQUOT }, "quota-exceeded" },
        { { .code = EFBIG }, "request-too-large" },
        { { .code = EAGAIN }, "service-unavailable" },
        { { .code = ENOTSUP }, "not-implemented" },
        { { .code = EIO }, "internal-server-error" },
        { { .code = ENOMEM }, "internal-server-error" },
        { { .code = EIO, .kind = "server-frozen" }, "server-frozen" },
        { { .code = EPERM, .kind = "not-a-slug" }, "generic-forbidden" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        assert_row(!strcmp(problem_of(&rows[i].err)->slug, rows[i].slug), "%d %s", rows[i].err.code,
                   rows[i].slug);
}

#define TYPE(slug) "{\"type\":\"https://api.backend.ai/probs/" slug "\","

static void test_problem_text(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct aq_error err = { .code = 0 };

    (void)state;
    assert_int_equal(problem_no_such(&err, "session", "no session is called '%s'", "a\"b"),
                     -ENOENT);
    problem_write(&out, &err, NULL);
    assert_string_equal(
        out.data,
        TYPE(
            "object-not-found") "\"title\":\"No such session.\",\"msg\":\"no "
                                "session is called 'a\\\"b'\",\"error_code\":\"backendai_read_not-found\"}");
    strbuf_clear(&out);
    (void)aq_fail_field(&err, EINVAL, "name", "is required");
    problem_write(&out, &err, NULL);
    assert_string_equal(
        out.data,
        TYPE(
            "invalid-api-params") "\"title\":\"Missing or invalid API "
                                  "parameters.\",\"msg\":\"Input validation error\",\"data\":{\"name\":\"is "
                                  "required\"},\"error_code\":\"api_generic_invalid-parameters\"}");
    strbuf_clear(&out);
    (void)aq_fail(&err, EIO, "the password is hunter2");
    problem_write(&out, &err, NULL);
    assert_null(strstr(out.data, "hunter2"));
    strbuf_clear(&out);
    (void)aq_fail_kind(&err, EEXIST, "session-already-exists", "it is there");
    problem_write(&out, &err, "{\"existingSessionId\":\"x\"}");
    assert_non_null(
        strstr(out.data, "\"msg\":\"it is there\",\"data\":{\"existingSessionId\":\"x\"}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_query),         cmocka_unit_test(test_query_limit),
        cmocka_unit_test(test_encode),        cmocka_unit_test(test_address),
        cmocka_unit_test(test_url),           cmocka_unit_test(test_bad_routes),
        cmocka_unit_test(test_routes),        cmocka_unit_test(test_problem_types),
        cmocka_unit_test(test_problem_codes), cmocka_unit_test(test_problem_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
