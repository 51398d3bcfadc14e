/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of /aliquot/v1/domains. */
#include "manager/account/account.h"
#include "manager/account/account_feature.h"

static void domain_write_row(const struct api_list *list, const struct store_page *page, size_t i,
                             struct jsonw *w)
{
    const struct domain_row *row = &page->domains[i];

    jsonw_object_begin(w);
    entity_write_json(&domain_entity, &row->domain, FIELD_UNSHOWN, core_slot_types(list->api->core),
                      w);
    jsonw_key(w, "registries");
    account_write_registries(&row->domain, w);
    api_write_time(w, "created_at", row->created_usec);
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

static const struct route domain_routes[] = {
    { METHOD_GET, "/aliquot/v1/domains", API_ADMIN, domain_on_list, account_page_fields,
      "List domains" },
    { METHOD_POST, "/aliquot/v1/domains", API_SUPERADMIN, domain_on_create, domain_create,
      "Make a domain", .answer = { 201 } },
    { METHOD_PATCH, "/aliquot/v1/domains/{key}", API_SUPERADMIN, domain_on_change, domain_change,
      "Change a domain" },
    ACCOUNT_REMOVAL_ROUTES(domain, "/aliquot/v1/domains/{key}", "a domain"),
};
API_ROUTES_END(domain);
