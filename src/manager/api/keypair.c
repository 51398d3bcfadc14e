/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers and fields of /aliquot/v1/keypairs. */
/* /aliquot/v1/keypairs */
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "base/clock.h"
#include "manager/api/accounts.h"
#include "manager/api/resources.h"

#define RATE_LIMIT_DEFAULT 10000
#define UNSET (-1)

struct keypair_params {
    const char *user, *policy;
    enum maybe is_active, is_admin;
    int64_t rate_limit;
};

/* clang-format off */
#define CHANGES                                                                                    \
    { "policy|resource_policy", FIELD_STR, 0, offsetof(struct keypair_params, policy), 1, 256 },           \
    { "is_active", FIELD_MAYBE, 0, offsetof(struct keypair_params, is_active) },                           \
    { "is_admin", FIELD_MAYBE, 0, offsetof(struct keypair_params, is_admin) },                             \
    { "rate_limit", FIELD_INT, 0, offsetof(struct keypair_params, rate_limit), 0, 1000000000,              \
      .doc = "requests in 15 minutes; 0 = no limit" }
/* clang-format on */

static const struct field create_fields[] = {
    { "user", FIELD_STR, FIELD_REQUIRED, offsetof(struct keypair_params, user), 1, 255,
      .doc = "e-mail address or id" },
    CHANGES,
    FIELD_END,
};

static const struct field change_fields[] = { CHANGES, FIELD_END };

static void keypair_write_members(const struct keypair *key, const char *email, struct jsonw *w)
{
    jsonw_member_str(w, "access_key", key->access_key);
    jsonw_member_str(w, "user", email);
    api_write_uuid(w, "user_id", &key->user_id);
    jsonw_member_bool(w, "is_active", key->is_active);
    jsonw_member_bool(w, "is_admin", key->is_admin);
    jsonw_member_str(w, "policy", key->policy);
    jsonw_member_int(w, "rate_limit", key->rate_limit);
}

static void keypair_write_row(const struct api_list *list, const struct store_page *page, size_t i,
                              struct jsonw *w)
{
    const struct keypair_row *row = &page->keypairs[i];
    int64_t seen = core_key_used(list->api->core, row->keypair.access_key);

    jsonw_object_begin(w);
    keypair_write_members(&row->keypair, row->user_email, w);
    api_write_time(w, "created_at", row->created_usec);
    api_write_time(w, "last_used", AQ_MAX(row->used_usec, seen));
    jsonw_object_end(w);
}

static void keypair_narrow(const struct principal *who, struct store_query *query)
{
    query->domain = who->domain;
}

static const void *keypair_find(const struct core *core, const char *key)
{
    return core_find_keypair(core, key);
}

