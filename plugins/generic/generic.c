/* Any device that is given whole: an NPU, TPU or IPU, as a file describes it. */
#include "generic/generic.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/sysfile.h"

/* ---- description ---- */

/* A line of a file named in the settings; false if there is none. */
static bool read_line(const struct generic *g, const char *path, const struct generic_device *device,
                      char *buf, size_t size)
{
    AQ_CLEANUP(aq_freep) char *full = path ? generic_expand(path, device, 0, "") : NULL;

    return full && sysfile_line(g->host->root, full, buf, size);
}

/* 'text' gets what the file says if that is not good. */
static uint32_t find_status(const struct generic *g, const struct generic_device *device, char *text,
                            size_t size)
{
    if (!g->health_file)
        return AQ_ACCELERATOR_HEALTHY;
    if (!read_line(g, g->health_file, device, text, size)) {
        (void)snprintf(text, size, "its health cannot be read");
        return AQ_ACCELERATOR_OFFLINE;
    }
    for (size_t i = 0; i < g->healthy.count; i++)
        if (strcmp(text, g->healthy.items[i]) == 0)
            return AQ_ACCELERATOR_HEALTHY;
    return g->healthy.count ? AQ_ACCELERATOR_OFFLINE : AQ_ACCELERATOR_HEALTHY;
}

static void tell_device(const struct generic *g, const char *slot,
                        const struct generic_device *device, const struct aq_accelerator_out *out)
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

    if (read_line(g, g->model_file, device, model, sizeof(model)))
        told.model = model;
    if (read_line(g, g->location_file, device, location, sizeof(location)))
        told.location = location;
    if (read_line(g, g->numa_file, device, numa, sizeof(numa)) && numa[0] >= '0' && numa[0] <= '9')
        told.numa_node = (int32_t)strtol(numa, NULL, 10);
    told.status = find_status(g, device, status, sizeof(status));
    if (told.status != AQ_ACCELERATOR_HEALTHY)
        told.status_text = status;
    out->device(out->data, &told);
}

static int describe(void *self, const struct aq_accelerator_out *out)
{
    const struct generic *g = self;
    struct generic_device *devices = NULL;
    size_t count = 0;
    char version[64], slot[64];
    const struct generic_device none = { .number = -1 };
    int r = generic_find(g, &devices, &count);

    if (r < 0)
        return r;
    out->identity(out->data, &(struct aq_accelerator_identity){
                                 .key = g->key,
                                 .name = g->name ? g->name : g->key,
                                 .version = read_line(g, g->driver, &none, version, sizeof(version))
                                                ? version : NULL,
                                 .status = count ? AQ_ACCELERATOR_HEALTHY : AQ_ACCELERATOR_UNAVAILABLE,
                                 .status_text = count ? NULL : "there is no such device",
                             });
    (void)snprintf(slot, sizeof(slot), "%.16s.device", g->key);
    if (count)
        out->slot(out->data, &(struct aq_accelerator_slot){ .name = slot,
                                                            .type = AQ_ACCELERATOR_COUNT,
                                                            .human_name = g->name ? g->name : g->key,
                                                            .display_unit = g->unit,
                                                            .display_icon = g->icon });
    for (size_t i = 0; i < count; i++)
        tell_device(g, slot, &devices[i], out);
    free(devices);
    return 0;
}

/* ---- containers ---- */

static int tell_need(const struct aq_accelerator_out *out, uint32_t kind, const char *text,
                     const struct generic_device *device, size_t index, const char *list)
{
    AQ_CLEANUP(aq_freep) char *name = generic_expand(text, device, index, list);
    char *colon = name ? strchr(name, ':') : NULL, *value = NULL;
    uint32_t flags = kind == AQ_ACCELERATOR_NODE ? AQ_ACCELERATOR_READ | AQ_ACCELERATOR_WRITE : 0;

    if (!name)
        return -ENOMEM;
    if (colon) { /* SOURCE:TARGET[:rw] */
        *colon = '\0';
        value = colon + 1;
        colon = strchr(value, ':');
        if (colon && strcmp(colon, ":rw") == 0)
            flags |= AQ_ACCELERATOR_WRITE;
        if (colon)
            *colon = '\0';
    }
    out->need(out->data, &(struct aq_accelerator_need){ .kind = kind, .flags = flags, .name = name,
                                                        .value = value });
    return 0;
}

/* Does the text differ from device to device? */
static bool is_per_device(const char *text)
{
    return strstr(text, "{name}") || strstr(text, "{number}") || strstr(text, "{index}");
}

