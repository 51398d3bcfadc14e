/* SPDX-License-Identifier: Apache-2.0 */
/* What a node has, as the manager is told.
 *
 * A device is {"id", "slot", "amount"} and, of accelerators, "quantum" (if it
 * can be had in parts) and what is known of "model", "location", "memory" (bytes), "processors",
 * "numa", "parent" (the device that it is a slice of), "status" (unless healthy) and "status_text".
 * "reserved" is what other agents of the machine have of a device; the device
 * "reserved" of cpu and mem has what the node keeps, under the same name.
 */
#include <string.h>

#include "agent/resources/resources.h"
#include "base/jsonw.h"

/* The type of a slot that maybe no plugin knows any more: slices are unique. */
static enum slot_type resources_json_type_of(const struct resources *res, const char *name,
                                             enum slot_type noted)
{
    enum slot_type type;

    if (slot_types_find(res->types, name, &type) == 0)
        return type;
    return strchr(name, ':') ? SLOT_UNIQUE : noted;
}

/* What is offered: capacities, and what is still held of devices that have
 * none any more; of hardware that is held under another slot's name, nothing.
 * So what is offered less what is held is always what is free.
 */
static int resources_json_sum_offer(const struct resources *res, struct slots *ret)
{
    struct alloc_device_state device;
    int r = 0;

    alloc_map_sum(res->map, ret);
    for (size_t i = 0; r == 0 && alloc_map_device(res->map, i, &device); i++) {
        struct slot more = { device.slot_name, device.allocated - device.capacity };

        if (more.amount > 0 || (more.amount < 0 && device.held_as))
            r = slots_add(ret, &(struct slots){ .items = &more, .count = 1 });
    }
    return r;
}

static enum slot_type resources_json_noted_type(const struct resources *res, const char *name)
{
    struct alloc_device_state device;

    for (size_t i = 0; alloc_map_device(res->map, i, &device); i++)
        if (device.slot_name == name)
            return device.type;
    return slot_type_guess(name);
}

int resources_describe_slots(struct resources *res, struct aq_error *err)
{
    AQ_CLEANUP(slots_donep) struct slots offer = { .items = NULL };
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    char amount[AMOUNT_TEXT_MAX];

    if (resources_json_sum_offer(res, &offer) < 0)
        return aq_fail(err, EOVERFLOW, "the sum of a slot's devices is out of range");
    jsonw_object_begin(&w);
    for (size_t i = 0; i < offer.count; i++) {
        const char *name = offer.items[i].name;
        enum slot_type type = resources_json_type_of(res, name,
                                                     resources_json_noted_type(res, name));

        jsonw_key(&w, name);
        jsonw_array_begin(&w);
        jsonw_str(&w, slot_type_name(type));
        jsonw_str(&w, slot_amount_format(offer.items[i].amount, type, amount));
        jsonw_array_end(&w);
    }
    jsonw_object_end(&w);
    free(res->slots_json);
    res->slots_json = strbuf_steal(&text);
    return 0;
}

static void resources_json_begin_device(struct jsonw *w, const char *id, const char *slot,
                                        enum slot_type type, int64_t amount)
{
    char text[AMOUNT_TEXT_MAX];

    jsonw_object_begin(w);
    jsonw_member_str(w, "id", id);
    jsonw_member_str(w, "slot", slot);
    jsonw_member_str(w, "amount", slot_amount_format(amount, type, text));
}

static void resources_json_add_text(struct jsonw *w, const char *key, const char *text)
{
    if (text)
        jsonw_member_str(w, key, text);
}

static void resources_json_write_accelerator(const struct accel_device *d, int64_t offered,
                                             enum slot_type type, struct jsonw *w)
{
    char text[AMOUNT_TEXT_MAX];

    resources_json_begin_device(w, d->id, d->slot_name, type, offered);
    if (offered < d->amount)
        jsonw_member_str(w, "reserved", slot_amount_format(d->amount - offered, type, text));
    if (d->quantum)
        jsonw_member_str(w, "quantum", slot_amount_format(d->quantum, type, text));
    resources_json_add_text(w, "model", d->model);
    resources_json_add_text(w, "location", d->location);
    if (d->memory_bytes)
        jsonw_member_int(w, "memory", (int64_t)d->memory_bytes);
    if (d->processors)
        jsonw_member_int(w, "processors", d->processors);
    if (d->numa_node >= 0)
        jsonw_member_int(w, "numa", d->numa_node);
    resources_json_add_text(w, "parent", d->parent);
    if (d->status != ACCEL_HEALTHY) {
        jsonw_member_str(w, "status", accel_status_name(d->status));
        resources_json_add_text(w, "status_text", d->status_text);
    }
    jsonw_object_end(w);
}

/* Those of which this agent has something. */
static void resources_json_write_accelerators(const struct resources *res,
                                              const struct accel *accel, const int64_t *offered,
                                              struct jsonw *w)
{
    const struct accel_plugin *plugin;

    for (size_t i = 0; accel && (plugin = accel_plugin(accel, i)); i++)
        for (size_t k = 0; k < plugin->device_count; k++, offered++) {
            const struct accel_device *d = &plugin->devices[k];

            if (*offered > 0 || d->amount == 0)
                resources_json_write_accelerator(d, *offered,
                                                 slot_types_get(res->types, d->slot_name), w);
        }
}

/* What the node keeps for itself. */
static void resources_json_write_reserved(struct jsonw *w, const char *slot, enum slot_type type,
                                          int64_t amount)
{
    char text[AMOUNT_TEXT_MAX];

    if (amount <= 0)
        return;
    resources_json_begin_device(w, "reserved", slot, type, 0);
    jsonw_member_str(w, "reserved", slot_amount_format(amount, type, text));
    jsonw_object_end(w);
}

static void resources_json_describe_devices(struct resources *res, const struct accel *accel,
                                            const int64_t *offered)
{
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    struct alloc_device_state device;

    jsonw_array_begin(&w);
    for (size_t i = 0; alloc_map_device(res->map, i, &device); i++) {
        if (strchr(device.slot_name, '.'))
            continue; /* of a plugin */
        resources_json_begin_device(&w, device.id, device.slot_name, device.type, device.capacity);
        if (device.numa_node >= 0)
            jsonw_member_int(&w, "numa", device.numa_node);
        jsonw_object_end(&w);
    }
    resources_json_write_reserved(&w, "cpu", SLOT_COUNT, res->reserved_cpu);
    resources_json_write_reserved(&w, "mem", SLOT_BYTES, res->reserved_memory);
    resources_json_write_accelerators(res, accel, offered, &w);
    jsonw_array_end(&w);
    res->devices_json = strbuf_steal(&text);
}

int resources_describe(struct resources *res, const struct accel *accel, const int64_t *offered,
                       struct aq_error *err)
{
    int r = resources_describe_slots(res, err);

    if (r < 0)
        return r;
    res->plugins_json = resources_describe_plugins(accel);
    resources_json_describe_devices(res, accel, offered);
    return 0;
}
