/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_internal.h - inside src/agent/gpu */
#ifndef AQ_AGENT_GPU_INTERNAL_H
#define AQ_AGENT_GPU_INTERNAL_H

#include "agent/gpu/gpu.h"
#include "gpuslice/slices.h"
#include "monitor/protocol.h"

struct gpu {
    uv_loop_t *loop;
    const struct cgroup_layout *cgroups;
    const char *folder;
    gpu_violation_fn on_violation;
    void *data;
    char *library, *probe; /* on the node; NULL = not found */
    struct slices *slices;
};

struct gpu_slice {
    struct gpu *gpu;
    struct uuid id;
    char *path, *socket_folder, *preload, *shared_allocs_path; /* on the node */
    int folder; /* of 'path': names below it are short enough for a socket */
    struct slice slice;
    int kept[MONITOR_KEPT]; /* borrowed from the region */
    uv_poll_t poll;         /* its closing frees all this */
};

/* ---- preload.c ---- */

/* Contents of /etc/ld.so.preload for a container: the image's own lines, then the library. */
int gpu_preload_text(const struct image *image, struct strbuf *out, struct aq_error *err);

#endif
