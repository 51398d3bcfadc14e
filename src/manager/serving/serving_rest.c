/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of model services. Live ones are in memory; those that have ended are read from the store. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "manager/call/repeat.h"
#include "manager/serving/serving_call.h"
#include "manager/serving/serving_create.h"
#include "manager/serving/serving_feature.h"
#include "manager/serving/serving_params.h"
#include "store/model_service.h"

struct serving_list_params {
    bool all, all_states;
    int64_t limit, offset;
};

#define AT(member) offsetof(struct serving_list_params, member)
static const struct field serving_list_fields[] = {
    { "all", FIELD_BOOL, 0, AT(all), .doc = "also those of others; administrators" },
    { "all_states", FIELD_BOOL, 0, AT(all_states), .doc = "also those that have ended" },
    { "limit", FIELD_INT, 0, AT(limit), 1, 1000 },
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
    struct serving_list_params list;
    const char *name;               /* the one that is wanted; NULL = all */
    struct model_service_rows rows; /* that have ended */
    struct uuid id;                 /* of one that is changed */
    struct serving_params params;   /* of the change */
};

static struct serving_call *serving_call_new(struct api *api, struct request *req)
{
    struct serving_call *call = arena_alloc(request_get_arena(req), sizeof(*call));

    *call = (struct serving_call){ .api = api, .req = req, .list = { .limit = 1000 } };
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

static bool serving_is_listed(const struct serving_call *call, const struct model_service *s)
{
    return call->list.all ? serving_view_may(call->req, s)
                          : uuid_equals(&s->user_id, &api_principal(call->req)->user_id);
}

static void serving_reply_list(struct serving_call *call)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    int64_t count = 0, first = call->list.offset, end = first + call->list.limit;

    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    for (const struct model_service *s = NULL; (s = core_next_service(call->api->core, s));)
        if (serving_is_listed(call, s) && count++ >= first && count <= end)
            serving_view_write(call->api, s, false, &w);
    for (size_t i = 0; i < call->rows.count; i++)
        if (serving_is_listed(call, &call->rows.items[i]) && count++ >= first && count <= end)
            serving_view_write(call->api, &call->rows.items[i], false, &w);
    jsonw_array_end(&w);
    jsonw_member_int(&w, "total", count);
    jsonw_object_end(&w);
    request_reply_json(call->req, 200, &out);
}

/* store_tx_fn */
static int serving_read_ended(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct serving_call *call = data;

    model_service_rows_done(&call->rows); /* of a try before */
    return store_read_ended_model_services(tx, call->name, &call->rows, err);
}

static void serving_on_list_read(void *data, int r, const struct aq_error *err)
{
    struct serving_call *call = data; /* the answer frees it */
    struct model_service_rows rows = call->rows;

    if (r < 0)
        request_fail(call->req, err);
    else
        serving_reply_list(call);
    model_service_rows_done(&rows);
}

static void serving_on_list(struct request *req, void *data)
{
    struct serving_call *call = serving_call_new(data, req);
    struct aq_error err = { 0 };

    if (api_decode(req, &call->list, NULL, &err) < 0)
        request_fail(req, &err);
    else if (call->list.all_states)
        store_read(core_store(call->api->core), serving_read_ended, serving_on_list_read, call);
    else
        serving_reply_list(call);
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
