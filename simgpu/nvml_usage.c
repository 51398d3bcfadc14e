/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_usage.c - the simulated libnvidia-ml.so.1: memory, processes, utilization */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "nvml_internal.h"

static unsigned long long nvml_used_memory(uint32_t device)
{
    unsigned long long used;

    sim_lock(sim_nvml_card());
    sim_reclaim(sim_nvml_card(), sim_nvml_fd);
    used = sim_memory_used(sim_nvml_card(), device);
    sim_unlock(sim_nvml_card());
    return used;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, nvmlMemory_t *memory)
{
    uint32_t device;

    SIM_CHECK_DEVICE(handle, device, memory);
    memory->total = sim_nvml_card()->devices[device].memory;
    memory->used = nvml_used_memory(device);
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, nvmlMemory_v2_t *memory)
{
    uint32_t device;

    SIM_CHECK_DEVICE(handle, device, memory);
    if (memory->version != NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memory->total = sim_nvml_card()->devices[device].memory;
    memory->reserved = 0;
    memory->used = nvml_used_memory(device);
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t handle, nvmlBAR1Memory_t *memory)
{
    uint32_t device;

    SIM_CHECK_DEVICE(handle, device, memory);
    *memory = (nvmlBAR1Memory_t){ 256u << 20, 254u << 20, 2u << 20 };
    return NVML_SUCCESS;
}

/* Clients with a context on the device. */
static unsigned int nvml_list_processes(uint32_t device, nvmlProcessInfo_t *out, unsigned int room)
{
    unsigned int count = 0;

    if (sim_nvml_card()->faults.hide_process_list)
        return 0;
    sim_lock(sim_nvml_card());
    sim_reclaim(sim_nvml_card(), sim_nvml_fd);
    for (uint32_t i = 0; i < SIM_CLIENTS_MAX; i++) {
        const struct sim_use *use = &sim_nvml_card()->clients[i].uses[device];
        uint64_t held = use->memory + use->contexts
                        + sim_shared_by_others(sim_nvml_card(), device, i);
        int pid = held ? sim_pid_of(sim_nvml_card(), sim_nvml_fd, i) : 0;

        if (pid <= 0) /* of another container: as NVIDIA's, which shows none of those */
            continue;
        if (count < room)
            out[count] = (nvmlProcessInfo_t){ (unsigned int)pid, held, 0xffffffffu, 0xffffffffu };
        count++;
    }
    sim_unlock(sim_nvml_card());
    return count;
}

static nvmlReturn_t nvml_set_count(unsigned int found, unsigned int *count)
{
    bool fits = found <= *count;

    *count = found;
    return fits ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t handle, unsigned int *count,
                                                     nvmlProcessInfo_t *infos)
{
    uint32_t device;

    SIM_CHECK_DEVICE(handle, device, count);
    return nvml_set_count(nvml_list_processes(device, infos, infos ? *count : 0), count);
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

    SIM_CHECK_DEVICE(handle, device, count);
    number = nvml_list_processes(device, found, SIM_CLIENTS_MAX);
    for (unsigned int i = 0; infos && i < number && i < *count; i++)
        infos[i] = (nvmlProcessInfo_v1_t){ found[i].pid, found[i].usedGpuMemory };
    return nvml_set_count(number, count);
}

/* No graphics and no MPS here. */
static nvmlReturn_t nvml_empty_list(nvmlDevice_t handle, unsigned int *count)
{
    uint32_t device;

    SIM_CHECK_DEVICE(handle, device, count);
    *count = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t handle, unsigned int *count,
                                                   nvmlProcessInfo_v1_t *infos)
{
    (void)infos;
    return nvml_empty_list(handle, count);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t handle, unsigned int *count,
                                                      nvmlProcessInfo_t *infos)
{
    (void)infos;
    return nvml_empty_list(handle, count);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t handle, unsigned int *count,
                                                      nvmlProcessInfo_t *infos)
{
    (void)infos;
    return nvml_empty_list(handle, count);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t handle, unsigned int *count,
                                                        nvmlProcessInfo_t *infos)
{
    (void)infos;
    return nvml_empty_list(handle, count);
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t handle, nvmlUtilization_t *rates)
{
    uint32_t device;
    int64_t now = sim_now_ns();

    SIM_CHECK_DEVICE(handle, device, rates);
    sim_lock(sim_nvml_card());
    (void)sim_advance(sim_nvml_card(), device, now);
    *rates = (nvmlUtilization_t){ .gpu = sim_utilization(sim_nvml_card(), device, -1, now) };
    sim_unlock(sim_nvml_card());
    return NVML_SUCCESS;
}

/* One sample for each client that used the device in the last second; half of that time it was busy
 * with memory.
 */
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t handle,
                                             nvmlProcessUtilizationSample_t *samples,
                                             unsigned int *count, unsigned long long since)
{
    unsigned int found = 0;
    uint32_t device;
    int64_t now = sim_now_ns();

    (void)since;
    SIM_CHECK_DEVICE(handle, device, count);
    sim_lock(sim_nvml_card());
    sim_reclaim(sim_nvml_card(), sim_nvml_fd);
    (void)sim_advance(sim_nvml_card(), device, now);
    for (uint32_t i = 0; i < SIM_CLIENTS_MAX; i++) {
        int pid = sim_pid_of(sim_nvml_card(), sim_nvml_fd, i);
        uint32_t percent = pid > 0 ? sim_utilization(sim_nvml_card(), device, (int)i, now) : 0;

        if (!percent)
            continue;
        if (samples && found < *count)
            samples[found] = (nvmlProcessUtilizationSample_t){
                .pid = (unsigned int)pid,
                .timeStamp = (unsigned long long)now / 1000,
                .smUtil = percent,
                .memUtil = (percent + 1) / 2,
            };
        found++;
    }
    sim_unlock(sim_nvml_card());
    return nvml_set_count(found, count);
}

/* ---- memory by cgroup ---- */

/* Its place, or one that is free or whose cgroup is removed; under the lock. */
static struct sim_limit *nvml_find_limit(uint32_t device, const char *cgroup)
{
    struct sim_limit *spare = NULL;

    for (uint32_t i = 0; i < SIM_LIMITS_MAX; i++) {
        struct sim_limit *limit = &sim_nvml_card()->limits[i];

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

    SIM_CHECK_DEVICE(handle, device,
                     limits && limits->nameSpace
                         && strlen(limits->nameSpace) < sizeof(place->cgroup));
    if (access(limits->nameSpace, F_OK) < 0)
        return NVML_ERROR_NOT_FOUND;
    sim_lock(sim_nvml_card());
    place = nvml_find_limit(device, limits->nameSpace);
    if (place) {
        place->device = device;
        place->soft = limits->softLimit;
        place->hard = limits->hardLimit;
        memcpy(place->cgroup, limits->nameSpace, strlen(limits->nameSpace) + 1);
    }
    sim_unlock(sim_nvml_card());
    return place ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

nvmlReturn_t nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t handle, nvmlGetMemoryLimits_v1_t *limits)
{
    const struct sim_limit *place;
    nvmlReturn_t r = NVML_ERROR_NOT_FOUND;
    uint32_t device;

    SIM_CHECK_DEVICE(handle, device, limits && limits->nameSpace);
    sim_lock(sim_nvml_card());
    place = nvml_find_limit(device, limits->nameSpace);
    if (place && strcmp(place->cgroup, limits->nameSpace) == 0) {
        limits->softLimit = place->soft;
        limits->hardLimit = place->hard;
        limits->currentUsed = 0;
        r = NVML_SUCCESS;
    }
    sim_unlock(sim_nvml_card());
    return r;
}
