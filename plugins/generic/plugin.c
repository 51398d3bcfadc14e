/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - the generic plugin: any device that is granted whole, as a file describes it */
#include "generic/plugin.h"

#include <stdio.h>
#include <stdlib.h>

static void generic_tell_device(const struct generic *g, const char *slot,
                                const struct generic_device *device,
                                const struct aq_accelerator_out *out)
{
    char model[128], location[64], numa[16], status[128];
    struct aq_accelerator_device told = {
        .id = device->name,
        .slot = slot,
        .amount = 1000000,
        .model = g->model ? g->model : g->name,
        .memory_bytes = (uint64_t)g->memory_bytes,
        .processors = (uint32_t)g->processors,
        .numa_node = -1,
    };

    if (generic_read_line(g, g->model_file, device, model, sizeof(model)))
        told.model = model;
    if (generic_read_line(g, g->location_file, device, location, sizeof(location)))
        told.location = location;
    if (generic_read_line(g, g->numa_file, device, numa, sizeof(numa)) && numa[0] >= '0'
        && numa[0] <= '9')
        told.numa_node = (int32_t)strtol(numa, NULL, 10);
    told.status = generic_check_health(g, device, status, sizeof(status));
    if (told.status != AQ_ACCELERATOR_HEALTHY)
        told.status_text = status;
    out->device(out->data, &told);
}

static int generic_describe(void *self, const struct aq_accelerator_out *out)
{
    const struct generic *g = self;
    size_t count;
    struct generic_device *devices = generic_discover(g, &count);
    char version[64], slot[64];
    const struct generic_device none = { .number = -1 };

    out->identity(out->data,
                  &(struct aq_accelerator_identity){
                      .key = g->key,
                      .name = g->name ? g->name : g->key,
                      .version = generic_read_line(g, g->driver, &none, version, sizeof(version))
                                     ? version
                                     : NULL,
                      .status = count ? AQ_ACCELERATOR_HEALTHY : AQ_ACCELERATOR_UNAVAILABLE,
                      .status_text = count ? NULL : "there is no such device",
                  });
    (void)snprintf(slot, sizeof(slot), "%.16s.device", g->key);
    if (count)
        out->slot(out->data,
                  &(struct aq_accelerator_slot){ .name = slot,
                                                 .type = AQ_ACCELERATOR_COUNT,
                                                 .human_name = g->name ? g->name : g->key,
                                                 .display_unit = g->unit,
                                                 .display_icon = g->icon });
    for (size_t i = 0; i < count; i++)
        generic_tell_device(g, slot, &devices[i], out);
    free(devices);
    return 0;
}

AQ_ACCELERATOR_EXPORT extern const struct aq_accelerator aq_accelerator;
const struct aq_accelerator aq_accelerator = {
    .abi = AQ_ACCELERATOR_ABI,
    .size = sizeof(struct aq_accelerator),
    .name = "generic",
    .open = generic_open,
    .close = generic_close,
    .describe = generic_describe,
    .attach = generic_attach,
    .measure = generic_measure,
};
