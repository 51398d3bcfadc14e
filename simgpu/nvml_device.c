/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_device.c - the simulated libnvidia-ml.so.1: the devices and what is fixed of them */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nvml_internal.h"
#include "number.h"

extern const int sim_cuda_version;

static int users;
int sim_nvml_fd = -1;

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

struct sim_card *sim_nvml_card(void)
{
    return sim_card_to_look(&sim_nvml_fd);
}

/* Slowness on demand. */
static void nvml_delay(void)
{
    uint32_t us = sim_nvml_card()->faults.nvml_delay_us;

    if (us)
        (void)nanosleep(
            &(struct timespec){ .tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000 },
            NULL);
}

nvmlReturn_t sim_nvml_check(nvmlDevice_t handle, uint32_t *ret)
{
    uintptr_t number = (uintptr_t)handle;

    if (!__atomic_load_n(&users, __ATOMIC_RELAXED) || !sim_nvml_card())
        return NVML_ERROR_UNINITIALIZED;
    nvml_delay();
    if (number < 1 || number > sim_nvml_card()->device_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *ret = (uint32_t)number - 1;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void)
{
    if (!sim_nvml_card())
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

static nvmlReturn_t nvml_copy_text(char *to, unsigned int len, const char *text)
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
    return nvml_copy_text(version, len, text);
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
    return nvml_copy_text(name, len, text);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    if (!users || !sim_nvml_card())
        return NVML_ERROR_UNINITIALIZED;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = sim_nvml_card()->device_count;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    return nvmlDeviceGetCount_v2(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *handle)
{
    if (!users || !sim_nvml_card())
        return NVML_ERROR_UNINITIALIZED;
    if (!handle || index >= sim_nvml_card()->device_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *handle = (nvmlDevice_t)(uintptr_t)(index + 1);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *handle)
{
    return nvmlDeviceGetHandleByIndex_v2(index, handle);
}

static void nvml_uuid_text(uint32_t device, char text[64])
{
    const unsigned char *u = sim_nvml_card()->devices[device].uuid;

    (void)snprintf(text, 64,
                   "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
                   u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
                   u[14], u[15]);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t handle, char *uuid, unsigned int len)
{
    char text[64];
    uint32_t device;

    SIM_CHECK_DEVICE(handle, device, uuid);
    nvml_uuid_text(device, text);
    return nvml_copy_text(uuid, len, text);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *handle)
{
    char text[64];

    if (!users || !sim_nvml_card())
        return NVML_ERROR_UNINITIALIZED;
    for (uint32_t i = 0; uuid && handle && i < sim_nvml_card()->device_count; i++) {
        nvml_uuid_text(i, text);
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

    SIM_CHECK_DEVICE(handle, device, info);
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
    uint64_t bus;

    if (!id || !handle || !sim_read_bus(id, &bus))
        return NVML_ERROR_INVALID_ARGUMENT;
    return nvmlDeviceGetHandleByIndex_v2((unsigned int)bus - 1, handle);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *handle)
{
    return nvmlDeviceGetHandleByPciBusId_v2(id, handle);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned int *index)
{
    uint32_t device;

    SIM_CHECK_DEVICE(handle, device, index);
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

    SIM_CHECK_DEVICE(handle, device, name);
    return nvml_copy_text(name, len, sim_nvml_card()->devices[device].name);
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t handle, char *serial, unsigned int len)
{
    char text[32];
    uint32_t device;

    SIM_CHECK_DEVICE(handle, device, serial);
    (void)snprintf(text, sizeof(text), "%012u", device + 1);
    return nvml_copy_text(serial, len, text);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t handle, int *major, int *minor)
{
    uint32_t device;

    SIM_CHECK_DEVICE(handle, device, major && minor);
    *major = 8;
    *minor = 0;
    return NVML_SUCCESS;
}

/* Sensors of a card that has none: fixed figures. */
static nvmlReturn_t nvml_fixed_value(nvmlDevice_t handle, unsigned int *value, unsigned int number)
{
    uint32_t device;

    SIM_CHECK_DEVICE(handle, device, value);
    *value = number;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t handle, int sensor, unsigned int *celsius)
{
    (void)sensor;
    return nvml_fixed_value(handle, celsius, 40);
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t handle, unsigned int *milliwatts)
{
    return nvml_fixed_value(handle, milliwatts, 60000);
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t handle, unsigned int *milliwatts)
{
    return nvml_fixed_value(handle, milliwatts, 300000);
}

nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t handle, unsigned int *percent)
{
    return nvml_fixed_value(handle, percent, 30);
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t handle, int *state)
{
    return nvml_fixed_value(handle, (unsigned int *)state, 0);
}

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t handle, int *mode)
{
    return nvml_fixed_value(handle, (unsigned int *)mode, 1);
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t handle, int *mode)
{
    return nvml_fixed_value(handle, (unsigned int *)mode, 0);
}

nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t handle, unsigned int *cores)
{
    uint32_t device;

    SIM_CHECK_DEVICE(handle, device, cores);
    *cores = sim_nvml_card()->devices[device].processors * 64;
    return NVML_SUCCESS;
}
