/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.c - the cgroups of a container: made, joined, emptied, removed */
#include "monitor/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/strbuf.h"
#include "monitor/device_filter.h"

#define KILL_USEC (5 * USEC_PER_SEC)
#define PAUSE_USEC_MAX 20000
#define REMOVE_ROUNDS 1000
#define DEPTH_MAX 32

/* ---- small files ---- */

static int cgroup_write_at(int directory, const char *path, const char *value)
{
    AQ_CLEANUP(aq_closep) int fd = openat(directory, path, O_WRONLY | O_CLOEXEC);

    /* one call: the kernel takes each write as a whole value */
    return fd < 0 || write(fd, value, strlen(value)) < 0 ? -errno : 0;
}

static int cgroup_open_directory(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool cgroup_has_file(int directory, const char *name)
{
    return faccessat(directory, name, F_OK, 0) == 0;
}

/* ---- making ---- */

static int cgroup_set_limit(char *limit, struct aq_error *err)
{
    char *equals = strchr(limit, '=');
    int r;

    if (!equals)
        return aq_fail(err, EINVAL, "'%s' is no FILE=VALUE", limit);
    *equals = '\0';
    r = cgroup_write_at(AT_FDCWD, limit, equals + 1);
    if (r < 0)
        r = aq_fail(err, -r, "write '%s' to '%s': %s", equals + 1, limit, strerror(-r));
    *equals = '=';
    return r;
}

int cgroups_make(const struct sandbox *sandbox, struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; i < sandbox->cgroups.count; i++) {
        const char *path = sandbox->cgroups.items[i];

        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            return aq_fail_errno(err, "make cgroup '%s'", path);
    }
    AQ_FAULT("monitor.cgroups.made");
    for (size_t i = 0; r == 0 && i < sandbox->limits.count; i++)
        r = cgroup_set_limit(sandbox->limits.items[i], err);
    return r;
}

/* ---- entering ---- */

/* Version 1 has 'tasks', which moves one thread: of a process that has no more
 * of them all the same, but without waiting for all processors first, as
 * cgroup.procs does (ten milliseconds and more).
 */
static bool cgroup_is_v1(const char *path)
{
    AQ_CLEANUP(aq_freep) char *tasks = aq_format("%s/tasks", path);

    return tasks && access(tasks, F_OK) == 0;
}

static int cgroup_join_one(const char *path, bool is_inside_v2)
{
    AQ_CLEANUP(aq_freep) char *tasks = aq_format("%s/tasks", path),
                              *procs = aq_format("%s/cgroup.procs", path);
    int r = tasks && procs ? cgroup_write_at(AT_FDCWD, tasks, "0") : -ENOMEM;

    if (r == -ENOENT) /* version 2 */
        r = !is_inside_v2             ? cgroup_write_at(AT_FDCWD, procs, "0")
            : access(procs, F_OK) < 0 ? -errno
                                      : 0;
    return r;
}

/* The one directory of version 2, unless it is not to be entered; -1 = none. */
static int cgroup_open_v2(const struct sandbox *sandbox)
{
    for (size_t i = 0; !sandbox->is_outside && i < sandbox->cgroups.count; i++)
        if (!cgroup_is_v1(sandbox->cgroups.items[i]))
            return cgroup_open_directory(sandbox->cgroups.items[i]);
    return -1;
}

pid_t cgroups_fork(const struct sandbox *sandbox, bool *ret_is_inside)
{
    AQ_CLEANUP(aq_closep) int directory = cgroup_open_v2(sandbox);
    const struct clone_args args = { .flags = CLONE_INTO_CGROUP,
                                     .exit_signal = SIGCHLD,
                                     .cgroup = (uint64_t)directory };
    pid_t pid = -1;

    *ret_is_inside = directory >= 0;
    if (directory >= 0)
        pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
    if (pid >= 0)
        return pid;
    *ret_is_inside = false; /* the kernel may be older than that */
    return fork();
}

static int cgroup_allow_devices(const struct sandbox *sandbox, struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && sandbox->devices.count && i < sandbox->cgroups.count; i++)
        r = device_filter_attach(sandbox->cgroups.items[i], &sandbox->devices, err);
    return r;
}

int cgroups_join(const struct sandbox *sandbox, bool is_inside, struct aq_error *err)
{
    int r = cgroup_allow_devices(sandbox, err);

    for (size_t i = 0; r == 0 && !sandbox->is_outside && i < sandbox->cgroups.count; i++) {
        const char *path = sandbox->cgroups.items[i];

        r = cgroup_join_one(path, is_inside);
        if (r < 0)
            r = aq_fail(err, -r, "join the cgroup '%s': %s", path, strerror(-r));
    }
    return r;
}

/* ---- ending ---- */

/* SIGKILL to the processes of this one directory; how many there were. */
static int cgroup_kill_here(int directory)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int count = 0;
    char *at;

    if (fs_read(directory, "cgroup.procs", 1 << 22, &text, NULL) < 0)
        return 0;
    at = text.data;
    for (;;) {
        char *end;
        long pid = strtol(at, &end, 10);

        if (end == at)
            return count;
        at = end;
        if (pid > 1 && pid != getpid() && kill((pid_t)pid, SIGKILL) == 0)
            count++;
    }
}

/* Call 'visit' on the directory and all below it, deepest first; the sum. */
static int cgroup_walk(int directory, int depth, int (*visit)(int directory))
{
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), sum = 0;
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;

    while (dir && depth < DEPTH_MAX && (entry = readdir(dir))) {
        AQ_CLEANUP(aq_closep) int below = -1;

        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        below = openat(directory, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below >= 0)
            sum += cgroup_walk(below, depth + 1, visit);
    }
    if (dir)
        (void)closedir(dir);
    else
        aq_closep(&copy);
    return sum + visit(directory);
}

