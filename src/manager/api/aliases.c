/* Aliases of images: /aliquot/v1/image-aliases. */
#include "manager/api/aliases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/reference.h"
#include "store/token.h"

#define SETTING_ALIASES "image.aliases"
#define ALIAS_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-"

/* ---- the setting ---- */

/* An object; NULL if memory is short. What is damaged counts as none. */
static json_t *parse(const struct strbuf *text)
{
    json_t *object = text->len ? json_loads(text->data, 0, NULL) : NULL;

    if (json_is_object(object))
        return object;
    json_decref(object);
    return json_object();
}

static int read_setting(struct store_tx *tx, void *data, struct aq_error *err)
{
    int r = setting_get(tx, SETTING_ALIASES, data, err);

    return r == -ENOENT ? 0 : r;
}

int aliases_load(struct api *api, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = store_call(core_store(api->core), read_setting, &text, err);

    if (r == 0 && !(api->aliases = parse(&text)))
        r = aq_fail(err, ENOMEM, "aliases");
    return r;
}

const char *aliases_resolve(const struct api *api, const char *name)
{
    const char *image = json_string_value(json_object_get(api->aliases, name));

    return image ? image : name;
}

const json_t *aliases_all(const struct api *api)
{
    return api->aliases;
}

/* ---- changing it ---- */

struct change {
    struct api *api;
    char alias[ALIAS_MAX + 1];
    char *image;   /* NULL = remove */
    json_t *fresh; /* all aliases afterwards, by name */
    store_done_fn done;
    void *data;
};

static void change_free(struct change *change)
{
    json_decref(change->fresh);
    free(change->image);
    free(change);
}

static int apply(const struct change *change, json_t *aliases, struct aq_error *err)
{
    bool is_known = json_object_get(aliases, change->alias) != NULL;

    if (!change->image)
        return json_object_del(aliases, change->alias) == 0 ? 0
            : problem_no_such(err, "image alias", "'%s' is no alias", change->alias);
    if (!is_known && json_object_size(aliases) >= ALIASES_MAX)
        return aq_fail_field(err, E2BIG, "alias", "there are %d aliases already; remove one",
                             ALIASES_MAX);
    return json_object_set_new(aliases, change->alias, json_string(change->image)) == 0
               ? 0 : aq_fail(err, ENOMEM, "aliases");
}

/* On the store's thread, which sees every change that was queued before. */
static int write_change(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *sorted = NULL;
    json_auto_t *aliases = NULL;
    struct change *change = data;
    int r = read_setting(tx, &text, err);

    if (r < 0)
        return r;
    aliases = parse(&text);
    r = aliases ? apply(change, aliases, err) : aq_fail(err, ENOMEM, "aliases");
    if (r < 0)
        return r;
    sorted = json_dumps(aliases, JSON_COMPACT | JSON_SORT_KEYS);
    if (!sorted || !(change->fresh = json_loads(sorted, 0, NULL)))
        return aq_fail(err, ENOMEM, "aliases");
    return setting_set(tx, SETTING_ALIASES, sorted, err);
}

static void on_written(void *data, int r, const struct aq_error *err)
{
    struct change *change = data;

    if (r == 0) {
        json_decref(change->api->aliases);
        change->api->aliases = AQ_TAKE(change->fresh);
    }
    change->done(change->data, r, err);
    change_free(change);
}

static int check(const char *alias, const char *image, struct aq_error *err)
{
    struct reference ref;
    struct aq_error why = { 0 };

    if (!alias[0] || strlen(alias) > ALIAS_MAX || alias[strspn(alias, ALIAS_CHARS)])
        return api_fail_param(err, "alias", "is 1 to %d letters, digits, dots, colons, dashes and "
                              "underscores", ALIAS_MAX);
    if (strcmp(alias, "host") == 0 || strcmp(alias, "process") == 0)
        return api_fail_param(err, "alias", "'%s' means something already", alias);
    if (!image)
        return 0;
    if (reference_parse(image, NULL, &ref, &why) < 0)
        return api_fail_param(err, "image", "%s", why.text);
    reference_done(&ref);
    return 0;
}

int aliases_change(struct api *api, const char *alias, const char *image, store_done_fn done,
                   void *data, struct aq_error *err)
{
    struct change *change = NULL;
    int r = check(alias, image, err);

    if (r < 0)
        return r;
    if (!(change = calloc(1, sizeof(*change))))
        return aq_fail(err, ENOMEM, "alias");
    change->api = api;
    change->done = done;
    change->data = data;
    (void)snprintf(change->alias, sizeof(change->alias), "%s", alias);
    if ((image && !(change->image = strdup(image)))
        || store_write(core_store(api->core), write_change, on_written, change) < 0) {
        change_free(change);
        return aq_fail(err, ENOMEM, "alias");
    }
    return 0;
}

/* ---- requests ---- */

static void on_list(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    json_t *aliases = (json_t *)(uintptr_t)aliases_all(data);
    struct jsonw w = jsonw_make(&out);
    struct aq_error err = { 0 };
    const char *alias;
    json_t *image;

    if (api_decode(req, NULL, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    json_object_foreach(aliases, alias, image) {
        jsonw_object_begin(&w);
        jsonw_member_str(&w, "alias", alias);
        jsonw_member_str(&w, "image", json_string_value(image));
        jsonw_object_end(&w);
    }
    jsonw_array_end(&w);
    jsonw_member_int(&w, "total", (int64_t)json_object_size(aliases));
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

struct set_params {
    const char *image;
};

static const struct field set_fields[] = {
    { "image", FIELD_STR, FIELD_REQUIRED, offsetof(struct set_params, image), 1, REFERENCE_MAX },
    FIELD_END,
};

static void on_set(struct request *req, void *data)
{
    struct set_params params = { 0 };
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0
        || aliases_change(data, request_get_param(req, "alias"), params.image, api_reply_done, req,
                          &err) < 0)
        request_fail(req, &err);
}

static void on_remove(struct request *req, void *data)
{
    struct aq_error err = { 0 };

    if (api_decode(req, NULL, NULL, &err) < 0
        || aliases_change(data, request_get_param(req, "alias"), NULL, api_reply_done, req,
                          &err) < 0)
        request_fail(req, &err);
}

const struct route aliases_routes[] = {
    { METHOD_GET, "/aliquot/v1/image-aliases", API_USER, on_list, NULL,
      "Short names of images" },
    { METHOD_PUT, "/aliquot/v1/image-aliases/{alias}", API_SUPERADMIN, on_set, set_fields,
      "Give an image a short name" },
    { METHOD_DELETE, "/aliquot/v1/image-aliases/{alias}", API_SUPERADMIN, on_remove, NULL,
      "Take a short name away" },
};
API_ROUTES_END(aliases);
