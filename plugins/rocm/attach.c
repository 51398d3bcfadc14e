/* SPDX-License-Identifier: Apache-2.0 */
/* attach.c - what a container needs of the AMD driver: the device files of its GPUs */
#include "rocm/plugin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

static void rocm_tell_node(const char *path, const struct aq_accelerator_out *out)
{
    out->need(out->data,
              &(struct aq_accelerator_need){ .kind = AQ_ACCELERATOR_NODE,
                                             .flags = AQ_ACCELERATOR_READ | AQ_ACCELERATOR_WRITE,
                                             .name = path });
}

static int rocm_attach_one(const struct rocm *rocm, const struct rocm_device *devices, size_t count,
                           const struct aq_accelerator_grant *grant, struct sharing_part *part,
                           const struct aq_accelerator_out *out)
{
    const struct rocm_device *d = NULL;
    char path[64];

    for (size_t i = 0; i < count && !d; i++)
        d = strcmp(devices[i].id, grant->device) == 0 ? &devices[i] : NULL;
    if (!d) {
        out->error(out->data, "a device is gone");
        return -ENODEV;
    }
    (void)snprintf(path, sizeof(path), "/dev/dri/renderD%" PRId64, d->minor);
    rocm_tell_node(path, out);
    *part = (struct sharing_part){ .device = grant->device,
                                   .memory_bytes = d->memory_bytes,
                                   .processors = d->processors,
                                   .is_fractional = strcmp(grant->slot, "rocm.shares") == 0 };
    if (part->is_fractional) {
        part->memory_bytes = sharing_memory(&rocm->sharing, d->memory_bytes, d->processors,
                                            grant->amount);
        part->processors = sharing_processors(&rocm->sharing, d->memory_bytes, d->processors,
                                              grant->amount);
    }
    out->part(out->data, &(struct aq_accelerator_part){ .device = d->id,
                                                        .model = d->model,
                                                        .memory_bytes = part->memory_bytes,
                                                        .processors = part->processors });
    return 0;
}

int rocm_attach(void *self, const struct aq_accelerator_grant *grants, size_t count,
                const struct aq_accelerator_out *out)
{
    const struct rocm *rocm = self;
    AQ_CLEANUP(aq_freep) struct sharing_part *parts = aq_alloc_array(count + 1, sizeof(*parts));
    size_t device_count;
    struct rocm_device *devices = rocm_discover(rocm, &device_count);
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++)
        r = rocm_attach_one(rocm, devices, device_count, &grants[i], &parts[i], out);
    if (r == 0) {
        rocm_tell_node("/dev/kfd", out);
        sharing_write_resource(&rocm->sharing, "rocm", parts, count, out);
    }
    free(devices);
    return r;
}
