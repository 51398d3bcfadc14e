/* SPDX-License-Identifier: Apache-2.0 */
/* context.c - contexts and code: made first, measured, and undone if they do not fit
 *
 * A context that is gone takes its allocations with it. The driver says which
 * those were only by no longer counting them, so the ledger of a device is
 * brought to zero when its last context is gone (cuDevicePrimaryCtxReset, or
 * the last release or destroy).
 */
#include "gpu/device.h"
#include "gpu/hooks.h"
#include "gpu/ledger.h"
#include "gpu/shared_alloc.h"
#include "gpu/overhead.h"
#include "gpu/throttle.h"

static bool context_is_denied(CUdevice device)
{
    return gpu_device_index(device) < 0;
}

CUresult on_primary_retain(fn_cuDevicePrimaryCtxRetain *real, CUcontext *context, CUdevice device)
{
    unsigned int flags;
    int active = 0;
    CUresult result;

    if (context_is_denied(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (gpu_real.cuDevicePrimaryCtxGetState)
        (void)gpu_real.cuDevicePrimaryCtxGetState(device, &flags, &active);
    result = real(context, device);
    if (active)
        return result;
    if (overhead_stands(result, gpu_device_index(device)))
        return result;
    return OVERHEAD_UNDONE(gpu_real.cuDevicePrimaryCtxRelease_v2
                               ? gpu_real.cuDevicePrimaryCtxRelease_v2(device)
                               : gpu_real.cuDevicePrimaryCtxRelease(device));
}

/* Give back what the ledger has for 'device' of one kind. */
struct context_sweep {
    struct ledger_entry entries[256];
    int count, device;
};

static void context_collect(const struct ledger_entry *entry, void *data)
{
    struct context_sweep *sweep = data;

    if (entry->device == sweep->device
        && sweep->count < (int)(sizeof(sweep->entries) / sizeof(sweep->entries[0])))
        sweep->entries[sweep->count++] = *entry;
}

static void context_drop_kind(enum ledger_kind kind, int device)
{
    struct context_sweep sweep;
    struct ledger_entry entry;

    do {
        sweep.count = 0;
        sweep.device = device;
        ledger_each(kind, context_collect, &sweep);
        for (int i = 0; i < sweep.count; i++)
            if (ledger_take(kind, sweep.entries[i].key, &entry) && kind != LEDGER_POOL_MEMORY)
                shared_alloc_release(&entry);
    } while (sweep.count == (int)(sizeof(sweep.entries) / sizeof(sweep.entries[0])));
}

/* Physical handles and pools belong to the process, not to a context. */
static void context_drop_allocations(int device)
{
    static const enum ledger_kind kinds[] = { LEDGER_MEMORY, LEDGER_ARRAY, LEDGER_MIPMAP,
                                              LEDGER_OPENED };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        context_drop_kind(kinds[i], device);
}

static bool context_exists(CUdevice device)
{
    unsigned int flags;
    int active = 1, index = gpu_device_index(device);
    struct context_sweep sweep = { .device = index };

    if (gpu_real.cuDevicePrimaryCtxGetState)
        (void)gpu_real.cuDevicePrimaryCtxGetState(device, &flags, &active);
    ledger_each(LEDGER_CONTEXT, context_collect, &sweep);
    return active || sweep.count;
}

static void context_after_end(CUdevice device)
{
    int index = gpu_device_index(device);

    if (index < 0)
        return;
    if (!context_exists(device)) {
        context_drop_allocations(index);
        throttle_drop_device(index);
    }
    (void)overhead_follow(index);
}

CUresult on_primary_release(fn_cuDevicePrimaryCtxRelease *real, CUdevice device)
{
    CUresult result = real(device);
    unsigned int flags;
    int active = 1;

    if (gpu_real.cuDevicePrimaryCtxGetState)
        (void)gpu_real.cuDevicePrimaryCtxGetState(device, &flags, &active);
    if (result == CUDA_SUCCESS && !active)
        context_after_end(device);
    return result;
}

CUresult on_primary_reset(fn_cuDevicePrimaryCtxReset *real, CUdevice device)
{
    CUresult result = real(device);

    if (result == CUDA_SUCCESS)
        context_after_end(device);
    return result;
}

/* 'result' is of making *context on 'device'. */
static CUresult context_entered(CUresult result, const CUcontext *context, CUdevice device)
{
    int index = gpu_device_index(device);

    if (result != CUDA_SUCCESS)
        return result;
    if (!overhead_follow(index)
        || !ledger_add(LEDGER_CONTEXT, (uintptr_t)*context, (uint32_t)index, 0, 0)) {
        if (gpu_real.cuCtxDestroy_v2)
            (void)gpu_real.cuCtxDestroy_v2(*context);
        (void)overhead_follow(index);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

CUresult on_ctx_create(fn_cuCtxCreate *real, CUcontext *context, unsigned int flags,
                       CUdevice device)
{
    if (context_is_denied(device))
        return CUDA_ERROR_INVALID_DEVICE;
    return context_entered(real(context, flags, device), context, device);
}

CUresult on_ctx_create_v3(fn_cuCtxCreate_v3 *real, CUcontext *context, void *affinity, int count,
                          unsigned int flags, CUdevice device)
{
    if (context_is_denied(device))
        return CUDA_ERROR_INVALID_DEVICE;
    return context_entered(real(context, affinity, count, flags, device), context, device);
}

CUresult on_ctx_create_v4(fn_cuCtxCreate_v4 *real, CUcontext *context, void *params,
                          unsigned int flags, CUdevice device)
{
    if (context_is_denied(device))
        return CUDA_ERROR_INVALID_DEVICE;
    return context_entered(real(context, params, flags, device), context, device);
}

CUresult on_ctx_destroy(fn_cuCtxDestroy *real, CUcontext context)
{
    struct ledger_entry entry;
    bool known = ledger_take(LEDGER_CONTEXT, (uintptr_t)context, &entry);
    CUresult result = real(context);
    CUdevice device;

    if (known && result != CUDA_SUCCESS)
        (void)ledger_add(LEDGER_CONTEXT, entry.key, entry.device, 0, 0);
    else if (known && gpu_device_handle(entry.device, &device))
        context_after_end(device);
    return result;
}

/* Heaps for malloc, printf and stacks in GPU kernels. */
CUresult on_ctx_set_limit(fn_cuCtxSetLimit *real, int limit, size_t value)
{
    int device = gpu_device_current();
    size_t old = 0;
    bool known = gpu_real.cuCtxGetLimit && gpu_real.cuCtxGetLimit(&old, limit) == CUDA_SUCCESS;
    CUresult result = real(limit, value);

    if (limit > CU_LIMIT_MALLOC_HEAP_SIZE)
        return result;
    return overhead_stands(result, device)
               ? result
               : OVERHEAD_UNDONE(known ? real(limit, old) : CUDA_SUCCESS);
}

CUresult on_green_ctx_create(fn_cuGreenCtxCreate *real, CUgreenCtx *context,
                             CUdevResourceDesc resources, CUdevice device, unsigned int flags)
{
    CUresult result;

    if (context_is_denied(device))
        return CUDA_ERROR_INVALID_DEVICE;
    result = real(context, resources, device, flags);
    if (overhead_stands(result, gpu_device_index(device)))
        return result;
    return OVERHEAD_UNDONE(gpu_real.cuGreenCtxDestroy ? gpu_real.cuGreenCtxDestroy(*context)
                                                      : CUDA_SUCCESS);
}

CUresult on_green_ctx_destroy(fn_cuGreenCtxDestroy *real, CUgreenCtx context)
{
    int device = gpu_device_current();
    CUresult result = real(context);

    if (result == CUDA_SUCCESS && device >= 0)
        (void)overhead_follow(device);
    return result;
}

static CUresult context_keep_module(CUresult result, const CUmodule *module)
{
    return overhead_stands(result, gpu_device_current())
               ? result
               : OVERHEAD_UNDONE(gpu_real.cuModuleUnload(*module));
}

CUresult on_module_load(fn_cuModuleLoad *real, CUmodule *module, const char *path)
{
    return context_keep_module(real(module, path), module);
}

CUresult on_module_load_data(fn_cuModuleLoadData *real, CUmodule *module, const void *image)
{
    return context_keep_module(real(module, image), module);
}

CUresult on_module_load_data_ex(fn_cuModuleLoadDataEx *real, CUmodule *module, const void *image,
                                unsigned int count, int *options, void **values)
{
    return context_keep_module(real(module, image, count, options, values), module);
}

CUresult on_module_unload(fn_cuModuleUnload *real, CUmodule module)
{
    int device = gpu_device_current();
    CUresult result = real(module);

    if (result == CUDA_SUCCESS && device >= 0) {
        throttle_drop_costs();
        (void)overhead_follow(device);
    }
    return result;
}

static CUresult context_keep_library(CUresult result, const CUlibrary *library)
{
    return overhead_stands(result, gpu_device_current())
               ? result
               : OVERHEAD_UNDONE(gpu_real.cuLibraryUnload(*library));
}

CUresult on_library_load_data(fn_cuLibraryLoadData *real, CUlibrary *library, const void *code,
                              int *jit, void **jit_values, unsigned int jit_count, int *options,
                              void **values, unsigned int count)
{
    return context_keep_library(
        real(library, code, jit, jit_values, jit_count, options, values, count), library);
}

CUresult on_library_load_file(fn_cuLibraryLoadFromFile *real, CUlibrary *library, const char *path,
                              int *jit, void **jit_values, unsigned int jit_count, int *options,
                              void **values, unsigned int count)
{
    return context_keep_library(
        real(library, path, jit, jit_values, jit_count, options, values, count), library);
}

CUresult on_library_unload(fn_cuLibraryUnload *real, CUlibrary library)
{
    int device = gpu_device_current();
    CUresult result = real(library);

    if (result == CUDA_SUCCESS && device >= 0) {
        throttle_drop_costs();
        (void)overhead_follow(device);
    }
    return result;
}
