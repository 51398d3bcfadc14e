/* SPDX-License-Identifier: Apache-2.0 */
/* /aliquot/v1/keypair-policies: what one key may use */
#include "manager/account/account_rest.h"
#include "manager/call/resources.h"

static void policy_write_row(const struct api_list *list, const struct store_page *page, size_t i,
                             struct jsonw *w)
{
    const struct keypair_policy *policy = &page->policies[i].policy;

    jsonw_object_begin(w);
    jsonw_member_str(w, "name", policy->name);
    jsonw_member_bool(w, "is_active", policy->is_active);
    jsonw_member_bool(w, "unlimited_unspecified", policy->unlimited_unspecified);
    jsonw_key(w, "total_slots");
    slots_write_json(&policy->total_slots, core_slot_types(list->api->core), w);
    jsonw_member_int(w, "max_session_lifetime_sec", policy->max_session_lifetime_sec);
    jsonw_member_int(w, "idle_timeout_sec", policy->idle_timeout_sec);
    jsonw_member_int(w, "max_concurrent_sessions", policy->max_concurrent_sessions);
    jsonw_member_int(w, "max_concurrent_sftp_sessions", policy->max_concurrent_sftp_sessions);
    jsonw_member_int(w, "max_containers_per_session", policy->max_containers_per_session);
    jsonw_member_int(w, "max_pending_sessions", policy->max_pending_sessions);
    jsonw_key(w, "max_pending_slots");
    slots_write_json(&policy->max_pending_slots, core_slot_types(list->api->core), w);
    jsonw_member_int(w, "max_priority", policy->max_priority);
    api_write_time(w, "created_at", page->policies[i].created_usec);
    jsonw_object_end(w);
}

static const struct account_resource policy_resource = {
    .kind = &account_policy,
    .write = policy_write_row,
    .narrow = account_narrow_nothing,
};

ACCOUNT_HANDLERS(policy)
ACCOUNT_REMOVAL_HANDLERS(policy)

const struct route policy_routes[] = {
    { METHOD_GET, "/aliquot/v1/keypair-policies", API_ADMIN, policy_on_list, account_page_fields,
      "List keypair policies" },
    { METHOD_POST, "/aliquot/v1/keypair-policies", API_SUPERADMIN, policy_on_create,
      account_policy_create, "Make a keypair policy", .answer = { 201 } },
    { METHOD_PATCH, "/aliquot/v1/keypair-policies/{key}", API_SUPERADMIN, policy_on_change,
      account_policy_change, "Change a keypair policy" },
    ACCOUNT_REMOVAL_ROUTES(policy, "/aliquot/v1/keypair-policies/{key}", "a keypair policy"),
};
API_ROUTES_END(policy);
