/* SPDX-License-Identifier: Apache-2.0 */
/* Version 2 of cgroups as the kernel has it: what needs no controller works
 * also where version 1 has them all ("hybrid"). Needs root and the hierarchy;
 * skipped without.
 */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/cgroup/cgroup.h"
#include "base/fs.h"
#include "monitor/cgroup.h"

#define KERNEL "01234567-89ab-4cde-8f01-23456789abcd"
#define OTHER "11234567-89ab-4cde-8f01-23456789abcd"

struct fixture {
    char path[64];               /* of our parent in the hierarchy */
    struct cgroup_layout layout; /* the hierarchy of version 2 alone */
    struct strbuf missing;
};

/* Where version 2 is mounted; caller frees, NULL = nowhere. */
static char *find_mount(void)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct cgroup_layout all = { .count = 0 };
    const struct cgroup_hierarchy *v2;
    char *mount;

    if (fs_read(AT_FDCWD, "/proc/self/mountinfo", 1 << 20, &text, NULL) < 0
        || cgroup_layout_read(text.data, "", &all, NULL) < 0)
        return NULL;
    v2 = cgroup_find_v2(&all);
    mount = v2 ? strdup(v2->mount) : NULL;
    cgroup_layout_done(&all);
    return mount;
}

static int set_up(void **state)
{
    AQ_CLEANUP(aq_freep) char *mount = find_mount();
    struct fixture *f = calloc(1, sizeof(*f));
    char info[512];

    *state = f;
    strbuf_init(&f->missing);
    if (!mount || geteuid() != 0)
        return 0;
    (void)snprintf(info, sizeof(info), "31 30 0:27 / %s rw - cgroup2 cgroup2 rw\n", mount);
    (void)snprintf(f->path, sizeof(f->path), "/aliquot-unit-%d/0a1b2c3d", (int)getpid());
    assert_int_equal(cgroup_layout_read(info, "", &f->layout, NULL), 0);
    cgroup_prepare(&f->layout, f->path, &f->missing);
    assert_non_null(f->layout.items[0].parent);
    return 0;
}

static bool knows_none(void *data, const struct uuid *kernel)
{
    (void)data;
    (void)kernel;
    return false;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    (void)cgroup_sweep(&f->layout, knows_none, NULL);
    cgroup_leave(&f->layout);
    cgroup_layout_done(&f->layout);
    strbuf_done(&f->missing);
    free(f);
    return 0;
}

static void need(const struct fixture *f)
{
    if (!f->layout.count)
        skip();
}

/* ---- a kernel's cgroup as the monitor sees it ---- */

struct kernel {
    struct strbuf text; /* the entries of 'program' */
    char *cgroups[4], *limits[32], *devices[32];
    struct sandbox sandbox;
};

static void plan(const struct fixture *f, const char *name, const char *const *devices,
                 struct kernel *k)
{
    const struct cgroup_limits limits = { .pids_max = 100, .devices = devices };

    *k = (struct kernel){ .text = STRBUF_INIT };
    k->sandbox.cgroups.items = k->cgroups;
    k->sandbox.limits.items = k->limits;
    k->sandbox.devices.items = k->devices;
    cgroup_plan(&f->layout, name, &limits, &k->text);
    for (char *at = k->text.data; at < k->text.data + k->text.len; at += strlen(at) + 1) {
        char *value = strchr(at, '=') + 1;
        struct texts *list = at[0] == 'c'   ? &k->sandbox.cgroups
                             : at[0] == 'l' ? &k->sandbox.limits
                                            : &k->sandbox.devices;

        list->items[list->count++] = value;
    }
}

/* What a process in the cgroup finds, as exit codes of children. */
static int errno_of_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);

    if (fd < 0)
        return errno;
    (void)close(fd);
    return 0;
}

static int errno_of_mknod(unsigned major, unsigned minor)
{
    char path[] = "/tmp/aq-node-XXXXXX", node[40];
    int r;

    if (!mkdtemp(path))
        return EIO;
    (void)snprintf(node, sizeof(node), "%s/x", path);
    r = mknod(node, S_IFCHR | 0600, makedev(major, minor)) < 0 ? errno : 0;
    (void)unlink(node);
    (void)rmdir(path);
    return r;
}

/* 'look' in a child that was born there; its answer, 255 = it could not be. */
static int ask(const struct kernel *k, int (*look)(void))
{
    bool is_inside;
    pid_t pid = cgroups_fork(&k->sandbox, &is_inside);
    int status;

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(cgroups_join(&k->sandbox, is_inside, NULL) < 0 ? 255 : look());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A process of the cgroup with 'children' of its own that have left its session
 * and mind no signal; all hold the write end of *ret_alive.
 */
static pid_t start(const struct kernel *k, int children, int *ret_alive)
{
    int ends[2];
    char ready = 0;
    pid_t pid;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (cgroups_join(&k->sandbox, false, NULL) < 0)
            _exit(255);
        (void)close(ends[0]);
        (void)signal(SIGTERM, SIG_IGN);
        for (int i = 0; i < children; i++)
            if (fork() == 0) {
                (void)setsid();
                for (;;)
                    (void)pause();
            }
        (void)!write(ends[1], "r", 1);
        for (;;)
            (void)pause();
    }
    (void)close(ends[1]);
    assert_int_equal(read(ends[0], &ready, 1), 1);
    *ret_alive = ends[0];
    return pid;
}

static int count_processes(const struct kernel *k)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/cgroup.procs", k->cgroups[0]);
    int lines = 0;

    assert_int_equal(fs_read(AT_FDCWD, path, 1 << 20, &text, NULL), 0);
    for (const char *at = text.data; *at; at++)
        lines += *at == '\n';
    return lines;
}

