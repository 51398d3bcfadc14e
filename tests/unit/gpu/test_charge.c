/* SPDX-License-Identifier: Apache-2.0 */
/* test_charge.c - charges: exact under threads, processes and SIGKILL at any instruction */
#include "testing.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu/charge.h"

static struct aq_gpu_usage *map_usage(void)
{
    void *map = mmap(NULL, sizeof(struct aq_gpu_usage), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(map, MAP_FAILED);
    return map;
}

static uint64_t sum_of_slots(const struct aq_gpu_usage *usage, uint32_t device)
{
    uint64_t sum = 0;

    for (uint32_t slot = 0; slot < AQ_GPU_SLOTS_MAX; slot++)
        sum += charge_of_slot(usage, slot, device);
    return sum;
}

static void test_granules(void **state)
{
    static const struct {
        uint64_t bytes, granules;
    } rows[] = {
        { 0, 0 },
        { 1, 1 },
        { AQ_GPU_GRANULE, 1 },
        { AQ_GPU_GRANULE + 1, 2 },
        { UINT64_MAX, UINT64_MAX / AQ_GPU_GRANULE + 1 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        assert_row(charge_granules(rows[i].bytes) == rows[i].granules, "%llu bytes",
                   (unsigned long long)rows[i].bytes);
}

static void test_limit(void **state)
{
    struct aq_gpu_usage *usage = map_usage();

    (void)state;
    assert_true(charge_reserve(usage, 1, 0, 6, 10));
    assert_true(charge_reserve(usage, 2, 0, 4, 10));
    assert_false(charge_reserve(usage, 1, 0, 1, 10));
    assert_false(charge_reserve(usage, 3, 0, UINT64_MAX, UINT64_MAX));
    assert_true(charge_reserve(usage, 1, 1, 10, 10)); /* another device */
    charge_release(usage, 1, 0, 100);                 /* more than it has */
    assert_int_equal(charge_sum(usage, 0), 4);
    assert_int_equal(charge_of_slot(usage, 1, 0), 0);
    assert_false(charge_reserve(usage, 1, 0, 7, 10)); /* a lowered limit refuses, too */
    assert_true(charge_reserve(usage, 1, 0, 6, 10));
    assert_false(charge_reserve(usage, 1, 0, 1, 5));
    assert_int_equal(charge_sum(usage, 0), sum_of_slots(usage, 0));
    munmap(usage, sizeof(*usage));
}

/* Each operation of a slot that dies: before, in the middle, after. */
static void test_reclaim_of_each_half(void **state)
{
    struct aq_gpu_usage *usage = map_usage();
    struct aq_gpu_slot_device *slot = &usage->slots[7].devices[0];

    (void)state;
    assert_true(charge_reserve(usage, 7, 0, 5, 100));
    /* intent written, swap not made */
    slot->intent = (uint64_t)3 << AQ_GPU_CHARGE_SEQ_BITS | 2;
    charge_reclaim(usage, 7, 0);
    assert_int_equal(charge_sum(usage, 0), 0);

    /* swap made, and nobody came after */
    assert_true(charge_reserve(usage, 7, 0, 5, 100));
    slot->intent = (uint64_t)3 << AQ_GPU_CHARGE_SEQ_BITS | ((slot->state + 1) & 0xfffffff);
    usage->devices[0].charged = (uint64_t)8 << 40 | (uint64_t)7 << 28
                                | ((slot->state + 1) & 0xfffffff);
    charge_reclaim(usage, 7, 0);
    assert_int_equal(charge_sum(usage, 0), 0);

    /* swap made, and another came after */
    assert_true(charge_reserve(usage, 7, 0, 5, 100));
    slot->intent = (uint64_t)3 << AQ_GPU_CHARGE_SEQ_BITS | ((slot->state + 1) & 0xfffffff);
    usage->devices[0].charged = (uint64_t)8 << 40 | (uint64_t)7 << 28
                                | ((slot->state + 1) & 0xfffffff);
    assert_true(charge_reserve(usage, 8, 0, 2, 100));
    charge_reclaim(usage, 7, 0);
    assert_int_equal(charge_sum(usage, 0), 2);
    charge_reclaim(usage, 7, 0); /* again: nothing */
    assert_int_equal(charge_sum(usage, 0), 2);
    munmap(usage, sizeof(*usage));
}

static void work(struct aq_gpu_usage *usage, uint32_t slot, unsigned int seed)
{
    uint64_t held = 0;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        unsigned int dice = (unsigned int)rand_r(&seed);
        uint64_t granules = 1 + dice % 7;

        if (dice & 8 && charge_reserve(usage, slot, 0, granules, 200))
            held += granules;
        else if (held >= granules) {
            charge_release(usage, slot, 0, granules);
            held -= granules;
        }
        if (dice % 64 == 0)
            usleep(100); /* 64 of them share few processors */
    }
}

/* 64 processes change one counter and are killed at random; after each round
 * the counter is the sum of what lives, and in the end zero.
 */
static void test_kills(void **state)
{
    struct aq_gpu_usage *usage = map_usage();
    pid_t pids[64] = { 0 };
    unsigned int seed = (unsigned int)time(NULL);

    (void)state;
    print_message("# seed %u\n", seed);
    for (int round = 0; round < 200; round++) {
        uint32_t at = (uint32_t)rand_r(&seed) % AQ_COUNT(pids);

        if (pids[at]) {
            kill(pids[at], SIGKILL);
            waitpid(pids[at], NULL, 0);
            charge_reclaim(usage, at + 1, 0);
            assert_int_equal(charge_of_slot(usage, at + 1, 0), 0);
        }
        pids[at] = fork();
        if (pids[at] == 0)
            work(usage, at + 1, seed + at);
        usleep(200);
        assert_true(charge_sum(usage, 0) <= 200);
    }
    for (size_t i = 0; i < AQ_COUNT(pids); i++)
        if (pids[i]) {
            kill(pids[i], SIGKILL);
            waitpid(pids[i], NULL, 0);
        }
    for (uint32_t i = 0; i < AQ_COUNT(pids); i++)
        charge_reclaim(usage, i + 1, 0);
    assert_int_equal(charge_sum(usage, 0), 0);
    munmap(usage, sizeof(*usage));
}

/* Whatever stands in the memory, nothing faults and nothing hangs. */
static void test_scribbled(void **state)
{
    struct aq_gpu_usage *usage = map_usage();
    unsigned int seed = 1;

    (void)state;
    for (int round = 0; round < 2000; round++) {
        uint32_t slot = 1 + (uint32_t)rand_r(&seed) % (AQ_GPU_SLOTS_MAX - 1);
        uint64_t *words = (uint64_t *)&usage->slots[slot].devices[0];

        for (int i = 0; i < 3; i++)
            words[i] = (uint64_t)rand_r(&seed) << 32 ^ (uint64_t)rand_r(&seed) << 8;
        usage->devices[0].charged = (uint64_t)rand_r(&seed) << 33 ^ (uint64_t)rand_r(&seed);
        (void)charge_reserve(usage, slot, 0, 3, 1000);
        charge_release(usage, slot, 0, 2);
        charge_reclaim(usage, slot, 0);
    }
    munmap(usage, sizeof(*usage));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_granules),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_reclaim_of_each_half),
        cmocka_unit_test(test_kills),
        cmocka_unit_test(test_scribbled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
