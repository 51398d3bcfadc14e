/* SPDX-License-Identifier: Apache-2.0 */
/* ContainerRegistryNode, and ContainerRegistry as it was before: what is kept of container
 * registries in the configuration tree, for superadmins.
 */
#include <errno.h>
#include <string.h>

#include "base/json_load.h"
#include "manager/call/graphql/mutation.h"
#include "manager/call/graphql/node.h"
#include "manager/cluster/cluster.h"
#include "manager/image/image_feature.h"

#define REGISTRIES_USUAL 10
#define REGISTRY_TEXT_MAX 1024

/* In the request's arena. */
struct registry_row {
    const char *name, *url, *type, *project, *username;
    struct uuid id;
    bool verifies;
};

/* ---- rows ---- */

static const json_t *registry_all(const struct gql_call *call)
{
    return cluster_registries(((const struct gql_context *)call->context)->api);
}

/* NULL if it is not kept. */
static const char *registry_copy(struct arena *arena, const json_t *text)
{
    return json_is_string(text) ? arena_strdup(arena, json_string_value(text)) : NULL;
}

static void registry_fill_row(struct arena *arena, const char *name, const json_t *registry,
                              struct registry_row *row)
{
    const json_t *url = json_is_object(registry) ? json_object_get(registry, "") : registry;
    const char *type = registry_copy(arena, json_object_get(registry, "type"));

    row->name = arena_strdup(arena, name);
    row->id = gql_uuid_of_name(name);
    row->url = registry_copy(arena, url);
    row->type = type ? type : "docker";
    row->project = registry_copy(arena, json_object_get(registry, "project"));
    row->username = registry_copy(arena, json_object_get(registry, "username"));
    row->verifies = registry_is_verified(registry);
}

struct registry_rows {
    struct registry_row *items;
    uint32_t count;
};

static void registry_load(const struct gql_call *call, struct registry_rows *ret)
{
    json_t *all = (json_t *)(uintptr_t)registry_all(call), *registry;
    const char *name;

    *ret = (struct registry_rows){ .items = arena_array(call->arena, json_object_size(all) + 1,
                                                        sizeof(*ret->items)) };
    json_object_foreach(all, name, registry)
        if (*name)
            registry_fill_row(call->arena, name, registry, &ret->items[ret->count++]);
}

/* By its name, or its UUID. */
static const struct registry_row *registry_find(const struct registry_rows *rows, const char *id)
{
    struct uuid uuid;
    bool is_uuid = uuid_parse(id, &uuid) == 0;

    for (uint32_t i = 0; i < rows->count; i++)
        if (strcmp(rows->items[i].name, id) == 0
            || (is_uuid && uuid_equals(&rows->items[i].id, &uuid)))
            return &rows->items[i];
    return NULL;
}

/* ---- queries ---- */

/* False after the call has failed. */
static bool registry_open(struct gql_call *call, struct registry_rows *ret)
{
    struct aq_error err = { 0 };

    if (gql_need(call->context, API_SUPERADMIN, &err) < 0) {
        (void)gql_call_fail(call, "%s", err.text);
        return false;
    }
    registry_load(call, ret);
    return true;
}

static int registry_get(struct gql_call *call, const char *id, uint32_t type)
{
    struct registry_rows rows;

    if (registry_open(call, &rows))
        call->results[0] = gql_object_of(type, registry_find(&rows, id));
    return GQL_DONE;
}

static const char *registry_name_of(const void *row, char scratch[64])
{
    (void)scratch;
    return ((const struct registry_row *)row)->name;
}

const struct gql_node registry_node = { .type = SCHEMA_TYPE_ContainerRegistryNode,
                                        .id_of = registry_name_of,
                                        .get = registry_get };
const struct gql_node registry_node_before = { .type = SCHEMA_TYPE_ContainerRegistry,
                                               .id_of = registry_name_of,
                                               .get = registry_get };

static int registry_get_one(struct gql_call *call)
{
    return registry_get(call, gql_arg_text(call, 0), 0);
}

static int registry_list(struct gql_call *call)
{
    struct registry_rows rows;

    if (registry_open(call, &rows))
        call->results[0] = gql_rows_of(call->arena, rows.items, rows.count, sizeof(*rows.items));
    return GQL_DONE;
}

