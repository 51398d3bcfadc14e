/* SPDX-License-Identifier: Apache-2.0 */
/* VFolder: folders as newer clients know them, and making one. The objects are struct folder. */
#include "manager/folder/folder_gql.h"
#include "manager/call/graphql/mutation.h"
#include "manager/call/graphql/node.h"
#include "manager/folder/folder_create.h"
#include "manager/folder/folder_feature.h"

/* ---- the node ---- */

static int gql_folder_v2_narrow(struct gql_fetch *fetch, const char *id, struct aq_error *err)
{
    return folder_node.narrow(fetch, id, err);
}

static const char *gql_folder_v2_id_of(const void *row, char scratch[64])
{
    return folder_node.id_of(row, scratch);
}

const struct gql_node folder_v2_node = {
    .type = SCHEMA_TYPE_VFolder,
    .id_of = gql_folder_v2_id_of,
    .row_size = sizeof(struct folder),
    .narrow = gql_folder_v2_narrow,
};

/* ---- values ---- */

static const struct folder *gql_folder_v2_of(const void *parent)
{
    return parent;
}

static struct gql_value gql_folder_v2_get_status(struct gql_get *get, const void *parent)
{
    static const uint8_t shown[] = {
        [FOLDER_READY] = 0,          [FOLDER_PERFORMING] = 0,     [FOLDER_CLONING] = 1,
        [FOLDER_DELETE_PENDING] = 2, [FOLDER_DELETE_ONGOING] = 3,
    };

    (void)get;
    return gql_enum(shown[gql_folder_v2_of(parent)->status]);
}

static struct gql_value gql_folder_v2_get_permission(struct gql_get *get, const void *parent)
{
    const struct folder_viewer who = gql_folder_viewer(get->context);
    enum folder_permission permission = folder_permission_shown(parent, &who);

    return gql_enum(AQ_MAX(permission, FOLDER_READ_ONLY) - FOLDER_READ_ONLY);
}

static struct gql_value gql_folder_v2_get_type(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_enum(!uuid_is_nil(&gql_folder_v2_of(parent)->project_id));
}

static struct gql_value gql_folder_v2_get_creator(struct gql_get *get, const void *parent)
{
    const struct core *core = ((const struct gql_context *)get->context)->api->core;
    const struct user *user = core_find_user_by_email(core, gql_folder_v2_of(parent)->creator);

    return user ? gql_text(uuid_format(&user->id, get->scratch)) : gql_null();
}

static const struct uuid *gql_folder_v2_user_of(const void *parent)
{
    return &gql_folder_v2_of(parent)->user_id;
}

static int gql_folder_v2_user(struct gql_call *call)
{
    return gql_node_load(call, gql_node_find(SCHEMA_TYPE_UserV2), gql_folder_v2_user_of);
}

static const struct uuid *gql_folder_v2_project_of(const void *parent)
{
    return &gql_folder_v2_of(parent)->project_id;
}

static int gql_folder_v2_project(struct gql_call *call)
{
    return gql_node_load(call, gql_node_find(SCHEMA_TYPE_ProjectV2), gql_folder_v2_project_of);
}

/* ---- making one ---- */

static void gql_folder_v2_on_created(struct folder_call *folder, const struct aq_error *err)
{
    struct gql_call *call = folder->data;

    if (err)
        (void)mutation_fail(call, err);
    else
        call->results[0] = gql_object(&folder->folder);
    gql_call_done(call);
}

static int gql_folder_v2_create(struct gql_call *call, const char *project, const char *usage,
                                const char *permission)
{
    const struct gql_context *context = call->context;
    struct folder_create_params params = folder_create_defaults;
    struct folder_call *folder;

    params.name = gql_arg_member(call, "input", "name").text;
    params.host = gql_arg_member(call, "input", "host").text;
    params.is_cloneable = gql_arg_member(call, "input", "cloneable").boolean;
    params.group = project;
    params.usage = usage;
    params.permission = permission;
    if (context->api->is_frozen)
        return gql_call_fail(call, "the manager is frozen by an administrator; try later");
    folder = folder_call_make(context->api, context->req, FOLDER_SEE, sizeof(params), &params);
    folder->finish = gql_folder_v2_on_created;
    folder->data = call;
    folder_create(folder);
    return GQL_LATER;
}

