/* SPDX-License-Identifier: Apache-2.0 */
/* Places of apps and services; headers of requests and answers: which ones pass, and in which form. */
#include "testing.h"

#include <errno.h>

#include "base/clock.h"
#include "proxy/head.h"

#define OWN "/app/00000000-0000-0000-0000-000000000000/web"

/* What becomes of one header; "" = it is dropped. */
static void write_one(const char *name, const char *value, bool is_host, struct strbuf *out)
{
    static const char first[] = "HTTP/1.1 200 OK\r\n", last[] = "\r\n";
    const struct message_header header = { name, value };
    const struct message_head head = { .status = 200, .headers = &header, .header_count = 1 };
    const struct place place = { .app = "web", .rest = "/", .is_host = is_host };
    AQ_CLEANUP(strbuf_donep) struct strbuf whole = STRBUF_INIT;

    head_write_answer(&head, &place, true, &whole);
    assert_memory_equal(whole.data, first, strlen(first));
    assert_string_equal(whole.data + whole.len - strlen(last), last);
    strbuf_add(out, whole.data + strlen(first), whole.len - strlen(first) - strlen(last));
}

static void check_one(const char *name, const char *value, bool is_host, const char *want)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf got = STRBUF_INIT;

    write_one(name, value, is_host, &got);
    assert_row(strcmp(got.data ? got.data : "", want) == 0, "%s: %s gives '%s'", name, value,
               got.data);
}

static void test_places(void **state)
{
    static const char id[] = "0123456789abcdef0123456789abcdef";
    static const struct {
        const char *target, *host;
        int want;
        const char *service, *rest; /* rest NULL: "/" is missing */
        const char *path;           /* as place_write_path() has it */
    } cases[] = {
        { "/serve/digits/v1/x?y", "h", 1, "digits", "/v1/x?y", "/serve/digits" },
        { "/serve/Digits_2-a/", "h", 1, "Digits_2-a", "/", "/serve/Digits_2-a" },
        { "/serve/digits", "h", 1, "digits", NULL, "/serve/digits" },
        { "/serve/digits?x", "h", 1, "digits", NULL, "/serve/digits" },
        { "/serve/", "h", -EINVAL, NULL, NULL, NULL },
        { "/serve//x", "h", -EINVAL, NULL, NULL, NULL },
        { "/serve/a.b/x", "h", -EINVAL, NULL, NULL, NULL },
        { "/serve/%64igits/x", "h", -EINVAL, NULL, NULL, NULL },
        { "/serve/abcdefghijklmnopqrstuvwxy/x", "h", -EINVAL, NULL, NULL, NULL },
        { "/served/digits/x", "h", 0, NULL, NULL, NULL },
        { "/v1/x", "digits--serve.apps.org", 1, "digits", "/v1/x", "" },
        { "/v1/x", "Digits--SERVE.Apps.org:8443", 1, "Digits", "/v1/x", "" },
        { "/v1/x", "--serve.apps.org", -EINVAL, NULL, NULL, NULL },
        { "/v1/x", "a.b--serve.apps.org", -EINVAL, NULL, NULL, NULL },
        { "/v1/x", "digits--serve.other.org", 0, NULL, NULL, NULL },
    };
    char host[100];
    struct place place;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
        int r = place_parse(cases[i].target, cases[i].host, "apps.org", &place, NULL);

        assert_row(r == cases[i].want, "%s %s", cases[i].host, cases[i].target);
        if (r != 1)
            continue;
        place_write_path(&place, &path);
        assert_string_equal(place.service, cases[i].service);
        assert_string_equal(place.rest ? place.rest : "none",
                            cases[i].rest ? cases[i].rest : "none");
        assert_string_equal(path.data, cases[i].path);
    }
    (void)snprintf(host, sizeof(host), "serve--%s.apps.org", id); /* an app of that name */
    assert_int_equal(place_parse("/x", host, "apps.org", &place, NULL), 1);
    assert_string_equal(place.app, "serve");
    assert_string_equal(place.service, "");
}

