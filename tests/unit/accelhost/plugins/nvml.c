/* SPDX-License-Identifier: Apache-2.0 */
/* A libnvidia-ml.so.1 with what the simulated card lacks: slices, and faults.
 *
 * Three GPUs; the second is in MIG mode with two slices. The file that
 * FAKE_NVML_FAULT names may hold "no-driver", "xid 79", "xid 31", "ecc", "lost"
 * "hot" or "warm": it concerns the first GPU. The third has no more than its UUID.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/nvml.h"

#define EXPORT __attribute__((visibility("default")))

#define NVML_DECLARE(name, parameters) EXPORT nvmlReturn_t name parameters;
NVML_CALLS(NVML_DECLARE)
#undef NVML_DECLARE

static char gpus[3], slices[2]; /* their addresses are the handles */

static nvmlDevice_t handle_of(char *place)
{
    return (nvmlDevice_t)(void *)place;
}

/* The number behind the word in the file; -1 if the word is not there. */
static int fault(const char *word)
{
    const char *path = getenv("FAKE_NVML_FAULT");
    FILE *file = path ? fopen(path, "r") : NULL;
    char text[64] = "";
    int number = 0;

    if (!file)
        return -1;
    (void)!fgets(text, sizeof(text), file);
    (void)fclose(file);
    if (strncmp(text, word, strlen(word)) != 0)
        return -1;
    (void)sscanf(text + strlen(word), "%d", &number);
    return number;
}

static int gpu_of(nvmlDevice_t handle)
{
    for (int i = 0; i < 3; i++)
        if (handle == handle_of(&gpus[i]))
            return i;
    return -1;
}

nvmlReturn_t nvmlInit_v2(void)
{
    return fault("no-driver") < 0 ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
}

nvmlReturn_t nvmlShutdown(void)
{
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *text, unsigned int size)
{
    (void)snprintf(text, size, "550.54.15");
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = 12040;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    *count = 3;
    return nvmlInit_v2();
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int i, nvmlDevice_t *ret)
{
    *ret = handle_of(&gpus[i]);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t handle, char *text, unsigned int size)
{
    if (gpu_of(handle) == 2)
        return NVML_ERROR_NOT_SUPPORTED;
    (void)snprintf(text, size, "NVIDIA A100-SXM4-40GB%s", gpu_of(handle) < 0 ? " MIG 1g.5gb" : "");
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t handle, char *text, unsigned int size)
{
    if (gpu_of(handle) >= 0)
        (void)snprintf(text, size, "GPU-%d", gpu_of(handle));
    else
        (void)snprintf(text, size, "MIG-%d", handle == handle_of(&slices[1]));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t handle, nvmlPciInfo_t *pci)
{
    memset(pci, 0, sizeof(*pci));
    (void)snprintf(pci->busId, sizeof(pci->busId), "00000000:4%d:00.0", gpu_of(handle));
    return gpu_of(handle) == 2 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, nvmlMemory_t *memory)
{
    if (gpu_of(handle) == 0 && fault("lost") >= 0)
        return NVML_ERROR_GPU_IS_LOST;
    *memory = (nvmlMemory_t){ .total = (gpu_of(handle) < 0 ? 5ull : 40ull) << 30, .used = 1 << 30 };
    return gpu_of(handle) == 2 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t handle, nvmlDeviceAttributes_t *attributes)
{
    *attributes = (nvmlDeviceAttributes_t){ .multiprocessorCount = 14 };
    return gpu_of(handle) < 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t handle, unsigned int *cores)
{
    *cores = 6912;
    return gpu_of(handle) < 2 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t handle, int *major, int *minor)
{
    (void)handle;
    *major = 8;
    *minor = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t handle, int sensor, unsigned int *celsius)
{
    (void)sensor;
    *celsius = gpu_of(handle) == 0 && fault("hot") >= 0    ? 90
               : gpu_of(handle) == 0 && fault("warm") >= 0 ? 80
                                                           : 40;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t handle, int kind, unsigned int *celsius)
{
    (void)handle;
    (void)kind;
    *celsius = 92;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t handle, int kind, int counter,
                                         unsigned long long *count)
{
    (void)kind;
    (void)counter;
    *count = gpu_of(handle) == 0 && fault("ecc") >= 0 ? 3 : 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t handle, unsigned int *current, unsigned int *pending)
{
    *current = *pending = gpu_of(handle) == 1;
    return gpu_of(handle) == 2 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t handle, unsigned int *count)
{
    (void)handle;
    *count = 7;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t handle, unsigned int i,
                                                 nvmlDevice_t *ret)
{
    (void)handle;
    if (i >= 2)
        return NVML_ERROR_NOT_FOUND;
    *ret = handle_of(&slices[i]);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t handle, unsigned int *id)
{
    *id = handle == handle_of(&slices[1]) ? 9 : 8;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t handle, unsigned int *id)
{
    (void)handle;
    *id = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    static char events;

    *set = (nvmlEventSet_t)(void *)&events;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    (void)set;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t handle, unsigned long long kinds,
                                      nvmlEventSet_t set)
{
    (void)handle;
    (void)kinds;
    (void)set;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *event, unsigned int msec)
{
    static int told;
    int xid = fault("xid ");

    (void)set;
    (void)msec;
    if (xid < 0 || xid == told)
        return NVML_ERROR_TIMEOUT;
    told = xid;
    *event = (nvmlEventData_t){ .device = handle_of(&gpus[0]),
                                .eventType = NVML_EVENT_XID_CRITICAL,
                                .eventData = (unsigned long long)xid };
    return NVML_SUCCESS;
}
