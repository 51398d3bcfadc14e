/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>

#include "redis/redis_reply.h"

static void test_replies(void **state)
{
    static const struct {
        const char *bytes;
        ssize_t used; /* or an error */
        enum redis_type type;
        const char *text;
        int64_t number; /* or how many items */
    } rows[] = {
        { "+OK\r\n", 5, REDIS_STATUS, "OK", 0 },
        { "-ERR no\r\nmore", 9, REDIS_ERROR, "ERR no", 0 },
        { ":-12\r\n", 6, REDIS_INTEGER, NULL, -12 },
        { "$3\r\na\r\n\r\n", 9, REDIS_TEXT, "a\r\n", 0 },
        { "$0\r\n\r\n", 6, REDIS_TEXT, "", 0 },
        { "$-1\r\n", 5, REDIS_NULL, NULL, 0 },
        { "*-1\r\n", 5, REDIS_NULL, NULL, 0 },
        { "*0\r\n", 4, REDIS_LIST, NULL, 0 },
        { "*2\r\n:1\r\n*1\r\n$1\r\nx\r\n", 19, REDIS_LIST, NULL, 2 },
        { "", 0, REDIS_NULL, NULL, 0 },
        { "+OK\r", 0, REDIS_NULL, NULL, 0 },
        { "$3\r\nabc\r", 0, REDIS_NULL, NULL, 0 },
        { "*2\r\n:1\r\n:2", 0, REDIS_NULL, NULL, 0 },
        { "*9000\r\n", 0, REDIS_NULL, NULL, 0 }, /* nothing has come that memory is taken for */
        { "HTTP/1.1 400 Bad Request\r\n", -EPROTO, REDIS_NULL, NULL, 0 },
        { "+OK\rx", -EPROTO, REDIS_NULL, NULL, 0 },
        { ":\r\n", -EPROTO, REDIS_NULL, NULL, 0 },
        { ":1x\r\n", -EPROTO, REDIS_NULL, NULL, 0 },
        { ":99999999999999999999\r\n", -EPROTO, REDIS_NULL, NULL, 0 },
        { "$3\r\nabcde", -EPROTO, REDIS_NULL, NULL, 0 },
        { "$-2\r\n", -E2BIG, REDIS_NULL, NULL, 0 },
        { "$1048577\r\n", -E2BIG, REDIS_NULL, NULL, 0 },
        { "$9223372036854775807\r\n", -E2BIG, REDIS_NULL, NULL, 0 },
        { "*16385\r\n", -E2BIG, REDIS_NULL, NULL, 0 },
        { "*2147483647\r\n", -E2BIG, REDIS_NULL, NULL, 0 },
        { "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", -E2BIG, REDIS_NULL, NULL, 0 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct redis_reply reply;
        struct aq_error err = { 0 };
        ssize_t used = redis_reply_read(rows[i].bytes, strlen(rows[i].bytes), &arena, &reply, &err);

        assert_row(used == rows[i].used, "%s: %zd", rows[i].bytes, used);
        assert_row((used < 0) == (err.code != 0), "%s", rows[i].bytes);
        if (used <= 0)
            continue;
        assert_row(reply.type == rows[i].type, "%s", rows[i].bytes);
        assert_row(!rows[i].text || strcmp(reply.text, rows[i].text) == 0, "%s", rows[i].bytes);
        assert_row((reply.type == REDIS_LIST ? (int64_t)reply.count : reply.number)
                       == rows[i].number,
                   "%s", rows[i].bytes);
    }
}

/* A reply that never ends is given up at the limit, and not before. */
static void test_a_reply_without_end(void **state)
{
    char *bytes = malloc(REDIS_REPLY_MAX);
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct redis_reply reply;

    (void)state;
    assert_non_null(bytes);
    memset(bytes, 'x', REDIS_REPLY_MAX);
    memcpy(bytes, "+", 1);
    assert_int_equal(redis_reply_read(bytes, 4000, &arena, &reply, NULL), 0);
    assert_int_equal(redis_reply_read(bytes, 5000, &arena, &reply, NULL), -EPROTO);
    memcpy(bytes, "$1048576\r\n", 10);
    assert_int_equal(redis_reply_read(bytes, REDIS_REPLY_MAX - 1, &arena, &reply, NULL), 0);
    assert_int_equal(redis_reply_read(bytes, REDIS_REPLY_MAX, &arena, &reply, NULL), -E2BIG);
    free(bytes);
}

static void test_numbers(void **state)
{
    struct redis_reply reply = { .type = REDIS_INTEGER, .number = 7 };
    int64_t number = 0;

    (void)state;
    assert_true(redis_reply_get_number(&reply, 0, 10, &number));
    assert_int_equal(number, 7);
    assert_false(redis_reply_get_number(&reply, 8, 10, &number));
    reply = (struct redis_reply){ .type = REDIS_TEXT, .text = "6379", .len = 4 };
    assert_true(redis_reply_get_number(&reply, 1, 65535, &number));
    assert_int_equal(number, 6379);
    reply = (struct redis_reply){ .type = REDIS_TEXT, .text = "63 79", .len = 5 };
    assert_false(redis_reply_get_number(&reply, 1, 65535, &number));
    reply = (struct redis_reply){ .type = REDIS_STATUS, .text = "5", .len = 1 };
    assert_false(redis_reply_get_number(&reply, 1, 65535, &number));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replies),
        cmocka_unit_test(test_a_reply_without_end),
        cmocka_unit_test(test_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
