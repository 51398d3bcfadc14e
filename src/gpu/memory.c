/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - plain device memory, and the memory sizes that programs see
 *
 * Every allocation: reserve the real size, call the driver, enter the pointer;
 * what fails on the way is undone. NULL pointers and sizes of 0 go to the
 * driver, which refuses them in its own words.
 */
#include "gpu/charge.h"
#include "gpu/device.h"
#include "gpu/hooks.h"
#include "gpu/ledger.h"
#include "gpu/shared_alloc.h"
#include "gpu/pool.h"
#include "gpu/region.h"

/* What the driver makes of a pitched allocation, at least: rows start at multiples of this. */
#define PITCH_ALIGN 512

/* With the slice full and host memory allowed: managed memory, which is not
 * charged because the device may evict it.
 */
static CUresult memory_alloc_managed(int device, CUdeviceptr *pointer, size_t bytes)
{
    uint32_t flags = device < 0 || !gpu_region_is_attached()
                         ? 0
                         : gpu_region.limits->devices[device].flags;

    if (!(flags & AQ_GPU_HOST_MEMORY) || !gpu_real.cuMemAllocManaged)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return gpu_real.cuMemAllocManaged(pointer, bytes, CU_MEM_ATTACH_GLOBAL);
}

static bool memory_reserve_here(int device, uint64_t bytes)
{
    shared_alloc_sync(); /* it may make room */
    return device >= 0 && ledger_reserve((uint32_t)device, bytes);
}

/* No current context: the driver says so better than "out of memory". */
static bool memory_has_context(void)
{
    CUdevice device;

    return !gpu_real.cuCtxGetDevice || gpu_real.cuCtxGetDevice(&device) == CUDA_SUCCESS;
}

