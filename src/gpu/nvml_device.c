/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_device.c - NVML shows the granted devices and no others
 *
 * Handles are the driver's own. Without a region there is no device; NVML
 * itself works, so that tools say so instead of failing.
 */
#include "gpu/device.h"
#include "gpu/hooks.h"
#include "gpu/region.h"

nvmlReturn_t on_nvml_init(fn_nvmlInit *real)
{
    (void)gpu_region_attach();
    return real();
}

nvmlReturn_t on_nvml_init_flags(fn_nvmlInitWithFlags *real, unsigned int flags)
{
    (void)gpu_region_attach();
    return real(flags);
}

static fn_nvmlDeviceGetHandleByIndex *nvml_device_real_by_index(void)
{
    return gpu_real.nvmlDeviceGetHandleByIndex_v2 ? gpu_real.nvmlDeviceGetHandleByIndex_v2
                                                  : gpu_real.nvmlDeviceGetHandleByIndex;
}

nvmlReturn_t on_nvml_count(fn_nvmlDeviceGetCount *real, unsigned int *count)
{
    nvmlReturn_t result = real(count);
    unsigned int granted = 0;
    nvmlDevice_t handle;

    if (result != NVML_SUCCESS || !count || !nvml_device_real_by_index())
        return result;
    for (unsigned int i = 0; i < *count; i++)
        if (nvml_device_real_by_index()(i, &handle) == NVML_SUCCESS
            && gpu_device_of_nvml(handle) >= 0)
            granted++;
    *count = granted;
    return NVML_SUCCESS;
}

nvmlReturn_t on_nvml_by_index(fn_nvmlDeviceGetHandleByIndex *real, unsigned int index,
                              nvmlDevice_t *handle)
{
    nvmlDevice_t candidate;
    nvmlReturn_t result;
    unsigned int granted = 0;

    if (!handle)
        return real(index, handle);
    for (unsigned int i = 0;; i++) {
        result = real(i, &candidate);
        if (result == NVML_ERROR_INVALID_ARGUMENT || result == NVML_ERROR_UNINITIALIZED || i > 1024)
            return result == NVML_SUCCESS ? NVML_ERROR_INVALID_ARGUMENT : result;
        if (result != NVML_SUCCESS || gpu_device_of_nvml(candidate) < 0 || granted++ < index)
            continue;
        *handle = candidate;
        return NVML_SUCCESS;
    }
}

static nvmlReturn_t nvml_device_granted_only(nvmlReturn_t result, nvmlDevice_t found,
                                             nvmlDevice_t *handle)
{
    if (result != NVML_SUCCESS)
        return result;
    if (gpu_device_of_nvml(found) < 0)
        return NVML_ERROR_NOT_FOUND;
    *handle = found;
    return NVML_SUCCESS;
}

nvmlReturn_t on_nvml_by_text(fn_nvmlDeviceGetHandleByUUID *real, const char *text,
                             nvmlDevice_t *handle)
{
    nvmlDevice_t found = NULL;
    nvmlReturn_t result = real(text, handle ? &found : NULL);

    return handle ? nvml_device_granted_only(result, found, handle) : result;
}

nvmlReturn_t on_nvml_by_uuidv(fn_nvmlDeviceGetHandleByUUIDV *real, const nvmlUUID_v1_t *uuid,
                              nvmlDevice_t *handle)
{
    nvmlDevice_t found = NULL;
    nvmlReturn_t result = real(uuid, handle ? &found : NULL);

    return handle ? nvml_device_granted_only(result, found, handle) : result;
}

/* The number under which on_nvml_by_index gives this handle. */
nvmlReturn_t on_nvml_get_index(fn_nvmlDeviceGetIndex *real, nvmlDevice_t handle,
                               unsigned int *index)
{
    nvmlReturn_t result = real(handle, index);
    unsigned int granted = 0;
    nvmlDevice_t candidate;

    if (result != NVML_SUCCESS || !index || !nvml_device_real_by_index())
        return result;
    for (unsigned int i = 0; i < *index; i++)
        if (nvml_device_real_by_index()(i, &candidate) == NVML_SUCCESS
            && gpu_device_of_nvml(candidate) >= 0)
            granted++;
    *index = granted;
    return NVML_SUCCESS;
}
