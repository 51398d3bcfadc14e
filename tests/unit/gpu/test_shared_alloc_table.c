/* SPDX-License-Identifier: Apache-2.0 */
/* test_shared_alloc_table.c - who holds shared memory, and who is charged for it */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpuhost/shared_alloc_table.h"

static uint32_t device;
static uint64_t granules;

static struct gpu_shared_allocs *make(void)
{
    struct gpu_shared_allocs *table = NULL;

    assert_int_equal(gpu_shared_allocs_new(&table, NULL), 0);
    return table;
}

static void test_who_pays(void **state)
{
    AQ_CLEANUP(gpu_shared_allocs_freep) struct gpu_shared_allocs *table = make();

    (void)state;
    assert_int_equal(gpu_shared_allocs_join(table, 2, 7, &device, &granules), -ENOENT);
    assert_int_equal(gpu_shared_allocs_export(table, 1, 3, 7, 50), 0);
    assert_int_equal(gpu_shared_allocs_export(table, 1, 3, 7, 50), 0); /* it pays still */
    assert_int_equal(gpu_shared_allocs_join(table, 2, 7, &device, &granules), 0);
    assert_int_equal(device, 3);
    assert_int_equal(granules, 50);
    assert_int_equal(gpu_shared_allocs_export(table, 4, 3, 7, 50), -EEXIST); /* others pay */
    assert_int_equal(gpu_shared_allocs_charged(table, 1, 3), 50);
    assert_int_equal(gpu_shared_allocs_uncharged(table, 2, 3), 50);
    assert_int_equal(gpu_shared_allocs_overcounted(table, 3), 100);
    assert_int_equal(gpu_shared_allocs_charged_to_container(table, 3), 0);

    assert_int_equal(gpu_shared_allocs_leave(table, 1, 7), 0);
    assert_int_equal(gpu_shared_allocs_leave(table, 1, 7), -ENOENT);
    assert_int_equal(gpu_shared_allocs_charged_to_container(table, 3), 50);
    assert_int_equal(gpu_shared_allocs_charged_to_container(table, 0), 0);
    assert_int_equal(gpu_shared_allocs_uncharged(table, 2, 3), 50);
    assert_true(gpu_shared_allocs_end_process(table, 2));
    assert_false(gpu_shared_allocs_end_process(table, 2));
    assert_int_equal(gpu_shared_allocs_charged_to_container(table, 3), 50);
    assert_int_equal(gpu_shared_allocs_leave(table, 4, 7), 0);
    assert_int_equal(gpu_shared_allocs_charged_to_container(table, 3), 0);
    assert_int_equal(gpu_shared_allocs_join(table, 2, 7, &device, &granules), -ENOENT);
}

static const struct {
    uint32_t slot, device;
    uint64_t token, granules;
} refused[] = {
    { 0, 0, 7, 1 }, /* the agent's slot */
    { AQ_GPU_SLOTS_MAX, 0, 7, 1 },
    { 1, AQ_GPU_DEVICES_MAX, 7, 1 },
    { 1, 0, 0, 1 },
    { 1, 0, 7, 0 },
    { 1, 0, 7, (uint64_t)1 << AQ_GPU_CHARGE_GRANULE_BITS },
};

static void test_bounds(void **state)
{
    AQ_CLEANUP(gpu_shared_allocs_freep) struct gpu_shared_allocs *table = make();

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(refused); i++)
        assert_row(gpu_shared_allocs_export(table, refused[i].slot, refused[i].device,
                                            refused[i].token, refused[i].granules)
                       == -EINVAL,
                   "offer %zu", i);
    for (uint64_t i = 1; i <= AQ_GPU_LOANS_MAX; i++)
        assert_int_equal(gpu_shared_allocs_export(table, 1, 0, i, 1), 0);
    assert_int_equal(gpu_shared_allocs_export(table, 1, 0, AQ_GPU_LOANS_MAX + 1, 1), -ENOSPC);
    assert_int_equal(gpu_shared_allocs_charged(table, 1, 0), AQ_GPU_LOANS_MAX);
    assert_int_equal(gpu_shared_allocs_join(table, AQ_GPU_SLOTS_MAX, 1, &device, &granules),
                     -ENOENT);
    assert_int_equal(gpu_shared_allocs_leave(table, AQ_GPU_SLOTS_MAX, 1), -ENOENT);
    assert_true(gpu_shared_allocs_end_process(table, 1));
    assert_int_equal(gpu_shared_allocs_export(table, 1, 0, AQ_GPU_LOANS_MAX + 1, 1), 0);
}

static char path[] = "/tmp/test_loans.XXXXXX";

static void spoil(off_t at, const char *byte)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, byte, 1, at), 1);
    (void)close(fd);
}

static uint64_t kept(void)
{
    AQ_CLEANUP(gpu_shared_allocs_freep) struct gpu_shared_allocs *table = make();

    assert_int_equal(gpu_shared_allocs_open_file(table, path, NULL), 0);
    return gpu_shared_allocs_charged_to_container(table, 0)
           + gpu_shared_allocs_charged_to_container(table, 1);
}

static void test_kept(void **state)
{
    AQ_CLEANUP(gpu_shared_allocs_freep) struct gpu_shared_allocs *table = make();
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    (void)close(fd);
    assert_int_equal(gpu_shared_allocs_open_file(table, path, NULL), 0);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(gpu_shared_allocs_export(table, 1, i > 2, i, i * 10), 0);
        assert_int_equal(gpu_shared_allocs_join(table, 1023, i, &device, &granules), 0);
    }
    assert_int_equal(kept(), 0); /* another reads what is written at once */
    (void)gpu_shared_allocs_end_process(table, 1);
    assert_int_equal(kept(), 60);
    assert_int_equal(gpu_shared_allocs_leave(table, 1023, 2), 0);
    assert_int_equal(kept(), 40);

    spoil(256 + 8, "\x77"); /* the device of the first */
    assert_int_equal(kept(), 30);
    spoil(256 * 3 + 24, "\x09"); /* its holders do not count up */
    assert_int_equal(kept(), 0);
    assert_int_equal(truncate(path, 300), 0);
    assert_int_equal(kept(), 0);
    spoil(4, "\x09"); /* of another version */
    assert_int_equal(kept(), 0);
    (void)unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_pays),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