static void test_a_service_gets_no_authorization(void **state)
{
    static const struct message_header headers[] = { { "Host", "h" },
                                                     { "authorization", "Bearer secret" },
                                                     { "Cookie", "aliquot_app=x; a=b" } };
    static const struct head_origin origin = { .address = "192.0.2.1" };
    const struct message_head head = { .target = "/", .headers = headers, .header_count = 3 };
    const struct place service = { .service = "digits", .rest = "/v1" };
    const struct place app = { .app = "web", .rest = "/v1" };
    AQ_CLEANUP(strbuf_donep) struct strbuf to_service = STRBUF_INIT, to_app = STRBUF_INIT;

    (void)state;
    head_write_request(&head, &service, &origin, &to_service);
    head_write_request(&head, &app, &origin, &to_app);
    assert_null(strstr(to_service.data, "secret"));
    assert_non_null(strstr(to_service.data, "X-Forwarded-Prefix: /serve/digits\r\n"));
    assert_non_null(strstr(to_service.data, "Cookie: a=b\r\n"));
    assert_non_null(strstr(to_app.data, "authorization: Bearer secret\r\n"));
}

/* What a replica gets of these headers of a request. */
static void write_request(const struct message_header *headers, size_t count, bool is_plain,
                          struct strbuf *out)
{
    const struct head_origin origin = { .address = "192.0.2.1", .is_plain = is_plain };
    const struct message_head head = {
        .target = "/", .headers = headers, .header_count = count, .is_upgrade = true
    };
    const struct place service = { .service = "digits", .rest = "/v1" };

    head_write_request(&head, &service, &origin, out);
}

static void test_only_the_proxy_says_where_a_request_came_from(void **state)
{
    static const char *const names[] = {
        "X-Forwarded-For", "x-forwarded-user", "X_Forwarded_For", "x_FORWARDED-proto", "Forwarded",
        "X-Real-IP",       "X_Real_IP",        "x-real_ip",       "FORWARDED",
    };
    static const char *const others[] = { "X-Forward", "Forwarded-By", "X-Real-IP-Header" };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        const struct message_header headers[] = { { "Upgrade", "h2c" }, { names[i], "10.0.0.1" } };
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

        write_request(headers, AQ_COUNT(headers), false, &out);
        assert_row(!strstr(out.data, "10.0.0.1"), "%s passes", names[i]);
    }
    for (size_t i = 0; i < AQ_COUNT(others); i++) {
        const struct message_header headers[] = { { "Upgrade", "h2c" }, { others[i], "10.0.0.1" } };
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

        write_request(headers, AQ_COUNT(headers), false, &out);
        assert_row(strstr(out.data, "10.0.0.1"), "%s does not pass", others[i]);
    }
}

static void test_what_a_service_is_not_asked_for(void **state)
{
    static const struct message_header h2c[] = { { "Upgrade", "h2c" },
                                                 { "Accept-Encoding", "gzip" },
                                                 { "Trailer", "X-End" } };
    static const struct message_header websocket[] = { { "upgrade", "WebSocket" } };
    AQ_CLEANUP(strbuf_donep) struct strbuf plain = STRBUF_INIT, other = STRBUF_INIT,
                                           socket = STRBUF_INIT;

    (void)state;
    write_request(h2c, AQ_COUNT(h2c), true, &plain);
    write_request(h2c, AQ_COUNT(h2c), false, &other);
    write_request(websocket, AQ_COUNT(websocket), false, &socket);
    assert_null(strstr(plain.data, "h2c"));
    assert_null(strstr(plain.data, "Upgrade"));
    assert_null(strstr(plain.data, "gzip"));
    assert_null(strstr(plain.data, "Trailer"));
    assert_non_null(strstr(other.data, "Accept-Encoding: gzip\r\n"));
    assert_non_null(strstr(socket.data, "upgrade: WebSocket\r\n"));
    assert_non_null(strstr(socket.data, "Connection: Upgrade\r\n"));
}

static void test_headers_for_more_than_the_app(void **state)
{
    static const char *const dropped[][2] = {
        { "Service-Worker-Allowed", "/" },
        { "service-worker-allowed", "/app/" },
        { "Clear-Site-Data", "\"*\"" },
        { "Strict-Transport-Security", "max-age=31536000; includeSubDomains" },
        { "Alt-Svc", "h2=\"elsewhere.example.org:443\"" },
        { "NEL", "{\"report_to\":\"x\",\"max_age\":1,\"include_subdomains\":true}" },
        { "Report-To", "{\"group\":\"x\",\"max_age\":1,\"endpoints\":[]}" },
    };
    static const char *const kept[] = { "Content-Security-Policy", "Access-Control-Allow-Origin",
                                        "Refresh", "Cache-Control", "X-Own" };
    char want[100];

    (void)state;
    for (int is_host = 0; is_host < 2; is_host++) {
        for (size_t i = 0; i < AQ_COUNT(dropped); i++)
            check_one(dropped[i][0], dropped[i][1], is_host, "");
        for (size_t i = 0; i < AQ_COUNT(kept); i++) {
            (void)snprintf(want, sizeof(want), "%s: x\r\n", kept[i]);
            check_one(kept[i], "x", is_host, want);
        }
    }
}

