/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of model services. Live ones are in memory; those that have ended are read from the store. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "base/vec.h"
#include "manager/call/list.h"
#include "manager/call/repeat.h"
#include "manager/serving/serving_call.h"
#include "manager/serving/serving_create.h"
#include "manager/serving/serving_feature.h"
#include "manager/serving/serving_params.h"
#include "manager/serving/serving_trial.h"
#include "store/model_service.h"

struct serving_list_params {
    bool all, all_states;
    int64_t limit, offset;
};

#define AT(member) offsetof(struct serving_list_params, member)
static const struct field serving_list_fields[] = {
    { "all", FIELD_BOOL, 0, AT(all), .doc = "also those of others; administrators" },
    { "all_states", FIELD_BOOL, 0, AT(all_states), .doc = "also those that have ended" },
    { "limit", FIELD_INT, 0, AT(limit), 1, API_LIST_MAX },
    { "offset", FIELD_INT, 0, AT(offset), 0, 1000000 },
    FIELD_END,
};
#undef AT

struct serving_end_params {
    bool force;
};

static const struct field serving_end_fields[] = {
    { "force", FIELD_BOOL, 0, offsetof(struct serving_end_params, force),
      .doc = "without the time for requests under way" },
    FIELD_END,
};

/* A request that waits for the store; in the request's arena. */
struct serving_call {
    struct api *api;
    struct request *req;
    const char *name;               /* the one that is wanted */
    struct model_service_rows rows; /* that have ended */
    struct uuid id;                 /* of one that is changed */
    struct serving_params params;   /* of the change */
};

static struct serving_call *serving_call_new(struct api *api, struct request *req)
{
    struct serving_call *call = arena_alloc(request_get_arena(req), sizeof(*call));

    *call = (struct serving_call){ .api = api, .req = req };
    return call;
}

/* ---- finding ---- */

const struct model_service *serving_find(const struct api *api, const struct request *req,
                                         struct aq_error *err)
{
    const char *name = request_get_param(req, "service");
    const struct model_service *s = core_find_service(api->core, name);

    if (s && serving_view_may(req, s))
        return s;
    (void)serving_view_set_unknown(name, err);
    return NULL;
}

const struct model_service *serving_find_or_fail(const struct api *api, struct request *req)
{
    struct aq_error err = { 0 };
    const struct model_service *s = serving_find(api, req, &err);

    if (!s)
        request_fail(req, &err);
    return s;
}

static void serving_reply_one(const struct api *api, struct request *req,
                              const struct model_service *s, int status)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    serving_view_write(api, s, true, &w);
    request_reply_json(req, status, &out);
}

void serving_reply_by_id(const struct api *api, struct request *req, const struct uuid *id,
                         int status)
{
    const struct model_service *s = core_find_service_by_id(api->core, id);
    struct aq_error err = { 0 };
    char text[UUID_TEXT_MAX];

    if (s) {
        serving_reply_one(api, req, s, status);
        return;
    }
    (void)serving_view_set_unknown(uuid_format(id, text), &err);
    request_fail(req, &err);
}

/* ---- lists ---- */

/* Rows of its page are struct model_service: of one that lives the id alone, as it may end before it is
 * written. In the request's arena.
 */
struct serving_list {
    struct api_list list;
    struct uuid *live; /* those that are listed, and live */
    int64_t live_count;
    struct model_service_ended ended;
};

static const struct serving_list *serving_list_of(const struct store_query *query)
{
    return AQ_CONTAINER_OF(AQ_CONTAINER_OF(query, struct api_list, query), struct serving_list,
                           list);
}

static void serving_list_find_live(struct serving_list *list, bool all)
{
    const struct core *core = list->list.api->core;
    struct request *req = list->list.req;
    const struct uuid *me = &api_principal(req)->user_id;

    list->live = arena_array(request_get_arena(req), MODEL_SERVICE_LIVE_MAX, sizeof(*list->live));
    for (const struct model_service *s = NULL;
         list->live_count < MODEL_SERVICE_LIVE_MAX && (s = core_next_service(core, s));)
        if (all ? serving_view_may(req, s) : uuid_equals(&s->user_id, me))
            list->live[list->live_count++] = s->id;
}

