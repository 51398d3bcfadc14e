/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of /aliquot/v1/keypairs. */
#include "manager/api/accounts.h"
#include "manager/api/resources.h"

static void keypair_write_members(const struct keypair *key, const char *email, struct jsonw *w)
{
    jsonw_member_str(w, "access_key", key->access_key);
    jsonw_member_str(w, "user", email);
    api_write_uuid(w, "user_id", &key->user_id);
    jsonw_member_bool(w, "is_active", key->is_active);
    jsonw_member_bool(w, "is_admin", key->is_admin);
    jsonw_member_str(w, "policy", key->policy);
    jsonw_member_int(w, "rate_limit", key->rate_limit);
    jsonw_member_str(w, "ssh_public_key", key->ssh_public_key);
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

static const struct account_resource keypair_resource = {
    .kind = &account_keypair,
    .write = keypair_write_row,
    .narrow = keypair_narrow,
};

ACCOUNT_HANDLER(keypair, list, account_list)
ACCOUNT_HANDLER(keypair, change, account_modify)

/* ---- a new one: its secret is shown this once ---- */

struct keypair_creation {
    struct request *req;
    const struct account_change *change;
};

static void keypair_on_created(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct keypair_creation *creation = data;
    const struct core *core = creation->change->api->core;
    struct jsonw w = jsonw_make(&out);
    const struct keypair *key;
    const struct user *user;

    if (r < 0) {
        request_fail(creation->req, err);
        return;
    }
    key = core_find_keypair(core, creation->change->query.access_key);
    user = key ? core_find_user(core, &key->user_id) : NULL;
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
    struct account_change *change = account_begin(data, req, &account_keypair);
    struct aq_error err = { 0 };

    if (!change)
        return;
    if (!creation) {
        aq_fail_oom(&err);
        account_end(change, req, &err);
        return;
    }
    *creation = (struct keypair_creation){ req, change };
    if (account_apply_body(change, req, NULL))
        account_save(change, req, keypair_on_created, creation);
}

/* ---- removal ---- */

static void keypair_on_remove(struct request *req, void *data)
{
    struct account_change *change;
    struct aq_error err = { 0 };

    if (!api_has_no_params(req) || !(change = account_begin(data, req, &account_keypair)))
        return;
    if (account_change_remove_keypair(change, request_get_param(req, "key"), &err) < 0)
        account_end(change, req, &err);
    else
        account_save(change, req, api_reply_done, req);
}

const struct route keypair_routes[] = {
    { METHOD_GET, "/aliquot/v1/keypairs", API_ADMIN, keypair_on_list, account_page_fields,
      "List keypairs, without secrets" },
    { METHOD_POST, "/aliquot/v1/keypairs", API_SUPERADMIN, keypair_on_create,
      account_keypair_create, "Make a keypair for a user", .answer = { 201 } },
    { METHOD_PATCH, "/aliquot/v1/keypairs/{key}", API_SUPERADMIN, keypair_on_change,
      account_keypair_change, "Change a keypair" },
    { METHOD_DELETE, "/aliquot/v1/keypairs/{key}", API_SUPERADMIN, keypair_on_remove, NULL,
      "Remove a keypair", .answer = { 204 } },
};
API_ROUTES_END(keypair);
