/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/cgroup/cgroup.h"
#include "base/fs.h"

/* A tree of plain directories stands for the mounts. */
struct fixture {
    char root[64];
    struct cgroup_layout layout;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    strcpy(f->root, "/tmp/aliquot-cgroup-XXXXXX");
    *state = f;
    return mkdtemp(f->root) ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    cgroup_layout_done(&f->layout);
    (void)fs_remove_tree(AT_FDCWD, f->root, NULL);
    free(f);
    return 0;
}

static void make(const struct fixture *f, const char *path, const char *text)
{
    AQ_CLEANUP(aq_freep) char *full = aq_format("%s/%s", f->root, path);
    AQ_CLEANUP(aq_freep) char *folder = strdup(full);

    *strrchr(folder, '/') = '\0';
    assert_int_equal(fs_mkdirs(folder, 0755, NULL), 0);
    assert_int_equal(fs_write_quick(AT_FDCWD, full, text, strlen(text), 0644, NULL), 0);
}

static const char v1[] = "30 25 0:26 / /cg rw - tmpfs tmpfs rw\n"
                         "31 30 0:27 / /cg/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n"
                         "32 30 0:28 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n"
                         "33 30 0:29 / /cg/memory rw - cgroup cgroup rw,memory\n"
                         "34 30 0:30 / /cg/pids rw shared:4 - cgroup cgroup rw,pids\n"
                         "35 30 0:31 / /cg/devices rw - cgroup cgroup rw,devices\n"
                         "36 30 0:32 / /cg/with\\040blank rw - cgroup cgroup rw,name=systemd\n";

static const char v2[] = "31 30 0:27 / /cg rw,nosuid - cgroup2 cgroup2 rw\n";

static void read_layout(struct fixture *f, const char *mountinfo)
{
    struct aq_error err = { 0 };

    assert_int_equal(cgroup_layout_read(mountinfo, f->root, &f->layout, &err), 0);
}

static void test_layout(void **state)
{
    struct fixture *f = *state;
    struct aq_error err = { 0 };

    read_layout(f, v1);
    assert_int_equal(f->layout.count, 6);
    assert_string_equal(cgroup_layout_name(&f->layout), "version 1");
    assert_ptr_equal(cgroup_find(&f->layout, CGROUP_CPU), cgroup_find(&f->layout, CGROUP_CPUACCT));
    assert_null(cgroup_find(&f->layout, CGROUP_BLKIO));
    assert_null(cgroup_find_v2(&f->layout));
    assert_non_null(strstr(f->layout.items[5].mount, "/cg/with blank"));
    cgroup_layout_done(&f->layout);
    assert_int_equal(cgroup_layout_read("1 2 3\nnothing - here\n\n", "", &f->layout, &err),
                     -ENOENT);
}

static void test_layout_of_version_2(void **state)
{
    struct fixture *f = *state;

    make(f, "cg/cgroup.controllers", "cpuset cpu io memory pids\n");
    read_layout(f, v2);
    assert_string_equal(cgroup_layout_name(&f->layout), "version 2");
    for (int c = 0; c < CGROUP_CONTROLLERS; c++)
        assert_ptr_equal(cgroup_find(&f->layout, (enum cgroup_controller)c), &f->layout.items[0]);
}

static void test_hybrid(void **state)
{
    struct fixture *f = *state;
    AQ_CLEANUP(aq_freep) char *both = aq_format(
        "%s40 30 0:40 / /cg/unified rw - cgroup2 cgroup2 rw\n", v1);

    make(f, "cg/unified/cgroup.controllers", "hugetlb\n");
    read_layout(f, both);
    assert_string_equal(cgroup_layout_name(&f->layout), "hybrid");
    assert_false(cgroup_find(&f->layout, CGROUP_MEMORY)->is_v2);
    assert_int_equal(cgroup_find_v2(&f->layout)->controllers, 0);
}

/* Entries are formats with one %s, for the root of the tree. */
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static bool has(const struct strbuf *plan, const char *entry, const char *root)
{
    AQ_CLEANUP(aq_freep) char *want = aq_format(entry, root);

    for (size_t at = 0; at < plan->len; at += strlen(plan->data + at) + 1)
        if (strcmp(plan->data + at, want) == 0)
            return true;
    return false;
}

static const char *const devices[] = { "c 1:3 rwm", NULL };
static const struct cgroup_limits limits = {
    .cpus = "0,2",
    .cpu_micro = 1500000,
    .memory_bytes = 64 << 20,
    .pids_max = 99,
    .devices = devices,
};

static void prepare(struct fixture *f, struct strbuf *missing)
{
    cgroup_prepare(&f->layout, "/aliquot/one", missing);
}

#define HAS(plan, entry) assert_true(has(&(plan), entry, f->root))
#define HAS_NOT(plan, entry) assert_false(has(&(plan), entry, f->root))

