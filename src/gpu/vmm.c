/* SPDX-License-Identifier: Apache-2.0 */
/* vmm.c - physical memory of cuMemCreate, on the device it names
 *
 * The driver frees a handle's memory when its last owner and its last mapping
 * are freed, in whatever process (ipc.c); so is the charge. Address ranges cost
 * nothing. Memory in the host and multicast objects are not charged: the host's is
 * not device memory, and what is bound to the others is charged for itself.
 */
#include "gpu/device.h"
#include "gpu/hooks.h"
#include "gpu/ledger.h"
#include "gpu/shared_alloc.h"
#include "gpu/region.h"

CUresult on_vmm_create(fn_cuMemCreate *real, CUmemGenericAllocationHandle *handle, size_t bytes,
                       const CUmemAllocationProp *prop, unsigned long long flags)
{
    CUresult result;
    int device;

    if (!handle || !bytes || !prop || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return real(handle, bytes, prop, flags);
    device = gpu_device_index(prop->location.id);
    shared_alloc_sync();
    if (device < 0 || !ledger_reserve((uint32_t)device, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = real(handle, bytes, prop, flags);
    if (result == CUDA_SUCCESS && ledger_add(LEDGER_HANDLE, *handle, (uint32_t)device, bytes, 0))
        return CUDA_SUCCESS;
    ledger_release((uint32_t)device, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    if (gpu_real.cuMemRelease)
        (void)gpu_real.cuMemRelease(*handle);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static void vmm_drop(CUmemGenericAllocationHandle handle)
{
    struct ledger_entry freed;

    if (ledger_unref(LEDGER_HANDLE, handle, &freed))
        shared_alloc_release(&freed);
}

CUresult on_vmm_release(fn_cuMemRelease *real, CUmemGenericAllocationHandle handle)
{
    CUresult result = real(handle);

    if (result == CUDA_SUCCESS)
        vmm_drop(handle);
    return result;
}

/* An imported handle that nobody pays for is charged what is mapped of it. */
static bool vmm_charge_import(CUmemGenericAllocationHandle handle, uint64_t end)
{
    struct ledger_entry entry;

    if (!ledger_get(LEDGER_HANDLE, handle, &entry) || entry.link || entry.bytes >= end)
        return true;
    end = (end + AQ_GPU_GRANULE - 1) & ~(AQ_GPU_GRANULE - 1);
    return ledger_follow(LEDGER_HANDLE, handle, end, 0);
}

CUresult on_vmm_map(fn_cuMemMap *real, CUdeviceptr address, size_t bytes, size_t offset,
                    CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    CUresult result;

    if (bytes + offset >= bytes && !vmm_charge_import(handle, bytes + offset))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = real(address, bytes, offset, handle, flags);
    if (result == CUDA_SUCCESS && ledger_ref(LEDGER_HANDLE, handle)
        && !ledger_add(LEDGER_MAPPING, address, 0, bytes, handle)) {
        vmm_drop(handle);
        if (gpu_real.cuMemUnmap)
            (void)gpu_real.cuMemUnmap(address, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}

/* One call may unmap several mappings that lie side by side. */
CUresult on_vmm_unmap(fn_cuMemUnmap *real, CUdeviceptr address, size_t bytes)
{
    CUresult result = real(address, bytes);
    struct ledger_entry mapping;

    if (result != CUDA_SUCCESS)
        return result;
    for (CUdeviceptr at = address; at - address < bytes;) {
        if (!ledger_take(LEDGER_MAPPING, at, &mapping)) {
            at += AQ_GPU_GRANULE; /* an imported handle's */
            continue;
        }
        vmm_drop(mapping.link);
        at += mapping.bytes ? mapping.bytes : AQ_GPU_GRANULE;
    }
    return result;
}

/* The handle that comes back may be a number of its own for the same memory. */
CUresult on_vmm_retain(fn_cuMemRetainAllocationHandle *real, CUmemGenericAllocationHandle *handle,
                       void *address)
{
    CUresult result = real(handle, address);
    struct ledger_entry mapping;

    if (result == CUDA_SUCCESS && handle && !ledger_ref(LEDGER_HANDLE, *handle)
        && ledger_find_range(LEDGER_MAPPING, (uintptr_t)address, &mapping))
        (void)ledger_ref(LEDGER_HANDLE, mapping.link);
    return result;
}
