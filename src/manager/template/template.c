/* SPDX-License-Identifier: Apache-2.0 */
/* template.c - what templates of sessions and clusters may say */
#include "manager/template/template_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json_load.h"
#include "base/yaml_load.h"
#include "http/url.h"
#include "model/cluster_role.h"
#include "model/session.h"

#define TEMPLATE_DEPTH_MAX 12
#define TEMPLATE_VALUES_MAX 5000
#define TEMPLATE_PAIRS_MAX 500
#define TEMPLATE_KERNELS_MAX 1000
#define TEMPLATE_ROLE_MAX 15

/* ---- what a session's template says ---- */

#define AT(member) offsetof(struct template_session, member)

static const struct field template_metadata_fields[] = {
    { "name", FIELD_STR, FIELD_REQUIRED | FIELD_LINE, AT(name), 1, TEMPLATE_NAME_MAX },
    { "tag", FIELD_STR, FIELD_NULLABLE | FIELD_LINE, AT(tag), 0, 64 },
    FIELD_END,
};

static const struct field template_run_fields[] = {
    { "bootstrap", FIELD_STR, FIELD_NULLABLE, AT(bootstrap), 0, SESSION_BOOTSTRAP_MAX },
    { "startup|startup_command|startupCommand", FIELD_STR, FIELD_NULLABLE, AT(startup), 0,
      SESSION_COMMAND_MAX },
    FIELD_END,
};

static const struct field template_credential_fields[] = {
    { "username", FIELD_STR, FIELD_REQUIRED | FIELD_LINE, AT(git.username), 1, 256 },
    { "password", FIELD_STR, FIELD_REQUIRED | FIELD_LINE | FIELD_SECRET, AT(git.password), 1,
      1024 },
    FIELD_END,
};

static const struct field template_git_fields[] = {
    { "repository", FIELD_STR, FIELD_REQUIRED | FIELD_LINE, AT(git.repository), 1, 1024 },
    { "branch", FIELD_STR, FIELD_NULLABLE | FIELD_LINE, AT(git.branch), 1, 255 },
    { "commit", FIELD_STR, FIELD_NULLABLE | FIELD_LINE, AT(git.commit), 1, 255 },
    { "credential", FIELD_STRUCT, FIELD_NULLABLE, .sub = template_credential_fields },
    { "destination_dir|destinationDir", FIELD_STR, FIELD_NULLABLE | FIELD_LINE, AT(git.destination),
      1, 1024 },
    FIELD_END,
};

static const struct field template_kernel_fields[] = {
    { "image", FIELD_STR, FIELD_REQUIRED, AT(image), 1, 512 },
    { "architecture", FIELD_STR, FIELD_NULLABLE, AT(architecture), 1, 32 },
    { "environ", FIELD_OBJECT, FIELD_NULLABLE, AT(environ) },
    { "run", FIELD_STRUCT, FIELD_NULLABLE, .sub = template_run_fields },
    { "git", FIELD_STRUCT, FIELD_NULLABLE, .sub = template_git_fields },
    FIELD_END,
};

static const struct field template_spec_fields[] = {
    { "type|session_type|sessionType", FIELD_STR, FIELD_NULLABLE, AT(type), 1, 16 },
    { "kernel", FIELD_STRUCT, FIELD_REQUIRED, .sub = template_kernel_fields },
    { "scaling_group|scalingGroup", FIELD_STR, FIELD_NULLABLE, AT(scaling_group), 1, 64 },
    { "mounts", FIELD_OBJECT, FIELD_NULLABLE, AT(mounts) },
    { "resources", FIELD_OBJECT, FIELD_NULLABLE, AT(resources) },
    { "resource_opts|resourceOpts", FIELD_OBJECT, FIELD_NULLABLE, AT(resource_opts) },
    { "agent_list|agentList", FIELD_STR_LIST, FIELD_NULLABLE, AT(agents), 0, 1000 },
    { "preopen_ports|preopenPorts", FIELD_PORT_LIST, FIELD_NULLABLE, AT(ports), 1024, 65535 },
    { "cluster_size|clusterSize", FIELD_INT, FIELD_NULLABLE, AT(cluster_size), 1,
      TEMPLATE_KERNELS_MAX },
    { "cluster_mode|clusterMode", FIELD_STR, FIELD_NULLABLE, AT(cluster_mode), 1, 16 },
    { "priority", FIELD_INT, FIELD_NULLABLE, AT(priority), 0, 100 },
    FIELD_END,
};

