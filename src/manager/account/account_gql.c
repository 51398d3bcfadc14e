/* SPDX-License-Identifier: Apache-2.0 */
/* Domains, projects, keypair policies and resource groups. The objects are
 * rows of store/query.h, which begin with the structs of model/accounts.h.
 */
#include <errno.h>
#include <string.h>

#include "manager/folder/folder.h"
#include "manager/call/graphql/node.h"
#include "manager/account/account_feature.h"
#include "manager/account/group_options_gql.h"

static int gql_accounts_start_or_fail(struct gql_fetch *fetch, int r, const struct aq_error *err)
{
    return r < 0 ? gql_fetch_fail(fetch, err) : gql_fetch_start(fetch);
}

/* ---- domains: everyone may know the own one ---- */

static int gql_accounts_narrow_domain(struct gql_fetch *fetch, const char *name,
                                      struct aq_error *err)
{
    const struct principal *who = ((const struct gql_context *)fetch->call->context)->who;

    (void)err;
    if (!principal_is_superadmin(who)) {
        fetch->nothing = !who->domain || (name && strcmp(name, who->domain) != 0);
        name = who->domain;
    }
    fetch->query.name = name;
    return 0;
}

static const char *gql_accounts_domain_id_of(const void *row, char scratch[64])
{
    (void)scratch;
    return ((const struct domain_row *)row)->domain.name;
}

const struct gql_node domain_node = {
    .type = SCHEMA_TYPE_DomainNode,
    .id_of = gql_accounts_domain_id_of,
    .list = store_list_domains,
    .row_size = sizeof(struct domain_row),
    .narrow = gql_accounts_narrow_domain,
    .permissions = &domain_permissions,
};

static int gql_accounts_fetch_domains(struct gql_call *call, enum gql_shape shape, const char *name,
                                      int is_active)
{
    struct gql_fetch *fetch = gql_fetch_new(call, shape, store_list_domains,
                                            sizeof(struct domain_row));

    (void)gql_accounts_narrow_domain(fetch, name, NULL);
    fetch->query.is_active = is_active;
    return gql_fetch_start(fetch);
}

static int gql_accounts_get_domain(struct gql_call *call)
{
    const char *name = gql_arg_text(call, SCHEMA_ARG_Queries_domain_name);

    if (!name)
        name = ((const struct gql_context *)call->context)->who->domain;
    return gql_accounts_fetch_domains(call, GQL_ONE, name, 0);
}

static int gql_accounts_list_domains(struct gql_call *call)
{
    return gql_accounts_fetch_domains(call, GQL_MANY, NULL,
                                      gql_arg_active(call, SCHEMA_ARG_Queries_domains_is_active));
}

/* ---- projects: users see those they are in ---- */

/* To those the caller may see, and to those of a domain unless it is NULL. */
static void gql_accounts_narrow_projects(struct gql_fetch *fetch, const char *domain)
{
    const struct principal *who = ((const struct gql_context *)fetch->call->context)->who;

    fetch->query.domain = domain;
    if (!principal_may(who->role, API_ADMIN))
        fetch->query.user_id = &who->user_id;
    else if (!principal_is_superadmin(who) && (!domain || strcmp(domain, who->domain) == 0))
        fetch->query.domain = who->domain;
    else if (!principal_is_superadmin(who))
        fetch->nothing = true;
}

static int gql_accounts_narrow_project(struct gql_fetch *fetch, const char *id,
                                       struct aq_error *err)
{
    gql_accounts_narrow_projects(fetch, NULL);
    return gql_node_set_id(fetch, id, err);
}

static const char *gql_accounts_project_id_of(const void *row, char scratch[64])
{
    return uuid_format(&((const struct project_row *)row)->project.id, scratch);
}

const struct gql_node group_node = {
    .type = SCHEMA_TYPE_GroupNode,
    .id_of = gql_accounts_project_id_of,
    .list = store_list_projects,
    .row_size = sizeof(struct project_row),
    .narrow = gql_accounts_narrow_project,
    .permissions = &group_permissions,
};

