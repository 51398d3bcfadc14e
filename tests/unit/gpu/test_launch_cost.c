/* SPDX-License-Identifier: Apache-2.0 */
/* test_launch_cost.c - estimates of what GPU kernels cost, from measurements that others disturb */
#include "testing.h"

#include "gpu/launch_cost.h"

#define MS 1000000LL
#define US 1000LL

static void test_worth(void **state)
{
    static const struct launch_cost unknown = { .key = 1 },
                                    short_one = { .key = 1, .ns = 500 * US, .measured = 9 },
                                    long_one = { .key = 1, .ns = 5 * MS, .measured = 9 };
    static const struct {
        const struct launch_cost *cost;
        struct launch_cost_measure measure;
        int64_t want;
        enum launch_cost_quality quality;
        const char *why;
    } rows[] = {
        { &unknown, { 5 * MS, 6 * MS, 6 * MS, true }, 5 * MS, LAUNCH_COST_ALONE, "nobody else" },
        { &unknown,
          { 9 * MS, 10 * MS, 5 * MS, .is_beside = true },
          4500 * US,
          LAUNCH_COST_CORRECTED,
          "half of the time was another's" },
        { &unknown,
          { 9 * MS, 10 * MS, 5 * MS, .was_idle = true },
          5 * MS,
          LAUNCH_COST_ESTIMATE,
          "by the own clock, which is what can be of two" },
        { &unknown,
          { 9 * MS, 10 * MS, 4 * MS, .was_idle = true },
          5 * MS,
          LAUNCH_COST_ESTIMATE,
          "two turns of another at most were in it" },
        { &unknown,
          { 25 * MS, 26 * MS, 7 * MS, .was_idle = true, .contenders = 4 },
          7 * MS,
          LAUNCH_COST_ESTIMATE,
          "three turns of each of three" },
        { &unknown,
          { 5 * MS, 6 * MS, 3 * MS, true },
          3 * MS,
          LAUNCH_COST_ESTIMATE,
          "others came in between" },
        { &short_one,
          { 2500 * US, 3 * MS, 3 * MS, .was_idle = true },
          2500 * US,
          LAUNCH_COST_AMONG_OTHERS,
          "a turn of another in a short kernel" },
        { &short_one,
          { 900 * MS, 900 * MS, 900 * MS, true },
          625 * US,
          LAUNCH_COST_AMONG_OTHERS,
          "an outlier that no clock explains" },
        { &long_one,
          { 5 * MS, 5 * MS, 6 * MS },
          5 * MS,
          LAUNCH_COST_CORRECTED,
          "never more than measured" },
        { &long_one, { 5 * MS, 0, 0 }, 5 * MS, LAUNCH_COST_CORRECTED, "no time, no part" },
        { &long_one,
          { 4 * MS, 5 * MS, 3 * MS },
          4 * MS,
          LAUNCH_COST_ESTIMATE,
          "known to be less: at once" },
        { &long_one,
          { 15 * MS, 15 * MS, 7 * MS },
          5200 * US,
          LAUNCH_COST_ESTIMATE,
          "more by the clock: a part of the way" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct launch_cost cost = *rows[i].cost;
        enum launch_cost_quality quality;

        assert_row(launch_cost_worth(&cost, &rows[i].measure, &quality) == rows[i].want
                       && quality == rows[i].quality,
                   "%s", rows[i].why);
    }
}

/* A kernel of 'ns' that is launched 'into' the turn of another process, with 'contenders'
 * of them that always have work; the last event waits for the next turn where the
 * kernel ends with one.
 */
static struct launch_cost_measure in_turns(int64_t ns, int64_t into, uint32_t contenders)
{
    int64_t others = (contenders - 1) * LAUNCH_COST_TURN_NS, waits = others - into % others;
    int64_t measured = ns + ns / LAUNCH_COST_TURN_NS * others;

    return (struct launch_cost_measure){ .ns = measured,
                                         .waited_ns = waits + measured,
                                         .own_ns = (waits + measured) / contenders,
                                         .was_idle = true,
                                         .contenders = contenders };
}

static int64_t launch(uint64_t key, const struct launch_cost_measure *measure)
{
    enum launch_cost_quality quality;
    int64_t ns = launch_cost_worth(launch_cost_find(key), measure, &quality);

    launch_cost_learn(key, ns, quality);
    return ns;
}

/* Whatever the length, and wherever in the turns of others it begins: turns are exact. */
static void test_turns(void **state)
{
    static const int64_t lengths[] = {
        2000, 2100, 3000, 3900, 4000, 5000, 7000, 10000, 20000, 50000
    };
    uint64_t key = launch_cost_key("turns", 80, 256);

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(lengths); i++)
        for (uint32_t contenders = 2; contenders <= 8; contenders *= 2) {
            int64_t ns = lengths[i] * US, sum = 0;
            struct launch_cost_measure early = in_turns(ns, 0, contenders);

            early.is_uncontended = true; /* the agent has not seen the others yet */
            early.own_ns = early.waited_ns;
            launch_cost_drop_all();
            (void)launch(key, &early);
            for (int n = 0; n < 100; n++) {
                struct launch_cost_measure measure = in_turns(ns, n * 370 * US, contenders);

                sum += launch(key, &measure);
            }
            assert_row(sum >= ns * 98 && sum <= ns * 102, "%lld us, %u contenders: %lld",
                       (long long)lengths[i], contenders, (long long)(sum / 100 / US));
        }
}

