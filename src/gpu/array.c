/* SPDX-License-Identifier: Apache-2.0 */
/* array.c - arrays and mipmapped arrays
 *
 * Their layout is the driver's secret: reserved is what the texels need, and
 * made exact by the memory requirements where the driver tells them (11.6).
 */
#include "gpu/device.h"
#include "gpu/hooks.h"
#include "gpu/ledger.h"
#include "gpu/sparse.h"

/* Bytes of one channel; block-compressed and planar formats count as one byte. */
static uint64_t array_channel_bytes(int format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 1;
    }
}

/* Saturates: what overflows is refused as too much. */
static uint64_t array_texels(uint64_t width, uint64_t height, uint64_t depth, int format,
                             unsigned int channels)
{
    uint64_t bytes = width;

    if (__builtin_mul_overflow(bytes, height ? height : 1, &bytes)
        || __builtin_mul_overflow(bytes, depth ? depth : 1, &bytes)
        || __builtin_mul_overflow(bytes, array_channel_bytes(format) * (channels ? channels : 1),
                                  &bytes))
        return UINT64_MAX;
    return bytes;
}

static bool array_reserve_here(int device, uint64_t bytes)
{
    return device >= 0 && bytes <= (uint64_t)1 << 48 && ledger_reserve((uint32_t)device, bytes);
}

/* 'estimate' is reserved and the array made: enter its true size. */
static bool array_enter(enum ledger_kind kind, uint64_t key, int device, uint64_t estimate,
                        const CUDA_ARRAY_MEMORY_REQUIREMENTS *true_size)
{
    uint64_t bytes = true_size && true_size->size ? true_size->size : estimate;

    if (ledger_resize((uint32_t)device, estimate, bytes)) {
        if (ledger_add(kind, key, (uint32_t)device, bytes, 0))
            return true;
        estimate = bytes;
    }
    ledger_release((uint32_t)device, estimate);
    return false;
}

static bool array_enter_plain(CUarray array, int device, uint64_t estimate)
{
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs = { 0 };
    CUdevice handle;
    bool known = gpu_real.cuArrayGetMemoryRequirements && gpu_real.cuCtxGetDevice
                 && gpu_real.cuCtxGetDevice(&handle) == CUDA_SUCCESS
                 && gpu_real.cuArrayGetMemoryRequirements(&needs, array, handle) == CUDA_SUCCESS;

    if (array_enter(LEDGER_ARRAY, (uintptr_t)array, device, estimate, known ? &needs : NULL))
        return true;
    if (gpu_real.cuArrayDestroy)
        (void)gpu_real.cuArrayDestroy(array);
    return false;
}

CUresult on_array_create(fn_cuArrayCreate_v2 *real, CUarray *array,
                         const CUDA_ARRAY_DESCRIPTOR *want)
{
    int device = gpu_device_current();
    uint64_t estimate;
    CUresult result;

    if (!array || !want)
        return real(array, want);
    estimate = array_texels(want->Width, want->Height, 1, want->Format, want->NumChannels);
    if (!array_reserve_here(device, estimate))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = real(array, want);
    if (result != CUDA_SUCCESS)
        ledger_release((uint32_t)device, estimate);
    else if (!array_enter_plain(*array, device, estimate))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return result;
}

/* Sparse and deferred arrays have no memory until handles are mapped into them. */
static uint64_t array_estimate_3d(const CUDA_ARRAY3D_DESCRIPTOR *want)
{
    if (want->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        return 0;
    return array_texels(want->Width, want->Height, want->Depth, want->Format, want->NumChannels);
}

CUresult on_array_3d_create(fn_cuArray3DCreate_v2 *real, CUarray *array,
                            const CUDA_ARRAY3D_DESCRIPTOR *want)
{
    int device = gpu_device_current();
    uint64_t estimate = array && want ? array_estimate_3d(want) : 0;
    CUresult result;

    if (!estimate)
        return real(array, want);
    if (!array_reserve_here(device, estimate))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = real(array, want);
    if (result != CUDA_SUCCESS)
        ledger_release((uint32_t)device, estimate);
    else if (!array_enter_plain(*array, device, estimate))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return result;
}

/* Every level has half the edge of the one before. */
static uint64_t array_estimate_levels(const CUDA_ARRAY3D_DESCRIPTOR *want, unsigned int levels)
{
    CUDA_ARRAY3D_DESCRIPTOR level = *want;
    uint64_t sum = 0;

    for (unsigned int i = 0; i < levels && i < 32; i++) {
        uint64_t bytes = array_estimate_3d(&level);

        if (__builtin_add_overflow(sum, bytes, &sum))
            return UINT64_MAX;
        level.Width = level.Width > 1 ? level.Width / 2 : level.Width;
        level.Height = level.Height > 1 ? level.Height / 2 : level.Height;
        if (!(level.Flags & CUDA_ARRAY3D_LAYERED))
            level.Depth = level.Depth > 1 ? level.Depth / 2 : level.Depth;
    }
    return sum;
}

static bool array_enter_mipmap(CUmipmappedArray array, int device, uint64_t estimate)
{
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs = { 0 };
    CUdevice handle;
    bool known = gpu_real.cuMipmappedArrayGetMemoryRequirements && gpu_real.cuCtxGetDevice
                 && gpu_real.cuCtxGetDevice(&handle) == CUDA_SUCCESS
                 && gpu_real.cuMipmappedArrayGetMemoryRequirements(&needs, array, handle)
                        == CUDA_SUCCESS;

    if (array_enter(LEDGER_MIPMAP, (uintptr_t)array, device, estimate, known ? &needs : NULL))
        return true;
    if (gpu_real.cuMipmappedArrayDestroy)
        (void)gpu_real.cuMipmappedArrayDestroy(array);
    return false;
}

CUresult on_mipmap_create(fn_cuMipmappedArrayCreate *real, CUmipmappedArray *array,
                          const CUDA_ARRAY3D_DESCRIPTOR *want, unsigned int levels)
{
    int device = gpu_device_current();
    uint64_t estimate = array && want ? array_estimate_levels(want, levels) : 0;
    CUresult result;

    if (!estimate)
        return real(array, want, levels);
    if (!array_reserve_here(device, estimate))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = real(array, want, levels);
    if (result != CUDA_SUCCESS)
        ledger_release((uint32_t)device, estimate);
    else if (!array_enter_mipmap(*array, device, estimate))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return result;
}

CUresult on_array_destroy(fn_cuArrayDestroy *real, CUarray array)
{
    struct ledger_entry entry;
    bool known = ledger_take(LEDGER_ARRAY, (uintptr_t)array, &entry);
    CUresult result = real(array);

    if (known && result == CUDA_SUCCESS)
        ledger_release(entry.device, entry.bytes);
    else if (known)
        (void)ledger_add(LEDGER_ARRAY, entry.key, entry.device, entry.bytes, 0);
    else if (result == CUDA_SUCCESS)
        sparse_drop_array(array);
    return result;
}

CUresult on_mipmap_destroy(fn_cuMipmappedArrayDestroy *real, CUmipmappedArray array)
{
    struct ledger_entry entry;
    bool known = ledger_take(LEDGER_MIPMAP, (uintptr_t)array, &entry);
    CUresult result = real(array);

    if (known && result == CUDA_SUCCESS)
        ledger_release(entry.device, entry.bytes);
    else if (known)
        (void)ledger_add(LEDGER_MIPMAP, entry.key, entry.device, entry.bytes, 0);
    else if (result == CUDA_SUCCESS)
        sparse_drop_array(array);
    return result;
}
