/* /aliquot/v1/users */
#include <errno.h>
#include <string.h>

#include "manager/api/people.h"
#include "store/password.h"

struct params {
    const char *email, *username, *full_name, *domain, *role, *status, *password;
    struct str_list groups;
    const json_t *total_slots;
    int64_t max_concurrent_sessions; /* -1: not given */
};

#define CHANGES                                                                                    \
    { "full_name", FIELD_STR, FIELD_NULLABLE, offsetof(struct params, full_name), 0, 128 },        \
    { "role", FIELD_STR, 0, offsetof(struct params, role), 1, 16,                                  \
      .doc = "superadmin, admin, user or monitor" },                                               \
    { "status", FIELD_STR, 0, offsetof(struct params, status), 1, 32,                              \
      .doc = "active, inactive, deleted or before-verification" },                                 \
    { "password", FIELD_STR, FIELD_SECRET, offsetof(struct params, password), 8, 1024 },           \
    { "groups", FIELD_STR_LIST, 0, offsetof(struct params, groups), 0, 256,                        \
      .doc = "ids or names of projects of the domain: all that the user is in" },                  \
    { "total_slots|total_resource_slots", FIELD_OBJECT, 0, offsetof(struct params, total_slots),   \
      .doc = "all that the user's sessions may hold at a time" },                                  \
    { "max_concurrent_sessions", FIELD_INT, 0,                                                     \
      offsetof(struct params, max_concurrent_sessions), 0, 1000000, .doc = "0 = no limit" }

static const struct field create_fields[] = {
    { "email", FIELD_STR, FIELD_REQUIRED, offsetof(struct params, email), 3, 255 },
    { "username", FIELD_STR, FIELD_NULLABLE, offsetof(struct params, username), 1, 64,
      .doc = "the e-mail address unless given" },
    { "domain", FIELD_STR, FIELD_REQUIRED, offsetof(struct params, domain), 1, 64 },
    CHANGES,
    FIELD_END,
};

static const struct field change_fields[] = {
    { "username", FIELD_STR, 0, offsetof(struct params, username), 1, 64 },
    CHANGES,
    FIELD_END,
};

static void write_row(const struct api_list *list, const struct store_page *page, size_t i,
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
    for (size_t g = 0; g < user->group_count; g++) {
        char id[UUID_TEXT_MAX];

        jsonw_str(w, uuid_format(&user->groups[g], id));
    }
    jsonw_array_end(w);
    jsonw_key(w, "total_slots");
    slots_write_json(&user->total_slots, core_slot_types(list->api->core), w);
    jsonw_member_int(w, "max_concurrent_sessions", user->max_concurrent_sessions);
    api_write_time(w, "created_at", page->users[i].created_usec);
    jsonw_object_end(w);
}

static void narrow(const struct principal *who, struct store_query *query)
{
    query->domain = who->domain;
}

static const void *find(const struct core *core, const char *key)
{
    struct uuid id;

    return uuid_parse(key, &id) == 0 ? core_find_user(core, &id)
                                     : core_find_user_by_email(core, key);
}

static const void *find_same(const struct core *core, const void *params)
{
    return core_find_user_by_email(core, ((const struct params *)params)->email);
}

/* The project's row by id or name, if it is the domain's. */
static const struct group *find_group(const struct core *core, const char *domain,
                                      const char *text)
{
    const struct group *group;
    struct uuid id;

    if (uuid_parse(text, &id) < 0)
        return core_find_group_named(core, domain, text);
    group = core_find_group(core, &id);
    return group && strcmp(group->domain, domain) == 0 ? group : NULL;
}

static void fill_groups(struct people_row *row, const struct params *params,
                        const struct user *old, struct user *user)
{
    size_t count = params->groups.items ? params->groups.count : old ? old->group_count : 0;

    if (count && !(user->groups = calloc(count, sizeof(*user->groups)))) {
        aq_fail(&row->err, ENOMEM, "user");
        return;
    }
    user->group_cap = count;
    for (size_t i = 0; i < count; i++) {
        const struct group *group;

        if (!params->groups.items) {
            user->groups[user->group_count++] = old->groups[i];
            continue;
        }
        group = find_group(row->api->core, user->domain, params->groups.items[i]);
        if (!group) {
            api_fail_param(&row->err, "groups", "'%.64s' is no project of domain '%.64s'",
                           params->groups.items[i], user->domain);
            return;
        }
        user->groups[user->group_count++] = group->id;
    }
}

