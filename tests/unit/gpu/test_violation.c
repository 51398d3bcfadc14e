/* SPDX-License-Identifier: Apache-2.0 */
/* test_violation.c - which processes are reported, when, and which are not */
#include "testing.h"

#include <string.h>

#include "gpu/charge.h"
#include "gpuhost/violation.h"
#include "gpuhost/region_host_internal.h"

#define MIB ((uint64_t)1 << 20)

static const uint8_t uuid[16] = { 0x51, 0x3a, 0x5f, 0x0e };

struct world {
    struct gpu_region_host *region;
    struct gpu_violation_check check;
};

/* A slice of 2 GiB with the process 100 in slot 5. */
static void begin(struct world *w)
{
    struct gpu_grant grant = { .memory_bytes = 2048 * MIB, .share = 500000 };
    struct aq_error err = { 0 };

    *w = (struct world){ .region = NULL };
    memcpy(grant.uuid, uuid, sizeof(uuid));
    assert_int_equal(gpu_region_host_new(&grant, 1, &w->region, &err), 0);
    gpu_region_host_limits(w->region)->owners[5].host_pid = 100;
}

static void charge(struct world *w, uint64_t mib)
{
    assert_true(charge_reserve(gpu_region_host_usage(w->region), 5, 0, mib / 2, UINT64_MAX >> 40));
}

static bool is_of_container(pid_t pid, void *data)
{
    (void)data;
    return pid >= 100 && pid < 200;
}

/* One look at processes 'pids' that hold 'mib'; how many violations, the first into *ret. */
static size_t look(struct world *w, size_t count, const int pids[], const uint64_t mib[],
                   struct gpu_violation *ret)
{
    struct gpu_process_memory uses[4] = { { .pid = 0 } };
    struct gpu_violation violations[4] = { { .pid = 0 } };
    size_t found;

    for (size_t i = 0; i < count; i++) {
        uses[i] = (struct gpu_process_memory){ .pid = pids[i], .bytes = mib[i] * MIB };
        memcpy(uses[i].uuid, uuid, sizeof(uuid));
    }
    found = gpu_violation_check_run(&w->check, w->region, uses, count, is_of_container, NULL,
                                    violations, 4);
    *ret = violations[0];
    return found;
}

static size_t look_at_one(struct world *w, int pid, uint64_t mib, struct gpu_violation *ret)
{
    return look(w, 1, &pid, &mib, ret);
}

static void test_unregistered(void **state)
{
    struct gpu_violation violation;
    struct world w;

    (void)state;
    begin(&w);
    assert_int_equal(look_at_one(&w, 250, 1000, &violation), 0); /* of nobody's concern */
    assert_int_equal(look_at_one(&w, 101, 10, &violation), 1);   /* at once */
    assert_int_equal(violation.kind, GPU_VIOLATION_UNREGISTERED);
    assert_int_equal(violation.pid, 101);
    assert_int_equal(look_at_one(&w, 101, 10, &violation), 0); /* told once */
    assert_int_equal(look_at_one(&w, 102, 10, &violation), 1); /* another */
    gpu_region_host_free(w.region);
}

static void test_understated(void **state)
{
    struct gpu_violation violation;
    struct world w;

    (void)state;
    begin(&w);
    charge(&w, 100);
    for (int i = 0; i < 5; i++)
        assert_int_equal(look_at_one(&w, 100, 164, &violation), 0); /* what drivers round */
    assert_int_equal(look_at_one(&w, 100, 165, &violation), 0);
    assert_int_equal(look_at_one(&w, 100, 165, &violation), 0);
    assert_int_equal(look_at_one(&w, 100, 100, &violation), 0); /* it was a moment */
    assert_int_equal(look_at_one(&w, 100, 500, &violation), 0);
    assert_int_equal(look_at_one(&w, 100, 500, &violation), 0);
    assert_int_equal(look_at_one(&w, 100, 500, &violation), 1);
    assert_int_equal(violation.kind, GPU_VIOLATION_UNDERSTATED);
    assert_false(gpu_violation_is_breach(&violation));
    assert_int_equal(violation.used_bytes, 500 * MIB);
    assert_int_equal(violation.allowed_bytes, 100 * MIB);
    gpu_region_host_free(w.region);
}

/* The driver's list is old: the program takes 500 MiB and gives them back on and on. */
static void test_busy_allocator(void **state)
{
    struct gpu_violation violation;
    struct world w;

    (void)state;
    begin(&w);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(look_at_one(&w, 100, 500, &violation), 0);
        charge(&w, 500);
        gpu_violation_check_sample(&w.check, w.region);
        charge_release(gpu_region_host_usage(w.region), 5, 0, 250);
    }
    gpu_region_host_free(w.region);
}

