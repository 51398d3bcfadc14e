/* SPDX-License-Identifier: Apache-2.0 */
/* Resource presets: one setting in the store, and a copy in memory. */
#include "manager/scheduling/presets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
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

void presets_write(const char *name, const json_t *preset, bool sizes_are_text, struct jsonw *w)
{
    AQ_CLEANUP(aq_freep) char *slots = json_dump_text(json_object_get(preset, "resource_slots"),
                                                      JSON_COMPACT);
    const char *shared = json_string_value(json_object_get(preset, "shared_memory"));

    jsonw_member_str(w, "name", name);
    api_write_raw(w, "resource_slots", slots);
    if (shared && !sizes_are_text)
        jsonw_member_int(w, "shared_memory", strtoll(shared, NULL, 10));
    else
        jsonw_member_str(w, "shared_memory", shared);
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
static int presets_read_slots(const struct api *api, const json_t *slots, json_t **ret,
                              struct aq_error *err)
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
    *ret = json_load_string(text.data, 0);
    return 0;
}

static int presets_read_shared(const char *text, json_t **ret, struct aq_error *err)
{
    char size[AMOUNT_TEXT_MAX];
    int64_t bytes;

    if (slot_amount_parse(text, strlen(text), SLOT_BYTES, false, "shmem", &bytes, NULL) < 0)
        return api_fail_param(err, "shared_memory", "'%.32s' is no size such as 64m", text);
    *ret = json_string(slot_amount_format(bytes, SLOT_BYTES, size));
    return 0;
}

/* Those that are given. */
static int presets_set_members(const struct api *api, const json_t *slots,
                               const char *shared_memory, json_t *preset, struct aq_error *err)
{
    json_auto_t *amounts = NULL, *memory = NULL;
    int r = slots ? presets_read_slots(api, slots, &amounts, err) : 0;

    if (r == 0 && shared_memory)
        r = presets_read_shared(shared_memory, &memory, err);
    if (r == 0 && amounts)
        (void)json_object_set(preset, "resource_slots", amounts);
    if (r == 0 && memory)
        (void)json_object_set(preset, "shared_memory", memory);
    return r;
}

int presets_make(const struct api *api, const char *name, const json_t *slots,
                 const char *shared_memory, json_t **ret, struct aq_error *err)
{
    json_auto_t *preset = json_pack("{s:n}", "shared_memory");
    int r = presets_check_name(name, err);

    if (r == 0 && (r = presets_set_members(api, slots, shared_memory, preset, err)) == 0)
        *ret = json_incref(preset);
    return r;
}

int presets_change(struct api *api, enum object_setting_how how, const char *name,
                   const json_t *slots, const char *shared_memory, const struct audit_who *by,
                   store_done_fn done, void *data, struct aq_error *err)
{
    static const struct object_setting setting = {
        .name = SETTING_PRESETS, .kind = "preset", .title = "resource preset", .max = PRESETS_MAX
    };
    json_auto_t *preset = NULL;
    int r = presets_check_name(name, err);

    if (r == 0 && how == OBJECT_SETTING_MODIFY)
        r = presets_set_members(api, slots, shared_memory, preset = json_object(), err);
    else if (r == 0 && how != OBJECT_SETTING_REMOVE)
        r = presets_make(api, name, slots, shared_memory, &preset, err);
    if (r == 0)
        object_setting_change(core_store(api->core), &setting, &api->scheduling->presets, how, name,
                              json_incref(preset), by, done, data);
    return r;
}