static void fill(struct people_row *row)
{
    const struct params *params = row->params;
    struct user *user = &row->event->user.user;
    const struct user *old = row->old;

    user->role = old ? old->role : ROLE_USER;
    user->status = old ? old->status : USER_ACTIVE;
    if (!old && !core_find_domain(row->api->core, params->domain))
        problem_no_such(&row->err, "domain", "'%.64s' does not exist", params->domain);
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
    user->email = people_text(row, params->email, old ? old->email : NULL);
    user->username = people_text(row, params->username, old ? old->username : params->email);
    user->full_name = people_text(row, params->full_name, old ? old->full_name : NULL);
    user->domain = people_text(row, params->domain, old ? old->domain : NULL);
    people_slots(row, params->total_slots, old ? &old->total_slots : NULL, &user->total_slots);
    user->max_concurrent_sessions = params->max_concurrent_sessions >= 0
                                        ? (int)params->max_concurrent_sessions
                                    : old ? old->max_concurrent_sessions
                                          : 0;
    if (!row->err.code)
        fill_groups(row, params, old, user);
}

static void select_row(struct people_row *row, struct store_query *query)
{
    query->name = people_keep(row, row->event->user.user.email);
}

static const struct people_kind kind = {
    .object = "user",
    .event = EVENT_USER_SAVED,
    .params_size = sizeof(struct params),
    .list = store_list_users,
    .write = write_row,
    .narrow = narrow,
    .find = find,
    .find_same = find_same,
    .fill = fill,
    .select = select_row,
};

/* ---- saving, with the password hashed on a worker thread before ---- */

struct saving {
    struct api *api;
    struct request *req;
    struct event_batch *batch;
    struct api_list *reply;
    const char *password;
    char hash[PASSWORD_HASH_MAX];
};

static int hash_password(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct saving *saving = data;

    (void)tx;
    return password_hash(saving->password, saving->hash, err);
}

static void on_hashed(void *data, int r, const struct aq_error *err)
{
    struct saving *saving = data;
    struct aq_error failed = { 0 };

    if (r == 0 && !(saving->batch->events[0].user.password_hash = strdup(saving->hash))) {
        r = aq_fail(&failed, ENOMEM, "user");
        err = &failed;
    }
    if (r == 0) {
        people_save(saving->api, saving->req, saving->batch, saving->reply);
        return;
    }
    event_batch_free(saving->batch);
    request_fail(saving->req, err);
}

static void save(struct api *api, struct request *req, const char *key)
{
    struct saving *saving = arena_alloc(request_get_arena(req), sizeof(*saving));
    struct params *params = arena_alloc(request_get_arena(req), sizeof(*params));
    struct aq_error err = { 0 };

    if (!saving || !params) {
        aq_fail(&err, ENOMEM, "user");
        request_fail(req, &err);
        return;
    }
    *saving = (struct saving){ .api = api, .req = req };
    *params = (struct params){ .max_concurrent_sessions = -1 };
    if (!people_prepare(api, req, &kind, key, params, &saving->batch, &saving->reply))
        return;
    saving->password = params->password;
    if (!saving->password) {
        people_save(api, req, saving->batch, saving->reply);
    } else if (store_read(core_store(api->core), hash_password, on_hashed, saving) < 0) {
        event_batch_free(saving->batch);
        aq_fail(&err, ENOMEM, "user");
        request_fail(req, &err);
    }
}

static void on_list(struct request *req, void *data)
{
    people_list(data, req, &kind);
}

static void on_create(struct request *req, void *data)
{
    save(data, req, NULL);
}

static void on_change(struct request *req, void *data)
{
    save(data, req, request_get_param(req, "key"));
}

const struct route user_routes[] = {
    { METHOD_GET, "/aliquot/v1/users", API_ADMIN, on_list, people_page_fields, "List users" },
    { METHOD_POST, "/aliquot/v1/users", API_SUPERADMIN, on_create, create_fields, "Make a user" },
    { METHOD_PATCH, "/aliquot/v1/users/{key}", API_SUPERADMIN, on_change, change_fields,
      "Change a user, named by e-mail or id" },
};
API_ROUTES_END(user);
