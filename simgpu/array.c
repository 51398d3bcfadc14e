/* SPDX-License-Identifier: Apache-2.0 */
/* array.c - arrays and mipmapped arrays */
#include <stdlib.h>

#include "cuda.h"

struct CUarray_st {
    CUdevice device;
    uint64_t bytes;
};

static uint64_t array_texel_bytes(int format, unsigned int channels)
{
    uint64_t one = format == CU_AD_FORMAT_FLOAT || format == CU_AD_FORMAT_UNSIGNED_INT32
                           || format == CU_AD_FORMAT_SIGNED_INT32
                       ? 4
                   : format == CU_AD_FORMAT_HALF || format == CU_AD_FORMAT_UNSIGNED_INT16
                           || format == CU_AD_FORMAT_SIGNED_INT16
                       ? 2
                       : 1;

    return one * channels;
}

/* Rows of arrays are padded to 64 bytes here; the real layout is nobody's business. */
static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *want)
{
    uint64_t row = (want->Width * array_texel_bytes(want->Format, want->NumChannels) + 63) / 64
                   * 64;

    return row * (want->Height ? want->Height : 1) * (want->Depth ? want->Depth : 1);
}

static CUresult array_create(CUarray *array, uint64_t bytes)
{
    CUdevice device = sim_context()->device;

    if (bytes > SIM_ADDRESS_SPACE || !sim_physical_take(device, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!(*array = calloc(1, sizeof(**array))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    **array = (struct CUarray_st){ device, bytes };
    return CUDA_SUCCESS;
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *want)
{
    bool sparse;

    SIM_CHECK_CONTEXT();
    if (!array || !want || !want->Width || !want->NumChannels)
        return CUDA_ERROR_INVALID_VALUE;
    sparse = want->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING);
    return array_create(array, sparse ? 0 : array_bytes(want));
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *want)
{
    CUDA_ARRAY3D_DESCRIPTOR full = { 0 };

    if (!array || !want)
        return CUDA_ERROR_INVALID_VALUE;
    full.Width = want->Width;
    full.Height = want->Height;
    full.Format = want->Format;
    full.NumChannels = want->NumChannels;
    return cuArray3DCreate_v2(array, &full);
}

CUresult cuArrayDestroy(CUarray array)
{
    SIM_CHECK_CONTEXT();
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    sim_physical_give(array->device, array->bytes);
    free(array);
    return CUDA_SUCCESS;
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *needs, CUarray array,
                                      CUdevice device)
{
    (void)device;
    if (!needs || !array)
        return CUDA_ERROR_INVALID_VALUE;
    *needs = (CUDA_ARRAY_MEMORY_REQUIREMENTS){ .size = array->bytes, .alignment = 512 };
    return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *want,
                                unsigned int levels)
{
    CUDA_ARRAY3D_DESCRIPTOR level;
    uint64_t bytes = 0;

    SIM_CHECK_CONTEXT();
    if (!array || !want || !want->Width || !levels)
        return CUDA_ERROR_INVALID_VALUE;
    level = *want;
    for (unsigned int i = 0; i < levels; i++) {
        bytes += array_bytes(&level);
        level.Width = level.Width > 1 ? level.Width / 2 : 1;
        level.Height = level.Height > 1 ? level.Height / 2 : level.Height;
        level.Depth = level.Depth > 1 ? level.Depth / 2 : level.Depth;
    }
    return array_create((CUarray *)array, bytes);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
    return cuArrayDestroy((CUarray)array);
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *needs,
                                               CUmipmappedArray array, CUdevice device)
{
    return cuArrayGetMemoryRequirements(needs, (CUarray)array, device);
}
