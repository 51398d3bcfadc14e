/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for sessions that name a template. */
#include "manager/session/session_template.h"

#include <errno.h>
#include <string.h>

#include "base/json_load.h"
#include "manager/rules/template_find.h"
#include "manager/session/session_params.h"
#include "manager/template/template.h"

static const char *const session_template_names[] = { "template", "template_id", "templateId" };

/* A request whose templates are read. */
struct session_template_call {
    struct request *req;
    json_t *tree;
    struct folder_viewer who;
    session_template_fn *done;
    void *data;
};

/* The template that a session is made from; NULL = none. */
static const json_t *session_template_of(const json_t *object)
{
    const json_t *found = NULL;

    for (size_t i = 0; i < AQ_COUNT(session_template_names) && !found; i++) {
        found = json_object_get(object, session_template_names[i]);
        found = json_is_null(found) ? NULL : found;
    }
    return found;
}

static void session_template_strip(json_t *object)
{
    for (size_t i = 0; i < AQ_COUNT(session_template_names); i++)
        (void)json_object_del(object, session_template_names[i]);
}

/* ---- a session's ---- */

/* The commands that clone a repository come first. */
static void session_template_prepend(json_t *object, const char *key, const struct strbuf *clone)
{
    const char *script = json_string_value(json_object_get(object, key));

    if (clone->len)
        (void)json_object_set_new(object, key,
                                  json_sprintf("%s%s", clone->data, script ? script : ""));
}

/* What a stored template asks for. */
static json_t *session_template_load(const struct template_row *row, struct strbuf *ret_clone,
                                     struct aq_error *err)
{
    json_auto_t *parsed = json_load_string(row->parsed, 0);

    return template_request(parsed, ret_clone, err);
}

/* ---- a cluster's ---- */

/* "config", made if there is none. */
static json_t *session_template_config(json_t *request)
{
    json_t *config = json_object_get(request, "config");

    if (!config)
        (void)json_object_set_new(request, "config", config = json_object());
    return config;
}

/* The environment of all, under that of one. */
static void session_template_add_environ(json_t *config, const json_t *common)
{
    json_t *own = json_object_get(config, "environ");
    json_t *all = json_copy((json_t *)(uintptr_t)common);

    if (own)
        (void)json_object_update(all, own);
    (void)json_object_set_new(config, "environ", all);
}

/* Kernels of another role, as POST /session has it. */
static json_t *session_template_role(const struct template_node *node, json_t *request)
{
    json_t *config = json_object_get(request, "config");

    return json_pack("{s:s, s:I, s:O, s:O*, s:O*, s:O*, s:O*}", "role", node->role, "count",
                     (json_int_t)node->replicas, "image", json_object_get(request, "image"),
                     "startupCommand", json_object_get(request, "startupCommand"),
                     "bootstrap_script", json_object_get(request, "bootstrap_script"), "environ",
                     json_object_get(config, "environ"), "resources",
                     json_object_get(config, "resources"));
}

/* One role into *inout_base: the first is what the session itself asks for. */
static int session_template_add_node(struct store_tx *tx, const struct folder_viewer *who,
                                     const struct template_cluster *cluster,
                                     const struct template_node *node, struct arena *arena,
                                     struct strbuf *ret_clone, json_t **inout_base,
                                     struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf clone = STRBUF_INIT;
    struct template_row row;
    json_auto_t *request = NULL;
    bool is_main = !*inout_base;
    int r = template_find(tx, who, node->session_template, arena, &row, err);

    if (r < 0)
        return aq_error_wrap(err, "role %s", node->role);
    if (row.kind != TEMPLATE_SESSION)
        return api_fail_param(err, "template", "role %s: '%.64s' is a cluster's", node->role,
                              row.name);
    if (!(request = session_template_load(&row, is_main ? ret_clone : &clone, err)))
        return -err->code;
    session_template_add_environ(session_template_config(request), cluster->environ);
    session_template_prepend(request, "bootstrap_script", &clone);
    if (is_main) {
        *inout_base = json_incref(request);
        (void)json_object_set_new(request, "roles", json_array());
    } else {
        (void)json_array_append_new(json_object_get(*inout_base, "roles"),
                                    session_template_role(node, request));
    }
    return 0;
}

static json_t *session_template_cluster(struct store_tx *tx, const struct folder_viewer *who,
                                        const struct template_row *row, struct arena *arena,
                                        struct strbuf *ret_clone, struct aq_error *err)
{
    json_auto_t *parsed = json_load_string(row->parsed, 0);
    struct template_cluster *cluster = arena_alloc(arena, sizeof(*cluster));
    json_auto_t *over = json_object(); /* the cluster's own mounts */
    json_t *base = NULL;
    int r = template_read_cluster(parsed, arena, cluster, err);

