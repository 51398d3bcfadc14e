/* SPDX-License-Identifier: Apache-2.0 */
/* Resource presets: one setting in the store, and a copy in memory. */
#include "manager/request/presets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "manager/request/object_setting.h"

#define SETTING_PRESETS "resource.presets"
#define PRESET_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

/* ---- the setting ---- */

int presets_load(struct api *api, struct aq_error *err)
{
    return object_setting_load(core_store(api->core), SETTING_PRESETS, &api->presets, err);
}

const json_t *presets_all(const struct api *api)
{
    return api->presets;
}

void presets_write(const char *name, const json_t *preset, bool sizes_are_text, struct jsonw *w)
{
    AQ_CLEANUP(aq_freep) char *slots = json_dump_text(json_object_get(preset, "resource_slots"),
                                                      JSON_COMPACT);
    const char *shared = json_string_value(json_object_get(preset, "shared_memory"));

    w->out->failed |= !slots;
    jsonw_member_str(w, "name", name);
    api_write_raw(w, "resource_slots", slots);
    if (shared && !sizes_are_text)
        jsonw_member_int(w, "shared_memory", strtoll(shared, NULL, 10));
    else
        jsonw_member_str(w, "shared_memory", shared);
}

/* ---- changing it ---- */

struct presets_change {
    struct api *api;
    char name[PRESET_NAME_MAX + 1];
    json_t *preset; /* NULL = remove */
    json_t *fresh;  /* all presets afterwards, by name */
    struct audit_who by;
    store_done_fn done;
    void *data;
};

static void presets_change_free(struct presets_change *change)
{
    json_decref(change->preset);
    json_decref(change->fresh);
    free(change);
}

static int presets_change_object(const struct presets_change *change, json_t *presets,
                                 struct aq_error *err)
{
    bool is_known = json_object_get(presets, change->name) != NULL;

    if (!change->preset)
        return json_object_del(presets, change->name) == 0
                   ? 0
                   : problem_no_such(err, "resource preset", "there is no preset '%s'",
                                     change->name);
    if (!is_known && json_object_size(presets) >= PRESETS_MAX)
        return aq_fail_field(err, E2BIG, "name", "there are %d presets already; remove one",
                             PRESETS_MAX);
    return json_object_set(presets, change->name, change->preset) == 0 ? 0 : aq_fail_oom(err);
}

/* On the store's thread, which sees every change that was queued before. */
static int presets_write_change(struct store_tx *tx, void *data, struct aq_error *err)
{
    json_auto_t *presets = NULL, *before = NULL;
    struct presets_change *change = data;
    int r = object_setting_read(tx, SETTING_PRESETS, &presets, err);

    before = json_incref(json_object_get(presets, change->name));
    if (r == 0)
        r = presets_change_object(change, presets, err);
    if (r == 0)
        r = object_setting_write(tx, SETTING_PRESETS, presets, &change->fresh, err);
    return r < 0 ? r
                 : object_setting_audit(tx, &change->by, "preset", change->name, before,
                                        change->preset, err);
}

int presets_add_missing(struct store_tx *tx, const json_t *added, json_t **ret_all,
                        struct aq_error *err)
{
    json_auto_t *presets = NULL;
    int r = object_setting_read(tx, SETTING_PRESETS, &presets, err);

    if (r < 0)
        return r;
    if (json_object_update_missing(presets, (json_t *)(uintptr_t)added) < 0)
        return aq_fail_oom(err);
    if (json_object_size(presets) > PRESETS_MAX)
        return aq_fail_field(err, E2BIG, "resource_presets",
                             "there would be %zu presets; %d is the most",
                             json_object_size(presets), PRESETS_MAX);
    return object_setting_write(tx, SETTING_PRESETS, presets, ret_all, err);
}

void presets_replace(struct api *api, json_t *all)
{
    json_decref(api->presets);
    api->presets = all;
}

static void presets_on_written(void *data, int r, const struct aq_error *err)
{
    struct presets_change *change = data;

    if (r == 0)
        presets_replace(change->api, AQ_TAKE(change->fresh));
    change->done(change->data, r, err);
    presets_change_free(change);
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

    if (r == -ENOMEM)
        return aq_fail_oom(err);
    if (r < 0)
        return api_fail_param(err, "resource_slots", "%s", why.text);
    if (!amounts.count)
        return api_fail_param(err, "resource_slots", "must name an amount, such as cpu");
    slots_write_json(&amounts, types, &w);
    return strbuf_ok(&text) && (*ret = json_load_string(text.data, 0)) ? 0 : aq_fail_oom(err);
}

int presets_make(const struct api *api, const char *name, const json_t *slots,
                 const char *shared_memory, json_t **ret, struct aq_error *err)
{
    char text[AMOUNT_TEXT_MAX];
    json_t *amounts = NULL, *memory = NULL;
    int64_t bytes;
    int r = presets_check_name(name, err);

    if (r < 0 || (r = presets_read_slots(api, slots, &amounts, err)) < 0)
        return r;
    if (!shared_memory) {
        memory = json_null();
    } else if (slot_amount_parse(shared_memory, strlen(shared_memory), SLOT_BYTES, false, "shmem",
                                 &bytes, NULL)
               == 0) {
        memory = json_string(slot_amount_format(bytes, SLOT_BYTES, text));
    } else {
        json_decref(amounts);
        return api_fail_param(err, "shared_memory", "'%.32s' is no size such as 64m",
                              shared_memory);
    }
    *ret = json_pack("{s:o, s:o}", "resource_slots", amounts, "shared_memory", memory);
    return *ret ? 0 : aq_fail_oom(err);
}

int presets_change(struct api *api, const char *name, const json_t *slots,
                   const char *shared_memory, const struct audit_who *by, store_done_fn done,
                   void *data, struct aq_error *err)
{
    struct presets_change *change = NULL;
    int r = presets_check_name(name, err);

    if (r < 0)
        return r;
    if (!(change = calloc(1, sizeof(*change))))
        return aq_fail_oom(err);
    change->api = api;
    change->by = *by;
    change->done = done;
    change->data = data;
    (void)snprintf(change->name, sizeof(change->name), "%s", name);
    r = slots ? presets_make(api, name, slots, shared_memory, &change->preset, err) : 0;
    if (r == 0
        && store_write(core_store(api->core), presets_write_change, presets_on_written, change) < 0)
        r = aq_fail_oom(err);
    if (r < 0)
        presets_change_free(change);
    return r;
}
