/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.h - the part of the public NVML interface that sharing needs
 *
 * As cuda.h: types, structures and numbers of NVIDIA's documented interface,
 * under its names, with asserted sizes. The functions are in hooks.def.
 */
#ifndef AQ_GPU_NVML_H
#define AQ_GPU_NVML_H

#include <assert.h>

typedef enum nvml_return {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_LIBRARY_NOT_FOUND = 12,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_NO_DATA = 21,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_UNKNOWN = 999,
} nvmlReturn_t;

typedef struct nvmlDevice_st *nvmlDevice_t;

/* The 'version' member of a versioned struct: its size and number. */
#define NVML_STRUCT_VERSION(type, number) ((unsigned int)(sizeof(type) | ((number) << 24u)))

/* What nvmlProcessInfo's usedGpuMemory says when nobody knows. */
#define NVML_VALUE_NOT_AVAILABLE (-1LL)

#define NVML_DEVICE_UUID_BUFFER_SIZE 80
#define NVML_DEVICE_NAME_BUFFER_SIZE 64
#define NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE 32
#define NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE 16

typedef struct nvmlPciInfo {
    char busIdLegacy[NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE];
    unsigned int domain;
    unsigned int bus;
    unsigned int device;
    unsigned int pciDeviceId;
    unsigned int pciSubSystemId;
    char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];
} nvmlPciInfo_t;
static_assert(sizeof(nvmlPciInfo_t) == 68, "as the driver has it");

typedef struct nvmlMemory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
} nvmlMemory_t;
static_assert(sizeof(nvmlMemory_t) == 24, "as the driver has it");

typedef struct nvmlMemory_v2 {
    unsigned int version;
    unsigned long long total;
    unsigned long long reserved;
    unsigned long long free;
    unsigned long long used;
} nvmlMemory_v2_t;
static_assert(sizeof(nvmlMemory_v2_t) == 40, "as the driver has it");

typedef struct nvmlBAR1Memory {
    unsigned long long bar1Total;
    unsigned long long bar1Free;
    unsigned long long bar1Used;
} nvmlBAR1Memory_t;
static_assert(sizeof(nvmlBAR1Memory_t) == 24, "as the driver has it");

