/* SPDX-License-Identifier: Apache-2.0 */
/* Aliases of images: one setting in the store, and a copy in memory. */
#include "manager/request/image_aliases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "model/reference.h"
#include "store/token.h"

#define SETTING_ALIASES "image.aliases"
#define ALIAS_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-"

/* ---- the setting ---- */

/* An object; NULL if memory is short. What is damaged counts as none. */
static json_t *image_aliases_parse(const struct strbuf *text)
{
    json_t *object = text->len ? json_load_string(text->data, 0) : NULL;

    if (json_is_object(object))
        return object;
    json_decref(object);
    return json_object();
}

static int image_aliases_read_setting(struct store_tx *tx, void *data, struct aq_error *err)
{
    int r = setting_get(tx, SETTING_ALIASES, data, err);

    return r == -ENOENT ? 0 : r;
}

int image_aliases_load(struct api *api, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = store_call(core_store(api->core), image_aliases_read_setting, &text, err);

    if (r == 0 && !(api->aliases = image_aliases_parse(&text)))
        r = aq_fail_oom(err);
    return r;
}

const char *image_aliases_resolve(const struct api *api, const char *name)
{
    const char *image = json_string_value(json_object_get(api->aliases, name));

    return image ? image : name;
}

const json_t *image_aliases_all(const struct api *api)
{
    return api->aliases;
}

/* ---- changing it ---- */

struct image_aliases_change {
    struct api *api;
    char alias[ALIAS_MAX + 1];
    char *image;   /* NULL = remove */
    json_t *fresh; /* all aliases afterwards, by name */
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
    return json_object_set_new(aliases, change->alias, json_string(change->image)) == 0
               ? 0
               : aq_fail_oom(err);
}

/* On the store's thread, which sees every change that was queued before. */
static int image_aliases_write_change(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *sorted = NULL;
    json_auto_t *aliases = NULL;
    struct image_aliases_change *change = data;
    int r = image_aliases_read_setting(tx, &text, err);

    if (r < 0)
        return r;
    aliases = image_aliases_parse(&text);
    r = aliases ? image_aliases_change_object(change, aliases, err) : aq_fail_oom(err);
    if (r < 0)
        return r;
    sorted = json_dump_text(aliases, JSON_COMPACT | JSON_SORT_KEYS);
    if (!sorted || !(change->fresh = json_load_string(sorted, 0)))
        return aq_fail_oom(err);
    return setting_set(tx, SETTING_ALIASES, sorted, err);
}

static void image_aliases_on_written(void *data, int r, const struct aq_error *err)
{
    struct image_aliases_change *change = data;

    if (r == 0) {
        json_decref(change->api->aliases);
        change->api->aliases = AQ_TAKE(change->fresh);
    }
    change->done(change->data, r, err);
    image_aliases_change_free(change);
}

static int image_aliases_check(const char *alias, const char *image, struct aq_error *err)
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

int image_aliases_change(struct api *api, const char *alias, const char *image, store_done_fn done,
                         void *data, struct aq_error *err)
{
    struct image_aliases_change *change = NULL;
    int r = image_aliases_check(alias, image, err);

    if (r < 0)
        return r;
    if (!(change = calloc(1, sizeof(*change))))
        return aq_fail_oom(err);
    change->api = api;
    change->done = done;
    change->data = data;
    (void)snprintf(change->alias, sizeof(change->alias), "%s", alias);
    if ((image && !(change->image = strdup(image)))
        || store_write(core_store(api->core), image_aliases_write_change, image_aliases_on_written,
                       change)
               < 0) {
        image_aliases_change_free(change);
        return aq_fail_oom(err);
    }
    return 0;
}
