/* SPDX-License-Identifier: Apache-2.0 */
/* Resource presets: one setting in the store, and a copy in memory. */
#include "manager/scheduling/presets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "manager/call/object_setting.h"
#include "manager/scheduling/scheduling_feature.h"

#define SETTING_PRESETS "resource.presets"
#define PRESET_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

/* ---- the setting ---- */

int presets_load(struct api *api, struct aq_error *err)
{
    return object_setting_load(core_store(api->core), SETTING_PRESETS, &api->scheduling->presets,
                               err);
}

const json_t *presets_all(const struct api *api)
{
    return api->scheduling->presets;
}

bool presets_find(const struct api *api, const char *name, struct arena *arena,
                  struct resource_preset *ret)
{
    const json_t *kept = json_object_get(presets_all(api), name);

    if (kept)
        object_setting_read_row(&resource_preset_entity, name, kept, arena, ret);
    return kept;
}

struct resource_preset *presets_list(const struct api *api, struct arena *arena, size_t *ret_count)
{
    return object_setting_read_rows(&resource_preset_entity, presets_all(api), arena, ret_count);
}

void presets_write(const struct resource_preset *preset, bool sizes_are_text, struct jsonw *w)
{
    entity_write_json(&resource_preset_entity, preset, sizes_are_text ? 0 : FIELD_UNSHOWN, NULL, w);
    if (sizes_are_text)
        return;
    jsonw_key(w, "shared_memory");
    if (preset->shared_memory)
        jsonw_int(w, strtoll(preset->shared_memory, NULL, 10));
    else
        jsonw_null(w);
}

/* ---- changing it ---- */

int presets_add_missing(struct store_tx *tx, const json_t *added, json_t **ret_all,
                        struct aq_error *err)
{
    json_auto_t *presets = NULL;
    int r = object_setting_read(tx, SETTING_PRESETS, &presets, err);

    if (r < 0)
        return r;
    (void)json_object_update_missing(presets, (json_t *)(uintptr_t)added);
    if (json_object_size(presets) > PRESETS_MAX)
        return aq_fail_field(err, E2BIG, "resource_presets",
                             "there would be %zu presets; %d is the most",
                             json_object_size(presets), PRESETS_MAX);
    return object_setting_write(tx, SETTING_PRESETS, presets, ret_all, err);
}

void presets_replace(struct api *api, json_t *all)
{
    json_decref(api->scheduling->presets);
    api->scheduling->presets = all;
}

static int presets_check_name(const char *name, struct aq_error *err)
{
    if (name[0] && strlen(name) <= PRESET_NAME_MAX && !name[strspn(name, PRESET_CHARS)])
        return 0;
    return api_fail_param(err, "name", "is 1 to %d letters, digits, dots, dashes and underscores",
                          PRESET_NAME_MAX);
}

/* The amounts as the API writes them, so that "1g" and 1073741824 are one. */
static int presets_format_slots(const struct api *api, const json_t *slots, struct arena *arena,
                                char **ret, struct aq_error *err)
{
    AQ_CLEANUP(slot_types_unrefp) struct slot_types *types = slot_types_ref(
        core_slot_types(api->core));
    AQ_CLEANUP(slots_donep) struct slots amounts = { .items = NULL };
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    struct aq_error why = { 0 };
    int r = slots_from_json(slots, types, &amounts, &why);

    if (r < 0)
        return api_fail_param(err, "resource_slots", "%s", why.text);
    if (!amounts.count)
        return api_fail_param(err, "resource_slots", "must name an amount, such as cpu");
    slots_write_json(&amounts, types, &w);
    *ret = arena_strdup(arena, text.data);
    return 0;
}

/* A whole preset, or those members of one that are given. */
static int presets_read(const struct api *api, const json_t *given, bool is_whole, json_t **ret,
                        struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const struct entity *entity = &resource_preset_entity;
    const json_t *slots = json_object_get(given, "resource_slots");
    struct resource_preset preset;
    int r;

    entity_read_json(entity, NULL, &arena, &preset);
    r = decode_object(is_whole ? entity->create : entity->change, given, &arena, &preset, err);
    if (r == 0 && slots)
        r = presets_format_slots(api, slots, &arena, &preset.resource_slots, err);
    if (r == 0)
        *ret = object_setting_make_value(entity, &preset, is_whole ? NULL : given);
    return r;
}

int presets_make(const struct api *api, const char *name, const json_t *given, json_t **ret,
                 struct aq_error *err)
{
    int r = presets_check_name(name, err);

    return r < 0 ? r : presets_read(api, given, true, ret, err);
}

int presets_change(struct api *api, enum object_setting_how how, const char *name,
                   const json_t *given, const struct audit_who *by, store_done_fn done, void *data,
                   struct aq_error *err)
{
    static const struct object_setting setting = {
        .name = SETTING_PRESETS, .kind = "preset", .title = "resource preset", .max = PRESETS_MAX
    };
    json_t *value = NULL;
    int r = presets_check_name(name, err);

    if (r == 0 && how != OBJECT_SETTING_REMOVE)
        r = presets_read(api, given, how != OBJECT_SETTING_MODIFY, &value, err);
    if (r == 0)
        object_setting_change(core_store(api->core), &setting, &api->scheduling->presets, how, name,
                              value, by, done, data);
    return r;
}
