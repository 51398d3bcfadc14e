/* SPDX-License-Identifier: Apache-2.0 */
/* /aliquot/v1/resource-groups: agents that are scheduled together, and how */
#include "base/clock.h"
#include "manager/account/account.h"
#include "manager/scheduling/scheduling_feature.h"
#include "sched/admit.h"

static void resource_group_write_scheduling(const struct core *core,
                                            const struct resource_group *group, struct jsonw *w)
{
    struct core_scheduling scheduling;

    core_read_scheduling(group, &scheduling);
    core_default_scheduling(core, &scheduling);
    jsonw_member_int(w, "retries", scheduling.options.retries_to_skip);
    jsonw_member_bool(w, "backfill", scheduling.options.backfill);
    jsonw_member_int(w, "backfill_reservations", scheduling.options.reservations_max);
    jsonw_member_int(w, "backfill_max_wait_sec", scheduling.options.max_wait_usec / USEC_PER_SEC);
    jsonw_member_bool(w, RESOURCE_OPTS_SPLITTING, scheduling.splitting == SPLITTING_ALLOWED);
    jsonw_key(w, "allowed_session_types");
    jsonw_array_begin(w);
    for (int type = SESSION_INTERACTIVE; type <= SESSION_SYSTEM; type++)
        if (scheduling.session_types >> type & 1)
            jsonw_str(w, session_type_name(type));
    jsonw_array_end(w);
    jsonw_key(w, "networks");
    jsonw_array_begin(w);
    if (scheduling.networks & ADMIT_NETWORK_PRIVATE)
        jsonw_str(w, SESSION_NETWORK_PRIVATE);
    if (scheduling.networks & ADMIT_NETWORK_HOST)
        jsonw_str(w, SESSION_NETWORK_HOST);
    jsonw_array_end(w);
    jsonw_member_int(w, "pending_timeout_sec", scheduling.pending_timeout_usec / USEC_PER_SEC);
    jsonw_key(w, "preemption");
    core_write_preemption(&scheduling, w);
    jsonw_key(w, "handler_options");
    core_write_handler_options(&scheduling, w);
}

static void resource_group_write_row(const struct api_list *list, const struct store_page *page,
                                     size_t i, struct jsonw *w)
{
    const struct resource_group *group = &page->resource_groups[i].resource_group;

    jsonw_object_begin(w);
    entity_write_json(&resource_group_entity, group, FIELD_UNSHOWN, NULL, w);
    jsonw_key(w, "without_effect");
    account_write_unused_options(group, w);
    jsonw_member_str(w, "selection", group->selection);
    resource_group_write_scheduling(list->api->core, group, w);
    jsonw_member_str(w, "agent_loss_policy", group->agent_loss_policy);
    jsonw_member_int(w, "agent_loss_grace_sec", group->agent_loss_grace_usec / USEC_PER_SEC);
    api_write_time(w, "created_at", page->resource_groups[i].created_usec);
    jsonw_object_end(w);
}

static const struct account_resource resource_group_resource = {
    .kind = &account_resource_group,
    .write = resource_group_write_row,
    .narrow = account_narrow_nothing,
};

ACCOUNT_HANDLERS(resource_group)
ACCOUNT_REMOVAL_HANDLERS(resource_group)

/* ---- who may use it ---- */

struct allow_params {
    const char *domain, *group, *access_key;
};

static const struct field allow_fields[] = {
    { "domain", FIELD_STR, 0, offsetof(struct allow_params, domain), 1, 64 },
    { "group", FIELD_STR, 0, offsetof(struct allow_params, group), 1, 64, .doc = "id" },
    { "access_key", FIELD_STR, 0, offsetof(struct allow_params, access_key), 1, 64 },
    FIELD_END,
};

static void resource_group_change_access(struct api *api, struct request *req, bool is_allowed)
{
    const char *name = request_get_param(req, "key");
    struct allow_params params = { 0 };
    struct core_access_change change;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) == 0
        && !params.domain + !params.group + !params.access_key != 2)
        api_fail_param(&err, "body", "give one of domain, group and access_key");
    change = (struct core_access_change){ .resource_groups = &name,
                                          .count = 1,
                                          .domain = params.domain,
                                          .project_id = params.group,
                                          .access_key = params.access_key,
                                          .is_allowed = is_allowed };
    if (err.code || account_check_access(api, request_get_arena(req), &change, &err) < 0)
        request_fail(req, &err);
    else
        core_change_access(api->core, &change, api_who(api, req), api_reply_done, req);
}

static void resource_group_on_allow(struct request *req, void *data)
{
    resource_group_change_access(data, req, true);
}

static void resource_group_on_disallow(struct request *req, void *data)
{
    resource_group_change_access(data, req, false);
}

static const struct route resource_group_routes[] = {
    { METHOD_GET, "/aliquot/v1/resource-groups", API_ADMIN, resource_group_on_list,
      account_page_fields, "List resource groups" },
    { METHOD_POST, "/aliquot/v1/resource-groups", API_SUPERADMIN, resource_group_on_create,
      resource_group_create, "Make a resource group", .answer = { 201 } },
    { METHOD_PATCH, "/aliquot/v1/resource-groups/{key}", API_SUPERADMIN, resource_group_on_change,
      resource_group_change, "Change a resource group" },
    { METHOD_POST, "/aliquot/v1/resource-groups/{key}/allow", API_SUPERADMIN,
      resource_group_on_allow, allow_fields,
      "Let a domain, project or keypair use a resource group", .answer = { 204 } },
    { METHOD_POST, "/aliquot/v1/resource-groups/{key}/disallow", API_SUPERADMIN,
      resource_group_on_disallow, allow_fields,
      "Let a domain, project or keypair use a resource group no longer", .answer = { 204 } },
    ACCOUNT_REMOVAL_ROUTES(resource_group, "/aliquot/v1/resource-groups/{key}", "a resource group"),
};
API_ROUTES_END(resource_group);
