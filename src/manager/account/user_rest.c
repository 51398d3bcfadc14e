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

static void user_write_row(const struct api_list *list, const struct store_page *page, size_t i,
                           struct jsonw *w)
{
    const struct user *user = &page->users[i].user;

    jsonw_object_begin(w);
    api_write_uuid(w, "id", &user->id);
    jsonw_member_str(w, "email", user->email);
    jsonw_member_str(w, "username", user->username);
    jsonw_member_str(w, "full_name", user->full_name);
    jsonw_member_str(w, "description", user->description);
    jsonw_member_str(w, "domain", user->domain);
    jsonw_member_str(w, "role", user_role_name(user->role));
    jsonw_member_str(w, "status", user_status_name(user->status));
    jsonw_key(w, "groups");
    jsonw_array_begin(w);
    for (size_t g = 0; g < user->project_count; g++) {
        char id[UUID_TEXT_MAX];

        jsonw_str(w, uuid_format(&user->project_ids[g], id));
    }
    jsonw_array_end(w);
    user_write_projects(list->api->core, user, w);
    user_write_networks(user->allowed_client_ip, w);
    jsonw_member_bool(w, "need_password_change", user->need_password_change);
    jsonw_key(w, "total_slots");
    slots_write_json(&user->total_slots, core_slot_types(list->api->core), w);
    jsonw_member_int(w, "max_concurrent_sessions", user->max_concurrent_sessions);
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
    { METHOD_POST, "/aliquot/v1/users", API_SUPERADMIN, user_on_create, account_user_create,
      "Make a user, with a keypair of the policy 'default'", .answer = { 201 } },
    { METHOD_PATCH, "/aliquot/v1/users/{key}", API_SUPERADMIN, user_on_change, account_user_change,
      "Change a user, named by e-mail or id" },
    ACCOUNT_REMOVAL_ROUTES(user, "/aliquot/v1/users/{key}", "a user"),
};
API_ROUTES_END(user);
