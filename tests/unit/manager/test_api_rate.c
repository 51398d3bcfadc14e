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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_window) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
