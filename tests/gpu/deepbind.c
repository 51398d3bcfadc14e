/* SPDX-License-Identifier: Apache-2.0 */
/* deepbind.c - a library that is linked with the driver; RTLD_DEEPBIND leads it past the preload */
#include <stddef.h>

#include "gpu/hooks.h"

extern fn_cuInit cuInit;
extern fn_cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRetain;
extern fn_cuCtxSetCurrent cuCtxSetCurrent;
extern fn_cuMemAlloc_v2 cuMemAlloc_v2;

__attribute__((visibility("default"))) CUresult allocate_linked(size_t bytes);

CUresult allocate_linked(size_t bytes)
{
    CUcontext context;
    CUdeviceptr pointer;
    CUresult result = cuInit(0);

    if (result == CUDA_SUCCESS)
        result = cuDevicePrimaryCtxRetain(&context, 0);
    if (result == CUDA_SUCCESS)
        result = cuCtxSetCurrent(context);
    return result == CUDA_SUCCESS ? cuMemAlloc_v2(&pointer, bytes) : result;
}
