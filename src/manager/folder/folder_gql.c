/* SPDX-License-Identifier: Apache-2.0 */
/* VirtualFolder and VirtualFolderNode: folders that the caller may see. */
#include "store/folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "manager/folder/folder_gql.h"
#include "manager/call/graphql/node.h"
#include "manager/folder/folder_feature.h"

#define MIB 1048576

/* ---- lists ---- */

struct folder_viewer gql_folder_viewer(const struct gql_context *context)
{
    const struct principal *who = context->who;

    return (struct folder_viewer){ .user_id = who->user_id,
                                   .is_superadmin = principal_is_superadmin(who),
                                   .admin_of = who->role == ROLE_ADMIN ? who->domain : NULL };
}

/* Have the fetch list those of the scope. */
static void gql_folder_set_scope(struct gql_fetch *fetch, enum folder_scope scope)
{
    const struct gql_context *context = fetch->call->context;
    struct folder_list *list = arena_alloc(fetch->call->arena, sizeof(*list));

    list->who = gql_folder_viewer(context);
    list->scope = scope;
    list->hides_trash = principal_is_old(context->who);
    fetch->folders = list;
}

/* domain_name, group_id and access_key, where the field has them. */
static int gql_folder_read_args(struct gql_fetch *fetch, struct aq_error *err)
{
    const struct gql_call *call = fetch->call;
    const struct gql_context *context = call->context;
    const struct gql_field_def *field = call->field;

    for (uint32_t i = 4; i < field->arg_count; i++) {
        const char *name = field->args[i].name, *text = gql_arg_text(call, i);
        const struct keypair *key;
        struct uuid *id;

        if (!text)
            continue;
        if (strcmp(name, "domain_name") == 0) {
            fetch->query.domain = text;
            continue;
        }
        id = arena_alloc(call->arena, sizeof(*id));
        if (strcmp(name, "group_id") == 0) {
            if (uuid_parse(text, id) < 0)
                return aq_fail(err, EINVAL, "group_id: '%.64s' is not a UUID", text);
            fetch->query.project_id = id;
            continue;
        }
        key = core_find_keypair(context->api->core, text);
        fetch->nothing |= !key;
        *id = key ? key->user_id : *id;
        fetch->query.user_id = id;
    }
    return 0;
}

static int gql_folder_list(struct gql_call *call, enum folder_scope scope)
{
    struct gql_fetch *fetch = gql_fetch_new(call, GQL_PAGE, NULL, sizeof(struct folder));
    struct aq_error err = { 0 };

    if (gql_fetch_page_args(fetch, GQL_PAGE_MAX, &err) < 0 || gql_folder_read_args(fetch, &err) < 0)
        return gql_fetch_fail(fetch, &err);
    gql_folder_set_scope(fetch, scope);
    return gql_fetch_start(fetch);
}

static int gql_folder_list_visible(struct gql_call *call)
{
    return gql_folder_list(call, FOLDERS_VISIBLE);
}

static int gql_folder_list_own(struct gql_call *call)
{
    return gql_folder_list(call, FOLDERS_OWN);
}

static int gql_folder_list_invited(struct gql_call *call)
{
    return gql_folder_list(call, FOLDERS_INVITED);
}

static int gql_folder_list_project(struct gql_call *call)
{
    return gql_folder_list(call, FOLDERS_PROJECT);
}

/* ---- nodes ---- */

static const char *gql_folder_id_of(const void *row, char scratch[64])
{
    return uuid_format(&((const struct folder *)row)->id, scratch);
}

static int gql_folder_narrow_node(struct gql_fetch *fetch, const char *id, struct aq_error *err)
{
    gql_folder_set_scope(fetch, FOLDERS_VISIBLE);
    return gql_node_set_id(fetch, id, err);
}

/* People work in a project with their own folders, too. */
static int gql_folder_narrow_to_project(struct gql_fetch *fetch, const struct uuid *id,
                                        struct aq_error *err)
{
    struct folder_list *list = arena_alloc(fetch->call->arena, sizeof(*list));

