/* SPDX-License-Identifier: Apache-2.0 */
/* UserResourcePolicy and ProjectResourcePolicy, and what superadmins do to them. */
#include <string.h>

#include "base/clock.h"
#include "manager/call/graphql/mutation.h"
#include "manager/folder/owner_policies.h"
#include "manager/folder/folder_feature.h"
#include "model/model_service.h"

static const char *const members[] = { "max_vfolder_count", "max_quota_scope_size",
                                       "max_session_count_per_model_session",
                                       "max_customized_image_count", "max_network_count" };
#define MEMBER_SIZE "max_quota_scope_size"
#define MEMBER_SIZE_BEFORE "max_vfolder_size" /* as it was called */

struct owner_policy_row {
    const char *name;
    int64_t created_usec;
    bool has[AQ_COUNT(members)];
    int64_t values[AQ_COUNT(members)];
};

/* ---- queries ---- */

/* The policy NULL = 'default', which nobody has changed. */
static void owner_policy_fill(struct gql_call *call, const char *name, const json_t *policy,
                              struct owner_policy_row *row)
{
    row->name = arena_strdup(call->arena, name);
    row->created_usec = policy ? json_integer_value(json_object_get(policy, "created_usec"))
                               : owner_policies_since(mutation_api(call));
    for (size_t i = 0; i < AQ_COUNT(members); i++) {
        const json_t *value = json_object_get(policy, members[i]);

        row->has[i] = value;
        row->values[i] = json_integer_value(value);
    }
}

/* Which policies the field is about. */
static enum owner_policy_kind owner_policy_kind_of(const struct gql_call *call)
{
    return strstr(call->field->name, "user_resource") ? OWNER_POLICY_USER : OWNER_POLICY_PROJECT;
}

static struct gql_value owner_policy_find(struct gql_call *call, const char *name)
{
    const json_t *policy = json_object_get(
        owner_policies_all(mutation_api(call), owner_policy_kind_of(call)), name);
    struct owner_policy_row *row;

    if (!policy && strcmp(name, OWNER_POLICY_DEFAULT) != 0)
        return gql_null();
    row = arena_alloc(call->arena, sizeof(*row));
    owner_policy_fill(call, name, policy, row);
    return gql_object(row);
}

static int owner_policy_get_one(struct gql_call *call)
{
    const char *name = gql_arg_text(call, 0);

    call->results[0] = owner_policy_find(call, name ? name : OWNER_POLICY_DEFAULT);
    return GQL_DONE;
}

static int owner_policy_list(struct gql_call *call)
{
    json_t *all = (json_t *)(uintptr_t)owner_policies_all(mutation_api(call),
                                                          owner_policy_kind_of(call));
    struct owner_policy_row *rows = arena_array(call->arena, json_object_size(all) + 1,
                                                sizeof(*rows));
    uint32_t count = 0;
    const char *name;
    json_t *policy;

    if (!json_object_get(all, OWNER_POLICY_DEFAULT))
        owner_policy_fill(call, OWNER_POLICY_DEFAULT, NULL, &rows[count++]);
    json_object_foreach(all, name, policy)
        owner_policy_fill(call, name, policy, &rows[count++]);
    call->results[0] = gql_rows_of(call->arena, rows, count, sizeof(*rows));
    return GQL_DONE;
}

static struct gql_value owner_policy_get_member(struct gql_get *get, const void *parent)
{
    const struct owner_policy_row *row = parent;
    const char *name = strcmp(get->field->name, MEMBER_SIZE_BEFORE) == 0 ? MEMBER_SIZE
                                                                         : get->field->name;

    for (size_t i = 0; i < AQ_COUNT(members); i++)
        if (row->has[i] && strcmp(members[i], name) == 0)
            return strcmp(name, MEMBER_SIZE) == 0 ? gql_int(row->values[i])
                                                  : gql_int_clamped(row->values[i]);
    return strcmp(name, MEMBER_SIZE) == 0 ? gql_int(-1) : gql_null();
}

/* ---- mutations ---- */

/* The members that are given, as they are kept. */
static json_t *owner_policy_read_props(const struct gql_call *call)
{
    struct gql_value size = mutation_prop(call, MEMBER_SIZE_BEFORE);
    json_t *given = json_object();

    if (gql_is_given(size))
        (void)json_object_set_new(given, MEMBER_SIZE, json_integer(size.integer));
    for (size_t i = 0; i < AQ_COUNT(members); i++) {
        struct gql_value value = mutation_prop(call, members[i]);

        if (gql_is_given(value))
            (void)json_object_set_new(given, members[i], json_integer(value.integer));
    }
    return given;
}

static void owner_policy_on_created(void *data, int r, const struct aq_error *err)
{
    struct gql_call *call = data;

    (void)(r < 0 ? mutation_refuse(call, err)
                 : mutation_succeed(call, owner_policy_find(call, gql_arg_text(call, 0)).object));
    gql_call_done(call);
}

