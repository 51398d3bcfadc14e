/* SPDX-License-Identifier: Apache-2.0 */
/* discovery.c - the devices of the kind that the settings describe: their files */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "common/sysfile.h"
#include "generic/plugin.h"

static int generic_compare(const void *a, const void *b)
{
    const struct generic_device *x = a, *y = b;

    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void generic_name_device(struct generic_device *device, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t len, digits = 0;

    (void)snprintf(device->name, sizeof(device->name), "%s", slash ? slash + 1 : path);
    len = strlen(device->name);
    while (digits < len && digits < 9 && strchr("0123456789", device->name[len - digits - 1]))
        digits++;
    device->number = digits ? strtol(device->name + len - digits, NULL, 10) : -1;
}

static bool generic_is_masked(const struct generic *g, const char *name)
{
    for (size_t i = 0; i < g->masked.count; i++)
        if (strcmp(g->masked.items[i], name) == 0)
            return true;
    return false;
}

struct generic_device *generic_discover(const struct generic *g, size_t *ret_count)
{
    AQ_CLEANUP(aq_freep) char *pattern = aq_format("%s%s", g->host->root, g->pattern);
    struct generic_device *devices;
    glob_t found = { .gl_pathc = 0 };
    size_t count = 0;

    (void)glob(pattern, 0, NULL, &found);
    devices = aq_alloc_array(found.gl_pathc + 1, sizeof(*devices));
    for (size_t i = 0; i < found.gl_pathc && count < GENERIC_DEVICES_MAX; i++) {
        generic_name_device(&devices[count], found.gl_pathv[i]);
        count += !generic_is_masked(g, devices[count].name);
    }
    globfree(&found);
    qsort(devices, count, sizeof(*devices), generic_compare);
    *ret_count = count;
    return devices;
}

bool generic_read_line(const struct generic *g, const char *path,
                       const struct generic_device *device, char *buf, size_t size)
{
    AQ_CLEANUP(aq_freep) char *full = path ? generic_expand(path, device, 0, "") : NULL;

    return full && sysfile_line(g->host->root, full, buf, size);
}
