/* SPDX-License-Identifier: Apache-2.0 */
/* /config: the configuration tree. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "manager/cluster/cluster_feature.h"
#include "manager/cluster/cluster.h"
#include "model/config_key.h"

#define CONFIG_BODY_MAX (8u << 20) /* the whole tree as JSON */
#define CONFIG_SCOPES_MAX 3        /* of a node: its own, its resource group's, global */
#define CONFIG_SGROUPS "sgroup/"
#define CONFIG_NODES "nodes/agents/"

/* ---- scopes ---- */

/* Where the keys of a scope begin: nowhere for "global", else at a key of the tree. */
static int config_add_scope(struct strbuf *out, const char *scope, struct aq_error *err)
{
    bool is_group = scope && strncmp(scope, "sgroup/", 7) == 0;
    bool is_node = scope && strncmp(scope, "node/", 5) == 0;
    const char *name = is_group ? scope + 7 : is_node ? scope + 5 : NULL;

    if (!scope || strcmp(scope, "global") == 0)
        return 0;
    if (!name || !*name)
        return api_fail_param(err, "scope", "is global, sgroup/RESOURCE-GROUP or node/AGENT");
    strbuf_adds(out, is_group ? CONFIG_SGROUPS : CONFIG_NODES);
    config_name_write(out, name);
    return 0;
}

/* The whole key; *ret is to be freed. Its own root has no value. */
static int config_read_key(const char *scope, const char *field, const char *text, bool may_be_root,
                           char **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf key = STRBUF_INIT;
    int r = config_add_scope(&key, scope, err);
    size_t len = key.len;

    if (r == 0)
        r = config_key_add(&key, field, text, err);
    if (r == 0 && key.len == len && !may_be_root)
        r = api_fail_param(err, field, "names no key");
    if (r == 0)
        *ret = strbuf_steal(&key);
    return r;
}

/* ---- reading ---- */

struct config_get {
    struct request *req;
    char *keys[CONFIG_SCOPES_MAX]; /* the more special first */
    size_t key_count;
    bool below;
    /* Writes the answer, from what was found, with everything below as a tree. */
    void (*write)(const struct config_get *get, json_t *tree, struct strbuf *out);
    struct strbuf out;
};

static void config_get_free(struct config_get *get)
{
    for (size_t i = 0; i < get->key_count; i++)
        free(get->keys[i]);
    strbuf_done(&get->out);
    free(get);
}

static int config_read_scope(struct store_tx *tx, const struct config_get *get, const char *key,
                             json_t *tree, struct aq_error *err)
{
    AQ_CLEANUP(config_entries_done) struct config_entries found = { 0 };
    size_t len = strlen(key);
    int r = config_entries_read(tx, key, get->below, &found, err);

    for (size_t i = 0; r == 0 && i < found.count; i++) {
        const char *rest = found.items[i].key + len;

        config_tree_add(tree, rest + (len && *rest), found.items[i].value);
    }
    return r;
}

/* The more special is found later, and put in place of the other. */
static int config_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct config_get *get = data;
    json_auto_t *tree = json_object();
    int r = 0;

    for (size_t i = get->key_count; r == 0 && i-- > 0;)
        r = config_read_scope(tx, get, get->keys[i], tree, err);
    if (r == 0)
        get->write(get, tree, &get->out);
    return r;
}

static void config_on_read(void *data, int r, const struct aq_error *err)
{
    struct config_get *get = data;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = get->out;
    struct request *req = get->req;

    strbuf_init(&get->out);
    config_get_free(get);
    if (r < 0)
        request_fail(req, err);
    else
        request_reply_json(req, 200, &out);
}

static void config_write_value(const json_t *value, struct strbuf *out)
{
    AQ_CLEANUP(aq_freep) char *text = json_dump_text(value, JSON_COMPACT | JSON_ENCODE_ANY);

    strbuf_adds(out, text);
}

