#include "gpuhost/watch.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/nvml.h"
#include "gpu/uuid.h"

#define DEVICES_MAX 64
#define PROCESSES_MAX 1024

struct gpu_watch {
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
    nvmlReturn_t (*limit)(nvmlDevice_t handle, nvmlSetMemoryLimits_v1_t *limits);
    nvmlProcessInfo_t list[PROCESSES_MAX];
    nvmlProcessInfo_v1_t list_v1[PROCESSES_MAX];
};

/* The first of the names that the library has. */
static void find(const struct gpu_watch *watch, void *function, const char *const *names)
{
    void *found = NULL;

    for (; *names && !found; names++)
        found = dlsym(watch->library, *names);
    memcpy(function, &found, sizeof(found));
}

#define FIND(watch, member, ...)                                                                   \
    find(watch, &(watch)->member, (const char *const[]){ __VA_ARGS__, NULL })

static void find_lists(struct gpu_watch *watch)
{
    static const char *const kinds[] = { "Compute", "Graphics", "MPSCompute" };

    for (size_t i = 0; i < AQ_COUNT(kinds); i++) {
        char v1[64], v2[64], v3[64];

        (void)snprintf(v1, sizeof(v1), "nvmlDeviceGet%sRunningProcesses", kinds[i]);
        (void)snprintf(v2, sizeof(v2), "nvmlDeviceGet%sRunningProcesses_v2", kinds[i]);
        (void)snprintf(v3, sizeof(v3), "nvmlDeviceGet%sRunningProcesses_v3", kinds[i]);
        FIND(watch, lists[i].now, v3, v2);
        FIND(watch, lists[i].v1, v1);
    }
}

