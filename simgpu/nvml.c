/* nvml.c - the simulated libnvidia-ml.so.1: looks at the card, takes no part in it */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "exports.h"

extern const int sim_cuda_version;

static int users;
static int card_fd = -1;

__attribute__((visibility("default"))) const char *nvmlErrorString(nvmlReturn_t error);

const char *nvmlErrorString(nvmlReturn_t error)
{
    switch (error) {
    case NVML_SUCCESS:
        return "Success";
    case NVML_ERROR_UNINITIALIZED:
        return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
        return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_ERROR_NO_PERMISSION:
        return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND:
        return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
        return "Insufficient Size";
    default:
        return "Unknown Error";
    }
}

static struct sim_card *card(void)
{
    return sim_card_to_look(&card_fd);
}

/* Slowness on demand. */
static void be_slow(void)
{
    uint32_t us = card()->faults.nvml_delay_us;

    if (us)
        (void)nanosleep(&(struct timespec){ .tv_sec = us / 1000000,
                                            .tv_nsec = (long)(us % 1000000) * 1000 },
                        NULL);
}

static nvmlReturn_t check(nvmlDevice_t handle, uint32_t *ret)
{
    uintptr_t number = (uintptr_t)handle;

    if (!__atomic_load_n(&users, __ATOMIC_RELAXED) || !card())
        return NVML_ERROR_UNINITIALIZED;
    be_slow();
    if (number < 1 || number > card()->device_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *ret = (uint32_t)number - 1;
    return NVML_SUCCESS;
}

#define CHECK(handle, device, good)                                                                \
    do {                                                                                           \
        nvmlReturn_t checked = check(handle, &(device));                                           \
                                                                                                   \
        if (checked != NVML_SUCCESS)                                                               \
            return checked;                                                                        \
        if (!(good))                                                                               \
            return NVML_ERROR_INVALID_ARGUMENT;                                                    \
    } while (0)

nvmlReturn_t nvmlInit_v2(void)
{
    if (!card())
        return NVML_ERROR_DRIVER_NOT_LOADED;
    (void)__atomic_add_fetch(&users, 1, __ATOMIC_RELAXED);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit(void)
{
    return nvmlInit_v2();
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    return nvmlInit_v2();
}

nvmlReturn_t nvmlShutdown(void)
{
    if (!__atomic_load_n(&users, __ATOMIC_RELAXED))
        return NVML_ERROR_UNINITIALIZED;
    (void)__atomic_sub_fetch(&users, 1, __ATOMIC_RELAXED);
    return NVML_SUCCESS;
}

static nvmlReturn_t put(char *to, unsigned int len, const char *text)
{
    if (!to)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= len)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    (void)snprintf(to, len, "%s", text);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int len)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "simulated.%d", sim_cuda_version / 10);
    return put(version, len, text);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int len)
{
    return nvmlSystemGetDriverVersion(version, len);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    if (!version)
        return NVML_ERROR_INVALID_ARGUMENT;
    *version = sim_cuda_version;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return nvmlSystemGetCudaDriverVersion(version);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int len)
{
    char path[64], text[256];
    FILE *file;
    size_t got;

    (void)snprintf(path, sizeof(path), "/proc/%u/comm", pid);
    if (!name || !(file = fopen(path, "re")))
        return NVML_ERROR_NOT_FOUND;
    got = fread(text, 1, sizeof(text) - 1, file);
    (void)fclose(file);
    text[got && text[got - 1] == '\n' ? got - 1 : got] = '\0';
    return put(name, len, text);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    if (!users || !card())
        return NVML_ERROR_UNINITIALIZED;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = card()->device_count;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    return nvmlDeviceGetCount_v2(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *handle)
{
    if (!users || !card())
        return NVML_ERROR_UNINITIALIZED;
    if (!handle || index >= card()->device_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *handle = (nvmlDevice_t)(uintptr_t)(index + 1);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *handle)
{
    return nvmlDeviceGetHandleByIndex_v2(index, handle);
}

static void uuid_text(uint32_t device, char text[64])
{
    const unsigned char *u = card()->devices[device].uuid;

    (void)snprintf(text, 64,
                   "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
                   u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
                   u[14], u[15]);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t handle, char *uuid, unsigned int len)
{
    char text[64];
    uint32_t device;

    CHECK(handle, device, uuid);
    uuid_text(device, text);
    return put(uuid, len, text);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *handle)
{
    char text[64];

    if (!users || !card())
        return NVML_ERROR_UNINITIALIZED;
    for (uint32_t i = 0; uuid && handle && i < card()->device_count; i++) {
        uuid_text(i, text);
        if (strcmp(text, uuid) == 0)
            return nvmlDeviceGetHandleByIndex_v2(i, handle);
    }
    return uuid && handle ? NVML_ERROR_NOT_FOUND : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_v1_t *uuid, nvmlDevice_t *handle)
{
    if (!uuid || uuid->type != NVML_UUID_TYPE_ASCII)
        return NVML_ERROR_INVALID_ARGUMENT;
    return nvmlDeviceGetHandleByUUID(uuid->value.str, handle);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t handle, nvmlPciInfo_t *info)
{
    uint32_t device;

    CHECK(handle, device, info);
    *info = (nvmlPciInfo_t){ .bus = device + 1, .pciDeviceId = 0x20b010de };
    (void)snprintf(info->busIdLegacy, sizeof(info->busIdLegacy), "0000:%02X:00.0", device + 1);
    (void)snprintf(info->busId, sizeof(info->busId), "00000000:%02X:00.0", device + 1);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t handle, nvmlPciInfo_t *info)
{
    return nvmlDeviceGetPciInfo_v3(handle, info);
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t handle, nvmlPciInfo_t *info)
{
    return nvmlDeviceGetPciInfo_v3(handle, info);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *handle)
{
    unsigned int domain, bus;

    if (!id || !handle || sscanf(id, "%x:%x", &domain, &bus) != 2)
        return NVML_ERROR_INVALID_ARGUMENT;
    return nvmlDeviceGetHandleByIndex_v2(bus - 1, handle);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *handle)
{
    return nvmlDeviceGetHandleByPciBusId_v2(id, handle);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned int *index)
{
    uint32_t device;

    CHECK(handle, device, index);
    *index = device;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t handle, unsigned int *minor)
{
    return nvmlDeviceGetIndex(handle, minor);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t handle, char *name, unsigned int len)
{
    uint32_t device;

    CHECK(handle, device, name);
    return put(name, len, card()->devices[device].name);
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t handle, char *serial, unsigned int len)
{
    char text[32];
    uint32_t device;

    CHECK(handle, device, serial);
    (void)snprintf(text, sizeof(text), "%012u", device + 1);
    return put(serial, len, text);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t handle, int *major, int *minor)
{
    uint32_t device;

    CHECK(handle, device, major && minor);
    *major = 8;
    *minor = 0;
    return NVML_SUCCESS;
}

/* Sensors of a card that has none: fixed figures. */
static nvmlReturn_t fixed(nvmlDevice_t handle, unsigned int *value, unsigned int number)
{
    uint32_t device;

    CHECK(handle, device, value);
    *value = number;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t handle, int sensor, unsigned int *celsius)
{
    (void)sensor;
    return fixed(handle, celsius, 40);
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t handle, unsigned int *milliwatts)
{
    return fixed(handle, milliwatts, 60000);
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t handle, unsigned int *milliwatts)
{
    return fixed(handle, milliwatts, 300000);
}

nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t handle, unsigned int *percent)
{
    return fixed(handle, percent, 30);
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t handle, int *state)
{
    return fixed(handle, (unsigned int *)state, 0);
}

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t handle, int *mode)
{
    return fixed(handle, (unsigned int *)mode, 1);
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t handle, int *mode)
{
    return fixed(handle, (unsigned int *)mode, 0);
}

nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t handle, unsigned int *cores)
{
    uint32_t device;

    CHECK(handle, device, cores);
    *cores = card()->devices[device].processors * 64;
    return NVML_SUCCESS;
}

static unsigned long long used_memory(uint32_t device)
{
    unsigned long long used;

    sim_lock(card());
    sim_reclaim(card(), card_fd);
    used = sim_memory_used(card(), device);
    sim_unlock(card());
    return used;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, nvmlMemory_t *memory)
{
    uint32_t device;

    CHECK(handle, device, memory);
    memory->total = card()->devices[device].memory;
    memory->used = used_memory(device);
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, nvmlMemory_v2_t *memory)
{
    uint32_t device;

    CHECK(handle, device, memory);
    if (memory->version != NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memory->total = card()->devices[device].memory;
    memory->reserved = 0;
    memory->used = used_memory(device);
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t handle, nvmlBAR1Memory_t *memory)
{
    uint32_t device;

    CHECK(handle, device, memory);
    *memory = (nvmlBAR1Memory_t){ 256u << 20, 254u << 20, 2u << 20 };
    return NVML_SUCCESS;
}

/* Clients with a context on the device. */
static unsigned int list(uint32_t device, nvmlProcessInfo_t *out, unsigned int room)
{
    unsigned int count = 0;

    if (card()->faults.hide_process_list)
        return 0;
    sim_lock(card());
    sim_reclaim(card(), card_fd);
    for (uint32_t i = 0; i < SIM_CLIENTS_MAX; i++) {
        const struct sim_use *use = &card()->clients[i].uses[device];
        uint64_t held = use->memory + use->contexts + sim_shared_by_others(card(), device, i);
        int pid = held ? sim_pid_of(card(), card_fd, i) : 0;

        if (pid <= 0) /* of another container: as NVIDIA's, which shows none of those */
            continue;
        if (count < room)
            out[count] = (nvmlProcessInfo_t){ (unsigned int)pid, held, 0xffffffffu,
                                              0xffffffffu };
        count++;
    }
    sim_unlock(card());
    return count;
}

static nvmlReturn_t answer(unsigned int found, unsigned int *count)
{
    bool fits = found <= *count;

    *count = found;
    return fits ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t handle, unsigned int *count,
                                                     nvmlProcessInfo_t *infos)
{
    uint32_t device;

    CHECK(handle, device, count);
    return answer(list(device, infos, infos ? *count : 0), count);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t handle, unsigned int *count,
                                                     nvmlProcessInfo_t *infos)
{
    return nvmlDeviceGetComputeRunningProcesses_v3(handle, count, infos);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t handle, unsigned int *count,
                                                  nvmlProcessInfo_v1_t *infos)
{
    nvmlProcessInfo_t found[SIM_CLIENTS_MAX];
    uint32_t device;
    unsigned int number;

    CHECK(handle, device, count);
    number = list(device, found, SIM_CLIENTS_MAX);
    for (unsigned int i = 0; infos && i < number && i < *count; i++)
        infos[i] = (nvmlProcessInfo_v1_t){ found[i].pid, found[i].usedGpuMemory };
    return answer(number, count);
}

/* No graphics and no MPS here. */
static nvmlReturn_t nobody(nvmlDevice_t handle, unsigned int *count)
{
    uint32_t device;

    CHECK(handle, device, count);
    *count = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t handle, unsigned int *count,
                                                   nvmlProcessInfo_v1_t *infos)
{
    (void)infos;
    return nobody(handle, count);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t handle, unsigned int *count,
                                                      nvmlProcessInfo_t *infos)
{
    (void)infos;
    return nobody(handle, count);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t handle, unsigned int *count,
                                                      nvmlProcessInfo_t *infos)
{
    (void)infos;
    return nobody(handle, count);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t handle, unsigned int *count,
                                                        nvmlProcessInfo_t *infos)
{
    (void)infos;
    return nobody(handle, count);
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t handle, nvmlUtilization_t *rates)
{
    uint32_t device;
    int64_t now = sim_now_ns();

    CHECK(handle, device, rates);
    sim_lock(card());
    (void)sim_advance(card(), device, now);
    *rates = (nvmlUtilization_t){ .gpu = sim_utilization(card(), device, -1, now) };
    sim_unlock(card());
    return NVML_SUCCESS;
}

/* One sample for each client that used the device in the last second. */
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t handle,
                                             nvmlProcessUtilizationSample_t *samples,
                                             unsigned int *count, unsigned long long since)
{
    unsigned int found = 0;
    uint32_t device;
    int64_t now = sim_now_ns();

    (void)since;
    CHECK(handle, device, count);
    sim_lock(card());
    sim_reclaim(card(), card_fd);
    (void)sim_advance(card(), device, now);
    for (uint32_t i = 0; i < SIM_CLIENTS_MAX; i++) {
        int pid = sim_pid_of(card(), card_fd, i);
        uint32_t percent = pid > 0 ? sim_utilization(card(), device, (int)i, now) : 0;

        if (!percent)
            continue;
        if (samples && found < *count)
            samples[found] = (nvmlProcessUtilizationSample_t){
                .pid = (unsigned int)pid,
                .timeStamp = (unsigned long long)now / 1000,
                .smUtil = percent,
            };
        found++;
    }
    sim_unlock(card());
    return answer(found, count);
}

