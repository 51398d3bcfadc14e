/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of /aliquot/v1/users. */
#include <string.h>

#include "manager/account/account.h"
#include "manager/account/account_feature.h"

static void user_write_projects(const struct core *core, const struct user *user, struct jsonw *w)
{
    jsonw_key(w, "projects");
    jsonw_array_begin(w);
    for (size_t i = 0; i < user->project_count; i++) {
        const struct project *project = core_find_project(core, &user->project_ids[i]);

        if (project)
            jsonw_str(w, project->name);
    }
    jsonw_array_end(w);
}

/* An array; null = from anywhere. */
static void user_write_networks(const char *networks, struct jsonw *w)
{
    jsonw_key(w, "allowed_client_ip");
    if (!networks) {
        jsonw_null(w);
        return;
    }
    jsonw_array_begin(w);
    for (const char *at = networks; *at; at += strspn(at, ",")) {
        size_t len = strcspn(at, ",");

        jsonw_strn(w, at, len);
        at += len;
    }
    jsonw_array_end(w);
}

/* entity_write_fn: names of projects are behind their ids, networks an array. */
static bool user_write_own(const void *data, const void *row, const struct field *field,
                           struct jsonw *w)
{
    const struct user *user = row;

    if (field->type != FIELD_OWN)
        return false;
    user_write_projects(data, user, w);
    user_write_networks(user->allowed_client_ip, w);
    return true;
}

static void user_write_row(const struct api_list *list, const struct store_page *page, size_t i,
                           struct jsonw *w)
{
    const struct core *core = list->api->core;

    jsonw_object_begin(w);
    entity_write_json_as(&user_entity, &page->users[i].user, 0, core_slot_types(core),
                         user_write_own, core, w);
    api_write_time(w, "created_at", page->users[i].created_usec);
    jsonw_object_end(w);
}

static void user_narrow(const struct principal *who, struct store_query *query)
{
    query->domain = who->domain;
}

static const struct account_resource user_resource = {
    .kind = &account_user,
    .write = user_write_row,
    .narrow = user_narrow,
};

ACCOUNT_HANDLERS(user)
ACCOUNT_REMOVAL_HANDLERS(user)

static const struct route user_routes[] = {
    { METHOD_GET, "/aliquot/v1/users", API_ADMIN, user_on_list, account_page_fields, "List users" },
    { METHOD_POST, "/aliquot/v1/users", API_SUPERADMIN, user_on_create, user_create,
      "Make a user, with a keypair of the policy 'default'", .answer = { 201 } },
    { METHOD_PATCH, "/aliquot/v1/users/{key}", API_SUPERADMIN, user_on_change, user_change,
      "Change a user, named by e-mail or id" },
    ACCOUNT_REMOVAL_ROUTES(user, "/aliquot/v1/users/{key}", "a user"),
};
API_ROUTES_END(user);
