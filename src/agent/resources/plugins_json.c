/* SPDX-License-Identifier: Apache-2.0 */
/* The accelerator plugins of a node, as the manager is told.
 *
 * A plugin is {"plugin", "key", "status", "status_text", "error", "name",
 * "version", "info": {...}, "slots": [...]}; a slot is {"name", "type",
 * "quantum", "human_name", "description", "display_unit", "display_icon",
 * "round_length"}. What is not known is left out; "error" says why the plugin
 * does not answer now, and then "key" and the rest are as it said last.
 */
#include "agent/resources/resources.h"
#include "base/jsonw.h"

static void plugins_json_add_text(struct jsonw *w, const char *key, const char *text)
{
    if (text)
        jsonw_member_str(w, key, text);
}

static void plugins_json_write_slot(const struct accel_slot *slot, struct jsonw *w)
{
    char text[AMOUNT_TEXT_MAX];

    jsonw_object_begin(w);
    jsonw_member_str(w, "name", slot->name);
    jsonw_member_str(w, "type", slot_type_name(slot->type));
    if (slot->quantum)
        jsonw_member_str(w, "quantum", slot_amount_format(slot->quantum, slot->type, text));
    plugins_json_add_text(w, "human_name", slot->human_name);
    plugins_json_add_text(w, "description", slot->description);
    plugins_json_add_text(w, "display_unit", slot->display_unit);
    plugins_json_add_text(w, "display_icon", slot->display_icon);
    jsonw_member_int(w, "round_length", slot->round_length);
    jsonw_object_end(w);
}

static void plugins_json_write_plugin(const struct accel_plugin *plugin, struct jsonw *w)
{
    jsonw_object_begin(w);
    jsonw_member_str(w, "plugin", plugin->name);
    plugins_json_add_text(w, "key", plugin->key);
    jsonw_member_str(w, "status",
                     accel_status_name(plugin->error ? ACCEL_OFFLINE : plugin->status));
    plugins_json_add_text(w, "status_text", plugin->status_text);
    plugins_json_add_text(w, "error", plugin->error);
    plugins_json_add_text(w, "name", plugin->human_name);
    plugins_json_add_text(w, "version", plugin->version);
    jsonw_key(w, "info");
    jsonw_object_begin(w);
    for (size_t i = 0; i < plugin->info_count; i++)
        jsonw_member_str(w, plugin->info[i].key, plugin->info[i].value);
    jsonw_object_end(w);
    jsonw_key(w, "slots");
    jsonw_array_begin(w);
    for (size_t i = 0; i < plugin->slot_count; i++)
        plugins_json_write_slot(&plugin->slots[i], w);
    jsonw_array_end(w);
    jsonw_object_end(w);
}

char *resources_describe_plugins(const struct accel *accel)
{
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    const struct accel_plugin *plugin;

    jsonw_array_begin(&w);
    for (size_t i = 0; accel && (plugin = accel_plugin(accel, i)); i++)
        if (plugin->key || plugin->error) /* else it has not been started: there is no driver */
            plugins_json_write_plugin(plugin, &w);
    jsonw_array_end(&w);
    return strbuf_steal(&text);
}
