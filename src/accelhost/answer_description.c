/* SPDX-License-Identifier: Apache-2.0 */
/* The description that a plugin gives of itself, its slots and devices. */
#include "accelhost/answer_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"

#define PROCESSORS_MAX 1000000
#define NUMA_MAX 4096

static bool answer_description_is_key(const char *text)
{
    size_t len = strlen(text);

    return len > 0 && len <= ACCEL_KEY_MAX
           && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == len
           && strcmp(text, "cpu") != 0 && strcmp(text, "mem") != 0;
}

static void answer_description_read_identity(struct answer_reader *in, struct accel_plugin *p)
{
    p->key = answer_need_text(in, "key", ANSWER_TEXT_MAX);
    in->name = p->key;
    if (in->r == 0 && !answer_description_is_key(p->key))
        answer_reject(in, "key", "must be 1 to 16 of a-z, 0-9 and '-', and neither cpu nor mem");
    p->human_name = answer_text(in, "name", ANSWER_TEXT_MAX);
    p->version = answer_text(in, "version", ANSWER_TEXT_MAX);
    p->status = (enum accel_status)answer_int(in, "status", 0, ACCEL_UNAVAILABLE);
    p->status_text = answer_text(in, "status_text", ANSWER_TEXT_MAX);
}

static void answer_description_read_info(struct answer_reader *in, struct accel_plugin *p)
{
    size_t count = json_object_size(in->from), i = 0;
    struct text_pair *info = arena_array(in->arena, count + 1, sizeof(*info));
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)in->from, key, value) {
        info[i].key = arena_strdup(in->arena, key);
        info[i].value = answer_text(in, key, ANSWER_TEXT_MAX);
        i += info[i].value != NULL;
    }
    p->info = info;
    p->info_count = i;
}

static void answer_description_read_slot(struct answer_reader *in, const char *key,
                                         struct accel_slot *slot)
{
    const char *name;
    size_t len = strlen(key);

    in->name = "";
    in->name = name = answer_need_text(in, "name", SLOT_NAME_MAX);
    if (in->r < 0)
        return;
    if (strncmp(name, key, len) != 0 || name[len] != '.')
        answer_reject(in, "name", "does not begin with the plugin's key and a '.'");
    slot->name = in->r == 0 ? slot_name_intern(name, strlen(name)) : NULL;
    if (!slot->name || strcmp(slot->name, name) != 0)
        answer_reject(in, "name", "is no slot name");
    slot->type = (enum slot_type)answer_int(in, "type", SLOT_COUNT, SLOT_UNIFIED);
    slot->quantum = answer_int(in, "quantum", 0, AMOUNT_ONE);
    slot->round_length = (uint32_t)answer_int(in, "round_length", 0, 6);
    slot->exclusive = answer_text(in, "exclusive", ANSWER_TEXT_MAX);
    slot->human_name = answer_text(in, "human_name", ANSWER_TEXT_MAX);
    slot->description = answer_text(in, "description", ANSWER_TEXT_MAX);
    slot->display_unit = answer_text(in, "display_unit", ANSWER_TEXT_MAX);
    slot->display_icon = answer_text(in, "display_icon", ANSWER_TEXT_MAX);
    if (slot->quantum && slot->type != SLOT_COUNT)
        answer_reject(in, "quantum", "only goes with a count");
}

static int answer_description_read_slots(const json_t *result, struct description *d,
                                         struct aq_error *err)
{
    struct answer_reader in = { .what = "slot", .name = "", .arena = &d->arena, .err = err };
    const json_t *list;
    size_t count = answer_list(&in, result, "slots", ACCEL_SLOTS_MAX, &list);
    struct accel_slot *slots = arena_array(&d->arena, count + 1, sizeof(*slots));

    for (size_t i = 0; in.r == 0 && i < count; i++) {
        in.from = json_array_get(list, i);
        answer_description_read_slot(&in, d->plugin.key, &slots[i]);
        for (size_t k = 0; in.r == 0 && k < i; k++)
            if (slots[k].name == slots[i].name)
                answer_reject(&in, "name", "is there twice");
    }
    d->plugin.slots = slots;
    d->plugin.slot_count = count;
    return in.r;
}

static const struct accel_slot *answer_description_find_slot(const struct accel_plugin *p,
                                                             const char *name)
{
    for (size_t i = 0; i < p->slot_count; i++)
        if (strcmp(p->slots[i].name, name) == 0)
            return &p->slots[i];
    return NULL;
}

