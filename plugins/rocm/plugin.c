/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - the rocm plugin: AMD GPUs, whole by default, as ROCm has no limits */
#include "rocm/plugin.h"

#include "common/sysfile.h"

static void rocm_tell_slot(const struct rocm *rocm, bool is_shared,
                           const struct aq_accelerator_out *out)
{
    out->slot(out->data, &(struct aq_accelerator_slot){
                             .name = is_shared ? "rocm.shares" : "rocm.device",
                             .type = AQ_ACCELERATOR_COUNT,
                             .quantum = is_shared ? rocm->sharing.quantum_micro : 0,
                             .round_length = is_shared ? 2 : 0,
                             .exclusive = "rocm",
                             .human_name = is_shared ? "Fractional ROCm GPU" : "ROCm GPU",
                             .description = "AMD GPU",
                             .display_unit = is_shared ? "fGPU" : "GPU",
                             .display_icon = "gpu2",
                         });
}

static void rocm_tell_device(const struct rocm_device *d, const struct aq_accelerator_out *out)
{
    out->device(out->data,
                &(struct aq_accelerator_device){
                    .id = d->id,
                    .slot = d->is_shared ? "rocm.shares" : "rocm.device",
                    .amount = d->amount,
                    .quantum = d->quantum,
                    .model = d->model,
                    .location = d->location,
                    .memory_bytes = d->memory_bytes,
                    .processors = d->processors,
                    .numa_node = d->numa_node,
                    .status = d->trouble ? AQ_ACCELERATOR_OFFLINE : AQ_ACCELERATOR_HEALTHY,
                    .status_text = d->trouble,
                });
}

static int rocm_describe(void *self, const struct aq_accelerator_out *out)
{
    const struct rocm *rocm = self;
    size_t count, shared = 0;
    struct rocm_device *devices = rocm_discover(rocm, &count);
    char version[64];
    bool has_version = sysfile_line(rocm->host->root, "/sys/module/amdgpu/version", version,
                                    sizeof(version));

    for (size_t i = 0; i < count; i++)
        shared += devices[i].is_shared;
    out->identity(out->data,
                  &(struct aq_accelerator_identity){
                      .key = "rocm",
                      .name = "AMD GPU",
                      .version = has_version ? version : NULL,
                      .status = count ? AQ_ACCELERATOR_HEALTHY : AQ_ACCELERATOR_UNAVAILABLE,
                      .status_text = count ? NULL : "KFD shows no GPU",
                  });
    out->info(out->data, "rocm_support", count ? "true" : "false");
    if (shared)
        rocm_tell_slot(rocm, true, out);
    if (shared < count)
        rocm_tell_slot(rocm, false, out);
    for (size_t i = 0; i < count; i++)
        rocm_tell_device(&devices[i], out);
    free(devices);
    return 0;
}

AQ_ACCELERATOR_EXPORT extern const struct aq_accelerator aq_accelerator;
const struct aq_accelerator aq_accelerator = {
    .abi = AQ_ACCELERATOR_ABI,
    .size = sizeof(struct aq_accelerator),
    .name = "rocm",
    .open = rocm_open,
    .close = rocm_close,
    .describe = rocm_describe,
    .attach = rocm_attach,
    .measure = rocm_measure,
};