static void test_plan_of_version_1(void **state)
{
    struct fixture *f = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf plan = STRBUF_INIT, missing = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *path = NULL;

    make(f, "cg/cpuset/cpuset.cpus", "0-3\n");
    make(f, "cg/cpuset/aliquot/cpuset.cpus", "");
    make(f, "cg/memory/aliquot/one/memory.memsw.limit_in_bytes", "");
    for (size_t i = 0; i < 3; i++) {
        static const char *const names[] = { "cpu,cpuacct", "pids", "devices" };
        AQ_CLEANUP(aq_freep) char *mount = aq_format("cg/%s/tasks", names[i]);

        make(f, mount, "");
    }
    read_layout(f, v1);
    prepare(f, &missing);
    assert_string_equal(missing.data, "");
    cgroup_plan(&f->layout, "K", &limits, &plan);
    HAS(plan, "cgroup=%s/cg/memory/aliquot/one/K");
    HAS(plan, "cgroup=%s/cg/cpu,cpuacct/aliquot/one/K");
    HAS(plan, "limit=%s/cg/cpuset/aliquot/one/K/cpuset.cpus=0,2");
    HAS(plan, "limit=%s/cg/cpu,cpuacct/aliquot/one/K/cpu.cfs_quota_us=150000");
    HAS(plan, "limit=%s/cg/memory/aliquot/one/K/memory.limit_in_bytes=67108864");
    HAS(plan, "limit=%s/cg/memory/aliquot/one/K/memory.memsw.limit_in_bytes=67108864");
    HAS(plan, "limit=%s/cg/pids/aliquot/one/K/pids.max=99");
    HAS(plan, "limit=%s/cg/devices/aliquot/one/K/devices.deny=a");
    HAS(plan, "limit=%s/cg/devices/aliquot/one/K/devices.allow=c 1:3 rwm");
    HAS_NOT(plan, "device=c 1:3 rwm");
    path = cgroup_path(&f->layout, "K/inner");
    assert_string_equal(path, "/aliquot/one/K/inner");
}

static void test_plan_of_version_2(void **state)
{
    struct fixture *f = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf plan = STRBUF_INIT, missing = STRBUF_INIT;

    make(f, "cg/cgroup.controllers", "cpuset cpu io memory pids\n");
    make(f, "cg/cgroup.subtree_control", "");
    make(f, "cg/aliquot/cgroup.subtree_control", "");
    make(f, "cg/aliquot/one/cgroup.subtree_control", "");
    make(f, "cg/aliquot/one/memory.swap.max", "max\n");
    read_layout(f, v2);
    prepare(f, &missing);
    assert_string_equal(missing.data, "");
    cgroup_plan(&f->layout, "K", &limits, &plan);
    HAS(plan, "cgroup=%s/cg/aliquot/one/K");
    HAS(plan, "limit=%s/cg/aliquot/one/K/cpu.max=150000 100000");
    HAS(plan, "limit=%s/cg/aliquot/one/K/cpu.weight=150");
    HAS(plan, "limit=%s/cg/aliquot/one/K/cpuset.cpus=0,2");
    HAS(plan, "limit=%s/cg/aliquot/one/K/memory.max=67108864");
    HAS(plan, "limit=%s/cg/aliquot/one/K/memory.swap.max=0");
    HAS(plan, "limit=%s/cg/aliquot/one/K/pids.max=99");
    HAS(plan, "device=c 1:3 rwm");
}

/* A controller that cannot be given further is missing, not an error. */
static void test_missing(void **state)
{
    struct fixture *f = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf plan = STRBUF_INIT, missing = STRBUF_INIT;

    make(f, "cg/cgroup.controllers", "memory\n");
    make(f, "cg/cgroup.subtree_control", "");
    make(f, "cg/aliquot/cgroup.subtree_control", "");
    make(f, "cg/aliquot/one/cgroup.subtree_control", "");
    read_layout(f, v2);
    prepare(f, &missing);
    assert_string_equal(missing.data, "processor time, cores, processes");
    cgroup_plan(&f->layout, "K", &limits, &plan);
    HAS(plan, "limit=%s/cg/aliquot/one/K/memory.max=67108864");
    HAS_NOT(plan, "limit=%s/cg/aliquot/one/K/pids.max=99");
}

static void test_no_limits(void **state)
{
    struct fixture *f = *state;
    const struct cgroup_limits none = { .cpus = NULL };
    AQ_CLEANUP(strbuf_donep) struct strbuf plan = STRBUF_INIT, missing = STRBUF_INIT;

    make(f, "cg/memory/tasks", "");
    read_layout(f, "33 30 0:29 / /cg/memory rw - cgroup cgroup rw,memory\n");
    prepare(f, &missing);
    cgroup_plan(&f->layout, "K", &none, &plan);
    HAS(plan, "cgroup=%s/cg/memory/aliquot/one/K");
    assert_int_equal(strlen(plan.data) + 1, plan.len);
}

static bool is_known(void *data, const struct uuid *kernel)
{
    return memcmp(data, kernel, sizeof(*kernel)) == 0;
}

static void test_sweep(void **state)
{
    struct fixture *f = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf missing = STRBUF_INIT;
    struct uuid known = uuid_random(), unknown = uuid_random();
    char text[UUID_TEXT_MAX], path[160];

    make(f, "cg/memory/tasks", "");
    read_layout(f, "33 30 0:29 / /cg/memory rw - cgroup cgroup rw,memory\n");
    prepare(f, &missing);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof(path), "%s/cg/memory/aliquot/one/%s", f->root,
                       uuid_format(i ? &unknown : &known, text));
        assert_int_equal(mkdir(path, 0755), 0);
    }
    assert_int_equal(cgroup_sweep(&f->layout, is_known, &known), 1);
    assert_int_equal(access(path, F_OK), -1);
    cgroup_leave(&f->layout); /* there is one still: nothing goes */
    (void)snprintf(path, sizeof(path), "%s/cg/memory/aliquot/one/%s", f->root,
                   uuid_format(&known, text));
    assert_int_equal(rmdir(path), 0);
    cgroup_leave(&f->layout);
    (void)snprintf(path, sizeof(path), "%s/cg/memory/aliquot", f->root);
    assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_layout),
        TEST(test_layout_of_version_2),
        TEST(test_hybrid),
        TEST(test_plan_of_version_1),
        TEST(test_plan_of_version_2),
        TEST(test_missing),
        TEST(test_no_limits),
        TEST(test_sweep),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
