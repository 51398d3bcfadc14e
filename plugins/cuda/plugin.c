/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - the cuda plugin: NVIDIA GPUs, in shares, whole, or as MIG slices */
#include "cuda/plugin.h"

#include <string.h>

static void cuda_tell_slot(const struct cuda *cuda, const struct cuda_device *d,
                           const struct aq_accelerator_out *out)
{
    out->slot(out->data, &(struct aq_accelerator_slot){
                             .name = d->slot,
                             .type = d->is_slice ? AQ_ACCELERATOR_UNIQUE : AQ_ACCELERATOR_COUNT,
                             .quantum = d->is_shared ? cuda->sharing.quantum_micro : 0,
                             .round_length = d->is_shared ? 2 : 0,
                             .exclusive = "cuda",
                             .human_name = d->is_shared  ? "Fractional GPU"
                                           : d->is_slice ? "MIG slice"
                                                         : "GPU",
                             .description = "CUDA-capable GPU",
                             .display_unit = d->is_shared  ? "fGPU"
                                             : d->is_slice ? "MIG"
                                                           : "GPU",
                             .display_icon = "gpu1",
                         });
}

static void cuda_tell_device(const struct cuda_device *d, const struct aq_accelerator_out *out)
{
    out->device(out->data, &(struct aq_accelerator_device){
                               .id = d->id,
                               .slot = d->slot,
                               .amount = d->amount,
                               .quantum = d->quantum,
                               .model = d->model,
                               .location = d->location,
                               .memory_bytes = d->memory_bytes,
                               .processors = d->processors,
                               .numa_node = d->numa_node,
                               .parent = d->parent[0] ? d->parent : NULL,
                               .status = d->status,
                               .status_text = d->status_text[0] ? d->status_text : NULL,
                           });
}

static int cuda_describe(void *self, const struct aq_accelerator_out *out)
{
    struct cuda *cuda = self;
    struct aq_error why = { 0 };

    cuda_discover(cuda, &why);
    out->identity(out->data, &(struct aq_accelerator_identity){
                                 .key = "cuda",
                                 .name = "NVIDIA GPU",
                                 .version = cuda->driver[0] ? cuda->driver : NULL,
                                 .status = cuda->nvml.library ? AQ_ACCELERATOR_HEALTHY
                                                              : AQ_ACCELERATOR_UNAVAILABLE,
                                 .status_text = why.text[0] ? why.text : NULL,
                             });
    out->info(out->data, "cuda_support", cuda->count ? "true" : "false");
    if (cuda->nvml.library)
        out->info(out->data, "nvml_library", cuda->library);
    if (cuda->driver[0])
        out->info(out->data, "nvidia_version", cuda->driver);
    if (cuda->cuda_version[0])
        out->info(out->data, "cuda_version", cuda->cuda_version);
    for (size_t i = 0; i < cuda->count; i++) {
        bool is_first = true;

        for (size_t k = 0; is_first && k < i; k++)
            is_first = strcmp(cuda->devices[k].slot, cuda->devices[i].slot) != 0;
        if (is_first)
            cuda_tell_slot(cuda, &cuda->devices[i], out);
    }
    for (size_t i = 0; i < cuda->count; i++)
        cuda_tell_device(&cuda->devices[i], out);
    return 0;
}

AQ_ACCELERATOR_EXPORT extern const struct aq_accelerator aq_accelerator;
const struct aq_accelerator aq_accelerator = {
    .abi = AQ_ACCELERATOR_ABI,
    .size = sizeof(struct aq_accelerator),
    .name = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .attach = cuda_attach,
    .measure = cuda_measure,
};
