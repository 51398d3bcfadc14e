/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <stdlib.h>

#include "redis/redis_msgpack.h"

/* Bytes as https://github.com/msgpack/msgpack/blob/master/spec.md has them. */
static void test_values(void **state)
{
    static const struct {
        const char *json, *bytes;
        size_t len;
    } rows[] = {
        { "null", "\xc0", 1 },
        { "true", "\xc3", 1 },
        { "false", "\xc2", 1 },
        { "0", "\x00", 1 },
        { "127", "\x7f", 1 },
        { "-32", "\xe0", 1 },
        { "128", "\xd2\x00\x00\x00\x80", 5 },
        { "-33", "\xd2\xff\xff\xff\xdf", 5 },
        { "4294967296", "\xd3\x00\x00\x00\x01\x00\x00\x00\x00", 9 },
        { "1.5", "\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00", 9 },
        { "\"\"", "\xa0", 1 },
        { "\"ab\"",
          "\xa2"
          "ab",
          3 },
        { "[]", "\x90", 1 },
        { "[1,[2]]", "\x92\x01\x91\x02", 4 },
        { "{\"a\":{}}",
          "\x81\xa1"
          "a\x80",
          4 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        json_t *value = json_loads(rows[i].json, JSON_DECODE_ANY, NULL);

        redis_msgpack_json(&out, value);
        assert_row(out.len == rows[i].len && memcmp(out.data, rows[i].bytes, out.len) == 0, "%s",
                   rows[i].json);
        json_decref(value);
    }
}

/* Headers of what is longer. */
static void test_lengths(void **state)
{
    static const struct {
        size_t len;
        const char *header;
        size_t header_len;
    } rows[] = {
        { 31, "\xbf", 1 },
        { 32, "\xd9\x20", 2 },
        { 255, "\xd9\xff", 2 },
        { 256, "\xda\x01\x00", 3 },
        { 65535, "\xda\xff\xff", 3 },
        { 65536, "\xdb\x00\x01\x00\x00", 5 },
    };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    char *text = calloc(1, 65536);

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        strbuf_clear(&out);
        redis_msgpack_text(&out, text, rows[i].len);
        assert_row(out.len == rows[i].header_len + rows[i].len
                       && memcmp(out.data, rows[i].header, rows[i].header_len) == 0,
                   "%zu", rows[i].len);
    }
    free(text);
    strbuf_clear(&out);
    redis_msgpack_list(&out, 16);
    redis_msgpack_map(&out, 16);
    redis_msgpack_map(&out, 65536);
    assert_int_equal(out.len, 11);
    assert_memory_equal(out.data, "\xdc\x00\x10\xde\x00\x10\xdf\x00\x01\x00\x00", 11);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_values),
                                        cmocka_unit_test(test_lengths) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
