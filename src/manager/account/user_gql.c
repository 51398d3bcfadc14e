/* SPDX-License-Identifier: Apache-2.0 */
/* User and its lists. The objects are struct user_row. */
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "manager/call/graphql/node.h"
#include "manager/account/account_feature.h"

#define FIELD(name) SCHEMA_FIELD_User_##name
#define AT(how, member) GQL_##how##_AT(struct user_row, member)

/* ---- root fields ---- */

static struct gql_fetch *gql_user_fetch_new(struct gql_call *call, enum gql_shape shape)
{
    return gql_fetch_new(call, shape, store_list_users, sizeof(struct user_row));
}

/* Users see themselves only, whatever they ask for. */
static void gql_user_narrow_to_self(struct gql_fetch *fetch)
{
    const struct gql_context *context = fetch->call->context;

    if (!principal_may(context->who->role, API_ADMIN))
        fetch->query.user_id = &context->who->user_id;
    else if (!principal_is_superadmin(context->who))
        fetch->query.domain = context->who->domain;
}

static int gql_user_get_one(struct gql_call *call)
{
    const struct gql_context *context = call->context;
    const char *email = gql_arg_text(call, SCHEMA_ARG_Queries_user_email);
    struct gql_fetch *fetch = gql_user_fetch_new(call, GQL_ONE);

    gql_user_narrow_to_self(fetch);
    if (email)
        fetch->query.name = email;
    else
        fetch->query.user_id = &context->who->user_id;
    return gql_fetch_start(fetch);
}

static int gql_user_get_from_uuid(struct gql_call *call)
{
    const struct gql_context *context = call->context;
    const char *text = gql_arg_text(call, SCHEMA_ARG_Queries_user_from_uuid_user_id);
    struct gql_fetch *fetch = gql_user_fetch_new(call, GQL_ONE);
    struct aq_error err = { 0 };

    gql_user_narrow_to_self(fetch);
    fetch->query.ids = &context->who->user_id;
    fetch->query.id_count = 1;
    return gql_node_set_id(fetch, text, &err) < 0 ? gql_fetch_fail(fetch, &err)
                                                  : gql_fetch_start(fetch);
}

/* Users have no list of users. */
static int gql_user_narrow_node(struct gql_fetch *fetch, const char *id, struct aq_error *err)
{
    int r = id ? 0 : gql_need(fetch->call->context, API_ADMIN, err);

    gql_user_narrow_to_self(fetch);
    return r < 0 ? r : gql_node_set_id(fetch, id, err);
}

static const char *gql_user_id_of(const void *row, char scratch[64])
{
    return uuid_format(&((const struct user_row *)row)->user.id, scratch);
}

const struct gql_node user_node = {
    .type = SCHEMA_TYPE_UserNode,
    .id_of = gql_user_id_of,
    .list = store_list_users,
    .row_size = sizeof(struct user_row),
    .narrow = gql_user_narrow_node,
};

struct list_args {
    const char *domain, *project_id, *status;
    int is_active;
};

static int gql_user_apply_args(struct gql_fetch *fetch, const struct list_args *args,
                               struct aq_error *err)
{
    struct store_query *query = &fetch->query;
    struct uuid *project_id;
    enum user_status status;
    int r;

    if ((r = gql_need(fetch->call->context, API_ADMIN, err)) < 0)
        return r;
    gql_user_narrow_to_self(fetch);
    if (args->domain && query->domain && strcmp(args->domain, query->domain) != 0)
        fetch->nothing = true;
    else if (args->domain)
        query->domain = args->domain;
    query->is_active = args->is_active;
    if (args->status && user_status_parse(args->status, &status) < 0)
        return aq_fail(err, EINVAL, "status: '%.40s' is no user status", args->status);
    if (args->status)
        query->statuses = 1u << status;
    if (!args->project_id)
        return 0;
    project_id = arena_alloc(fetch->call->arena, sizeof(*project_id));
    if (uuid_parse(args->project_id, project_id) < 0)
        return aq_fail(err, EINVAL, "group_id: '%.64s' is not a UUID", args->project_id);
    query->project_id = project_id;
    return 0;
}

static int gql_user_list(struct gql_call *call)
{
    const struct list_args args = {
        .domain = gql_arg_text(call, SCHEMA_ARG_Queries_user_list_domain_name),
        .project_id = gql_arg_text(call, SCHEMA_ARG_Queries_user_list_group_id),
        .status = gql_arg_text(call, SCHEMA_ARG_Queries_user_list_status),
        .is_active = gql_arg_active(call, SCHEMA_ARG_Queries_user_list_is_active),
    };
    struct gql_fetch *fetch = gql_user_fetch_new(call, GQL_PAGE);
    struct aq_error err = { 0 };

    fetch->query.order = "-created_at";
    if (gql_fetch_page_args(fetch, GQL_PAGE_MAX, &err) < 0
        || gql_user_apply_args(fetch, &args, &err) < 0)
        return gql_fetch_fail(fetch, &err);
    return gql_fetch_start(fetch);
}

static int gql_user_list_all(struct gql_call *call)
{
    const struct list_args args = {
        .domain = gql_arg_text(call, SCHEMA_ARG_Queries_users_domain_name),
        .project_id = gql_arg_text(call, SCHEMA_ARG_Queries_users_group_id),
        .status = gql_arg_text(call, SCHEMA_ARG_Queries_users_status),
        .is_active = gql_arg_active(call, SCHEMA_ARG_Queries_users_is_active),
    };
    struct gql_fetch *fetch = gql_user_fetch_new(call, GQL_MANY);
    struct aq_error err = { 0 };

    if (gql_user_apply_args(fetch, &args, &err) < 0)
        return gql_fetch_fail(fetch, &err);
    return gql_fetch_start(fetch);
}

