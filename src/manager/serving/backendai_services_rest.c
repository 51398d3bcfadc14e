/* SPDX-License-Identifier: Apache-2.0 */
/* /services: creating, trying, showing, scaling and ending model services as clients of Backend.AI do. */
#include <string.h>

#include "base/fault.h"
#include "manager/call/repeat.h"
#include "manager/serving/backendai_endpoint.h"
#include "manager/serving/backendai_params.h"
#include "manager/serving/backendai_services.h"
#include "manager/serving/serving_call.h"
#include "manager/serving/serving_create.h"
#include "manager/serving/serving_feature.h"
#include "manager/serving/serving_trial.h"
#include "serving/runtime.h"

static void services_reply_success(struct request *req)
{
    static const char success[] = "{\"success\":true}";

    request_reply(req, 200, "application/json", success, sizeof(success) - 1);
}

void backendai_services_on_done(void *data, int r, const struct aq_error *err)
{
    if (r < 0)
        request_fail(data, err);
    else
        services_reply_success(data);
}

/* ---- creating ---- */

/* core_service_write_fn */
static int services_write_created(void *data, const struct model_service *s, struct strbuf *out)
{
    struct serving_create *create = data;
    struct arena *arena = request_get_arena(create->req);
    struct jsonw w = jsonw_make(out);
    struct endpoint_row row;

    endpoint_fill(create->api, s, arena, &row);
    endpoint_write(&row, &w);
    create->answer = arena_strdup(arena, out->data);
    return 201;
}

/* serving_created_fn */
static void services_on_created(struct serving_create *create, const struct aq_error *err)
{
    if (err) {
        serving_create_refuse(create, err);
        return;
    }
    AQ_FAULT("serving.backendai.created");
    repeat_note_answered(create->api, create->req);
    request_reply(create->req, 201, "application/json", create->answer, strlen(create->answer));
}

static void services_make(struct request *req, void *data)
{
    struct serving_create *create = serving_create_new(data, req);
    struct aq_error err = { 0 };
    json_auto_t *tree = NULL;

    create->write = services_write_created;
    create->done = services_on_created;
    if (backendai_params_read(req, &create->params, &tree, &err) < 0)
        serving_create_refuse(create, &err);
    else
        serving_create_start(create, NULL);
}

static void services_on_create(struct request *req, void *data)
{
    static const struct repeat_handler handler = { services_make, NULL };

    repeat_start(data, req, &handler);
}

/* ---- trying ---- */

static void services_on_try(struct request *req, void *data)
{
    struct serving_create *create = serving_create_new(data, req);
    struct aq_error err = { 0 };
    json_auto_t *tree = NULL;

    if (backendai_params_read(req, &create->params, &tree, &err) < 0)
        request_fail(req, &err);
    else
        serving_trial_create(create, NULL);
}

/* ---- one service ---- */

static void services_on_show(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct model_service *s;
    struct endpoint_row row;

    if (!api_has_no_params(req) || !(s = serving_find_or_fail(data, req)))
        return;
    endpoint_fill(data, s, request_get_arena(req), &row);
    endpoint_write(&row, &w);
    request_reply_json(req, 200, &out);
}

static void services_on_delete(struct request *req, void *data)
{
    const struct api *api = data;
    const struct model_service *s;

    if (api_has_no_params(req) && (s = serving_find_or_fail(api, req)))
        core_end_service(api->core, &s->id, false, api_who(api, req), backendai_services_on_done,
                         req);
}

/* Proxies always have the present routes. */
static void services_on_sync(struct request *req, void *data)
{
    if (api_has_no_params(req) && serving_find_or_fail(data, req))
        services_reply_success(req);
}

struct services_scale_params {
    int64_t to;
};

static const struct field services_scale_fields[] = {
    { "to", FIELD_INT, FIELD_REQUIRED, offsetof(struct services_scale_params, to), 0,
      MODEL_SERVICE_REPLICAS_MAX, .doc = "how many replicas are wanted" },
    FIELD_END,
};

/* A request that waits for the store; in the request's arena. */
struct services_scale_call {
    const struct api *api;
    struct request *req;
    struct uuid service_id;
    int64_t target;
};

static void services_on_scaled(void *data, int r, const struct aq_error *err)
{
    struct services_scale_call *call = data;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct model_service *s = core_find_service_by_id(call->api->core, &call->service_id);
    int64_t count = 0;

    if (r < 0) {
        request_fail(call->req, err);
        return;
    }
    for (const struct session *session = NULL;
         s && (session = core_next_replica(call->api->core, s, session));)
        count++;
    jsonw_object_begin(&w);
    jsonw_member_int(&w, "current_route_count", count);
    jsonw_member_int(&w, "target_count", call->target);
    jsonw_object_end(&w);
    request_reply_json(call->req, 200, &out);
}

static void services_on_scale(struct request *req, void *data)
{
    struct services_scale_call *call = arena_alloc(request_get_arena(req), sizeof(*call));
    struct services_scale_params params = { .to = 0 };
    const struct model_service *s;
    struct model_service changed;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0 || !(s = serving_find(data, req, &err))) {
        request_fail(req, &err);
        return;
    }
    *call = (struct services_scale_call){
        .api = data, .req = req, .service_id = s->id, .target = params.to
    };
    model_service_copy(&changed, s);
    endpoint_set_replicas(&changed, params.to);
    core_change_service(call->api->core, &changed, NULL, api_who(data, req), services_on_scaled,
                        call);
    model_service_done(&changed);
}

/* ---- runtimes ---- */

static void services_on_runtimes(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    (void)data;
    if (!api_has_no_params(req))
        return;
    jsonw_object_begin(&w);
    jsonw_key(&w, "runtimes");
    jsonw_array_begin(&w);
    for (const struct serving_runtime *runtime = serving_runtimes; runtime->name; runtime++) {
        jsonw_object_begin(&w);
        jsonw_member_str(&w, "name", runtime->name);
        jsonw_member_str(&w, "human_readable_name", runtime->title);
        jsonw_object_end(&w);
    }
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

static const struct route backendai_services_routes[] = {
    { METHOD_POST, "/services", API_USER | API_FREEZABLE | API_ANSWERED_ONCE, services_on_create,
      backendai_service_fields, "Create a model service", .answer = { 201 } },
    { METHOD_POST, "/services/_/try", API_USER | API_FREEZABLE, services_on_try,
      backendai_service_fields,
      "Try a model service: one replica runs until it is ready, or fails; GET "
      "/events/background-task tells of the task" },
    { METHOD_GET, "/services/_/runtimes", API_USER, services_on_runtimes, NULL,
      "Inference servers that a model service can run by name" },
    { METHOD_GET, "/services/{service}", API_USER, services_on_show, NULL,
      "A model service, by id or name" },
    { METHOD_DELETE, "/services/{service}", API_USER, services_on_delete, NULL,
      "End a model service and its replicas" },
    { METHOD_POST, "/services/{service}/scale", API_USER | API_FREEZABLE, services_on_scale,
      services_scale_fields, "Set how many replicas a model service has" },
    { METHOD_POST, "/services/{service}/sync", API_USER, services_on_sync, NULL,
      "Does nothing: proxies always have the present routes" },
};
API_ROUTES_END(backendai_services);
