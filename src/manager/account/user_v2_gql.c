/* SPDX-License-Identifier: Apache-2.0 */
/* UserV2 and ProjectV2: users and projects as newer clients know them. The objects are struct
 * user_row and struct project_row.
 */
#include <string.h>

#include "manager/folder/folder.h"
#include "manager/call/graphql/node.h"
#include "manager/account/account_feature.h"

#define USER(name) SCHEMA_FIELD_UserV2##name
#define AT(how, member) GQL_##how##_AT(struct user_row, member)
#define PROJECT_AT(how, member) GQL_##how##_AT(struct project_row, member)

/* A list is of administrators, as the older ones. */
static int gql_user_v2_narrow(struct gql_fetch *fetch, const char *id, struct aq_error *err)
{
    return user_node.narrow(fetch, id, err);
}

static const char *gql_user_v2_id_of(const void *row, char scratch[64])
{
    return user_node.id_of(row, scratch);
}

static const struct newer_word user_v2_words[] = {
    { "domain.isActive", "domain_is_active" },
    { "project.name", "project_name" },
    { "project.isActive", "project_is_active" },
};

const struct gql_node user_v2_node = {
    .type = SCHEMA_TYPE_UserV2,
    .id_of = gql_user_v2_id_of,
    .list = store_list_users,
    .row_size = sizeof(struct user_row),
    .narrow = gql_user_v2_narrow,
    .newer_words = user_v2_words,
    .newer_word_count = AQ_COUNT(user_v2_words),
};

static int gql_user_v2_get_mine(struct gql_call *call)
{
    const struct gql_context *context = call->context;
    struct gql_fetch *fetch = gql_fetch_new(call, GQL_ONE, store_list_users,
                                            sizeof(struct user_row));

    fetch->query.ids = &context->who->user_id;
    fetch->query.id_count = 1;
    return gql_fetch_start(fetch);
}

/* ---- projects ---- */

static int gql_project_v2_narrow(struct gql_fetch *fetch, const char *id, struct aq_error *err)
{
    struct gql_value domain = gql_arg_member(fetch->call, "scope", "domainName");
    int r = group_node.narrow(fetch, id, err);

    if (gql_is_given(domain)) {
        fetch->nothing |= fetch->query.domain && strcmp(fetch->query.domain, domain.text) != 0;
        fetch->query.domain = domain.text;
    }
    return r;
}

static const char *gql_project_v2_id_of(const void *row, char scratch[64])
{
    return group_node.id_of(row, scratch);
}

const struct gql_node project_v2_node = {
    .type = SCHEMA_TYPE_ProjectV2,
    .id_of = gql_project_v2_id_of,
    .list = store_list_projects,
    .row_size = sizeof(struct project_row),
    .narrow = gql_project_v2_narrow,
};

static int gql_project_v2_list(struct gql_call *call)
{
    struct aq_error err = { 0 };

    return gql_need(call->context, API_ADMIN, &err) < 0 ? gql_call_fail(call, "%s", err.text)
                                                        : gql_node_list(call);
}

/* ---- values ---- */

static struct gql_value gql_user_v2_get_networks(struct gql_get *get, const void *parent)
{
    const char *networks = ((const struct user_row *)parent)->user.allowed_client_ip;

    return networks ? gql_words(get->arena, networks, ",") : gql_null();
}

static struct gql_value gql_project_v2_get_hosts(struct gql_get *get, const void *parent)
{
    char id[UUID_TEXT_MAX];

    return folder_rule_list_hosts(
        get, FOLDER_RULES_PROJECT,
        uuid_format(&((const struct project_row *)parent)->project.id, id));
}

static const struct gql_entry user_v2_entries[] = {
    { SCHEMA_FIELD_Queries_myUserV2, GQL_CALL_COST(gql_user_v2_get_mine, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_adminUsersV2, GQL_CALL_COST(gql_node_list, NODES_COST, GQL_ROWS_WHOLE) },
    { USER(_id), GQL_GET(gql_node_get_id) },
    { USER(_basicInfo), GQL_SELF },
    { USER(_status), GQL_SELF },
    { USER(_organization), GQL_SELF },
    { USER(_security), GQL_SELF },
    { USER(_container), GQL_SELF },
    { USER(_timestamps), GQL_SELF },
    { USER(BasicInfo_username), AT(TEXT, user.username) },
    { USER(BasicInfo_email), AT(TEXT, user.email) },
    { USER(BasicInfo_fullName), AT(TEXT, user.full_name) },
    { USER(BasicInfo_description), AT(TEXT, user.description) },
    { USER(BasicInfo_integrationName), GQL_ALWAYS_NULL },
    { USER(StatusInfo_status), AT(ENUM, user.status) },
    { USER(StatusInfo_statusInfo), GQL_ALWAYS_NULL },
    { USER(StatusInfo_needPasswordChange), AT(BOOL, user.need_password_change) },
    { USER(OrganizationInfo_domainName), AT(TEXT, user.domain) },
    { USER(OrganizationInfo_role), AT(ENUM, user.role) },
    { USER(OrganizationInfo_resourcePolicy), GQL_FIXED_TEXT("default") },
    { USER(OrganizationInfo_mainAccessKey), GQL_ALWAYS_NULL },
    { USER(SecurityInfo_allowedClientIp), GQL_GET(gql_user_v2_get_networks) },
    { USER(SecurityInfo_totpActivated), GQL_FIXED_BOOL(false) },
    { USER(SecurityInfo_totpActivatedAt), GQL_ALWAYS_NULL },
    { USER(SecurityInfo_sudoSessionEnabled), GQL_FIXED_BOOL(false) },
    { USER(ContainerSettings_containerUid), GQL_ALWAYS_NULL },
    { USER(ContainerSettings_containerMainGid), GQL_ALWAYS_NULL },
    { USER(ContainerSettings_containerGids), GQL_ALWAYS_NULL },
    { SCHEMA_FIELD_EntityTimestamps_createdAt, AT(TIME, created_usec) },
    { SCHEMA_FIELD_EntityTimestamps_modifiedAt, GQL_ALWAYS_NULL },
    NODE_CONNECTION(UserV2),
    { SCHEMA_FIELD_Queries_adminProjectsV2,
      GQL_CALL_COST(gql_project_v2_list, NODES_COST, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_ProjectV2_id, GQL_GET(gql_node_get_id) },
    { SCHEMA_FIELD_ProjectV2_basicInfo, GQL_SELF },
    { SCHEMA_FIELD_Queries_domainProjectsV2,
      GQL_CALL_COST(gql_node_list, NODES_COST, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_ProjectV2_storage, GQL_SELF },
    { SCHEMA_FIELD_ProjectV2StorageInfo_allowedVfolderHosts,
      GQL_GET_COST(gql_project_v2_get_hosts, GQL_COST_MADE) },
    { SCHEMA_FIELD_ProjectV2BasicInfo_name, PROJECT_AT(TEXT, project.name) },
    { SCHEMA_FIELD_ProjectV2BasicInfo_type, GQL_FIXED_TEXT("GENERAL") },
    NODE_CONNECTION(ProjectV2),
};
GQL_ENTRIES_END(user_v2);
