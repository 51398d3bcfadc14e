/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of /aliquot/v1/keypairs. */
#include "manager/account/account.h"
#include "manager/account/account_feature.h"

static void keypair_write_members(const struct api_list *list, const struct keypair_row *row,
                                  struct jsonw *w)
{
    const struct keypair *key = &row->keypair;

    jsonw_member_str(w, "access_key", key->access_key);
    jsonw_member_str(w, "user", row->user_email);
    entity_write_json(&keypair_entity, key, FIELD_UNSHOWN, NULL, w);
    api_write_time(w, "created_at", row->created_usec);
    api_write_time(w, "last_used",
                   AQ_MAX(row->used_usec, core_key_used(list->api->core, key->access_key)));
}

static void keypair_write_row(const struct api_list *list, const struct store_page *page, size_t i,
                              struct jsonw *w)
{
    jsonw_object_begin(w);
    keypair_write_members(list, &page->keypairs[i], w);
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

static void keypair_write_new(const struct api_list *list, const struct store_page *page, size_t i,
                              struct jsonw *w)
{
    const struct keypair_row *row = &page->keypairs[i];
    const struct keypair *key = core_find_keypair(list->api->core, row->keypair.access_key);

    jsonw_object_begin(w);
    keypair_write_members(list, row, w);
    jsonw_member_str(w, "secret_key", key ? key->secret_key : NULL);
    jsonw_object_end(w);
}

static const struct account_resource keypair_new_resource = {
    .kind = &account_keypair,
    .write = keypair_write_new,
};

ACCOUNT_HANDLER(keypair_new, create, account_create)

/* ---- removal ---- */

static void keypair_on_remove(struct request *req, void *data)
{
    struct account_change *change;
    struct aq_error err = { 0 };

    if (!api_has_no_params(req))
        return;
    change = account_begin(data, req, &account_keypair);
    if (account_change_remove_keypair(change, request_get_param(req, "key"), &err) < 0)
        account_end(change, req, &err);
    else
        account_save(change, req, api_reply_done, req);
}

static const struct route keypair_routes[] = {
    { METHOD_GET, "/aliquot/v1/keypairs", API_ADMIN, keypair_on_list, account_page_fields,
      "List keypairs, without secrets" },
    { METHOD_POST, "/aliquot/v1/keypairs", API_SUPERADMIN, keypair_new_on_create, keypair_create,
      "Make a keypair for a user", .answer = { 201 } },
    { METHOD_PATCH, "/aliquot/v1/keypairs/{key}", API_SUPERADMIN, keypair_on_change, keypair_change,
      "Change a keypair" },
    { METHOD_DELETE, "/aliquot/v1/keypairs/{key}", API_SUPERADMIN, keypair_on_remove, NULL,
      "Remove a keypair", .answer = { 204 } },
};
API_ROUTES_END(keypair);
