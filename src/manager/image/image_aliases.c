/* SPDX-License-Identifier: Apache-2.0 */
/* Aliases of images: one setting in the store, and a copy in memory. */
#include "base/memory.h"
#include "manager/image/image_aliases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "manager/call/object_setting.h"
#include "manager/image/image_feature.h"
#include "model/reference.h"

#define SETTING_ALIASES "image.aliases"
#define ALIAS_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-"

/* ---- the setting ---- */

int image_aliases_load(struct api *api, struct aq_error *err)
{
    return object_setting_load(core_store(api->core), SETTING_ALIASES, &api->image->aliases, err);
}

const char *image_aliases_resolve(const struct api *api, const char *name)
{
    const char *image = json_string_value(json_object_get(api->image->aliases, name));

    return image ? image : name;
}

const json_t *image_aliases_all(const struct api *api)
{
    return api->image->aliases;
}

/* ---- changing it ---- */

struct image_aliases_change {
    struct api *api;
    char alias[ALIAS_MAX + 1];
    char *image;   /* NULL = remove */
    json_t *fresh; /* all aliases afterwards, by name */
    struct audit_who by;
    store_done_fn done;
    void *data;
};

static void image_aliases_change_free(struct image_aliases_change *change)
{
    json_decref(change->fresh);
    free(change->image);
    free(change);
}

static int image_aliases_change_object(const struct image_aliases_change *change, json_t *aliases,
                                       struct aq_error *err)
{
    bool is_known = json_object_get(aliases, change->alias) != NULL;

    if (!change->image)
        return json_object_del(aliases, change->alias) == 0
                   ? 0
                   : problem_no_such(err, "image alias", "'%s' is no alias", change->alias);
    if (!is_known && json_object_size(aliases) >= ALIASES_MAX)
        return aq_fail_field(err, E2BIG, "alias", "there are %d aliases already; remove one",
                             ALIASES_MAX);
    (void)json_object_set_new(aliases, change->alias, json_string(change->image));
    return 0;
}

/* 'before' is the image that it named, or NULL. */
static int image_aliases_audit(struct store_tx *tx, const struct image_aliases_change *change,
                               const char *before, struct aq_error *err)
{
    json_auto_t *old = before ? json_pack("{s:s}", "image", before) : NULL;
    json_auto_t *fresh = change->image ? json_pack("{s:s}", "image", change->image) : NULL;

    return object_setting_audit(tx, &change->by, "image-alias", change->alias, old, fresh, err);
}

/* On the store's thread, which sees every change that was queued before. */
static int image_aliases_write_change(struct store_tx *tx, void *data, struct aq_error *err)
{
    json_auto_t *aliases = NULL, *before = NULL;
    struct image_aliases_change *change = data;
    int r = object_setting_read(tx, SETTING_ALIASES, &aliases, err);

    before = json_incref(json_object_get(aliases, change->alias));
    if (r == 0)
        r = image_aliases_change_object(change, aliases, err);
    if (r == 0)
        r = object_setting_write(tx, SETTING_ALIASES, aliases, &change->fresh, err);
    return r < 0 ? r : image_aliases_audit(tx, change, json_string_value(before), err);
}

int image_aliases_add_missing(struct store_tx *tx, const json_t *added, json_t **ret_all,
                              struct aq_error *err)
{
    json_auto_t *aliases = NULL;
    int r = object_setting_read(tx, SETTING_ALIASES, &aliases, err);

    if (r < 0)
        return r;
    (void)json_object_update_missing(aliases, (json_t *)(uintptr_t)added);
    if (json_object_size(aliases) > ALIASES_MAX)
        return aq_fail_field(err, E2BIG, "image_aliases",
                             "there would be %zu aliases; %d is the most",
                             json_object_size(aliases), ALIASES_MAX);
    return object_setting_write(tx, SETTING_ALIASES, aliases, ret_all, err);
}

void image_aliases_replace(struct api *api, json_t *all)
{
    json_decref(api->image->aliases);
    api->image->aliases = all;
}

static void image_aliases_on_written(void *data, int r, const struct aq_error *err)
{
    struct image_aliases_change *change = data;

    if (r == 0)
        image_aliases_replace(change->api, AQ_TAKE(change->fresh));
    change->done(change->data, r, err);
    image_aliases_change_free(change);
}

int image_aliases_check(const char *alias, const char *image, struct aq_error *err)
{
    struct reference ref;
    struct aq_error why = { 0 };

    if (!alias[0] || strlen(alias) > ALIAS_MAX || alias[strspn(alias, ALIAS_CHARS)])
        return api_fail_param(err, "alias",
                              "is 1 to %d letters, digits, dots, colons, dashes and "
                              "underscores",
                              ALIAS_MAX);
    if (strcmp(alias, "host") == 0 || strcmp(alias, "process") == 0)
        return api_fail_param(err, "alias", "'%s' means something already", alias);
    if (!image)
        return 0;
    if (reference_parse(image, NULL, &ref, &why) < 0)
        return api_fail_param(err, "image", "%s", why.text);
    reference_done(&ref);
    return 0;
}

int image_aliases_change(struct api *api, const char *alias, const char *image,
                         const struct audit_who *by, store_done_fn done, void *data,
                         struct aq_error *err)
{
    struct image_aliases_change *change;
    int r = image_aliases_check(alias, image, err);

    if (r < 0)
        return r;
    change = aq_alloc(sizeof(*change));
    change->api = api;
    change->by = *by;
    change->done = done;
    change->data = data;
    (void)snprintf(change->alias, sizeof(change->alias), "%s", alias);
    change->image = aq_strdup(image);
    store_write(core_store(api->core), image_aliases_write_change, image_aliases_on_written,
                change);
    return 0;
}
