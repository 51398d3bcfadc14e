/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - the mock plugin: devices that do not exist; everything but their work is real */
#include "mock/plugin.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"

static const struct mock_format *plugin_find_format(const struct mock *mock, const char *slot)
{
    const struct mock_format *formats = mock->formats.items;
    const char *tail = strpbrk(slot, ":");

    tail = tail ? tail + 1 : strchr(slot, '.') + 1;
    for (size_t i = 0; i < mock->formats.count; i++)
        if (strcmp(formats[i].slot, tail) == 0)
            return &formats[i];
    return NULL;
}

static void mock_tell_slot(const struct mock *mock, const char *name, bool is_unique,
                           bool is_shared, const struct aq_accelerator_out *out)
{
    const struct mock_format *format = plugin_find_format(mock, name);
    struct aq_accelerator_slot slot = {
        .name = name,
        .type = is_unique ? AQ_ACCELERATOR_UNIQUE : AQ_ACCELERATOR_COUNT,
        .quantum = is_shared ? mock->sharing.quantum_micro : 0,
        .exclusive = mock->key,
        .round_length = is_shared ? 2 : 0,
        .human_name = is_shared   ? "Fractional GPU"
                      : is_unique ? "MIG slice"
                                  : "GPU",
        .description = "Mocked accelerator",
        .display_unit = is_shared ? "fGPU" : "GPU",
        .display_icon = "gpu1",
    };

    if (format) {
        slot.human_name = format->human_name ? format->human_name : slot.human_name;
        slot.description = format->description ? format->description : slot.description;
        slot.display_unit = format->display_unit ? format->display_unit : slot.display_unit;
        slot.display_icon = format->display_icon ? format->display_icon : slot.display_icon;
        slot.round_length = (uint32_t)format->round_length;
    }
    out->slot(out->data, &slot);
}

/* Each slot once, as it first appears. */
static void mock_tell_slots(const struct mock *mock, const struct aq_accelerator_out *out)
{
    const struct mock_device *devices = mock->devices.items;

    for (size_t i = 0; i < mock->devices.count; i++) {
        bool is_known = false;

        for (size_t k = 0; !is_known && k < i; k++)
            is_known = strcmp(devices[k].slot, devices[i].slot) == 0;
        if (!is_known)
            mock_tell_slot(mock, devices[i].slot, devices[i].is_mig,
                           !devices[i].is_mig && strstr(devices[i].slot, ".shares"), out);
    }
}

static void mock_tell_identity(const struct mock *mock, const struct aq_accelerator_out *out)
{
    const struct conf_pair *pairs = mock->attributes.items;
    const char *version = NULL;
    char support[32], text[24];

    for (size_t i = 0; i < mock->attributes.count; i++)
        if (strcmp(pairs[i].name, "nvidia_driver") == 0)
            version = pairs[i].value;
    if (!version && mock_is_cuda(mock))
        version = "450.00.00";
    out->identity(out->data, &(struct aq_accelerator_identity){
                                 .key = mock->key,
                                 .name = "Mocked accelerators",
                                 .version = version,
                             });
    (void)snprintf(support, sizeof(support), "%.16s_support", mock->key);
    out->info(out->data, support, "true");
    if (mock->simulator) {
        AQ_CLEANUP(aq_freep) char *library = aq_format("%s/libnvidia-ml.so.1", mock->simulator);

        out->info(out->data, "nvml_library", library);
        out->info(out->data, "simulated_card", mock->card);
        /* holders of a slice are told when this changes */
        (void)snprintf(text, sizeof(text), "%" PRId64, mock->sharing.unit_mem);
        out->info(out->data, "unit_mem", text);
        (void)snprintf(text, sizeof(text), "%" PRId64, mock->sharing.unit_proc);
        out->info(out->data, "unit_proc", text);
    }
    for (size_t i = 0; i < mock->attributes.count; i++)
        out->info(out->data, pairs[i].name, pairs[i].value);
}

static int mock_describe(void *self, const struct aq_accelerator_out *out)
{
    struct mock *mock = self;
    const struct mock_device *devices;
    int r = mock_refresh(mock, out);

    if (r < 0)
        return r;
    devices = mock->devices.items;
    mock_tell_identity(mock, out);
    mock_tell_slots(mock, out);
    for (size_t i = 0; i < mock->devices.count; i++) {
        const struct mock_device *d = &devices[i];

        if (sharing_is_masked(&mock->sharing, d->id))
            continue;
        out->device(out->data, &(struct aq_accelerator_device){
                                   .id = d->id,
                                   .slot = d->slot,
                                   .amount = d->amount,
                                   .quantum = d->quantum,
                                   .model = d->model,
                                   .location = d->location,
                                   .memory_bytes = (uint64_t)d->memory_bytes,
                                   .processors = (uint32_t)d->processors,
                                   .numa_node = (int32_t)d->numa_node,
                                   .parent = d->is_mig ? d->uuid : NULL,
                                   .status = mock_check_health(d),
                                   .status_text = d->status_text,
                               });
    }
    return 0;
}

AQ_ACCELERATOR_EXPORT extern const struct aq_accelerator aq_accelerator;
const struct aq_accelerator aq_accelerator = {
    .abi = AQ_ACCELERATOR_ABI,
    .size = sizeof(struct aq_accelerator),
    .name = "mock",
    .open = mock_open,
    .close = mock_close,
    .describe = mock_describe,
    .attach = mock_attach,
    .measure = mock_measure,
};
