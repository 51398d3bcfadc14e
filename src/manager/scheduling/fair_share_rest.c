/* SPDX-License-Identifier: Apache-2.0 */
/* GET /aliquot/v1/resource-groups/{key}/fair-share: recent usage and fair-share factors */
#include <string.h>

#include "manager/scheduling/scheduling_feature.h"

struct fair_share_view {
    const struct api *api;
    const struct principal *who;
    struct jsonw w;
};

static bool fair_share_is_member(const struct api *api, const struct principal *who,
                                 const struct core_fair_row *row)
{
    const struct user *u = core_find_user(api->core, &who->user_id);

    for (size_t i = 0; u && i < u->project_count; i++)
        if (uuid_equals(&u->project_ids[i], &row->project))
            return true;
    return false;
}

/* Users see themselves, their projects and their domain; a domain's administrators all of it. */
static bool fair_share_may_see(const struct fair_share_view *v, const struct core_fair_row *row)
{
    if (principal_is_superadmin(v->who))
        return true;
    if (!v->who->domain || strcmp(v->who->domain, row->domain) != 0)
        return false;
    if (row->level == CORE_FAIR_DOMAIN || principal_may(v->who->role, API_ADMIN))
        return true;
    return row->level == CORE_FAIR_PROJECT ? fair_share_is_member(v->api, v->who, row)
                                           : uuid_equals(&row->user, &v->who->user_id);
}

static void fair_share_write_row(void *data, const struct core_fair_row *row)
{
    static const char *const levels[] = { "domain", "project", "user" };
    struct fair_share_view *v = data;
    const struct project *project = core_find_project(v->api->core, &row->project);
    const struct user *user = core_find_user(v->api->core, &row->user);

    if (!fair_share_may_see(v, row))
        return;
    jsonw_object_begin(&v->w);
    jsonw_member_str(&v->w, "level", levels[row->level]);
    jsonw_member_str(&v->w, "domain", row->domain);
    if (row->level >= CORE_FAIR_PROJECT) {
        api_write_uuid(&v->w, "project_id", &row->project);
        jsonw_member_str(&v->w, "project", project ? project->name : NULL);
    }
    if (row->level == CORE_FAIR_USER) {
        api_write_uuid(&v->w, "user_id", &row->user);
        jsonw_member_str(&v->w, "user", user ? user->email : NULL);
    }
    jsonw_key(&v->w, "weight");
    jsonw_double(&v->w, row->weight);
    jsonw_key(&v->w, "usage");
    jsonw_double(&v->w, row->usage);
    jsonw_key(&v->w, "factor");
    jsonw_double(&v->w, row->factor);
    jsonw_object_end(&v->w);
}

static void fair_share_on_list(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct api *api = data;
    struct fair_share_view view = { .api = api, .who = api_principal(req), .w = jsonw_make(&out) };
    struct aq_error err = { 0 };

    if (!api_has_no_params(req))
        return;
    jsonw_object_begin(&view.w);
    jsonw_key(&view.w, "items");
    jsonw_array_begin(&view.w);
    if (core_list_fair_share(api->core, request_get_param(req, "key"), fair_share_write_row, &view,
                             &err)
        < 0) {
        request_fail(req, &err);
        return;
    }
    jsonw_array_end(&view.w);
    jsonw_object_end(&view.w);
    request_reply_json(req, 200, &out);
}

static const struct route fair_share_routes[] = {
    { METHOD_GET, "/aliquot/v1/resource-groups/{key}/fair-share", API_USER, fair_share_on_list,
      NULL, "Show who has used how much of a resource group lately" },
};
API_ROUTES_END(fair_share);
