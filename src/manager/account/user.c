/* SPDX-License-Identifier: Apache-2.0 */
/* Users: what can be given, and what becomes of it. */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "http/network.h"
#include "manager/account/account.h"
#include "model/email.h"

struct user_params {
    const char *email, *username, *full_name, *description, *domain, *role, *status, *password;
    struct str_list projects, networks;
    enum maybe need_password_change;
    const json_t *total_slots;
    int64_t max_concurrent_sessions; /* -1: not given */
};

/* clang-format off */
#define CHANGES                                                                                    \
    { "full_name", FIELD_STR, FIELD_NULLABLE | FIELD_LINE, offsetof(struct user_params, full_name), 0, 128 },        \
    { "description", FIELD_STR, FIELD_NULLABLE | FIELD_LINES, offsetof(struct user_params, description), 0, 500 },    \
    { "role", FIELD_STR, 0, offsetof(struct user_params, role), 1, 16,                                  \
      .doc = "superadmin, admin, user or monitor" },                                               \
    { "status", FIELD_STR, 0, offsetof(struct user_params, status), 1, 32,                              \
      .doc = "active, inactive, deleted or before-verification" },                                 \
    { "password", FIELD_STR, FIELD_SECRET, offsetof(struct user_params, password), 8, 1024 },           \
    { "need_password_change", FIELD_MAYBE, 0, offsetof(struct user_params, need_password_change),      \
      .doc = "whether the user must change the password before logging in with it" },              \
    { "groups", FIELD_STR_LIST, 0, offsetof(struct user_params, projects), 0, 256,                        \
      .doc = "ids or names of projects of the domain: all that the user is in; a new user is in"      \
             " 'default' by default" },                  \
    { "allowed_client_ip", FIELD_STR_LIST, 0, offsetof(struct user_params, networks), 0, 64,            \
      .doc = "networks such as 10.0.0.0/8, or addresses, from which alone the user is let in;"     \
             " [] or any = from anywhere" },                                                              \
    { "total_slots|total_resource_slots", FIELD_OBJECT, 0, offsetof(struct user_params, total_slots),   \
      .doc = "all that the user's sessions may hold at a time" },                                  \
    { "max_concurrent_sessions", FIELD_INT, 0,                                                     \
      offsetof(struct user_params, max_concurrent_sessions), 0, 1000000, .doc = "0 = no limit" }
/* clang-format on */

const struct field account_user_create[] = {
    { "email", FIELD_STR, FIELD_REQUIRED | FIELD_LINE, offsetof(struct user_params, email), 3,
      255 },
    { "username", FIELD_STR, FIELD_NULLABLE | FIELD_LINE, offsetof(struct user_params, username), 1,
      64, .doc = "default: the e-mail address" },
    { "domain", FIELD_STR, FIELD_REQUIRED, offsetof(struct user_params, domain), 1, 64 },
    CHANGES,
    FIELD_END,
};

const struct field account_user_change[] = {
    { "username", FIELD_STR, FIELD_LINE, offsetof(struct user_params, username), 1, 64 },
    CHANGES,
    FIELD_END,
};

static const void *user_find(const struct core *core, const char *key)
{
    struct uuid id;

    return uuid_parse(key, &id) == 0 ? core_find_user(core, &id)
                                     : core_find_user_by_email(core, key);
}

