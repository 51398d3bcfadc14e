/* SPDX-License-Identifier: Apache-2.0 */
/* Users, keypairs, domains, projects, policies and resource groups: list, make and change
 * rows.
 */
#include "manager/api/accounts.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"

/* ---- parts of a row ---- */

char *account_text(struct account_row *row, const char *given, const char *old)
{
    const char *text = given ? given : old;
    char *copy = text ? strdup(text) : NULL;

    if (text && !copy)
        aq_fail_oom(&row->err);
    return copy;
}

const char *account_keep(struct account_row *row, const char *text)
{
    const char *copy = text ? arena_strdup(row->arena, text) : NULL;

    if (text && !copy)
        aq_fail_oom(&row->err);
    return copy;
}

void account_slots(struct account_row *row, const json_t *given, const struct slots *old,
                   struct slots *ret)
{
    if (given) {
        if (slots_from_json(given, core_slot_types(row->api->core), ret, &row->err) == -EINVAL)
            row->err.kind = "invalid-api-params";
    } else if (old && slots_copy(ret, old) < 0) {
        aq_fail_oom(&row->err);
    }
}

bool account_bool(enum maybe given, bool old)
{
    return given == MAYBE_UNSET ? old : given == MAYBE_TRUE;
}

int accounts_copy_user(struct user *ret, const struct user *user)
{
    struct account_row row = { 0 };

    ret->id = user->id;
    ret->role = user->role;
    ret->status = user->status;
    ret->max_concurrent_sessions = user->max_concurrent_sessions;
    ret->username = account_text(&row, user->username, NULL);
    ret->email = account_text(&row, user->email, NULL);
    ret->full_name = account_text(&row, user->full_name, NULL);
    ret->domain = account_text(&row, user->domain, NULL);
    account_slots(&row, NULL, &user->total_slots, &ret->total_slots);
    if (row.err.code)
        return -ENOMEM;
    if (user->project_count == 0)
        return 0;
    if (!(ret->project_ids = calloc(user->project_count, sizeof(*ret->project_ids))))
        return -ENOMEM;
    memcpy(ret->project_ids, user->project_ids, user->project_count * sizeof(*ret->project_ids));
    ret->project_count = ret->project_cap = user->project_count;
    return 0;
}

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

void account_list(const struct api *api, struct request *req, const struct account_kind *kind)
{
    struct page_params params = { .page.limit = API_LIST_DEFAULT };
    struct api_list *list = api_list_new(api, req);
    struct aq_error err = { 0 };

    if (!list)
        return;
    if (api_decode(req, &params, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    api_page_apply(&params.page, &list->query);
    if (!params.all)
        account_hide(kind, &list->query);
    list->list = kind->list;
    list->write = kind->write;
    if (!principal_is_superadmin(api_principal(req)))
        kind->narrow(api_principal(req), &list->query);
    api_list_start(list);
}

/* ---- new and changed rows ---- */

static void account_on_saved(void *data, int r, const struct aq_error *err)
{
    struct api_list *reply = data;

    AQ_FAULT("api.accounts.durable");
    if (r < 0)
        request_fail(reply->req, err);
    else
        api_list_start(reply);
}

void account_save(struct api *api, struct request *req, struct event_batch *batch,
                  struct api_list *reply)
{
    AQ_FAULT("api.accounts.decoded");
    if (reply)
        core_save(api->core, batch, account_on_saved, reply);
    else
        core_save(api->core, batch, api_reply_done, req);
}

/* The living row to change, or none to collide with. */
static int account_find_old(struct account_row *row, const struct account_kind *kind)
{
    const void *same = !row->key && kind->find_same ? kind->find_same(row->api->core, row->params)
                                                    : NULL;

    if (same && kind->noun && account_is_hidden(kind, same))
        return aq_fail_kind(&row->err, EEXIST, "generic-bad-request",
                            "this %s exists already, but was removed; restore or purge it",
                            kind->noun);
    if (same)
        return aq_fail_kind(&row->err, EEXIST, "generic-bad-request", "this %s exists already",
                            kind->object);
    if (!row->key)
        return 0;
    if (!(row->old = kind->find(row->api->core, row->key)))
        return problem_no_such(&row->err, kind->object, "there is no %s '%.64s'",
                               kind->noun ? kind->noun : kind->object, row->key);
    return 0;
}

static struct api_list *account_reply_for(struct account_row *row, const struct account_kind *kind,
                                          struct request *req)
{
    struct api_list *reply = api_list_new(row->api, req);

    if (!reply)
        return NULL;
    reply->list = kind->list;
    reply->write = kind->write;
    reply->one_of = kind->object;
    reply->status = row->old ? 200 : 201;
    kind->select(row, &reply->query);
    return reply;
}

bool account_prepare(struct api *api, struct request *req, const struct account_kind *kind,
                     const char *key, void *params, struct event_batch **ret_batch,
                     struct api_list **ret_reply)
{
    struct account_row row = {
        .api = api, .arena = request_get_arena(req), .params = params, .key = key
    };
    AQ_CLEANUP(event_batch_freep) struct event_batch *batch = event_batch_new();
    json_auto_t *tree = NULL;

    if (!params || !batch
        || !(row.event = event_batch_add(batch, kind->event, clock_realtime_usec())))
        aq_fail_oom(&row.err);
    else if (api_decode(req, params, &tree, &row.err) == 0 && account_find_old(&row, kind) == 0)
        kind->fill(&row);
    if (row.err.code) {
        request_fail(req, &row.err);
        return false;
    }
    if (!(*ret_reply = account_reply_for(&row, kind, req)))
        return false;
    if (row.err.code) {
        request_fail(req, &row.err);
        return false;
    }
    *ret_batch = AQ_TAKE(batch);
    return true;
}

void *account_new_params(struct request *req, const struct account_kind *kind)
{
    void *params = arena_alloc(request_get_arena(req), kind->params_size);

    if (params && kind->defaults)
        memcpy(params, kind->defaults, kind->params_size);
    return params;
}

struct event_batch *account_copy(struct api *api, struct request *req,
                                 const struct account_kind *kind, const char *key,
                                 struct aq_error *err)
{
    AQ_CLEANUP(event_batch_freep) struct event_batch *batch = event_batch_new();
    struct account_row row = { .api = api,
                               .arena = request_get_arena(req),
                               .params = account_new_params(req, kind),
                               .key = key };

    if (!row.params || !batch
        || !(row.event = event_batch_add(batch, kind->event, clock_realtime_usec())))
        aq_fail_oom(&row.err);
    else if (account_find_old(&row, kind) == 0)
        kind->fill(&row);
    if (!row.err.code)
        return AQ_TAKE(batch);
    *err = row.err;
    return NULL;
}

static void account_save_row(struct api *api, struct request *req, const struct account_kind *kind,
                             const char *key)
{
    struct event_batch *batch;
    struct api_list *reply;

    if (account_prepare(api, req, kind, key, account_new_params(req, kind), &batch, &reply))
        account_save(api, req, batch, reply);
}

void account_create(struct api *api, struct request *req, const struct account_kind *kind)
{
    account_save_row(api, req, kind, NULL);
}

void account_change(struct api *api, struct request *req, const struct account_kind *kind,
                    const char *key)
{
    account_save_row(api, req, kind, key);
}
