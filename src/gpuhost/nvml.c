/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.c - NVML, loaded at run time: devices, processes, memory limits */
#include "gpuhost/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "gpu/nvml.h"
#include "gpu/uuid.h"

#define DEVICES_MAX 64
#define PROCESSES_MAX 1024

struct gpu_nvml {
    void *library;
    nvmlReturn_t (*init)(void);
    nvmlReturn_t (*shutdown)(void);
    nvmlReturn_t (*count)(unsigned int *count);
    nvmlReturn_t (*by_index)(unsigned int index, nvmlDevice_t *handle);
    nvmlReturn_t (*uuid)(nvmlDevice_t handle, char *text, unsigned int len);
    nvmlReturn_t (*name)(nvmlDevice_t handle, char *text, unsigned int len);
    nvmlReturn_t (*memory)(nvmlDevice_t handle, nvmlMemory_t *memory);
    struct {
        nvmlReturn_t (*now)(nvmlDevice_t handle, unsigned int *count, nvmlProcessInfo_t *infos);
        nvmlReturn_t (*v1)(nvmlDevice_t handle, unsigned int *count, nvmlProcessInfo_v1_t *infos);
    } lists[3]; /* of compute, graphics, MPS */
    nvmlReturn_t (*utilization)(nvmlDevice_t handle, nvmlProcessUtilizationSample_t *samples,
                                unsigned int *count, unsigned long long since_usec);
    nvmlReturn_t (*limit)(nvmlDevice_t handle, nvmlSetMemoryLimits_v1_t *limits);
    nvmlProcessInfo_t list[PROCESSES_MAX];
    nvmlProcessInfo_v1_t list_v1[PROCESSES_MAX];
    nvmlProcessUtilizationSample_t samples[PROCESSES_MAX];
};

/* The first of the names that the library has. */
static void nvml_find_function(const struct gpu_nvml *nvml, void *function,
                               const char *const *names)
{
    void *found = NULL;

    for (; *names && !found; names++)
        found = dlsym(nvml->library, *names);
    memcpy(function, &found, sizeof(found));
}

#define FIND(nvml, member, ...) \
    nvml_find_function(nvml, &(nvml)->member, (const char *const[]){ __VA_ARGS__, NULL })

static void nvml_find_lists(struct gpu_nvml *nvml)
{
    static const char *const kinds[] = { "Compute", "Graphics", "MPSCompute" };

    for (size_t i = 0; i < AQ_COUNT(kinds); i++) {
        char v1[64], v2[64], v3[64];

        (void)snprintf(v1, sizeof(v1), "nvmlDeviceGet%sRunningProcesses", kinds[i]);
        (void)snprintf(v2, sizeof(v2), "nvmlDeviceGet%sRunningProcesses_v2", kinds[i]);
        (void)snprintf(v3, sizeof(v3), "nvmlDeviceGet%sRunningProcesses_v3", kinds[i]);
        FIND(nvml, lists[i].now, v3, v2);
        FIND(nvml, lists[i].v1, v1);
    }
}

