/* SPDX-License-Identifier: Apache-2.0 */
/* What agents say of their accelerator plugins, as clients want it. */
#include "manager/node/agent_plugins.h"

#include <jansson.h>
#include <string.h>

#include "base/json_load.h"
#include "base/map.h"
#include "manager/node/node.h"

static const char *agent_plugins_text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* Of a list that a plugin gave; NULL if it is none. Caller drops it. */
static json_t *agent_plugins_load(const char *plugins)
{
    return plugins ? json_load_string(plugins, JSON_REJECT_DUPLICATES) : NULL;
}

/* Texts; "true" and "false" are what clients compare with booleans. */
static void agent_plugins_write_info(const json_t *plugin, struct jsonw *w)
{
    const char *key;
    json_t *value;

    json_object_foreach(json_object_get(plugin, "info"), key, value) {
        const char *text = json_string_value(value);

        if (!text || strcmp(key, "version") == 0)
            continue;
        if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
            jsonw_member_bool(w, key, text[0] == 't');
        else
            jsonw_member_str(w, key, text);
    }
}

static void agent_plugins_write_version(struct jsonw *w, const char *key, const char *version)
{
    jsonw_key(w, key);
    jsonw_object_begin(w);
    jsonw_member_str(w, "version", version);
    jsonw_object_end(w);
}

void plugins_write_compute(const char *version, const char *plugins, struct jsonw *w)
{
    json_t *list = agent_plugins_load(plugins), *plugin;
    size_t i;

    jsonw_object_begin(w);
    agent_plugins_write_version(w, "cpu", version);
    agent_plugins_write_version(w, "mem", version);
    json_array_foreach(list, i, plugin) {
        const char *key = agent_plugins_text_of(plugin, "key");

        if (!key)
            continue;
        jsonw_key(w, key);
        jsonw_object_begin(w);
        jsonw_member_str(w, "version", agent_plugins_text_of(plugin, "version"));
        agent_plugins_write_info(plugin, w);
        jsonw_object_end(w);
    }
    jsonw_object_end(w);
    json_decref(list);
}

void plugins_write_hardware(const char *plugins, struct jsonw *w)
{
    json_t *list = agent_plugins_load(plugins), *plugin;
    size_t i;

    jsonw_object_begin(w);
    json_array_foreach(list, i, plugin) {
        const char *error = agent_plugins_text_of(plugin, "error"),
                   *key = agent_plugins_text_of(plugin, "key");
        const char *status = agent_plugins_text_of(plugin, "status");

        /* one that has never answered has no key yet */
        key = key ? key : agent_plugins_text_of(plugin, "plugin");
        if (!key)
            continue;
        jsonw_key(w, key);
        jsonw_object_begin(w);
        jsonw_member_str(w, "status", status ? status : "unavailable");
        jsonw_member_str(w, "status_info",
                         error ? error : agent_plugins_text_of(plugin, "status_text"));
        jsonw_key(w, "metadata");
        jsonw_object_begin(w);
        agent_plugins_write_info(plugin, w);
        jsonw_object_end(w);
        jsonw_object_end(w);
    }
    jsonw_object_end(w);
    json_decref(list);
}

/* ---- slots ---- */

struct described {
    struct map slots; /* name -> its object */
    json_t *lists;    /* that own them */
};

static void agent_plugins_add_slots(struct described *d, const json_t *plugin)
{
    json_t *slot;
    size_t i;

    json_array_foreach(json_object_get(plugin, "slots"), i, slot) {
        const char *name = agent_plugins_text_of(slot, "name");

        if (name && !map_gets(&d->slots, name))
            map_sets(&d->slots, name, slot);
    }
}

static void agent_plugins_add_agent(struct described *d, const struct core *core,
                                    const struct agent *agent)
{
    json_t *list = agent_plugins_load(core_agent_get_plugins(core, agent->id)), *plugin;
    size_t i;

    if (!list)
        return;
    json_array_append_new(d->lists, list);
    json_array_foreach(list, i, plugin)
        agent_plugins_add_slots(d, plugin);
}

static void agent_plugins_write_text(struct jsonw *w, const char *key, const json_t *slot,
                                     const char *member, const char *otherwise)
{
    const char *text = agent_plugins_text_of(slot, member);

    jsonw_member_str(w, key, text ? text : otherwise);
}

static void agent_plugins_write_slot(const char *name, enum slot_type type, const json_t *slot,
                                     struct jsonw *w)
{
    bool is_cpu = strcmp(name, "cpu") == 0, is_mem = strcmp(name, "mem") == 0;
    const char *fixed = is_cpu ? "CPU" : is_mem ? "Memory" : name;

    jsonw_key(w, name);
    jsonw_object_begin(w);
    jsonw_member_str(w, "slot_name", name);
    agent_plugins_write_text(w, "human_readable_name", slot, "human_name", is_mem ? "RAM" : fixed);
    agent_plugins_write_text(w, "description", slot, "description", fixed);
    agent_plugins_write_text(w, "display_unit", slot, "display_unit",
                             is_cpu               ? "Core"
                             : type == SLOT_BYTES ? "GiB"
                                                  : "Unit");
    agent_plugins_write_text(w, "display_icon", slot, "display_icon",
                             is_cpu || is_mem ? "cpu" : "gpu1");
    jsonw_key(w, "number_format");
    jsonw_object_begin(w);
    jsonw_member_bool(w, "binary", type == SLOT_BYTES);
    jsonw_member_int(w, "round_length", json_integer_value(json_object_get(slot, "round_length")));
    jsonw_object_end(w);
    jsonw_object_end(w);
}

/* Does anybody of the group offer it? */
static bool agent_plugins_is_offered(const struct core *core, const char *project, const char *name)
{
    const struct agent *agent;

    for (size_t i = 0; (agent = core_get_agent(core, i)); i++)
        if (agent->resource_group && strcmp(agent->resource_group, project) == 0
            && slots_has(&agent->available, name))
            return true;
    return false;
}

void plugins_write_slots(const struct core *core, const char *project, struct jsonw *w)
{
    const struct slot_types *types = core_slot_types(core);
    struct described d = { .slots = MAP_INIT, .lists = json_array() };
    const struct agent *agent;
    enum slot_type type;

    for (size_t i = 0; d.lists && (agent = core_get_agent(core, i)); i++)
        if (!project || (agent->resource_group && strcmp(agent->resource_group, project) == 0))
            agent_plugins_add_agent(&d, core, agent);
    jsonw_object_begin(w);
    for (size_t i = 0; i < slot_types_count(types); i++) {
        const char *name = slot_types_name(types, i, &type);

        if (!project || map_gets(&d.slots, name) || agent_plugins_is_offered(core, project, name))
            agent_plugins_write_slot(name, type, map_gets(&d.slots, name), w);
    }
    jsonw_object_end(w);
    map_done(&d.slots);
    json_decref(d.lists);
}