/* The allocation exists but cannot be entered; 'bytes' are reserved for it. */
static CUresult memory_give_up(CUdeviceptr *pointer, int device, uint64_t bytes)
{
    if (gpu_real.cuMemFree_v2)
        (void)gpu_real.cuMemFree_v2(*pointer);
    *pointer = 0;
    if (bytes)
        ledger_release((uint32_t)device, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* The driver's answer to an allocation of 'bytes', which are 'reserved' or need
 * no granule of their own: enter it, or undo.
 */
static CUresult memory_entered(CUresult result, CUdeviceptr *pointer, int device, uint64_t bytes,
                               bool reserved)
{
    if (result == CUDA_SUCCESS) {
        if (reserved ? ledger_add(LEDGER_MEMORY, *pointer, (uint32_t)device, bytes, 0)
                     : ledger_add_small(*pointer, (uint32_t)device, bytes))
            return CUDA_SUCCESS;
        return memory_give_up(pointer, device, reserved ? bytes : 0);
    }
    if (reserved)
        ledger_release((uint32_t)device, bytes);
    return result;
}

CUresult on_mem_alloc(fn_cuMemAlloc_v2 *real, CUdeviceptr *pointer, size_t bytes)
{
    int device = gpu_device_current();
    bool reserved;

    if (!pointer || !bytes)
        return real(pointer, bytes);
    reserved = device < 0 || !ledger_fits_small((uint32_t)device, bytes);
    if (reserved && !memory_reserve_here(device, bytes))
        return memory_has_context() ? memory_alloc_managed(device, pointer, bytes)
                                    : real(pointer, bytes);
    return memory_entered(real(pointer, bytes), pointer, device, bytes, reserved);
}

CUresult on_mem_alloc_managed(fn_cuMemAllocManaged *real, CUdeviceptr *pointer, size_t bytes,
                              unsigned int flags)
{
    int device = gpu_device_current();

    if (!pointer || !bytes)
        return real(pointer, bytes, flags);
    if (!memory_reserve_here(device, bytes))
        return memory_has_context() ? memory_alloc_managed(device, pointer, bytes)
                                    : real(pointer, bytes, flags);
    return memory_entered(real(pointer, bytes, flags), pointer, device, bytes, true);
}

CUresult on_mem_alloc_pitch(fn_cuMemAllocPitch_v2 *real, CUdeviceptr *pointer, size_t *pitch,
                            size_t width, size_t height, unsigned int element)
{
    int device = gpu_device_current();
    size_t row = (width + PITCH_ALIGN - 1) & ~(size_t)(PITCH_ALIGN - 1), estimate, real_size;
    CUresult result;

    if (!pointer || !pitch || !width || !height)
        return real(pointer, pitch, width, height, element);
    if (row < width || __builtin_mul_overflow(row, height, &estimate))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!memory_reserve_here(device, estimate))
        return memory_has_context() ? CUDA_ERROR_OUT_OF_MEMORY
                                    : real(pointer, pitch, width, height, element);
    result = real(pointer, pitch, width, height, element);
    if (result != CUDA_SUCCESS) {
        ledger_release((uint32_t)device, estimate);
        return result;
    }
    real_size = *pitch * height;
    if (!ledger_resize((uint32_t)device, estimate, real_size))
        return memory_give_up(pointer, device, estimate);
    if (!ledger_add(LEDGER_MEMORY, *pointer, (uint32_t)device, real_size, 0))
        return memory_give_up(pointer, device, real_size);
    return CUDA_SUCCESS;
}

/* Taken out before the driver frees it: the driver may give the same pointer to
 * another thread at once. Put back if the driver refuses.
 */
CUresult on_mem_free(fn_cuMemFree_v2 *real, CUdeviceptr pointer)
{
    struct ledger_entry entry;
    bool released;
    CUresult result;

    if (!ledger_take_plain(pointer, &entry, &released))
        return pool_free(real, pointer);
    result = real(pointer);
    if (result == CUDA_SUCCESS) {
        if (!released)
            shared_alloc_release(&entry);
    } else if (!released || !ledger_add_small(pointer, entry.device, entry.bytes)) {
        (void)ledger_add(LEDGER_MEMORY, pointer, entry.device, released ? 0 : entry.bytes,
                         entry.link);
    }
    return result;
}

CUresult on_mem_free_v1(fn_cuMemFree *real, unsigned int pointer)
{
    return gpu_real.cuMemFree_v2 ? on_mem_free(gpu_real.cuMemFree_v2, pointer) : real(pointer);
}

/* What is left of the slice. Never an error, and never more than the slice. */
static void memory_report(int device, size_t *free_bytes, size_t *total)
{
    uint64_t limit = 0, used = 0;

    if (device >= 0) {
        limit = gpu_region_limit((uint32_t)device);
        used = charge_sum(gpu_region.usage, (uint32_t)device);
    }
    if (free_bytes)
        *free_bytes = used < limit ? (limit - used) << AQ_GPU_GRANULE_SHIFT : 0;
    if (total)
        *total = limit << AQ_GPU_GRANULE_SHIFT;
}

CUresult on_mem_get_info(fn_cuMemGetInfo_v2 *real, size_t *free_bytes, size_t *total)
{
    int device = gpu_device_current();

    if (!memory_has_context())
        return real(free_bytes, total);
    memory_report(device, free_bytes, total);
    return CUDA_SUCCESS;
}

CUresult on_device_total_mem(fn_cuDeviceTotalMem_v2 *real, size_t *bytes, CUdevice device)
{
    CUresult result = real(bytes, device);

    if (result == CUDA_SUCCESS && bytes)
        memory_report(gpu_device_index(device), NULL, bytes);
    return result;
}

/* The old forms have 32 bits. */
static unsigned int memory_clip(size_t bytes)
{
    return bytes > 0xffffffffu ? 0xffffffffu : (unsigned int)bytes;
}

CUresult on_mem_get_info_v1(fn_cuMemGetInfo *real, unsigned int *free_bytes, unsigned int *total)
{
    size_t left = 0, all = 0;
    CUresult result = real(free_bytes, total);

    if (result != CUDA_SUCCESS)
        return result;
    memory_report(gpu_device_current(), &left, &all);
    if (free_bytes)
        *free_bytes = memory_clip(left);
    if (total)
        *total = memory_clip(all);
    return CUDA_SUCCESS;
}

CUresult on_device_total_mem_v1(fn_cuDeviceTotalMem *real, unsigned int *bytes, CUdevice device)
{
    CUresult result = real(bytes, device);
    size_t all = 0;

    if (result == CUDA_SUCCESS && bytes) {
        memory_report(gpu_device_index(device), NULL, &all);
        *bytes = memory_clip(all);
    }
    return result;
}
