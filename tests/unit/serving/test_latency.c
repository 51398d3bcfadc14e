/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets of latencies, and percentiles estimated from them. */
#include "testing.h"

#include <math.h>

#include "base/clock.h"
#include "serving/latency.h"

static void test_buckets(void **state)
{
    (void)state;
    for (size_t i = 0; i < LATENCY_BUCKETS - 1; i++) {
        int64_t bound = (int64_t)llround(latency_bounds[i] * USEC_PER_SEC);

        assert_true(i == 0 || latency_bounds[i] > latency_bounds[i - 1]);
        assert_int_equal(latency_bucket(bound), i);
        assert_int_equal(latency_bucket(bound + 1), i + 1);
    }
    assert_int_equal(latency_bucket(0), 0);
    assert_int_equal(latency_bucket(-5), 0);
    assert_int_equal(latency_bucket(INT64_MAX), LATENCY_BUCKETS - 1);
}

static void test_quantiles(void **state)
{
    int64_t counts[LATENCY_BUCKETS] = { 0 };

    (void)state;
    assert_true(isnan(latency_quantile(counts, 0.5)));
    counts[4] = 100; /* 50 to 100 ms */
    assert_float_equal(latency_quantile(counts, 0.5), 0.075, 1e-9);
    assert_float_equal(latency_quantile(counts, 0.99), 0.0995, 1e-9);
    counts[0] = 100; /* up to 5 ms */
    assert_float_equal(latency_quantile(counts, 0.25), 0.0025, 1e-9);
    assert_float_equal(latency_quantile(counts, 0.75), 0.075, 1e-9);
    counts[LATENCY_BUCKETS - 1] = 1000; /* beyond the last bound */
    assert_float_equal(latency_quantile(counts, 0.99), latency_bounds[LATENCY_BUCKETS - 2], 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_quantiles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
