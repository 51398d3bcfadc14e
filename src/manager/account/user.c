/* SPDX-License-Identifier: Apache-2.0 */
/* Users: what can be given, and what becomes of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "http/network.h"
#include "manager/account/account.h"
#include "model/email.h"

static const void *user_find(const struct core *core, const char *key)
{
    struct uuid id;

    return uuid_parse(key, &id) == 0 ? core_find_user(core, &id)
                                     : core_find_user_by_email(core, key);
}

static const void *user_find_same(const struct core *core, const void *params)
{
    return core_find_user_by_email(core, ((const struct user_request *)params)->user.email);
}

/* The project's row by id or name, if it is the domain's. */
static const struct project *user_find_project(const struct core *core, const char *domain,
                                               const char *text)
{
    const struct project *project;
    struct uuid id;

    if (uuid_parse(text, &id) < 0)
        return core_find_project_named(core, domain, text);
    project = core_find_project(core, &id);
    return project && strcmp(project->domain, domain) == 0 ? project : NULL;
}

/* The project that requests mean which name none, if the domain has it. */
static void user_join_default(const struct core *core, struct user *user)
{
    const struct project *project = core_find_project_named(core, user->domain, "default");

    if (project && project->is_active)
        user->project_ids[user->project_count++] = project->id;
}

static void user_fill_projects(struct account_row *row, const struct str_list *given,
                               struct user *user)
{
    if (!given->items && row->old)
        return;
    user->project_count = 0;
    vec_grow(&user->project_ids, &user->project_cap, AQ_MAX(given->count, 1),
             sizeof(*user->project_ids));
    if (!given->items)
        user_join_default(row->api->core, user);
    for (size_t i = 0; i < given->count; i++) {
        const struct project *project = user_find_project(row->api->core, user->domain,
                                                          given->items[i]);

        if (!project) {
            api_fail_param(&row->err, "groups", "'%.64s' is no project of domain '%.64s'",
                           given->items[i], user->domain);
            return;
        }
        user->project_ids[user->project_count++] = project->id;
    }
}

/* As one text; NULL = none, from anywhere. */
static char *user_join_networks(struct account_row *row, const struct str_list *given)
{
    struct strbuf text = STRBUF_INIT;
    struct network network;

    if (!given->count || (given->count == 1 && strcmp(given->items[0], "any") == 0))
        return NULL;
    for (size_t i = 0; i < given->count; i++) {
        if (network_parse(given->items[i], &network) < 0)
            api_fail_param(&row->err, "allowed_client_ip",
                           "'%.64s' is no network such as 10.0.0.0/8, nor an address",
                           given->items[i]);
        strbuf_addf(&text, "%s%s", i ? "," : "", given->items[i]);
    }
    return strbuf_steal(&text);
}

/* A new user who is given no name is called by the e-mail address. */
static bool user_may_be_called(const struct core *core, const struct user *given,
                               const struct user *old)
{
    const char *name = given->username ? given->username : old ? NULL : given->email;
    const struct user *user = name ? core_find_user_by_name(core, name) : NULL;

    return !user || user == old;
}

static void user_fill(struct account_row *row)
{
    const struct user_request *given = row->params;
    struct user *user = &row->event->user.user;
    const struct user *old = row->old;
    const struct domain *domain = old ? NULL : core_find_domain(row->api->core, given->user.domain);

    if (!old && !domain)
        problem_no_such(&row->err, "domain", "there is no domain '%.64s'", given->user.domain);
    else if (!old && !domain->is_active)
        api_fail_param(&row->err, "domain", "'%.64s' is not in use; restore it first",
                       given->user.domain);
    else if (!old && email_check_new(given->user.email, &row->err) < 0)
        row->err.kind = "invalid-api-params";
    else if (given->role && user_role_parse(given->role, &user->role) < 0)
        api_fail_param(&row->err, "role", "must be superadmin, admin, user or monitor");
    else if (given->status && user_status_parse(given->status, &user->status) < 0)
        api_fail_param(&row->err, "status",
                       "must be active, inactive, deleted or before-verification");
    else if (!user_may_be_called(row->api->core, &given->user, old))
        api_fail_param(&row->err, "username", "'%.64s' is another user's",
                       given->user.username ? given->user.username : given->user.email);
    else if (given->password)
        (void)account_check_password(row->api, "password", given->password, &row->err);
    if (row->err.code)
        return;
    if (!old)
        user->id = uuid_random();
    row->password = given->password;
    if (given->networks.items) {
        free(user->allowed_client_ip);
        user->allowed_client_ip = user_join_networks(row, &given->networks);
    }
}

/* Names and projects depend on other members. */
static void user_complete(struct account_row *row)
{
    const struct user_request *given = row->params;
    struct user *user = &row->event->user.user;

    if (!user->username)
        user->username = aq_strdup(user->email);
    user_fill_projects(row, &given->groups, user);
}

static void user_select_row(struct account_row *row, struct store_query *query)
{
    query->name = account_keep(row, row->event->user.user.email);
}

const struct account_kind account_user = {
    .object = "user",
    .noun = "user",
    .purge = PURGE_USER,
    .event = EVENT_USER_SAVED,
    .entity = &user_entity,
    .offset = offsetof(struct event, user.user),
    .params_size = sizeof(struct user_request),
    .create = user_create,
    .change = user_change,
    .list = store_list_users,
    .find = user_find,
    .find_same = user_find_same,
    .fill = user_fill,
    .complete = user_complete,
    .select = user_select_row,
};