static void config_write_result(const struct config_get *get, json_t *tree, struct strbuf *out)
{
    const json_t *value = json_object_get(tree, "");

    strbuf_adds(out, "{\"result\":");
    config_write_value(get->below ? tree : value ? value : json_null(), out);
    strbuf_addc(out, '}');
}

struct config_get_params {
    const char *key, *scope;
    bool prefix;
};

#define CONFIG_SCOPE(type)                                                          \
    {                                                                               \
        "scope", FIELD_STR, FIELD_NULLABLE, offsetof(type, scope), 1, 256,          \
            .doc = "global, sgroup/RESOURCE-GROUP or node/AGENT; global by default" \
    }

static const struct field config_get_fields[] = {
    { "key", FIELD_STR, FIELD_REQUIRED, offsetof(struct config_get_params, key) },
    { "prefix", FIELD_BOOL, 0, offsetof(struct config_get_params, prefix),
      .doc = "the key with all below it" },
    CONFIG_SCOPE(struct config_get_params),
    FIELD_END,
};

static int config_get_add(struct config_get *get, const char *scope, const char *key,
                          struct aq_error *err)
{
    int r = config_read_key(scope, "key", key, true, &get->keys[get->key_count], err);

    get->key_count += r == 0;
    return r;
}

/* What a node's scope does not have comes from its resource group, and then from all. */
static int config_get_add_scopes(const struct api *api, struct config_get *get,
                                 const struct config_get_params *params, struct aq_error *err)
{
    bool is_node = params->scope && strncmp(params->scope, "node/", 5) == 0;
    const struct agent *agent = is_node ? core_find_agent(api->core, params->scope + 5) : NULL;
    AQ_CLEANUP(aq_freep) char *group = NULL;
    int r = config_get_add(get, params->scope, params->key, err);

    if (r < 0 || !params->scope || strcmp(params->scope, "global") == 0)
        return r;
    if (agent && agent->resource_group) {
        group = aq_format("sgroup/%s", agent->resource_group);
        r = config_get_add(get, group, params->key, err);
    }
    return r < 0 ? r : config_get_add(get, NULL, params->key, err);
}

static void config_on_get(struct request *req, void *data)
{
    struct config_get *get = aq_alloc(sizeof(*get));
    const struct api *api = data;
    struct config_get_params params = { 0 };
    struct aq_error err = { 0 };

    strbuf_init(&get->out);
    if (api_decode(req, &params, NULL, &err) < 0
        || config_get_add_scopes(api, get, &params, &err) < 0) {
        config_get_free(get);
        request_fail(req, &err);
        return;
    }
    get->req = req;
    get->below = params.prefix;
    get->write = config_write_result;
    store_read(core_store(api->core), config_read, config_on_read, get);
}

/* ---- parts of the tree with routes of their own ---- */

static void config_on_list(struct request *req, const struct api *api, const char *key,
                           void (*write)(const struct config_get *, json_t *, struct strbuf *))
{
    struct config_get *get;

    if (!api_has_no_params(req))
        return;
    get = aq_alloc(sizeof(*get));
    get->keys[0] = aq_strdup(key);
    strbuf_init(&get->out);
    get->key_count = 1;
    get->req = req;
    get->below = true;
    get->write = write;
    store_read(core_store(api->core), config_read, config_on_read, get);
}

static void config_write_types(const struct config_get *get, json_t *tree, struct strbuf *out)
{
    json_auto_t *names = json_array();
    const char *name;
    json_t *value;

    (void)get;
    json_object_foreach(tree, name, value)
        if (*name)
            json_array_append_new(names, json_string(name));
    if (!json_array_size(names))
        json_array_append_new(names, json_string("user"));
    config_write_value(names, out);
}

static void config_on_types(struct request *req, void *data)
{
    config_on_list(req, data, "volumes/_types", config_write_types);
}

