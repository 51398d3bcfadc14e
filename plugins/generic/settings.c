/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - the file that describes a kind of device */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "common/conf_file.h"
#include "generic/plugin.h"

#define AT(member) offsetof(struct generic, member)
#define METRIC_AT(member) offsetof(struct generic_metric, member)

static const struct conf_item metric_items[] = {
    { "", "key", CONF_STR, METRIC_AT(key), NULL, 0, 0, CONF_REQUIRED, "" },
    { "", "file", CONF_STR, METRIC_AT(file), NULL, 0, 0, CONF_REQUIRED, "" },
    { "", "unit", CONF_STR, METRIC_AT(unit), "count", 0, 0, 0, "" },
    { "", "capacity", CONF_INT, METRIC_AT(capacity), NULL, 0, 0, 0, "" },
    { "", "capacity_file", CONF_STR, METRIC_AT(capacity_file), NULL, 0, 0, 0, "" },
    { "", "scale", CONF_MICRO, METRIC_AT(scale_micro), "1", 0, 0, 0, "" },
    CONF_TABLE_END,
};
static const struct conf_table metric_table = { sizeof(struct generic_metric), metric_items, false,
                                                false };

static const struct conf_item items[] = {
    { "", "key", CONF_STR, AT(key), NULL, 0, 0, CONF_REQUIRED, "" },
    { "", "name", CONF_STR, AT(name), NULL, 0, 0, 0, "" },
    { "", "display_unit", CONF_STR, AT(unit), NULL, 0, 0, 0, "" },
    { "", "display_icon", CONF_STR, AT(icon), NULL, 0, 0, 0, "" },
    { "", "driver_version_file", CONF_STR, AT(driver), NULL, 0, 0, 0, "" },
    { "", "device_mask", CONF_LIST, AT(masked), NULL, 0, 0, 0, "" },
    { "devices", "files", CONF_STR, AT(pattern), NULL, 0, 0, CONF_REQUIRED, "" },
    { "devices", "model", CONF_STR, AT(model), NULL, 0, 0, 0, "" },
    { "devices", "model_file", CONF_STR, AT(model_file), NULL, 0, 0, 0, "" },
    { "devices", "memory", CONF_SIZE, AT(memory_bytes), NULL, 0, 0, 0, "" },
    { "devices", "processors", CONF_INT, AT(processors), NULL, 0, 1000000, 0, "" },
    { "devices", "numa_file", CONF_STR, AT(numa_file), NULL, 0, 0, 0, "" },
    { "devices", "location_file", CONF_STR, AT(location_file), NULL, 0, 0, 0, "" },
    { "devices", "health_file", CONF_STR, AT(health_file), NULL, 0, 0, 0, "" },
    { "devices", "healthy", CONF_LIST, AT(healthy), NULL, 0, 0, 0, "" },
    { "container", "nodes", CONF_LIST, AT(nodes), NULL, 0, 0, 0, "" },
    { "container", "mounts", CONF_LIST, AT(mounts), NULL, 0, 0, 0, "" },
    { "container", "cdi", CONF_LIST, AT(cdi), NULL, 0, 0, 0, "" },
    { "container", "groups", CONF_LIST, AT(groups), NULL, 0, 0, 0, "" },
    { "container", "environ", CONF_PAIRS, AT(environ), NULL, 0, 0, 0, "" },
    { "", "metric", CONF_TABLES, AT(metrics), NULL, 0, 0, 0, "", &metric_table },
    CONF_TABLE_END,
};

int generic_open(const struct aq_accelerator_host *host, const struct aq_accelerator_out *out,
                 void **ret)
{
    struct generic *g = aq_alloc(sizeof(*g));
    int r;

    if (!host->config)
        out->error(out->data, "the generic plugin needs a file that describes the devices");
    r = !host->config ? -EINVAL : conf_file_read(host, items, g, out);
    if (r == 0 && g->pattern[0] != '/') {
        out->error(out->data, "devices.files: must be an absolute path, with '*' for what differs");
        conf_done(items, g);
        r = -EINVAL;
    }
    if (r < 0) {
        free(g);
        return r;
    }
    g->host = host;
    *ret = g;
    return 0;
}

void generic_close(void *self)
{
    conf_done(items, self);
    free(self);
}

char *generic_expand(const char *text, const struct generic_device *device, size_t index,
                     const char *list)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    while (*text) {
        if (strncmp(text, "{name}", 6) == 0) {
            strbuf_adds(&out, device->name);
            text += 6;
        } else if (strncmp(text, "{number}", 8) == 0) {
            strbuf_addf(&out, "%ld", device->number);
            text += 8;
        } else if (strncmp(text, "{index}", 7) == 0) {
            strbuf_addf(&out, "%zu", index);
            text += 7;
        } else if (strncmp(text, "{list}", 6) == 0) {
            strbuf_adds(&out, list);
            text += 6;
        } else {
            strbuf_addc(&out, *text++);
        }
    }
    return strbuf_steal(&out);
}
