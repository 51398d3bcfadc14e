/* SPDX-License-Identifier: Apache-2.0 */
/* test_charge_race.c - the agent against a container that changes the words all the time
 *
 * No process is quick enough to come between each load of the agent and its swap. So charge.c
 * is compiled in here with a swap that others always win, and counts how often it is tried.
 */
#include "testing.h"

#include <stdbool.h>
#include <stdlib.h>

static uint64_t lost, spared;

static bool swap_words(uint64_t *word, uint64_t *old, uint64_t value)
{
    if (spared) {
        spared--;
        *word = value;
        return true;
    }
    assert_true(++lost < 100000);
    *word ^= UINT64_C(0x9e3779b97f4a7c15) * lost;
    *old = *word;
    return false;
}

#define __atomic_compare_exchange_n(word, old, value, ...) swap_words(word, old, value)
#include "gpu/charge.c"
#undef __atomic_compare_exchange_n

static struct aq_gpu_usage *make_usage(void)
{
    struct aq_gpu_usage *usage = calloc(1, sizeof(*usage));

    assert_non_null(usage);
    lost = 0;
    return usage;
}

/* The agent goes on, and what it could not give back is there for the next time. */
static void test_reclaim_ends(void **state)
{
    struct aq_gpu_usage *usage = make_usage();

    (void)state;
    spared = 1;
    assert_true(charge_reserve(usage, 7, 0, 5, 100));
    charge_reclaim(usage, 7, 0);
    assert_in_range(lost, 1, 2000);
    assert_int_equal(charge_of_slot(usage, 7, 0), 5);
    usage->devices[0].charged = (uint64_t)5 << GRANULE_SHIFT;
    spared = 2;
    charge_reclaim(usage, 7, 0);
    assert_int_equal(charge_of_slot(usage, 7, 0), 0);
    assert_int_equal(charge_sum(usage, 0), 0);
    free(usage);
}

static void test_set_ends(void **state)
{
    struct aq_gpu_usage *usage = make_usage();

    (void)state;
    spared = 0;
    charge_set(usage, 0, 3, 8);
    assert_in_range(lost, 1, 2000);
    assert_int_equal(charge_of_slot(usage, 0, 3), 0);
    spared = 2;
    usage->devices[3].charged = 0;
    charge_set(usage, 0, 3, 8);
    assert_int_equal(charge_sum(usage, 3), 8);
    free(usage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reclaim_ends),
        cmocka_unit_test(test_set_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
