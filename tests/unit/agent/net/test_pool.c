/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>

#include "agent/net/pool.h"

static void test_ranges(void **state)
{
    static const struct {
        const char *text;
        int r;
        uint32_t first;
        unsigned bits;
    } rows[] = {
        { "10.213.0.0/16", 0, 0x0ad50000, 16 },
        { "10.0.0.1", 0, 0x0a000001, 32 },
        { "0.0.0.0/0", 0, 0, 0 },
        { "10.213.0.1/16", -EINVAL, 0, 0 },
        { "10.213.0.0/33", -EINVAL, 0, 0 },
        { "10.213.0.0/", -EINVAL, 0, 0 },
        { "10.213.0.0/-1", -EINVAL, 0, 0 },
        { "10.213.0/16", -EINVAL, 0, 0 },
        { "10.213.0.0.0/16", -EINVAL, 0, 0 },
        { "fe80::/10", -EINVAL, 0, 0 },
        { "", -EINVAL, 0, 0 },
    };
    char text[RANGE_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct range range = { 0 };

        assert_row(range_parse(rows[i].text, &range, NULL) == rows[i].r, "%s", rows[i].text);
        assert_row(range.first == rows[i].first && range.bits == rows[i].bits, "%s", rows[i].text);
    }
    assert_string_equal(range_format(&(struct range){ 0x0ad50400, 22 }, text), "10.213.4.0/22");
}

static void test_overlap(void **state)
{
    static const struct {
        struct range a, b;
        bool overlaps;
    } rows[] = {
        { { 0x0a000000, 8 }, { 0x0ad50000, 16 }, true },
        { { 0x0ad50000, 22 }, { 0x0ad50400, 22 }, false },
        { { 0x0ad50000, 22 }, { 0x0ad50300, 24 }, true },
        { { 0, 0 }, { 0xffffffff, 32 }, true },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        assert_int_equal(range_overlaps(&rows[i].a, &rows[i].b), rows[i].overlaps);
        assert_int_equal(range_overlaps(&rows[i].b, &rows[i].a), rows[i].overlaps);
    }
}

/* Network, gateway and the last address are never given out; all others are,
 * and one that is given back comes after those that were free longer.
 */
static void test_handing_out(void **state)
{
    const struct range range = { 0x0a090000, 29 };
    struct pool pool;
    uint32_t number;

    (void)state;
    assert_int_equal(pool_init(&pool, &range, NULL), 0);
    for (uint32_t want = 2; want <= 6; want++) {
        assert_int_equal(pool_take(&pool, &number, NULL), 0);
        assert_int_equal(number, want);
    }
    assert_int_equal(pool_take(&pool, &number, NULL), -ENOSPC);
    pool_give(&pool, 3);
    pool_give(&pool, 5);
    assert_int_equal(pool_take(&pool, &number, NULL), 0);
    assert_int_equal(number, 3);
    pool_give(&pool, 3);
    assert_int_equal(pool_take(&pool, &number, NULL), 0);
    assert_int_equal(number, 5);
    assert_false(pool_take_number(&pool, 5));
    assert_false(pool_take_number(&pool, POOL_GATEWAY));
    assert_false(pool_take_number(&pool, 7));
    assert_false(pool_take_number(&pool, 4000000000u));
    assert_true(pool_take_number(&pool, 3));
    pool_give(&pool, 0);
    pool_give(&pool, 7);
    assert_int_equal(pool_take(&pool, &number, NULL), -ENOSPC);
    pool_done(&pool);
}

static void test_sizes(void **state)
{
    struct pool pool;

    (void)state;
    assert_int_equal(pool_init(&pool, &(struct range){ 0x0a000000, 30 }, NULL), -EINVAL);
    assert_int_equal(pool_init(&pool, &(struct range){ 0, 7 }, NULL), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_handing_out),
        cmocka_unit_test(test_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