/* A name of the Container Device Interface; colons belong to it. */
static int tell_cdi(const char *text, const struct generic_device *device, size_t index,
                    const char *list, const struct aq_accelerator_out *out)
{
    AQ_CLEANUP(aq_freep) char *name = generic_expand(text, device, index, list);

    if (!name)
        return -ENOMEM;
    out->need(out->data, &(struct aq_accelerator_need){ .kind = AQ_ACCELERATOR_CDI, .name = name });
    return 0;
}

static int tell_list(const struct conf_list *list, uint32_t kind,
                     const struct generic_device *devices, size_t count, const char *numbers,
                     const struct aq_accelerator_out *out)
{
    int r = 0;

    for (size_t i = 0; i < list->count; i++)
        for (size_t k = 0; r == 0 && k < (is_per_device(list->items[i]) ? count : 1); k++)
            r = tell_need(out, kind, list->items[i], &devices[k], k, numbers);
    return r;
}

static int tell_environ(const struct generic *g, const struct generic_device *devices,
                        const char *numbers, const struct aq_accelerator_out *out)
{
    for (size_t i = 0; i < g->environ.count; i++) {
        AQ_CLEANUP(aq_freep) char *value
            = generic_expand(g->environ.items[i].value, &devices[0], 0, numbers);

        if (!value)
            return -ENOMEM;
        out->need(out->data, &(struct aq_accelerator_need){ .kind = AQ_ACCELERATOR_ENVIRON,
                                                            .name = g->environ.items[i].name,
                                                            .value = value });
    }
    return 0;
}

/* Those of the grants, in their order. */
static int pick(const struct generic *g, const struct aq_accelerator_grant *grants, size_t count,
                struct generic_device *ret, const struct aq_accelerator_out *out)
{
    struct generic_device *all = NULL;
    size_t all_count = 0, i = 0, k;
    int r = generic_find(g, &all, &all_count);

    for (; r == 0 && i < count; i++) {
        for (k = 0; k < all_count && strcmp(all[k].name, grants[i].device) != 0; k++)
            ;
        if (k < all_count) {
            ret[i] = all[k];
            continue;
        }
        out->error(out->data, "a device is gone");
        r = -ENODEV;
    }
    free(all);
    return r;
}

static int attach(void *self, const struct aq_accelerator_grant *grants, size_t count,
                  const struct aq_accelerator_out *out)
{
    const struct generic *g = self;
    AQ_CLEANUP(aq_freep) struct generic_device *devices = calloc(count + 1, sizeof(*devices));
    AQ_CLEANUP(strbuf_donep) struct strbuf numbers = STRBUF_INIT;
    int r = devices ? pick(g, grants, count, devices, out) : -ENOMEM;

    for (size_t i = 0; r == 0 && i < count; i++) {
        strbuf_addf(&numbers, "%s%ld", i ? "," : "", devices[i].number);
        out->part(out->data, &(struct aq_accelerator_part){ .device = devices[i].name,
                                                            .model = g->model ? g->model : g->name,
                                                            .memory_bytes = (uint64_t)g->memory_bytes,
                                                            .processors = (uint32_t)g->processors });
    }
    if (r < 0 || count == 0)
        return r;
    if (!strbuf_ok(&numbers))
        return -ENOMEM;
    r = tell_list(&g->nodes, AQ_ACCELERATOR_NODE, devices, count, numbers.data, out);
    if (r == 0)
        r = tell_list(&g->mounts, AQ_ACCELERATOR_MOUNT, devices, count, numbers.data, out);
    for (size_t i = 0; r == 0 && i < g->cdi.count; i++)
        for (size_t k = 0; r == 0 && k < (is_per_device(g->cdi.items[i]) ? count : 1); k++)
            r = tell_cdi(g->cdi.items[i], &devices[k], k, numbers.data, out);
    if (r == 0)
        r = tell_list(&g->groups, AQ_ACCELERATOR_GROUP, devices, count, numbers.data, out);
    return r < 0 ? r : tell_environ(g, devices, numbers.data, out);
}

AQ_ACCELERATOR_EXPORT extern const struct aq_accelerator aq_accelerator;
const struct aq_accelerator aq_accelerator = {
    .abi = AQ_ACCELERATOR_ABI,
    .size = sizeof(struct aq_accelerator),
    .name = "generic",
    .open = generic_open,
    .close = generic_close,
    .describe = describe,
    .attach = attach,
    .measure = generic_measure,
};