static int registry_list_nodes(struct gql_call *call)
{
    struct registry_rows rows;

    if (registry_open(call, &rows))
        call->results[0] = gql_node_connect(call, &registry_node, rows.items, sizeof(*rows.items),
                                            rows.count);
    return GQL_DONE;
}

static int registry_list_groups(struct gql_call *call)
{
    for (uint32_t i = 0; i < call->count; i++)
        call->results[i] = gql_node_connect(call, gql_node_find(SCHEMA_TYPE_GroupNode), NULL,
                                            sizeof(struct project_row), 0);
    return GQL_DONE;
}

static struct gql_value registry_get_projects(struct gql_get *get, const void *parent)
{
    const char *project = ((const struct registry_row *)parent)->project;

    return gql_words(get->arena, project ? project : "", " ,");
}

/* Those that are kept, of a domain that may use all: pages show the others as turned off. */
static struct gql_value registry_get_of_domain(struct gql_get *get, const void *parent)
{
    const struct gql_context *context = get->context;
    const struct domain *domain = parent;
    json_t *all = (json_t *)(uintptr_t)cluster_registries(context->api), *registry;
    struct gql_value *items = arena_array(get->arena, json_object_size(all) + 1, sizeof(*items));
    uint32_t count = 0;
    const char *name;

    if (domain->registries)
        return gql_words(get->arena, domain->registries, " ");
    json_object_foreach(all, name, registry)
        if (*name)
            items[count++] = gql_copy(get, name);
    return gql_list(items, count);
}

/* ---- mutations ---- */

/* An argument, or a member of 'props'; null if it was not given. */
static struct gql_value registry_given(const struct gql_call *call, const char *name)
{
    const struct gql_field_def *field = call->field;

    for (uint32_t i = 0; i < field->arg_count; i++) {
        const struct gql_type *type = field->args[i].type.type;

        if (strcmp(field->args[i].name, name) == 0 && gql_is_given(call->args[i]))
            return call->args[i];
        for (uint32_t k = 0; strcmp(field->args[i].name, "props") == 0 && k < type->input_count;
             k++)
            if (strcmp(type->inputs[k].name, name) == 0 && gql_is_given(call->args[i].items[k]))
                return call->args[i].items[k];
    }
    return gql_null();
}

/* Several with commas between. */
static int registry_join(struct arena *arena, struct gql_value list, const char **ret,
                         struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    for (uint32_t i = 0; i < list.count; i++) {
        if (!gql_is_given(list.items[i]))
            return api_fail_param(err, "project", "[%u] is null", i);
        strbuf_addf(&text, "%s%s", text.len ? "," : "", list.items[i].text);
    }
    *ret = arena_strdup(arena, text.data);
    return 0;
}

static int registry_check_type(const char *type, struct aq_error *err)
{
    static const char *const types[] = { "docker", "harbor", "harbor2",    "github",
                                         "gitlab", "ecr",    "ecr-public", "local" };

    for (size_t i = 0; i < AQ_COUNT(types); i++)
        if (strcmp(type, types[i]) == 0)
            return 0;
    return api_fail_param(err, "type",
                          "'%.40s' is none of docker, harbor, harbor2, github, gitlab, ecr, "
                          "ecr-public, local",
                          type);
}

/* What a registry here cannot have. */
static int registry_check_given(const struct gql_call *call, struct aq_error *err)
{
    struct gql_value global = registry_given(call, "is_global");
    struct gql_value extra = registry_given(call, "extra");
    struct gql_value groups = registry_given(call, "allowed_groups");

    if (gql_is_given(global) && !global.boolean)
        return api_fail_param(err, "is_global",
                              "not supported: all projects may use all registries");
    for (uint32_t i = 0; gql_is_given(groups) && i < groups.count; i++)
        if (gql_is_given(groups.items[i]) && groups.items[i].count)
            return api_fail_param(err, "allowed_groups",
                                  "not supported: all projects may use all registries");
    if (gql_is_given(extra) && strcmp(extra.text, "{}") != 0)
        return api_fail_param(err, "extra", "not supported: registries have nothing more");
    return 0;
}

