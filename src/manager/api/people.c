#include "manager/api/people.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"

/* ---- parts of a row ---- */

char *people_text(struct people_row *row, const char *given, const char *old)
{
    const char *text = given ? given : old;
    char *copy = text ? strdup(text) : NULL;

    if (text && !copy)
        aq_fail(&row->err, ENOMEM, "row");
    return copy;
}

const char *people_keep(struct people_row *row, const char *text)
{
    const char *copy = text ? arena_strdup(row->arena, text) : NULL;

    if (text && !copy)
        aq_fail(&row->err, ENOMEM, "row");
    return copy;
}

void people_slots(struct people_row *row, const json_t *given, const struct slots *old,
                  struct slots *ret)
{
    if (given) {
        if (slots_from_json(given, core_slot_types(row->api->core), ret, &row->err) == -EINVAL)
            row->err.kind = "invalid-api-params";
    } else if (old && slots_copy(ret, old) < 0) {
        aq_fail(&row->err, ENOMEM, "row");
    }
}

bool people_bool(enum maybe given, bool old)
{
    return given == MAYBE_UNSET ? old : given == MAYBE_TRUE;
}

int people_copy_user(struct user *ret, const struct user *user)
{
    struct people_row row = { 0 };

    ret->id = user->id;
    ret->role = user->role;
    ret->status = user->status;
    ret->max_concurrent_sessions = user->max_concurrent_sessions;
    ret->username = people_text(&row, user->username, NULL);
    ret->email = people_text(&row, user->email, NULL);
    ret->full_name = people_text(&row, user->full_name, NULL);
    ret->domain = people_text(&row, user->domain, NULL);
    people_slots(&row, NULL, &user->total_slots, &ret->total_slots);
    if (row.err.code)
        return -ENOMEM;
    if (user->group_count == 0)
        return 0;
    if (!(ret->groups = calloc(user->group_count, sizeof(*ret->groups))))
        return -ENOMEM;
    memcpy(ret->groups, user->groups, user->group_count * sizeof(*ret->groups));
    ret->group_count = ret->group_cap = user->group_count;
    return 0;
}

/* ---- lists ---- */

struct page_params {
    struct api_page page;
};

const struct field people_page_fields[] = {
    API_PAGE_FIELDS(struct page_params),
    FIELD_END,
};

void people_narrow_nothing(const struct principal *who, struct store_query *query)
{
    (void)who;
    (void)query;
}

void people_list(const struct api *api, struct request *req, const struct people_kind *kind)
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
    list->list = kind->list;
    list->write = kind->write;
    if (!principal_is_superadmin(api_principal(req)))
        kind->narrow(api_principal(req), &list->query);
    api_list_start(list);
}

/* ---- new and changed rows ---- */

static void on_saved(void *data, int r, const struct aq_error *err)
{
    struct api_list *reply = data;

    AQ_FAULT("api.people.durable");
    if (r < 0)
        request_fail(reply->req, err);
    else
        api_list_start(reply);
}

void people_save(struct api *api, struct request *req, struct event_batch *batch,
                 struct api_list *reply)
{
    AQ_FAULT("api.people.decoded");
    if (reply)
        core_save(api->core, batch, on_saved, reply);
    else
        core_save(api->core, batch, api_reply_done, req);
}

/* The living row to change, or none to collide with. */
static int find_old(struct people_row *row, const struct people_kind *kind)
{
    if (!row->key && kind->find_same && kind->find_same(row->api->core, row->params))
        return aq_fail_kind(&row->err, EEXIST, "generic-bad-request", "this %s exists already",
                            kind->object);
    if (!row->key)
        return 0;
    if (!(row->old = kind->find(row->api->core, row->key)))
        return problem_no_such(&row->err, kind->object, "'%.64s' does not exist", row->key);
    return 0;
}

static struct api_list *reply_for(struct people_row *row, const struct people_kind *kind,
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

bool people_prepare(struct api *api, struct request *req, const struct people_kind *kind,
                    const char *key, void *params, struct event_batch **ret_batch,
                    struct api_list **ret_reply)
{
    struct people_row row = { .api = api, .arena = request_get_arena(req), .params = params,
                              .key = key };
    AQ_CLEANUP(event_batch_freep) struct event_batch *batch = event_batch_new();
    json_auto_t *tree = NULL;

    if (!batch || !(row.event = event_batch_add(batch, kind->event, clock_realtime_usec())))
        aq_fail(&row.err, ENOMEM, "row");
    else if (api_decode(req, params, &tree, &row.err) == 0 && find_old(&row, kind) == 0)
        kind->fill(&row);
    if (row.err.code) {
        request_fail(req, &row.err);
        return false;
    }
    if (!(*ret_reply = reply_for(&row, kind, req)))
        return false;
    if (row.err.code) {
        request_fail(req, &row.err);
        return false;
    }
    *ret_batch = AQ_TAKE(batch);
    return true;
}

static void save_row(struct api *api, struct request *req, const struct people_kind *kind,
                     const char *key)
{
    void *params = arena_alloc(request_get_arena(req), kind->params_size);
    struct event_batch *batch;
    struct api_list *reply;
    struct aq_error err = { 0 };

    if (!params) {
        aq_fail(&err, ENOMEM, "row");
        request_fail(req, &err);
        return;
    }
    if (kind->defaults)
        memcpy(params, kind->defaults, kind->params_size);
    if (people_prepare(api, req, kind, key, params, &batch, &reply))
        people_save(api, req, batch, reply);
}

void people_create(struct api *api, struct request *req, const struct people_kind *kind)
{
    save_row(api, req, kind, NULL);
}

void people_change(struct api *api, struct request *req, const struct people_kind *kind,
                   const char *key)
{
    save_row(api, req, kind, key);
}