static int gql_accounts_fetch_projects(struct gql_call *call, enum gql_shape shape, const char *id,
                                       const char *name, const char *domain, int is_active)
{
    struct gql_fetch *fetch = gql_fetch_new(call, shape, store_list_projects,
                                            sizeof(struct project_row));
    struct aq_error err = { 0 };

    gql_accounts_narrow_projects(fetch, domain);
    if (gql_node_set_id(fetch, id, &err) < 0)
        return gql_fetch_fail(fetch, &err);
    fetch->query.name = name;
    fetch->query.is_active = is_active;
    return gql_fetch_start(fetch);
}

static int gql_accounts_get_project(struct gql_call *call)
{
    return gql_accounts_fetch_projects(call, GQL_ONE,
                                       gql_arg_text(call, SCHEMA_ARG_Queries_group_id), NULL,
                                       gql_arg_text(call, SCHEMA_ARG_Queries_group_domain_name), 0);
}

static int gql_accounts_list_projects_by_name(struct gql_call *call)
{
    return gql_accounts_fetch_projects(
        call, GQL_MANY, NULL, gql_arg_text(call, SCHEMA_ARG_Queries_groups_by_name_name),
        gql_arg_text(call, SCHEMA_ARG_Queries_groups_by_name_domain_name), 0);
}

static int gql_accounts_list_projects(struct gql_call *call)
{
    return gql_accounts_fetch_projects(call, GQL_MANY, NULL, NULL,
                                       gql_arg_text(call, SCHEMA_ARG_Queries_groups_domain_name),
                                       gql_arg_active(call, SCHEMA_ARG_Queries_groups_is_active));
}

/* ---- keypair policies ---- */

static int gql_accounts_fetch_policies(struct gql_call *call, enum gql_shape shape,
                                       const char *name)
{
    struct gql_fetch *fetch = gql_fetch_new(call, shape, store_list_policies,
                                            sizeof(struct policy_row));

    fetch->query.name = name;
    fetch->query.is_active = name ? 0 : 1;
    return gql_fetch_start(fetch);
}

/* Without a name the one of the caller's key. */
static int gql_accounts_get_policy(struct gql_call *call)
{
    const struct gql_context *context = call->context;
    const char *name = gql_arg_text(call, SCHEMA_ARG_Queries_keypair_resource_policy_name);
    const struct keypair *key = core_find_keypair(context->api->core, context->who->access_key);

    if (!name && key)
        name = arena_strdup(call->arena, key->policy ? key->policy : "");
    return gql_accounts_fetch_policies(call, GQL_ONE, name ? name : "");
}

static int gql_accounts_list_policies(struct gql_call *call)
{
    return gql_accounts_fetch_policies(call, GQL_MANY, NULL);
}

static struct gql_value gql_accounts_get_unspecified(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_text(((const struct keypair_policy *)parent)->unlimited_unspecified ? "UNLIMITED"
                                                                                   : "LIMITED");
}

/* ---- resource groups, for administrators ---- */

static const char *gql_accounts_group_id_of(const void *row, char scratch[64])
{
    (void)scratch;
    return ((const struct resource_group_row *)row)->resource_group.name;
}

static int gql_accounts_narrow_group(struct gql_fetch *fetch, const char *name,
                                     struct aq_error *err)
{
    fetch->query.name = name;
    return gql_need(fetch->call->context, API_ADMIN, err);
}

const struct gql_node resource_group_node = {
    .type = SCHEMA_TYPE_ScalingGroupNode,
    .id_of = gql_accounts_group_id_of,
    .list = store_list_resource_groups,
    .row_size = sizeof(struct resource_group_row),
    .narrow = gql_accounts_narrow_group,
    .is_unowned = true,
};

static int gql_accounts_fetch_resource_groups(struct gql_call *call, enum gql_shape shape,
                                              const char *name, int is_active)
{
    struct gql_fetch *fetch = gql_fetch_new(call, shape, store_list_resource_groups,
                                            sizeof(struct resource_group_row));
    struct aq_error err = { 0 };

    fetch->query.name = name;
    fetch->query.is_active = is_active;
    return gql_accounts_start_or_fail(fetch, gql_need(call->context, API_ADMIN, &err), &err);
}