static const struct field template_session_fields[] = {
    { "api_version|apiVersion", FIELD_IGNORED },
    { "kind", FIELD_STR, FIELD_REQUIRED, AT(kind), 1, 32 },
    { "metadata", FIELD_STRUCT, FIELD_REQUIRED, .sub = template_metadata_fields },
    { "spec", FIELD_STRUCT, FIELD_REQUIRED, .sub = template_spec_fields },
    FIELD_END,
};
#undef AT

/* ---- what a cluster's template says ---- */

struct template_cluster_text {
    const char *kind, *name, *tag, *mode;
    const json_t *environ, *mounts, *nodes;
};

#define AT(member) offsetof(struct template_cluster_text, member)

static const struct field template_cluster_metadata_fields[] = {
    { "name", FIELD_STR, FIELD_REQUIRED | FIELD_LINE, AT(name), 1, TEMPLATE_NAME_MAX },
    { "tag", FIELD_STR, FIELD_NULLABLE | FIELD_LINE, AT(tag), 0, 64 },
    FIELD_END,
};

static const struct field template_cluster_spec_fields[] = {
    { "environ", FIELD_OBJECT, FIELD_NULLABLE, AT(environ) },
    { "mounts", FIELD_OBJECT, FIELD_NULLABLE, AT(mounts) },
    { "nodes", FIELD_JSON, FIELD_REQUIRED, AT(nodes) },
    FIELD_END,
};

static const struct field template_cluster_fields[] = {
    { "api_version|apiVersion", FIELD_IGNORED },
    { "kind", FIELD_STR, FIELD_REQUIRED, AT(kind), 1, 32 },
    { "mode", FIELD_STR, FIELD_NULLABLE, AT(mode), 1, 16 },
    { "metadata", FIELD_STRUCT, FIELD_REQUIRED, .sub = template_cluster_metadata_fields },
    { "spec", FIELD_STRUCT, FIELD_REQUIRED, .sub = template_cluster_spec_fields },
    FIELD_END,
};
#undef AT

static const struct field template_node_fields[] = {
    { "role", FIELD_STR, FIELD_REQUIRED, offsetof(struct template_node, role), 1,
      TEMPLATE_ROLE_MAX },
    { "session_template|sessionTemplate", FIELD_STR, FIELD_REQUIRED,
      offsetof(struct template_node, session_template), 1, TEMPLATE_NAME_MAX },
    { "replicas", FIELD_INT, FIELD_NULLABLE, offsetof(struct template_node, replicas), 1,
      TEMPLATE_KERNELS_MAX },
    FIELD_END,
};

/* ---- values ---- */

AQ_PRINTF(3, 4)
static int template_refuse(struct aq_error *err, const char *field, const char *fmt, ...)
{
    char why[sizeof(err->text)];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    return aq_fail_as(err, EINVAL, "invalid-api-params", field, "%s", why);
}

int template_texts(const json_t *object, const char *path, bool is_null_empty, json_t **ret,
                   struct aq_error *err)
{
    json_auto_t *texts = json_object();
    const json_t *value;
    const char *name;
    char field[sizeof(err->field)];

    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        json_t *text = json_is_string(value) ? json_incref((json_t *)(uintptr_t)value)
                       : json_is_integer(value)
                           ? json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(value))
                       : json_is_boolean(value)
                           ? json_string(json_is_true(value) ? "true" : "false")
                       : json_is_null(value) && is_null_empty ? json_string("")
                                                              : NULL;

        (void)snprintf(field, sizeof(field), "%s.%s", path, name);
        if (!text)
            return template_refuse(err, field, "not a text");
        (void)json_object_set_new(texts, name, text);
    }
    if (json_object_size(object) > TEMPLATE_PAIRS_MAX)
        return template_refuse(err, path, "has more than %d members", TEMPLATE_PAIRS_MAX);
    *ret = AQ_TAKE(texts);
    return 0;
}

static const char *const template_kind_names[][2] = {
    [TEMPLATE_SESSION] = { "task_template", "taskTemplate" },
    [TEMPLATE_CLUSTER] = { "cluster_template", "clusterTemplate" },
};

