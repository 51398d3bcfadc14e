/* SPDX-License-Identifier: Apache-2.0 */
/* An agent's devices with who holds what of them: "used" is the sum, "holders"
 * are [{"session", "session_id", "kernel_id", "access_key", "amount"}, ...].
 * Devices that kernels still hold but the agent no longer has are "gone".
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/json_load.h"
#include "base/map.h"
#include "manager/view/agent_devices.h"

struct annotated {
    json_t *list;
    struct map index; /* "slot id" -> its object */
};

#define KEY_MAX (SLOT_NAME_MAX + DEVICE_ID_MAX + 2)

static size_t agent_devices_write_key(const char *slot, const char *id, char key[KEY_MAX])
{
    return (size_t)snprintf(key, KEY_MAX, "%.*s %.*s", SLOT_NAME_MAX, slot, DEVICE_ID_MAX, id);
}

static int agent_devices_index(struct annotated *a, const char *text)
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

        if (slot && id
            && map_set(&a->index, key, agent_devices_write_key(slot, id, key), device) < 0)
            return -ENOMEM;
    }
    return a->list ? 0 : -ENOMEM;
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
    if (json_array_append_new(a->list, device) < 0 || map_set(&a->index, key, len, device) < 0)
        return NULL;
    return device;
}

static int agent_devices_add_holder(json_t *device, const struct grant_item *item,
                                    const struct core_holder *holder)
{
    const char *before = json_string_value(json_object_get(device, "used"));
    json_t *holders = json_object_get(device, "holders");
    char text[AMOUNT_TEXT_MAX], session[UUID_TEXT_MAX], kernel[UUID_TEXT_MAX];
    int64_t sum = 0;

    if (before)
        (void)slot_amount_parse(before, strlen(before), item->type, false, item->slot_name, &sum,
                                NULL);
    if (__builtin_add_overflow(sum, item->amount, &sum))
        sum = INT64_MAX;
    if (!holders) {
        holders = json_array();
        if (json_object_set_new(device, "holders", holders) < 0)
            return -ENOMEM;
    }
    if (json_object_set_new(device, "used", json_string(slot_amount_format(sum, item->type, text)))
        < 0)
        return -ENOMEM;
    uuid_format(&holder->session->id, session);
    uuid_format(&holder->session->kernels[holder->rank].id, kernel);
    return json_array_append_new(
               holders, json_pack("{s:s, s:s, s:s, s:s, s:s}", "session", holder->session->name,
                                  "session_id", session, "kernel_id", kernel, "access_key",
                                  holder->session->access_key, "amount",
                                  slot_amount_format(item->amount, item->type, text)))
                   < 0
               ? -ENOMEM
               : 0;
}

static int agent_devices_annotate(struct annotated *a, const struct core *core,
                                  const struct agent *agent)
{
    struct core_held held = { .holders = NULL };
    int r = agent_devices_index(a, agent->devices);

    if (r == 0)
        r = core_find_held(core, agent->id, &held);
    for (size_t i = 0; r == 0 && i < held.grant.count; i++) {
        json_t *device = agent_devices_find_device(a, &held.grant.items[i]);

        r = device ? agent_devices_add_holder(device, &held.grant.items[i], &held.holders[i])
                   : -ENOMEM;
    }
    core_held_done(&held);
    return r == -ENOENT ? 0 : r; /* not heard of since the start */
}

void agent_devices_write(const struct core *core, const struct agent *agent, struct jsonw *w)
{
    struct annotated a = { .list = NULL, .index = MAP_INIT };
    char *text = agent_devices_annotate(&a, core, agent) == 0 ? json_dumps(a.list, JSON_COMPACT)
                                                              : NULL;

    jsonw_key(w, "devices");
    if (text)
        jsonw_raw(w, text, strlen(text));
    else
        jsonw_null(w);
    free(text);
    map_done(&a.index);
    json_decref(a.list);
}
