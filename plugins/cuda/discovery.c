/* SPDX-License-Identifier: Apache-2.0 */
/* discovery.c - the GPUs that NVML shows, and their MIG slices */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "common/sysfile.h"
#include "cuda/plugin.h"

/* Cores of a multiprocessor, by compute capability. */
static unsigned int cuda_cores_per_processor(int major, int minor)
{
    if (major == 3)
        return 192;
    if (major == 5 || (major == 6 && minor > 0) || major > 8 || (major == 8 && minor > 0))
        return 128;
    return 64; /* 6.0, 7.x, 8.0 */
}

static uint32_t cuda_count_processors(const struct nvml *nvml, nvmlDevice_t handle)
{
    nvmlDeviceAttributes_t attributes;
    unsigned int cores;
    int major = 0, minor = 0;

    if (NVML_CALL(nvml, nvmlDeviceGetAttributes_v2, handle, &attributes) == NVML_SUCCESS
        && attributes.multiprocessorCount)
        return attributes.multiprocessorCount;
    if (NVML_CALL(nvml, nvmlDeviceGetNumGpuCores, handle, &cores) != NVML_SUCCESS
        || NVML_CALL(nvml, nvmlDeviceGetCudaComputeCapability, handle, &major, &minor)
               != NVML_SUCCESS)
        return 0;
    return cores / cuda_cores_per_processor(major, minor);
}

