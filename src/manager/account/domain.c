/* SPDX-License-Identifier: Apache-2.0 */
/* Domains as accounts. */
#include <errno.h>
#include <string.h>

#include "manager/account/account.h"
#include "manager/cluster/cluster.h"
#include "manager/account/account_feature.h"

#define REGISTRIES_MAX 100

static const void *domain_find(const struct core *core, const char *key)
{
    return core_find_domain(core, key);
}

static const void *domain_find_same(const struct core *core, const void *params)
{
    return core_find_domain(core, ((const struct domain *)params)->name);
}

void account_write_registries(const struct domain *domain, struct jsonw *w)
{
    const char *at = domain->registries ? domain->registries : "";

    jsonw_array_begin(w);
    for (size_t len; (len = strcspn(at, " ")) > 0; at += len + (at[len] == ' '))
        jsonw_strn(w, at, len);
    jsonw_array_end(w);
}

/* The list as the row has it; NULL = all. */
static char *domain_read_registries(struct account_row *row, const json_t *list)
{
    struct strbuf text = STRBUF_INIT;
    const json_t *item;
    size_t i;

    if (!json_is_array(list) || json_array_size(list) > REGISTRIES_MAX) {
        api_fail_param(&row->err, "registries", "must be a list of up to %d registries",
                       REGISTRIES_MAX);
        return NULL;
    }
    if (json_array_size(list) == 1 && json_is_string(json_array_get(list, 0))
        && strcmp(json_string_value(json_array_get(list, 0)), "any") == 0)
        return NULL;
    json_array_foreach(list, i, item) {
        AQ_CLEANUP(aq_freep) char *name = NULL;
        struct aq_error why = { 0 };

        if (!json_is_string(item) || registry_name_read(json_string_value(item), &name, &why) < 0) {
            api_fail_param(&row->err, "registries",
                           "'%.100s' is not a registry; give HOST[:PORT], as image names have it",
                           json_is_string(item) ? json_string_value(item) : "");
            strbuf_done(&text);
            return NULL;
        }
        if (!text.len || !domain_allows_registry(&(struct domain){ .registries = text.data }, name))
            strbuf_addf(&text, "%s%s", text.len ? " " : "", name);
    }
    return text.len ? strbuf_steal(&text) : NULL;
}

static void domain_check_name(struct account_row *row, const char *old, const char *name)
{
    const char *signup_domain = row->api->account->signup_domain;
    const struct domain *other = core_find_domain(row->api->core, name);

    if (strcmp(old, "default") == 0)
        api_fail_param(&row->err, "name",
                       "the domain 'default' cannot be renamed, because users and sessions without "
                       "a domain belong to it; create another domain instead");
    else if (signup_domain && strcmp(signup_domain, old) == 0)
        api_fail_param(
            &row->err, "name",
            "new users are put into '%.64s' by 'domain' of [signup] in manager.toml; set "
            "another domain there and restart the manager first",
            old);
    else if (other)
        aq_fail_as(&row->err, EEXIST, "invalid-api-params", "name",
                   "a domain '%.64s' exists already%s; choose another name", name,
                   other->is_active ? "" : ", but is out of use");
}

static void domain_fill(struct account_row *row)
{
    const struct domain *params = row->params, *old = row->old;
    const json_t *registries = (const void *)params->registries; /* FIELD_OWN */
    struct domain *domain = &row->event->domain;

    if (old && params->name && strcmp(params->name, old->name) != 0)
        domain_check_name(row, old->name, params->name);
    if (registries && !row->err.code) {
        free(domain->registries);
        domain->registries = domain_read_registries(row, registries);
    }
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
    .entity = &domain_entity,
    .offset = offsetof(struct event, domain),
    .create = domain_create,
    .change = domain_change,
    .list = store_list_domains,
    .find = domain_find,
    .find_same = domain_find_same,
    .fill = domain_fill,
    .follow = account_rename_domain_row,
    .select = domain_select_row,
};
