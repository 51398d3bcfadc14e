/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.c - what all slices of the node share */
#include "agent/gpu/gpu_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/installed.h"
#include "base/memory.h"
#include "base/strbuf.h"

/* ---- files of ours ---- */

/* Where the settings say, else of this installation. */
static char *gpu_find_file(const char *configured, const char *name)
{
    return configured ? aq_strdup(configured) : installed_find(name);
}

/* ---- for the watchdog ---- */

static const struct gpu_slice *gpu_slice_of(const struct slice *slice)
{
    return AQ_CONTAINER_OF(slice, const struct gpu_slice, slice);
}

/* The cgroup of a kernel is named after it. */
static bool gpu_owns(void *data, const struct slice *slice, pid_t pid)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char path[32], kernel[UUID_TEXT_MAX];

    (void)data;
    (void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    return fs_read(AT_FDCWD, path, 65536, &text, NULL) == 0
           && strstr(text.data, uuid_format(&gpu_slice_of(slice)->id, kernel));
}

static char *gpu_find_cgroup(void *data, const struct slice *slice)
{
    const struct gpu *gpu = data;
    const struct cgroup_hierarchy *v2 = gpu->cgroups ? cgroup_find_v2(gpu->cgroups) : NULL;
    char name[UUID_TEXT_MAX];
    AQ_CLEANUP(aq_freep) char *path = v2 ? cgroup_path(gpu->cgroups,
                                                       uuid_format(&gpu_slice_of(slice)->id, name))
                                         : NULL;
    AQ_CLEANUP(aq_freep) char *full = path ? aq_format("%s%s", v2->mount, path) : NULL;

    return full && access(full, F_OK) == 0 ? AQ_TAKE(full) : NULL;
}

static void gpu_on_violation(void *data, struct slice *slice, const struct gpu_violation *violation,
                             const char *text)
{
    const struct gpu *gpu = data;

    gpu->on_violation(gpu->data, &gpu_slice_of(slice)->id, text,
                      gpu_violation_is_breach(violation));
}

/* ---- life ---- */

void gpu_free(struct gpu *gpu)
{
    if (!gpu)
        return;
    slices_free(gpu->slices);
    free(gpu->library);
    free(gpu->probe);
    free(gpu);
}

struct gpu *gpu_new(const struct gpu_conf *conf)
{
    struct gpu *gpu = aq_alloc(sizeof(*gpu));
    AQ_CLEANUP(aq_freep) char *watch = gpu_find_file(conf->settings->gpu_watch, "aliquot-gpu");
    const struct slices_conf slices = { .loop = conf->loop,
                                        .accel = conf->accel,
                                        .watch_program = watch,
                                        .conserving = conf->settings->gpu_conserving,
                                        .owns = gpu_owns,
                                        .find_cgroup = gpu_find_cgroup,
                                        .on_violation = gpu_on_violation,
                                        .data = gpu };

    *gpu = (struct gpu){ .loop = conf->loop,
                         .cgroups = conf->cgroups,
                         .folder = conf->folder,
                         .on_violation = conf->on_violation,
                         .data = conf->data,
                         .library = gpu_find_file(conf->settings->gpu_library, "libaliquot-gpu.so"),
                         .probe = gpu_find_file(conf->settings->gpu_probe, "aliquot-gpu-probe") };
    gpu->slices = slices_new(&slices);
    return gpu;
}

void gpu_sweep(const struct gpu *gpu, bool (*is_known)(void *data, const struct uuid *kernel),
               void *data)
{
    DIR *dir = opendir(gpu->folder);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        struct uuid id;

        if (uuid_parse(entry->d_name, &id) == 0 && !is_known(data, &id))
            (void)fs_remove_tree(dirfd(dir), entry->d_name, NULL);
    }
    if (dir)
        (void)closedir(dir);
}
