/* SPDX-License-Identifier: Apache-2.0 */
/* An agent's devices with who holds what of them: "used" is the sum, "holders"
 * are [{"session", "session_id", "kernel_id", "access_key", "amount"}, ...].
 * What sessions of domains hold that the caller does not see is one holder with nothing but
 * "amount".
 * Devices that kernels still hold but the agent no longer has are "gone".
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/json_load.h"
#include "base/map.h"
#include "manager/node/agent_devices.h"

struct annotated {
    json_t *list;
    struct map index; /* "slot id" -> its object */
};

#define KEY_MAX (SLOT_NAME_MAX + DEVICE_ID_MAX + 2)

static size_t agent_devices_write_key(const char *slot, const char *id, char key[KEY_MAX])
{
    return (size_t)snprintf(key, KEY_MAX, "%.*s %.*s", SLOT_NAME_MAX, slot, DEVICE_ID_MAX, id);
}

static void agent_devices_index(struct annotated *a, const char *text)
{
    json_t *device;
    size_t i;

    a->list = text ? json_load_string(text, 0) : NULL;
    if (!json_is_array(a->list)) {
        json_decref(a->list);
        a->list = json_array();
    }
    json_array_foreach(a->list, i, device) {
        const char *slot = json_string_value(json_object_get(device, "slot"));
        const char *id = json_string_value(json_object_get(device, "id"));
        char key[KEY_MAX];

        if (slot && id)
            map_set(&a->index, key, agent_devices_write_key(slot, id, key), device);
    }
}

static json_t *agent_devices_find_device(struct annotated *a, const struct grant_item *item)
{
    char key[KEY_MAX];
    size_t len = agent_devices_write_key(item->slot_name, item->device_id, key);
    json_t *device = map_get(&a->index, key, len);

    if (device)
        return device;
    device = json_pack("{s:s, s:s, s:s, s:s}", "id", item->device_id, "slot", item->slot_name,
                       "amount", "0", "status", "gone");
    json_array_append_new(a->list, device);
    map_set(&a->index, key, len, device);
    return device;
}

static int64_t agent_devices_read_amount(const json_t *object, const char *key,
                                         const struct grant_item *item)
{
    const char *text = json_string_value(json_object_get(object, key));
    int64_t amount = 0;

    if (text)
        (void)slot_amount_parse(text, strlen(text), item->type, false, item->slot_name, &amount,
                                NULL);
    return amount;
}

/* Add the item's amount to that of the member 'key'. */
static void agent_devices_add_amount(json_t *object, const char *key, const struct grant_item *item)
{
    int64_t sum = agent_devices_read_amount(object, key, item);
    char text[AMOUNT_TEXT_MAX];

    if (__builtin_add_overflow(sum, item->amount, &sum))
        sum = INT64_MAX;
    json_object_set_new(object, key, json_string(slot_amount_format(sum, item->type, text)));
}

/* The one holder that stands for all whom the caller does not see. */
static json_t *agent_devices_find_nameless(json_t *holders)
{
    json_t *holder;
    size_t i;

    json_array_foreach(holders, i, holder)
        if (!json_object_get(holder, "session_id"))
            return holder;
    holder = json_object();
    json_array_append_new(holders, holder);
    return holder;
}

static json_t *agent_devices_make_holder(json_t *holders, const struct core_holder *holder)
{
    char session[UUID_TEXT_MAX], kernel[UUID_TEXT_MAX];
    json_t *made;

    uuid_format(&holder->session->id, session);
    uuid_format(&holder->session->kernels[holder->rank].id, kernel);
    made = json_pack("{s:s, s:s, s:s, s:s}", "session", holder->session->name, "session_id",
                     session, "kernel_id", kernel, "access_key", holder->session->access_key);
    json_array_append_new(holders, made);
    return made;
}

static void agent_devices_add_holder(json_t *device, const struct principal *who,
                                     const struct grant_item *item,
                                     const struct core_holder *holder)
{
    json_t *holders = json_object_get(device, "holders"), *entry;

    if (!holders) {
        holders = json_array();
        json_object_set_new(device, "holders", holders);
    }
    entry = principal_sees_domain(who, holder->session->domain)
                ? agent_devices_make_holder(holders, holder)
                : agent_devices_find_nameless(holders);
    agent_devices_add_amount(entry, "amount", item);
    agent_devices_add_amount(device, "used", item);
}

static void agent_devices_annotate(struct annotated *a, const struct core *core,
                                   const struct principal *who, const struct agent *agent)
{
    struct core_held held = { .holders = NULL };

    agent_devices_index(a, agent->devices);
    (void)core_find_held(core, agent->id, &held); /* nothing of one not heard of since the start */
    for (size_t i = 0; i < held.grant.count; i++)
        agent_devices_add_holder(agent_devices_find_device(a, &held.grant.items[i]), who,
                                 &held.grant.items[i], &held.holders[i]);
    core_held_done(&held);
}

void agent_devices_write(const struct core *core, const struct principal *who,
                         const struct agent *agent, struct jsonw *w)
{
    struct annotated a = { .list = NULL, .index = MAP_INIT };
    char *text;

    agent_devices_annotate(&a, core, who, agent);
    text = json_dump_text(a.list, JSON_COMPACT);
    jsonw_key(w, "devices");
    jsonw_raw(w, text, strlen(text));
    free(text);
    map_done(&a.index);
    json_decref(a.list);
}