/* A registry is its URL, or an object with the URL as its own value. */
static void config_write_registries(const struct config_get *get, json_t *tree, struct strbuf *out)
{
    json_auto_t *urls = json_object();
    const char *name;
    json_t *value;

    (void)get;
    json_object_foreach(tree, name, value) {
        json_t *url = json_is_object(value) ? json_object_get(value, "") : value;

        if (*name && url)
            json_object_set(urls, name, url);
    }
    config_write_value(urls, out);
}

static void config_on_registries(struct request *req, void *data)
{
    config_on_list(req, data, "config/docker/registry", config_write_registries);
}

/* ---- changing ---- */

static void config_write_named(const struct config_result *result, struct jsonw *w)
{
    size_t i;
    json_t *key;

    jsonw_key(w, "without_effect");
    jsonw_array_begin(w);
    json_array_foreach(result->named, i, key)
        jsonw_str(w, json_string_value(key));
    jsonw_array_end(w);
}

static void config_on_changed(void *req, const struct config_result *result, int r,
                              const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    if (r < 0) {
        request_fail(req, err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "result", "ok");
    jsonw_member_int(&w, "added", (int64_t)result->added);
    jsonw_member_int(&w, "changed", (int64_t)result->changed);
    jsonw_member_int(&w, "unchanged", (int64_t)result->same);
    jsonw_member_int(&w, "removed", (int64_t)result->removed);
    jsonw_member_int(&w, "kept_without_effect", (int64_t)result->without_effect);
    config_write_named(result, &w);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

/* Takes the change, of which everything is known if 'err' says nothing. */
static void config_finish(struct request *req, struct config_change *change, struct aq_error *err)
{
    if (!err->code) {
        config_change_start(change, config_on_changed, req);
        return;
    }
    config_change_free(change);
    request_fail(req, err);
}

struct config_set_params {
    const char *key, *scope, *prefix;
    const json_t *value, *tree;
    bool dry_run;
};

static const struct field config_set_fields[] = {
    { "key", FIELD_STR, FIELD_REQUIRED, offsetof(struct config_set_params, key) },
    { "value", FIELD_JSON, FIELD_REQUIRED, offsetof(struct config_set_params, value),
      .doc = "text, or an object of what comes below the key; its names may have '/'" },
    CONFIG_SCOPE(struct config_set_params),
    FIELD_END,
};

static const struct field config_import_fields[] = {
    { "tree", FIELD_OBJECT, FIELD_REQUIRED, offsetof(struct config_set_params, tree),
      .doc = "as POST /config/get with prefix gives it" },
    { "prefix", FIELD_STR, FIELD_NULLABLE, offsetof(struct config_set_params, prefix),
      .doc = "the key below which it comes; the root by default" },
    { "dry_run", FIELD_BOOL, 0, offsetof(struct config_set_params, dry_run),
      .doc = "say what would change, and change nothing" },
    CONFIG_SCOPE(struct config_set_params),
    FIELD_END,
};

static int config_add_leaf(void *data, const char *key, const char *value, struct aq_error *err)
{
    struct config_change *change = data;
    uint32_t code;

    if (!*key)
        return api_fail_param(err, "key", "the root cannot have a value");
    if (!decode_is_plain(value, strlen(value), true, &code))
        return api_fail_param(err, key, "its value has control characters (U+%04X); remove them",
                              (unsigned)code);
    if (change->puts.count >= CONFIG_KEYS_MAX)
        return aq_fail_field(err, E2BIG, "key", "the configuration tree may have %d keys",
                             CONFIG_KEYS_MAX);
    config_entries_add(&change->puts, key, value);
    return 0;
}

static int config_set_prepare(const struct config_set_params *params, struct config_change *change,
                              struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *key = NULL, *value = NULL;
    bool is_tree = json_is_object(params->value);
    int r = config_read_key(params->scope, "key", params->key, is_tree, &key, err);

    if (r < 0)
        return r;
    if (is_tree)
        return config_tree_walk(params->value, key, true, config_add_leaf, change, err);
    r = config_value_read(params->value, "value", &value, err);
    if (r == 0 && !value)
        r = api_fail_param(err, "value", "is null; POST /config/delete removes a key");
    return r < 0 ? r : config_add_leaf(change, key, value, err);
}

static void config_on_set(struct request *req, void *data)
{
    struct config_change *change = config_change_new(data, req);
    struct config_set_params params = { 0 };
    json_auto_t *body = NULL;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, &body, &err) == 0)
        (void)config_set_prepare(&params, change, &err);
    config_finish(req, change, &err);
}

