/* SPDX-License-Identifier: Apache-2.0 */
/* /services: model services as Backend.AI's command line, SDK and pages call them. */
#include <errno.h>
#include <math.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "manager/call/repeat.h"
#include "manager/serving/backendai_endpoint.h"
#include "manager/serving/backendai_params.h"
#include "manager/serving/backendai_try.h"
#include "manager/serving/serving_call.h"
#include "manager/serving/serving_create.h"
#include "manager/serving/serving_feature.h"
#include "serving/runtime.h"

#define SEARCH_MAX 100

/* A request that waits for the store; in the request's arena. */
struct services_call {
    struct api *api;
    struct request *req;
    int64_t target; /* of a scale */
    struct uuid service_id, token_id;
    char token[SERVING_TOKEN_TEXT_MAX];
};

static struct services_call *services_call_new(struct api *api, struct request *req)
{
    struct services_call *call = arena_alloc(request_get_arena(req), sizeof(*call));

    *call = (struct services_call){ .api = api, .req = req };
    return call;
}

static void services_reply_success(struct request *req)
{
    static const char success[] = "{\"success\":true}";

    request_reply(req, 200, "application/json", success, sizeof(success) - 1);
}

/* core_done_fn with the request as data. */
static void services_on_done(void *data, int r, const struct aq_error *err)
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

static void services_on_try_created(struct serving_create *create, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct uuid *task;

    if (err) {
        request_fail(create->req, err);
        return;
    }
    AQ_FAULT("serving.try.created");
    task = backendai_try_start(create->api, create->params.name,
                               &api_principal(create->req)->user_id);
    jsonw_object_begin(&w);
    api_write_uuid(&w, "task_id", task);
    jsonw_object_end(&w);
    request_reply_json(create->req, 200, &out);
}