static int gql_accounts_get_resource_group(struct gql_call *call)
{
    const char *name = gql_arg_text(call, SCHEMA_ARG_Queries_scaling_group_name);

    return gql_accounts_fetch_resource_groups(call, GQL_ONE, name ? name : "", 0);
}

static int gql_accounts_list_resource_groups(struct gql_call *call)
{
    return gql_accounts_fetch_resource_groups(
        call, GQL_MANY, gql_arg_text(call, SCHEMA_ARG_Queries_scaling_groups_name),
        gql_arg_active(call, SCHEMA_ARG_Queries_scaling_groups_is_active));
}

/* The agents of a group, in the status of the field's argument: how many, and of what, unless the
 * sums are NULL. Administrators alone know.
 */
static int gql_accounts_sum_agents(const struct gql_get *get, const struct resource_group *group,
                                   int64_t *ret_count, struct slots *available,
                                   struct slots *occupied, struct aq_error *err)
{
    const struct core *core = ((const struct gql_context *)get->context)->api->core;
    const char *text = gql_is_given(get->args[0]) ? get->args[0].text : "ALIVE";
    enum agent_status status;
    const struct agent *agent;
    int r = gql_need(get->context, API_ADMIN, err);

    *ret_count = 0;
    if (r < 0)
        return r;
    if (agent_status_parse(text, &status) < 0)
        return aq_fail(err, EINVAL, "status: '%.40s' is no agent status", text);
    for (size_t i = 0; r == 0 && (agent = core_get_agent(core, i)); i++) {
        AQ_CLEANUP(slots_donep) struct slots held = { 0 };

        if (agent->status != status || strcmp(agent->resource_group, group->name) != 0)
            continue;
        ++*ret_count;
        if (available
            && ((r = core_get_occupied(core, agent->id, &held)) < 0
                || (r = slots_add(available, &agent->available)) < 0
                || (r = slots_add(occupied, &held)) < 0))
            return aq_fail(err, EOVERFLOW, "the slots of these agents exceed 64 bits");
    }
    return r;
}

static struct gql_value gql_accounts_get_agent_count(struct gql_get *get, const void *parent)
{
    struct aq_error err = { 0 };
    int64_t count;

    if (gql_accounts_sum_agents(get, parent, &count, NULL, NULL, &err) < 0)
        return gql_error(get->arena, "%s", err.text);
    return gql_int(count);
}

static struct gql_value gql_accounts_get_agent_slots(struct gql_get *get, const void *parent)
{
    const struct slot_types *types = ((const struct gql_context *)get->context)->types;
    AQ_CLEANUP(slots_donep) struct slots available = { 0 }, occupied = { 0 };
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    struct aq_error err = { 0 };
    int64_t count;

    if (gql_accounts_sum_agents(get, parent, &count, &available, &occupied, &err) < 0)
        return gql_error(get->arena, "%s", err.text);
    jsonw_object_begin(&w);
    jsonw_key(&w, "available_slots");
    slots_write_json(&available, types, &w);
    jsonw_key(&w, "occupied_slots");
    slots_write_json(&occupied, types, &w);
    jsonw_object_end(&w);
    return gql_copy(get, text.data);
}

static int gql_accounts_read_allowed(struct store_tx *tx, const struct store_query *q,
                                     struct store_page **ret, struct aq_error *err)
{
    return store_list_allowed_resource_groups(tx, q->domain, q->project_id, q->access_key, ret,
                                              err);
}

/* 'domain' is whose the one is that is asked about; NULL: there is none of this name. */
static int gql_accounts_fetch_allowed(struct gql_call *call, const char *domain,
                                      const struct store_query *whom)
{
    const struct gql_context *context = call->context;
    struct gql_fetch *fetch = gql_fetch_new(call, GQL_MANY, gql_accounts_read_allowed,
                                            sizeof(struct resource_group_row));
    struct aq_error err = { 0 };

    fetch->query = *whom;
    fetch->nothing = !domain || !principal_sees_domain(context->who, domain)
                     || gql_arg_active(call, 1) < 0;
    return gql_accounts_start_or_fail(fetch, gql_need(context, API_ADMIN, &err), &err);
}

