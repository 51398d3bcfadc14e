/* /aliquot/v1/domains */
#include "manager/api/people.h"

struct params {
    const char *name, *description;
    enum maybe is_active;
    const json_t *total_slots;
};

#define CHANGES                                                                                    \
    { "description", FIELD_STR, FIELD_NULLABLE, offsetof(struct params, description), 0, 512 },    \
    { "is_active", FIELD_MAYBE, 0, offsetof(struct params, is_active) },                           \
    { "total_slots|total_resource_slots", FIELD_OBJECT, 0, offsetof(struct params, total_slots),   \
      .doc = "missing slots are unlimited" }

static const struct field create_fields[] = {
    { "name", FIELD_STR, FIELD_REQUIRED, offsetof(struct params, name), 1, 64 },
    CHANGES,
    FIELD_END,
};

static const struct field change_fields[] = { CHANGES, FIELD_END };

static void write_row(const struct api_list *list, const struct store_page *page, size_t i,
                      struct jsonw *w)
{
    const struct domain *domain = &page->domains[i];

    jsonw_object_begin(w);
    jsonw_member_str(w, "name", domain->name);
    jsonw_member_str(w, "description", domain->description);
    jsonw_member_bool(w, "is_active", domain->is_active);
    jsonw_key(w, "total_slots");
    slots_write_json(&domain->total_slots, core_slot_types(list->api->core), w);
    jsonw_object_end(w);
}

static void narrow(const struct principal *who, struct store_query *query)
{
    query->name = who->domain;
}

static const void *find(const struct core *core, const char *key)
{
    return core_find_domain(core, key);
}

static const void *find_same(const struct core *core, const void *params)
{
    return core_find_domain(core, ((const struct params *)params)->name);
}

static void fill(struct people_row *row)
{
    const struct params *params = row->params;
    const struct domain *old = row->old;
    struct domain *domain = &row->event->domain;

    domain->name = people_text(row, params->name, old ? old->name : NULL);
    domain->description = people_text(row, params->description, old ? old->description : NULL);
    domain->is_active = people_bool(params->is_active, old ? old->is_active : true);
    people_slots(row, params->total_slots, old ? &old->total_slots : NULL, &domain->total_slots);
}

static void select_row(struct people_row *row, struct store_query *query)
{
    query->name = people_keep(row, row->event->domain.name);
}

static const struct people_kind kind = {
    .object = "domain",
    .event = EVENT_DOMAIN_SAVED,
    .params_size = sizeof(struct params),
    .list = store_list_domains,
    .write = write_row,
    .narrow = narrow,
    .find = find,
    .find_same = find_same,
    .fill = fill,
    .select = select_row,
};

PEOPLE_HANDLERS(kind)

const struct route domain_routes[] = {
    { METHOD_GET, "/aliquot/v1/domains", API_ADMIN, on_list, people_page_fields, "List domains" },
    { METHOD_POST, "/aliquot/v1/domains", API_SUPERADMIN, on_create, create_fields,
      "Make a domain" },
    { METHOD_PATCH, "/aliquot/v1/domains/{key}", API_SUPERADMIN, on_change, change_fields,
      "Change a domain" },
};
API_ROUTES_END(domain);