static int owner_policy_save(struct gql_call *call, bool is_new, const json_t *given)
{
    struct aq_error err = { 0 };

    if (owner_policies_change(mutation_api(call), owner_policy_kind_of(call), gql_arg_text(call, 0),
                              is_new, given, mutation_who(call),
                              is_new ? owner_policy_on_created : mutation_on_done, call, &err)
        < 0)
        return mutation_refuse(call, &err);
    return GQL_LATER;
}

static int owner_policy_change(struct gql_call *call)
{
    bool is_new = strncmp(call->field->name, "create_", 7) == 0;
    json_auto_t *given = NULL;

    if (!mutation_may(call))
        return GQL_DONE;
    given = owner_policy_read_props(call);
    return owner_policy_save(call, is_new, given);
}

static int owner_policy_delete(struct gql_call *call)
{
    return mutation_may(call) ? owner_policy_save(call, false, NULL) : GQL_DONE;
}

/* Without a limit it is the most that a service can have: pages refuse more than what they are told. */
static struct gql_value owner_policy_get_replicas(struct gql_get *get, const void *parent)
{
    struct gql_value limit = owner_policy_get_member(get, parent);

    return gql_is_given(limit) && limit.integer > 0 ? limit : gql_int(MODEL_SERVICE_REPLICAS_MAX);
}

#define USER(name) SCHEMA_FIELD_UserResourcePolicy_##name
#define PROJECT(name) SCHEMA_FIELD_ProjectResourcePolicy_##name

static const struct gql_entry owner_policy_entries[] = {
    { SCHEMA_FIELD_Queries_user_resource_policy, GQL_CALL(owner_policy_get_one) },
    { SCHEMA_FIELD_Queries_project_resource_policy, GQL_CALL(owner_policy_get_one) },
    { SCHEMA_FIELD_Queries_user_resource_policies,
      GQL_CALL_COST(owner_policy_list, 5, OWNER_POLICIES_MAX) },
    { SCHEMA_FIELD_Queries_project_resource_policies,
      GQL_CALL_COST(owner_policy_list, 5, OWNER_POLICIES_MAX) },
    { USER(id), GQL_TEXT_AT(struct owner_policy_row, name) },
    { USER(name), GQL_TEXT_AT(struct owner_policy_row, name) },
    { USER(created_at), GQL_TIME_AT(struct owner_policy_row, created_usec) },
    { USER(max_vfolder_count), GQL_GET(owner_policy_get_member) },
    { USER(max_quota_scope_size), GQL_GET(owner_policy_get_member) },
    { USER(max_vfolder_size), GQL_GET(owner_policy_get_member) },
    { USER(max_session_count_per_model_session), GQL_GET(owner_policy_get_replicas) },
    { USER(max_customized_image_count), GQL_GET(owner_policy_get_member) },
    { PROJECT(max_network_count), GQL_GET(owner_policy_get_member) },
    { SCHEMA_FIELD_Mutations_create_user_resource_policy,
      GQL_CALL_COST(owner_policy_change, GQL_COST_WRITE, 1) },
    { SCHEMA_FIELD_Mutations_modify_user_resource_policy,
      GQL_CALL_COST(owner_policy_change, GQL_COST_WRITE, 1) },
    { SCHEMA_FIELD_Mutations_delete_user_resource_policy,
      GQL_CALL_COST(owner_policy_delete, GQL_COST_WRITE, 1) },
    { SCHEMA_FIELD_Mutations_create_project_resource_policy,
      GQL_CALL_COST(owner_policy_change, GQL_COST_WRITE, 1) },
    { SCHEMA_FIELD_Mutations_modify_project_resource_policy,
      GQL_CALL_COST(owner_policy_change, GQL_COST_WRITE, 1) },
    { SCHEMA_FIELD_Mutations_delete_project_resource_policy,
      GQL_CALL_COST(owner_policy_delete, GQL_COST_WRITE, 1) },
    MUTATION_RESULT(CreateUserResourcePolicy),
    { SCHEMA_FIELD_CreateUserResourcePolicy_resource_policy,
      GQL_OBJECT_AT(struct mutation_result, object) },
    MUTATION_RESULT(ModifyUserResourcePolicy),
    MUTATION_RESULT(DeleteUserResourcePolicy),
    MUTATION_RESULT(CreateProjectResourcePolicy),
    { SCHEMA_FIELD_CreateProjectResourcePolicy_resource_policy,
      GQL_OBJECT_AT(struct mutation_result, object) },
    MUTATION_RESULT(ModifyProjectResourcePolicy),
    MUTATION_RESULT(DeleteProjectResourcePolicy),
};
GQL_ENTRIES_END(owner_policy);
