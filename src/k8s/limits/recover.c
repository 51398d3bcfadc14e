/* SPDX-License-Identifier: Apache-2.0 */
/* recover.c - the memory files of slices that nobody keeps, from processes that have them mapped
 *
 * Looked for once, when the plugin starts and keep has nothing of a container: both were killed.
 * What such a process has could be its own making: of the limits nothing counts but which slots are
 * whose, the amounts are the kubelet's again. What it has charged it could change at any time.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "k8s/limits/limits_internal.h"

#define LIMITS_NAME "/memfd:aliquot-gpu-limits"
#define MAPS_MAX (16u << 20)
#define USAGE_NAME "/memfd:aliquot-gpu-usage"

/* When the plugin before wrote it last; -1 = it is no file of limits. */
static int64_t recover_age(int fd)
{
    struct aq_gpu_limits limits;

    return pread(fd, &limits, sizeof(limits), 0) == sizeof(limits) && limits.magic == AQ_GPU_MAGIC
               ? limits.alive_ns
               : -1;
}

/* A process keeps the limits of each plugin mapped: the newest count. */
static void recover_take(int fd, bool is_limits, int files[KEEP_FILES])
{
    int *place = &files[is_limits ? 0 : 1];

    if (*place < 0 || (is_limits && recover_age(fd) > recover_age(*place)))
        AQ_SWAP(*place, fd);
    aq_closep(&fd);
}

static bool recover_files(pid_t pid, int files[KEEP_FILES])
{
    char path[32], target[64];
    DIR *dir;
    struct dirent *entry;

    files[0] = files[1] = -1;
    (void)snprintf(path, sizeof(path), "/proc/%d/map_files", (int)pid);
    dir = opendir(path);
    while (dir && (entry = readdir(dir))) {
        ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
        bool is_limits;
        int fd;

        target[len > 0 ? len : 0] = '\0';
        is_limits = strncmp(target, LIMITS_NAME, strlen(LIMITS_NAME)) == 0;
        if (!is_limits && strncmp(target, USAGE_NAME, strlen(USAGE_NAME)) != 0)
            continue;
        fd = openat(dirfd(dir), entry->d_name, (is_limits ? O_RDONLY : O_RDWR) | O_CLOEXEC);
        if (fd >= 0)
            recover_take(fd, is_limits, files);
    }
    if (dir)
        (void)closedir(dir);
    if (files[0] >= 0 && files[1] >= 0)
        return true;
    for (size_t i = 0; i < KEEP_FILES; i++)
        aq_closep(&files[i]);
    return false;
}

static int recover_adopt(pid_t pid, const struct gpu_grant *grants, size_t count,
                         const char *allocs_path, struct gpu_region_host **ret,
                         struct aq_error *err)
{
    AQ_CLEANUP(gpu_region_host_freep) struct gpu_region_host *host = NULL;
    struct aq_gpu_limits *limits;
    int files[KEEP_FILES], r;

    if (!recover_files(pid, files))
        return aq_fail(err, ENOENT, "process %d has no slice mapped", (int)pid);
    r = gpu_region_host_adopt(files[0], files[1], allocs_path, &host, err);
    if (r < 0)
        return r;
    limits = gpu_region_host_limits(host);
    if (limits->device_count != count)
        return aq_fail(err, EPROTO, "process %d has the slice of another container", (int)pid);
    for (size_t i = 0; r == 0 && i < count; i++) {
        limits->devices[i].memory_bytes = limits->devices[i].held_bytes = 0;
        r = gpu_region_host_set(host, &grants[i], err);
    }
    if (r == 0)
        *ret = AQ_TAKE(host);
    return r;
}

int recover_region(const struct limits *limits, const struct node_pod *pod, const char *name,
                   const struct gpu_grant *grants, size_t count, const char *allocs_path,
                   struct gpu_region_host **ret)
{
    for (size_t i = 0; i < limits->lost_count; i++) {
        const struct node_container *of;
        struct aq_error err = { 0 };

        if (strcmp(limits->lost[i].name.pod, pod->uid) != 0)
            continue;
        of = identity_container(pod, &limits->lost[i].name);
        if (!of || strcmp(of->name, name) != 0)
            continue;
        if (recover_adopt(limits->lost[i].pid, grants, count, allocs_path, ret, &err) == 0)
            return 0;
        log_warning("pod %s/%s container %s: what it holds is not known any more: %s",
                    pod->namespace, pod->name, name, err.text);
    }
    return -ENOENT;
}

static bool recover_has_slice(pid_t pid)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf maps = STRBUF_INIT;
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    return fs_read(AT_FDCWD, path, MAPS_MAX, &maps, NULL) == 0 && maps.len
           && strstr(maps.data, USAGE_NAME);
}

void recover_find(struct limits *limits)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        struct lost lost = { .pid = (pid_t)strtol(entry->d_name, NULL, 10) };

        if (lost.pid <= 0 || !identity_of_pid(limits, lost.pid, &lost.name)
            || container_find_by_id(limits, &lost.name) || !recover_has_slice(lost.pid))
            continue;
        vec_grow(&limits->lost, &limits->lost_cap, limits->lost_count + 1, sizeof(lost));
        limits->lost[limits->lost_count++] = lost;
    }
    if (dir)
        (void)closedir(dir);
}