static int32_t cuda_find_numa_node(const struct cuda *cuda, const char *location)
{
    char path[96];

    (void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", location);
    return (int32_t)sysfile_number(cuda->host->root, path, -1);
}

/* NVML writes "00000000:4F:00.0", Linux "0000:4f:00.0". */
static void cuda_format_location(const char *bus_id, struct cuda_device *device)
{
    const char *colon = strchr(bus_id, ':');

    if (colon && colon - bus_id == 8)
        bus_id += 4;
    (void)snprintf(device->location, sizeof(device->location), "%s", bus_id);
    for (char *c = device->location; *c; c++)
        *c = (char)tolower((unsigned char)*c);
}

static void cuda_read_memory(const struct nvml *nvml, struct cuda_device *device)
{
    nvmlMemory_t memory = { 0 };

    if (NVML_CALL(nvml, nvmlDeviceGetMemoryInfo, device->handle, &memory) == NVML_SUCCESS)
        device->memory_bytes = memory.total;
}

/* What is known of a whole GPU. False if it does not even tell its name. */
static bool cuda_read_gpu(const struct cuda *cuda, unsigned int index, struct cuda_device *device)
{
    const struct nvml *nvml = &cuda->nvml;
    nvmlPciInfo_t pci = { .domain = 0 };

    *device = (struct cuda_device){ .index = index, .minor = index, .numa_node = -1 };
    if (NVML_CALL(nvml, nvmlDeviceGetHandleByIndex_v2, index, &device->handle) != NVML_SUCCESS
        || NVML_CALL(nvml, nvmlDeviceGetUUID, device->handle, device->id, sizeof(device->id))
               != NVML_SUCCESS)
        return false;
    (void)NVML_CALL(nvml, nvmlDeviceGetName, device->handle, device->model, sizeof(device->model));
    (void)NVML_CALL(nvml, nvmlDeviceGetMinorNumber, device->handle, &device->minor);
    if (NVML_CALL(nvml, nvmlDeviceGetPciInfo_v3, device->handle, &pci) == NVML_SUCCESS)
        cuda_format_location(pci.busId, device);
    device->numa_node = cuda_find_numa_node(cuda, device->location);
    cuda_read_memory(nvml, device);
    device->processors = cuda_count_processors(nvml, device->handle);
    return true;
}

static void cuda_offer_gpu(const struct cuda *cuda, struct cuda_device *device)
{
    device->is_shared = sharing_is_fractional(&cuda->sharing, device->id);
    (void)snprintf(device->slot, sizeof(device->slot), "cuda.%s",
                   device->is_shared ? "shares" : "device");
    device->quantum = device->is_shared ? sharing_own_quantum(&cuda->sharing, device->id) : 0;
    device->amount = device->is_shared
                         ? sharing_count(&cuda->sharing, device->memory_bytes, device->processors)
                         : SHARING_ONE;
}

/* "NVIDIA A100-SXM4-40GB MIG 1g.5gb" is of profile "1g.5gb". */
static void cuda_name_profile(struct cuda_device *device)
{
    const char *mig = strstr(device->model, "MIG ");
    const char *profile = mig ? mig + 4 : "slice";

    (void)snprintf(device->slot, sizeof(device->slot), "cuda.device:%.32s-mig", profile);
    for (char *c = device->slot; *c; c++)
        *c = *c == ' ' ? '-' : (char)tolower((unsigned char)*c);
}

static bool cuda_read_slice(const struct cuda *cuda, const struct cuda_device *gpu, unsigned int i,
                            struct cuda_device *device)
{
    const struct nvml *nvml = &cuda->nvml;

    *device = *gpu;
    if (NVML_CALL(nvml, nvmlDeviceGetMigDeviceHandleByIndex, gpu->handle, i, &device->handle)
            != NVML_SUCCESS
        || NVML_CALL(nvml, nvmlDeviceGetUUID, device->handle, device->id, sizeof(device->id))
               != NVML_SUCCESS)
        return false;
    memcpy(device->parent, gpu->id, sizeof(device->parent));
    (void)NVML_CALL(nvml, nvmlDeviceGetName, device->handle, device->model, sizeof(device->model));
    (void)NVML_CALL(nvml, nvmlDeviceGetGpuInstanceId, device->handle, &device->gpu_instance);
    (void)NVML_CALL(nvml, nvmlDeviceGetComputeInstanceId, device->handle,
                    &device->compute_instance);
    cuda_read_memory(nvml, device);
    device->processors = cuda_count_processors(nvml, device->handle);
    device->is_slice = true;
    device->amount = SHARING_ONE;
    cuda_name_profile(device);
    return true;
}

static void cuda_add_device(struct cuda *cuda, struct cuda_device *device)
{
    if (cuda->count == CUDA_DEVICES_MAX || sharing_is_masked(&cuda->sharing, device->id))
        return;
    cuda_check_health(cuda, device);
    cuda->devices[cuda->count++] = *device;
}

/* A GPU in MIG mode is offered by its slices only. */
static void cuda_add_gpu(struct cuda *cuda, struct cuda_device *gpu)
{
    unsigned int mode = 0, pending, slices = 0;
    struct cuda_device slice;

    cuda_register_events(cuda, gpu->handle);
    if (NVML_CALL(&cuda->nvml, nvmlDeviceGetMigMode, gpu->handle, &mode, &pending) != NVML_SUCCESS
        || mode == 0) {
        cuda_offer_gpu(cuda, gpu);
        cuda_add_device(cuda, gpu);
        return;
    }
    if (NVML_CALL(&cuda->nvml, nvmlDeviceGetMaxMigDeviceCount, gpu->handle, &slices)
        != NVML_SUCCESS)
        return;
    for (unsigned int i = 0; i < slices; i++)
        if (cuda_read_slice(cuda, gpu, i, &slice))
            cuda_add_device(cuda, &slice);
}

static void cuda_read_versions(struct cuda *cuda)
{
    int version = 0;

    (void)NVML_CALL(&cuda->nvml, nvmlSystemGetDriverVersion, cuda->driver, sizeof(cuda->driver));
    if (NVML_CALL(&cuda->nvml, nvmlSystemGetCudaDriverVersion_v2, &version) == NVML_SUCCESS)
        (void)snprintf(cuda->cuda_version, sizeof(cuda->cuda_version), "%d.%d", version / 1000,
                       version % 1000 / 10);
}

void cuda_unload(struct cuda *cuda)
{
    if (cuda->events)
        (void)NVML_CALL(&cuda->nvml, nvmlEventSetFree, cuda->events);
    cuda->events = NULL;
    cuda->fault_count = 0; /* a driver that was loaded again has reset them */
    nvml_close(&cuda->nvml);
    free(cuda->devices);
    cuda->devices = NULL;
    cuda->count = 0;
    cuda->driver[0] = cuda->cuda_version[0] = '\0';
}

void cuda_discover(struct cuda *cuda, struct aq_error *err)
{
    unsigned int count = 0;
    nvmlReturn_t r = NVML_SUCCESS;

    /* a library that has lost its driver is loaded again, maybe in another version */
    if (cuda->nvml.library)
        r = NVML_CALL(&cuda->nvml, nvmlDeviceGetCount_v2, &count);
    if (r != NVML_SUCCESS || nvml_is_replaced(&cuda->nvml))
        cuda_unload(cuda);
    if (!cuda->nvml.library) {
        if (nvml_open(&cuda->nvml, cuda->library, err) < 0)
            return;
        if (NVML_CALL(&cuda->nvml, nvmlDeviceGetCount_v2, &count) != NVML_SUCCESS)
            count = 0;
    }
    if (!cuda->devices)
        cuda->devices = aq_alloc_array(CUDA_DEVICES_MAX, sizeof(*cuda->devices));
    cuda_read_versions(cuda);
    cuda_read_faults(cuda);
    cuda->count = 0;
    for (unsigned int i = 0; i < count; i++) {
        struct cuda_device gpu;

        if (cuda_read_gpu(cuda, i, &gpu))
            cuda_add_gpu(cuda, &gpu);
    }
}