static void answer_description_read_device(struct answer_reader *in, const struct accel_plugin *p,
                                           struct accel_device *device)
{
    const struct accel_slot *slot;

    in->name = "";
    in->name = device->id = answer_need_text(in, "id", ANSWER_TEXT_MAX);
    if (in->r == 0 && !device_id_is_valid(device->id, strlen(device->id)))
        answer_reject(in, "id", "must be 1 to 63 of A-Za-z0-9._/+@-");
    slot = answer_description_find_slot(p, answer_need_text(in, "slot", ANSWER_TEXT_MAX));
    if (!slot) {
        answer_reject(in, "slot", "is none of the plugin's slots");
        return;
    }
    device->slot_name = slot->name;
    device->amount = answer_int(in, "amount", 0, INT64_MAX - 1);
    if (slot->type == SLOT_UNIQUE && device->amount != AMOUNT_ONE)
        answer_reject(in, "amount", "of a unique device must be 1");
    if (slot->type == SLOT_COUNT && slot->quantum == 0 && device->amount % AMOUNT_ONE)
        answer_reject(in, "amount", "is a fraction, but the slot has no quantum");
    device->quantum = answer_int(in, "quantum", 0, AMOUNT_ONE);
    if (device->quantum && !slot->quantum)
        answer_reject(in, "quantum", "only goes with a slot that has one");
    device->quantum = device->quantum ? device->quantum : slot->quantum;
    device->model = answer_text(in, "model", ANSWER_TEXT_MAX);
    device->location = answer_text(in, "location", ANSWER_TEXT_MAX);
    device->parent = answer_text(in, "parent", ANSWER_TEXT_MAX);
    device->status_text = answer_text(in, "status_text", ANSWER_TEXT_MAX);
    device->memory_bytes = (uint64_t)answer_int(in, "memory_bytes", 0, INT64_MAX);
    device->processors = (uint32_t)answer_int(in, "processors", 0, PROCESSORS_MAX);
    device->numa_node = (int)answer_int(in, "numa_node", -1, NUMA_MAX);
    device->status = (enum accel_status)answer_int(in, "status", 0, ACCEL_UNAVAILABLE);
}

/* No id twice under one slot; also of thousands of devices. */
static int answer_description_check_ids(const struct accel_plugin *p, struct aq_error *err)
{
    struct map seen = MAP_INIT;
    int r = 0;

    for (size_t i = 0; r == 0 && i < p->device_count; i++) {
        char key[SLOT_NAME_MAX + DEVICE_ID_MAX + 2];
        int len = snprintf(key, sizeof(key), "%s %s", p->devices[i].slot_name, p->devices[i].id);

        if (map_get(&seen, key, (size_t)len))
            r = aq_fail_field(err, EINVAL, p->devices[i].id, "device '%s' is there twice under %s",
                              p->devices[i].id, p->devices[i].slot_name);
        else
            map_set(&seen, key, (size_t)len, &seen);
    }
    map_done(&seen);
    return r;
}

static int answer_description_read_devices(const json_t *result, struct description *d,
                                           struct aq_error *err)
{
    struct answer_reader in = { .what = "device", .name = "", .arena = &d->arena, .err = err };
    const json_t *list;
    size_t count = answer_list(&in, result, "devices", ACCEL_DEVICES_MAX, &list);
    struct accel_device *devices = arena_array(&d->arena, count + 1, sizeof(*devices));

    for (size_t i = 0; in.r == 0 && i < count; i++) {
        in.from = json_array_get(list, i);
        answer_description_read_device(&in, &d->plugin, &devices[i]);
    }
    d->plugin.devices = devices;
    d->plugin.device_count = count;
    return in.r < 0 ? in.r : answer_description_check_ids(&d->plugin, err);
}

void description_done(struct description *d)
{
    arena_done(&d->arena);
    *d = (struct description){ .plugin = { .name = NULL } };
}

int answer_read_description(const json_t *result, struct description *ret, struct aq_error *err)
{
    struct description d = { .plugin = { .name = NULL } };
    struct answer_reader in = { .what = "plugin", .name = "", .arena = &d.arena, .err = err };

    in.from = json_object_get(result, "identity");
    answer_description_read_identity(&in, &d.plugin);
    in.from = json_object_get(result, "info");
    answer_description_read_info(&in, &d.plugin);
    if (in.r == 0)
        in.r = answer_description_read_slots(result, &d, err);
    if (in.r == 0)
        in.r = answer_description_read_devices(result, &d, err);
    if (in.r < 0)
        description_done(&d);
    else
        *ret = d;
    return in.r;
}