static void config_on_import(struct request *req, void *data)
{
    struct config_change *change = config_change_new(data, req);
    struct config_set_params params = { .prefix = "" };
    AQ_CLEANUP(aq_freep) char *key = NULL;
    json_auto_t *body = NULL;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, &body, &err) == 0
        && config_read_key(params.scope, "prefix", params.prefix, true, &key, &err) == 0
        && config_tree_walk(params.tree, key, false, config_add_leaf, change, &err) == 0)
        change->dry_run = params.dry_run;
    config_finish(req, change, &err);
}

static void config_on_delete(struct request *req, void *data)
{
    struct config_change *change = config_change_new(data, req);
    struct config_get_params params = { 0 };
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) == 0
        && config_read_key(params.scope, "key", params.key, params.prefix, &change->from, &err)
               == 0)
        change->below = params.prefix;
    config_finish(req, change, &err);
}

struct config_move_params {
    const char *from, *to, *scope;
};

static const struct field config_move_fields[] = {
    { "from", FIELD_STR, FIELD_REQUIRED, offsetof(struct config_move_params, from) },
    { "to", FIELD_STR, FIELD_REQUIRED, offsetof(struct config_move_params, to) },
    CONFIG_SCOPE(struct config_move_params),
    FIELD_END,
};

static int config_move_prepare(const struct config_move_params *params,
                               struct config_change *change, struct aq_error *err)
{
    int r = config_read_key(params->scope, "from", params->from, false, &change->from, err);

    if (r == 0)
        r = config_read_key(params->scope, "to", params->to, true, &change->to, err);
    if (r == 0 && config_key_is_within(change->to, change->from))
        r = api_fail_param(err, "to", "is '%.100s' itself, or below it", change->from);
    change->below = true;
    return r;
}

static void config_on_move(struct request *req, void *data)
{
    struct config_change *change = config_change_new(data, req);
    struct config_move_params params = { 0 };
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) == 0)
        (void)config_move_prepare(&params, change, &err);
    config_finish(req, change, &err);
}

static const struct route config_routes[] = {
    { METHOD_GET, "/config/vfolder-types", API_PUBLIC, config_on_types, NULL,
      "Kinds of folders, as volumes/_types of the configuration tree lists them" },
    { METHOD_GET, "/config/docker-registries", API_SUPERADMIN, config_on_registries, NULL,
      "Registries and their URLs, of config/docker/registry in the configuration tree" },
    { METHOD_GET, "/resource/container-registries", API_SUPERADMIN, config_on_registries, NULL,
      "Registries and their URLs, for clients from 24.09 on" },
    { METHOD_POST, "/config/get", API_SUPERADMIN, config_on_get, config_get_fields,
      "A value of the configuration tree, or what is below a key" },
    { METHOD_POST, "/config/set", API_SUPERADMIN, config_on_set, config_set_fields,
      "Set a value of the configuration tree, or several below a key" },
    { METHOD_POST, "/config/delete", API_SUPERADMIN, config_on_delete, config_get_fields,
      "Delete a key of the configuration tree, or all below it" },
    { METHOD_POST, "/aliquot/v1/config/import", API_SUPERADMIN, config_on_import,
      config_import_fields, "Add a whole tree to the configuration tree", 0, CONFIG_BODY_MAX },
    { METHOD_POST, "/aliquot/v1/config/move", API_SUPERADMIN, config_on_move, config_move_fields,
      "Move a key with all below it" },
};
API_ROUTES_END(config);
