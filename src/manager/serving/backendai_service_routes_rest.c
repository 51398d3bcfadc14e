/* SPDX-License-Identifier: Apache-2.0 */
/* /services/{service}/routings, /services/{service}/errors: replicas of a model service, which are
 * routes to clients of Backend.AI, and why some are missing.
 */
#include <math.h>

#include "manager/serving/backendai_endpoint.h"
#include "manager/serving/backendai_services.h"
#include "manager/serving/serving_call.h"
#include "manager/serving/serving_feature.h"

struct service_ratio_params {
    const json_t *ratio;
};

static const struct field service_ratio_fields[] = {
    { "traffic_ratio|trafficRatio", FIELD_JSON, FIELD_REQUIRED,
      offsetof(struct service_ratio_params, ratio),
      .doc =
          "what the replica gets of the requests in relation to others: a number from 0 to 1000" },
    FIELD_END,
};

/* The replica that the path names; NULL with an error. */
static const struct session *service_find_route(const struct api *api, const struct request *req,
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

static void service_on_ratio(struct request *req, void *data)
{
    struct service_ratio_params params = { .ratio = NULL };
    const struct api *api = data;
    const struct session *s;
    struct aq_error err = { 0 };
    json_auto_t *tree = NULL;
    double ratio;

    if (api_decode(req, &params, &tree, &err) < 0 || !(s = service_find_route(api, req, &err))) {
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
                           backendai_services_on_done, req);
}

static void service_on_remove_route(struct request *req, void *data)
{
    const struct api *api = data;
    const struct session *s;
    struct aq_error err = { 0 };

    if (!api_has_no_params(req))
        return;
    if ((s = service_find_route(api, req, &err)))
        core_remove_replica(api->core, &s->id, api_who(api, req), backendai_services_on_done, req);
    else
        request_fail(req, &err);
}

/* ---- errors ---- */

static void service_on_errors(struct request *req, void *data)
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

static void service_on_clear(struct request *req, void *data)
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

static const struct route backendai_service_routes_routes[] = {
    { METHOD_PUT, "/services/{service}/routings/{route}", API_USER | API_FREEZABLE,
      service_on_ratio, service_ratio_fields,
      "Set what a replica, named by the id of its session, gets of the requests" },
    { METHOD_DELETE, "/services/{service}/routings/{route}", API_USER, service_on_remove_route,
      NULL, "End a replica, and want one less" },
    { METHOD_GET, "/services/{service}/errors", API_USER, service_on_errors, NULL,
      "Why there are fewer ready replicas than wanted, and how many failed in a row" },
    { METHOD_POST, "/services/{service}/errors/clear", API_USER | API_FREEZABLE, service_on_clear,
      NULL, "Forget failures: the next replica is created at once", .answer = { 204 } },
};
API_ROUTES_END(backendai_service_routes);
