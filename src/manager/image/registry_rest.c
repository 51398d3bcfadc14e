/* SPDX-License-Identifier: Apache-2.0 */
/* /aliquot/v1/registries: what container registries are logged in with. */
#include <errno.h>
#include <string.h>

#include "base/json_load.h"
#include "manager/image/image_feature.h"
#include "manager/cluster/cluster.h"
#include "manager/image/rescan.h"

#define REGISTRY_TEXT_MAX 1024 /* bytes of a user name, a password, an address */

/* ---- list ---- */

struct registry_list {
    struct request *req;
    json_t *tree; /* by name */
};

static int registry_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct registry_list *list = data;

    return registry_tree_read(tx, &list->tree, err);
}

static void registry_write_row(const char *name, const json_t *registry, struct jsonw *w)
{
    const json_t *url = json_is_object(registry) ? json_object_get(registry, "") : registry;

    jsonw_object_begin(w);
    jsonw_member_str(w, "name", name);
    jsonw_member_str(w, "url", json_string_value(url));
    jsonw_member_str(w, "username", json_string_value(json_object_get(registry, "username")));
    jsonw_member_bool(w, "has_password", json_object_get(registry, "password") != NULL);
    jsonw_object_end(w);
}

static void registry_on_read(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct registry_list *list = data;
    json_auto_t *tree = list->tree;
    struct jsonw w = jsonw_make(&out);
    const char *name;
    json_t *registry;

    if (r < 0) {
        request_fail(list->req, err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    json_object_foreach(tree, name, registry)
        if (*name)
            registry_write_row(name, registry, &w);
    jsonw_array_end(&w);
    jsonw_member_int(&w, "total", (int64_t)json_object_size(tree) - !!json_object_get(tree, ""));
    jsonw_object_end(&w);
    request_reply_json(list->req, 200, &out);
}

static void registry_on_list(struct request *req, void *data)
{
    struct registry_list *list = arena_alloc(request_get_arena(req), sizeof(*list));
    const struct api *api = data;

    if (!api_has_no_params(req))
        return;
    *list = (struct registry_list){ .req = req };
    store_read(core_store(api->core), registry_read, registry_on_read, list);
}

/* ---- log in and out ---- */

struct registry_params {
    const char *username, *password, *url;
};

static const struct field registry_fields[] = {
    { "username", FIELD_STR, FIELD_REQUIRED, offsetof(struct registry_params, username), 1,
      REGISTRY_TEXT_MAX },
    { "password", FIELD_STR, FIELD_REQUIRED, offsetof(struct registry_params, password), 1,
      REGISTRY_TEXT_MAX, .doc = "or an access token; it is never shown again" },
    { "url", FIELD_STR, FIELD_NULLABLE, offsetof(struct registry_params, url), 1, REGISTRY_TEXT_MAX,
      .doc = "for clients of Backend.AI; https://NAME by default" },
    FIELD_END,
};

static void registry_on_changed(void *req, const struct config_result *result, int r,
                                const struct aq_error *err)
{
    struct aq_error missing = { 0 };

    if (r == 0 && !result->removed && !result->added && !result->changed && !result->same)
        r = problem_no_such(&missing, "registry", "no login is kept for '%.100s'",
                            request_get_param(req, "name"));
    if (r < 0)
        request_fail(req, missing.code ? &missing : err);
    else
        request_reply(req, 204, NULL, NULL, 0);
}

static int registry_fill(const struct registry_params *params, const struct request *req,
                         struct config_change *change, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *url = aq_format("https://%s", request_get_param(req, "name"));
    AQ_CLEANUP(aq_freep) char *name = NULL;
    int r = registry_name_read(request_get_param(req, "name"), &name, err);

    if (r == 0)
        r = registry_put(&change->puts, name, "", params->url ? params->url : url, err);
    if (r == 0)
        r = registry_put(&change->puts, name, "password", params->password, err);
    return r < 0 ? r : registry_put(&change->puts, name, "username", params->username, err);
}

static void registry_finish(struct request *req, struct config_change *change, struct aq_error *err)
{
    if (!err->code) {
        config_change_start(change, registry_on_changed, req);
        return;
    }
    config_change_free(change);
    request_fail(req, err);
}

static void registry_on_login(struct request *req, void *data)
{
    struct config_change *change = config_change_new(data, req);
    struct registry_params params = { 0 };
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) == 0)
        (void)registry_fill(&params, req, change, &err);
    registry_finish(req, change, &err);
}

static void registry_on_logout(struct request *req, void *data)
{
    struct config_change *change = config_change_new(data, req);
    AQ_CLEANUP(aq_freep) char *name = NULL;
    struct aq_error err = { 0 };

    if (api_decode(req, NULL, NULL, &err) == 0
        && registry_name_read(request_get_param(req, "name"), &name, &err) == 0) {
        change->below = true;
        change->from = registry_key_of(name);
    }
    registry_finish(req, change, &err);
}

/* ---- rescan ---- */

static void registry_on_rescan_begun(void *data, const struct uuid *id, int r,
                                     const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct request *req = data;
    struct jsonw w = jsonw_make(&out);

    if (r < 0) {
        request_fail(req, err);
        return;
    }
    jsonw_object_begin(&w);
    api_write_uuid(&w, "task_id", id);
    jsonw_object_end(&w);
    request_reply_json(req, 202, &out);
}

static void registry_on_rescan(struct request *req, void *data)
{
    struct api *api = data;
    struct aq_error err = { 0 };

    if (!api_has_no_params(req))
        return;
    if (rescan_start(api, api_principal(req), api_who(api, req), request_get_param(req, "name"),
                     registry_on_rescan_begun, req, &err)
        < 0)
        request_fail(req, &err);
}

static const struct route registry_routes[] = {
    { METHOD_GET, "/aliquot/v1/registries", API_SUPERADMIN, registry_on_list, NULL,
      "Container registries that agents log in to" },
    { METHOD_PUT, "/aliquot/v1/registries/{name}", API_SUPERADMIN, registry_on_login,
      registry_fields, "Keep a login of a container registry, with which agents fetch images",
      .answer = { 204 } },
    { METHOD_DELETE, "/aliquot/v1/registries/{name}", API_SUPERADMIN, registry_on_logout, NULL,
      "Forget the login of a container registry", .answer = { 204 } },
    { METHOD_POST, "/aliquot/v1/registries/{name}/rescan", API_SUPERADMIN, registry_on_rescan, NULL,
      "Ask a container registry for its images, as a background task", .answer = { 202 } },
};
API_ROUTES_END(registry);
