/* SPDX-License-Identifier: Apache-2.0 */
/* Which manager of the list a web server uses after requests failed. */
#include "testing.h"

#include "web/web.h"

static void test_requests_fail_together(void **state)
{
    char first[] = "http://m1:8081", second[] = "http://m2:8081", third[] = "http://m3:8081";
    char *urls[] = { first, second, third };
    const struct settings settings = { .api = { .items = urls, .count = AQ_COUNT(urls) } };
    struct web web = { .settings = &settings };

    (void)state;
    assert_ptr_equal(web_get_api(&web), first);
    for (size_t i = 0; i < AQ_COUNT(urls); i++) /* sent before any of them failed */
        web_leave_api(&web, first);
    assert_ptr_equal(web_get_api(&web), second);
    web_leave_api(&web, second);
    web_leave_api(&web, first); /* a late failure */
    assert_ptr_equal(web_get_api(&web), third);
    web_leave_api(&web, third);
    assert_ptr_equal(web_get_api(&web), first);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_requests_fail_together) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
