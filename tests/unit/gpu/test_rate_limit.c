/* SPDX-License-Identifier: Apache-2.0 */
/* test_rate_limit.c - clocks and the bucket of device time */
#include "testing.h"

#include <stdlib.h>

#include "gpu/rate_limit.h"
#include "gpuhost/time_share.h"

#define MS 1000000LL

static void test_clock(void **state)
{
    struct aq_gpu_clock clock = { .rate = 250000, .at_ns = 1000 * MS, .value_ns = 50 * MS };
    static const struct {
        int64_t now, alive, want;
        uint32_t share;
        const char *why;
    } rows[] = {
        { 1000 * MS, 1000 * MS, 50 * MS, 250000, "at its base" },
        { 1400 * MS, 1400 * MS, 150 * MS, 250000, "a quarter of the time" },
        { 500 * MS, 500 * MS, 50 * MS, 250000, "never back" },
        { 4000 * MS, 1000 * MS, 800 * MS, 250000, "a silent agent changes nothing at the share" },
        { 4000 * MS, 1000 * MS, 500 * MS, 100000, "a second later only the share is granted" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        assert_row(rate_limit_clock(&clock, rows[i].now, rows[i].alive, rows[i].share)
                       == rows[i].want,
                   "%s", rows[i].why);
}

static void test_bucket(void **state)
{
    struct aq_gpu_usage_device usage = { 0 };

    (void)state;
    rate_limit_charge(&usage, 1000 * MS, 30 * MS,
                      RATE_LIMIT_BURST_NS); /* idle so far: 20 ms are in the bucket */
    assert_int_equal(rate_limit_debt(&usage, 1000 * MS), 10 * MS);
    assert_int_equal(rate_limit_wait_ns(10 * MS, 250000), 40 * MS);
    assert_int_equal(rate_limit_debt(&usage, 1010 * MS), 0);
    rate_limit_charge(&usage, 1010 * MS, -5 * MS,
                      RATE_LIMIT_BURST_NS); /* it was less than thought */
    assert_int_equal(rate_limit_debt(&usage, 1010 * MS), -5 * MS);
    assert_int_equal(usage.used_ns, 25 * MS);
    rate_limit_charge(&usage, 1500 * MS, 0, RATE_LIMIT_CARRY_NS); /* it had work all the time */
    assert_int_equal(rate_limit_debt(&usage, 1500 * MS), -495 * MS);
    rate_limit_charge(&usage, 1500 * MS, 0, RATE_LIMIT_BURST_NS);
    assert_int_equal(rate_limit_debt(&usage, 1500 * MS), -20 * MS);
    assert_int_equal(rate_limit_wait_ns(-1, 250000), 0);
    assert_true(rate_limit_wait_ns(INT64_MAX, 1) > 0);
    assert_true(rate_limit_wait_ns(MS, 0) > 0);
}

struct pair {
    struct aq_gpu_limits *limits[2];
    struct aq_gpu_usage *usage[2];
    struct gpu_region_view views[2];
};

static void set_up(struct pair *pair, uint32_t share0, uint32_t share1)
{
    const uint32_t shares[2] = { share0, share1 };

    *pair = (struct pair){ 0 };
    for (int i = 0; i < 2; i++) {
        pair->limits[i] = calloc(1, sizeof(struct aq_gpu_limits));
        pair->usage[i] = calloc(1, sizeof(struct aq_gpu_usage));
        pair->limits[i]->device_count = 1;
        pair->limits[i]->devices[0].share = shares[i];
        pair->limits[i]->owners[1].host_pid = 100 + i;
        gpu_time_share_start(pair->limits[i], 1000 * MS);
        pair->views[i] = (struct gpu_region_view){ .limits = pair->limits[i],
                                                   .usage = pair->usage[i] };
    }
}

static void tear_down(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        free(pair->limits[i]);
        free(pair->usage[i]);
    }
}

static void tick(struct pair *pair, bool conserving, int64_t now)
{
    for (size_t i = 0; i < 2; i++)
        (void)gpu_time_share_tick(pair->limits[i], pair->views, 2, i, conserving, now);
}

/* How much of the time since 'from_ns' a clock has run, in percent. */
static int ran(const struct aq_gpu_clock *clock, int64_t from_value, int64_t span)
{
    return (int)((clock->value_ns - from_value) * 100 / span);
}

static void test_own_time(void **state)
{
    struct pair pair;
    int64_t from[2];

    (void)state;
    set_up(&pair, 500000, 500000);
    tick(&pair, false, 1001 * MS);
    assert_int_equal(pair.limits[0]->devices[0].own.rate, AQ_GPU_WHOLE);
    pair.usage[1]->slots[1].devices[0].busy_ns = 2000 * MS;
    tick(&pair, false, 1002 * MS);
    /* who works has it alone; who came would have to share */
    assert_int_equal(pair.limits[1]->devices[0].own.rate, AQ_GPU_WHOLE);
    assert_in_range(pair.limits[0]->devices[0].own.rate, AQ_GPU_WHOLE / 2, AQ_GPU_WHOLE);
    pair.usage[0]->slots[1].devices[0].busy_ns = 2000 * MS;
    for (int64_t now = 1004; now < 2000; now += 4) { /* both use their turns */
        pair.usage[0]->devices[0].used_ns += 2 * MS;
        pair.usage[1]->devices[0].used_ns += 2 * MS;
        tick(&pair, false, now * MS);
    }
    assert_in_range(pair.limits[1]->devices[0].own.rate, AQ_GPU_WHOLE / 2, AQ_GPU_WHOLE * 52 / 100);
    for (int i = 0; i < 2; i++) {
        from[i] = pair.limits[i]->devices[0].own.value_ns;
        assert_in_range(ran(&pair.limits[i]->devices[0].own, 0, 1000 * MS), 49, 54);
    }
    pair.usage[0]->slots[1].devices[0].busy_ns = 4000 * MS;
    pair.usage[1]->slots[1].devices[0].busy_ns = 4000 * MS;
    for (int64_t now = 2000; now < 4000; now += 10) { /* the first uses less, and leaves the rest */
        pair.usage[0]->devices[0].used_ns += 1 * MS;
        pair.usage[1]->devices[0].used_ns += 9 * MS;
        tick(&pair, false, now * MS);
    }
    assert_in_range(ran(&pair.limits[0]->devices[0].own, from[0], 2000 * MS), 49, 51);
    assert_in_range(ran(&pair.limits[1]->devices[0].own, from[1], 2000 * MS), 85, 95);
    tear_down(&pair);
}

/* Work that begins and ends between two ticks is not missed. */
static void test_own_time_between_ticks(void **state)
{
    struct pair pair;
    int64_t from;

    (void)state;
    set_up(&pair, 500000, 500000);
    tick(&pair, false, 1002 * MS);
    from = pair.limits[0]->devices[0].own.value_ns;
    for (int64_t now = 1004; now <= 1202; now += 2) {
        pair.usage[1]->devices[0].used_ns += MS / 2;
        tick(&pair, false, now * MS);
    }
    assert_in_range(ran(&pair.limits[0]->devices[0].own, from, 200 * MS), 74, 76);
    tear_down(&pair);
}

static void test_conserving(void **state)
{
    struct pair pair;

    (void)state;
    set_up(&pair, 300000, 700000);
    pair.usage[0]->slots[1].devices[0].busy_ns = 9000 * MS;
    tick(&pair, false, 1001 * MS);
    assert_int_equal(pair.limits[0]->devices[0].grant.rate, 300000); /* hard cap */
    tick(&pair, true, 1002 * MS);
    assert_int_equal(pair.limits[0]->devices[0].grant.rate, AQ_GPU_WHOLE);
    pair.usage[1]->slots[1].devices[0].busy_ns = 1500 * MS;
    tick(&pair, true, 1004 * MS);
    assert_int_equal(pair.limits[0]->devices[0].grant.rate, 300000);
    assert_int_equal(pair.limits[1]->devices[0].grant.rate, 700000);
    tick(&pair, true, 1600 * MS); /* the other has been idle for 100 ms */
    assert_int_equal(pair.limits[0]->devices[0].grant.rate, AQ_GPU_WHOLE);
    tear_down(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock),      cmocka_unit_test(test_bucket),
        cmocka_unit_test(test_own_time),   cmocka_unit_test(test_own_time_between_ticks),
        cmocka_unit_test(test_conserving),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