static const void *user_find_same(const struct core *core, const void *params)
{
    return core_find_user_by_email(core, ((const struct user_params *)params)->email);
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

static void user_fill_projects(struct account_row *row, const struct user_params *params,
                               const struct user *old, struct user *user)
{
    size_t count = params->projects.items ? params->projects.count : old ? old->project_count : 1;

    if (count)
        user->project_ids = aq_alloc_array(count, sizeof(*user->project_ids));
    user->project_cap = count;
    if (!params->projects.items && !old) {
        user_join_default(row->api->core, user);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct project *project;

        if (!params->projects.items) {
            user->project_ids[user->project_count++] = old->project_ids[i];
            continue;
        }
        project = user_find_project(row->api->core, user->domain, params->projects.items[i]);
        if (!project) {
            api_fail_param(&row->err, "groups", "'%.64s' is no project of domain '%.64s'",
                           params->projects.items[i], user->domain);
            return;
        }
        user->project_ids[user->project_count++] = project->id;
    }
}

/* Those given, or else the old ones, as one text; NULL = none. */
static char *user_join_networks(struct account_row *row, const struct str_list *given,
                                const char *old)
{
    struct strbuf text = STRBUF_INIT;
    struct network network;

    if (!given->items)
        return account_text(row, old, NULL);
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
static bool user_may_be_called(const struct core *core, const struct user_params *params,
                               const struct user *old)
{
    const char *name = params->username ? params->username : old ? NULL : params->email;
    const struct user *user = name ? core_find_user_by_name(core, name) : NULL;

    return !user || user == old;
}

static void user_fill(struct account_row *row)
{
    const struct user_params *params = row->params;
    struct user *user = &row->event->user.user;
    const struct user *old = row->old;

    const struct domain *domain = old ? NULL : core_find_domain(row->api->core, params->domain);

    user->role = old ? old->role : ROLE_USER;
    user->status = old ? old->status : USER_ACTIVE;
    if (!old && !domain)
        problem_no_such(&row->err, "domain", "there is no domain '%.64s'", params->domain);
    else if (!old && !domain->is_active)
        api_fail_param(&row->err, "domain", "'%.64s' is not in use; restore it first",
                       params->domain);
    else if (!old && email_check_new(params->email, &row->err) < 0)
        row->err.kind = "invalid-api-params";
    else if (params->role && user_role_parse(params->role, &user->role) < 0)
        api_fail_param(&row->err, "role", "must be superadmin, admin, user or monitor");
    else if (params->status && user_status_parse(params->status, &user->status) < 0)
        api_fail_param(&row->err, "status",
                       "must be active, inactive, deleted or before-verification");
    else if (!user_may_be_called(row->api->core, params, old))
        api_fail_param(&row->err, "username", "'%.64s' is another user's",
                       params->username ? params->username : params->email);
    else if (params->password)
        (void)account_check_password(row->api, "password", params->password, &row->err);
    if (row->err.code)
        return;
    user->id = old ? old->id : uuid_random();
    user->email = account_text(row, params->email, old ? old->email : NULL);
    user->username = account_text(row, params->username, old ? old->username : params->email);
    user->full_name = account_text(row, params->full_name, old ? old->full_name : NULL);
    user->description = account_text(row, params->description, old ? old->description : NULL);
    user->domain = account_text(row, params->domain, old ? old->domain : NULL);
    user->allowed_client_ip = user_join_networks(row, &params->networks,
                                                 old ? old->allowed_client_ip : NULL);
    user->need_password_change = account_bool(params->need_password_change,
                                              old && old->need_password_change);
    account_slots(row, "total_slots", params->total_slots, old ? &old->total_slots : NULL,
                  &user->total_slots);
    user->max_concurrent_sessions = params->max_concurrent_sessions >= 0
                                        ? (int)params->max_concurrent_sessions
                                    : old ? old->max_concurrent_sessions
                                          : 0;
    row->password = params->password;
    if (!row->err.code)
        user_fill_projects(row, params, old, user);
}

static void user_select_row(struct account_row *row, struct store_query *query)
{
    query->name = account_keep(row, row->event->user.user.email);
}

static const struct user_params defaults = { .max_concurrent_sessions = -1 };

const struct account_kind account_user = {
    .object = "user",
    .noun = "user",
    .purge = PURGE_USER,
    .event = EVENT_USER_SAVED,
    .create = account_user_create,
    .change = account_user_change,
    .params_size = sizeof(struct user_params),
    .defaults = &defaults,
    .list = store_list_users,
    .find = user_find,
    .find_same = user_find_same,
    .fill = user_fill,
    .select = user_select_row,
};