static bool template_is_kind(const char *text, enum template_kind kind)
{
    const char *const *names = template_kind_names[kind];

    return text && (strcmp(text, names[0]) == 0 || strcmp(text, names[1]) == 0);
}

static int template_check_kind(const char *kind, enum template_kind wanted, struct aq_error *err)
{
    if (template_is_kind(kind, wanted))
        return 0;
    return template_refuse(err, "kind", "must be %s", template_kind_names[wanted][0]);
}

static int template_check_mode(const char *mode, const char *path, bool *ret, struct aq_error *err)
{
    if (!mode || cluster_mode_parse(mode, ret) == 0)
        return 0;
    return template_refuse(err, path, "must be single-node or multi-node");
}

/* ---- a session's ---- */

int template_read_session(const json_t *parsed, struct arena *arena, struct template_session *ret,
                          struct aq_error *err)
{
    *ret = (struct template_session){ .priority = -1 };
    return decode_object(template_session_fields, parsed, arena, ret, err);
}

/* What the model says of these members, by the names that they have here. */
static int template_check_spec(const struct template_session *t, struct aq_error *err)
{
    static const char *const paths[][2] = {
        { "image", "spec.kernel.image" },
        { "architecture", "spec.kernel.architecture" },
        { "startupCommand", "spec.kernel.run.startup" },
        { "bootstrap_script", "spec.kernel.run.bootstrap" },
        { "preopen_ports", "spec.preopen_ports" },
    };
    const struct session_spec spec = { .image = t->image,
                                       .architecture = t->architecture,
                                       .command = t->startup,
                                       .bootstrap = t->bootstrap,
                                       .ports = t->ports };
    int r = session_spec_check(&spec, err);

    for (size_t i = 0; r < 0 && i < AQ_COUNT(paths); i++)
        if (strcmp(err->field, paths[i][0]) == 0) {
            (void)snprintf(err->field, sizeof(err->field), "%s", paths[i][1]);
            break;
        }
    return r;
}

static int template_check_amounts(const json_t *amounts, const char *path, struct aq_error *err)
{
    char field[sizeof(err->field)];
    const json_t *amount;
    const char *name;

    json_object_foreach((json_t *)(uintptr_t)amounts, name, amount) {
        (void)snprintf(field, sizeof(field), "%s.%s", path, name);
        if (json_is_object(amount) || json_is_array(amount))
            return template_refuse(err, field, "not an amount");
    }
    return 0;
}

static int template_check_session(const json_t *parsed, struct arena *arena, const char **ret_name,
                                  struct aq_error *err)
{
    json_auto_t *environ = NULL, *mounts = NULL;
    struct template_session t;
    enum session_type type;
    bool is_multi_node;
    int r = template_read_session(parsed, arena, &t, err);

    if (r < 0 || (r = template_check_kind(t.kind, TEMPLATE_SESSION, err)) < 0)
        return r;
    if (t.type
        && (session_type_parse(t.type, &type) < 0
            || (type != SESSION_INTERACTIVE && type != SESSION_BATCH)))
        return template_refuse(err, "spec.type", "'%.16s' is no session type: interactive, batch",
                               t.type);
    if ((r = template_texts(t.environ, "spec.kernel.environ", false, &environ, err)) < 0
        || (r = template_texts(t.mounts, "spec.mounts", true, &mounts, err)) < 0
        || (r = template_check_amounts(t.resources, "spec.resources", err)) < 0
        || (r = template_check_amounts(t.resource_opts, "spec.resource_opts", err)) < 0
        || (r = template_check_mode(t.cluster_mode, "spec.cluster_mode", &is_multi_node, err)) < 0
        || (r = template_check_spec(&t, err)) < 0
        || (r = template_git_check(&t.git, "spec.kernel.git", err)) < 0)
        return r;
    *ret_name = t.name;
    return 0;
}

/* ---- a cluster's ---- */

static int template_check_role(const char *role, struct aq_error *err)
{
    if (cluster_role_is_name(role))
        return 0;
    return template_refuse(err, "role",
                           "'%s' is no role: small letters, digits and '-', a letter first and "
                           "last, such as main or worker",
                           role);
}

