/* SPDX-License-Identifier: Apache-2.0 */
/* Projects as accounts, and their members. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/vec.h"
#include "manager/account/account.h"

static const void *project_find(const struct core *core, const char *key)
{
    struct uuid id;

    return uuid_parse(key, &id) == 0 ? core_find_project(core, &id) : NULL;
}

static const void *project_find_same(const struct core *core, const void *data)
{
    const struct project *params = data;

    return core_find_project_named(core, params->domain, params->name);
}

/* A new one is made in a domain that is in use. */
static void project_fill(struct account_row *row)
{
    const struct project *params = row->params;
    const struct domain *domain = row->old ? NULL
                                           : core_find_domain(row->api->core, params->domain);

    if (row->old)
        return;
    if (!domain)
        problem_no_such(&row->err, "domain", "there is no domain '%.64s'", params->domain);
    else if (!domain->is_active)
        api_fail_param(&row->err, "domain", "'%.64s' is not in use; restore it first",
                       params->domain);
    row->event->project.id = uuid_random();
}

static void project_select_row(struct account_row *row, struct store_query *query)
{
    struct uuid *id = arena_alloc(row->arena, sizeof(*id));

    *id = row->event->project.id;
    query->ids = id;
    query->id_count = 1;
}

const struct account_kind account_project = {
    .object = "user group (or project)",
    .noun = "project",
    .purge = PURGE_PROJECT,
    .event = EVENT_PROJECT_SAVED,
    .entity = &project_entity,
    .offset = offsetof(struct event, project),
    .create = project_create,
    .change = project_change,
    .list = store_list_projects,
    .find = project_find,
    .find_same = project_find_same,
    .fill = project_fill,
    .select = project_select_row,
};

/* ---- members ---- */

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
static void project_set_member(struct event_batch *batch, const struct user *user,
                               const struct uuid *id, bool is_member)
{
    struct event *e = event_batch_add(batch, EVENT_USER_SAVED, clock_realtime_usec());
    struct user *saved = &e->user.user;
    size_t kept = 0;

    entity_copy(&user_entity, saved, user);
    vec_grow(&saved->project_ids, &saved->project_cap, saved->project_count + 1,
             sizeof(*saved->project_ids));
    for (size_t i = 0; i < saved->project_count; i++)
        if (!uuid_equals(&saved->project_ids[i], id))
            saved->project_ids[kept++] = saved->project_ids[i];
    if (is_member)
        saved->project_ids[kept++] = *id;
    saved->project_count = kept;
}

int account_change_members(struct account_change *change, const char *project,
                           const struct str_list *users, bool is_member, struct aq_error *err)
{
    const struct core *core = change->api->core;
    const struct project *row = project_find(core, project);

    if (!row)
        return problem_no_such(err, "user group (or project)", "there is no project '%.64s'",
                               project);
    if (users->count == 0 || users->count > ACCOUNT_MEMBERS_MAX)
        return api_fail_param(err, "users", "name 1 to %d users", ACCOUNT_MEMBERS_MAX);
    for (size_t i = 0; i < users->count; i++) {
        const struct user *user = project_find_member(core, row, users->items[i], err);

        if (!user)
            return -err->code;
        project_set_member(change->batch, user, &row->id, is_member);
    }
    return 0;
}