    (void)err;
    *list = *fetch->folders;
    list->project = id;
    fetch->folders = list;
    return 0;
}

const struct gql_node folder_node = {
    .type = SCHEMA_TYPE_VirtualFolderNode,
    .id_of = gql_folder_id_of,
    .row_size = sizeof(struct folder),
    .narrow = gql_folder_narrow_node,
    .narrow_to_project = gql_folder_narrow_to_project,
    .permissions = &folder_permissions,
};

/* ---- permissions ---- */

static bool gql_folder_may(const struct gql_context *context, const void *row, enum folder_op op)
{
    const struct folder_viewer who = gql_folder_viewer(context);

    return folder_may(row, &who, op);
}

#define FOLDER_MAY(name, op)                                                            \
    static bool gql_folder_may_##name(const struct gql_context *context,                \
                                      const struct store_page *groups, const void *row) \
    {                                                                                   \
        (void)groups;                                                                   \
        return gql_folder_may(context, row, op);                                        \
    }

FOLDER_MAY(read, FOLDER_READ)
FOLDER_MAY(write, FOLDER_WRITE)
FOLDER_MAY(delete, FOLDER_DELETE)
FOLDER_MAY(change, FOLDER_CHANGE)

static const struct permission gql_folder_permissions[] = {
    { "read_attribute" },
    { "update_attribute", "/folders/{name}/update-options", METHOD_POST, gql_folder_may_change },
    { "delete_vfolder", "/folders/{name}", METHOD_DELETE, gql_folder_may_delete },
    { "read_content", "/folders/{name}/request-download", METHOD_POST, gql_folder_may_read },
    { "write_content", "/folders/{name}/request-upload", METHOD_POST, gql_folder_may_write },
    { "delete_content", "/folders/{name}/delete-files", METHOD_DELETE, gql_folder_may_write },
    { "mount_ro", "/folders/{name}/request-download", METHOD_POST, gql_folder_may_read },
    { "mount_rw", "/folders/{name}/request-upload", METHOD_POST, gql_folder_may_write },
    { "mount_wd", "/folders/{name}", METHOD_DELETE, gql_folder_may_delete },
};

const struct permission_list folder_permissions = { gql_folder_permissions,
                                                    AQ_COUNT(gql_folder_permissions), false };

static int gql_folder_get_permissions(struct gql_call *call)
{
    return permission_resolve(call, &folder_permissions);
}

/* ---- values ---- */

static struct gql_value gql_folder_get_owner(const struct gql_get *get, const struct uuid *id)
{
    return uuid_is_nil(id) ? gql_null() : gql_text(uuid_format(id, (char *)get->scratch));
}

static struct gql_value gql_folder_get_user(struct gql_get *get, const void *parent)
{
    return gql_folder_get_owner(get, &((const struct folder *)parent)->user_id);
}

static struct gql_value gql_folder_get_group(struct gql_get *get, const void *parent)
{
    return gql_folder_get_owner(get, &((const struct folder *)parent)->project_id);
}

struct gql_value gql_folder_get_quota_scope(struct gql_get *get, const void *parent)
{
    const struct folder *folder = parent;
    bool is_user = uuid_is_nil(&folder->project_id);
    char id[UUID_TEXT_MAX];

    (void)snprintf(get->scratch, sizeof(get->scratch), "%s:%s", is_user ? "user" : "project",
                   uuid_format(is_user ? &folder->user_id : &folder->project_id, id));
    return gql_text(get->scratch);
}

static struct gql_value gql_folder_get_usage(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_text(folder_usage_name(((const struct folder *)parent)->usage));
}

static struct gql_value gql_folder_get_permission(struct gql_get *get, const void *parent)
{
    const struct folder_viewer who = gql_folder_viewer(get->context);

    return gql_text(folder_permission_name(folder_permission_shown(parent, &who)));
}

