/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_usage.c - NVML shows the slice: its memory, its processes, its use
 *
 * Memory and process lists come from the region, so a container sees its own
 * processes under the pids it knows them by, whatever the driver knows of pid
 * namespaces. Use comes from the driver's samples of these processes, scaled
 * so that a slice which uses all of its share shows 100 percent.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/charge.h"
#include "gpu/device.h"
#include "gpu/hooks.h"
#include "gpu/region.h"

#define SAMPLES_MAX 1024
#define NO_INSTANCE 0xffffffffu

static unsigned long long nvml_usage_slice_bytes(int device)
{
    return gpu_region_limit((uint32_t)device) << AQ_GPU_GRANULE_SHIFT;
}

static unsigned long long nvml_usage_used_bytes(int device)
{
    unsigned long long used = charge_sum(gpu_region.usage, (uint32_t)device)
                              << AQ_GPU_GRANULE_SHIFT;

    return used < nvml_usage_slice_bytes(device) ? used : nvml_usage_slice_bytes(device);
}

nvmlReturn_t on_nvml_memory(fn_nvmlDeviceGetMemoryInfo *real, nvmlDevice_t handle,
                            nvmlMemory_t *memory)
{
    nvmlReturn_t result = real(handle, memory);
    int device = gpu_device_of_nvml(handle);

    if (result != NVML_SUCCESS || !memory)
        return result;
    *memory = (nvmlMemory_t){ 0 };
    if (device >= 0) {
        memory->total = nvml_usage_slice_bytes(device);
        memory->used = nvml_usage_used_bytes(device);
        memory->free = memory->total - memory->used;
    }
    return result;
}

nvmlReturn_t on_nvml_memory_v2(fn_nvmlDeviceGetMemoryInfo_v2 *real, nvmlDevice_t handle,
                               nvmlMemory_v2_t *memory)
{
    nvmlReturn_t result = real(handle, memory);
    int device = gpu_device_of_nvml(handle);

    if (result != NVML_SUCCESS || !memory)
        return result;
    *memory = (nvmlMemory_v2_t){ .version = memory->version };
    if (device >= 0) {
        memory->total = nvml_usage_slice_bytes(device);
        memory->used = nvml_usage_used_bytes(device);
        memory->free = memory->total - memory->used;
    }
    return result;
}

/* The window to the host is shared; what others map in it is not shown. */
nvmlReturn_t on_nvml_bar1(fn_nvmlDeviceGetBAR1MemoryInfo *real, nvmlDevice_t handle,
                          nvmlBAR1Memory_t *memory)
{
    nvmlReturn_t result = real(handle, memory);
    int device = gpu_device_of_nvml(handle);

    if (result != NVML_SUCCESS || !memory)
        return result;
    if (device < 0 || memory->bar1Used > nvml_usage_used_bytes(device))
        memory->bar1Used = device < 0 ? 0 : nvml_usage_used_bytes(device);
    memory->bar1Free = memory->bar1Total - memory->bar1Used;
    return result;
}

/* The slot's process if it holds something on the device. */
static bool nvml_usage_holds(int device, uint32_t slot, unsigned int *pid,
                             unsigned long long *bytes)
{
    *pid = (unsigned int)gpu_region.limits->owners[slot].own_pid;
    *bytes = charge_of_slot(gpu_region.usage, slot, (uint32_t)device) << AQ_GPU_GRANULE_SHIFT;
    return gpu_region.limits->owners[slot].host_pid && *bytes;
}

static bool nvml_usage_is_compute_list(void *real)
{
    return real == (void *)gpu_real.nvmlDeviceGetComputeRunningProcesses
           || real == (void *)gpu_real.nvmlDeviceGetComputeRunningProcesses_v2
           || real == (void *)gpu_real.nvmlDeviceGetComputeRunningProcesses_v3;
}

/* Put each process into 'out' while there is room; how many there are. */
static unsigned int nvml_usage_list_processes(int device, nvmlProcessDetail_v1_t *out,
                                              unsigned int room)
{
    unsigned int count = 0, pid;
    unsigned long long bytes;

    for (uint32_t slot = 1; device >= 0 && slot < AQ_GPU_SLOTS_MAX; slot++)
        if (nvml_usage_holds(device, slot, &pid, &bytes)) {
            if (count < room)
                out[count] = (nvmlProcessDetail_v1_t){ pid, bytes, NO_INSTANCE, NO_INSTANCE, 0 };
            count++;
        }
    return count;
}

/* The list for a caller with room for *count; false = it does not fit, *count says how many. */
static nvmlProcessDetail_v1_t *nvml_usage_take_list(void *real, nvmlDevice_t handle,
                                                    unsigned int *count, bool has_array,
                                                    nvmlReturn_t *ret)
{
    nvmlProcessDetail_v1_t *list = malloc(AQ_GPU_SLOTS_MAX * sizeof(*list));
    unsigned int found;

    *ret = NVML_ERROR_UNKNOWN;
    if (!list)
        return NULL;
    found = nvml_usage_is_compute_list(real)
                ? nvml_usage_list_processes(gpu_device_of_nvml(handle), list, AQ_GPU_SLOTS_MAX)
                : 0;
    *ret = found > *count || (found && !has_array) ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
    *count = found;
    return list;
}

