/* SPDX-License-Identifier: Apache-2.0 */
/* test_region_host.c - the agent's side of a slice: impossible grants, and foreign memory files */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpuhost/region_host.h"

#define MIB ((uint64_t)1 << 20)

static struct gpu_grant grant_of(uint8_t device, uint64_t memory_bytes, uint32_t share)
{
    return (struct gpu_grant){ .uuid = { device }, .memory_bytes = memory_bytes, .share = share };
}

static const struct {
    uint64_t memory_bytes;
    uint32_t region;
    int want;
    const char *field;
} grants[] = {
    { 2 * MIB, 1, 0, "" },
    { UINT64_MAX, AQ_GPU_WHOLE, 0, "" }, /* more than any card has: the driver refuses then */
    { 0, 500000, -EINVAL, "memory" },
    { 2 * MIB - 1, 500000, -EINVAL, "memory" },
    { 1024 * MIB, 0, -EINVAL, "share" },
    { 1024 * MIB, AQ_GPU_WHOLE + 1, -EINVAL, "share" },
};

static void test_grants(void **state)
{
    struct gpu_grant good = grant_of(1, 64 * MIB, 500000);
    AQ_CLEANUP(gpu_region_host_freep) struct gpu_region_host *running = NULL;

    (void)state;
    assert_int_equal(gpu_region_host_new(&good, 1, &running, NULL), 0);
    for (size_t i = 0; i < AQ_COUNT(grants); i++) {
        struct gpu_grant grant = grant_of(1, grants[i].memory_bytes, grants[i].region);
        AQ_CLEANUP(gpu_region_host_freep) struct gpu_region_host *region = NULL;
        struct aq_error err = { 0 };

        assert_row(gpu_region_host_new(&grant, 1, &region, &err) == grants[i].want, "new %zu", i);
        assert_row(strcmp(err.field, grants[i].field) == 0, "new %zu: %s", i, err.field);
        err = (struct aq_error){ 0 };
        assert_row(gpu_region_host_set(running, &grant, &err) == grants[i].want, "set %zu", i);
        assert_row(strcmp(err.field, grants[i].field) == 0, "set %zu: %s", i, err.field);
    }
    good = grant_of(2, 64 * MIB, 500000);
    assert_int_equal(gpu_region_host_set(running, &good, NULL), -ENODEV);
}

static void test_devices(void **state)
{
    struct gpu_grant many[AQ_GPU_DEVICES_MAX + 1];
    struct gpu_region_host *region = NULL;

    (void)state;
    for (uint8_t i = 0; i < AQ_COUNT(many); i++)
        many[i] = grant_of(i, 64 * MIB, 1000);
    assert_int_equal(gpu_region_host_new(many, 0, &region, NULL), -EINVAL);
    assert_int_equal(gpu_region_host_new(many, AQ_COUNT(many), &region, NULL), -EINVAL);
    assert_null(region);
    assert_int_equal(gpu_region_host_new(many, AQ_GPU_DEVICES_MAX, &region, NULL), 0);
    gpu_region_host_free(region);
}

/* How a file differs from the limits, or the usage, of a slice. */
static const struct {
    int64_t limits_more, usage_more;  /* bytes */
    uint32_t magic, version, devices; /* more than it should be */
    int want;
    const char *why;
} files[] = {
    { .why = "a slice" },
    { .limits_more = -1, .want = -EINVAL, .why = "truncated limits" },
    { .limits_more = 4096, .want = -EINVAL, .why = "longer limits" },
    { .usage_more = -4096, .want = -EINVAL, .why = "truncated usage" },
    { .magic = 1, .want = -EINVAL, .why = "something else" },
    { .version = 1, .want = -EINVAL, .why = "another version" },
    { .devices = AQ_GPU_DEVICES_MAX, .want = -EINVAL, .why = "too many devices" },
};

static int make_file(size_t size, int64_t more, const void *head, size_t len)
{
    int fd = memfd_create("test", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)((int64_t)size + more)), 0);
    assert_int_equal(pwrite(fd, head, len, 0), (ssize_t)len);
    return fd;
}

static void test_adopt(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(files); i++) {
        const struct aq_gpu_limits limits = { .magic = AQ_GPU_MAGIC + files[i].magic,
                                              .version = AQ_GPU_VERSION + files[i].version,
                                              .size = sizeof(limits),
                                              .device_count = 1 + files[i].devices };
        AQ_CLEANUP(gpu_region_host_freep) struct gpu_region_host *region = NULL;
        int r = gpu_region_host_adopt(
            make_file(sizeof(limits), files[i].limits_more, &limits, 128),
            make_file(sizeof(struct aq_gpu_usage), files[i].usage_more, "", 1), NULL, &region,
            NULL);

        assert_row(r == files[i].want, "%s gives %d", files[i].why, r);
        assert_row((region != NULL) == (r == 0), "%s", files[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grants),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_adopt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