static int registry_put_text(const struct gql_call *call, const char *name, const char *argument,
                             const char *what, struct config_change *change, struct aq_error *err)
{
    struct gql_value value = registry_given(call, argument);
    const char *text = value.text;
    uint32_t code;

    if (!gql_is_given(value))
        return 0;
    if (value.kind == GQL_LIST && registry_join(call->arena, value, &text, err) < 0)
        return -err->code;
    if (value.kind == GQL_BOOL)
        text = value.boolean ? "true" : "false";
    else if (!text[0] && strcmp(argument, "project") != 0)
        return 0; /* a form that was left empty */
    if (strlen(text) > REGISTRY_TEXT_MAX)
        return api_fail_param(err, argument, "is longer than %d bytes", REGISTRY_TEXT_MAX);
    if (!decode_is_plain(text, strlen(text), false, &code))
        return api_fail_param(
            err, argument, "has a character that is not shown (U+%04X); remove it", (unsigned)code);
    if (strcmp(argument, "type") == 0 && registry_check_type(text, err) < 0)
        return -EINVAL;
    return registry_put(&change->puts, name, what, text, err);
}

static int registry_put_all(const struct gql_call *call, const char *name,
                            struct config_change *change, struct aq_error *err)
{
    static const char *const values[][2] = {
        { "url", "" },
        { "type", "type" },
        { "project", "project" },
        { "username", "username" },
        { "password", "password" },
        { "ssl_verify", "ssl-verify" },
    };
    int r = registry_check_given(call, err);

    for (size_t i = 0; r == 0 && i < AQ_COUNT(values); i++)
        r = registry_put_text(call, name, values[i][0], values[i][1], change, err);
    return r;
}

struct registry_mutation {
    struct gql_call *call;
    const char *name;
    const struct registry_row *row; /* of one that is removed, as it was */
};

/* Its name is that of an argument, or of a member. */
static int registry_fail(struct gql_call *call, const struct aq_error *err)
{
    bool is_name = strcmp(err->field, "name") == 0;
    bool is_before = strcmp(call->field->args[0].name, "hostname") == 0;
    const char *field = !is_name ? err->field : is_before ? "hostname" : "registry_name";

    return gql_call_fail(call, "%s%s%s", field, field[0] ? ": " : "", err->text);
}

static void registry_on_changed(void *data, const struct config_result *result, int r,
                                const struct aq_error *err)
{
    const struct registry_mutation *m = data;
    struct registry_rows rows;

    (void)result;
    if (r < 0) {
        (void)registry_fail(m->call, err);
    } else if (m->row) {
        m->call->results[0] = gql_object(m->row);
    } else {
        registry_load(m->call, &rows);
        m->call->results[0] = gql_object(registry_find(&rows, m->name));
    }
    gql_call_done(m->call);
}

/* The name of a new one, or the row of the one that is meant. */
static int registry_name_mutation(struct registry_mutation *m, bool is_new, struct aq_error *err)
{
    struct gql_call *call = m->call;
    struct gql_value renamed = registry_given(call, "registry_name");
    const char *text = gql_is_given(renamed) && is_new ? renamed.text : gql_arg_text(call, 0),
               *type;
    const char *id = relay_global_id_parse(call->arena, text, &type);
    AQ_CLEANUP(aq_freep) char *name = NULL;
    struct registry_rows rows;
    int r = is_new ? registry_name_read(text, &name, err) : 0;

    if (r < 0)
        return r;
    registry_load(call, &rows);
    m->row = registry_find(&rows, is_new ? name : id);
    if (!is_new && !m->row)
        return aq_fail(err, ENOENT, "there is no registry '%.100s'", id);
    if (is_new && m->row)
        return api_fail_param(err, "name", "there is a registry '%.100s' already", name);
    if (!is_new && gql_is_given(renamed) && strcmp(renamed.text, m->row->name) != 0)
        return api_fail_param(err, "registry_name", "is '%.100s' and cannot be changed",
                              m->row->name);
    m->name = is_new ? arena_strdup(call->arena, name) : m->row->name;
    return 0;
}

static int registry_prepare(struct registry_mutation *m, struct config_change *change,
                            struct aq_error *err)
{
    const char *verb = m->call->field->name;
    int r = registry_name_mutation(m, strncmp(verb, "create_", 7) == 0, err);

