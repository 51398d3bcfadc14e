/* SPDX-License-Identifier: Apache-2.0 */
/* POST /services/{service}/token: a token for clients of a model service. */
#include <openssl/crypto.h>

#include "base/clock.h"
#include "base/fault.h"
#include "manager/serving/serving_call.h"
#include "manager/serving/serving_feature.h"
#include "manager/serving/serving_params.h"

struct service_token_params {
    int64_t duration_usec, valid_until;
};

static const struct field service_token_fields[] = {
    { "duration", FIELD_DURATION, FIELD_NULLABLE,
      offsetof(struct service_token_params, duration_usec), 1, INT64_C(10) * 365 * 86400,
      .doc = "how long it is valid: seconds, or a text such as 3d" },
    { "valid_until", FIELD_INT, FIELD_NULLABLE, offsetof(struct service_token_params, valid_until),
      1, INT64_C(100000000000), .doc = "Unix time, instead of duration" },
    FIELD_END,
};

/* A request that waits for the store; in the request's arena. */
struct service_token_call {
    struct request *req;
    char token[SERVING_TOKEN_TEXT_MAX];
};

static void service_on_token_made(void *data, int r, const struct aq_error *err)
{
    struct service_token_call *call = data;
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

static int service_read_token(const struct service_token_params *params, int64_t now,
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

static void service_on_token(struct request *req, void *data)
{
    struct service_token_call *call = arena_alloc(request_get_arena(req), sizeof(*call));
    const struct api *api = data;
    struct service_token_params params = { .valid_until = 0 };
    struct serving_token_params wanted = { .label = NULL };
    struct model_service_token token = { .label = NULL };
    int64_t now = clock_realtime_usec();
    const struct model_service *s;
    struct aq_error err = { 0 };

    call->req = req;
    if (api_decode(req, &params, NULL, &err) < 0 || !(s = serving_find(api, req, &err))
        || service_read_token(&params, now, &wanted, &err) < 0
        || serving_token_make(&wanted, now, &token, call->token, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    token.creator_id = api_principal(req)->user_id;
    core_add_service_token(api->core, &s->id, &token, api_who(api, req), service_on_token_made,
                           call);
    model_service_token_done(&token);
}

static const struct route backendai_service_token_routes[] = {
    { METHOD_POST, "/services/{service}/token", API_USER | API_FREEZABLE, service_on_token,
      service_token_fields, "Make a token by which clients may ask the model service" },
};
API_ROUTES_END(backendai_service_token);
