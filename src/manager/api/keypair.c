/* /aliquot/v1/keypairs */
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "base/clock.h"
#include "manager/api/people.h"

#define RATE_LIMIT_DEFAULT 10000
#define UNSET (-1)

struct params {
    const char *user, *policy;
    enum maybe is_active, is_admin;
    int64_t rate_limit;
};

#define CHANGES                                                                                    \
    { "policy|resource_policy", FIELD_STR, 0, offsetof(struct params, policy), 1, 256 },           \
    { "is_active", FIELD_MAYBE, 0, offsetof(struct params, is_active) },                           \
    { "is_admin", FIELD_MAYBE, 0, offsetof(struct params, is_admin) },                             \
    { "rate_limit", FIELD_INT, 0, offsetof(struct params, rate_limit), 0, 1000000000,              \
      .doc = "requests in 15 minutes; 0 = no limit" }

static const struct field create_fields[] = {
    { "user", FIELD_STR, FIELD_REQUIRED, offsetof(struct params, user), 1, 255,
      .doc = "e-mail address or id" },
    CHANGES,
    FIELD_END,
};

static const struct field change_fields[] = { CHANGES, FIELD_END };

static void write_members(const struct keypair *key, const char *email, struct jsonw *w)
{
    jsonw_member_str(w, "access_key", key->access_key);
    jsonw_member_str(w, "user", email);
    api_write_uuid(w, "user_id", &key->user_id);
    jsonw_member_bool(w, "is_active", key->is_active);
    jsonw_member_bool(w, "is_admin", key->is_admin);
    jsonw_member_str(w, "policy", key->policy);
    jsonw_member_int(w, "rate_limit", key->rate_limit);
}

static void write_row(const struct api_list *list, const struct store_page *page, size_t i,
                      struct jsonw *w)
{
    const struct keypair_row *row = &page->keypairs[i];

    (void)list;
    jsonw_object_begin(w);
    write_members(&row->keypair, row->user_email, w);
    api_write_time(w, "created_at", row->created_usec);
    jsonw_object_end(w);
}

static void narrow(const struct principal *who, struct store_query *query)
{
    query->domain = who->domain;
}

static const void *find(const struct core *core, const char *key)
{
    return core_find_keypair(core, key);
}

static void make_keys(struct keypair *key)
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

static void fill_owner(struct people_row *row, const char *text, struct keypair *key)
{
    const struct core *core = row->api->core;
    const struct user *user;
    struct uuid id;

    user = uuid_parse(text, &id) == 0 ? core_find_user(core, &id)
                                      : core_find_user_by_email(core, text);
    if (!user) {
        problem_no_such(&row->err, "user", "'%.64s' does not exist", text);
        return;
    }
    key->user_id = user->id;
    make_keys(key);
}

static void fill(struct people_row *row)
{
    static const struct keypair fresh = { .is_active = true, .rate_limit = RATE_LIMIT_DEFAULT };
    const struct params *params = row->params;
    const struct keypair *old = row->old ? row->old : &fresh;
    struct keypair *key = &row->event->keypair;

    if (params->policy && !core_find_policy(row->api->core, params->policy)) {
        problem_no_such(&row->err, "keypair resource policy", "'%.64s' does not exist",
                        params->policy);
        return;
    }
    *key = *old;
    key->policy = NULL;
    key->is_active = people_bool(params->is_active, old->is_active);
    key->is_admin = people_bool(params->is_admin, old->is_admin);
    if (params->rate_limit != UNSET)
        key->rate_limit = (int)params->rate_limit;
    key->policy = people_text(row, params->policy, old->policy ? old->policy : "default");
    if (!row->old)
        fill_owner(row, params->user, key);
}

static void select_row(struct people_row *row, struct store_query *query)
{
    query->access_key = people_keep(row, row->event->keypair.access_key);
}

static const struct params defaults = { .rate_limit = UNSET };

static const struct people_kind kind = {
    .object = "keypair",
    .event = EVENT_KEYPAIR_SAVED,
    .params_size = sizeof(struct params),
    .defaults = &defaults,
    .list = store_list_keypairs,
    .write = write_row,
    .narrow = narrow,
    .find = find,
    .fill = fill,
    .select = select_row,
};

static void on_list(struct request *req, void *data)
{
    people_list(data, req, &kind);
}

static void on_change(struct request *req, void *data)
{
    people_change(data, req, &kind, request_get_param(req, "key"));
}

/* ---- a new one: its secret is shown this once ---- */

struct creation {
    struct api *api;
    struct request *req;
    char access_key[ACCESS_KEY_MAX];
};

static void on_created(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct creation *creation = data;
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
        write_members(key, user ? user->email : NULL, &w);
        jsonw_member_str(&w, "secret_key", key->secret_key);
    }
    jsonw_object_end(&w);
    request_reply_json(creation->req, 201, &out);
}

static void on_create(struct request *req, void *data)
{
    struct creation *creation = arena_alloc(request_get_arena(req), sizeof(*creation));
    struct params *params = arena_alloc(request_get_arena(req), sizeof(*params));
    struct event_batch *batch;
    struct api_list *reply;
    struct api *api = data;
    struct aq_error err = { 0 };

    if (!creation || !params) {
        aq_fail(&err, ENOMEM, "keypair");
        request_fail(req, &err);
        return;
    }
    *params = defaults;
    if (!people_prepare(api, req, &kind, NULL, params, &batch, &reply))
        return;
    *creation = (struct creation){ .api = api, .req = req };
    memcpy(creation->access_key, batch->events[0].keypair.access_key, ACCESS_KEY_MAX);
    core_save(api->core, batch, on_created, creation);
}

/* ---- removal ---- */

static void on_remove(struct request *req, void *data)
{
    const char *access_key = request_get_param(req, "key");
    AQ_CLEANUP(event_batch_freep) struct event_batch *batch = event_batch_new();
    const struct keypair *key;
    struct event *event;
    struct api *api = data;
    struct aq_error err = { 0 };

    if (api_decode(req, NULL, NULL, &err) == 0) {
        if (!(key = core_find_keypair(api->core, access_key)))
            problem_no_such(&err, "keypair", "'%.64s' does not exist", access_key);
        else if (!batch || !(event = event_batch_add(batch, EVENT_KEYPAIR_REMOVED,
                                                     clock_realtime_usec())))
            aq_fail(&err, ENOMEM, "keypair");
        else
            memcpy(event->keypair.access_key, key->access_key, ACCESS_KEY_MAX);
    }
    if (err.code)
        request_fail(req, &err);
    else
        people_save(api, req, AQ_TAKE(batch), NULL);
}

const struct route keypair_routes[] = {
    { METHOD_GET, "/aliquot/v1/keypairs", API_ADMIN, on_list, people_page_fields,
      "List keypairs, without secrets" },
    { METHOD_POST, "/aliquot/v1/keypairs", API_SUPERADMIN, on_create, create_fields,
      "Make a keypair for a user" },
    { METHOD_PATCH, "/aliquot/v1/keypairs/{key}", API_SUPERADMIN, on_change, change_fields,
      "Change a keypair" },
    { METHOD_DELETE, "/aliquot/v1/keypairs/{key}", API_SUPERADMIN, on_remove, NULL,
      "Remove a keypair" },
};
API_ROUTES_END(keypair);
