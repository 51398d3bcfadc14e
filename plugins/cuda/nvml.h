/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.h - NVIDIA's management library, loaded while there is a driver
 *
 * Declarations are ours (src/gpu/nvml.h); what only nodes need is here. Every
 * function may be missing in older libraries.
 */
#ifndef AQ_PLUGINS_CUDA_NVML_H
#define AQ_PLUGINS_CUDA_NVML_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"
#include "gpu/nvml.h"

#define NVML_ERROR_LIB_RM_VERSION_MISMATCH 18

typedef struct nvmlDeviceAttributes {
    unsigned int multiprocessorCount;
    unsigned int sharedCopyEngineCount;
    unsigned int sharedDecoderCount;
    unsigned int sharedEncoderCount;
    unsigned int sharedJpegCount;
    unsigned int sharedOfaCount;
    unsigned int gpuInstanceSliceCount;
    unsigned int computeInstanceSliceCount;
    unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;
static_assert(sizeof(nvmlDeviceAttributes_t) == 40, "as the driver has it");

typedef struct nvmlEventSet_st *nvmlEventSet_t;

typedef struct nvmlEventData {
    nvmlDevice_t device;
    unsigned long long eventType;
    unsigned long long eventData;
    unsigned int gpuInstanceId;
    unsigned int computeInstanceId;
} nvmlEventData_t;
static_assert(sizeof(nvmlEventData_t) == 32, "as the driver has it");

#define NVML_EVENT_XID_CRITICAL 0x8ULL
#define NVML_TEMPERATURE_GPU 0
#define NVML_TEMPERATURE_THRESHOLD_SHUTDOWN 0
#define NVML_ECC_UNCORRECTED 1
#define NVML_ECC_VOLATILE 0

/* name, result, parameters */
#define NVML_CALLS(CALL)                                                                       \
    CALL(nvmlInit_v2, (void))                                                                  \
    CALL(nvmlShutdown, (void))                                                                 \
    CALL(nvmlSystemGetDriverVersion, (char *, unsigned int))                                   \
    CALL(nvmlSystemGetCudaDriverVersion_v2, (int *))                                           \
    CALL(nvmlDeviceGetCount_v2, (unsigned int *))                                              \
    CALL(nvmlDeviceGetHandleByIndex_v2, (unsigned int, nvmlDevice_t *))                        \
    CALL(nvmlDeviceGetName, (nvmlDevice_t, char *, unsigned int))                              \
    CALL(nvmlDeviceGetUUID, (nvmlDevice_t, char *, unsigned int))                              \
    CALL(nvmlDeviceGetMinorNumber, (nvmlDevice_t, unsigned int *))                             \
    CALL(nvmlDeviceGetPciInfo_v3, (nvmlDevice_t, nvmlPciInfo_t *))                             \
    CALL(nvmlDeviceGetCudaComputeCapability, (nvmlDevice_t, int *, int *))                     \
    CALL(nvmlDeviceGetNumGpuCores, (nvmlDevice_t, unsigned int *))                             \
    CALL(nvmlDeviceGetMemoryInfo, (nvmlDevice_t, nvmlMemory_t *))                              \
    CALL(nvmlDeviceGetUtilizationRates, (nvmlDevice_t, nvmlUtilization_t *))                   \
    CALL(nvmlDeviceGetPowerUsage, (nvmlDevice_t, unsigned int *))                              \
    CALL(nvmlDeviceGetEnforcedPowerLimit, (nvmlDevice_t, unsigned int *))                      \
    CALL(nvmlDeviceGetTemperature, (nvmlDevice_t, int, unsigned int *))                        \
    CALL(nvmlDeviceGetTemperatureThreshold, (nvmlDevice_t, int, unsigned int *))               \
    CALL(nvmlDeviceGetTotalEccErrors, (nvmlDevice_t, int, int, unsigned long long *))          \
    CALL(nvmlDeviceGetComputeRunningProcesses_v3,                                              \
         (nvmlDevice_t, unsigned int *, nvmlProcessInfo_t *))                                  \
    CALL(nvmlDeviceGetProcessUtilization,                                                      \
         (nvmlDevice_t, nvmlProcessUtilizationSample_t *, unsigned int *, unsigned long long)) \
    CALL(nvmlDeviceGetMigMode, (nvmlDevice_t, unsigned int *, unsigned int *))                 \
    CALL(nvmlDeviceGetMaxMigDeviceCount, (nvmlDevice_t, unsigned int *))                       \
    CALL(nvmlDeviceGetMigDeviceHandleByIndex, (nvmlDevice_t, unsigned int, nvmlDevice_t *))    \
    CALL(nvmlDeviceGetGpuInstanceId, (nvmlDevice_t, unsigned int *))                           \
    CALL(nvmlDeviceGetComputeInstanceId, (nvmlDevice_t, unsigned int *))                       \
    CALL(nvmlDeviceGetAttributes_v2, (nvmlDevice_t, nvmlDeviceAttributes_t *))                 \
    CALL(nvmlEventSetCreate, (nvmlEventSet_t *))                                               \
    CALL(nvmlEventSetFree, (nvmlEventSet_t))                                                   \
    CALL(nvmlDeviceRegisterEvents, (nvmlDevice_t, unsigned long long, nvmlEventSet_t))         \
    CALL(nvmlEventSetWait_v2, (nvmlEventSet_t, nvmlEventData_t *, unsigned int))

struct nvml {
    void *library;   /* NULL = not loaded */
    char path[4096]; /* of its file; "" = not known */
    struct stat file;
#define NVML_MEMBER(name, parameters) nvmlReturn_t(*name) parameters;
    NVML_CALLS(NVML_MEMBER)
#undef NVML_MEMBER
};

/* Call what may be missing: NVML_ERROR_FUNCTION_NOT_FOUND then. */
#define NVML_CALL(nvml, name, ...) \
    ((nvml)->name ? (nvml)->name(__VA_ARGS__) : NVML_ERROR_FUNCTION_NOT_FOUND)

/* Load 'path' and initialise. -ENOENT without library, -ENODEV if the driver is
 * not there or not of the library's version; nothing is loaded then.
 */
int nvml_open(struct nvml *nvml, const char *path, struct aq_error *err);
void nvml_close(struct nvml *nvml);
/* Is there another file in the place of the one that was loaded? */
bool nvml_is_replaced(const struct nvml *nvml);

/* For messages. */
const char *nvml_error_text(nvmlReturn_t code);

#endif
