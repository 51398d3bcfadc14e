/* SPDX-License-Identifier: Apache-2.0 */
/* Which RDMA devices there are, below a folder that stands for "/". */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "agent/net/rdma.h"
#include "base/fs.h"
#include "base/memory.h"

static char root[64];

static void make(const char *path, const char *text)
{
    AQ_CLEANUP(aq_freep) char *full = aq_format("%s/%s", root, path);
    AQ_CLEANUP(aq_freep) char *folder = aq_strdup(full);

    *strrchr(folder, '/') = '\0';
    assert_int_equal(fs_mkdirs(folder, 0755, NULL), 0);
    assert_int_equal(fs_write_quick(AT_FDCWD, full, text, strlen(text), 0644, NULL), 0);
}

static int set_up(void **state)
{
    (void)state;
    strcpy(root, "/tmp/aliquot-rdma-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    make("sys/class/infiniband/mlx5_1/node_guid", "");
    make("sys/class/infiniband/mlx5_0/node_guid", "");
    make("sys/class/infiniband/dead_0/node_guid", "");
    make("sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_1\n");
    make("sys/class/infiniband_verbs/uverbs7/ibdev", "mlx5_0\n");
    make("sys/class/infiniband_verbs/abi_version", "6\n");
    make("dev/infiniband/uverbs0", "");
    make("dev/infiniband/uverbs7", "");
    make("dev/infiniband/rdma_cm", "");
    make("dev/infiniband/umad0", "");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return fs_remove_tree(AT_FDCWD, root, NULL);
}

static void test_devices(void **state)
{
    static const char *const wanted[] = { "mlx5_0", "mlx5_1", "mlx5_0" };
    struct rdma_devices devices;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(rdma_find(root, wanted, 1, &devices, &err), 0);
    assert_int_equal(devices.names.count, 1);
    assert_int_equal(devices.inside.count, 2);
    assert_string_equal(devices.inside.items[0], "/dev/infiniband/uverbs7");
    assert_string_equal(devices.inside.items[1], "/dev/infiniband/rdma_cm");
    assert_string_equal(devices.nodes.items[0] + strlen(root), devices.inside.items[0]);
    rdma_devices_done(&devices);
    assert_int_equal(rdma_find(root, wanted, 3, &devices, &err), 0);
    assert_int_equal(devices.names.count, 2);
    assert_int_equal(devices.inside.count, 3);
    rdma_devices_done(&devices);
    assert_int_equal(rdma_find(root, wanted, 0, &devices, &err), 0);
    assert_int_equal(devices.names.count + devices.inside.count, 0);
    rdma_devices_done(&devices);
}

static void test_what_is_missing_is_named(void **state)
{
    static const char *const unknown[] = { "mlx5_9" }, *const all[] = { RDMA_ALL };
    struct rdma_devices devices;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(rdma_find(root, unknown, 1, &devices, &err), -ENODEV);
    assert_non_null(strstr(err.text, "'mlx5_9'"));
    assert_int_equal(rdma_find(root, all, 1, &devices, &err), -ENODEV);
    assert_non_null(strstr(err.text, "'dead_0' has no verbs"));
    assert_int_equal(rdma_find("/nonexistent", all, 1, &devices, &err), -ENODEV);
    assert_non_null(strstr(err.text, "has no device"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_what_is_missing_is_named),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