int gpu_watch_new(const char *library, struct gpu_watch **ret, struct aq_error *err)
{
    AQ_CLEANUP(gpu_watch_freep) struct gpu_watch *watch = calloc(1, sizeof(*watch));

    if (!watch)
        return aq_fail(err, ENOMEM, "GPU watchdog");
    watch->library = dlopen(library ? library : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!watch->library)
        return aq_fail(err, ENOENT, "no NVIDIA driver here: %s; install it, or name its "
                       "folder in LD_LIBRARY_PATH", dlerror());
    FIND(watch, init, "nvmlInit_v2", "nvmlInit");
    FIND(watch, shutdown, "nvmlShutdown");
    FIND(watch, count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount");
    FIND(watch, by_index, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex");
    FIND(watch, uuid, "nvmlDeviceGetUUID");
    FIND(watch, name, "nvmlDeviceGetName");
    FIND(watch, memory, "nvmlDeviceGetMemoryInfo");
    FIND(watch, limit, "nvmlDeviceSetMemoryLimits_v1");
    find_lists(watch);
    if (!watch->init || !watch->count || !watch->by_index || !watch->uuid || !watch->memory)
        return aq_fail(err, ENOSYS, "libnvidia-ml.so.1 lacks functions that every driver has");
    if (watch->init() != NVML_SUCCESS) {
        watch->shutdown = NULL;
        return aq_fail(err, ENOENT, "the NVIDIA driver does not start (nvmlInit)");
    }
    *ret = AQ_TAKE(watch);
    return 0;
}

void gpu_watch_free(struct gpu_watch *watch)
{
    if (!watch)
        return;
    if (watch->shutdown)
        (void)watch->shutdown();
    if (watch->library)
        (void)dlclose(watch->library);
    free(watch);
}

static bool describe(struct gpu_watch *watch, unsigned int index, nvmlDevice_t *handle,
                     struct gpu_device_info *ret)
{
    nvmlMemory_t memory = { 0 };

    *ret = (struct gpu_device_info){ 0 };
    if (watch->by_index(index, handle) != NVML_SUCCESS
        || watch->uuid(*handle, ret->uuid_text, sizeof(ret->uuid_text)) != NVML_SUCCESS
        || !gpu_uuid_read(ret->uuid_text, ret->uuid) || watch->memory(*handle, &memory) != NVML_SUCCESS)
        return false;
    ret->memory_bytes = memory.total;
    if (!watch->name || watch->name(*handle, ret->name, sizeof(ret->name)) != NVML_SUCCESS)
        (void)snprintf(ret->name, sizeof(ret->name), "GPU %u", index);
    return true;
}

int gpu_watch_devices(struct gpu_watch *watch, struct gpu_device_info *ret, size_t room,
                      struct aq_error *err)
{
    unsigned int count = 0;
    nvmlDevice_t handle;
    size_t found = 0;

    if (watch->count(&count) != NVML_SUCCESS)
        return aq_fail(err, EIO, "the NVIDIA driver does not count its devices");
    for (unsigned int i = 0; i < count && i < DEVICES_MAX && found < room; i++)
        found += describe(watch, i, &handle, &ret[found]);
    return (int)found;
}

/* Fill watch->list; how many processes are in one of the lists of a device. */
static unsigned int read_list(struct gpu_watch *watch, size_t kind, nvmlDevice_t handle)
{
    unsigned int count = PROCESSES_MAX;

    if (watch->lists[kind].now)
        return watch->lists[kind].now(handle, &count, watch->list) == NVML_SUCCESS ? count : 0;
    if (!watch->lists[kind].v1
        || watch->lists[kind].v1(handle, &count, watch->list_v1) != NVML_SUCCESS)
        return 0;
    for (unsigned int i = 0; i < count; i++)
        watch->list[i] = (nvmlProcessInfo_t){ .pid = watch->list_v1[i].pid,
                                              .usedGpuMemory = watch->list_v1[i].usedGpuMemory };
    return count;
}

/* A process with contexts of several kinds is in several lists, with the same memory. */
static void add_use(struct gpu_use *uses, size_t *count, size_t first, size_t room,
                    const struct gpu_use *use)
{
    for (size_t i = first; i < *count; i++)
        if (uses[i].pid == use->pid) {
            uses[i].bytes = AQ_MAX(uses[i].bytes, use->bytes);
            return;
        }
    if (*count < room)
        uses[(*count)++] = *use;
}

int gpu_watch_list(struct gpu_watch *watch, struct gpu_use *ret, size_t room, struct aq_error *err)
{
    unsigned int devices = 0;
    size_t count = 0;

    if (watch->count(&devices) != NVML_SUCCESS)
        return aq_fail(err, EIO, "the NVIDIA driver does not count its devices");
    for (unsigned int d = 0; d < devices && d < DEVICES_MAX; d++) {
        struct gpu_device_info info;
        size_t first = count;
        nvmlDevice_t handle;

        if (!describe(watch, d, &handle, &info))
            continue; /* fallen off the bus: nobody uses it */
        for (size_t kind = 0; kind < AQ_COUNT(watch->lists); kind++) {
            unsigned int found = read_list(watch, kind, handle);

            for (unsigned int i = 0; i < found; i++) {
                struct gpu_use use = { .pid = (int32_t)watch->list[i].pid,
                                       .bytes = watch->list[i].usedGpuMemory };

                memcpy(use.uuid, info.uuid, sizeof(use.uuid));
                if (use.bytes == (uint64_t)NVML_VALUE_NOT_AVAILABLE)
                    use.bytes = 0;
                add_use(ret, &count, first, room, &use);
            }
        }
    }
    return (int)count;
}

static bool find_device(struct gpu_watch *watch, const uint8_t uuid[16], nvmlDevice_t *ret)
{
    struct gpu_device_info info;
    unsigned int count = 0;

    if (watch->count(&count) != NVML_SUCCESS)
        return false;
    for (unsigned int i = 0; i < count && i < DEVICES_MAX; i++)
        if (describe(watch, i, ret, &info) && memcmp(info.uuid, uuid, sizeof(info.uuid)) == 0)
            return true;
    return false;
}

int gpu_watch_limit(struct gpu_watch *watch, const uint8_t uuid[16], const char *cgroup,
                    uint64_t bytes, struct aq_error *err)
{
    nvmlSetMemoryLimits_v1_t limits = { .nameSpace = cgroup, .hardLimit = bytes };
    nvmlDevice_t handle;
    nvmlReturn_t r;

    if (!watch->limit)
        return aq_fail(err, ENOSYS, "this driver does not limit memory by cgroup");
    if (!find_device(watch, uuid, &handle))
        return aq_fail(err, ENODEV, "the driver has no such device");
    r = watch->limit(handle, &limits);
    if (r == NVML_ERROR_NOT_SUPPORTED || r == NVML_ERROR_FUNCTION_NOT_FOUND)
        return aq_fail(err, ENOSYS, "this driver does not limit memory by cgroup");
    return r == NVML_SUCCESS ? 0 : aq_fail(err, EIO, "the driver does not limit memory: NVML error %d",
                                           (int)r);
}