static int template_check_node(const struct template_cluster *cluster, struct template_node *node,
                               struct aq_error *err)
{
    bool is_main = strcmp(node->role, "main") == 0;
    int64_t kernels = node->replicas;

    if (template_check_role(node->role, err) < 0)
        return -EINVAL;
    for (size_t i = 0; i < cluster->count; i++) {
        if (strcmp(cluster->nodes[i].role, node->role) == 0)
            return template_refuse(err, "role", "there is a role '%s' already", node->role);
        kernels += cluster->nodes[i].replicas;
    }
    if (is_main && node->replicas != 1)
        return template_refuse(err, "replicas", "must be 1 of the role main");
    if (kernels > TEMPLATE_KERNELS_MAX)
        return template_refuse(err, "replicas", "more than %d kernels", TEMPLATE_KERNELS_MAX);
    return 0;
}

static int template_read_nodes(const json_t *list, struct arena *arena,
                               struct template_cluster *ret, struct aq_error *err)
{
    char field[sizeof(err->field)];

    if (!json_is_array(list) || json_array_size(list) > TEMPLATE_NODES_MAX)
        return template_refuse(err, "spec.nodes", "must be a list of 1 to %d roles",
                               TEMPLATE_NODES_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct template_node node = { .replicas = 1, .index = i };
        int r = decode_object(template_node_fields, json_array_get(list, i), arena, &node, err);

        if (r == 0)
            r = template_check_node(ret, &node, err);
        if (r < 0) {
            memcpy(field, err->field, sizeof(field));
            (void)snprintf(err->field, sizeof(err->field), "spec.nodes.%zu.%.40s", i, field);
            return r;
        }
        ret->nodes[ret->count++] = node;
        if (strcmp(node.role, "main") == 0) {
            ret->nodes[ret->count - 1] = ret->nodes[0];
            ret->nodes[0] = node;
        }
    }
    if (ret->count == 0 || strcmp(ret->nodes[0].role, "main") != 0)
        return template_refuse(err, "spec.nodes", "must have one role main");
    return 0;
}

int template_read_cluster(const json_t *parsed, struct arena *arena, struct template_cluster *ret,
                          struct aq_error *err)
{
    struct template_cluster_text t = { .name = NULL };
    int r = decode_object(template_cluster_fields, parsed, arena, &t, err);

    *ret = (struct template_cluster){ .name = t.name, .tag = t.tag };
    if (r < 0 || (r = template_check_kind(t.kind, TEMPLATE_CLUSTER, err)) < 0
        || (r = template_check_mode(t.mode, "mode", &ret->is_multi_node, err)) < 0
        || (r = template_texts(t.environ, "spec.environ", false, &ret->environ, err)) < 0
        || (r = template_texts(t.mounts, "spec.mounts", true, &ret->mounts, err)) < 0
        || (r = template_read_nodes(t.nodes, arena, ret, err)) < 0)
        template_cluster_done(ret);
    return r;
}

void template_cluster_done(struct template_cluster *cluster)
{
    json_decref(AQ_TAKE(cluster->environ));
    json_decref(AQ_TAKE(cluster->mounts));
}

/* ---- the text ---- */

/* Names that the table has not, before anything else is looked at. */
int template_check_names(const struct field *table, const json_t *object, const char *path,
                         struct aq_error *err)
{
    char field[sizeof(err->field)];
    const json_t *value;
    const char *name;
    int r = 0;

    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        const struct field *found = field_find(table, name);
        const char *near = NULL;
        size_t len = 0;

        (void)snprintf(field, sizeof(field), "%s%s%s", path, *path ? "." : "", name);
        if (!found) {
            near = decode_find_near(table, name, &len);
            return template_refuse(err, field, "unknown key '%.64s'%s%.*s%s", name,
                                   near ? "; did you mean '" : "", (int)len, near ? near : "",
                                   near ? "'?" : "");
        }
        if (found->sub && (r = template_check_names(found->sub, value, field, err)) < 0)
            return r;
    }
    return 0;
}

