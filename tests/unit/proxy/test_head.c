/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of an app's answer: which ones reach the browser, and in which form. */
#include "testing.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers_for_more_than_the_app),
        cmocka_unit_test(test_cookies_that_an_app_sets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