    if (r < 0)
        return r;
    change->is_new = strncmp(verb, "create_", 7) == 0;
    change->object = registry_key_of(m->name);
    if (strncmp(verb, "delete_", 7) == 0) {
        change->below = true;
        change->from = registry_key_of(m->name);
        return 0;
    }
    m->row = NULL;
    return registry_put_all(m->call, m->name, change, err);
}

static int registry_mutate(struct gql_call *call)
{
    struct gql_context *context = call->context;
    AQ_CLEANUP(config_change_freep) struct config_change *change = NULL;
    struct registry_mutation *m = arena_alloc(call->arena, sizeof(*m));
    struct aq_error err = { 0 };

    if (!mutation_may_or_fails(call))
        return GQL_DONE;
    change = config_change_new(context->api, context->req);
    m->call = call;
    if (registry_prepare(m, change, &err) < 0)
        return registry_fail(call, &err);
    config_change_start(AQ_TAKE(change), registry_on_changed, m);
    return GQL_LATER;
}

#define NODE(name) SCHEMA_FIELD_ContainerRegistryNode_##name
#define CONFIG(name) SCHEMA_FIELD_ContainerRegistryConfig_##name
#define TEXT_AT(member) GQL_TEXT_AT(struct registry_row, member)
/* clang-format off */
#define REGISTRY_MUTATION(field, type)                                                             \
    { SCHEMA_FIELD_Mutations_##field, GQL_CALL_COST(registry_mutate, GQL_COST_WRITE, 1) },         \
    { SCHEMA_FIELD_##type##_container_registry, GQL_SELF }
/* clang-format on */

static const struct gql_entry registry_entries[] = {
    { SCHEMA_FIELD_Queries_container_registry, GQL_CALL(registry_get_one) },
    { SCHEMA_FIELD_Queries_container_registries,
      GQL_CALL_COST(registry_list, 5, REGISTRIES_USUAL) },
    { SCHEMA_FIELD_Queries_container_registry_nodes,
      GQL_CALL_COST(registry_list_nodes, 5, REGISTRIES_USUAL) },
    { NODE(row_id), GQL_UUID_AT(struct registry_row, id) },
    { NODE(name), TEXT_AT(name) },
    { NODE(url), TEXT_AT(url) },
    { NODE(type), TEXT_AT(type) },
    { NODE(registry_name), TEXT_AT(name) },
    { NODE(is_global), GQL_FIXED_BOOL(true) },
    { NODE(project), TEXT_AT(project) },
    { NODE(username), TEXT_AT(username) },
    { NODE(password), GQL_ALWAYS_NULL },
    { NODE(ssl_verify), GQL_BOOL_AT(struct registry_row, verifies) },
    { NODE(extra), GQL_FIXED_TEXT("{}") },
    { NODE(allowed_groups), GQL_CALL(registry_list_groups) },
    { SCHEMA_FIELD_ContainerRegistry_hostname, TEXT_AT(name) },
    { SCHEMA_FIELD_ContainerRegistry_config, GQL_SELF },
    { CONFIG(project), GQL_GET(registry_get_projects) },
    { SCHEMA_FIELD_Domain_allowed_docker_registries, GQL_GET(registry_get_of_domain) },
    REGISTRY_MUTATION(create_container_registry, CreateContainerRegistry),
    REGISTRY_MUTATION(modify_container_registry, ModifyContainerRegistry),
    REGISTRY_MUTATION(delete_container_registry, DeleteContainerRegistry),
    REGISTRY_MUTATION(create_container_registry_node, CreateContainerRegistryNode),
    REGISTRY_MUTATION(modify_container_registry_node, ModifyContainerRegistryNode),
    REGISTRY_MUTATION(delete_container_registry_node, DeleteContainerRegistryNode),
    REGISTRY_MUTATION(create_container_registry_node_v2, CreateContainerRegistryNodeV2),
    REGISTRY_MUTATION(modify_container_registry_node_v2, ModifyContainerRegistryNodeV2),
    REGISTRY_MUTATION(delete_container_registry_node_v2, DeleteContainerRegistryNodeV2),
};
GQL_ENTRIES_END(registry);
