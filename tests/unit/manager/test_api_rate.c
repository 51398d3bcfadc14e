/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "base/clock.h"
#include "manager/call/rate_limit.h"

static void test_window(void **state)
{
    AQ_CLEANUP(rate_limiter_freep) struct rate_limiter *rate = rate_limiter_new();
    const int64_t window = RATE_WINDOW_SEC * USEC_PER_SEC;
    static const struct {
        const char *key;
        int64_t at, left;
    } rows[] = {
        { "A", 0, 1 },
        { "A", 1, 0 },
        { "A", 2, -1 },
        { "B", 2, 1 }, /* has a window of its own */
        { "A", INT64_C(899999999), -2 },
        { "A", INT64_C(900000000), 1 },
        { "B", INT64_C(900000001), 0 }, /* which began later */
        { "B", INT64_C(900000002), 1 },
    };

    (void)state;
    assert_non_null(rate);
    assert_int_equal(window, INT64_C(900000000));
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        assert_row(rate_limiter_count(rate, rows[i].key, 2, rows[i].at) == rows[i].left, "%zu", i);
}

struct seen {
    int64_t from[8], count[8];
    size_t changes;
};

static void on_change(void *data, const struct rate_change *change)
{
    struct seen *seen = data;

    assert_in_range(seen->changes, 0, 7);
    seen->from[seen->changes] = change->from;
    seen->count[seen->changes++] = change->count;
}

/* Each request is reported once, a bounded number at a time, and all of them after the copy is lost. */
static void test_reports(void **state)
{
    AQ_CLEANUP(rate_limiter_freep) struct rate_limiter *rate = rate_limiter_new();
    struct seen seen = { .changes = 0 };

    (void)state;
    assert_int_equal(rate_limiter_take_changes(rate, 100, on_change, &seen), 0);
    for (int i = 0; i < 5; i++)
        (void)rate_limiter_count(rate, "A", 9, 0);
    (void)rate_limiter_count(rate, "B", 9, 0);
    assert_int_equal(rate_limiter_take_changes(rate, 3, on_change, &seen), 3);
    assert_int_equal(rate_limiter_take_changes(rate, 100, on_change, &seen), 3);
    assert_int_equal(rate_limiter_take_changes(rate, 100, on_change, &seen), 0);
    assert_int_equal(seen.changes, 3);
    assert_int_equal(seen.from[0], 0);
    assert_int_equal(seen.count[0], 3);
    assert_int_equal(seen.from[1] + seen.from[2], 3);
    assert_int_equal(seen.count[1] + seen.count[2], 6);
    rate_limiter_forget_reports(rate);
    assert_int_equal(rate_limiter_take_changes(rate, 100, on_change, &seen), 6);
    (void)rate_limiter_count(rate, "A", 9, RATE_WINDOW_SEC * USEC_PER_SEC); /* a new window */
    assert_int_equal(rate_limiter_take_changes(rate, 100, on_change, &seen), 1);
    assert_int_equal(seen.from[seen.changes - 1], 0);
    assert_int_equal(seen.count[seen.changes - 1], 1);
}

/* A window goes on from its copy, with what was counted meanwhile, and ends when it would have. */
static void test_restore(void **state)
{
    AQ_CLEANUP(rate_limiter_freep) struct rate_limiter *rate = rate_limiter_new();
    const int64_t window = RATE_WINDOW_SEC * USEC_PER_SEC;

    (void)state;
    (void)rate_limiter_count(rate, "A", 9, window);
    rate_limiter_restore(rate, "A", window - 5, 3);
    rate_limiter_restore(rate, "B", window - 5, 9);
    assert_int_equal(rate_limiter_count(rate, "A", 9, window), 4);
    assert_int_equal(rate_limiter_count(rate, "B", 9, window), -1);
    assert_int_equal(rate_limiter_count(rate, "B", 9, 2 * window - 6), -2);
    assert_int_equal(rate_limiter_count(rate, "B", 9, 2 * window - 5), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_window),
                                        cmocka_unit_test(test_reports),
                                        cmocka_unit_test(test_restore) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
