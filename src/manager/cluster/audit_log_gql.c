/* SPDX-License-Identifier: Apache-2.0 */
/* AuditLogV2: who did or tried what with a session or folder. The objects are struct audit_row. */
#include "store/audit_log.h"

#include <errno.h>
#include <string.h>

#include "manager/call/graphql/node.h"
#include "manager/cluster/cluster_feature.h"

/* {entity: [{entityId}]}: one. */
static int gql_audit_read_scope(struct gql_fetch *fetch, struct aq_error *err)
{
    struct gql_value entities = gql_arg_member(fetch->call, "scope", "entity");
    const struct gql_type *scope = gql_type_find(&schema_schema, "AuditLogScope", 13);
    const struct gql_type *type =
        gql_input_find(scope->inputs, scope->input_count, "entity", 6)->type.type;
    const struct gql_input_def *id = gql_input_find(type->inputs, type->input_count, "entityId", 8);

    if (entities.count != 1)
        return aq_fail(err, EINVAL, "scope: one entity must be given");
    fetch->query.object = entities.items[0].items[id - type->inputs].text;
    return 0;
}

/* People see what they did themselves, administrators what is of their domain. */
static int gql_audit_narrow(struct gql_fetch *fetch, const char *id, struct aq_error *err)
{
    const struct gql_context *context = fetch->call->context;
    const struct principal *who = context->who;
    const struct user *user = core_find_user(context->api->core, &who->user_id);

    (void)id; /* nobody asks for one */
    if (!principal_may(who->role, API_ADMIN))
        fetch->query.name = arena_strdup(fetch->call->arena, user ? user->email : "");
    else if (!principal_is_superadmin(who))
        fetch->query.domain = who->domain;
    return gql_audit_read_scope(fetch, err);
}

static const char *gql_audit_id_of(const void *row, char scratch[64])
{
    (void)snprintf(scratch, 64, "%lld", (long long)((const struct audit_row *)row)->seq);
    return scratch;
}

static const struct newer_word gql_audit_words[] = {
    { "operation", "action" }, { "OPERATION", "action" },        { "createdAt", "at" },
    { "CREATED_AT", "at" },    { "ENTITY_TYPE", "object_kind" }, { "triggeredBy", "user" },
    { "STATUS", "outcome" },
};

const struct gql_node audit_node = {
    .type = SCHEMA_TYPE_AuditLogV2,
    .id_of = gql_audit_id_of,
    .list = store_list_audit_log,
    .row_size = sizeof(struct audit_row),
    .narrow = gql_audit_narrow,
    .newer_words = gql_audit_words,
    .newer_word_count = AQ_COUNT(gql_audit_words),
};

static struct gql_value gql_audit_get_status(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_enum(strcmp(((const struct audit_row *)parent)->entry.outcome, "ok") != 0);
}

static const struct uuid *gql_audit_user_of(const void *parent)
{
    return &((const struct audit_row *)parent)->entry.user_id;
}

static int gql_audit_user(struct gql_call *call)
{
    return gql_node_load(call, gql_node_find(SCHEMA_TYPE_UserV2), gql_audit_user_of);
}

#define FIELD(name) SCHEMA_FIELD_AuditLogV2_##name
#define AT(how, member) GQL_##how##_AT(struct audit_row, entry.member)

static const struct gql_entry audit_entries[] = {
    { SCHEMA_FIELD_Queries_scopedAuditLogsV2,
      GQL_CALL_COST(gql_node_list, NODES_COST, GQL_ROWS_WHOLE) },
    { FIELD(id), GQL_GET(gql_node_get_id) },
    { FIELD(actionId), GQL_ALWAYS_NULL },
    { FIELD(entityType), AT(TEXT, object_kind) },
    { FIELD(entityId), AT(TEXT, object_id) },
    { FIELD(operation), AT(TEXT, action) },
    { FIELD(createdAt), AT(TIME, at_usec) },
    { FIELD(requestId), AT(TEXT, request_id) },
    { FIELD(triggeredBy), AT(UUID, user_id) },
    { FIELD(description), AT(TEXT, object_name) },
    { FIELD(duration), GQL_ALWAYS_NULL },
    { FIELD(status), GQL_GET(gql_audit_get_status) },
    { FIELD(clientIp), AT(TEXT, address) },
    { FIELD(user), GQL_CALL_COST(gql_audit_user, GQL_COST_READ / 10, 1) },
    NODE_CONNECTION(AuditLogV2),
};
GQL_ENTRIES_END(audit);
