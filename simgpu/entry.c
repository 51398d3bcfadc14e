/* entry.c - start, devices, contexts, code, and how functions are found */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

extern const int sim_cuda_version;

static bool is_ready;
static struct CUctx_st primary[SIM_DEVICES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread CUcontext stack[16];
static __thread int depth;

bool sim_is_ready(void)
{
    return is_ready && sim_is_parent();
}

CUcontext sim_context(void)
{
    return depth ? stack[depth - 1] : NULL;
}

static bool has_device(CUdevice device)
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

static bool is_hidden(const char *symbol)
{
    int fd;
    struct sim_card *card = sim_card_to_look(&fd);

    return card && strcmp(card->faults.hidden_symbol, symbol) == 0;
}

static int find_function(const char *name, void **function, int version, unsigned long long flags)
{
    const struct sim_export *best = NULL;
    bool known = false;

    *function = NULL;
    for (const struct sim_export *e = sim_exports; e->name; e++) {
        if (strcmp(e->name, name) != 0 || e->since > sim_cuda_version || is_hidden(e->symbol))
            continue;
        known = true;
        if (e->since <= version && (!best || e->since > best->since))
            best = e;
    }
    if (!best)
        return known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                     : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    *function = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) && best->per_thread
                    ? best->per_thread
                    : best->function;
    return CU_GET_PROC_ADDRESS_SUCCESS;
}

CUresult cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags)
{
    if (!name || !function)
        return CUDA_ERROR_INVALID_VALUE;
    return find_function(name, function, version, flags) == CU_GET_PROC_ADDRESS_SUCCESS
               ? CUDA_SUCCESS
               : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress_v2(const char *name, void **function, int version,
                             unsigned long long flags, int *status)
{
    int found;

    if (!name || !function)
        return CUDA_ERROR_INVALID_VALUE;
    found = find_function(name, function, version, flags);
    if (status)
        *status = found;
    return found == CU_GET_PROC_ADDRESS_SUCCESS || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    *name = error == CUDA_SUCCESS               ? "CUDA_SUCCESS"
            : error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
                                                : "CUDA_ERROR";
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    return cuGetErrorName(error, text);
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
    if (!has_device(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice device)
{
    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!name || len < 1 || !has_device(device))
        return CUDA_ERROR_INVALID_VALUE;
    (void)snprintf(name, (size_t)len, "%s", sim_card()->devices[device].name);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!uuid || !has_device(device))
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
    if (!bytes || !has_device(device))
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
    if (!value || !has_device(device))
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
    if (!id || len < 13 || !has_device(device))
        return CUDA_ERROR_INVALID_VALUE;
    (void)snprintf(id, (size_t)len, "0000:%02x:00.0", device + 1);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
    unsigned int domain, bus;

    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!device || !id || sscanf(id, "%x:%x", &domain, &bus) != 2 || !has_device((int)bus - 1))
        return CUDA_ERROR_INVALID_VALUE;
    *device = (int)bus - 1;
    return CUDA_SUCCESS;
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
    if (!context || !has_device(device))
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

static CUresult drop_primary(CUdevice device, bool all)
{
    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!has_device(device))
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
    return drop_primary(device, false);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    return drop_primary(device, false);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    return drop_primary(device, true);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    return drop_primary(device, true);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!flags || !active || !has_device(device))
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
    if (!context || !has_device(device))
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

/* A heap for malloc in kernels is the driver's memory. */
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
    if (!context || !has_device(device))
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
    SIM_CHECK_CONTEXT();
    if (!function || !module || !name)
        return CUDA_ERROR_INVALID_VALUE;
    if (strncmp(name, "work", 4) != 0)
        return CUDA_ERROR_NOT_FOUND;
    if (!(*function = calloc(1, sizeof(**function))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*function)->fixed_ns = name[4] == '_' ? strtoll(name + 5, NULL, 10) : -1;
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
