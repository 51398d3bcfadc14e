/* SPDX-License-Identifier: Apache-2.0 */
/* Paths that a token's prefixes hold, and tricks to leave them. */
#include "testing.h"

#include "serving/path_rule.h"

static void test_prefixes(void **state)
{
    static const char *items[] = { "/v1", "/files/", "/m/caf\xc3\xa9" };
    static const struct str_list prefixes = { .items = items, .count = AQ_COUNT(items) };
    static const struct {
        const char *target;
        bool allowed;
    } cases[] = {
        { "/v1", true },
        { "/v1/", true },
        { "/v1?x=/../admin", true },
        { "/v1/chat/completions", true },
        { "/v1/m%6fdels", true },
        { "/v1/.hidden/..b", true },
        { "/files/a", true },
        { "/m/caf%C3%A9", true },
        { "/v1x", false },
        { "/files", false },
        { "/", false },
        { "/admin", false },
        { "/V1/a", false },
        { "/v1/../admin", false },
        { "/v1/..", false },
        { "/v1/./a", false },
        { "/v1//a", false },
        { "//v1/a", false },
        { "/v1/%2e%2e/admin", false },
        { "/v1/.%2e/admin", false },
        { "/v1%2f..%2fadmin", false },
        { "/v1/%252e%252e/admin", false },
        { "/v1/..\\admin", false },
        { "/v1/%5c..%5cadmin", false },
        { "/v1/..;/admin", false },
        { "/v1/;a=b/../admin", false },
        { "/v1/..%3b/admin", false },
        { "/v1/a%00", false },
        { "/v1/a%0a", false },
        { "/v1/%c0%ae%c0%ae/admin", false },
        { "/v1/..%c0%afadmin", false },
        { "/v1/%e0%80%af", false },
        { "/v1/%ff", false },
        { "/v1/a%", false },
        { "/v1/a%4", false },
        { "/v1/a%zz", false },
        { "/v1#/admin", false },
        { "/v1%3f", false },
        { "http://host/v1/a", false },
        { "*", false },
        { "", false },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++)
        assert_row(path_rule_allows(&prefixes, cases[i].target) == cases[i].allowed, "%s",
                   cases[i].target);
}

static void test_long_paths_and_empty_rules(void **state)
{
    char path[PATH_RULE_MAX + 3] = "/v1/";
    static const char *items[] = { "/v1/", "" };
    const struct str_list one = { .items = items, .count = 1 }, none = { .count = 0 };
    const struct str_list empty = { .items = items + 1, .count = 1 };

    (void)state;
    memset(path + 4, 'a', PATH_RULE_MAX - 4);
    assert_true(path_rule_allows(&one, path));
    path[PATH_RULE_MAX] = 'a';
    assert_false(path_rule_allows(&one, path));
    assert_false(path_rule_allows(&none, "/v1/"));
    assert_false(path_rule_allows(&empty, "/v1/"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_long_paths_and_empty_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
