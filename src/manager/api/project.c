/* SPDX-License-Identifier: Apache-2.0 */
/* /aliquot/v1/groups: projects */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/vec.h"
#include "manager/api/accounts.h"
#include "manager/api/resources.h"

#define MEMBERS_MAX 1000

struct project_params {
    const char *name, *domain, *description;
    enum maybe is_active;
    const json_t *total_slots;
};

/* clang-format off */
#define CHANGES                                                                                    \
    { "description", FIELD_STR, FIELD_NULLABLE, offsetof(struct project_params, description), 0, 512 },    \
    { "is_active", FIELD_MAYBE, 0, offsetof(struct project_params, is_active) },                           \
    { "total_slots|total_resource_slots", FIELD_OBJECT, 0, offsetof(struct project_params, total_slots),   \
      .doc = "missing slots are unlimited" }
/* clang-format on */

static const struct field create_fields[] = {
    { "name", FIELD_STR, FIELD_REQUIRED, offsetof(struct project_params, name), 1, 64 },
    { "domain", FIELD_STR, FIELD_REQUIRED, offsetof(struct project_params, domain), 1, 64 },
    CHANGES,
    FIELD_END,
};

static const struct field change_fields[] = {
    { "name", FIELD_STR, 0, offsetof(struct project_params, name), 1, 64 },
    CHANGES,
    FIELD_END,
};

static void project_write_row(const struct api_list *list, const struct store_page *page, size_t i,
                              struct jsonw *w)
{
    const struct project *project = &page->projects[i].project;

    jsonw_object_begin(w);
    api_write_uuid(w, "id", &project->id);
    jsonw_member_str(w, "name", project->name);
    jsonw_member_str(w, "domain", project->domain);
    jsonw_member_str(w, "description", project->description);
    jsonw_member_bool(w, "is_active", project->is_active);
    jsonw_key(w, "total_slots");
    slots_write_json(&project->total_slots, core_slot_types(list->api->core), w);
    api_write_time(w, "created_at", page->projects[i].created_usec);
    jsonw_object_end(w);
}

static void project_narrow(const struct principal *who, struct store_query *query)
{
    query->domain = who->domain;
}

static const void *project_find(const struct core *core, const char *key)
{
    struct uuid id;

    return uuid_parse(key, &id) == 0 ? core_find_project(core, &id) : NULL;
}

static const void *project_find_same(const struct core *core, const void *data)
{
    const struct project_params *params = data;

    return core_find_project_named(core, params->domain, params->name);
}

static void project_fill(struct account_row *row)
{
    const struct project_params *params = row->params;
    const struct project *old = row->old;
    struct project *project = &row->event->project;

    const struct domain *domain = old ? NULL : core_find_domain(row->api->core, params->domain);

    if (!old && !domain)
        problem_no_such(&row->err, "domain", "there is no domain '%.64s'", params->domain);
    else if (!old && !domain->is_active)
        api_fail_param(&row->err, "domain", "'%.64s' is not in use; restore it first",
                       params->domain);
    if (row->err.code)
        return;
    project->id = old ? old->id : uuid_random();
    project->name = account_text(row, params->name, old ? old->name : NULL);
    project->domain = account_text(row, params->domain, old ? old->domain : NULL);
    project->description = account_text(row, params->description, old ? old->description : NULL);
    project->is_active = account_bool(params->is_active, old ? old->is_active : true);
    account_slots(row, params->total_slots, old ? &old->total_slots : NULL, &project->total_slots);
}

static void project_select_row(struct account_row *row, struct store_query *query)
{
    struct uuid *id = arena_alloc(row->arena, sizeof(*id));

    if (!id) {
        aq_fail_oom(&row->err);
        return;
    }
    *id = row->event->project.id;
    query->ids = id;
    query->id_count = 1;
}

static const struct account_kind project_kind = {
    .object = "user group (or project)",
    .noun = "project",
    .purge = PURGE_PROJECT,
    .event = EVENT_PROJECT_SAVED,
    .params_size = sizeof(struct project_params),
    .list = store_list_projects,
    .write = project_write_row,
    .narrow = project_narrow,
    .find = project_find,
    .find_same = project_find_same,
    .fill = project_fill,
    .select = project_select_row,
};

