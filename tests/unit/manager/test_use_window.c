/* SPDX-License-Identifier: Apache-2.0 */
/* What was counted in the last minute. */
#include "testing.h"

#include "manager/serving/use_window.h"

#define BEGIN (1000 * USEC_PER_SEC)

static int64_t sum_of(const struct use_window *window, size_t slots, int64_t now)
{
    int64_t counts[2];

    (void)use_window_sum(window, slots, now, counts);
    assert_int_equal(counts[1], 10 * counts[0]);
    return counts[0];
}

static void test_a_minute_passes(void **state)
{
    struct use_window *window = use_window_new(2, BEGIN);
    int64_t counts[2], now = BEGIN;

    (void)state;
    assert_true(use_window_is_over(window, now));
    for (int i = 0; i < 60; i++, now += USEC_PER_SEC)
        use_window_add(window, (int64_t[]){ 1, 10 }, now);
    now -= USEC_PER_SEC;
    assert_int_equal(sum_of(window, USE_WINDOW_SLOTS, now), 60);
    assert_int_equal(sum_of(window, 1, now), 5);
    assert_int_equal(sum_of(window, USE_WINDOW_NOW, now), 15);
    now += 30 * USEC_PER_SEC;
    assert_int_equal(sum_of(window, USE_WINDOW_SLOTS, now), 30);
    assert_int_equal(sum_of(window, USE_WINDOW_NOW, now), 0);
    assert_false(use_window_is_over(window, now));
    use_window_add(window, (int64_t[]){ 7, 70 }, now); /* into a slot of before */
    assert_int_equal(sum_of(window, USE_WINDOW_SLOTS, now), 37);
    now += 3600 * USEC_PER_SEC;
    assert_int_equal(sum_of(window, USE_WINDOW_SLOTS, now), 0);
    assert_true(use_window_is_over(window, now));
    assert_true(use_window_sum(window, USE_WINDOW_SLOTS, now, counts) > 55);
    use_window_free(window);
}

static void test_a_young_window_is_not_divided_by_a_minute(void **state)
{
    struct use_window *window = use_window_new(2, BEGIN + 1);
    int64_t counts[2];

    (void)state;
    assert_float_equal(use_window_sum(window, 3, BEGIN + 2, counts), 1, 1e-9);
    assert_float_equal(use_window_sum(window, 3, BEGIN + 1 + 4 * USEC_PER_SEC, counts), 4, 1e-9);
    assert_float_equal(use_window_sum(window, 3, BEGIN + 104 * USEC_PER_SEC, counts), 14, 1e-9);
    use_window_free(window);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_minute_passes),
        cmocka_unit_test(test_a_young_window_is_not_divided_by_a_minute),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