int template_check_all(enum template_kind kind, const json_t *parsed, struct arena *arena,
                       const char **ret_name, struct aq_error *err)
{
    const char *said = json_string_value(json_object_get(parsed, "kind"));
    struct template_cluster cluster;
    const json_t *node;
    size_t i;
    int r;

    if (!json_is_object(parsed))
        return template_refuse(err, "", "a template is a mapping with kind, metadata and spec");
    if (said && (r = template_check_kind(said, kind, err)) < 0)
        return r;
    r = template_check_names(kind == TEMPLATE_CLUSTER ? template_cluster_fields
                                                      : template_session_fields,
                             parsed, "", err);
    json_array_foreach(json_object_get(json_object_get(parsed, "spec"), "nodes"), i, node) {
        char path[32];

        (void)snprintf(path, sizeof(path), "spec.nodes.%zu", i);
        if (r == 0)
            r = template_check_names(template_node_fields, node, path, err);
    }
    if (r < 0 || kind == TEMPLATE_SESSION)
        return r < 0 ? r : template_check_session(parsed, arena, ret_name, err);
    if ((r = template_read_cluster(parsed, arena, &cluster, err)) < 0)
        return r;
    *ret_name = cluster.name;
    template_cluster_done(&cluster);
    return 0;
}

void template_place(const char *text, size_t len, struct aq_error *err)
{
    struct yaml_place place = yaml_find(text, len, err->field);
    bool names_key = strncmp(err->text, "unknown key", 11) == 0 || !err->field[0];
    char why[sizeof(err->text)], at[64] = "", path[sizeof(err->field)];

    memcpy(why, err->text, sizeof(why));
    memcpy(path, err->field, sizeof(path));
    if (place.line)
        (void)snprintf(at, sizeof(at), "line %zu, column %zu: ", place.line, place.column);
    (void)aq_fail_as(err, EINVAL, "invalid-api-params", "payload", "%s%s%s%.200s", at,
                     names_key ? "" : path, names_key ? "" : ": ", why);
}

/* JSON if it begins as JSON does. */
static json_t *template_load(const char *text, size_t len, struct aq_error *err)
{
    static const struct yaml_rules rules = { TEMPLATE_DEPTH_MAX, TEMPLATE_VALUES_MAX, true };
    char first = text[strspn(text, " \t\r\n")];
    json_t *parsed = NULL;

    if (first != '{' && first != '[')
        parsed = yaml_load_text(text, len, &rules, err);
    else if (decode_large_json(text, len, TEMPLATE_VALUES_MAX, &parsed, err) < 0)
        return NULL;
    return parsed;
}

void template_parsed_free(struct template_parsed *all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        json_decref(AQ_TAKE(all[i].json));
}

static int template_parse_one(enum template_kind kind, const char *text, json_t *parsed,
                              struct arena *arena, struct template_parsed **ret, size_t *ret_count,
                              struct aq_error *err)
{
    struct template_parsed *one = arena_alloc(arena, sizeof(*one));
    int r;

    if (kind == TEMPLATE_ANY)
        kind = template_is_kind(json_string_value(json_object_get(parsed, "kind")),
                                TEMPLATE_CLUSTER)
                   ? TEMPLATE_CLUSTER
                   : TEMPLATE_SESSION;
    *one = (struct template_parsed){ .kind = kind, .text = text };
    if ((r = template_check_all(kind, parsed, arena, &one->name, err)) < 0)
        return r;
    one->json = json_incref(parsed);
    *ret = one;
    *ret_count = 1;
    return 0;
}

int template_parse(enum template_kind kind, const char *text, size_t len, struct arena *arena,
                   struct template_parsed **ret, size_t *ret_count, struct aq_error *err)
{
    json_auto_t *parsed = NULL;
    int r;

    if (len > TEMPLATE_BYTES_MAX)
        return template_refuse(err, "payload", "longer than %d bytes", TEMPLATE_BYTES_MAX);
    if (strlen(text) != len)
        return template_refuse(err, "payload", "has a zero byte");
    if (!(parsed = template_load(text, len, err))) {
        if (err->code == EINVAL)
            (void)template_refuse(err, "payload", "%.300s", err->text);
        return -err->code;
    }
    r = kind == TEMPLATE_SESSION && template_list_of(parsed)
            ? template_list_read(parsed, arena, ret, ret_count, err)
            : template_parse_one(kind, text, parsed, arena, ret, ret_count, err);
    if (r == -EINVAL)
        template_place(text, len, err);
    return r;
}
