/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of /aliquot/v1/domains. */
#include "manager/account/account_rest.h"
#include "manager/call/resources.h"

static void domain_write_row(const struct api_list *list, const struct store_page *page, size_t i,
                             struct jsonw *w)
{
    const struct domain *domain = &page->domains[i].domain;

    jsonw_object_begin(w);
    jsonw_member_str(w, "name", domain->name);
    jsonw_member_str(w, "description", domain->description);
    jsonw_member_bool(w, "is_active", domain->is_active);
    jsonw_key(w, "total_slots");
    slots_write_json(&domain->total_slots, core_slot_types(list->api->core), w);
    jsonw_key(w, "registries");
    account_write_registries(domain, w);
    api_write_time(w, "created_at", page->domains[i].created_usec);
    jsonw_object_end(w);
}

static void domain_narrow(const struct principal *who, struct store_query *query)
{
    query->name = who->domain;
}

static const struct account_resource domain_resource = {
    .kind = &account_domain,
    .write = domain_write_row,
    .narrow = domain_narrow,
};

ACCOUNT_HANDLERS(domain)
ACCOUNT_REMOVAL_HANDLERS(domain)

const struct route domain_routes[] = {
    { METHOD_GET, "/aliquot/v1/domains", API_ADMIN, domain_on_list, account_page_fields,
      "List domains" },
    { METHOD_POST, "/aliquot/v1/domains", API_SUPERADMIN, domain_on_create, account_domain_create,
      "Make a domain", .answer = { 201 } },
    { METHOD_PATCH, "/aliquot/v1/domains/{key}", API_SUPERADMIN, domain_on_change,
      account_domain_change, "Change a domain" },
    ACCOUNT_REMOVAL_ROUTES(domain, "/aliquot/v1/domains/{key}", "a domain"),
};
API_ROUTES_END(domain);
