/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a machine that the test writes, and what is made of them. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/stat/kernel_stat.h"
#include "agent/stat/memory_kills.h"
#include "agent/stat/node_stat.h"
#include "agent/stat/proc_tree.h"
#include "agent/stat/stat_file.h"
#include "base/fs.h"
#include "model/metric.h"

#define ID "11111111-2222-4333-8444-555555555555"

static char root[64];

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(root, sizeof(root), "/tmp/aliquot-stat-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return fs_remove_tree(AT_FDCWD, root, NULL);
}

static void put(const char *path, const char *text)
{
    char whole[256], *slash;

    (void)snprintf(whole, sizeof(whole), "%s/%s", root, path);
    slash = strrchr(whole, '/');
    *slash = '\0';
    assert_int_equal(fs_mkdirs(whole, 0755, NULL), 0);
    *slash = '/';
    assert_int_equal(fs_write_quick(AT_FDCWD, whole, text, strlen(text), 0644, NULL), 0);
}

/* The value of a metric of an owner; NAN without one. */
static double value_of(const struct msg_statistics *m, const struct msg_value *values, size_t count,
                       const char *key, double *ret_capacity)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(m->metrics[values[i].metric].key, key) != 0)
            continue;
        *ret_capacity = values[i].capacity;
        return values[i].value;
    }
    return NAN;
}

static double node_value(const struct msg_statistics *m, const char *key, double *ret_capacity)
{
    return value_of(m, m->node, m->node_count, key, ret_capacity);
}

static double kernel_value(const struct msg_statistics *m, const char *key, double *ret_capacity)
{
    assert_int_equal(m->kernel_count, 1);
    return value_of(m, m->kernels[0].values, m->kernels[0].value_count, key, ret_capacity);
}

static struct uuid kernel_id(void)
{
    struct uuid id;

    assert_int_equal(uuid_parse(ID, &id), 0);
    return id;
}

/* ---- the node ---- */

static void test_node(void **state)
{
    AQ_CLEANUP(sample_freep) struct sample *sample = NULL;
    struct node_stat *node = NULL;
    const struct msg_statistics *m;
    double ticks = (double)sysconf(_SC_CLK_TCK) / 1000, capacity;

    (void)state;
    put("proc/stat", "cpu  99 99 99 0\ncpu0 100 20 30 4000 0 0 0\ncpu1 1 2 3 4\nintr 5\n");
    put("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    400 kB\n");
    put("proc/self/net/dev", "Inter-|   Receive |  Transmit\n face |bytes    packets\n"
                             "    lo: 7 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n"
                             "  eth0: 1000 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\n"
                             "aqab12-000001: 5 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n"
                             "wlan0:50 1 0 0 0 0 0 0 30 1 0 0 0 0 0 0\n");
    put("proc/self/mounts", "proc /proc proc rw 0 0\n/dev/none / ext4 rw 0 0\n"
                            "/dev/none /again ext4 rw 0 0\n/dev/sr0 / iso9660 ro 0 0\n"
                            "server:/x / nfs4 rw 0 0\n/dev/loop3 / ext4 rw 0 0\n");
    sample = sample_new();
    node = node_stat_new(root);
    sample_begin(sample, 1, 5);
    node_stat_sample(node, sample);
    m = sample_end(sample);
    assert_true(node_value(m, "cpu_util", &capacity) == 156 / ticks && capacity == 1000);
    assert_true(node_value(m, "mem", &capacity) == 600 * 1024. && capacity == 1000 * 1024.);
    assert_true(node_value(m, "net_rx", &capacity) == 1050 && capacity < 0);
    assert_true(node_value(m, "net_tx", &capacity) == 230);
    assert_true(node_value(m, "disk", &capacity) > 0 && capacity > 0);
    assert_int_equal(m->device_count, 2 + 1 + 1 + 1); /* cores, disk, memory, network */
    assert_string_equal(m->devices[1].device, "1");
    assert_string_equal(m->devices[2].device, "/dev/none");
    assert_string_equal(m->devices[3].device, "root");
    assert_int_equal(m->metrics[m->node[0].metric].show, METRIC_DIFF);
    node_stat_free(node);
}

static void test_node_without_proc(void **state)
{
    AQ_CLEANUP(sample_freep) struct sample *sample = NULL;
    struct node_stat *node = NULL;
    const struct msg_statistics *m;

    (void)state;
    sample = sample_new();
    assert_null(sample_last(sample));
    node = node_stat_new("/nowhere");
    sample_begin(sample, 1, 5);
    node_stat_sample(node, sample);
    m = sample_end(sample);
    assert_int_equal(m->node_count + m->device_count + m->kernel_count, 0);
    node_stat_free(node);
}

/* ---- containers ---- */