/* ---- tests ---- */

static void test_v2_layout(void **state)
{
    struct fixture *f = *state;

    need(f);
    assert_string_equal(cgroup_layout_name(&f->layout), "version 2");
    assert_null(strstr(f->missing.data, "devices"));
    assert_non_null(cgroup_find(&f->layout, CGROUP_DEVICES));
}

static void test_v2_join_kill_remove(void **state)
{
    struct fixture *f = *state;
    struct kernel k;
    struct aq_error err = { 0 };
    char byte, inner[256];
    int alive, status;
    pid_t pid;

    need(f);
    plan(f, KERNEL, NULL, &k);
    assert_int_equal(k.sandbox.cgroups.count, 1);
    assert_row(cgroups_make(&k.sandbox, &err) == 0, "%s", err.text);
    assert_int_equal(cgroups_make(&k.sandbox, &err), 0); /* as after a former try */
    pid = start(&k, 20, &alive);
    assert_int_equal(count_processes(&k), 21);

    cgroups_kill(&k.sandbox);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(read(alive, &byte, 1), 0); /* the last of them is gone */
    (void)close(alive);

    (void)snprintf(inner, sizeof(inner), "%s/inner", k.cgroups[0]);
    assert_int_equal(mkdir(inner, 0755), 0); /* as runc makes one */
    cgroups_end(&k.sandbox);
    assert_int_equal(access(k.cgroups[0], F_OK), -1);
    strbuf_done(&k.text);
}

static int look_at_devices(void)
{
    return errno_of_open("/dev/null", O_RDWR) != 0               ? 1
           : errno_of_open("/dev/zero", O_RDONLY) != 0           ? 2
           : errno_of_open("/dev/zero", O_WRONLY) != EPERM       ? 3
           : errno_of_open("/dev/full", O_RDONLY) != EPERM       ? 4
           : errno_of_open("/dev/urandom", O_RDONLY) != EPERM    ? 5
           : errno_of_mknod(1, 3) != 0                           ? 6
           : errno_of_mknod(1, 5) != EPERM                       ? 7
           : errno_of_mknod(10, 200) != 0                        ? 8
           : errno_of_open("/dev/null", O_WRONLY | O_CREAT) != 0 ? 9
                                                                 : 0;
}

static void test_v2_device_filter(void **state)
{
    static const char *const devices[] = { "c 1:3 rwm", "c 1:5 r", "c 10:* m", "b 7:0 rw", NULL };
    struct fixture *f = *state;
    struct kernel k;
    struct aq_error err = { 0 };

    need(f);
    plan(f, KERNEL, devices, &k);
    assert_int_equal(k.sandbox.devices.count, 4);
    assert_row(cgroups_make(&k.sandbox, &err) == 0, "%s", err.text);
    assert_int_equal(ask(&k, look_at_devices), 0);
    cgroups_end(&k.sandbox);
    strbuf_done(&k.text);
}

static int look_at_none(void)
{
    return errno_of_open("/dev/null", O_RDWR) == EPERM ? 0 : 1;
}

static void test_v2_no_device(void **state)
{
    static const char *const devices[] = { "b 7:0 r", NULL };
    struct fixture *f = *state;
    struct kernel k;

    need(f);
    plan(f, KERNEL, devices, &k);
    assert_int_equal(cgroups_make(&k.sandbox, NULL), 0);
    assert_int_equal(ask(&k, look_at_none), 0);
    cgroups_end(&k.sandbox);
    strbuf_done(&k.text);
}

static bool knows_one(void *data, const struct uuid *kernel)
{
    struct uuid known;

    (void)data;
    return uuid_parse(KERNEL, &known) == 0 && uuid_equals(&known, kernel);
}

/* Kernels that nobody knows are killed and removed, others left alone. */
static void test_v2_sweep(void **state)
{
    struct fixture *f = *state;
    struct kernel known, stranger;
    int alive[2], status;
    char byte;
    pid_t pids[2];

    need(f);
    plan(f, KERNEL, NULL, &known);
    plan(f, OTHER, NULL, &stranger);
    assert_int_equal(cgroups_make(&known.sandbox, NULL), 0);
    assert_int_equal(cgroups_make(&stranger.sandbox, NULL), 0);
    pids[0] = start(&known, 0, &alive[0]);
    pids[1] = start(&stranger, 3, &alive[1]);

    assert_int_equal(cgroup_sweep(&f->layout, knows_one, NULL), 1);
    assert_int_equal(waitpid(pids[1], &status, 0), pids[1]);
    assert_int_equal(read(alive[1], &byte, 1), 0);
    assert_int_equal(access(stranger.cgroups[0], F_OK), -1);
    assert_int_equal(waitpid(pids[0], &status, WNOHANG), 0);
    assert_int_equal(count_processes(&known), 1);

    cgroups_kill(&known.sandbox);
    assert_int_equal(waitpid(pids[0], &status, 0), pids[0]);
    cgroups_end(&known.sandbox);
    cgroup_leave(&f->layout);
    assert_int_equal(access(f->layout.items[0].parent, F_OK), -1);
    for (int i = 0; i < 2; i++)
        (void)close(alive[i]);
    strbuf_done(&known.text);
    strbuf_done(&stranger.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_v2_layout, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_v2_join_kill_remove, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_v2_device_filter, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_v2_no_device, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_v2_sweep, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("agent/cgroup_v2", tests, NULL, NULL);
}