/* It has a name of its own, as clients send one that may be taken. */
static void services_on_try(struct request *req, void *data)
{
    struct serving_create *create = serving_create_new(data, req);
    struct aq_error err = { 0 };
    json_auto_t *tree = NULL;

    create->reserved_tag = SERVING_TRIAL_TAG;
    create->done = services_on_try_created;
    if (backendai_params_read(req, &create->params, &tree, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    create->params.name = backendai_try_make_name(request_get_arena(req));
    create->params.replicas = "1";
    create->params.is_public = MAYBE_FALSE;
    serving_create_start(create, NULL);
}

/* ---- lists ---- */

struct services_list_params {
    const char *name;
};

static const struct field services_list_fields[] = {
    { "name", FIELD_STR, FIELD_NULLABLE, offsetof(struct services_list_params, name), 0, 64 },
    FIELD_END,
};

static bool services_is_own(const struct request *req, const struct model_service *s)
{
    return uuid_equals(&s->user_id, &api_principal(req)->user_id);
}

static void services_on_list(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct services_list_params params = { .name = NULL };
    struct jsonw w = jsonw_make(&out);
    const struct api *api = data;
    struct endpoint_row row;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    jsonw_array_begin(&w);
    for (const struct model_service *s = NULL; (s = core_next_service(api->core, s));) {
        if (!services_is_own(req, s)
            || (params.name && *params.name && strcasecmp(params.name, s->name) != 0))
            continue;
        endpoint_fill(api, s, request_get_arena(req), &row);
        endpoint_write_short(&row, &w);
    }
    jsonw_array_end(&w);
    request_reply_json(req, 200, &out);
}

/* What the name must be, or must have; NULL = anything. */
struct services_search_params {
    const char *equals, *i_equals, *contains, *i_contains, *starts, *i_starts, *ends, *i_ends;
    int64_t offset, limit;
};

#define SEARCH_AT(member) offsetof(struct services_search_params, member)
#define NAME_TEST(name, member)                                   \
    {                                                             \
        name, FIELD_STR, FIELD_NULLABLE, SEARCH_AT(member), 0, 64 \
    }
static const struct field services_name_fields[] = {
    NAME_TEST("equals", equals),
    NAME_TEST("i_equals|iEquals", i_equals),
    NAME_TEST("contains", contains),
    NAME_TEST("i_contains|iContains", i_contains),
    NAME_TEST("starts_with|startsWith", starts),
    NAME_TEST("i_starts_with|iStartsWith", i_starts),
    NAME_TEST("ends_with|endsWith", ends),
    NAME_TEST("i_ends_with|iEndsWith", i_ends),
    FIELD_END,
};

static const struct field services_filter_fields[] = {
    { "name", FIELD_STRUCT, FIELD_NULLABLE, .sub = services_name_fields },
    FIELD_END,
};

static const struct field services_search_fields[] = {
    { "filter", FIELD_STRUCT, FIELD_NULLABLE, .sub = services_filter_fields },
    { "offset", FIELD_INT, FIELD_NULLABLE, SEARCH_AT(offset), 0, 1000000 },
    { "limit", FIELD_INT, FIELD_NULLABLE, SEARCH_AT(limit), 1, SEARCH_MAX },
    FIELD_END,
};

static bool services_ends(const char *name, const char *end, bool any_case)
{
    size_t len = strlen(name), end_len = strlen(end);

    if (end_len > len)
        return false;
    name += len - end_len;
    return any_case ? strcasecmp(name, end) == 0 : strcmp(name, end) == 0;
}

static bool services_is_found(const struct services_search_params *p, const char *name)
{
    return (!p->equals || strcmp(name, p->equals) == 0)
           && (!p->i_equals || strcasecmp(name, p->i_equals) == 0)
           && (!p->contains || strstr(name, p->contains))
           && (!p->i_contains || strcasestr(name, p->i_contains))
           && (!p->starts || strncmp(name, p->starts, strlen(p->starts)) == 0)
           && (!p->i_starts || strncasecmp(name, p->i_starts, strlen(p->i_starts)) == 0)
           && (!p->ends || services_ends(name, p->ends, false))
           && (!p->i_ends || services_ends(name, p->i_ends, true));
}

static void services_write_found(const struct api *api, struct request *req,
                                 const struct model_service *s, struct jsonw *w)
{
    struct endpoint_row row;

    endpoint_fill(api, s, request_get_arena(req), &row);
    jsonw_object_begin(w);
    api_write_uuid(w, "id", &row.id);
    jsonw_member_str(w, "name", row.name);
    jsonw_member_int(w, "replicas", row.replicas);
    jsonw_member_int(w, "desired_session_count", row.replicas);
    jsonw_member_int(w, "active_route_count", row.ready);
    jsonw_member_str(w, "service_endpoint", *row.url ? row.url : NULL);
    jsonw_key(w, "resource_slots");
    jsonw_raw(w, row.resources, strlen(row.resources));
    jsonw_member_str(w, "resource_group", *row.resource_group ? row.resource_group : NULL);
    jsonw_member_bool(w, "open_to_public", row.is_public);
    jsonw_object_end(w);
}

static void services_on_search(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct services_search_params params = { .limit = SEARCH_MAX };
    struct jsonw w = jsonw_make(&out);
    const struct api *api = data;
    struct aq_error err = { 0 };
    int64_t total = 0;

    if (api_decode(req, &params, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    for (const struct model_service *s = NULL; (s = core_next_service(api->core, s));) {
        if (!services_is_own(req, s) || !services_is_found(&params, s->name))
            continue;
        if (total >= params.offset && total < params.offset + params.limit)
            services_write_found(api, req, s, &w);
        total++;
    }
    jsonw_array_end(&w);
    jsonw_key(&w, "pagination");
    jsonw_object_begin(&w);
    jsonw_member_int(&w, "total", total);
    jsonw_member_int(&w, "offset", params.offset);
    jsonw_member_int(&w, "limit", params.limit);
    jsonw_object_end(&w);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
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
        core_end_service(api->core, &s->id, false, api_who(api, req), services_on_done, req);
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

static void services_on_scaled(void *data, int r, const struct aq_error *err)
{
    struct services_call *call = data;
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
    struct services_call *call = services_call_new(data, req);
    struct services_scale_params params = { .to = 0 };
    const struct model_service *s;
    struct model_service changed;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0 || !(s = serving_find(data, req, &err))) {
        request_fail(req, &err);
        return;
    }
    call->service_id = s->id;
    call->target = params.to;
    model_service_copy(&changed, s);
    endpoint_set_replicas(&changed, params.to);
    core_change_service(call->api->core, &changed, NULL, api_who(data, req), services_on_scaled,
                        call);
    model_service_done(&changed);
}

/* ---- tokens ---- */

struct services_token_params {
    int64_t duration_usec, valid_until;
};

static const struct field services_token_fields[] = {
    { "duration", FIELD_DURATION, FIELD_NULLABLE,
      offsetof(struct services_token_params, duration_usec), 1, INT64_C(10) * 365 * 86400,
      .doc = "how long it is valid: seconds, or a text such as 3d" },
    { "valid_until", FIELD_INT, FIELD_NULLABLE, offsetof(struct services_token_params, valid_until),
      1, INT64_C(100000000000), .doc = "Unix time, instead of duration" },
    FIELD_END,
};

static void services_on_token_made(void *data, int r, const struct aq_error *err)
{
    struct services_call *call = data;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    AQ_FAULT("serving.backendai.token.made");
    if (r < 0) {
        request_fail(call->req, err);
    } else {
        jsonw_object_begin(&w);
        jsonw_member_str(&w, "token", call->token);
        jsonw_object_end(&w);
        request_reply_json(call->req, 200, &out);
    }
    OPENSSL_cleanse(call->token, sizeof(call->token));
}

static int services_read_token(const struct services_token_params *params, int64_t now,
                               struct serving_token_params *ret, struct aq_error *err)
{
    int64_t until = params->valid_until * USEC_PER_SEC;

    if (!params->duration_usec && !params->valid_until)
        return api_fail_param(err, "duration", "is missing: give duration or valid_until");
    if (params->duration_usec && params->valid_until)
        return api_fail_param(err, "valid_until", "give duration or valid_until, not both");
    if (params->valid_until && until <= now)
        return api_fail_param(err, "valid_until", "%lld is past; choose a later time",
                              (long long)params->valid_until);
    *ret = (struct serving_token_params){ .duration_usec = params->duration_usec
                                                               ? params->duration_usec
                                                               : until - now };
    return 0;
}

static void services_on_token(struct request *req, void *data)
{
    struct services_call *call = services_call_new(data, req);
    struct services_token_params params = { .valid_until = 0 };
    struct serving_token_params wanted = { .label = NULL };
    struct model_service_token token = { .label = NULL };
    int64_t now = clock_realtime_usec();
    const struct model_service *s;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0 || !(s = serving_find(data, req, &err))
        || services_read_token(&params, now, &wanted, &err) < 0
        || serving_token_make(&wanted, now, &token, call->token, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    token.creator_id = api_principal(req)->user_id;
    core_add_service_token(call->api->core, &s->id, &token, api_who(data, req),
                           services_on_token_made, call);
    model_service_token_done(&token);
}

/* ---- routes ---- */

struct services_ratio_params {
    const json_t *ratio;
};

static const struct field services_ratio_fields[] = {
    { "traffic_ratio|trafficRatio", FIELD_JSON, FIELD_REQUIRED,
      offsetof(struct services_ratio_params, ratio),
      .doc =
          "what the replica gets of the requests in relation to others: a number from 0 to 1000" },
    FIELD_END,
};

/* The replica that the path names; NULL with an error. */
static const struct session *services_find_route(const struct api *api, const struct request *req,
                                                 struct aq_error *err)
{
    const struct model_service *service = serving_find(api, req, err);
    const char *text = request_get_param(req, "route");
    struct core_replica replica;
    const struct session *s;
    struct uuid id;

    if (!service)
        return NULL;
    if (uuid_parse(text, &id) == 0 && (s = core_find_session(api->core, &id))
        && core_find_replica(api->core, s, &replica) && replica.service == service)
        return s;
    (void)problem_no_such(err, "route", "'%s' has no route '%.64s'", service->name, text);
    return NULL;
}

static void services_on_ratio(struct request *req, void *data)
{
    struct services_ratio_params params = { .ratio = NULL };
    const struct api *api = data;
    const struct session *s;
    struct aq_error err = { 0 };
    json_auto_t *tree = NULL;
    double ratio;

    if (api_decode(req, &params, &tree, &err) < 0 || !(s = services_find_route(api, req, &err))) {
        request_fail(req, &err);
        return;
    }
    ratio = json_number_value(params.ratio);
    if (!json_is_number(params.ratio) || !(ratio >= 0 && ratio <= 1000)) {
        (void)api_fail_param(&err, "traffic_ratio", "must be a number from 0 to 1000");
        request_fail(req, &err);
        return;
    }
    core_set_replica_ratio(api->core, &s->id, llround(ratio * 1e6), api_who(api, req),
                           services_on_done, req);
}

static void services_on_remove_route(struct request *req, void *data)
{
    const struct api *api = data;
    const struct session *s;
    struct aq_error err = { 0 };

    if (!api_has_no_params(req))
        return;
    if ((s = services_find_route(api, req, &err)))
        core_remove_replica(api->core, &s->id, api_who(api, req), services_on_done, req);
    else
        request_fail(req, &err);
}

/* ---- errors ---- */

static void services_on_errors(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct model_service *s;
    struct endpoint_row row;

    if (!api_has_no_params(req) || !(s = serving_find_or_fail(data, req)))
        return;
    endpoint_fill(data, s, request_get_arena(req), &row);
    jsonw_object_begin(&w);
    jsonw_key(&w, "errors");
    jsonw_array_begin(&w);
    for (uint32_t i = 0; i <= row.route_count; i++) {
        const char *problem = i ? row.routes[i - 1].problem : row.problem;

        if (!*problem)
            continue;
        jsonw_object_begin(&w);
        if (i)
            api_write_uuid(&w, "session_id", &row.routes[i - 1].id);
        else
            jsonw_member_null(&w, "session_id");
        jsonw_key(&w, "error");
        jsonw_object_begin(&w);
        jsonw_member_str(&w, "repr", problem);
        jsonw_object_end(&w);
        jsonw_object_end(&w);
    }
    jsonw_array_end(&w);
    jsonw_member_int(&w, "retries", row.failures);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

static void services_on_clear(struct request *req, void *data)
{
    const struct api *api = data;
    const struct model_service *s;
    struct aq_error err = { 0 };

    if (!api_has_no_params(req) || !(s = serving_find_or_fail(api, req)))
        return;
    if (core_retry_service(api->core, &s->id, &err) < 0)
        request_fail(req, &err);
    else
        request_reply(req, 204, NULL, NULL, 0);
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
    { METHOD_GET, "/services", API_USER, services_on_list, services_list_fields,
      "Model services of the caller that have not ended" },
    { METHOD_POST, "/services", API_USER | API_FREEZABLE | API_ANSWERED_ONCE, services_on_create,
      backendai_service_fields, "Create a model service", .answer = { 201 } },
    { METHOD_POST, "/services/_/search", API_USER, services_on_search, services_search_fields,
      "Model services of the caller by their names" },
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
    { METHOD_POST, "/services/{service}/token", API_USER | API_FREEZABLE, services_on_token,
      services_token_fields, "Make a token by which clients may ask the model service" },
    { METHOD_PUT, "/services/{service}/routings/{route}", API_USER | API_FREEZABLE,
      services_on_ratio, services_ratio_fields,
      "Set what a replica, named by the id of its session, gets of the requests" },
    { METHOD_DELETE, "/services/{service}/routings/{route}", API_USER, services_on_remove_route,
      NULL, "End a replica, and want one less" },
    { METHOD_GET, "/services/{service}/errors", API_USER, services_on_errors, NULL,
      "Why there are fewer ready replicas than wanted, and how many failed in a row" },
    { METHOD_POST, "/services/{service}/errors/clear", API_USER | API_FREEZABLE, services_on_clear,
      NULL, "Forget failures: the next replica is created at once", .answer = { 204 } },
};
API_ROUTES_END(backendai_services);
