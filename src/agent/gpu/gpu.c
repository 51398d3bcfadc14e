/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.c - all slices of the node: their list, and the clocks of their devices */
#include "agent/gpu/gpu_internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/installed.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "base/vec.h"

#define QUIET_NS 200000000    /* nobody uses a device: processes only want to know that we live */
#define LASTING_NS 1000000000 /* so long after its last work a slice's clocks are computed */

/* ---- files of ours ---- */

/* Where the settings say, else of this installation. */
static char *gpu_find_file(const char *configured, const char *name)
{
    return configured ? strdup(configured) : installed_find(name);
}

/* ---- clocks ---- */

/* Whether the clocks of a slice may have to change. */
static bool gpu_is_used(const struct gpu *gpu, size_t i, int64_t now)
{
    const struct gpu_region_view *view = &gpu->views[i];

    if (gpu_region_host_count(gpu->slices[i]->region))
        return true;
    for (uint32_t d = 0; d < view->limits->device_count; d++)
        if (view->wanted_ns[d] && now - view->wanted_ns[d] < LASTING_NS)
            return true;
    return false;
}

static int64_t gpu_tick(struct gpu *gpu)
{
    int64_t now = gpu_monotonic_ns(), next = QUIET_NS;

    for (size_t i = 0; i < gpu->count; i++) {
        gpu->views[i].slot_end = gpu_region_host_slot_end(gpu->slices[i]->region);
        gpu_violation_check_sample(&gpu->slices[i]->violations, gpu->slices[i]->region);
    }
    for (size_t i = 0; i < gpu->count; i++) {
        struct aq_gpu_limits *limits = gpu_region_host_limits(gpu->slices[i]->region);

        if (gpu_is_used(gpu, i, now)) {
            int64_t wanted = gpu_time_share_tick(limits, gpu->views, gpu->count, i,
                                                 gpu->settings->gpu_conserving, now);

            next = AQ_MIN(next, wanted);
        } else {
            __atomic_store_n(&limits->alive_ns, now, __ATOMIC_RELAXED);
        }
    }
    return next;
}

static void gpu_on_clocks(uv_timer_t *timer)
{
    struct gpu *gpu = timer->data;

    if (gpu->count)
        (void)uv_timer_start(timer, gpu_on_clocks, (uint64_t)((gpu_tick(gpu) + 999999) / 1000000),
                             0);
}

void gpu_wake(struct gpu *gpu)
{
    (void)uv_timer_start(&gpu->clocks, gpu_on_clocks, 0, 0);
}

/* ---- the list ---- */

int gpu_list_add(struct gpu *gpu, struct gpu_slice *slice, struct aq_error *err)
{
    if (!vec_grow(&gpu->slices, &gpu->slice_cap, gpu->count + 1, sizeof(*gpu->slices))
        || !vec_grow(&gpu->views, &gpu->view_cap, gpu->count + 1, sizeof(*gpu->views)))
        return aq_fail_oom(err);
    gpu->slices[gpu->count] = slice;
    gpu->views[gpu->count++] = (struct gpu_region_view){
        .limits = gpu_region_host_limits(slice->region),
        .usage = gpu_region_host_usage(slice->region)
    };
    gpu_wake(gpu);
    watchdog_wake(gpu->watchdog);
    return 0;
}

void gpu_list_remove(struct gpu *gpu, const struct gpu_slice *slice)
{
    for (size_t i = 0; i < gpu->count; i++)
        if (gpu->slices[i] == slice) {
            gpu->count--;
            gpu->slices[i] = gpu->slices[gpu->count];
            gpu->views[i] = gpu->views[gpu->count];
            return;
        }
}

/* ---- life ---- */

static void gpu_on_closed(uv_handle_t *handle)
{
    struct gpu *gpu = handle->data;

    free(gpu->library);
    free(gpu->probe);
    free(gpu->watch_program);
    free(gpu->slices);
    free(gpu->views);
    free(gpu);
}

int gpu_new(const struct gpu_conf *conf, struct gpu **ret, struct aq_error *err)
{
    struct gpu *gpu = calloc(1, sizeof(*gpu));

    if (!gpu)
        return aq_fail_oom(err);
    *gpu = (struct gpu){ .loop = conf->loop,
                         .settings = conf->settings,
                         .accel = conf->accel,
                         .cgroups = conf->cgroups,
                         .folder = conf->folder,
                         .on_violation = conf->on_violation,
                         .data = conf->data,
                         .library = gpu_find_file(conf->settings->gpu_library, "libaliquot-gpu.so"),
                         .probe = gpu_find_file(conf->settings->gpu_probe, "aliquot-gpu-probe"),
                         .watch_program = gpu_find_file(conf->settings->gpu_watch, "aliquot-gpu") };
    gpu->watchdog = watchdog_new(gpu);
    if (!gpu->watchdog) {
        free(gpu->library);
        free(gpu->probe);
        free(gpu->watch_program);
        free(gpu);
        return aq_fail_oom(err);
    }
    if (!gpu->watch_program)
        log_warning("nobody watches who uses GPUs past their limits: aliquot-gpu is missing "
                    "(gpu.watch)");
    (void)uv_timer_init(conf->loop, &gpu->clocks);
    gpu->clocks.data = gpu;
    *ret = gpu;
    return 0;
}

void gpu_free(struct gpu *gpu)
{
    if (!gpu)
        return;
    watchdog_free(AQ_TAKE(gpu->watchdog));
    uv_close((uv_handle_t *)&gpu->clocks, gpu_on_closed);
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
