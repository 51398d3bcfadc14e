/* SPDX-License-Identifier: Apache-2.0 */
/* QuotaScope: what the folders of an owner take, and may take. */
#include <string.h>

#include "manager/call/graphql/resolve.h"
#include "manager/folder/folder_rules.h"
#include "manager/folder/storage_hosts.h"
#include "manager/folder/folder_feature.h"
#include "store/folder.h"

struct quota_scope {
    struct gql_call *call;
    const char *id, *host;
    struct folder_owner owner;
    struct folder_use use;
    struct gql_value limit;
};

static bool quota_scope_is_member(const struct user *user, const struct uuid *project_id)
{
    for (size_t i = 0; user && i < user->project_count; i++)
        if (uuid_equals(&user->project_ids[i], project_id))
            return true;
    return false;
}

/* "user:ID" or "project:ID", of an owner whose folders the caller sees. */
static bool quota_scope_find(struct quota_scope *scope, struct folder_place *place)
{
    const struct gql_context *context = scope->call->context;
    const struct principal *who = context->who;
    const struct core *core = context->api->core;
    struct uuid id;

    *place = (struct folder_place){ .who = who };
    if (strncmp(scope->id, "user:", 5) == 0 && uuid_parse(scope->id + 5, &id) == 0) {
        const struct user *user = core_find_user(core, &id);

        scope->owner.user_id = id;
        place->is_guest = !uuid_equals(&id, &who->user_id);
        return user && (!place->is_guest || principal_sees_domain(who, user->domain));
    }
    if (strncmp(scope->id, "project:", 8) != 0 || uuid_parse(scope->id + 8, &id) < 0)
        return false;
    scope->owner.project_id = id;
    place->project = core_find_project(core, &id);
    return place->project
           && (quota_scope_is_member(core_find_user(core, &who->user_id), &id)
               || principal_sees_domain(who, place->project->domain));
}

static int quota_scope_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct quota_scope *scope = data;

    return folder_read_use(tx, &scope->owner, &scope->use, err);
}

static void quota_scope_on_read(void *data, int r, const struct aq_error *err)
{
    struct quota_scope *scope = data;

    if (r < 0)
        gql_call_fail(scope->call, "%s", err->text);
    else
        scope->call->results[0] = gql_object(scope);
    gql_call_done(scope->call);
}

static int quota_scope_get(struct gql_call *call)
{
    const struct api *api = ((const struct gql_context *)call->context)->api;
    struct quota_scope *scope = arena_alloc(call->arena, sizeof(*scope));
    struct folder_place place;
    int64_t bytes;

    *scope = (struct quota_scope){ .call = call,
                                   .host = gql_arg_text(call, 0),
                                   .id = gql_arg_text(call, 1) };
    if (!quota_scope_find(scope, &place) || !storage_hosts_find(api->folder->hosts, scope->host))
        return GQL_DONE;
    bytes = folder_rules_limits(api, &place).bytes;
    scope->limit = bytes ? gql_int(bytes) : gql_null();
    return gql_read(call, quota_scope_read, quota_scope_on_read, scope);
}

#define AT(how, member) GQL_##how##_AT(struct quota_scope, member)

static const struct gql_entry quota_scope_entries[] = {
    { SCHEMA_FIELD_Queries_quota_scope, GQL_CALL_COST(quota_scope_get, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_QuotaScope_id, AT(TEXT, id) },
    { SCHEMA_FIELD_QuotaScope_quota_scope_id, AT(TEXT, id) },
    { SCHEMA_FIELD_QuotaScope_storage_host_name, AT(TEXT, host) },
    { SCHEMA_FIELD_QuotaScope_details, GQL_SELF },
    { SCHEMA_FIELD_QuotaDetails_usage_bytes, AT(INT64, use.bytes) },
    { SCHEMA_FIELD_QuotaDetails_usage_count, AT(INT64, use.all) },
    { SCHEMA_FIELD_QuotaDetails_hard_limit_bytes, AT(VALUE, limit) },
};
GQL_ENTRIES_END(quota_scope);