static void test_cookies_that_an_app_sets(void **state)
{
    static const struct {
        const char *value;
        const char *by_path; /* "" = dropped */
        const char *by_host;
    } cases[] = {
        { "a=b", "a=b", "a=b" },
        { "a=b; Path=/", "a=b; Path=" OWN "/", "a=b; Path=/" },
        { "a=b;path=/x;HttpOnly", "a=b; Path=" OWN "/x;HttpOnly", "a=b; Path=/x;HttpOnly" },
        { "a=b; Path =/", "a=b; Path=" OWN "/", "a=b; Path=/" },
        { "a=b; \tpath\t=\t/x", "a=b; Path=" OWN "/x", "a=b; Path=/x" },
        { "a=b; Path=/x; Path = /", "a=b; Path=" OWN "/x; Path=" OWN "/", "a=b; Path=/x; Path=/" },
        { "a=b; Path=\"/\"", "a=b", "a=b" },
        { "a=b; Path=", "a=b", "a=b" },
        { "a=b; Domain=example.org; Secure", "a=b; Secure", "a=b; Secure" },
        { "a=b; domain =example.org", "a=b", "a=b" },
        { "a=b;Domain\t= .example.org", "a=b", "a=b" },
        { "a=b; Pathway=/; Domains=x", "a=b; Pathway=/; Domains=x", "a=b; Pathway=/; Domains=x" },
        { "aliquot_app=x; Path=/", "", "" },
        { "aliquot_app_10200=x", "", "" },
        { "__Host-aliquot_app=x; Path=/; Secure", "", "" },
        { "__Host-aliquot_app_10200=x; Path=/; Secure", "", "" },
        { " =aliquot_app=x", "", "" },
        { "aliquot_app", "", "" },
        { "AIOHTTP_SESSION=x", "", "" },
        { "__Host-AIOHTTP_SESSION=x", "", "" },
        { "aliquot_browser=x", "", "" },
        { "aliquot_apps=x", "aliquot_apps=x", "aliquot_apps=x" },
    };
    char want[300];

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++)
        for (int is_host = 0; is_host < 2; is_host++) {
            const char *value = is_host ? cases[i].by_host : cases[i].by_path;

            (void)snprintf(want, sizeof(want), *value ? "Set-Cookie: %s\r\n" : "%s", value);
            check_one("Set-Cookie", cases[i].value, is_host, want);
        }
}

static void test_how_long_a_connection_is_kept(void **state)
{
    static const struct {
        const char *value;
        int64_t sec; /* -1 = it does not say */
    } cases[] = {
        { "timeout=5", 5 },
        { "max=100, Timeout=5", 5 },
        { "timeout=0", 0 },
        { "timeout=x", 0 },
        { "timeout=-9223372036854775808", 0 },
        { "timeout=9223372036854775807", 3600 },
        { "timeout=99999999999999999999", 3600 },
        { "max=100", -1 },
        { "", -1 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        const struct message_header header = { "Keep-Alive", cases[i].value };
        const struct message_head head = { .headers = &header, .header_count = 1 };
        int64_t want = cases[i].sec < 0 ? -1 : cases[i].sec * USEC_PER_SEC;

        assert_row(head_keep_usec(&head) == want, "%s", cases[i].value);
    }
    assert_int_equal(head_keep_usec(&(struct message_head){ .header_count = 0 }), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_a_service_gets_no_authorization),
        cmocka_unit_test(test_only_the_proxy_says_where_a_request_came_from),
        cmocka_unit_test(test_what_a_service_is_not_asked_for),
        cmocka_unit_test(test_headers_for_more_than_the_app),
        cmocka_unit_test(test_cookies_that_an_app_sets),
        cmocka_unit_test(test_how_long_a_connection_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
