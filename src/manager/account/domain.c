/* SPDX-License-Identifier: Apache-2.0 */
/* Domains: what can be given, and what becomes of it. */
#include "manager/account/account.h"

struct domain_params {
    const char *name, *description;
    enum maybe is_active;
    const json_t *total_slots;
};

/* clang-format off */
#define CHANGES                                                                                    \
    { "description", FIELD_STR, FIELD_NULLABLE | FIELD_LINES, offsetof(struct domain_params, description), 0, 512 },    \
    { "is_active", FIELD_MAYBE, 0, offsetof(struct domain_params, is_active) },                           \
    { "total_slots|total_resource_slots", FIELD_OBJECT, 0, offsetof(struct domain_params, total_slots),   \
      .doc = "missing slots are unlimited" }
/* clang-format on */

const struct field account_domain_create[] = {
    { "name", FIELD_STR, FIELD_REQUIRED | FIELD_LINE, offsetof(struct domain_params, name), 1, 64 },
    CHANGES,
    FIELD_END,
};

const struct field account_domain_change[] = { CHANGES, FIELD_END };

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
    account_slots(row, "total_slots", params->total_slots, old ? &old->total_slots : NULL,
                  &domain->total_slots);
}

static void domain_select_row(struct account_row *row, struct store_query *query)
{
    query->name = account_keep(row, row->event->domain.name);
}

const struct account_kind account_domain = {
    .object = "domain",
    .noun = "domain",
    .purge = PURGE_DOMAIN,
    .event = EVENT_DOMAIN_SAVED,
    .create = account_domain_create,
    .change = account_domain_change,
    .params_size = sizeof(struct domain_params),
    .list = store_list_domains,
    .find = domain_find,
    .find_same = domain_find_same,
    .fill = domain_fill,
    .select = domain_select_row,
};