/* For store_page_free(). */
static void serving_list_page_done(struct store_page *page)
{
    struct model_service *rows = page->rows;

    for (size_t i = 0; i < page->count; i++)
        model_service_done(&rows[i]);
    free(rows);
}

/* The page as far as memory has it. */
static void serving_list_add_live(const struct serving_list *list, struct model_service_rows *ret)
{
    const struct store_query *query = &list->list.query;
    int64_t end = AQ_MIN(query->offset + query->limit, list->live_count);

    for (int64_t i = query->offset; i < end; i++) {
        vec_grow(&ret->items, &ret->cap, ret->count + 1, sizeof(*ret->items));
        ret->items[ret->count++] = (struct model_service){ .id = list->live[i] };
    }
}

static void serving_list_make_page(struct model_service_rows *rows, int64_t total,
                                   struct store_page **ret)
{
    *ret = aq_alloc(sizeof(**ret));
    (*ret)->done = serving_list_page_done;
    (*ret)->count = rows->count;
    (*ret)->rows = rows->items;
    (*ret)->total = total;
    *rows = (struct model_service_rows){ .items = NULL };
}

/* api_list.make */
static int serving_list_make_live(const struct api_list *api_list, struct store_page **ret,
                                  struct aq_error *err)
{
    const struct serving_list *list = serving_list_of(&api_list->query);
    AQ_CLEANUP(model_service_rows_donep) struct model_service_rows rows = { .items = NULL };

    (void)err;
    serving_list_add_live(list, &rows);
    serving_list_make_page(&rows, list->live_count, ret);
    return 0;
}

/* api_list.list: those that have ended come after those that live. */
static int serving_list_read_all(struct store_tx *tx, const struct store_query *query,
                                 struct store_page **ret, struct aq_error *err)
{
    const struct serving_list *list = serving_list_of(query);
    AQ_CLEANUP(model_service_rows_donep) struct model_service_rows rows = { .items = NULL };
    struct model_service_ended ended = list->ended;
    int64_t count;
    int r = store_count_ended_model_services(tx, &ended, &count, err);

    if (r < 0)
        return r;
    serving_list_add_live(list, &rows);
    ended.offset = AQ_MAX(query->offset - list->live_count, 0);
    ended.limit = query->limit - (int64_t)rows.count;
    ended.bytes_max = query->bytes_max;
    if ((r = store_read_ended_model_services(tx, &ended, &rows, err)) < 0)
        return r;
    serving_list_make_page(&rows, list->live_count + count, ret);
    return 0;
}

static void serving_list_write(const struct api_list *list, const struct store_page *page, size_t i,
                               struct jsonw *w)
{
    const struct model_service *s = &((const struct model_service *)page->rows)[i];

    if (!s->ended_usec)
        s = core_find_service_by_id(list->api->core, &s->id);
    if (s && serving_view_may(list->req, s))
        serving_view_write(list->api, s, false, w);
}

static void serving_on_list(struct request *req, void *data)
{
    struct serving_list *list = arena_alloc(request_get_arena(req), sizeof(*list));
    struct serving_list_params params = { .limit = API_LIST_MAX };
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    list->list.api = data;
    list->list.req = req;
    list->list.query.limit = params.limit;
    list->list.query.offset = params.offset;
    list->list.write = serving_list_write;
    list->ended = serving_view_ended(api_principal(req), params.all);
    serving_list_find_live(list, params.all);
    if (params.all_states)
        list->list.list = serving_list_read_all;
    else
        list->list.make = serving_list_make_live;
    api_list_start(&list->list);
}

/* store_tx_fn */
static int serving_read_ended(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct serving_call *call = data;
    struct model_service_ended of = serving_view_ended(api_principal(call->req), true);

    of.text = call->name;
    model_service_rows_done(&call->rows); /* of a try before */
    return store_read_ended_model_services(tx, &of, &call->rows, err);
}