/* The shortest measurement bounds what follows, until the kernel takes longer for sure. */
static void test_most(void **state)
{
    struct launch_cost_measure among = { 6 * MS, 6 * MS, 5 * MS },
                               shortest = { 3 * MS, 3 * MS, 2900 * US };
    struct launch_cost_measure longer = { 12 * MS, 12 * MS, 6 * MS, .was_idle = true };
    uint64_t key = launch_cost_key("most", 80, 256);

    (void)state;
    launch_cost_drop_all();
    assert_int_equal(launch(key, &among), 5 * MS);
    assert_int_equal(launch(key, &shortest), 3 * MS);
    for (int n = 0; n < 10; n++)
        assert_in_range(launch(key, &among), 3 * MS, 3060 * US);
    assert_int_equal(launch(key, &longer), 6 * MS); /* three turns, and three of another */
    assert_int_equal(launch(key, &longer), 6 * MS);
}

static uint32_t after(int64_t first, int64_t then, enum launch_cost_quality quality)
{
    uint64_t key = launch_cost_key("kernel", 80, 256);

    launch_cost_drop_all();
    launch_cost_learn(key, first, LAUNCH_COST_ALONE);
    launch_cost_learn(key, then, quality);
    return launch_cost_find(key)->ns;
}

static void test_learn(void **state)
{
    (void)state;
    assert_int_equal(after(8 * MS, 4 * MS, LAUNCH_COST_ALONE), 6 * MS);
    assert_int_equal(after(8 * MS, 16 * MS, LAUNCH_COST_ALONE), 9 * MS);
    assert_int_equal(after(8 * MS, 16 * MS, LAUNCH_COST_AMONG_OTHERS), 8 * MS + MS / 8);
    assert_int_equal(after(8 * MS, 4 * MS, LAUNCH_COST_CORRECTED), 7500 * US);
    assert_true(after(8 * MS, 1000000 * MS, LAUNCH_COST_ALONE) < 12 * MS); /* an outlier */
    assert_true(after(8 * MS, -1, LAUNCH_COST_ALONE) > 0);
}

static void test_places(void **state)
{
    uint64_t key = launch_cost_key("kernel", 80, 256);

    (void)state;
    launch_cost_drop_all();
    launch_cost_learn(key, MS, LAUNCH_COST_ALONE);
    launch_cost_drop(key + 1); /* another kernel's, in the same place */
    assert_int_equal(launch_cost_find(key)->ns, MS);
    launch_cost_drop(key);
    assert_int_equal(launch_cost_find(key)->ns, 0);
    assert_int_equal(launch_cost_find(key)->left, 1);
    assert_int_not_equal(launch_cost_key("kernel", 80, 128), key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worth), cmocka_unit_test(test_turns),  cmocka_unit_test(test_most),
        cmocka_unit_test(test_learn), cmocka_unit_test(test_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
