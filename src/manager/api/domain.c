/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers and fields of /aliquot/v1/domains. */
/* /aliquot/v1/domains */
#include "manager/api/accounts.h"
#include "manager/api/resources.h"

struct domain_params {
    const char *name, *description;
    enum maybe is_active;
    const json_t *total_slots;
};

/* clang-format off */
#define CHANGES                                                                                    \
    { "description", FIELD_STR, FIELD_NULLABLE, offsetof(struct domain_params, description), 0, 512 },    \
    { "is_active", FIELD_MAYBE, 0, offsetof(struct domain_params, is_active) },                           \
    { "total_slots|total_resource_slots", FIELD_OBJECT, 0, offsetof(struct domain_params, total_slots),   \
      .doc = "missing slots are unlimited" }
/* clang-format on */

static const struct field create_fields[] = {
    { "name", FIELD_STR, FIELD_REQUIRED, offsetof(struct domain_params, name), 1, 64 },
    CHANGES,
    FIELD_END,
};

static const struct field change_fields[] = { CHANGES, FIELD_END };

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
    api_write_time(w, "created_at", page->domains[i].created_usec);
    jsonw_object_end(w);
}

static void domain_narrow(const struct principal *who, struct store_query *query)
{
    query->name = who->domain;
}

static const void *domain_find(const struct core *core, const char *key)
{
    return core_find_domain(core, key);
}

static const void *domain_find_same(const struct core *core, const void *params)
{
    return core_find_domain(core, ((const struct domain_params *)params)->name);
}

static void domain_fill(struct account_row *row)
{
    const struct domain_params *params = row->params;
    const struct domain *old = row->old;
    struct domain *domain = &row->event->domain;

    domain->name = account_text(row, params->name, old ? old->name : NULL);
    domain->description = account_text(row, params->description, old ? old->description : NULL);
    domain->is_active = account_bool(params->is_active, old ? old->is_active : true);
    account_slots(row, params->total_slots, old ? &old->total_slots : NULL, &domain->total_slots);
}

static void domain_select_row(struct account_row *row, struct store_query *query)
{
    query->name = account_keep(row, row->event->domain.name);
}

static const struct account_kind domain_kind = {
    .object = "domain",
    .noun = "domain",
    .purge = PURGE_DOMAIN,
    .event = EVENT_DOMAIN_SAVED,
    .params_size = sizeof(struct domain_params),
    .list = store_list_domains,
    .write = domain_write_row,
    .narrow = domain_narrow,
    .find = domain_find,
    .find_same = domain_find_same,
    .fill = domain_fill,
    .select = domain_select_row,
};

ACCOUNT_HANDLERS(domain)
ACCOUNT_REMOVAL_HANDLERS(domain)

const struct route domain_routes[] = {
    { METHOD_GET, "/aliquot/v1/domains", API_ADMIN, domain_on_list, account_page_fields,
      "List domains" },
    { METHOD_POST, "/aliquot/v1/domains", API_SUPERADMIN, domain_on_create, create_fields,
      "Make a domain" },
    { METHOD_PATCH, "/aliquot/v1/domains/{key}", API_SUPERADMIN, domain_on_change, change_fields,
      "Change a domain" },
    ACCOUNT_REMOVAL_ROUTES(domain, "/aliquot/v1/domains/{key}", "a domain"),
};
API_ROUTES_END(domain);