static void serving_on_one_read(void *data, int r, const struct aq_error *err)
{
    struct serving_call *call = data; /* as above */
    AQ_CLEANUP(model_service_rows_donep) struct model_service_rows rows = call->rows;
    const struct model_service *s = rows.count ? rows.items : NULL;
    struct aq_error unknown = { 0 };

    if (r < 0) {
        request_fail(call->req, err);
    } else if (!s || !serving_view_may(call->req, s)) {
        (void)serving_view_set_unknown(call->name, &unknown);
        request_fail(call->req, &unknown);
    } else {
        serving_reply_one(call->api, call->req, s, 200);
    }
}

static void serving_on_show(struct request *req, void *data)
{
    struct serving_call *call = serving_call_new(data, req);
    struct aq_error err = { 0 };
    const struct model_service *s;

    if (!api_has_no_params(req))
        return;
    call->name = request_get_param(req, "service");
    s = serving_find(call->api, req, &err);
    if (s)
        serving_reply_one(call->api, req, s, 200);
    else
        store_read(core_store(call->api->core), serving_read_ended, serving_on_one_read, call);
}

/* ---- creating ---- */

/* core_service_write_fn */
static int serving_write_answer(void *data, const struct model_service *s, struct strbuf *out)
{
    struct serving_create *create = data;
    struct jsonw w = jsonw_make(out);

    serving_view_write(create->api, s, true, &w);
    create->answer = arena_strdup(request_get_arena(create->req), out->data);
    return 201;
}

/* serving_created_fn */
static void serving_on_created(struct serving_create *create, const struct aq_error *err)
{
    AQ_FAULT("api.service.created");
    if (err) {
        serving_create_refuse(create, err);
        return;
    }
    repeat_note_answered(create->api, create->req);
    request_reply(create->req, 201, "application/json", create->answer, strlen(create->answer));
}

/* The spec has no null: what is null is as if it were not given. */
static void serving_make(struct request *req, void *data)
{
    struct serving_create *create = serving_create_new(data, req);
    struct aq_error err = { 0 };
    json_auto_t *tree = NULL;

    create->write = serving_write_answer;
    create->done = serving_on_created;
    create->params.spec.priority = SERVING_PRIORITY_DEFAULT;
    if (api_decode(req, &create->params, &tree, &err) < 0) {
        serving_create_refuse(create, &err);
        return;
    }
    serving_params_keep(&create->params, request_get_arena(req));
    serving_create_start(create, tree);
}

static void serving_on_create(struct request *req, void *data)
{
    static const struct repeat_handler handler = { serving_make, NULL };

    repeat_start(data, req, &handler);
}

