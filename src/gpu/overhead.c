/* SPDX-License-Identifier: Apache-2.0 */
/* overhead.c - memory of contexts and code, from the driver's process list */
#include "gpu/overhead.h"

#include <stdlib.h>

#include "gpu/device.h"
#include "gpu/hooks.h"
#include "gpu/ledger.h"
#include "gpu/shared_alloc.h"
#include "gpu/real_driver.h"
#include "gpu/region.h"

#define PROCESSES_MAX 1024

static bool overhead_is_self(unsigned int pid)
{
    const struct aq_gpu_owner *owner = &gpu_region.limits->owners[gpu_region.slot];

    return (int)pid == owner->host_pid || (int)pid == owner->own_pid;
}

/* The newest form of the list that the driver has; all have the pid first. */
static bool overhead_used_by_self(nvmlDevice_t handle, uint64_t *ret)
{
    union {
        nvmlProcessInfo_v1_t old[PROCESSES_MAX];
        nvmlProcessInfo_t new[PROCESSES_MAX];
    } *list = malloc(sizeof(*list));
    unsigned int count = PROCESSES_MAX;
    fn_nvmlDeviceGetComputeRunningProcesses_v2 *get =
        gpu_real.nvmlDeviceGetComputeRunningProcesses_v3
            ? gpu_real.nvmlDeviceGetComputeRunningProcesses_v3
            : gpu_real.nvmlDeviceGetComputeRunningProcesses_v2;
    nvmlReturn_t result = NVML_ERROR_FUNCTION_NOT_FOUND;
    bool found = false;

    if (!list)
        return false;
    if (get)
        result = get(handle, &count, list->new);
    else if (gpu_real.nvmlDeviceGetComputeRunningProcesses)
        result = gpu_real.nvmlDeviceGetComputeRunningProcesses(handle, &count, list->old);
    for (unsigned int i = 0; result == NVML_SUCCESS && i < count && !found; i++) {
        found = overhead_is_self(get ? list->new[i].pid : list->old[i].pid);
        *ret = get ? list->new[i].usedGpuMemory : list->old[i].usedGpuMemory;
    }
    free(list);
    return found && *ret != (uint64_t)NVML_VALUE_NOT_AVAILABLE;
}

/* One reference to NVML is kept: starting it costs milliseconds. */
static bool overhead_is_ready(void)
{
    static bool is_started;

    if (!__atomic_load_n(&is_started, __ATOMIC_ACQUIRE) && gpu_load_nvml() && gpu_real.nvmlInit_v2
        && gpu_real.nvmlInit_v2() == NVML_SUCCESS)
        __atomic_store_n(&is_started, true, __ATOMIC_RELEASE);
    return __atomic_load_n(&is_started, __ATOMIC_ACQUIRE);
}

bool overhead_follow(int device)
{
    nvmlDevice_t handle;
    uint64_t used = 0, known, uncharged;
    bool fits = true;

    if (!overhead_is_ready())
        return true;
    if (gpu_device_nvml_handle(device, &handle) && overhead_used_by_self(handle, &used)) {
        uncharged = shared_alloc_uncharged((uint32_t)device);
        known = ledger_charged((uint32_t)device) - ledger_overhead((uint32_t)device) + uncharged;
        used = used > known ? used - known : 0;
        /* drivers differ in whether they show memory charged to others here */
        if (uncharged && used < ledger_overhead((uint32_t)device))
            used = ledger_overhead((uint32_t)device);
        fits = ledger_set_overhead((uint32_t)device, used);
    }
    return fits;
}
