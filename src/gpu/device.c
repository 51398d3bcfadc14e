/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - which device of the slice a driver's device is */
#include "gpu/device.h"

#include <string.h>

#include "gpu/hooks.h"
#include "gpu/region.h"
#include "gpu/uuid.h"

#define CACHED_DEVICES 64
#define NOT_ASKED 0 /* else index + 2, so that 1 = not granted */

static signed char cached[CACHED_DEVICES];

static int device_index_of_uuid(const void *uuid)
{
    if (!gpu_region_is_attached())
        return -1;
    for (uint32_t i = 0; i < gpu_region.device_count; i++)
        if (memcmp(gpu_region.limits->devices[i].uuid, uuid, 16) == 0)
            return (int)i;
    return -1;
}

static bool device_uuid(CUdevice device, CUuuid *ret)
{
    fn_cuDeviceGetUuid *get = gpu_real.cuDeviceGetUuid_v2 ? gpu_real.cuDeviceGetUuid_v2
                                                          : gpu_real.cuDeviceGetUuid;

    return get && get(ret, device) == CUDA_SUCCESS;
}

int gpu_device_index(CUdevice device)
{
    CUuuid uuid;
    int index;

    if (device < 0 || device >= CACHED_DEVICES || !gpu_region_is_attached())
        return -1;
    index = __atomic_load_n(&cached[device], __ATOMIC_RELAXED);
    if (index != NOT_ASKED)
        return index - 2;
    if (!device_uuid(device, &uuid))
        return -1;
    index = device_index_of_uuid(uuid.bytes);
    __atomic_store_n(&cached[device], (signed char)(index + 2), __ATOMIC_RELAXED);
    return index;
}

int gpu_device_ask(void)
{
    CUdevice device;

    if (!gpu_real.cuCtxGetDevice || gpu_real.cuCtxGetDevice(&device) != CUDA_SUCCESS)
        return -1;
    return gpu_device_index(device);
}

bool gpu_device_handle(int index, CUdevice *ret)
{
    int count = 0;

    if (!gpu_real.cuDeviceGetCount || !gpu_real.cuDeviceGet
        || gpu_real.cuDeviceGetCount(&count) != CUDA_SUCCESS)
        return false;
    for (int i = 0; i < count; i++)
        if (gpu_real.cuDeviceGet(ret, i) == CUDA_SUCCESS && gpu_device_index(*ret) == index)
            return true;
    return false;
}

int gpu_device_of_nvml(nvmlDevice_t handle)
{
    char text[NVML_DEVICE_UUID_BUFFER_SIZE];
    uint8_t uuid[16];

    if (!handle || !gpu_region_is_attached() || !gpu_real.nvmlDeviceGetUUID)
        return -1;
    if (gpu_real.nvmlDeviceGetUUID(handle, text, sizeof(text)) != NVML_SUCCESS
        || !gpu_uuid_read(text, uuid))
        return -1;
    return device_index_of_uuid(uuid);
}

bool gpu_device_nvml_handle(int index, nvmlDevice_t *ret)
{
    fn_nvmlDeviceGetCount *get_count = gpu_real.nvmlDeviceGetCount_v2
                                           ? gpu_real.nvmlDeviceGetCount_v2
                                           : gpu_real.nvmlDeviceGetCount;
    fn_nvmlDeviceGetHandleByIndex *get = gpu_real.nvmlDeviceGetHandleByIndex_v2
                                             ? gpu_real.nvmlDeviceGetHandleByIndex_v2
                                             : gpu_real.nvmlDeviceGetHandleByIndex;
    unsigned int count = 0;

    if (!get_count || !get || get_count(&count) != NVML_SUCCESS)
        return false;
    for (unsigned int i = 0; i < count; i++)
        if (get(i, ret) == NVML_SUCCESS && gpu_device_of_nvml(*ret) == index)
            return true;
    return false;
}
