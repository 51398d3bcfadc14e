/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - which of the driver's devices are in the slice
 *
 * Devices are told apart by UUID; the driver's own numbering depends on
 * the environment and the machine, the slice's on what the agent granted.
 */
#ifndef AQ_GPU_DEVICE_H
#define AQ_GPU_DEVICE_H

#include <stdbool.h>

#include "gpu/cuda.h"
#include "gpu/nvml.h"
#include "gpu/region.h"

/* Place of a device in the slice, -1 = not granted, or no region. */
int gpu_device_index(CUdevice device);

/* The same by asking the driver for the current context; -1 also without one. */
int gpu_device_ask(void);

/* The place of the calling thread's current context. A slice of one device has
 * contexts on no other, so nobody is asked: then it is 0 also without a context.
 */
static inline int gpu_device_current(void)
{
    if (__builtin_expect(gpu_region_is_attached() && gpu_region.device_count == 1, 1))
        return 0;
    return gpu_device_ask();
}

/* The same for an NVML handle. */
int gpu_device_of_nvml(nvmlDevice_t handle);

/* The driver's numbers of a place in the slice; false if it has no such device. */
bool gpu_device_handle(int index, CUdevice *ret);
bool gpu_device_nvml_handle(int index, nvmlDevice_t *ret);

#endif
