/* SPDX-License-Identifier: Apache-2.0 */
/* sparse.c - tiles of sparse arrays: mappings at addresses that nobody can touch */
#include "cuda.h"

#define NOWHERE ((CUdeviceptr)1 << 63)

static CUdeviceptr sparse_place_of(const CUarrayMapInfo *tile)
{
    CUdeviceptr place = (uintptr_t)tile->resource.array;

    place = place * 31 + tile->subresource.sparseLevel.level;
    place = place * 31 + tile->subresource.sparseLevel.layer;
    place = place * 8191 + tile->subresource.sparseLevel.offsetX;
    place = place * 8191 + tile->subresource.sparseLevel.offsetY;
    return (place * 8191 + tile->subresource.sparseLevel.offsetZ) | NOWHERE;
}

CUresult cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
    CUresult result = CUDA_SUCCESS;

    (void)stream;
    SIM_CHECK_CONTEXT();
    if (!list || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < count && result == CUDA_SUCCESS; i++) {
        const CUarrayMapInfo *tile = &list[i];

        if (!tile->resource.array)
            result = CUDA_ERROR_INVALID_VALUE;
        else if (tile->memOperationType == CU_MEM_OPERATION_TYPE_MAP)
            result = cuMemMap(sparse_place_of(tile), 1, tile->offset, tile->memHandle, 0);
        else
            result = cuMemUnmap(sparse_place_of(tile), 1);
    }
    return result;
}
