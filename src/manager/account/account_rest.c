/* SPDX-License-Identifier: Apache-2.0 */
/* Users, keypairs, domains, projects, policies and resource groups: what requests of REST
 * have in common.
 */
#include "manager/account/account.h"

#include <errno.h>
#include <string.h>

/* ---- lists ---- */

struct page_params {
    struct api_page page;
    bool all;
};

const struct field account_page_fields[] = {
    API_PAGE_FIELDS(struct page_params),
    { "all", FIELD_BOOL, 0, offsetof(struct page_params, all), .doc = "removed ones, too" },
    FIELD_END,
};

void account_narrow_nothing(const struct principal *who, struct store_query *query)
{
    (void)who;
    (void)query;
}

static void account_hide(const struct account_kind *kind, struct store_query *query)
{
    if (kind->noun && kind->purge == PURGE_USER)
        query->statuses = (2u << USER_BEFORE_VERIFICATION) - 1 - (1u << USER_DELETED);
    else if (kind->noun)
        query->is_active = 1;
}

void account_list(const struct api *api, struct request *req,
                  const struct account_resource *resource)
{
    struct page_params params = { .page.limit = API_LIST_DEFAULT };
    struct api_list *list = api_list_new(api, req);
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    api_page_apply(&params.page, &list->query);
    if (!params.all)
        account_hide(resource->kind, &list->query);
    list->list = resource->kind->list;
    list->write = resource->write;
    if (!principal_is_superadmin(api_principal(req)))
        resource->narrow(api_principal(req), &list->query);
    api_list_start(list);
}

void account_write_row(const struct api_list *list, const struct entity *entity, const void *row,
                       int64_t created_usec, struct jsonw *w)
{
    jsonw_object_begin(w);
    entity_write_json(entity, row, 0, core_slot_types(list->api->core), w);
    api_write_time(w, "created_at", created_usec);
    jsonw_object_end(w);
}

/* ---- new and changed rows ---- */

struct account_change *account_begin(struct api *api, struct request *req,
                                     const struct account_kind *kind)
{
    return account_change_new(api, request_get_arena(req), kind);
}

bool account_apply_body(struct account_change *change, struct request *req, const char *key)
{
    struct aq_error err = { 0 };
    json_auto_t *body = NULL;

    if (api_parse(req, &body, &err) == 0 && account_change_row(change, key, body, &err) == 0)
        return true;
    account_end(change, req, &err);
    return false;
}

void account_end(struct account_change *change, struct request *req, const struct aq_error *err)
{
    account_change_drop(change);
    request_fail(req, err);
}

void account_save(struct account_change *change, struct request *req, core_done_fn done, void *data)
{
    const struct audit_who *by = api_who(change->api, req);
    struct aq_error err = { 0 };

    if (account_change_ends_logins(change, by))
        api_say_login_ended(req);
    if (account_change_save(change, by, done, data, &err) < 0)
        request_fail(req, &err);
}

static void account_on_saved(void *data, int r, const struct aq_error *err)
{
    struct api_list *reply = data;

    if (r < 0)
        request_fail(reply->req, err);
    else
        api_list_start(reply);
}

/* Save, then answer with the row. */
static void account_save_row(struct account_change *change, struct request *req,
                             const struct account_resource *resource, int status)
{
    struct api_list *reply = api_list_new(change->api, req);

    reply->query = change->query;
    reply->list = resource->kind->list;
    reply->write = resource->write;
    reply->one_of = resource->kind->object;
    reply->status = status;
    reply->is_answer = true;
    account_save(change, req, account_on_saved, reply);
}

void account_create(struct api *api, struct request *req, const struct account_resource *resource)
{
    struct account_change *change = account_begin(api, req, resource->kind);
    struct aq_error err = { 0 };

    if (!account_apply_body(change, req, NULL))
        return;
    /* Logins and clients use a keypair, so a user has one from the start. */
    if (resource->kind == &account_user && account_change_add_keypair(change, NULL, &err) < 0)
        account_end(change, req, &err);
    else
        account_save_row(change, req, resource, 201);
}

void account_modify(struct api *api, struct request *req, const struct account_resource *resource)
{
    struct account_change *change = account_begin(api, req, resource->kind);

    if (account_apply_body(change, req, request_get_param(req, "key")))
        account_save_row(change, req, resource, 200);
}

/* ---- removal ---- */

const struct field account_removal_fields[] = {
    { "force", FIELD_BOOL, 0, offsetof(struct account_removal, force),
      .doc = "end its live sessions" },
    { "purge", FIELD_BOOL, 0, offsetof(struct account_removal, purge),
      .doc = "remove the row and what is attached to it for good; not while sessions are live" },
    { "dry_run", FIELD_BOOL, 0, offsetof(struct account_removal, dry_run),
      .doc = "change nothing, say what would be done" },
    FIELD_END,
};

struct account_deletion {
    struct account_removal removal;
    struct request *req;
};

static void account_on_removed(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct account_deletion *deletion = data;
    const struct account_removal *removal = &deletion->removal;
    struct jsonw w = jsonw_make(&out);

    if (r < 0) {
        request_fail(deletion->req, err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "name", removal->name);
    jsonw_member_str(&w, "status", removal->purge ? "purged" : "removed");
    jsonw_member_bool(&w, "dry_run", removal->dry_run);
    jsonw_member_int(&w, "live_sessions", (int64_t)removal->sessions);
    jsonw_member_int(&w, "keypairs", removal->plan.keypairs);
    jsonw_member_int(&w, "memberships", removal->plan.memberships);
    jsonw_member_int(&w, "projects", removal->plan.projects);
    jsonw_member_int(&w, "resource_group_access", removal->plan.grants);
    jsonw_member_int(&w, "ended_sessions", removal->plan.ended_sessions);
    jsonw_object_end(&w);
    request_reply_json(deletion->req, 200, &out);
}

void account_delete(struct api *api, struct request *req, const struct account_resource *resource)
{
    struct account_deletion *deletion = arena_alloc(request_get_arena(req), sizeof(*deletion));
    struct aq_error err = { 0 };

    *deletion = (struct account_deletion){ .removal = { .api = api,
                                                        .arena = request_get_arena(req),
                                                        .who = api_principal(req),
                                                        .by = api_who(api, req),
                                                        .kind = resource->kind,
                                                        .key = request_get_param(req, "key"),
                                                        .done = account_on_removed,
                                                        .data = deletion },
                                           .req = req };
    if (api_decode(req, &deletion->removal, NULL, &err) < 0)
        request_fail(req, &err);
    else
        account_remove(&deletion->removal);
}

void account_restore(struct api *api, struct request *req, const struct account_resource *resource)
{
    struct account_change *change;
    struct aq_error err = { 0 };

    if (!api_has_no_params(req))
        return;
    change = account_begin(api, req, resource->kind);
    if (account_change_row(change, request_get_param(req, "key"), NULL, &err) < 0) {
        account_end(change, req, &err);
        return;
    }
    account_set_hidden(resource->kind, &change->batch->events[0], false);
    account_save_row(change, req, resource, 200);
}