nvmlReturn_t on_nvml_processes(fn_nvmlDeviceGetComputeRunningProcesses_v2 *real,
                               nvmlDevice_t handle, unsigned int *count, nvmlProcessInfo_t *infos)
{
    nvmlProcessDetail_v1_t *list;
    nvmlReturn_t result;

    if (!count || !handle)
        return real(handle, count, infos);
    list = nvml_usage_take_list((void *)real, handle, count, infos != NULL, &result);
    for (unsigned int i = 0; list && result == NVML_SUCCESS && i < *count; i++)
        infos[i] = (nvmlProcessInfo_t){ list[i].pid, list[i].usedGpuMemory, NO_INSTANCE,
                                        NO_INSTANCE };
    free(list);
    return result;
}

nvmlReturn_t on_nvml_processes_v1(fn_nvmlDeviceGetComputeRunningProcesses *real,
                                  nvmlDevice_t handle, unsigned int *count,
                                  nvmlProcessInfo_v1_t *infos)
{
    nvmlProcessDetail_v1_t *list;
    nvmlReturn_t result;

    if (!count || !handle)
        return real(handle, count, infos);
    list = nvml_usage_take_list((void *)real, handle, count, infos != NULL, &result);
    for (unsigned int i = 0; list && result == NVML_SUCCESS && i < *count; i++)
        infos[i] = (nvmlProcessInfo_v1_t){ list[i].pid, list[i].usedGpuMemory };
    free(list);
    return result;
}