static struct gql_value gql_folder_get_type(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_text(uuid_is_nil(&((const struct folder *)parent)->project_id) ? "user" : "group");
}

static struct gql_value gql_folder_get_status(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_text(folder_status_name(((const struct folder *)parent)->status));
}

static struct gql_value gql_folder_get_max_size(struct gql_get *get, const void *parent)
{
    int64_t bytes = ((const struct folder *)parent)->bytes_max;

    (void)get;
    return bytes ? gql_int((bytes + MIB - 1) / MIB) : gql_null();
}

/* null of a folder that was never measured */
static struct gql_value gql_folder_get_files(struct gql_get *get, const void *parent)
{
    const struct folder *folder = parent;

    (void)get;
    return folder->measured_usec ? gql_int(AQ_MIN(folder->files, INT32_MAX)) : gql_null();
}

static struct gql_value gql_folder_get_bytes(struct gql_get *get, const void *parent)
{
    const struct folder *folder = parent;

    (void)get;
    return folder->measured_usec ? gql_int(folder->bytes) : gql_null();
}

#define ROOT(name, fn)                                                   \
    {                                                                    \
        SCHEMA_FIELD_Queries_##name, GQL_CALL_COST(fn, GQL_COST_READ, 1) \
    }
#define FIELD(name) SCHEMA_FIELD_VirtualFolder_##name

static const struct gql_entry folder_entries[] = {
    ROOT(vfolder_list, gql_folder_list_visible),
    ROOT(vfolder_own_list, gql_folder_list_own),
    ROOT(vfolder_invited_list, gql_folder_list_invited),
    ROOT(vfolder_project_list, gql_folder_list_project),
    { SCHEMA_FIELD_VirtualFolderList_items, GQL_PAGE_ITEMS },
    { SCHEMA_FIELD_VirtualFolderList_total_count, GQL_PAGE_TOTAL },
    { SCHEMA_FIELD_VirtualFolderNode_quota_scope_id, GQL_GET(gql_folder_get_quota_scope) },
    { SCHEMA_FIELD_VirtualFolderNode_row_id, GQL_UUID_AT(struct folder, id) },
    { SCHEMA_FIELD_VirtualFolderNode_permissions,
      GQL_CALL_COST(gql_folder_get_permissions, GQL_COST_MADE, 1) },
    { FIELD(id), GQL_UUID_AT(struct folder, id) },
    { FIELD(host), GQL_TEXT_AT(struct folder, host) },
    { FIELD(name), GQL_TEXT_AT(struct folder, name) },
    { FIELD(user), GQL_GET(gql_folder_get_user) },
    { FIELD(user_email), GQL_TEXT_AT(struct folder, user_email) },
    { FIELD(group), GQL_GET(gql_folder_get_group) },
    { FIELD(group_name), GQL_TEXT_AT(struct folder, project_name) },
    { FIELD(creator), GQL_TEXT_AT(struct folder, creator) },
    { FIELD(unmanaged_path), GQL_ALWAYS_NULL },
    { FIELD(usage_mode), GQL_GET(gql_folder_get_usage) },
    { FIELD(permission), GQL_GET(gql_folder_get_permission) },
    { FIELD(ownership_type), GQL_GET(gql_folder_get_type) },
    { FIELD(max_files), GQL_FIXED_INT(0) },
    { FIELD(max_size), GQL_GET(gql_folder_get_max_size) },
    { FIELD(created_at), GQL_TIME_AT(struct folder, created_usec) },
    { FIELD(last_used), GQL_TIME_AT(struct folder, used_usec) },
    { FIELD(num_files), GQL_GET(gql_folder_get_files) },
    { FIELD(cur_size), GQL_GET(gql_folder_get_bytes) },
    { FIELD(cloneable), GQL_BOOL_AT(struct folder, is_cloneable) },
    { FIELD(status), GQL_GET(gql_folder_get_status) },
};
GQL_ENTRIES_END(folder);
