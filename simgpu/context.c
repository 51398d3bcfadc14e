/* SPDX-License-Identifier: Apache-2.0 */
/* context.c - contexts and code, and the memory that the driver takes for them */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "number.h"

static struct CUctx_st primary[SIM_DEVICES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread CUcontext stack[16];
static __thread int depth;

CUcontext sim_context(void)
{
    return depth ? stack[depth - 1] : NULL;
}

bool sim_overhead_take(CUdevice device, uint64_t bytes)
{
    uint64_t *contexts = &sim_self()->uses[device].contexts;

    if (!sim_memory_take((uint32_t)device, bytes))
        return false;
    sim_memory_give((uint32_t)device, bytes);
    sim_lock(sim_card());
    *contexts += bytes;
    sim_unlock(sim_card());
    return true;
}

void sim_overhead_give(CUdevice device, uint64_t bytes)
{
    uint64_t *contexts = &sim_self()->uses[device].contexts;

    sim_lock(sim_card());
    *contexts = *contexts > bytes ? *contexts - bytes : 0;
    sim_unlock(sim_card());
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult result = CUDA_SUCCESS;

    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!context || !sim_has_device(device))
        return CUDA_ERROR_INVALID_VALUE;
    (void)pthread_mutex_lock(&lock);
    if (!primary[device].users && !sim_overhead_take(device, sim_card()->context_bytes))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    else
        primary[device].users++;
    primary[device].device = device;
    primary[device].is_primary = true;
    (void)pthread_mutex_unlock(&lock);
    *context = &primary[device];
    return result;
}

static CUresult context_release_primary(CUdevice device, bool all)
{
    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!sim_has_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    (void)pthread_mutex_lock(&lock);
    if (primary[device].users && (all || --primary[device].users == 0)) {
        primary[device].users = 0;
        sim_overhead_give(device, UINT64_MAX);
        sim_memory_forget(device);
    }
    (void)pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    return context_release_primary(device, false);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    return context_release_primary(device, false);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    return context_release_primary(device, true);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    return context_release_primary(device, true);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!flags || !active || !sim_has_device(device))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = 0;
    *active = primary[device].users > 0;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    (void)flags;
    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!context || !sim_has_device(device))
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_overhead_take(device, sim_card()->context_bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!(*context = calloc(1, sizeof(**context))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*context)->device = device;
    return cuCtxPushCurrent_v2(*context);
}

CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
    return cuCtxCreate_v2(context, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext *context, void *affinity, int count, unsigned int flags,
                        CUdevice device)
{
    (void)affinity;
    (void)count;
    return cuCtxCreate_v2(context, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *context, void *params, unsigned int flags, CUdevice device)
{
    (void)params;
    return cuCtxCreate_v2(context, flags, device);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!context || context->is_primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (sim_context() == context)
        depth--;
    sim_overhead_give(context->device, sim_card()->context_bytes);
    if (!primary[context->device].users && !sim_self()->uses[context->device].contexts)
        sim_memory_forget(context->device);
    free(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext context)
{
    return cuCtxDestroy_v2(context);
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    *context = sim_context();
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!depth)
        depth = 1;
    stack[depth - 1] = context;
    if (!context)
        depth--;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!context || depth == (int)(sizeof(stack) / sizeof(stack[0])))
        return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    SIM_CHECK_CONTEXT();
    if (context)
        *context = sim_context();
    depth--;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    if (__builtin_expect(!depth || !device, 0)) {
        SIM_CHECK_CONTEXT();
        return CUDA_ERROR_INVALID_VALUE;
    }
    *device = stack[depth - 1]->device;
    return CUDA_SUCCESS;
}

/* A heap for malloc in GPU kernels is the driver's memory. */
CUresult cuCtxSetLimit(int limit, size_t value)
{
    CUcontext context = sim_context();
    size_t old;

    SIM_CHECK_CONTEXT();
    if (limit < 0 || limit >= 16)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    old = context->limits[limit];
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE) {
        sim_overhead_give(context->device, old);
        if (!sim_overhead_take(context->device, value)) {
            (void)sim_overhead_take(context->device, old);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    context->limits[limit] = value;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *value, int limit)
{
    SIM_CHECK_CONTEXT();
    if (!value || limit < 0 || limit >= 16)
        return CUDA_ERROR_INVALID_VALUE;
    *value = sim_context()->limits[limit];
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx *context, CUdevResourceDesc resources, CUdevice device,
                          unsigned int flags)
{
    (void)resources;
    (void)flags;
    if (!context || !sim_has_device(device))
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_overhead_take(device, SIM_GRANULE))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *context = (CUgreenCtx)(uintptr_t)(device + 1);
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx context)
{
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    sim_overhead_give((CUdevice)(uintptr_t)context - 1, SIM_GRANULE);
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    SIM_CHECK_CONTEXT();
    if (!module || !image)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_overhead_take(sim_context()->device, sim_card()->module_bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!(*module = calloc(1, sizeof(**module))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*module)->device = sim_context()->device;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    return cuModuleLoadData(module, path);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    return cuModuleLoadData(module, image);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, int *options,
                            void **values)
{
    (void)count;
    (void)options;
    (void)values;
    return cuModuleLoadData(module, image);
}

CUresult cuModuleUnload(CUmodule module)
{
    SIM_CHECK_CONTEXT();
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    sim_overhead_give(module->device, sim_card()->module_bytes);
    free(module);
    return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, int *jit, void **jit_values,
                           unsigned int jit_count, int *options, void **values, unsigned int count)
{
    (void)jit;
    (void)jit_values;
    (void)jit_count;
    (void)options;
    (void)values;
    (void)count;
    return cuModuleLoadData((CUmodule *)library, code);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, int *jit, void **jit_values,
                               unsigned int jit_count, int *options, void **values,
                               unsigned int count)
{
    return cuLibraryLoadData(library, path, jit, jit_values, jit_count, options, values, count);
}

CUresult cuLibraryUnload(CUlibrary library)
{
    return cuModuleUnload((CUmodule)library);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    uint64_t fixed_ns;

    SIM_CHECK_CONTEXT();
    if (!function || !module || !name)
        return CUDA_ERROR_INVALID_VALUE;
    if (strncmp(name, "work", 4) != 0)
        return CUDA_ERROR_NOT_FOUND;
    if (!(*function = calloc(1, sizeof(**function))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*function)->fixed_ns = -1;
    if (name[4] == '_') {
        name += 5;
        (void)sim_read_number(&name, 10, &fixed_ns);
        (*function)->fixed_ns = (int64_t)fixed_ns;
    }
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    return cuModuleGetFunction((CUfunction *)kernel, (CUmodule)library, name);
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    if (!function || !kernel)
        return CUDA_ERROR_INVALID_VALUE;
    *function = (CUfunction)kernel;
    return CUDA_SUCCESS;
}