static int cgroup_kill_all_once(const struct sandbox *sandbox)
{
    int count = 0;

    for (size_t i = 0; i < sandbox->cgroups.count; i++) {
        AQ_CLEANUP(aq_closep) int directory = cgroup_open_directory(sandbox->cgroups.items[i]);

        if (directory < 0)
            continue;
        if (cgroup_has_file(directory, "cgroup.kill"))
            (void)cgroup_write_at(directory, "cgroup.kill", "1");
        count += cgroup_walk(directory, 0, cgroup_kill_here);
    }
    return count;
}

/* Pauses grow: of many containers that end together, those that wait leave the processors to
 * those that die.
 */
void cgroups_kill(const struct sandbox *sandbox)
{
    int64_t end = clock_monotonic_usec() + KILL_USEC;
    unsigned pause_usec = 1000;

    while (cgroup_kill_all_once(sandbox) > 0 && clock_monotonic_usec() < end) {
        (void)usleep(pause_usec);
        pause_usec = pause_usec * 3 / 2 < PAUSE_USEC_MAX ? pause_usec * 3 / 2 : PAUSE_USEC_MAX;
    }
}

static int cgroup_remove_below(int directory)
{
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            (void)unlinkat(directory, entry->d_name, AT_REMOVEDIR);
    if (dir)
        (void)closedir(dir);
    else
        aq_closep(&copy);
    return 0;
}

static bool cgroup_remove_one(const char *path)
{
    AQ_CLEANUP(aq_closep) int directory = -1;

    if (rmdir(path) == 0 || errno == ENOENT)
        return true;
    directory = cgroup_open_directory(path);
    if (directory >= 0)
        (void)cgroup_walk(directory, 0, cgroup_remove_below);
    return rmdir(path) == 0 || errno == ENOENT;
}

/* Directories with processes or others below them stay; false if there are such. */
static bool cgroup_remove_empty(const struct sandbox *sandbox)
{
    for (size_t i = 0; i < sandbox->cgroups.count; i++)
        if (rmdir(sandbox->cgroups.items[i]) < 0 && errno != ENOENT)
            return false;
    return true;
}

void cgroups_end(const struct sandbox *sandbox)
{
    bool are_gone = cgroup_remove_empty(sandbox); /* most often there is nobody to look for */

    if (!are_gone)
        cgroups_kill(sandbox);
    AQ_FAULT("monitor.cgroups.killed");
    for (size_t i = 0; !are_gone && i < sandbox->cgroups.count; i++)
        /* what has just died still counts for a moment */
        for (int round = 0; round < REMOVE_ROUNDS && !cgroup_remove_one(sandbox->cgroups.items[i]);
             round++)
            (void)usleep(1000);
}

/* ---- memory ---- */

/* The directory whose files tell of memory; -1 = none. */
static int cgroup_open_memory(const struct sandbox *sandbox)
{
    for (size_t i = 0; i < sandbox->cgroups.count; i++) {
        int directory = cgroup_open_directory(sandbox->cgroups.items[i]);

        if (directory >= 0
            && (cgroup_has_file(directory, "memory.events")
                || cgroup_has_file(directory, "memory.oom_control")))
            return directory;
        aq_closep(&directory);
    }
    return -1;
}

int cgroups_watch_memory(const struct sandbox *sandbox)
{
    AQ_CLEANUP(aq_closep) int directory = cgroup_open_memory(sandbox), control = -1;
    AQ_CLEANUP(aq_closep) int event = -1;
    char text[32];

    if (directory < 0 || !cgroup_has_file(directory, "cgroup.event_control"))
        return -1;
    control = openat(directory, "memory.oom_control", O_RDONLY | O_CLOEXEC);
    event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    (void)snprintf(text, sizeof(text), "%d %d", event, control);
    if (control < 0 || event < 0 || cgroup_write_at(directory, "cgroup.event_control", text) < 0)
        return -1;
    return AQ_TAKE_FD(event);
}

/* The number in a file, or behind 'key' in a file of "key number" lines; -1 = none. */
static int64_t cgroup_read_number(int directory, const char *file, const char *key)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const char *at;

    if (fs_read(directory, file, 4096, &text, NULL) < 0)
        return -1;
    at = key ? strstr(text.data, key) : text.data;
    return at ? strtoll(at + (key ? strlen(key) : 0), NULL, 10) : -1;
}

/* Version 1 counts in the directory of who was killed: the OCI runtime may have one inside. */
static int cgroup_count_kills(int directory)
{
    return (int)AQ_MAX(cgroup_read_number(directory, "memory.oom_control", "oom_kill "),
                       INT64_C(0));
}

struct memory_use cgroups_get_memory(const struct sandbox *sandbox, int watch)
{
    AQ_CLEANUP(aq_closep) int directory = cgroup_open_memory(sandbox);
    struct memory_use use = { .peak_bytes = -1, .limit_bytes = -1 };
    uint64_t times = 0;

    if (watch >= 0)
        use.was_short = read(watch, &times, sizeof(times)) > 0;
    if (directory < 0)
        return use;
    use.peak_bytes = cgroup_read_number(directory, "memory.peak", NULL);
    if (use.peak_bytes < 0)
        use.peak_bytes = cgroup_read_number(directory, "memory.max_usage_in_bytes", NULL);
    use.limit_bytes = cgroup_read_number(directory, "memory.max", NULL);
    if (use.limit_bytes < 0)
        use.limit_bytes = cgroup_read_number(directory, "memory.limit_in_bytes", NULL);
    use.was_short |= cgroup_read_number(directory, "memory.events", "oom_kill ") > 0
                     || cgroup_walk(directory, 0, cgroup_count_kills) > 0;
    return use;
}
