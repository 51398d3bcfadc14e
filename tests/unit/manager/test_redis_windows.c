/* SPDX-License-Identifier: Apache-2.0 */
/* Records of signatures in Redis, which anybody who reaches the server may have written. */
#include "testing.h"

#include <errno.h>

#include "base/strbuf.h"
#include "manager/redis/redis_feature.h"

static void on_record(void *data, const char *access_key, const uint8_t signature[32],
                      unsigned second)
{
    strbuf_addf(data, "%s %02x%02x %u\n", access_key, signature[0], signature[31], second);
}

static void add_record(struct strbuf *out, const char *key, char signature, char second)
{
    char bytes[32];

    memset(bytes, signature, sizeof(bytes));
    strbuf_addc(out, (char)strlen(key));
    strbuf_adds(out, key);
    strbuf_add(out, bytes, sizeof(bytes));
    strbuf_addc(out, second);
}

static void test_records(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf seen = STRBUF_INIT;

    (void)state;
    add_record(&text, "AKIA", 'a', 0);
    add_record(&text, "B", 'b', 59);
    assert_int_equal(redis_signatures_read(text.data, text.len, on_record, &seen), text.len);
    assert_string_equal(seen.data, "AKIA 6161 0\nB 6262 59\n");
    for (size_t cut = 0; cut < 38; cut++) { /* the first record has 38 bytes */
        strbuf_clear(&seen);
        assert_int_equal(redis_signatures_read(text.data, cut, on_record, &seen), 0);
        assert_int_equal(redis_signatures_read(text.data, 38 + AQ_MIN(cut, 34u), on_record, &seen),
                         38);
        assert_string_equal(seen.data, "AKIA 6161 0\n");
    }
}

static void test_what_is_not_a_record(void **state)
{
    static const struct {
        const char *key;
        char length, second;
    } rows[] = {
        { "KEY", 0, 0 },  { "KEY", 65, 0 }, { "KEY", -1, 0 },
        { "KEY", 3, 60 }, { "KEY", 3, -1 }, { "K\0Y", 3, 0 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
        AQ_CLEANUP(strbuf_donep) struct strbuf seen = STRBUF_INIT;

        add_record(&text, "GOOD", 'a', 1);
        strbuf_addc(&text, rows[i].length);
        strbuf_add(&text, rows[i].key, 3);
        strbuf_adds(&text, "0123456789abcdef0123456789abcdef");
        strbuf_addc(&text, rows[i].second);
        assert_row(redis_signatures_read(text.data, text.len, on_record, &seen) == -EINVAL, "%zu",
                   i);
        assert_string_equal(seen.data, "GOOD 6161 1\n");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_records),
                                        cmocka_unit_test(test_what_is_not_a_record) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