int gpu_nvml_open(const char *library, struct gpu_nvml **ret, struct aq_error *err)
{
    AQ_CLEANUP(gpu_nvml_closep) struct gpu_nvml *nvml = aq_alloc(sizeof(*nvml));

    nvml->library = dlopen(library ? library : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library)
        return aq_fail(err, ENOENT,
                       "no NVIDIA driver here: %s; install it, or name its "
                       "folder in LD_LIBRARY_PATH",
                       dlerror());
    FIND(nvml, init, "nvmlInit_v2", "nvmlInit");
    FIND(nvml, shutdown, "nvmlShutdown");
    FIND(nvml, count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount");
    FIND(nvml, by_index, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex");
    FIND(nvml, uuid, "nvmlDeviceGetUUID");
    FIND(nvml, name, "nvmlDeviceGetName");
    FIND(nvml, memory, "nvmlDeviceGetMemoryInfo");
    FIND(nvml, utilization, "nvmlDeviceGetProcessUtilization");
    FIND(nvml, limit, "nvmlDeviceSetMemoryLimits_v1");
    nvml_find_lists(nvml);
    if (!nvml->init || !nvml->count || !nvml->by_index || !nvml->uuid || !nvml->memory)
        return aq_fail(err, ENOSYS, "libnvidia-ml.so.1 lacks functions that every driver has");
    if (nvml->init() != NVML_SUCCESS) {
        nvml->shutdown = NULL;
        return aq_fail(err, ENOENT, "the NVIDIA driver does not start (nvmlInit)");
    }
    *ret = AQ_TAKE(nvml);
    return 0;
}

void gpu_nvml_close(struct gpu_nvml *nvml)
{
    if (!nvml)
        return;
    if (nvml->shutdown)
        (void)nvml->shutdown();
    if (nvml->library)
        (void)dlclose(nvml->library);
    free(nvml);
}

static bool nvml_describe(struct gpu_nvml *nvml, unsigned int index, nvmlDevice_t *handle,
                          struct gpu_device_info *ret)
{
    nvmlMemory_t memory = { 0 };

    *ret = (struct gpu_device_info){ 0 };
    if (nvml->by_index(index, handle) != NVML_SUCCESS
        || nvml->uuid(*handle, ret->uuid_text, sizeof(ret->uuid_text)) != NVML_SUCCESS
        || !gpu_uuid_read(ret->uuid_text, ret->uuid)
        || nvml->memory(*handle, &memory) != NVML_SUCCESS)
        return false;
    ret->memory_bytes = memory.total;
    if (!nvml->name || nvml->name(*handle, ret->name, sizeof(ret->name)) != NVML_SUCCESS)
        (void)snprintf(ret->name, sizeof(ret->name), "GPU %u", index);
    return true;
}

int gpu_nvml_devices(struct gpu_nvml *nvml, struct gpu_device_info *ret, size_t room,
                     struct aq_error *err)
{
    unsigned int count = 0;
    nvmlDevice_t handle;
    size_t found = 0;

    if (nvml->count(&count) != NVML_SUCCESS)
        return aq_fail(err, EIO, "the NVIDIA driver does not count its devices");
    for (unsigned int i = 0; i < count && i < DEVICES_MAX && found < room; i++)
        found += nvml_describe(nvml, i, &handle, &ret[found]);
    return (int)found;
}

/* Fill nvml->list; how many processes are in one of the lists of a device. */
static unsigned int nvml_read_list(struct gpu_nvml *nvml, size_t kind, nvmlDevice_t handle)
{
    unsigned int count = PROCESSES_MAX;

    if (nvml->lists[kind].now)
        return nvml->lists[kind].now(handle, &count, nvml->list) == NVML_SUCCESS ? count : 0;
    if (!nvml->lists[kind].v1
        || nvml->lists[kind].v1(handle, &count, nvml->list_v1) != NVML_SUCCESS)
        return 0;
    for (unsigned int i = 0; i < count; i++)
        nvml->list[i] = (nvmlProcessInfo_t){ .pid = nvml->list_v1[i].pid,
                                             .usedGpuMemory = nvml->list_v1[i].usedGpuMemory };
    return count;
}

/* A process with contexts of several kinds is in several lists, with the same memory. */
static void nvml_add_process(struct gpu_process_memory *uses, size_t *count, size_t first,
                             size_t room, const struct gpu_process_memory *use)
{
    for (size_t i = first; i < *count; i++)
        if (uses[i].pid == use->pid) {
            uses[i].bytes = AQ_MAX(uses[i].bytes, use->bytes);
            return;
        }
    if (*count < room)
        uses[(*count)++] = *use;
}

/* How busy the processes of a device keep its memory; no sample = not at all. */
static void nvml_add_utilization(struct gpu_nvml *nvml, nvmlDevice_t handle,
                                 struct gpu_process_memory *uses, size_t count)
{
    unsigned long long since = (unsigned long long)(clock_realtime_usec() - USEC_PER_SEC);
    unsigned int found = PROCESSES_MAX;
    nvmlReturn_t r = nvml->utilization && count
                         ? nvml->utilization(handle, nvml->samples, &found, since)
                         : NVML_ERROR_NOT_SUPPORTED;

    for (size_t k = 0; k < count; k++) {
        uses[k].memory_busy = r == NVML_SUCCESS || r == NVML_ERROR_NOT_FOUND ? 0 : UINT32_MAX;
        for (unsigned int i = 0; r == NVML_SUCCESS && i < found; i++)
            if (uses[k].pid == (int32_t)nvml->samples[i].pid)
                uses[k].memory_busy = AQ_MIN(nvml->samples[i].memUtil, 100);
    }
}

int gpu_nvml_processes(struct gpu_nvml *nvml, struct gpu_process_memory *ret, size_t room,
                       struct aq_error *err)
{
    unsigned int devices = 0;
    size_t count = 0;

    if (nvml->count(&devices) != NVML_SUCCESS)
        return aq_fail(err, EIO, "the NVIDIA driver does not count its devices");
    for (unsigned int d = 0; d < devices && d < DEVICES_MAX; d++) {
        struct gpu_device_info info;
        size_t first = count;
        nvmlDevice_t handle;

        if (!nvml_describe(nvml, d, &handle, &info))
            continue; /* fallen off the bus: nobody uses it */
        for (size_t kind = 0; kind < AQ_COUNT(nvml->lists); kind++) {
            unsigned int found = nvml_read_list(nvml, kind, handle);

            for (unsigned int i = 0; i < found; i++) {
                struct gpu_process_memory use = { .pid = (int32_t)nvml->list[i].pid,
                                                  .bytes = nvml->list[i].usedGpuMemory };

                memcpy(use.uuid, info.uuid, sizeof(use.uuid));
                if (use.bytes == (uint64_t)NVML_VALUE_NOT_AVAILABLE)
                    use.bytes = 0;
                nvml_add_process(ret, &count, first, room, &use);
            }
        }
        nvml_add_utilization(nvml, handle, ret + first, count - first);
    }
    return (int)count;
}

static bool nvml_find_device(struct gpu_nvml *nvml, const uint8_t uuid[16], nvmlDevice_t *ret)
{
    struct gpu_device_info info;
    unsigned int count = 0;

    if (nvml->count(&count) != NVML_SUCCESS)
        return false;
    for (unsigned int i = 0; i < count && i < DEVICES_MAX; i++)
        if (nvml_describe(nvml, i, ret, &info) && memcmp(info.uuid, uuid, sizeof(info.uuid)) == 0)
            return true;
    return false;
}

int gpu_nvml_limit_memory(struct gpu_nvml *nvml, const uint8_t uuid[16], const char *cgroup,
                          uint64_t bytes, struct aq_error *err)
{
    nvmlSetMemoryLimits_v1_t limits = { .nameSpace = cgroup, .hardLimit = bytes };
    nvmlDevice_t handle;
    nvmlReturn_t r;

    if (!nvml->limit)
        return aq_fail(err, ENOSYS, "this driver does not limit memory by cgroup");
    if (!nvml_find_device(nvml, uuid, &handle))
        return aq_fail(err, ENODEV, "the driver has no such device");
    r = nvml->limit(handle, &limits);
    if (r == NVML_ERROR_NOT_SUPPORTED || r == NVML_ERROR_FUNCTION_NOT_FOUND)
        return aq_fail(err, ENOSYS, "this driver does not limit memory by cgroup");
    return r == NVML_SUCCESS
               ? 0
               : aq_fail(err, EIO, "the driver does not limit memory: NVML error %d", (int)r);
}