static int gql_accounts_list_of_domain(struct gql_call *call)
{
    const char *name = gql_arg_text(call, 0);

    return gql_accounts_fetch_allowed(call, name, &(struct store_query){ .domain = name });
}

static int gql_accounts_list_of_project(struct gql_call *call)
{
    const struct core *core = ((const struct gql_context *)call->context)->api->core;
    struct uuid *id = arena_alloc(call->arena, sizeof(*id));
    const struct project *project;

    if (uuid_parse(gql_arg_text(call, 0), id) < 0)
        return gql_call_fail(call, "user_group: '%.64s' is not a UUID", gql_arg_text(call, 0));
    project = core_find_project(core, id);
    return gql_accounts_fetch_allowed(call, project ? project->domain : NULL,
                                      &(struct store_query){ .project_id = id });
}

static int gql_accounts_list_of_keypair(struct gql_call *call)
{
    const struct core *core = ((const struct gql_context *)call->context)->api->core;
    const char *access_key = gql_arg_text(call, 0);
    const struct keypair *key = core_find_keypair(core, access_key);
    const struct user *user = key ? core_find_user(core, &key->user_id) : NULL;

    return gql_accounts_fetch_allowed(call, user ? user->domain : NULL,
                                      &(struct store_query){ .access_key = access_key });
}

static int gql_accounts_list_accessible(struct gql_call *call)
{
    const struct gql_context *context = call->context;
    struct gql_fetch *fetch = gql_fetch_new(call, GQL_MANY, gql_accounts_read_allowed,
                                            sizeof(struct resource_group_row));
    struct uuid *id = arena_alloc(call->arena, sizeof(*id));
    const struct project *project;
    struct aq_error err = { 0 };

    if (api_find_project(context->api, context->req, gql_arg_text(call, 0), &project, &err) < 0)
        return gql_fetch_fail(fetch, &err);
    *id = project->id;
    fetch->query.domain = context->who->domain;
    fetch->query.project_id = id;
    fetch->query.access_key = context->who->access_key;
    return gql_fetch_start(fetch);
}

/* ---- folders ---- */

static struct gql_value gql_accounts_get_domain_hosts(struct gql_get *get, const void *parent)
{
    return folder_rule_get_hosts(get, FOLDER_RULES_DOMAIN, ((const struct domain *)parent)->name);
}

static struct gql_value gql_accounts_get_project_hosts(struct gql_get *get, const void *parent)
{
    char id[UUID_TEXT_MAX];

    return folder_rule_get_hosts(get, FOLDER_RULES_PROJECT,
                                 uuid_format(&((const struct project *)parent)->id, id));
}

static struct gql_value gql_accounts_get_policy_hosts(struct gql_get *get, const void *parent)
{
    return folder_rule_get_hosts(get, FOLDER_RULES_POLICY,
                                 ((const struct keypair_policy *)parent)->name);
}

static struct gql_value gql_accounts_get_folder_count(struct gql_get *get, const void *parent)
{
    const char *policy = ((const struct keypair_policy *)parent)->name;

    return gql_int_clamped(folder_rule_get_limit(get, policy, "max_vfolder_count").integer);
}

static struct gql_value gql_accounts_get_folder_size(struct gql_get *get, const void *parent)
{
    return folder_rule_get_limit(get, ((const struct keypair_policy *)parent)->name,
                                 "max_vfolder_size");
}

#define DOMAIN(name) SCHEMA_FIELD_Domain_##name
#define GROUP(name) SCHEMA_FIELD_Group_##name
#define POLICY(name) SCHEMA_FIELD_KeyPairResourcePolicy_##name
#define RESOURCE_GROUP(name) SCHEMA_FIELD_ScalingGroup_##name

