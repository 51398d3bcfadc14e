/* SPDX-License-Identifier: Apache-2.0 */
/* Cookies that let a browser in: their names, and which ones of a header are found. */
#include "testing.h"

#include "base/strbuf.h"
#include "proxy/cookie.h"

static void test_names(void **state)
{
    char name[COOKIE_NAME_MAX];

    (void)state;
    assert_string_equal(cookie_name(0, false, name), "aliquot_app");
    assert_string_equal(cookie_name(0, true, name), "__Host-aliquot_app");
    assert_string_equal(cookie_name(65535, false, name), "aliquot_app_65535");
    assert_string_equal(cookie_name(65535, true, name), "__Host-aliquot_app_65535");
}

static void test_all_of_a_name_are_found_in_order(void **state)
{
    static const struct {
        const char *header, *name;
        const char *values; /* each with a "," behind it */
    } cases[] = {
        { "aliquot_app=a", "aliquot_app", "a," },
        { "aliquot_app=a; x=y; aliquot_app=b ;aliquot_app=", "aliquot_app", "a,b,," },
        { "aliquot_app=a; __Host-aliquot_app=b", "aliquot_app", "a," },
        { "aliquot_app=a; __Host-aliquot_app=b", "__Host-aliquot_app", "b," },
        { "aliquot_app_1=a; aliquot_app_10=b", "aliquot_app_1", "a," },
        { "xaliquot_app=a; aliquot_app; ;", "aliquot_app", "" },
        { "aliquot_app==a=; aliquot_app=\t;;", "aliquot_app", "=a=,," },
        { "", "aliquot_app", "" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf got = STRBUF_INIT;
        size_t len = 0;

        for (const char *text = cookie_find(cases[i].header, cases[i].name, &len); text;
             text = cookie_find(text + len, cases[i].name, &len)) {
            strbuf_add(&got, text, len);
            strbuf_addc(&got, ',');
        }
        assert_row(strcmp(got.data ? got.data : "", cases[i].values) == 0, "%s: '%s'",
                   cases[i].header, got.data);
    }
}

static void test_an_app_sees_none_of_ours(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf rest = STRBUF_INIT;

    (void)state;
    cookie_remove("a=1; aliquot_app=x; __Host-aliquot_app=x; aliquot_app_10200=x; b=2;"
                  "__Host-aliquot_app_10200=x; AIOHTTP_SESSION=x; c",
                  &rest);
    assert_string_equal(rest.data, "a=1; b=2; c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_all_of_a_name_are_found_in_order),
        cmocka_unit_test(test_an_app_sees_none_of_ours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
