/* SPDX-License-Identifier: Apache-2.0 */
/* test_ledger.c - what a process holds: small allocations in granules, objects and owners */
#include "testing.h"

#include <stdlib.h>

#include "gpu/charge.h"
#include "gpu/fork.h"
#include "gpu/ledger.h"
#include "gpu/region.h"

#define KIB ((uint64_t)1 << 10)
#define GRANULES 4

/* The rest of the library is not here, and no test forks. */
void gpu_fork_watch(void)
{
}

static struct aq_gpu_limits *limits;

static int set_up(void **state)
{
    (void)state;
    limits = calloc(1, sizeof(*limits));
    assert_non_null(limits);
    limits->device_count = 1;
    limits->alive_ns = INT64_MAX / 2; /* nobody to ask for new ones */
    limits->devices[0].memory_bytes = GRANULES * AQ_GPU_GRANULE;
    gpu_region = (struct gpu_region){ .limits = limits, .slot = 1, .device_count = 1 };
    gpu_region.usage = calloc(1, sizeof(*gpu_region.usage));
    assert_non_null(gpu_region.usage);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ledger_after_fork();
    free(gpu_region.usage);
    free(limits);
    gpu_region_after_fork();
    return 0;
}

static uint64_t charged(void)
{
    return charge_sum(gpu_region.usage, 0);
}

/* As on_mem_alloc does it; false = refused. */
static bool take(uint64_t key, uint64_t bytes)
{
    if (ledger_fits_small(0, bytes))
        return ledger_add_small(key, 0, bytes);
    return ledger_reserve(0, bytes) && ledger_add(LEDGER_MEMORY, key, 0, bytes, 0);
}

static void give(uint64_t key)
{
    struct ledger_entry entry;
    bool released;

    assert_true(ledger_take_plain(key, &entry, &released));
    if (!released)
        ledger_release(entry.device, entry.bytes);
}

static void test_small(void **state)
{
    uint64_t count = 0;

    (void)state;
    assert_false(ledger_fits_small(0, 1)); /* no granule yet */
    while (take(count + 1, 64 * KIB)) {
        count++;
        assert_int_equal(charged(), (count * 64 * KIB + AQ_GPU_GRANULE - 1) / AQ_GPU_GRANULE);
    }
    assert_int_equal(count, GRANULES * AQ_GPU_GRANULE / (64 * KIB)); /* packed, none lost */
    assert_int_equal(gpu_region.usage->devices[0].refused, 1);
    assert_false(ledger_fits_small(0, 1));
    while (count) {
        give(count--);
        assert_int_equal(charged(), (count * 64 * KIB + AQ_GPU_GRANULE - 1) / AQ_GPU_GRANULE);
    }
}

static void test_large_is_never_small(void **state)
{
    (void)state;
    assert_true(take(1, 512));
    assert_true(ledger_fits_small(0, LEDGER_LARGE - 1));
    assert_false(ledger_fits_small(0, LEDGER_LARGE));
    assert_true(take(2, LEDGER_LARGE));
    assert_int_equal(charged(), 2);
    give(1);
    give(2);
    assert_int_equal(charged(), 0);
}

/* Another thread took the room between the look and the entry. */
static void test_lost_race(void **state)
{
    (void)state;
    assert_true(take(1, (GRANULES - 1) * AQ_GPU_GRANULE));
    assert_true(take(2, 512 * KIB));
    assert_true(ledger_fits_small(0, 900 * KIB));
    assert_true(take(3, 900 * KIB));
    assert_false(ledger_add_small(4, 0, 900 * KIB));
    assert_int_equal(charged(), GRANULES);
    give(3);
    assert_true(ledger_add_small(4, 0, 900 * KIB));
}

static void test_owners(void **state)
{
    struct ledger_entry entry;
    bool released;

    (void)state;
    assert_true(ledger_reserve(0, AQ_GPU_GRANULE));
    assert_true(ledger_add(LEDGER_HANDLE, 7, 0, AQ_GPU_GRANULE, 0));
    assert_true(ledger_ref(LEDGER_HANDLE, 7));
    assert_false(ledger_ref(LEDGER_HANDLE, 8));
    assert_false(ledger_take_plain(7, &entry, &released)); /* of another kind */
    assert_false(ledger_unref(LEDGER_HANDLE, 7, &entry));
    assert_true(ledger_unref(LEDGER_HANDLE, 7, &entry)); /* the last owner */
    assert_int_equal(entry.bytes, AQ_GPU_GRANULE);
    assert_int_equal(charged(), 1); /* until the caller has decided who pays now */
    ledger_release(0, entry.bytes);
    assert_int_equal(charged(), 0);
    assert_false(ledger_unref(LEDGER_HANDLE, 7, &entry));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_small, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_large_is_never_small, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lost_race, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_owners, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