static int gql_folder_v2_create_one(struct gql_call *call)
{
    return gql_folder_v2_create(call, gql_arg_member(call, "input", "projectId").text,
                                gql_arg_member(call, "input", "usageMode").text,
                                gql_arg_member(call, "input", "permission").text);
}

static int gql_folder_v2_create_in_project(struct gql_call *call)
{
    int64_t usage = gql_arg_member(call, "input", "usageMode").integer;
    int64_t permission = gql_arg_member(call, "input", "permission").integer;

    return gql_folder_v2_create(
        call, gql_arg_text(call, SCHEMA_ARG_Mutations_createVFolderInProject_projectId),
        folder_usage_name((enum folder_usage)usage),
        folder_permission_name((enum folder_permission)(permission + FOLDER_READ_ONLY)));
}

#define VFOLDER(name) SCHEMA_FIELD_VFolder##name

static const struct gql_entry folder_v2_entries[] = {
    { SCHEMA_FIELD_Queries_vfolderV2, GQL_CALL_COST(gql_node_get, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Mutations_createVfolderV2,
      GQL_CALL_COST(gql_folder_v2_create_one, GQL_COST_WRITE, 1) },
    { SCHEMA_FIELD_Mutations_createVFolderInProject,
      GQL_CALL_COST(gql_folder_v2_create_in_project, GQL_COST_WRITE, 1) },
    { SCHEMA_FIELD_CreateVFolderV2Payload_vfolder, GQL_SELF },
    { VFOLDER(_id), GQL_GET(gql_node_get_id) },
    { VFOLDER(_status), GQL_GET(gql_folder_v2_get_status) },
    { VFOLDER(_host), GQL_TEXT_AT(struct folder, host) },
    { VFOLDER(_metadata), GQL_SELF },
    { VFOLDER(_accessControl), GQL_SELF },
    { VFOLDER(_ownership), GQL_SELF },
    { VFOLDER(_unmanagedPath), GQL_ALWAYS_NULL },
    { VFOLDER(MetadataInfo_name), GQL_TEXT_AT(struct folder, name) },
    { VFOLDER(MetadataInfo_usageMode), GQL_ENUM_AT(struct folder, usage) },
    { VFOLDER(MetadataInfo_quotaScopeId), GQL_GET(gql_folder_get_quota_scope) },
    { VFOLDER(MetadataInfo_createdAt), GQL_TIME_AT(struct folder, created_usec) },
    { VFOLDER(MetadataInfo_lastUsed), GQL_TIME_AT(struct folder, used_usec) },
    { VFOLDER(MetadataInfo_cloneable), GQL_BOOL_AT(struct folder, is_cloneable) },
    { VFOLDER(AccessControlInfo_permission), GQL_GET(gql_folder_v2_get_permission) },
    { VFOLDER(AccessControlInfo_ownershipType), GQL_GET(gql_folder_v2_get_type) },
    { VFOLDER(OwnershipInfo_user), GQL_CALL_COST(gql_folder_v2_user, GQL_COST_READ / 10, 1) },
    { VFOLDER(OwnershipInfo_project), GQL_CALL_COST(gql_folder_v2_project, GQL_COST_READ / 10, 1) },
    { VFOLDER(OwnershipInfo_userId), GQL_UUID_AT(struct folder, user_id) },
    { VFOLDER(OwnershipInfo_projectId), GQL_UUID_AT(struct folder, project_id) },
    { VFOLDER(OwnershipInfo_creatorId), GQL_GET(gql_folder_v2_get_creator) },
    { VFOLDER(OwnershipInfo_creatorEmail), GQL_TEXT_AT(struct folder, creator) },
};
GQL_ENTRIES_END(folder_v2);