/* The region says that all is well, because the container has written that. */
static void test_over(void **state)
{
    const int pids[] = { 100, 101 };
    const uint64_t mib[] = { 1500, 700 };
    struct gpu_violation violation;
    struct world w;

    (void)state;
    begin(&w);
    gpu_region_host_limits(w.region)->owners[6].host_pid = 101;
    gpu_region_host_usage(w.region)->slots[5].devices[0].state = (uint64_t)10000
                                                                 << AQ_GPU_CHARGE_SEQ_BITS;
    gpu_region_host_usage(w.region)->slots[6].devices[0].state = (uint64_t)10000
                                                                 << AQ_GPU_CHARGE_SEQ_BITS;
    assert_int_equal(look(&w, 2, pids, mib, &violation), 0);
    assert_int_equal(look(&w, 2, pids, mib, &violation), 0);
    assert_int_equal(look(&w, 2, pids, mib, &violation), 1);
    assert_int_equal(violation.kind, GPU_VIOLATION_OVER_LIMIT);
    assert_true(gpu_violation_is_breach(&violation));
    assert_int_equal(violation.pid, 100);
    assert_int_equal(violation.used_bytes, 2200 * MIB);
    assert_int_equal(violation.allowed_bytes, 2048 * MIB);
    assert_int_equal(look(&w, 2, pids, mib, &violation), 0);
    gpu_region_host_free(w.region);
}

/* Who was granted more before keeps it, and no more than that. */
static void test_smaller_slice(void **state)
{
    struct gpu_grant grant = { .memory_bytes = 512 * MIB, .share = 500000 };
    struct gpu_violation violation;
    struct world w;

    (void)state;
    begin(&w);
    memcpy(grant.uuid, uuid, sizeof(uuid));
    charge(&w, 1800);
    assert_int_equal(gpu_region_host_set(w.region, &grant, NULL), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(look_at_one(&w, 100, 1800, &violation), 0);
    assert_int_equal(look_at_one(&w, 100, 700, &violation), 0); /* it gave some back */
    for (int i = 0; i < 2; i++)
        assert_int_equal(look_at_one(&w, 100, 900, &violation), 0);
    assert_int_equal(look_at_one(&w, 100, 900, &violation), 1);
    assert_int_equal(violation.kind, GPU_VIOLATION_OVER_LIMIT);
    assert_int_equal(violation.allowed_bytes, 700 * MIB);
    assert_int_equal(look_at_one(&w, 100, 400, &violation), 0);
    assert_int_equal(gpu_region_host_limits(w.region)->devices[0].held_bytes, 0);
    gpu_region_host_free(w.region);
}

static void test_text(void **state)
{
    static const struct {
        struct gpu_violation violation;
        const char *text;
    } rows[] = {
        { { GPU_VIOLATION_UNREGISTERED, 17, 0, 1088 * MIB, 0 },
          "process 17 uses GPU-513a5f0e past its limits (1088 MiB of device memory)" },
        { { GPU_VIOLATION_UNDERSTATED, 17, 0, 500 * MIB, 100 * MIB },
          "process 17 holds more of GPU-513a5f0e than it is charged (500 MiB, charged 100)" },
        { { GPU_VIOLATION_OVER_LIMIT, 17, 0, 2200 * MIB, 2048 * MIB },
          "all processes hold 2200 MiB of GPU-513a5f0e, more than the 2048 granted (process 17 "
          "most of it)" },
    };
    struct world w;
    char text[200];

    (void)state;
    begin(&w);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        gpu_violation_format(&rows[i].violation, w.region, text, sizeof(text));
        assert_string_equal(text, rows[i].text);
    }
    gpu_violation_format(&rows[2].violation, w.region, text, 12);
    assert_string_equal(text, "all process");
    gpu_region_host_free(w.region);
}

/* What one process exports and another imports, the driver may show at both. */
static void test_borrowed(void **state)
{
    const int pids[] = { 100, 101 };
    const uint64_t both[] = { 1500, 1500 }, more[] = { 1500, 1700 };
    struct gpu_violation violation;
    struct world w;
    uint32_t device;
    uint64_t granules;

    (void)state;
    begin(&w);
    gpu_region_host_limits(w.region)->owners[6].host_pid = 101;
    charge(&w, 1500);
    assert_int_equal(gpu_shared_allocs_export(w.region->shared_allocs, 5, 0, 77, 750), 0);
    assert_int_equal(gpu_shared_allocs_join(w.region->shared_allocs, 6, 77, &device, &granules), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(look(&w, 2, pids, both, &violation), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(look(&w, 2, pids, more, &violation), 0);
    assert_int_equal(look(&w, 2, pids, more, &violation), 1);
    assert_int_equal(violation.kind, GPU_VIOLATION_UNDERSTATED);
    assert_int_equal(violation.pid, 101);
    gpu_region_host_free(w.region);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unregistered),   cmocka_unit_test(test_understated),
        cmocka_unit_test(test_busy_allocator), cmocka_unit_test(test_over),
        cmocka_unit_test(test_smaller_slice),  cmocka_unit_test(test_text),
        cmocka_unit_test(test_borrowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