static const struct {
    const char *what;
    bool is_v2;
    struct {
        const char *path, *text;
    } files[8];
    double cpu, memory, memory_max, read, written;
} layouts[] = {
    { "version 1",
      false,
      { { "cg/" ID "/cpuacct.usage", "2500000000\n" },
        { "cg/" ID "/memory.usage_in_bytes", "5000\n" },
        { "cg/" ID "/memory.stat", "inactive_file 4000\ntotal_inactive_file 1000\n" },
        { "cg/" ID "/memory.limit_in_bytes", "9000\n" },
        { "cg/" ID "/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n" },
        { "cg/" ID "/container/memory.oom_control", "under_oom 0\noom_kill 2\n" },
        { "cg/" ID "/blkio.throttle.io_service_bytes_recursive",
          "8:0 Read 100\n8:0 Write 20\n8:0 Total 120\n8:16 Read 1\n8:16 Write 2\nTotal 123\n" } },
      2500,
      4000,
      9000,
      101,
      22 },
    { "version 2",
      true,
      { { "cg/" ID "/cpu.stat", "usage_usec 7000\nuser_usec 1\n" },
        { "cg/" ID "/memory.current", "5000\n" },
        { "cg/" ID "/memory.stat", "anon 1\ninactive_file 6000\n" },
        { "cg/" ID "/memory.max", "max\n" },
        { "cg/" ID "/memory.events", "oom 4\noom_kill 3\noom_group_kill 0\n" },
        { "cg/" ID "/io.stat", "8:0 rbytes=5 wbytes=6 rios=1\n8:16 rbytes=7 wbytes=8 rios=1\n" } },
      7,
      0,
      -1,
      12,
      14 },
};

static void check_container(size_t row)
{
    AQ_CLEANUP(sample_freep) struct sample *sample = NULL;
    AQ_CLEANUP(kernel_stat_freep) struct kernel_stat *stat = NULL;
    AQ_CLEANUP(aq_freep) char *parent = aq_format("%s/cg", root);
    AQ_CLEANUP(aq_freep) char *scratch = aq_format("%s/scratch", root);
    const struct cgroup_layout layout = {
        .items = { { .mount = parent,
                     .is_v2 = layouts[row].is_v2,
                     .controllers = ~0u,
                     .parent = parent } },
        .count = 1,
    };
    const struct kernel_stat_conf conf = { .cgroups = &layout,
                                           .name = ID,
                                           .link = "aq-1",
                                           .root = root,
                                           .scratch = scratch,
                                           .scratch_bytes = 1 << 20 };
    const struct uuid id = kernel_id();
    const struct msg_statistics *m;
    int32_t pids[8];
    double capacity;

    for (size_t i = 0; i < AQ_COUNT(layouts[row].files) && layouts[row].files[i].path; i++)
        put(layouts[row].files[i].path, layouts[row].files[i].text);
    put("cg/" ID "/cgroup.procs", "12\n345\n");
    put("sys/class/net/aq-1/statistics/rx_bytes", "30\n");
    put("sys/class/net/aq-1/statistics/tx_bytes", "40\n");
    put("scratch", "something");
    sample = sample_new();
    assert_int_equal(kernel_stat_open(&conf, &stat, NULL), 0);
    for (int turn = 0; turn < 2; turn++) { /* an open file shows what it holds now */
        sample_begin(sample, turn + 1, 5);
        sample_begin_kernel(sample, &id, &id, 1);
        kernel_stat_sample(stat, sample);
        m = sample_end(sample);
        assert_row(kernel_value(m, "cpu_used", &capacity) == layouts[row].cpu, "%s",
                   layouts[row].what);
    }
    assert_true(kernel_value(m, "cpu_util", &capacity) == layouts[row].cpu && capacity == 1000);
    assert_row(kernel_value(m, "mem", &capacity) == layouts[row].memory, "%s", layouts[row].what);
    assert_true(capacity == layouts[row].memory_max);
    assert_true(kernel_value(m, "io_read", &capacity) == layouts[row].read);
    assert_true(kernel_value(m, "io_write", &capacity) == layouts[row].written);
    assert_true(kernel_value(m, "net_rx", &capacity) == 40); /* the node's end sends it */
    assert_true(kernel_value(m, "net_tx", &capacity) == 30);
    assert_true(kernel_value(m, "io_scratch_size", &capacity) >= 0 && capacity == 1 << 20);
    assert_int_equal(kernel_stat_pids(stat, pids, AQ_COUNT(pids)), 2);
    assert_int_equal(pids[1], 345);
    assert_int_equal(kernel_stat_pids(stat, pids, 1), 1);
    assert_int_equal(memory_kills_read(&layout, ID).count, 3);
    assert_int_equal(memory_kills_read(&layout, ID).limit_bytes, layouts[row].is_v2 ? 0 : 9000);
    assert_int_equal(memory_kills_read(&layout, "other").count, 0);
}

static void test_containers(void **state)
{
    (void)state;
    for (size_t row = 0; row < AQ_COUNT(layouts); row++)
        check_container(row);
}

static void test_no_container(void **state)
{
    AQ_CLEANUP(aq_freep) char *parent = aq_format("%s/empty", root);
    const struct cgroup_layout layout = {
        .items = { { .mount = parent, .controllers = ~0u, .parent = parent } },
        .count = 1,
    };
    const struct kernel_stat_conf conf = { .cgroups = &layout, .name = ID, .root = root };
    struct kernel_stat *stat = NULL;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(kernel_stat_open(&conf, &stat, &err), -ENOENT);
    assert_null(stat);
}