static void keypair_make_keys(struct keypair *key)
{
    static const char base32[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    unsigned char secret[30];

    memcpy(key->access_key, "AKIA", 4);
    for (size_t i = 4; i < ACCESS_KEY_MAX - 1; i++)
        key->access_key[i] = base32[randombytes_uniform(32)];
    randombytes_buf(secret, sizeof(secret));
    sodium_bin2base64(key->secret_key, sizeof(key->secret_key), secret, sizeof(secret),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero(secret, sizeof(secret));
}

static void keypair_fill_owner(struct account_row *row, const char *text, struct keypair *key)
{
    const struct core *core = row->api->core;
    const struct user *user;
    struct uuid id;

    user = uuid_parse(text, &id) == 0 ? core_find_user(core, &id)
                                      : core_find_user_by_email(core, text);
    if (!user) {
        problem_no_such(&row->err, "user", "there is no user '%.64s'", text);
        return;
    }
    key->user_id = user->id;
    keypair_make_keys(key);
}

static bool keypair_may_get(struct account_row *row, const char *name)
{
    const struct keypair_policy *policy = core_find_policy(row->api->core, name);

    if (!policy)
        problem_no_such(&row->err, "keypair resource policy",
                        "there is no keypair resource policy '%.64s'", name);
    else if (!policy->is_active)
        api_fail_param(&row->err, "policy", "'%.64s' was removed; restore it first", name);
    return !row->err.code;
}

static void keypair_fill(struct account_row *row)
{
    static const struct keypair fresh = { .is_active = true, .rate_limit = RATE_LIMIT_DEFAULT };
    const struct keypair_params *params = row->params;
    const struct keypair *old = row->old ? row->old : &fresh;
    struct keypair *key = &row->event->keypair;

    if (params->policy && !keypair_may_get(row, params->policy))
        return;
    *key = *old;
    key->policy = NULL;
    key->is_active = account_bool(params->is_active, old->is_active);
    key->is_admin = account_bool(params->is_admin, old->is_admin);
    if (params->rate_limit != UNSET)
        key->rate_limit = (int)params->rate_limit;
    key->policy = account_text(row, params->policy, old->policy ? old->policy : "default");
    if (!row->old)
        keypair_fill_owner(row, params->user, key);
}

static void keypair_select_row(struct account_row *row, struct store_query *query)
{
    query->access_key = account_keep(row, row->event->keypair.access_key);
}

static const struct keypair_params defaults = { .rate_limit = UNSET };

static const struct account_kind keypair_kind = {
    .object = "keypair",
    .event = EVENT_KEYPAIR_SAVED,
    .params_size = sizeof(struct keypair_params),
    .defaults = &defaults,
    .list = store_list_keypairs,
    .write = keypair_write_row,
    .narrow = keypair_narrow,
    .find = keypair_find,
    .fill = keypair_fill,
    .select = keypair_select_row,
};

static void keypair_on_list(struct request *req, void *data)
{
    account_list(data, req, &keypair_kind);
}

static void keypair_on_change(struct request *req, void *data)
{
    account_change(data, req, &keypair_kind, request_get_param(req, "key"));
}

/* ---- a new one: its secret is shown this once ---- */

struct keypair_creation {
    struct api *api;
    struct request *req;
    char access_key[ACCESS_KEY_MAX];
};

static void keypair_on_created(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct keypair_creation *creation = data;
    struct jsonw w = jsonw_make(&out);
    const struct keypair *key = NULL;
    const struct user *user;

    if (r < 0) {
        request_fail(creation->req, err);
        return;
    }
    key = core_find_keypair(creation->api->core, creation->access_key);
    user = key ? core_find_user(creation->api->core, &key->user_id) : NULL;
    jsonw_object_begin(&w);
    if (key) {
        keypair_write_members(key, user ? user->email : NULL, &w);
        jsonw_member_str(&w, "secret_key", key->secret_key);
    }
    jsonw_object_end(&w);
    request_reply_json(creation->req, 201, &out);
}

static void keypair_on_create(struct request *req, void *data)
{
    struct keypair_creation *creation = arena_alloc(request_get_arena(req), sizeof(*creation));
    struct keypair_params *params = arena_alloc(request_get_arena(req), sizeof(*params));
    struct event_batch *batch;
    struct api_list *reply;
    struct api *api = data;
    struct aq_error err = { 0 };

    if (!creation || !params) {
        aq_fail_oom(&err);
        request_fail(req, &err);
        return;
    }
    *params = defaults;
    if (!account_prepare(api, req, &keypair_kind, NULL, params, &batch, &reply))
        return;
    *creation = (struct keypair_creation){ .api = api, .req = req };
    memcpy(creation->access_key, batch->events[0].keypair.access_key, ACCESS_KEY_MAX);
    core_save(api->core, batch, keypair_on_created, creation);
}

/* ---- removal ---- */

static void keypair_on_remove(struct request *req, void *data)
{
    const char *access_key = request_get_param(req, "key");
    AQ_CLEANUP(event_batch_freep) struct event_batch *batch = event_batch_new();
    const struct keypair *key;
    struct event *event;
    struct api *api = data;
    struct aq_error err = { 0 };

    if (api_decode(req, NULL, NULL, &err) == 0) {
        if (!(key = core_find_keypair(api->core, access_key)))
            problem_no_such(&err, "keypair", "there is no keypair '%.64s'", access_key);
        else if (!batch
                 || !(event = event_batch_add(batch, EVENT_KEYPAIR_REMOVED, clock_realtime_usec())))
            aq_fail_oom(&err);
        else
            memcpy(event->keypair.access_key, key->access_key, ACCESS_KEY_MAX);
    }
    if (err.code)
        request_fail(req, &err);
    else
        account_save(api, req, AQ_TAKE(batch), NULL);
}

const struct route keypair_routes[] = {
    { METHOD_GET, "/aliquot/v1/keypairs", API_ADMIN, keypair_on_list, account_page_fields,
      "List keypairs, without secrets" },
    { METHOD_POST, "/aliquot/v1/keypairs", API_SUPERADMIN, keypair_on_create, create_fields,
      "Make a keypair for a user" },
    { METHOD_PATCH, "/aliquot/v1/keypairs/{key}", API_SUPERADMIN, keypair_on_change, change_fields,
      "Change a keypair" },
    { METHOD_DELETE, "/aliquot/v1/keypairs/{key}", API_SUPERADMIN, keypair_on_remove, NULL,
      "Remove a keypair" },
};
API_ROUTES_END(keypair);
