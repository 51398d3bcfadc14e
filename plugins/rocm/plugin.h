/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.h - inside the rocm plugin: AMD GPUs as the Linux driver shows them
 *
 * KFD's topology (/sys/class/kfd/kfd/topology/nodes) has one directory per
 * device that computes; the render node's device directory
 * (/sys/class/drm/renderD128/device) has its memory, load and sensors. No
 * library is needed.
 */
#ifndef AQ_PLUGINS_ROCM_PLUGIN_H
#define AQ_PLUGINS_ROCM_PLUGIN_H

#include "aliquot/accelerator.h"
#include "common/sharing.h"

#define ROCM_DEVICES_MAX 256

struct rocm {
    const struct aq_accelerator_host *host;
    struct sharing sharing;
};

struct rocm_device {
    char id[40]; /* unique_id as hexadecimal number, else the PCI address */
    char model[128], location[24];
    int64_t minor; /* of its render node */
    int32_t numa_node;
    uint64_t memory_bytes;
    uint32_t processors;
    const char *trouble; /* static; NULL = none */
    int64_t amount;
    uint32_t quantum; /* its own; 0 = the slot's */
    bool is_shared;
};

/* settings.c */
int rocm_open(const struct aq_accelerator_host *host, const struct aq_accelerator_out *out,
              void **ret);
void rocm_close(void *self);

/* discovery.c: the devices of this machine. Caller frees. */
struct rocm_device *rocm_discover(const struct rocm *rocm, size_t *ret_count);

/* "/sys/class/drm/renderD128/device/REST"; caller frees. */
char *rocm_path(const struct rocm_device *device, const char *rest);

/* health.c: why a device cannot be offered; static text, NULL = it can. 'root' is the host's. */
const char *rocm_check_health(const char *root, const struct rocm_device *device);

/* attach.c */
int rocm_attach(void *self, const struct aq_accelerator_grant *grants, size_t count,
                const struct aq_accelerator_out *out);

/* measure.c */
int rocm_measure(void *self, const struct aq_accelerator_target *targets, size_t count,
                 const struct aq_accelerator_out *out);

#endif