    if (r < 0)
        return NULL;
    for (size_t i = 0; r == 0 && i < cluster->count; i++)
        r = session_template_add_node(tx, who, cluster, &cluster->nodes[i], arena, ret_clone, &base,
                                      err);
    if (r == 0) {
        (void)json_object_set_new(base, "clusterMode",
                                  json_string(cluster_mode_name(cluster->is_multi_node)));
        if (cluster->tag && *cluster->tag)
            (void)json_object_set_new(base, "tag", json_string(cluster->tag));
        template_add_mounts(session_template_config(over), cluster->mounts);
        if (json_object_size(cluster->mounts))
            template_overlay(session_fields, base, over);
        (void)json_object_del(base, "clusterSize");
    } else {
        json_decref(AQ_TAKE(base));
    }
    template_cluster_done(cluster);
    return base;
}

/* Variables of the request count in every role. */
static void session_template_add_to_roles(const json_t *base, const json_t *request)
{
    const json_t *variables = json_object_get(json_object_get(request, "config"), "environ");
    json_t *role;
    size_t i;

    if (!json_is_object(variables))
        return;
    json_array_foreach(json_object_get(base, "roles"), i, role) {
        json_t *own = json_object_get(role, "environ");

        if (!json_object_size(variables))
            (void)json_object_clear(own);
        else
            (void)json_object_update(own, (json_t *)(uintptr_t)variables);
    }
}

/* ---- together ---- */

static int session_template_apply(struct store_tx *tx, const struct session_template_call *call,
                                  json_t *object, const json_t *name, struct aq_error *err)
{
    struct arena *arena = request_get_arena(call->req);
    AQ_CLEANUP(strbuf_donep) struct strbuf clone = STRBUF_INIT;
    struct template_row row;
    json_auto_t *base = NULL;
    int r;

    if (!json_is_string(name))
        return api_fail_param(err, "template", "not the name or id of a template");
    if ((r = template_find(tx, &call->who, json_string_value(name), arena, &row, err)) < 0)
        return r == -ENOENT ? problem_no_such(err, "task template", "there is no template '%.64s'",
                                              json_string_value(name))
                            : r;
    base = row.kind == TEMPLATE_SESSION
               ? session_template_load(&row, &clone, err)
               : session_template_cluster(tx, &call->who, &row, arena, &clone, err);
    if (!base)
        return -err->code;
    session_template_strip(object);
    if (row.project_name)
        (void)json_object_set_new(base, "group", json_string(row.project_name));
    template_overlay(session_fields, base, object);
    session_template_prepend(base, "bootstrap_script", &clone);
    session_template_add_to_roles(base, object);
    (void)json_object_clear(object);
    (void)json_object_update(object, base);
    return 0;
}

/* store_tx_fn */
static int session_template_run(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct session_template_call *call = data;
    size_t count = json_is_array(call->tree) ? json_array_size(call->tree) : 1;
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
        json_t *object = json_is_array(call->tree) ? json_array_get(call->tree, i) : call->tree;
        json_auto_t *name = json_incref((json_t *)(uintptr_t)session_template_of(object));

        if (name)
            r = session_template_apply(tx, call, object, name, err);
    }
    return r;
}

static void session_template_on_done(void *data, int r, const struct aq_error *err)
{
    struct session_template_call *call = data;

    if (r < 0)
        json_decref(AQ_TAKE(call->tree));
    call->done(call->req, call->data, call->tree, err);
}

static bool session_template_is_named(const json_t *tree)
{
    const json_t *object;
    size_t i;

    if (!json_is_array(tree))
        return session_template_of(tree);
    json_array_foreach(tree, i, object)
        if (session_template_of(object))
            return true;
    return false;
}

/* Whose templates they are: the owner's of the session. */
static int session_template_read_who(struct api *api, struct session_template_call *call,
                                     struct aq_error *err)
{
    const json_t *object = json_is_array(call->tree) ? json_array_get(call->tree, 0) : call->tree;
    const char *owner = json_string_value(json_object_get(object, "owner_access_key"));
    const struct keypair *key;
    int r = api_owner(api, call->req, owner, &key, err);

    if (r < 0)
        return r;
    call->who.user_id = key->user_id;
    call->who.is_superadmin = principal_is_superadmin(api_principal(call->req));
    return 0;
}

void session_template_expand(struct api *api, struct request *req, session_template_fn *done,
                             void *data)
{
    struct session_template_call *call = arena_alloc(request_get_arena(req), sizeof(*call));
    struct aq_error err = { 0 };
    json_t *tree = NULL;
    int r = api_parse(req, &tree, &err);

    if (r == 0 && !session_template_is_named(tree)) {
        done(req, data, tree, NULL);
        return;
    }
    if (r == 0) {
        *call = (struct session_template_call){ req, tree, { .admin_of = NULL }, done, data };
        r = session_template_read_who(api, call, &err);
    }
    if (r == 0) {
        store_read(core_store(api->core), session_template_run, session_template_on_done, call);
        return;
    }
    json_decref(tree);
    done(req, data, NULL, &err);
}
