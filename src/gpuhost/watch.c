#include "gpuhost/watch.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gpu/charge.h"
#include "gpu/nvml.h"

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
    nvmlReturn_t (*processes)(nvmlDevice_t handle, unsigned int *count, nvmlProcessInfo_t *infos);
    nvmlReturn_t (*processes_v1)(nvmlDevice_t handle, unsigned int *count,
                                 nvmlProcessInfo_v1_t *infos);
    nvmlProcessInfo_t list[PROCESSES_MAX];
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

int gpu_watch_new(struct gpu_watch **ret, struct aq_error *err)
{
    AQ_CLEANUP(gpu_watch_freep) struct gpu_watch *watch = calloc(1, sizeof(*watch));

    if (!watch)
        return aq_fail(err, ENOMEM, "GPU watchdog");
    watch->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!watch->library)
        return aq_fail(err, ENOENT, "no NVIDIA driver here: %s", dlerror());
    FIND(watch, init, "nvmlInit_v2", "nvmlInit");
    FIND(watch, shutdown, "nvmlShutdown");
    FIND(watch, count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount");
    FIND(watch, by_index, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex");
    FIND(watch, uuid, "nvmlDeviceGetUUID");
    FIND(watch, name, "nvmlDeviceGetName");
    FIND(watch, memory, "nvmlDeviceGetMemoryInfo");
    FIND(watch, processes, "nvmlDeviceGetComputeRunningProcesses_v3",
         "nvmlDeviceGetComputeRunningProcesses_v2");
    FIND(watch, processes_v1, "nvmlDeviceGetComputeRunningProcesses");
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

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "GPU-01234567-..." */
static bool read_uuid(const char *text, uint8_t ret[16])
{
    size_t digits = 0;

    for (text = strchr(text, '-'); text && *text && digits < 32; text++) {
        int value = hex(*text);

        if (value < 0)
            continue;
        ret[digits / 2] = (uint8_t)(digits % 2 ? ret[digits / 2] << 4 | value : value);
        digits++;
    }
    return digits == 32;
}

static bool describe(struct gpu_watch *watch, unsigned int index, nvmlDevice_t *handle,
                     struct gpu_device_info *ret)
{
    nvmlMemory_t memory = { 0 };

    *ret = (struct gpu_device_info){ 0 };
    if (watch->by_index(index, handle) != NVML_SUCCESS
        || watch->uuid(*handle, ret->uuid_text, sizeof(ret->uuid_text)) != NVML_SUCCESS
        || !read_uuid(ret->uuid_text, ret->uuid) || watch->memory(*handle, &memory) != NVML_SUCCESS)
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

/* Fill watch->list; how many processes are on the device. */
static unsigned int list_processes(struct gpu_watch *watch, nvmlDevice_t handle)
{
    unsigned int count = PROCESSES_MAX;
    nvmlProcessInfo_v1_t *old;

    if (watch->processes)
        return watch->processes(handle, &count, watch->list) == NVML_SUCCESS ? count : 0;
    old = watch->processes_v1 ? calloc(PROCESSES_MAX, sizeof(*old)) : NULL;
    if (!old || watch->processes_v1(handle, &count, old) != NVML_SUCCESS)
        count = 0;
    for (unsigned int i = 0; i < count; i++)
        watch->list[i] = (nvmlProcessInfo_t){ .pid = old[i].pid,
                                              .usedGpuMemory = old[i].usedGpuMemory };
    free(old);
    return count;
}

static uint32_t slot_of(const struct aq_gpu_limits *limits, pid_t pid)
{
    for (uint32_t slot = 1; slot < AQ_GPU_SLOTS_MAX; slot++)
        if (limits->owners[slot].host_pid == pid)
            return slot;
    return 0;
}

/* Is something wrong with one process of the driver's list? */
static bool judge(struct gpu_share *share, uint32_t device, const nvmlProcessInfo_t *info,
                  struct gpu_finding *ret)
{
    uint32_t slot = slot_of(gpu_share_limits(share), (pid_t)info->pid);
    uint64_t used = info->usedGpuMemory == (uint64_t)NVML_VALUE_NOT_AVAILABLE
                        ? 0
                        : info->usedGpuMemory;

    *ret = (struct gpu_finding){ .pid = (pid_t)info->pid, .device = device, .used_bytes = used };
    if (!slot) {
        ret->kind = GPU_UNREGISTERED;
        return true;
    }
    ret->kind = GPU_UNDERSTATED;
    ret->charged_bytes = charge_of_slot(gpu_share_usage(share), slot, device)
                         << AQ_GPU_GRANULE_SHIFT;
    return used > ret->charged_bytes + GPU_WATCH_TOLERANCE;
}

int gpu_watch_scan(struct gpu_watch *watch, struct gpu_share *share,
                   bool (*belongs)(pid_t pid, void *data), void *data, struct gpu_finding *ret,
                   size_t room, struct aq_error *err)
{
    const struct aq_gpu_limits *limits = gpu_share_limits(share);
    int found = 0;

    for (uint32_t device = 0; device < limits->device_count; device++) {
        nvmlDevice_t handle;
        unsigned int count;

        if (!find_device(watch, limits->devices[device].uuid, &handle))
            return aq_fail(err, ENODEV, "a device of the slice is gone from the driver's list");
        count = list_processes(watch, handle);
        for (unsigned int i = 0; i < count; i++) {
            struct gpu_finding finding;

            if (!belongs((pid_t)watch->list[i].pid, data)
                || !judge(share, device, &watch->list[i], &finding))
                continue;
            if ((size_t)found < room)
                ret[found] = finding;
            found++;
        }
    }
    return found;
}

uint64_t gpu_watch_used(struct gpu_watch *watch, const uint8_t uuid[16], pid_t pid)
{
    nvmlDevice_t handle;
    unsigned int count = find_device(watch, uuid, &handle) ? list_processes(watch, handle) : 0;

    for (unsigned int i = 0; i < count; i++)
        if ((pid_t)watch->list[i].pid == pid)
            return watch->list[i].usedGpuMemory;
    return 0;
}