static void serving_on_try(struct request *req, void *data)
{
    struct serving_create *create = serving_create_new(data, req);
    struct aq_error err = { 0 };
    json_auto_t *tree = NULL;

    create->params.spec.priority = SERVING_PRIORITY_DEFAULT;
    if (api_decode(req, &create->params, &tree, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    serving_params_keep(&create->params, request_get_arena(req));
    serving_trial_create(create, tree);
}

/* ---- changing and ending ---- */

static void serving_on_changed(void *data, int r, const struct aq_error *err)
{
    const struct serving_call *call = data;

    if (r < 0)
        request_fail(call->req, err);
    else
        serving_reply_by_id(call->api, call->req, &call->id, 200);
}

static void serving_on_change(struct request *req, void *data)
{
    struct serving_call *call = serving_call_new(data, req);
    const struct model_service *s;
    struct model_service changed;
    struct aq_error err = { 0 };
    json_auto_t *tree = NULL;

    if (api_decode(req, &call->params, &tree, &err) < 0
        || !(s = serving_find(call->api, req, &err))) {
        request_fail(req, &err);
        return;
    }
    call->id = s->id;
    model_service_copy(&changed, s);
    serving_params_keep(&call->params, request_get_arena(call->req));
    if (serving_params_apply(&call->params, tree, &changed, &err) < 0)
        request_fail(req, &err);
    else
        core_change_service(call->api->core, &changed, call->params.note, api_who(call->api, req),
                            serving_on_changed, call);
    model_service_done(&changed);
}

static void serving_on_end(struct request *req, void *data)
{
    const struct api *api = data;
    struct serving_end_params params = { .force = false };
    const struct model_service *s;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0 || !(s = serving_find(api, req, &err))) {
        request_fail(req, &err);
        return;
    }
    core_end_service(api->core, &s->id, params.force, api_who(api, req), api_reply_done, req);
}

/* ---- replicas ---- */

struct serving_ratio_params {
    const json_t *ratio;
};

static const struct field serving_ratio_fields[] = {
    { "ratio", FIELD_JSON, FIELD_REQUIRED, offsetof(struct serving_ratio_params, ratio),
      .doc = "what it gets of the requests in relation to others: a number from 0 to 1000; 1 at "
             "first, 0 = nothing" },
    FIELD_END,
};

/* The replica of the service that the path names by id or name; NULL with an error. */
static const struct session *serving_find_replica(const struct api *api, const struct request *req,
                                                  const struct model_service *service,
                                                  struct aq_error *err)
{
    const char *text = request_get_param(req, "session");
    char id[UUID_TEXT_MAX];

    for (const struct session *s = NULL; (s = core_next_replica(api->core, service, s));)
        if (strcmp(s->name, text) == 0 || strcmp(uuid_format(&s->id, id), text) == 0)
            return s;
    (void)problem_no_such(err, "replica", "'%s' has no replica '%.64s'", service->name, text);
    return NULL;
}

static int serving_read_ratio(const json_t *value, int64_t *ret, struct aq_error *err)
{
    double number = json_number_value(value);

    if (!json_is_number(value) || !(number >= 0 && number <= 1000))
        return api_fail_param(err, "ratio", "must be a number from 0 to 1000");
    *ret = (int64_t)(number * 1000000 + 0.5);
    return 0;
}

static void serving_on_ratio(struct request *req, void *data)
{
    struct serving_call *call = serving_call_new(data, req);
    struct serving_ratio_params params = { .ratio = NULL };
    const struct model_service *service;
    const struct session *s;
    struct aq_error err = { 0 };
    json_auto_t *tree = NULL;
    int64_t ratio_ppm = 0;

    if (api_decode(req, &params, &tree, &err) < 0
        || serving_read_ratio(params.ratio, &ratio_ppm, &err) < 0
        || !(service = serving_find(call->api, req, &err))
        || !(s = serving_find_replica(call->api, req, service, &err))) {
        request_fail(req, &err);
        return;
    }
    call->id = service->id;
    core_set_replica_ratio(call->api->core, &s->id, ratio_ppm, api_who(call->api, req),
                           serving_on_changed, call);
}

static const struct route serving_routes[] = {
    { METHOD_GET, "/aliquot/v1/model-services", API_USER, serving_on_list, serving_list_fields,
      "Model services of the caller, by their creation" },
    { METHOD_POST, "/aliquot/v1/model-services", API_USER | API_FREEZABLE | API_ANSWERED_ONCE,
      serving_on_create, serving_create_fields, "Create a model service", .answer = { 201 } },
    { METHOD_POST, "/aliquot/v1/model-services/_/try", API_USER | API_FREEZABLE, serving_on_try,
      serving_trial_fields,
      "Try a model service: one replica runs until it is ready, or fails; GET "
      "/events/background-task tells of the task" },
    { METHOD_GET, "/aliquot/v1/model-services/{service}", API_USER, serving_on_show, NULL,
      "A model service, by id or name, with its replicas" },
    { METHOD_PATCH, "/aliquot/v1/model-services/{service}", API_USER | API_FREEZABLE,
      serving_on_change, serving_change_fields,
      "Change how many replicas it has, and its settings" },
    { METHOD_DELETE, "/aliquot/v1/model-services/{service}", API_USER, serving_on_end,
      serving_end_fields, "End a model service and its replicas", .answer = { 204 } },
    { METHOD_PATCH, "/aliquot/v1/model-services/{service}/replicas/{session}",
      API_USER | API_FREEZABLE, serving_on_ratio, serving_ratio_fields,
      "Set what a replica gets of the requests" },
};
API_ROUTES_END(serving);