ACCOUNT_HANDLERS(project)
ACCOUNT_REMOVAL_HANDLERS(project)

/* ---- members ---- */

struct members_params {
    struct str_list users;
};

static const struct field members_fields[] = {
    { "users", FIELD_STR_LIST, FIELD_REQUIRED, offsetof(struct members_params, users), 0,
      MEMBERS_MAX, .doc = "e-mail addresses or ids of users of the project's domain" },
    FIELD_END,
};

static const struct user *project_find_member(const struct core *core,
                                              const struct project *project, const char *text,
                                              struct aq_error *err)
{
    struct uuid id;
    const struct user *user = uuid_parse(text, &id) == 0 ? core_find_user(core, &id)
                                                         : core_find_user_by_email(core, text);

    if (!user)
        problem_no_such(err, "user", "there is no user '%.64s'", text);
    else if (!user->domain || strcmp(user->domain, project->domain) != 0)
        api_fail_param(err, "users", "'%.64s' is of domain '%.64s', the project of '%.64s'",
                       user->email, user->domain ? user->domain : "", project->domain);
    return err->code ? NULL : user;
}

/* Add an event that saves the user as one who is, or is not a member. */
static int project_set_member(struct event_batch *batch, const struct user *user,
                              const struct uuid *id, bool is_member)
{
    struct event *e = event_batch_add(batch, EVENT_USER_SAVED, clock_realtime_usec());
    struct user *saved = e ? &e->user.user : NULL;
    size_t kept = 0;

    if (!saved || accounts_copy_user(saved, user) < 0
        || !vec_grow(&saved->project_ids, &saved->project_cap, saved->project_count + 1,
                     sizeof(*saved->project_ids)))
        return -ENOMEM;
    for (size_t i = 0; i < saved->project_count; i++)
        if (!uuid_equals(&saved->project_ids[i], id))
            saved->project_ids[kept++] = saved->project_ids[i];
    if (is_member)
        saved->project_ids[kept++] = *id;
    saved->project_count = kept;
    return 0;
}

static void project_change_members(struct api *api, struct request *req, bool is_member)
{
    AQ_CLEANUP(event_batch_freep) struct event_batch *batch = event_batch_new();
    const char *key = request_get_param(req, "key");
    struct members_params params = { .users.count = 0 };
    const struct project *project = project_find(api->core, key);
    struct aq_error err = { 0 };

    if (!batch)
        aq_fail_oom(&err);
    else if (api_decode(req, &params, NULL, &err) == 0 && !project)
        problem_no_such(&err, "user group (or project)", "there is no project '%.64s'", key);
    else if (!err.code && params.users.count == 0)
        api_fail_param(&err, "users", "name 1 to %d users", MEMBERS_MAX);
    for (size_t i = 0; !err.code && i < params.users.count; i++) {
        const struct user *user = project_find_member(api->core, project, params.users.items[i],
                                                      &err);

        if (user && project_set_member(batch, user, &project->id, is_member) < 0)
            aq_fail_oom(&err);
    }
    if (err.code)
        request_fail(req, &err);
    else
        account_save(api, req, AQ_TAKE(batch), NULL);
}

static void project_on_add_users(struct request *req, void *data)
{
    project_change_members(data, req, true);
}

static void project_on_remove_users(struct request *req, void *data)
{
    project_change_members(data, req, false);
}

const struct route project_routes[] = {
    { METHOD_GET, "/aliquot/v1/groups", API_ADMIN, project_on_list, account_page_fields,
      "List projects" },
    { METHOD_POST, "/aliquot/v1/groups", API_SUPERADMIN, project_on_create, create_fields,
      "Make a project" },
    { METHOD_PATCH, "/aliquot/v1/groups/{key}", API_SUPERADMIN, project_on_change, change_fields,
      "Change a project" },
    { METHOD_POST, "/aliquot/v1/groups/{key}/add-users", API_SUPERADMIN, project_on_add_users,
      members_fields, "Make users members of a project" },
    { METHOD_POST, "/aliquot/v1/groups/{key}/remove-users", API_SUPERADMIN, project_on_remove_users,
      members_fields, "Take users out of a project" },
    ACCOUNT_REMOVAL_ROUTES(project, "/aliquot/v1/groups/{key}", "a project"),
};
API_ROUTES_END(project);
