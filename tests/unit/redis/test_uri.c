/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>

#include "redis/redis_uri.h"

static void test_good(void **state)
{
    static const struct {
        const char *uri, *host, *service, *user, *password;
        unsigned port, db;
        size_t count;
        bool is_tls;
    } rows[] = {
        { "redis://h", "h", NULL, NULL, NULL, 6379, 0, 1, false },
        { "redis://h/", "h", NULL, NULL, NULL, 6379, 0, 1, false },
        { "redis://:s%40%2F@h:1/3", "h", NULL, NULL, "s@/", 1, 3, 1, false },
        { "redis://u:p@[::1]:7/0", "::1", NULL, "u", "p", 7, 0, 1, false },
        { "rediss://u:@h", "h", NULL, "u", "", 6379, 0, 1, true },
        { "redis+sentinel://a,b:1/main", "a", "main", NULL, NULL, 26379, 0, 2, false },
        { "rediss+sentinel://:p@a:2/main?db=4", "a", "main", NULL, "p", 2, 4, 1, true },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct redis_place place;
        struct aq_error err = { 0 };

        assert_row(redis_uri_parse(rows[i].uri, &arena, &place, &err) == 0, "%s: %s", rows[i].uri,
                   err.text);
        assert_string_equal(place.addresses[0].host, rows[i].host);
        assert_int_equal(place.addresses[0].port, rows[i].port);
        assert_int_equal(place.count, rows[i].count);
        assert_int_equal(place.db, rows[i].db);
        assert_int_equal(place.is_tls, rows[i].is_tls);
        assert_row(!rows[i].user == !place.user, "%s", rows[i].uri);
        assert_row(!rows[i].user || strcmp(place.user, rows[i].user) == 0, "%s", rows[i].uri);
        assert_row(!rows[i].password == !place.password, "%s", rows[i].uri);
        assert_row(!rows[i].password || strcmp(place.password, rows[i].password) == 0, "%s",
                   rows[i].uri);
        assert_row(!rows[i].service == !place.service, "%s", rows[i].uri);
        assert_row(!rows[i].service || strcmp(place.service, rows[i].service) == 0, "%s",
                   rows[i].uri);
    }
}

static void test_bad(void **state)
{
    static const char *const rows[] = {
        "",
        "h:6379",
        "http://h",
        "redis://",
        "redis://:SECRET@",
        "redis://:SECRET@h:0",
        "redis://:SECRET@h:99999",
        "redis://:SECRET@h/x",
        "redis://:SECRET@h/10001",
        "redis://:SECRET@h/-1",
        "redis://:SECRET%zz@h",
        "redis://:SECRET/x@h",
        "redis://:SECRET?x@h/1",
        "redis://:/SECRET@h",
        "redis://u:x/?SECRET@h:1/0",
        "redis://u:SECRET@x/y@h",
        "redis+sentinel://:SECRET/x@a,b/main?db=1",
        "redis://SECRET@h",
        "redis://:SECRET@a,b",
        "redis://:SECRET@unix:/run/redis.sock",
        "redis+sentinel://:SECRET@a",
        "redis+sentinel://:SECRET@a/",
        "redis+sentinel://:SECRET@a,/main",
        "redis+sentinel://:SECRET@a/main?db=x",
        "redis+sentinel://:SECRET@a/main?x=1",
        "redis+sentinel://a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a/main",
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct redis_place place;
        struct aq_error err = { 0 };

        assert_row(redis_uri_parse(rows[i], &arena, &place, &err) == -EINVAL, "%s", rows[i]);
        assert_row(err.text[0] && !strstr(err.text, "SECRET"), "%s: %s", rows[i], err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_good), cmocka_unit_test(test_bad) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
