/* SPDX-License-Identifier: Apache-2.0 */
/* vmm.c - physical memory of cuMemCreate, address ranges, mappings */
#include <pthread.h>
#include <stdlib.h>

#include "cuda.h"

struct vmm_mapping {
    CUdeviceptr address;
    uint64_t bytes;
    struct sim_handle *handle;
    struct vmm_mapping *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vmm_mapping *mappings;

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop, int option)
{
    (void)option;
    if (!bytes || !prop)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = SIM_GRANULE;
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct sim_handle *made;
    CUdevice device;

    (void)flags;
    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!handle || !bytes || !prop || bytes % SIM_GRANULE)
        return CUDA_ERROR_INVALID_VALUE;
    device = prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? prop->location.id : -1;
    if (device >= (int)sim_card()->device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    if (device >= 0 && !sim_physical_take(device, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!(made = calloc(1, sizeof(*made))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *made = (struct sim_handle){ bytes, device, 1, 0, *prop };
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)made;
    return CUDA_SUCCESS;
}

static void vmm_drop(struct sim_handle *handle)
{
    if (__atomic_sub_fetch(&handle->owners, 1, __ATOMIC_ACQ_REL))
        return;
    if (handle->shared)
        sim_export_drop(handle->shared - 1);
    else if (handle->device >= 0)
        sim_physical_give(handle->device, handle->bytes);
    free(handle);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    vmm_drop((struct sim_handle *)(uintptr_t)handle);
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t align, CUdeviceptr hint,
                             unsigned long long flags)
{
    (void)align;
    (void)hint;
    (void)flags;
    if (!address || !bytes || bytes % SIM_GRANULE)
        return CUDA_ERROR_INVALID_VALUE;
    *address = sim_address_take(bytes);
    return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    if (!address || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    sim_address_give(address, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct sim_handle *mapped = (struct sim_handle *)(uintptr_t)handle;
    struct vmm_mapping *mapping;

    (void)flags;
    if (!address || !bytes || !mapped || offset + bytes > mapped->bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (!(mapping = calloc(1, sizeof(*mapping))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    (void)__atomic_add_fetch(&mapped->owners, 1, __ATOMIC_ACQ_REL);
    (void)pthread_mutex_lock(&lock);
    *mapping = (struct vmm_mapping){ address, bytes, mapped, mappings };
    mappings = mapping;
    (void)pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    struct vmm_mapping *freed = NULL;

    (void)pthread_mutex_lock(&lock);
    for (struct vmm_mapping **at = &mappings; *at;) {
        struct vmm_mapping *one = *at;

        if (one->address >= address && one->address - address < bytes) {
            *at = one->next;
            one->next = freed;
            freed = one;
        } else {
            at = &one->next;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    if (!freed)
        return CUDA_ERROR_INVALID_VALUE;
    while (freed) {
        struct vmm_mapping *next = freed->next;

        vmm_drop(freed->handle);
        free(freed);
        freed = next;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    CUdeviceptr wanted = (CUdeviceptr)(uintptr_t)address;
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    (void)pthread_mutex_lock(&lock);
    for (struct vmm_mapping *one = mappings; one && handle; one = one->next)
        if (wanted >= one->address && wanted - one->address < one->bytes) {
            (void)__atomic_add_fetch(&one->handle->owners, 1, __ATOMIC_ACQ_REL);
            *handle = (CUmemGenericAllocationHandle)(uintptr_t)one->handle;
            result = CUDA_SUCCESS;
            break;
        }
    (void)pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                        size_t entries)
{
    return address && bytes && access && entries ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