typedef struct nvmlProcessInfo_v1 {
    unsigned int pid;
    unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;
static_assert(sizeof(nvmlProcessInfo_v1_t) == 16, "as the driver has it");

/* The second and third version of the process lists. */
typedef struct nvmlProcessInfo {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId;
    unsigned int computeInstanceId;
} nvmlProcessInfo_t;
static_assert(sizeof(nvmlProcessInfo_t) == 24, "as the driver has it");

typedef struct nvmlProcessDetail_v1 {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId;
    unsigned int computeInstanceId;
    unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessDetail_v1_t;
static_assert(sizeof(nvmlProcessDetail_v1_t) == 32, "as the driver has it");

enum {
    NVML_PROCESS_MODE_COMPUTE = 0,
    NVML_PROCESS_MODE_GRAPHICS = 1,
    NVML_PROCESS_MODE_MPS = 2,
};

typedef struct nvmlProcessDetailList_v1 {
    unsigned int version;
    unsigned int mode;
    unsigned int numProcArrayEntries;
    nvmlProcessDetail_v1_t *procArray;
} nvmlProcessDetailList_v1_t;
static_assert(sizeof(nvmlProcessDetailList_v1_t) == 24, "as the driver has it");

typedef struct nvmlUtilization {
    unsigned int gpu;
    unsigned int memory;
} nvmlUtilization_t;
static_assert(sizeof(nvmlUtilization_t) == 8, "as the driver has it");

typedef struct nvmlProcessUtilizationSample {
    unsigned int pid;
    unsigned long long timeStamp;
    unsigned int smUtil;
    unsigned int memUtil;
    unsigned int encUtil;
    unsigned int decUtil;
} nvmlProcessUtilizationSample_t;
static_assert(sizeof(nvmlProcessUtilizationSample_t) == 32, "as the driver has it");

typedef struct nvmlProcessUtilizationInfo_v1 {
    unsigned long long timeStamp;
    unsigned int pid;
    unsigned int smUtil;
    unsigned int memUtil;
    unsigned int encUtil;
    unsigned int decUtil;
    unsigned int jpgUtil;
    unsigned int ofaUtil;
} nvmlProcessUtilizationInfo_v1_t;
static_assert(sizeof(nvmlProcessUtilizationInfo_v1_t) == 40, "as the driver has it");

typedef struct nvmlProcessesUtilizationInfo_v1 {
    unsigned int version;
    unsigned int processSamplesCount;
    unsigned long long lastSeenTimeStamp;
    nvmlProcessUtilizationInfo_v1_t *procUtilArray;
} nvmlProcessesUtilizationInfo_v1_t;
static_assert(sizeof(nvmlProcessesUtilizationInfo_v1_t) == 24, "as the driver has it");

typedef union nvmlValue {
    double dVal;
    int siVal;
    unsigned int uiVal;
    unsigned long ulVal;
    unsigned long long ullVal;
    signed long long sllVal;
    unsigned short usVal;
} nvmlValue_t;
static_assert(sizeof(nvmlValue_t) == 8, "as the driver has it");

enum {
    NVML_VALUE_TYPE_DOUBLE = 0,
    NVML_VALUE_TYPE_UNSIGNED_INT = 1,
    NVML_VALUE_TYPE_UNSIGNED_LONG = 2,
    NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3,
};

/* What nvmlDeviceGetSamples samples. */
enum {
    NVML_TOTAL_POWER_SAMPLES = 0,
    NVML_GPU_UTILIZATION_SAMPLES = 1,
    NVML_MEMORY_UTILIZATION_SAMPLES = 2,
};

typedef struct nvmlSample {
    unsigned long long timeStamp;
    nvmlValue_t sampleValue;
} nvmlSample_t;
static_assert(sizeof(nvmlSample_t) == 16, "as the driver has it");

typedef struct nvmlFieldValue {
    unsigned int fieldId;
    unsigned int scopeId;
    long long timestamp;
    long long latencyUsec;
    int valueType;
    nvmlReturn_t nvmlReturn;
    nvmlValue_t value;
} nvmlFieldValue_t;
static_assert(sizeof(nvmlFieldValue_t) == 40, "as the driver has it");

typedef struct nvmlAccountingStats {
    unsigned int gpuUtilization;
    unsigned int memoryUtilization;
    unsigned long long maxMemoryUsage;
    unsigned long long time;
    unsigned long long startTime;
    unsigned int isRunning;
    unsigned int reserved[5];
} nvmlAccountingStats_t;
static_assert(sizeof(nvmlAccountingStats_t) == 56, "as the driver has it");

typedef struct nvmlAccountingStats_v2 {
    unsigned int pid;
    unsigned int isRunning;
    unsigned int gpuUtilization;
    unsigned int memoryUtilization;
    unsigned long long maxMemoryUsage;
    unsigned int sampleCount;
    unsigned long long sumGpuUtil;
    unsigned long long sumFbUtil;
    unsigned long long time;
    unsigned long long startTime;
} nvmlAccountingStats_v2_t;
static_assert(sizeof(nvmlAccountingStats_v2_t) == 64, "as the driver has it");

enum {
    NVML_UUID_TYPE_NONE = 0,
    NVML_UUID_TYPE_ASCII = 1,
    NVML_UUID_TYPE_BINARY = 2,
};

typedef struct nvmlUUID_v1 {
    unsigned int version;
    unsigned int type;
    union {
        char str[41];
        unsigned char bytes[16];
    } value;
} nvmlUUID_v1_t;
static_assert(sizeof(nvmlUUID_v1_t) == 52, "as the driver has it");

#define NVML_DEVICE_MEMORY_LIMIT_MAX 0xFFFFFFFFFFFFFFFFULL

typedef struct nvmlSetMemoryLimits_v1 {
    const char *nameSpace; /* path of a cgroup */
    unsigned long long softLimit;
    unsigned long long hardLimit;
} nvmlSetMemoryLimits_v1_t;
static_assert(sizeof(nvmlSetMemoryLimits_v1_t) == 24, "as the driver has it");

typedef struct nvmlGetMemoryLimits_v1 {
    const char *nameSpace;
    unsigned long long softLimit;
    unsigned long long hardLimit;
    unsigned long long currentUsed;
} nvmlGetMemoryLimits_v1_t;
static_assert(sizeof(nvmlGetMemoryLimits_v1_t) == 32, "as the driver has it");

#endif
