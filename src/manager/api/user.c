/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers and fields of /aliquot/v1/users. */
/* /aliquot/v1/users */
#include <errno.h>
#include <string.h>

#include "manager/api/accounts.h"
#include "manager/api/resources.h"
#include "store/password.h"

struct user_params {
    const char *email, *username, *full_name, *domain, *role, *status, *password;
    struct str_list projects;
    const json_t *total_slots;
    int64_t max_concurrent_sessions; /* -1: not given */
};

/* clang-format off */
#define CHANGES                                                                                    \
    { "full_name", FIELD_STR, FIELD_NULLABLE, offsetof(struct user_params, full_name), 0, 128 },        \
    { "role", FIELD_STR, 0, offsetof(struct user_params, role), 1, 16,                                  \
      .doc = "superadmin, admin, user or monitor" },                                               \
    { "status", FIELD_STR, 0, offsetof(struct user_params, status), 1, 32,                              \
      .doc = "active, inactive, deleted or before-verification" },                                 \
    { "password", FIELD_STR, FIELD_SECRET, offsetof(struct user_params, password), 8, 1024 },           \
    { "groups", FIELD_STR_LIST, 0, offsetof(struct user_params, projects), 0, 256,                        \
      .doc = "ids or names of projects of the domain: all that the user is in; a new user is in"      \
             " 'default' by default" },                  \
    { "total_slots|total_resource_slots", FIELD_OBJECT, 0, offsetof(struct user_params, total_slots),   \
      .doc = "all that the user's sessions may hold at a time" },                                  \
    { "max_concurrent_sessions", FIELD_INT, 0,                                                     \
      offsetof(struct user_params, max_concurrent_sessions), 0, 1000000, .doc = "0 = no limit" }
/* clang-format on */

static const struct field create_fields[] = {
    { "email", FIELD_STR, FIELD_REQUIRED, offsetof(struct user_params, email), 3, 255 },
    { "username", FIELD_STR, FIELD_NULLABLE, offsetof(struct user_params, username), 1, 64,
      .doc = "default: the e-mail address" },
    { "domain", FIELD_STR, FIELD_REQUIRED, offsetof(struct user_params, domain), 1, 64 },
    CHANGES,
    FIELD_END,
};

static const struct field change_fields[] = {
    { "username", FIELD_STR, 0, offsetof(struct user_params, username), 1, 64 },
    CHANGES,
    FIELD_END,
};

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

static void user_write_row(const struct api_list *list, const struct store_page *page, size_t i,
                           struct jsonw *w)
{
    const struct user *user = &page->users[i].user;

    jsonw_object_begin(w);
    api_write_uuid(w, "id", &user->id);
    jsonw_member_str(w, "email", user->email);
    jsonw_member_str(w, "username", user->username);
    jsonw_member_str(w, "full_name", user->full_name);
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

    if (count && !(user->project_ids = calloc(count, sizeof(*user->project_ids)))) {
        aq_fail_oom(&row->err);
        return;
    }
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
    else if (!old && !strchr(params->email, '@'))
        api_fail_param(&row->err, "email", "not an e-mail address");
    else if (params->role && user_role_parse(params->role, &user->role) < 0)
        api_fail_param(&row->err, "role", "must be superadmin, admin, user or monitor");
    else if (params->status && user_status_parse(params->status, &user->status) < 0)
        api_fail_param(&row->err, "status",
                       "must be active, inactive, deleted or before-verification");
    if (row->err.code)
        return;
    user->id = old ? old->id : uuid_random();
    user->email = account_text(row, params->email, old ? old->email : NULL);
    user->username = account_text(row, params->username, old ? old->username : params->email);
    user->full_name = account_text(row, params->full_name, old ? old->full_name : NULL);
    user->domain = account_text(row, params->domain, old ? old->domain : NULL);
    account_slots(row, params->total_slots, old ? &old->total_slots : NULL, &user->total_slots);
    user->max_concurrent_sessions = params->max_concurrent_sessions >= 0
                                        ? (int)params->max_concurrent_sessions
                                    : old ? old->max_concurrent_sessions
                                          : 0;
    if (!row->err.code)
        user_fill_projects(row, params, old, user);
}

static void user_select_row(struct account_row *row, struct store_query *query)
{
    query->name = account_keep(row, row->event->user.user.email);
}

static const struct user_params defaults = { .max_concurrent_sessions = -1 };

static const struct account_kind user_kind = {
    .object = "user",
    .noun = "user",
    .purge = PURGE_USER,
    .event = EVENT_USER_SAVED,
    .params_size = sizeof(struct user_params),
    .defaults = &defaults,
    .list = store_list_users,
    .write = user_write_row,
    .narrow = user_narrow,
    .find = user_find,
    .find_same = user_find_same,
    .fill = user_fill,
    .select = user_select_row,
};

/* ---- saving, with the password hashed on a worker thread before ---- */

struct user_saving {
    struct api *api;
    struct request *req;
    struct event_batch *batch;
    struct api_list *reply;
    const char *password;
    char hash[PASSWORD_HASH_MAX];
};

static int user_hash_password(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct user_saving *saving = data;

    (void)tx;
    return password_hash(saving->password, saving->hash, err);
}

static void user_on_hashed(void *data, int r, const struct aq_error *err)
{
    struct user_saving *saving = data;
    struct aq_error failed = { 0 };

    if (r == 0 && !(saving->batch->events[0].user.password_hash = strdup(saving->hash))) {
        r = aq_fail_oom(&failed);
        err = &failed;
    }
    if (r == 0) {
        account_save(saving->api, saving->req, saving->batch, saving->reply);
        return;
    }
    event_batch_free(saving->batch);
    request_fail(saving->req, err);
}

static void user_save_account(struct api *api, struct request *req, const char *key)
{
    struct user_saving *saving = arena_alloc(request_get_arena(req), sizeof(*saving));
    struct user_params *params = account_new_params(req, &user_kind);
    struct aq_error err = { 0 };

    if (!saving || !params) {
        aq_fail_oom(&err);
        request_fail(req, &err);
        return;
    }
    *saving = (struct user_saving){ .api = api, .req = req };
    if (!account_prepare(api, req, &user_kind, key, params, &saving->batch, &saving->reply))
        return;
    saving->password = params->password;
    if (!saving->password) {
        account_save(api, req, saving->batch, saving->reply);
    } else if (store_read(core_store(api->core), user_hash_password, user_on_hashed, saving) < 0) {
        event_batch_free(saving->batch);
        aq_fail_oom(&err);
        request_fail(req, &err);
    }
}

static void user_on_list(struct request *req, void *data)
{
    account_list(data, req, &user_kind);
}

static void user_on_create(struct request *req, void *data)
{
    user_save_account(data, req, NULL);
}

static void user_on_change(struct request *req, void *data)
{
    user_save_account(data, req, request_get_param(req, "key"));
}

ACCOUNT_REMOVAL_HANDLERS(user)

const struct route user_routes[] = {
    { METHOD_GET, "/aliquot/v1/users", API_ADMIN, user_on_list, account_page_fields, "List users" },
    { METHOD_POST, "/aliquot/v1/users", API_SUPERADMIN, user_on_create, create_fields,
      "Make a user" },
    { METHOD_PATCH, "/aliquot/v1/users/{key}", API_SUPERADMIN, user_on_change, change_fields,
      "Change a user, named by e-mail or id" },
    ACCOUNT_REMOVAL_ROUTES(user, "/aliquot/v1/users/{key}", "a user"),
};
API_ROUTES_END(user);