/* ---- values ---- */

static const struct user *gql_user_of(const void *parent)
{
    return &((const struct user_row *)parent)->user;
}

struct membership {
    struct uuid id;
    const char *name;
};

static struct gql_value gql_user_projects_of(const struct gql_call *call, const struct user *user)
{
    const struct core *core = ((const struct gql_context *)call->context)->api->core;
    struct membership *items = arena_array(call->arena, user->project_count + 1, sizeof(*items));
    uint32_t count = 0;

    for (size_t i = 0; i < user->project_count; i++) {
        const struct project *project = core_find_project(core, &user->project_ids[i]);

        if (!project)
            continue;
        items[count].id = project->id;
        items[count++].name = arena_strdup(call->arena, project->name);
    }
    return gql_rows_of(call->arena, items, count, sizeof(*items));
}

static int gql_user_projects(struct gql_call *call)
{
    for (uint32_t i = 0; i < call->count && !arena_is_over(call->arena); i++)
        call->results[i] = gql_user_projects_of(call, gql_user_of(call->parents[i]));
    return GQL_DONE;
}

static struct gql_value gql_user_get_status(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_text(user_status_name(gql_user_of(parent)->status));
}

static struct gql_value gql_user_get_role(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_text(user_role_name(gql_user_of(parent)->role));
}

static struct gql_value gql_user_get_is_active(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_bool(gql_user_of(parent)->status == USER_ACTIVE);
}

static struct gql_value gql_user_get_networks(struct gql_get *get, const void *parent)
{
    const char *networks = gql_user_of(parent)->allowed_client_ip;

    return networks ? gql_words(get->arena, networks, ",") : gql_null();
}

/* ---- who asks: the object is a struct principal ---- */

static int gql_user_get_viewer(struct gql_call *call)
{
    call->results[0] = gql_object(((const struct gql_context *)call->context)->who);
    return GQL_DONE;
}

static int gql_user_get_viewer_user(struct gql_call *call)
{
    const struct principal *who = call->parents[0];
    struct gql_fetch *fetch = gql_user_fetch_new(call, GQL_ONE);

    fetch->query.ids = &who->user_id;
    fetch->query.id_count = 1;
    return gql_fetch_start(fetch);
}

static struct gql_value gql_user_get_encoded_role(struct gql_get *get, const void *parent)
{
    const char *role = user_role_name(((const struct principal *)parent)->role);

    return gql_text(sodium_bin2base64(get->scratch, sizeof(get->scratch),
                                      (const unsigned char *)role, strlen(role),
                                      sodium_base64_VARIANT_ORIGINAL));
}

/* ---- the caller's address ---- */

static int gql_user_get_address(struct gql_call *call)
{
    const struct gql_context *context = call->context;
    char *address = arena_alloc(call->arena, CLIENT_ADDRESS_MAX);

    client_address_find(request_get_address(context->req), request_get_head(context->req),
                        &context->api->proxies, address);
    call->results[0] = gql_object(address);
    return GQL_DONE;
}

static struct gql_value gql_user_get_address_text(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_text(parent);
}

static const struct gql_entry user_entries[] = {
    { SCHEMA_FIELD_Queries_myClientIp, GQL_CALL(gql_user_get_address) },
    { SCHEMA_FIELD_MyClientIp_clientIp, GQL_GET(gql_user_get_address_text) },
    { SCHEMA_FIELD_Queries_viewer, GQL_CALL(gql_user_get_viewer) },
    { SCHEMA_FIELD_Viewer_user, GQL_CALL_COST(gql_user_get_viewer_user, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Viewer_user_id, GQL_UUID_AT(struct principal, user_id) },
    { SCHEMA_FIELD_Viewer_encoded_user_role, GQL_GET(gql_user_get_encoded_role) },
    { SCHEMA_FIELD_Queries_user, GQL_CALL_COST(gql_user_get_one, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_user_from_uuid,
      GQL_CALL_COST(gql_user_get_from_uuid, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_users, GQL_CALL_COST(gql_user_list_all, GQL_COST_READ, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_Queries_user_list, GQL_CALL_COST(gql_user_list, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_UserList_items, GQL_PAGE_ITEMS },
    { SCHEMA_FIELD_UserList_total_count, GQL_PAGE_TOTAL },
    { SCHEMA_FIELD_UserGroup_id, GQL_UUID_AT(struct membership, id) },
    { SCHEMA_FIELD_UserGroup_name, GQL_TEXT_AT(struct membership, name) },
    { FIELD(id), AT(UUID, user.id) },
    { SCHEMA_FIELD_UserNode_row_id, AT(UUID, user.id) },
    { FIELD(is_active), GQL_GET(gql_user_get_is_active) },
    { FIELD(status), GQL_GET(gql_user_get_status) },
    { FIELD(status_info), GQL_ALWAYS_NULL },
    { FIELD(created_at), AT(TIME, created_usec) },
    { FIELD(modified_at), GQL_ALWAYS_NULL },
    { FIELD(role), GQL_GET(gql_user_get_role) },
    { FIELD(resource_policy), GQL_FIXED_TEXT("default") },
    { FIELD(groups), GQL_CALL_COST(gql_user_projects, 5, 4) },
    { FIELD(allowed_client_ip), GQL_GET(gql_user_get_networks) },
    { FIELD(totp_activated), GQL_FIXED_BOOL(false) },
    { FIELD(sudo_session_enabled), GQL_FIXED_BOOL(false) },
    { FIELD(main_access_key), GQL_ALWAYS_NULL },
};
GQL_ENTRIES_END(user);