nvmlReturn_t on_nvml_process_details(fn_nvmlDeviceGetRunningProcessDetailList *real,
                                     nvmlDevice_t handle, nvmlProcessDetailList_v1_t *list)
{
    unsigned int found;

    if (!list || !handle || list->version != NVML_STRUCT_VERSION(nvmlProcessDetailList_v1_t, 1))
        return real(handle, list);
    found = list->mode == NVML_PROCESS_MODE_COMPUTE
                ? nvml_usage_list_processes(gpu_device_of_nvml(handle), list->procArray,
                                            list->procArray ? list->numProcArrayEntries : 0)
                : 0;
    if (found > list->numProcArrayEntries || (found && !list->procArray)) {
        list->numProcArrayEntries = found;
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    list->numProcArrayEntries = found;
    return NVML_SUCCESS;
}

/* The container's name for a pid of the driver; false = another container's. */
static bool nvml_usage_translate(unsigned int pid, unsigned int *ret)
{
    for (uint32_t slot = 1; gpu_region_is_attached() && slot < AQ_GPU_SLOTS_MAX; slot++) {
        const struct aq_gpu_owner *owner = &gpu_region.limits->owners[slot];

        if (owner->host_pid && (owner->host_pid == (int)pid || owner->own_pid == (int)pid)) {
            *ret = (unsigned int)owner->own_pid;
            return true;
        }
    }
    return false;
}

static unsigned int nvml_usage_scale(int device, unsigned int percent)
{
    uint32_t share = gpu_region.limits->devices[device].share;

    if (share && share < AQ_GPU_WHOLE)
        percent = (unsigned int)((uint64_t)percent * AQ_GPU_WHOLE / share);
    return percent > 100 ? 100 : percent;
}

/* The driver's samples of this container's processes, translated and scaled.
 * Caller frees *ret.
 */
static nvmlReturn_t nvml_usage_own_samples(nvmlDevice_t handle, unsigned long long since,
                                           nvmlProcessUtilizationSample_t **ret,
                                           unsigned int *ret_count)
{
    nvmlProcessUtilizationSample_t *all = calloc(SAMPLES_MAX, sizeof(*all));
    int device = gpu_device_of_nvml(handle);
    unsigned int count = SAMPLES_MAX, kept = 0;
    nvmlReturn_t result = NVML_ERROR_FUNCTION_NOT_FOUND;

    if (!all)
        return NVML_ERROR_UNKNOWN;
    if (gpu_real.nvmlDeviceGetProcessUtilization)
        result = gpu_real.nvmlDeviceGetProcessUtilization(handle, all, &count, since);
    for (unsigned int i = 0; result == NVML_SUCCESS && device >= 0 && i < count; i++) {
        nvmlProcessUtilizationSample_t sample = all[i];

        if (!nvml_usage_translate(sample.pid, &sample.pid))
            continue;
        sample.smUtil = nvml_usage_scale(device, sample.smUtil);
        all[kept++] = sample;
    }
    *ret = all;
    *ret_count = kept;
    return result;
}

nvmlReturn_t on_nvml_process_util(fn_nvmlDeviceGetProcessUtilization *real, nvmlDevice_t handle,
                                  nvmlProcessUtilizationSample_t *samples, unsigned int *count,
                                  unsigned long long since)
{
    nvmlProcessUtilizationSample_t *own = NULL;
    unsigned int found = 0;
    nvmlReturn_t result;

    if (!handle || !count)
        return real(handle, samples, count, since);
    result = nvml_usage_own_samples(handle, since, &own, &found);
    if (result == NVML_SUCCESS && (!samples || *count < found)) {
        result = NVML_ERROR_INSUFFICIENT_SIZE;
        *count = found ? found : 1;
    } else if (result == NVML_SUCCESS) {
        memcpy(samples, own, found * sizeof(*own));
        *count = found;
    }
    free(own);
    return result;
}

nvmlReturn_t on_nvml_processes_util(fn_nvmlDeviceGetProcessesUtilizationInfo *real,
                                    nvmlDevice_t handle, nvmlProcessesUtilizationInfo_v1_t *info)
{
    nvmlReturn_t result = real(handle, info);
    int device = gpu_device_of_nvml(handle);
    unsigned int kept = 0;

    if (result != NVML_SUCCESS || !info || !info->procUtilArray)
        return result;
    for (unsigned int i = 0; device >= 0 && i < info->processSamplesCount; i++) {
        nvmlProcessUtilizationInfo_v1_t sample = info->procUtilArray[i];

        if (!nvml_usage_translate(sample.pid, &sample.pid))
            continue;
        sample.smUtil = nvml_usage_scale(device, sample.smUtil);
        info->procUtilArray[kept++] = sample;
    }
    info->processSamplesCount = kept;
    return result;
}

/* The latest sample of each process, summed. */
nvmlReturn_t on_nvml_utilization(fn_nvmlDeviceGetUtilizationRates *real, nvmlDevice_t handle,
                                 nvmlUtilization_t *rates)
{
    nvmlReturn_t result = real(handle, rates);
    nvmlProcessUtilizationSample_t *own = NULL;
    unsigned int count = 0;

    if (result != NVML_SUCCESS || !rates)
        return result;
    *rates = (nvmlUtilization_t){ 0 };
    if (nvml_usage_own_samples(handle, 0, &own, &count) == NVML_SUCCESS)
        for (unsigned int i = 0; i < count; i++) {
            rates->gpu += own[i].smUtil;
            rates->memory += own[i].memUtil;
        }
    free(own);
    rates->gpu = rates->gpu > 100 ? 100 : rates->gpu;
    rates->memory = rates->memory > 100 ? 100 : rates->memory;
    return NVML_SUCCESS;
}

/* Samples of the whole device's use would show the others'. */
nvmlReturn_t on_nvml_samples(fn_nvmlDeviceGetSamples *real, nvmlDevice_t handle, int type,
                             unsigned long long since, int *value_type, unsigned int *count,
                             nvmlSample_t *samples)
{
    if (type == NVML_GPU_UTILIZATION_SAMPLES || type == NVML_MEMORY_UTILIZATION_SAMPLES)
        return NVML_ERROR_NOT_SUPPORTED;
    return real(handle, type, since, value_type, count, samples);
}

nvmlReturn_t on_nvml_accounting_pids(fn_nvmlDeviceGetAccountingPids *real, nvmlDevice_t handle,
                                     unsigned int *count, unsigned int *pids)
{
    nvmlReturn_t result = real(handle, count, pids);
    unsigned int kept = 0;

    if (result != NVML_SUCCESS || !count || !pids)
        return result;
    for (unsigned int i = 0; i < *count; i++)
        if (nvml_usage_translate(pids[i], &pids[kept]))
            kept++;
    *count = kept;
    return result;
}

/* The driver's name for one of our pids. */
static bool nvml_usage_host_pid(unsigned int own, unsigned int *ret)
{
    for (uint32_t slot = 1; gpu_region_is_attached() && slot < AQ_GPU_SLOTS_MAX; slot++) {
        const struct aq_gpu_owner *owner = &gpu_region.limits->owners[slot];

        if (owner->host_pid && owner->own_pid == (int)own) {
            *ret = (unsigned int)owner->host_pid;
            return true;
        }
    }
    return false;
}

nvmlReturn_t on_nvml_accounting(fn_nvmlDeviceGetAccountingStats *real, nvmlDevice_t handle,
                                unsigned int pid, nvmlAccountingStats_t *stats)
{
    return nvml_usage_host_pid(pid, &pid) ? real(handle, pid, stats) : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t on_nvml_accounting_v2(fn_nvmlDeviceGetAccountingStats_v2 *real, nvmlDevice_t handle,
                                   nvmlAccountingStats_v2_t *stats)
{
    unsigned int own;
    nvmlReturn_t result;

    if (!stats)
        return real(handle, stats);
    own = stats->pid;
    if (!nvml_usage_host_pid(own, &stats->pid))
        return NVML_ERROR_NOT_FOUND;
    result = real(handle, stats);
    stats->pid = own;
    return result;
}
