/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.h - inside the cuda plugin: NVIDIA GPUs and their MIG slices */
#ifndef AQ_PLUGINS_CUDA_PLUGIN_H
#define AQ_PLUGINS_CUDA_PLUGIN_H

#include "aliquot/accelerator.h"
#include "common/sharing.h"
#include "cuda/nvml.h"

#define CUDA_DEVICES_MAX 512
#define CUDA_SLOT_MAX 64

struct cuda_device {
    nvmlDevice_t handle;
    char id[NVML_DEVICE_UUID_BUFFER_SIZE];     /* "GPU-…", "MIG-…" */
    char parent[NVML_DEVICE_UUID_BUFFER_SIZE]; /* of a slice, else "" */
    char model[NVML_DEVICE_NAME_BUFFER_SIZE];
    char location[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];
    char slot[CUDA_SLOT_MAX];
    unsigned int index, minor;                   /* of the GPU */
    unsigned int gpu_instance, compute_instance; /* of a slice */
    uint64_t memory_bytes;
    uint32_t processors;
    int32_t numa_node;
    int64_t amount;
    uint32_t quantum; /* its own; 0 = the slot's */
    bool is_slice, is_shared;
    uint32_t status;
    char status_text[96];
};

/* A GPU that has reported an error that only a reset mends. */
struct cuda_fault {
    char location[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];
    unsigned long long xid;
};

struct cuda {
    const struct aq_accelerator_host *host;
    char *library;            /* libnvidia-ml.so.1 */
    struct conf_list folders; /* where the driver's libraries are */
    struct sharing sharing;
    struct nvml nvml;
    char driver[80], cuda_version[16];
    struct cuda_device *devices; /* as found last */
    size_t count;
    nvmlEventSet_t events; /* NULL = none */
    struct cuda_fault faults[64];
    size_t fault_count;
    char hot[64][NVML_DEVICE_UUID_BUFFER_SIZE]; /* cordoned until they are cool */
    size_t hot_count;
};

/* settings.c */
int cuda_open(const struct aq_accelerator_host *host, const struct aq_accelerator_out *out,
              void **ret);
void cuda_close(void *self);

/* discovery.c: list the devices again; without a driver there are none, and 'err' says
 * why.
 */
void cuda_discover(struct cuda *cuda, struct aq_error *err);
/* Let go of library and devices. */
void cuda_unload(struct cuda *cuda);

/* health.c: subscribe to a GPU's critical Xids; read those that have come; set status and
 * status_text of a device.
 */
void cuda_register_events(struct cuda *cuda, nvmlDevice_t handle);
void cuda_read_faults(struct cuda *cuda);
void cuda_check_health(struct cuda *cuda, struct cuda_device *device);

/* attach.c */
int cuda_attach(void *self, const struct aq_accelerator_grant *grants, size_t count,
                const struct aq_accelerator_out *out);

/* measure.c */
int cuda_measure(void *self, const struct aq_accelerator_target *targets, size_t count,
                 const struct aq_accelerator_out *out);

#endif
