/* SPDX-License-Identifier: Apache-2.0 */
/* /aliquot/v1/groups: projects */
#include "manager/account/account.h"
#include "manager/account/account_feature.h"

static void project_write_row(const struct api_list *list, const struct store_page *page, size_t i,
                              struct jsonw *w)
{
    const struct project_row *row = &page->projects[i];

    account_write_row(list, &project_entity, &row->project, row->created_usec, w);
}

static void project_narrow(const struct principal *who, struct store_query *query)
{
    query->domain = who->domain;
}

static const struct account_resource project_resource = {
    .kind = &account_project,
    .write = project_write_row,
    .narrow = project_narrow,
};

ACCOUNT_HANDLERS(project)
ACCOUNT_REMOVAL_HANDLERS(project)

/* ---- members ---- */

struct members_params {
    struct str_list users;
};

static const struct field members_fields[] = {
    { "users", FIELD_STR_LIST, FIELD_REQUIRED, offsetof(struct members_params, users), 0,
      ACCOUNT_MEMBERS_MAX, .doc = "e-mail addresses or ids of users of the project's domain" },
    FIELD_END,
};

static void project_change_members(struct api *api, struct request *req, bool is_member)
{
    struct account_change *change = account_begin(api, req, &account_project);
    struct members_params params = { .users.count = 0 };
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0
        || account_change_members(change, request_get_param(req, "key"), &params.users, is_member,
                                  &err)
               < 0)
        account_end(change, req, &err);
    else
        account_save(change, req, api_reply_done, req);
}

static void project_on_add_users(struct request *req, void *data)
{
    project_change_members(data, req, true);
}

static void project_on_remove_users(struct request *req, void *data)
{
    project_change_members(data, req, false);
}

static const struct route project_routes[] = {
    { METHOD_GET, "/aliquot/v1/groups", API_ADMIN, project_on_list, account_page_fields,
      "List projects" },
    { METHOD_POST, "/aliquot/v1/groups", API_SUPERADMIN, project_on_create, project_create,
      "Make a project", .answer = { 201 } },
    { METHOD_PATCH, "/aliquot/v1/groups/{key}", API_SUPERADMIN, project_on_change, project_change,
      "Change a project" },
    { METHOD_POST, "/aliquot/v1/groups/{key}/add-users", API_SUPERADMIN, project_on_add_users,
      members_fields, "Make users members of a project", .answer = { 204 } },
    { METHOD_POST, "/aliquot/v1/groups/{key}/remove-users", API_SUPERADMIN, project_on_remove_users,
      members_fields, "Take users out of a project", .answer = { 204 } },
    ACCOUNT_REMOVAL_ROUTES(project, "/aliquot/v1/groups/{key}", "a project"),
};
API_ROUTES_END(project);
