/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - the first calls: attach to the slice; which devices there are
 *
 * Without a region cuInit says CUDA_ERROR_SYSTEM_NOT_READY, which programs may
 * try again; the driver is not initialised then.
 */
#include "gpu/device.h"
#include "gpu/hooks.h"
#include "gpu/region.h"

CUresult on_init(fn_cuInit *real, unsigned int flags)
{
    return gpu_region_attach() ? real(flags) : CUDA_ERROR_SYSTEM_NOT_READY;
}

CUresult on_device_get_count(fn_cuDeviceGetCount *real, int *count)
{
    CUresult result = real(count);
    int granted = 0;
    CUdevice device;

    if (result != CUDA_SUCCESS || !count)
        return result;
    for (int i = 0; i < *count; i++)
        if (gpu_real.cuDeviceGet && gpu_real.cuDeviceGet(&device, i) == CUDA_SUCCESS
            && gpu_device_index(device) >= 0)
            granted++;
    *count = granted;
    return CUDA_SUCCESS;
}

/* The ordinal counts granted devices, in the driver's order; the handle is the
 * driver's own.
 */
CUresult on_device_get(fn_cuDeviceGet *real, CUdevice *device, int ordinal)
{
    CUdevice candidate;
    CUresult result;

    if (!device || ordinal < 0)
        return real(device, ordinal);
    for (int i = 0, granted = 0;; i++) {
        result = real(&candidate, i);
        if (result != CUDA_SUCCESS)
            return result;
        if (gpu_device_index(candidate) < 0 || granted++ < ordinal)
            continue;
        *device = candidate;
        return CUDA_SUCCESS;
    }
}

CUresult on_device_by_pci_bus_id(fn_cuDeviceGetByPCIBusId *real, CUdevice *device, const char *id)
{
    CUdevice found;
    CUresult result;

    if (!device)
        return real(device, id);
    result = real(&found, id);
    if (result == CUDA_SUCCESS && gpu_device_index(found) < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    if (result == CUDA_SUCCESS)
        *device = found;
    return result;
}

/* Suspending other processes, whose memory then leaves the device, is the agent's. */
CUresult on_checkpoint(fn_cuCheckpointProcessLock *real, int pid, void *args)
{
    (void)real;
    (void)pid;
    (void)args;
    return CUDA_ERROR_NOT_PERMITTED;
}
