/* SPDX-License-Identifier: Apache-2.0 */
/* attach.c - what a container needs of the granted devices, as the settings say */
#include "generic/plugin.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"

static void generic_tell_need(const struct aq_accelerator_out *out, uint32_t kind, const char *text,
                              const struct generic_device *device, size_t index, const char *list)
{
    AQ_CLEANUP(aq_freep) char *name = generic_expand(text, device, index, list);
    char *colon = strchr(name, ':'), *value = NULL;
    uint32_t flags = kind == AQ_ACCELERATOR_NODE ? AQ_ACCELERATOR_READ | AQ_ACCELERATOR_WRITE : 0;

    if (colon) { /* SOURCE:TARGET[:rw] */
        *colon = '\0';
        value = colon + 1;
        colon = strchr(value, ':');
        if (colon && strcmp(colon, ":rw") == 0)
            flags |= AQ_ACCELERATOR_WRITE;
        if (colon)
            *colon = '\0';
    }
    out->need(out->data, &(struct aq_accelerator_need){
                             .kind = kind, .flags = flags, .name = name, .value = value });
}

/* Does the text differ from device to device? */
static bool generic_is_per_device(const char *text)
{
    return strstr(text, "{name}") || strstr(text, "{number}") || strstr(text, "{index}");
}

/* A name of the Container Device Interface; colons belong to it. */
static void generic_tell_cdi(const char *text, const struct generic_device *device, size_t index,
                             const char *list, const struct aq_accelerator_out *out)
{
    AQ_CLEANUP(aq_freep) char *name = generic_expand(text, device, index, list);

    out->need(out->data, &(struct aq_accelerator_need){ .kind = AQ_ACCELERATOR_CDI, .name = name });
}

static void generic_tell_list(const struct conf_list *list, uint32_t kind,
                              const struct generic_device *devices, size_t count,
                              const char *numbers, const struct aq_accelerator_out *out)
{
    for (size_t i = 0; i < list->count; i++)
        for (size_t k = 0; k < (generic_is_per_device(list->items[i]) ? count : 1); k++)
            generic_tell_need(out, kind, list->items[i], &devices[k], k, numbers);
}

static void generic_tell_environ(const struct generic *g, const struct generic_device *devices,
                                 const char *numbers, const struct aq_accelerator_out *out)
{
    for (size_t i = 0; i < g->environ.count; i++) {
        AQ_CLEANUP(aq_freep) char *value = generic_expand(g->environ.items[i].value, &devices[0], 0,
                                                          numbers);

        out->need(out->data, &(struct aq_accelerator_need){ .kind = AQ_ACCELERATOR_ENVIRON,
                                                            .name = g->environ.items[i].name,
                                                            .value = value });
    }
}

/* Those of the grants, in their order. */
static int generic_pick(const struct generic *g, const struct aq_accelerator_grant *grants,
                        size_t count, struct generic_device *ret,
                        const struct aq_accelerator_out *out)
{
    size_t all_count, k;
    struct generic_device *all = generic_discover(g, &all_count);
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
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

int generic_attach(void *self, const struct aq_accelerator_grant *grants, size_t count,
                   const struct aq_accelerator_out *out)
{
    const struct generic *g = self;
    AQ_CLEANUP(aq_freep) struct generic_device *devices = aq_alloc_array(count + 1,
                                                                         sizeof(*devices));
    AQ_CLEANUP(strbuf_donep) struct strbuf numbers = STRBUF_INIT;
    int r = generic_pick(g, grants, count, devices, out);

    for (size_t i = 0; r == 0 && i < count; i++) {
        strbuf_addf(&numbers, "%s%ld", i ? "," : "", devices[i].number);
        out->part(out->data,
                  &(struct aq_accelerator_part){ .device = devices[i].name,
                                                 .model = g->model ? g->model : g->name,
                                                 .memory_bytes = (uint64_t)g->memory_bytes,
                                                 .processors = (uint32_t)g->processors });
    }
    if (r < 0 || count == 0)
        return r;
    generic_tell_list(&g->nodes, AQ_ACCELERATOR_NODE, devices, count, numbers.data, out);
    generic_tell_list(&g->mounts, AQ_ACCELERATOR_MOUNT, devices, count, numbers.data, out);
    for (size_t i = 0; i < g->cdi.count; i++)
        for (size_t k = 0; k < (generic_is_per_device(g->cdi.items[i]) ? count : 1); k++)
            generic_tell_cdi(g->cdi.items[i], &devices[k], k, numbers.data, out);
    generic_tell_list(&g->groups, AQ_ACCELERATOR_GROUP, devices, count, numbers.data, out);
    generic_tell_environ(g, devices, numbers.data, out);
    return 0;
}