static const struct gql_entry accounts_entries[] = {
    { SCHEMA_FIELD_Queries_domain, GQL_CALL_COST(gql_accounts_get_domain, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_domains,
      GQL_CALL_COST(gql_accounts_list_domains, GQL_COST_READ, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_Queries_group, GQL_CALL_COST(gql_accounts_get_project, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_groups_by_name,
      GQL_CALL_COST(gql_accounts_list_projects_by_name, GQL_COST_READ, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_Queries_groups,
      GQL_CALL_COST(gql_accounts_list_projects, GQL_COST_READ, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_Queries_keypair_resource_policy,
      GQL_CALL_COST(gql_accounts_get_policy, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_keypair_resource_policies,
      GQL_CALL_COST(gql_accounts_list_policies, GQL_COST_READ, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_Queries_scaling_group,
      GQL_CALL_COST(gql_accounts_get_resource_group, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_scaling_groups,
      GQL_CALL_COST(gql_accounts_list_resource_groups, GQL_COST_READ, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_Queries_scaling_groups_for_domain,
      GQL_CALL_COST(gql_accounts_list_of_domain, GQL_COST_READ, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_Queries_scaling_groups_for_user_group,
      GQL_CALL_COST(gql_accounts_list_of_project, GQL_COST_READ, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_Queries_scaling_groups_for_keypair,
      GQL_CALL_COST(gql_accounts_list_of_keypair, GQL_COST_READ, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_Queries_accessible_scaling_groups,
      GQL_CALL_COST(gql_accounts_list_accessible, GQL_COST_READ, GQL_ROWS_WHOLE) },
    { DOMAIN(created_at), GQL_TIME_AT(struct domain_row, created_usec) },
    { DOMAIN(modified_at), GQL_ALWAYS_NULL },
    { DOMAIN(allowed_vfolder_hosts), GQL_GET(gql_accounts_get_domain_hosts) },
    { DOMAIN(integration_id), GQL_ALWAYS_NULL },
    { DOMAIN(scaling_groups), GQL_FIXED_EMPTY },
    { SCHEMA_FIELD_GroupNode_row_id, GQL_UUID_AT(struct project, id) },
    { GROUP(created_at), GQL_TIME_AT(struct project_row, created_usec) },
    { GROUP(modified_at), GQL_ALWAYS_NULL },
    { GROUP(allowed_vfolder_hosts), GQL_GET(gql_accounts_get_project_hosts) },
    { GROUP(integration_id), GQL_ALWAYS_NULL },
    { SCHEMA_FIELD_GroupNode_container_registry, GQL_ALWAYS_NULL },
    { GROUP(resource_policy), GQL_FIXED_TEXT("default") },
    { GROUP(type), GQL_FIXED_TEXT("GENERAL") },
    { GROUP(scaling_groups), GQL_FIXED_EMPTY },
    { POLICY(created_at), GQL_TIME_AT(struct policy_row, created_usec) },
    { POLICY(default_for_unspecified), GQL_GET(gql_accounts_get_unspecified) },
    { POLICY(max_vfolder_count), GQL_GET(gql_accounts_get_folder_count) },
    { POLICY(max_vfolder_size), GQL_GET(gql_accounts_get_folder_size) },
    { POLICY(allowed_vfolder_hosts), GQL_GET(gql_accounts_get_policy_hosts) },
    { POLICY(max_quota_scope_size), GQL_FIXED_INT(0) },
    { RESOURCE_GROUP(created_at), GQL_TIME_AT(struct resource_group_row, created_usec) },
    { RESOURCE_GROUP(is_public), GQL_FIXED_BOOL(true) },
    { RESOURCE_GROUP(wsproxy_addr), GQL_ALWAYS_NULL },
    { RESOURCE_GROUP(wsproxy_api_token), GQL_ALWAYS_NULL },
    { RESOURCE_GROUP(driver), GQL_FIXED_TEXT("static") },
    { RESOURCE_GROUP(scheduler_opts), GQL_GET(gql_group_options_get) },
    { RESOURCE_GROUP(use_host_network), GQL_FIXED_BOOL(false) },
    { RESOURCE_GROUP(agent_count_by_status),
      GQL_GET_COST(gql_accounts_get_agent_count, GQL_COST_READ) },
    { RESOURCE_GROUP(agent_total_resource_slots_by_status),
      GQL_GET_COST(gql_accounts_get_agent_slots, GQL_COST_READ) },
    { RESOURCE_GROUP(resource_allocation_limit_for_sessions), GQL_FIXED_TEXT("{}") },
    { RESOURCE_GROUP(accelerator_quantum_size), GQL_ALWAYS_NULL },
};
GQL_ENTRIES_END(accounts);