/* ---- processes ---- */

static void put_process(int pid, const char *name, int parent, int user, int children, int pages)
{
    char path[64], text[256];

    (void)snprintf(path, sizeof(path), "proc/%d/stat", pid);
    (void)snprintf(
        text, sizeof(text),
        "%d (%s) S %d 1 1 0 -1 0 0 0 0 0 %d 1 %d 0 20 0 1 0 5 1000 %d 18446744073709551615", pid,
        name, parent, user, children, pages);
    put(path, text);
}

static void test_processes(void **state)
{
    struct proc_tree *tree = NULL;
    double ticks = (double)sysconf(_SC_CLK_TCK) / 1000, page = (double)sysconf(_SC_PAGESIZE);
    int32_t pids[8];

    (void)state;
    put_process(10, "agent", 1, 1000, 1000, 1000);
    put_process(20, "monitor", 10, 500, 30, 100); /* its children that have ended count */
    put_process(21, "odd) S 1 (name", 20, 5, 2, 3);
    put_process(22, "child", 21, 7, 0, 4);
    put_process(23, "orphan", 20, 1, 0, 5);
    put_process(24, "other", 10, 900, 900, 900);
    put("proc/25/stat", "25 (half");
    tree = proc_tree_new(root);
    proc_tree_begin(tree);
    proc_tree_add(tree, 21);
    proc_tree_add(tree, 99);
    proc_tree_look(tree);
    assert_true(proc_tree_get(tree, 0).is_there);
    assert_true(proc_tree_get(tree, 0).cpu_msec
                == 30 / ticks + 6 / ticks + 2 / ticks + 8 / ticks + 2 / ticks);
    assert_true(proc_tree_get(tree, 0).memory_bytes == 12 * page);
    assert_false(proc_tree_get(tree, 1).is_there);
    assert_false(proc_tree_get(tree, 2).is_there);
    assert_int_equal(proc_tree_pids(tree, 0, pids, AQ_COUNT(pids)), 3);
    assert_int_equal(pids[0], 21);
    assert_int_equal(pids[2], 23);
    proc_tree_free(tree);
}

/* ---- samples ---- */

static void test_bounds(void **state)
{
    AQ_CLEANUP(sample_freep) struct sample *sample = NULL;
    const struct uuid id = kernel_id();
    const struct msg_statistics *m;
    char name[16];

    (void)state;
    sample = sample_new();
    sample_begin(sample, 1, 5);
    sample_add(sample, SAMPLE_NODE_MEM, NAN, -1);
    sample_add(sample, SAMPLE_NODE_MEM, 1, INFINITY);
    sample_add_accel(sample, "cuda_mem", METRIC_BYTES, METRIC_MAX, 1, 2);
    sample_add_accel(sample, "cuda_mem", METRIC_BYTES, METRIC_MAX, 3, 4);
    for (int i = 0; i < MSG_METRICS_MAX; i++) {
        char key[32];

        (void)snprintf(key, sizeof(key), "cuda_%d", i);
        sample_add_accel(sample, key, METRIC_COUNT, 0, 1, -1);
    }
    sample_begin_kernel(sample, &id, &id, 1);
    for (int i = 0; i < 2 * MSG_VALUES_MAX; i++)
        sample_add(sample, SAMPLE_MEM, i, -1);
    (void)snprintf(name, sizeof(name), "GPU-1");
    sample_begin_device(sample, name);
    (void)snprintf(name, sizeof(name), "other");
    m = sample_end(sample);
    assert_string_equal(m->devices[0].device, "GPU-1"); /* a copy */
    assert_int_equal(m->metric_count, MSG_METRICS_MAX);
    assert_true(m->node_count < MSG_METRICS_MAX);
    assert_int_equal(m->node[0].metric, m->node[1].metric);
    assert_int_equal(m->kernels[0].value_count, MSG_VALUES_MAX);
    sample_begin(sample, 2, 5);
    m = sample_end(sample);
    assert_int_equal(m->node_count + m->device_count + m->kernel_count, 0);
}

static void test_texts(void **state)
{
    uint64_t number = 0;

    (void)state;
    assert_true(stat_file_find("a 1\nab 2\nb: 3\n", "ab", &number) && number == 2);
    assert_true(stat_file_find("a 1\nab 2\nb: 3\n", "b", &number) && number == 3);
    assert_false(stat_file_find("a 1\nab max\n", "ab", &number));
    assert_false(stat_file_find("", "a", &number));
    assert_false(stat_file_number("-1", &number));
    assert_false(stat_file_number("99999999999999999999", &number));
    assert_null(stat_file_next_line("the last\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_node, set_up, tear_down),
        cmocka_unit_test(test_node_without_proc),
        cmocka_unit_test_setup_teardown(test_containers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_container, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_processes, set_up, tear_down),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
