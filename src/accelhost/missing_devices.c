/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that a plugin has listed before and lists no more: they are shown as
 * missing until they are back or the agent restarts, so that nobody has to
 * remember what the machine once had. One that was only divided, or given
 * another way, is not missing.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "accelhost/accel_internal.h"
#include "base/map.h"

/* The ids of the devices listed now, and of those that they are slices of. */
static void missing_note_ids(const struct accel_plugin *fresh, struct map *ids)
{
    for (size_t i = 0; i < fresh->device_count; i++) {
        const struct accel_device *d = &fresh->devices[i];

        map_sets(ids, d->id, ids);
        if (d->parent)
            map_sets(ids, d->parent, ids);
    }
}

static const char *missing_copy(struct description *to, const char *text)
{
    return text ? arena_strdup(&to->arena, text) : NULL;
}

static void missing_add(struct description *to, const struct accel_device *d, const char *why,
                        struct accel_device *ret)
{
    *ret = *d;
    ret->id = missing_copy(to, d->id);
    ret->model = missing_copy(to, d->model);
    ret->location = missing_copy(to, d->location);
    ret->parent = missing_copy(to, d->parent);
    ret->status = ACCEL_OFFLINE;
    ret->status_text = missing_copy(to, why);
}

void description_keep_missing(struct description *fresh, const struct accel_plugin *former)
{
    size_t count = fresh->plugin.device_count, room = count + former->device_count;
    struct accel_device *devices = arena_array(&fresh->arena, room + 1, sizeof(*devices));
    struct map ids = MAP_INIT;
    char why[200];

    missing_note_ids(&fresh->plugin, &ids);
    (void)snprintf(why, sizeof(why), "missing%s%.150s", fresh->plugin.status_text ? ": " : "",
                   fresh->plugin.status_text ? fresh->plugin.status_text : "");
    if (count)
        memcpy(devices, fresh->plugin.devices, count * sizeof(*devices));
    for (size_t i = 0; i < former->device_count && count < ACCEL_DEVICES_MAX; i++) {
        const struct accel_device *d = &former->devices[i];

        if (!map_gets(&ids, d->id) && !(d->parent && map_gets(&ids, d->parent)))
            missing_add(fresh, d, why, &devices[count++]);
    }
    map_done(&ids);
    fresh->plugin.devices = devices;
    fresh->plugin.device_count = count;
}
