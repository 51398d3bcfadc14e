/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.h - what NVIDIA's driver says: its devices, and how much memory each process holds
 *
 * The usage region is written by the processes that it limits; the driver's own lists
 * are the independent source. NVML is loaded into the calling process, which it may
 * crash or hang, so the agent does not call this itself: it runs `aliquot-gpu watch`
 * (watch_protocol.h). One thread per struct gpu_nvml.
 */
#ifndef AQ_GPUHOST_NVML_H
#define AQ_GPUHOST_NVML_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "aliquot/gpu_region.h"
#include "base/error.h"
#include "gpuhost/watch_protocol.h"

struct gpu_nvml;

/* A device of the driver. */
struct gpu_device_info {
    uint8_t uuid[16];
    char uuid_text[64], name[64];
    uint64_t memory_bytes;
    uint32_t processors; /* 0 = the driver does not say */
};

/* Load NVML: 'library', or NULL = wherever the loader finds it. -ENOENT: no driver here. */
int gpu_nvml_open(const char *library, struct gpu_nvml **ret, struct aq_error *err);
void gpu_nvml_close(struct gpu_nvml *nvml);
AQ_DEFINE_CLEANUP(struct gpu_nvml, gpu_nvml_close)

/* The devices of this machine, in the driver's order; how many there are, of
 * which at most 'room' are put into 'ret'.
 */
int gpu_nvml_devices(struct gpu_nvml *nvml, struct gpu_device_info *ret, size_t room,
                     struct aq_error *err);

/* Who uses which device now: how many, at most 'room'; or -errno. */
int gpu_nvml_processes(struct gpu_nvml *nvml, struct gpu_process_memory *ret, size_t room,
                       struct aq_error *err);

/* Have the driver refuse a device's memory past 'bytes' to all processes below a
 * cgroup, a path of version 2. -ENOSYS: this driver does not do that (r615 does).
 */
int gpu_nvml_limit_memory(struct gpu_nvml *nvml, const uint8_t uuid[16], const char *cgroup,
                          uint64_t bytes, struct aq_error *err);

#endif