/* ---- memory by cgroup ---- */

/* Its place, or one that is free or whose cgroup is gone; under the lock. */
static struct sim_limit *find_limit(uint32_t device, const char *cgroup)
{
    struct sim_limit *spare = NULL;

    for (uint32_t i = 0; i < SIM_LIMITS_MAX; i++) {
        struct sim_limit *limit = &card()->limits[i];

        if (limit->device == device && strcmp(limit->cgroup, cgroup) == 0)
            return limit;
        if (!spare && (!limit->cgroup[0] || access(limit->cgroup, F_OK) < 0))
            spare = limit;
    }
    return spare;
}

nvmlReturn_t nvmlDeviceSetMemoryLimits_v1(nvmlDevice_t handle, nvmlSetMemoryLimits_v1_t *limits)
{
    struct sim_limit *place;
    uint32_t device;

    CHECK(handle, device, limits && limits->nameSpace
                              && strlen(limits->nameSpace) < sizeof(place->cgroup));
    if (access(limits->nameSpace, F_OK) < 0)
        return NVML_ERROR_NOT_FOUND;
    sim_lock(card());
    place = find_limit(device, limits->nameSpace);
    if (place) {
        place->device = device;
        place->soft = limits->softLimit;
        place->hard = limits->hardLimit;
        memcpy(place->cgroup, limits->nameSpace, strlen(limits->nameSpace) + 1);
    }
    sim_unlock(card());
    return place ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

nvmlReturn_t nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t handle, nvmlGetMemoryLimits_v1_t *limits)
{
    const struct sim_limit *place;
    nvmlReturn_t r = NVML_ERROR_NOT_FOUND;
    uint32_t device;

    CHECK(handle, device, limits && limits->nameSpace);
    sim_lock(card());
    place = find_limit(device, limits->nameSpace);
    if (place && strcmp(place->cgroup, limits->nameSpace) == 0) {
        limits->softLimit = place->soft;
        limits->hardLimit = place->hard;
        limits->currentUsed = 0;
        r = NVML_SUCCESS;
    }
    sim_unlock(card());
    return r;
}
