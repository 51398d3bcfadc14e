/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_internal.h - inside src/agent/gpu */
#ifndef AQ_AGENT_GPU_INTERNAL_H
#define AQ_AGENT_GPU_INTERNAL_H

#include "agent/gpu/gpu.h"
#include "gpuhost/time_share.h"
#include "gpuhost/violation.h"
#include "gpuhost/region_host.h"
#include "monitor/protocol.h"

struct watchdog;

struct gpu {
    uv_loop_t *loop;
    const struct settings *settings;
    const struct accel *accel;
    const struct cgroup_layout *cgroups;
    const char *folder;
    gpu_violation_fn on_violation;
    void *data;
    char *library, *probe, *watch_program; /* on the node; NULL = not found */
    struct watchdog *watchdog;
    struct gpu_slice **slices;
    struct gpu_region_view *views; /* of the same, in the same order */
    size_t count, slice_cap, view_cap;
    uv_timer_t clocks; /* its closing frees all this */
};

struct gpu_slice {
    struct gpu *gpu;
    struct uuid id;
    char *path, *socket_folder, *preload, *shared_allocs_path; /* on the node */
    int folder; /* of 'path': names below it are short enough for a socket */
    struct gpu_region_host *region;
    int kept[MONITOR_KEPT]; /* borrowed from the region */
    struct gpu_violation_check violations;
    uint32_t limited;  /* devices whose memory the driver limits, too; watchdog.c */
    bool is_unlimited; /* it does not do that */
    uv_poll_t poll;    /* its closing frees all this */
};

/* ---- gpu.c ---- */

/* Into and out of the list whose clocks are kept. -ENOMEM. */
int gpu_list_add(struct gpu *gpu, struct gpu_slice *slice, struct aq_error *err);
void gpu_list_remove(struct gpu *gpu, const struct gpu_slice *slice);
/* A process has attached: compute the clocks at once. */
void gpu_wake(struct gpu *gpu);

/* ---- watchdog.c ---- */

/* NULL if memory is short; NULL is fine to free. */
struct watchdog *watchdog_new(struct gpu *gpu);
void watchdog_free(struct watchdog *dog);
/* There is a slice: check until there is none. */
void watchdog_wake(struct watchdog *dog);

/* ---- preload.c ---- */

/* Contents of /etc/ld.so.preload for a container: the image's own lines, then the library. */
int gpu_preload_text(const struct image *image, struct strbuf *out, struct aq_error *err);

#endif
