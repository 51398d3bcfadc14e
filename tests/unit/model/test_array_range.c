/* SPDX-License-Identifier: Apache-2.0 */
/* Indices of arrays: what Slurm writes, what is refused, positions, removed ones. */
#include <errno.h>
#include <string.h>

#include "model/array_range.h"
#include "testing.h"

#define MAX ARRAY_SIZE_DEFAULT

static void check(const char *text, const char *expected, int64_t size, int64_t limit)
{
    AQ_CLEANUP(array_set_done) struct array_set set = { 0 };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct aq_error err = { 0 };
    int64_t found = -1;

    assert_int_equal(array_set_parse(text, MAX, &set, &found, &err), 0);
    array_set_write(&set, &out);
    assert_string_equal(out.data, expected);
    assert_int_equal(array_set_size(&set), size);
    assert_int_equal(found, limit);
}

static void test_parse(void **state)
{
    (void)state;
    check("0-15", "0-15", 16, 0);
    check("0,6,16-32", "0,6,16-32", 19, 0);
    check("0-15:4", "0-12:4", 4, 0);
    check("0-99%8", "0-99", 100, 8);
    check("3,1,2,2,1-3", "1-3", 3, 0);
    check("5,3", "3,5", 2, 0);
    check("1,3,5,7,9,10", "1-9:2,10", 6, 0);
    check("0-4:2,1-3:2%1", "0-4", 5, 1);
    check("4000000", "4000000", 1, 0);
    check("0-99999", "0-99999", 100000, 0);
    check("7-7", "7", 1, 0);
}

static void refuse(const char *text, const char *part)
{
    AQ_CLEANUP(array_set_done) struct array_set set = { 0 };
    struct aq_error err = { 0 };
    int64_t limit;

    assert_int_equal(array_set_parse(text, MAX, &set, &limit, &err), -EINVAL);
    assert_string_equal(err.field, "array");
    if (!strstr(err.text, part))
        fail_msg("'%s' has not '%s'", err.text, part);
}

static void test_refuse(void **state)
{
    (void)state;
    refuse("", "empty");
    refuse("9-0", "ends before it begins");
    refuse("0-9:0", "step");
    refuse("0-2147483647", "above 4000000");
    refuse("99999999999999999999", "above 4000000");
    refuse("0-100000", "more than 100000");
    refuse("0-99999,5", "more than 100000");
    refuse("0-9%0", "%0");
    refuse("0-9%", "missing at the end");
    refuse("1,", "missing at the end");
    refuse(",1", "missing before ',1'");
    refuse("-5", "missing before '-5'");
    refuse("a", "missing before 'a'");
    refuse("1 2", "' 2'");
    refuse("0-9:2:3", "':3'");
    refuse("1:2", "':2'");
}

static void test_walk(void **state)
{
    static const int64_t indices[] = { 0, 4, 8, 20, 21, 22, 40 };
    AQ_CLEANUP(array_set_done) struct array_set set = { 0 };

    (void)state;
    assert_int_equal(array_set_parse("0-8:4,20-22,40", MAX, &set, NULL, NULL), 0);
    for (size_t from = 0; from <= AQ_COUNT(indices); from++) {
        struct array_cursor c = array_set_seek(&set, (int64_t)from);

        for (size_t i = from; i < AQ_COUNT(indices); i++)
            assert_int_equal(array_cursor_next(&c), indices[i]);
        assert_int_equal(array_cursor_next(&c), -1);
        assert_int_equal(array_cursor_next(&c), -1);
    }
    for (int64_t i = -1, k = 0; i < 50; i++) {
        bool is_in = k < (int64_t)AQ_COUNT(indices) && indices[k] == i;

        assert_int_equal(array_set_has(&set, i), is_in);
        k += is_in;
    }
    assert_int_equal(array_set_min(&set), 0);
    assert_int_equal(array_set_max(&set), 40);
    assert_int_equal(array_set_step(&set), 1);
}

static void test_add(void **state)
{
    AQ_CLEANUP(array_set_done) struct array_set set = { 0 }, wanted = { 0 }, removed = { 0 };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    int64_t found;

    (void)state;
    assert_int_equal(array_set_parse("0-20:2", MAX, &set, NULL, NULL), 0);
    assert_int_equal(array_set_step(&set), 2);
    assert_int_equal(array_set_parse("3-10", MAX, &wanted, NULL, NULL), 0);
    assert_int_equal(array_set_add(&removed, &set, &wanted, 3, &found), 3); /* 6, 8, 10 */
    assert_int_equal(found, 4);
    assert_int_equal(array_set_add(&removed, &set, &wanted, 3, &found), 0);
    array_set_write(&removed, &out);
    assert_string_equal(out.data, "6-10:2");
    assert_int_equal(array_set_parse("0-20", MAX, &wanted, NULL, NULL), 0);
    assert_int_equal(array_set_add(&removed, &set, &wanted, 0, &found), 8);
    assert_int_equal(array_set_size(&removed), 11);
}

static void test_what_a_set_lacks(void **state)
{
    static const struct {
        const char *of, *part;
        int64_t want;
    } rows[] = { { "0-9", "0-9", -1 },   { "0-9", "3,7", -1 },       { "0-9", "10", 10 },
                 { "1-9", "0-9", 0 },    { "0-20:4", "0-20:8", -1 }, { "0-20:4", "4-6", 5 },
                 { "0-3,8-9", "3-8", 4 } };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(array_set_done) struct array_set of = { 0 }, part = { 0 };

        assert_int_equal(array_set_parse(rows[i].of, 100, &of, NULL, NULL), 0);
        assert_int_equal(array_set_parse(rows[i].part, 100, &part, NULL, NULL), 0);
        assert_row(array_set_find_beyond(&of, &part) == rows[i].want, "%s in %s", rows[i].part,
                   rows[i].of);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_refuse),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_what_a_set_lacks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
