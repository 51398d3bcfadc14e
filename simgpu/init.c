/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - cuInit, and which devices there are */
#include <stdio.h>
#include <string.h>

#include "cuda.h"
#include "number.h"

extern const int sim_cuda_version;

static bool is_ready;

bool sim_is_ready(void)
{
    return is_ready && sim_is_parent();
}

bool sim_has_device(CUdevice device)
{
    return device >= 0 && (uint32_t)device < sim_card()->device_count;
}

CUresult cuInit(unsigned int flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is_parent())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!sim_card())
        return CUDA_ERROR_NO_DEVICE;
    is_ready = true;
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = sim_cuda_version;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = (int)sim_card()->device_count;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_has_device(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice device)
{
    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!name || len < 1 || !sim_has_device(device))
        return CUDA_ERROR_INVALID_VALUE;
    (void)snprintf(name, (size_t)len, "%s", sim_card()->devices[device].name);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!uuid || !sim_has_device(device))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(uuid->bytes, sim_card()->devices[device].uuid, 16);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    return cuDeviceGetUuid(uuid, device);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!bytes || !sim_has_device(device))
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = sim_card()->devices[device].memory;
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
    size_t all;
    CUresult result = bytes ? cuDeviceTotalMem_v2(&all, device) : CUDA_ERROR_INVALID_VALUE;

    if (result == CUDA_SUCCESS)
        *bytes = all > 0xffffffffu ? 0xffffffffu : (unsigned int)all;
    return result;
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    static const struct {
        int attribute, value;
    } fixed[] = {
        { CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024 },
        { CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32 },
        { CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1400000 },
        { CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048 },
        { CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1 },
        { CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 512 },
        { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8 },
        { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0 },
        { CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1 },
        { CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1 },
        { CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1 },
        { CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1 },
    };

    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!value || !sim_has_device(device))
        return CUDA_ERROR_INVALID_VALUE;
    *value = 0;
    if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        *value = (int)sim_card()->devices[device].processors;
    if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
        *value = device + 1;
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        if (fixed[i].attribute == attribute)
            *value = fixed[i].value;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice device)
{
    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!id || len < 13 || !sim_has_device(device))
        return CUDA_ERROR_INVALID_VALUE;
    (void)snprintf(id, (size_t)len, "0000:%02x:00.0", device + 1);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
    uint64_t bus;

    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!device || !id || !sim_read_bus(id, &bus) || !sim_has_device((int)bus - 1))
        return CUDA_ERROR_INVALID_VALUE;
    *device = (int)bus - 1;
    return CUDA_SUCCESS;
}
