/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of images: one setting in the store, a copy in memory, and what the core checks. */
#include "manager/image/image_limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "manager/image/image_aliases.h"
#include "manager/call/object_setting.h"
#include "manager/image/image_feature.h"
#include "model/reference.h"

#define SETTING_LIMITS "image.limits"
#define LABEL "ai.backend.resource."

/* ---- the setting ---- */

/* Tell the core of one image; NULL = nothing is set any more. */
static void image_limits_tell(struct api *api, const char *image, const json_t *limits)
{
    AQ_CLEANUP(slots_donep) struct slots min = { 0 }, max = { 0 };

    if (limits) { /* what cannot be read limits nothing */
        (void)slots_from_json(json_object_get(limits, "min"), NULL, &min, NULL);
        (void)slots_from_json(json_object_get(limits, "max"), NULL, &max, NULL);
    }
    core_set_image_limits(api->core, image, &min, &max);
}

int image_limits_load(struct api *api, struct aq_error *err)
{
    int r = object_setting_load(core_store(api->core), SETTING_LIMITS, &api->image->limits, err);
    const char *image;
    json_t *limits;

    json_object_foreach(api->image->limits, image, limits)
        image_limits_tell(api, image, limits);
    return r;
}

const json_t *image_limits_all(const struct api *api)
{
    return api->image->limits;
}

/* ---- what is shown ---- */

/* {SLOT: {"min": ...}}: 'amount' as 'bound' of 'slot'. */
static void image_limits_put(json_t *to, const char *slot, const char *bound, const json_t *amount)
{
    json_t *limits = json_object_get(to, slot);

    if (!limits)
        (void)json_object_set_new(to, slot, limits = json_object());
    (void)json_object_set(limits, bound, (json_t *)(uintptr_t)amount);
}

json_t *image_limits_shown(const struct api *api, const char *image, const json_t *labels)
{
    const json_t *set = json_object_get(api->image->limits, image);
    json_t *shown = json_object(), *value, *amounts;
    const char *key, *bound;

    json_object_foreach((json_t *)(uintptr_t)labels, key, value) {
        const char *rest = strncmp(key, LABEL, strlen(LABEL)) == 0 ? key + strlen(LABEL) : "";

        if (strncmp(rest, "min.", 4) == 0)
            image_limits_put(shown, rest + 4, "min", value);
        else if (strncmp(rest, "max.", 4) == 0)
            image_limits_put(shown, rest + 4, "max", value);
    }
    json_object_foreach((json_t *)(uintptr_t)set, bound, amounts)
        json_object_foreach(amounts, key, value)
            image_limits_put(shown, key, bound, value);
    return shown;
}

/* ---- changing them ---- */

struct image_limits_change {
    struct api *api;
    char *image;            /* canonical */
    json_t *limits, *fresh; /* NULL = none any more; all limits afterwards, by name */
    struct audit_who by;
    store_done_fn done;
    void *data;
};

static void image_limits_change_free(struct image_limits_change *change)
{
    json_decref(change->limits);
    json_decref(change->fresh);
    free(change->image);
    free(change);
}

static int image_limits_change_object(const struct image_limits_change *change, json_t *all,
                                      struct aq_error *err)
{
    if (!change->limits) {
        (void)json_object_del(all, change->image);
        return 0;
    }
    if (!json_object_get(all, change->image) && json_object_size(all) >= IMAGE_LIMITS_MAX)
        return aq_fail_field(err, E2BIG, "image",
                             "limits are set for %d images already; take those of another away",
                             IMAGE_LIMITS_MAX);
    (void)json_object_set(all, change->image, change->limits);
    return 0;
}

/* On the store's thread, which sees every change that was queued before. */
static int image_limits_write_change(struct store_tx *tx, void *data, struct aq_error *err)
{
    json_auto_t *all = NULL, *before = NULL;
    struct image_limits_change *change = data;
    int r = object_setting_read(tx, SETTING_LIMITS, &all, err);

    before = json_incref(json_object_get(all, change->image));
    if (r == 0)
        r = image_limits_change_object(change, all, err);
    if (r == 0)
        r = object_setting_write(tx, SETTING_LIMITS, all, &change->fresh, err);
    if (r < 0 || before == change->limits || json_equal(before, change->limits))
        return r; /* failed, or as it was */
    return object_setting_audit(tx, &change->by, "image-limits", change->image, before,
                                change->limits, err);
}

static void image_limits_on_written(void *data, int r, const struct aq_error *err)
{
    struct image_limits_change *change = data;
    struct api *api = change->api;

    if (r == 0) {
        json_decref(api->image->limits);
        api->image->limits = AQ_TAKE(change->fresh);
        image_limits_tell(api, change->image, change->limits);
    }
    change->done(change->data, r, err);
    image_limits_change_free(change);
}

/* {"min": {...}, "max": {...}}; NULL for none. */
static json_t *image_limits_describe(const struct api *api, const struct slots *min,
                                     const struct slots *max)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const struct slot_types *types = core_slot_types(api->core);
    struct jsonw w = jsonw_make(&text);

    if (!min->count && !max->count)
        return NULL;
    jsonw_object_begin(&w);
    jsonw_key(&w, "min");
    slots_write_json(min, types, &w);
    jsonw_key(&w, "max");
    slots_write_json(max, types, &w);
    jsonw_object_end(&w);
    return json_load_string(text.data, 0);
}

static int image_limits_check(const struct api *api, const char *image, const struct slots *min,
                              const struct slots *max, struct reference *ref, struct aq_error *err)
{
    struct aq_error why = { 0 };
    int r = reference_parse(image_aliases_resolve(api, image), NULL, ref, &why);

    if (r < 0)
        return api_fail_param(err, "image", "%s", why.text);
    for (size_t i = 0; i < min->count; i++)
        if (slots_has(max, min->items[i].name)
            && slots_get(max, min->items[i].name) < min->items[i].amount) {
            reference_done(ref);
            return api_fail_param(err, min->items[i].name, "the least is more than the most");
        }
    return 0;
}

int image_limits_set(struct api *api, const char *image, const struct slots *min,
                     const struct slots *max, const struct audit_who *by, store_done_fn done,
                     void *data, struct aq_error *err)
{
    struct image_limits_change *change;
    struct reference ref;
    int r = image_limits_check(api, image, min, max, &ref, err);

    if (r < 0)
        return r;
    change = aq_alloc(sizeof(*change));
    change->api = api;
    change->by = *by;
    change->done = done;
    change->data = data;
    change->image = AQ_TAKE(ref.text);
    change->limits = image_limits_describe(api, min, max);
    reference_done(&ref);
    store_write(core_store(api->core), image_limits_write_change, image_limits_on_written, change);
    return 0;
}
