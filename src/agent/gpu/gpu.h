/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.h - slices of GPUs: what limits a container to its part of a device
 *
 * A session's kernel that was given a part of a device (accel_part.time_micro) gets a
 * slice: the memory files of aliquot/gpu_region.h, a socket on which its
 * processes ask for them, and the library that makes them ask, in front of
 * the driver by /etc/ld.so.preload. The agent serves the sockets and the
 * clocks on its loop. While it is away what is granted stays granted, and
 * processes that are new get no device memory; the monitor of the kernel
 * holds the memory files for the agent that comes next. Clocks and watchdog are
 * those of gpuslice/slices.h.
 *
 * Below FOLDER, one directory per kernel, which its container sees read-only as
 * /run/aliquot: gpu.sock and ld.so.preload. Everything belongs to the thread
 * of the libuv loop.
 */
#ifndef AQ_AGENT_GPU_GPU_H
#define AQ_AGENT_GPU_GPU_H

#include <uv.h>

#include "accelhost/accel.h"
#include "agent/cgroup/cgroup.h"
#include "agent/image/image.h"
#include "agent/runtime/container.h"
#include "agent/settings/settings.h"
#include "base/strbuf.h"
#include "base/uuid.h"

struct gpu;       /* all slices of this node */
struct gpu_slice; /* one kernel's */

/* A process of the kernel uses a device past its limits; 'text' says how, for
 * users. Told once for each process. The callee may close the slice; it should end
 * the kernel only if 'is_breach'.
 */
typedef void (*gpu_violation_fn)(void *data, const struct uuid *kernel, const char *text,
                                 bool is_breach);

struct gpu_conf {
    uv_loop_t *loop;
    const struct settings *settings;
    const struct accel *accel;           /* its plugins say by what library devices are watched */
    const char *folder;                  /* is made before */
    const struct cgroup_layout *cgroups; /* kernels' are named after them */
    gpu_violation_fn on_violation;
    void *data;
};

/* What 'conf' points to is borrowed. */
struct gpu *gpu_new(const struct gpu_conf *conf);
/* No slice is open any more. NULL is fine. */
void gpu_free(struct gpu *gpu);
AQ_DEFINE_CLEANUP(struct gpu, gpu_free)

/* Does any part of the devices have to be enforced? */
bool gpu_is_needed(const struct accel_attachment *attachment);

/* Can the image's programs be limited, that is, has it a loader that reads
 * /etc/ld.so.preload? -ENOTSUP with the reason.
 */
int gpu_check_image(const struct image *image, struct aq_error *err);

/* Make the slice of a session's kernel that is about to start. -EINVAL for devices that
 * cannot be parted, -ENOENT without the library; both say so for users.
 */
int gpu_slice_open(struct gpu *gpu, const struct uuid *id,
                   const struct accel_attachment *attachment, const struct image *image,
                   struct gpu_slice **ret, struct aq_error *err);

/* Adopt the slice of a kernel that runs, whose monitor is found by its
 * directory. -ENOENT: it has none.
 */
int gpu_slice_adopt(struct gpu *gpu, const struct uuid *id, const char *monitor_folder,
                    struct gpu_slice **ret, struct aq_error *err);

/* What is granted changes, now. Processes keep what they have, even if that is more.
 * -EINVAL as gpu_slice_open(), -ENODEV for a device that the slice has not.
 */
int gpu_slice_resize(struct gpu_slice *slice, const struct accel_attachment *attachment,
                     struct aq_error *err);

/* The kernel has ended. NULL is fine. */
void gpu_slice_close(struct gpu_slice *slice);
/* The agent ends, the kernel does not. */
void gpu_slice_leave(struct gpu_slice *slice);

/* Was memory of a device refused in the last seconds? Says what, human-readable. What its
 * processes have written decides: good for a reason, for nothing else.
 */
bool gpu_slice_was_full(const struct gpu_slice *slice, struct strbuf *out);

#define GPU_SOCKET_FOLDER_INSIDE "/run/aliquot" /* of AQ_GPU_SOCKET */
#define GPU_LIBRARY_INSIDE "/opt/kernel/libaliquot-gpu.so"
#define GPU_PROBE_INSIDE "/opt/kernel/aliquot-gpu-probe"
#define GPU_MOUNTS 4

/* What the container sees of it; as long as the slice. Returns how many. */
size_t gpu_slice_mounts(const struct gpu_slice *slice, struct container_mount ret[GPU_MOUNTS]);

/* The memory files, MONITOR_KEPT of them, for the monitor to hold. */
const int *gpu_slice_kept(const struct gpu_slice *slice);

/* Remove what is left of kernels for which is_known() is false. */
void gpu_sweep(const struct gpu *gpu, bool (*is_known)(void *data, const struct uuid *kernel),
               void *data);

#endif
