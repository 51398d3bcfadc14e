/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of the tokens of model services. A token is shown once; its hash is kept. */
#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "manager/serving/serving_call.h"
#include "manager/serving/serving_feature.h"
#include "manager/serving/serving_params.h"

#define TOKEN_ID_PREFIX_MIN 8

/* In the request's arena. */
struct token_call {
    struct api *api;
    struct request *req;
    struct uuid service_id, id;
    char text[SERVING_TOKEN_TEXT_MAX];
};

/* ---- making ---- */

static void token_on_made(void *data, int r, const struct aq_error *err)
{
    struct token_call *call = data;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct model_service *s = core_find_service_by_id(call->api->core, &call->service_id);
    const struct model_service_token *token = s ? model_service_find_token(s, &call->id) : NULL;
    struct aq_error gone = { 0 };

    AQ_FAULT("api.service.token-made");
    if (r == 0 && !token)
        r = aq_fail_kind(&gone, ESTALE, "conflict", "the token was revoked meanwhile");
    if (r < 0) {
        OPENSSL_cleanse(call->text, sizeof(call->text));
        request_fail(call->req, gone.code ? &gone : err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "token", call->text);
    serving_view_write_token(call->api->core, token, &w);
    serving_view_write_token_figures(call->api, &s->id, &token->id, &w);
    jsonw_object_end(&w);
    OPENSSL_cleanse(call->text, sizeof(call->text));
    request_reply_json(call->req, 201, &out);
}

static void token_on_create(struct request *req, void *data)
{
    struct token_call *call = arena_alloc(request_get_arena(req), sizeof(*call));
    struct serving_token_params params = { .label = NULL };
    struct model_service_token token = { .label = NULL };
    const struct model_service *s;
    struct aq_error err = { 0 };
    json_auto_t *tree = NULL;

    call->api = data;
    call->req = req;
    if (api_decode(req, &params, &tree, &err) < 0 || !(s = serving_find(data, req, &err))
        || serving_token_make(&params, clock_realtime_usec(), &token, call->text, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    call->service_id = s->id;
    token.creator_id = api_principal(req)->user_id;
    core_add_service_token(call->api->core, &s->id, &token, api_who(data, req), token_on_made,
                           call);
    call->id = token.id;
    model_service_token_done(&token);
}

/* ---- listing and revoking ---- */

static void token_on_list(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct api *api = data;
    const struct model_service *s;

    if (!api_has_no_params(req) || !(s = serving_find_or_fail(api, req)))
        return;
    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < s->token_count; i++) {
        jsonw_object_begin(&w);
        serving_view_write_token(api->core, &s->tokens[i], &w);
        serving_view_write_token_figures(api, &s->id, &s->tokens[i].id, &w);
        jsonw_object_end(&w);
    }
    jsonw_array_end(&w);
    jsonw_member_int(&w, "total", (int64_t)s->token_count);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

/* By its id, a prefix of it, or its label, which only one has; NULL with an error. */
static const struct model_service_token *token_find(const struct model_service *s, const char *text,
                                                    struct aq_error *err)
{
    const struct model_service_token *found = NULL;
    size_t len = strlen(text), count = 0;
    char id[UUID_TEXT_MAX];

    for (size_t i = 0; i < s->token_count; i++) {
        const struct model_service_token *t = &s->tokens[i];
        bool is_id = strncmp(uuid_format(&t->id, id), text, len) == 0;

        if ((is_id && len >= TOKEN_ID_PREFIX_MIN) || (t->label && strcmp(t->label, text) == 0)) {
            found = t;
            count++;
        }
    }
    if (count == 1)
        return found;
    if (count > 1)
        (void)aq_fail_kind(err, EEXIST, "conflict",
                           "%zu tokens of '%s' are called '%.64s'; name one by its id, which "
                           "'aliquot service token ls -o wide' shows",
                           count, s->name, text);
    else
        (void)problem_no_such(err, "token", "'%s' has no token '%.64s'", s->name, text);
    return NULL;
}

static void token_on_revoke(struct request *req, void *data)
{
    const struct api *api = data;
    const struct model_service_token *token;
    const struct model_service *s;
    struct aq_error err = { 0 };

    if (!api_has_no_params(req))
        return;
    if (!(s = serving_find(api, req, &err))
        || !(token = token_find(s, request_get_param(req, "token"), &err))) {
        request_fail(req, &err);
        return;
    }
    core_revoke_service_token(api->core, &s->id, &token->id, api_who(api, req), api_reply_done,
                              req);
}

static const struct route serving_tokens_routes[] = {
    { METHOD_GET, "/aliquot/v1/model-services/{service}/tokens", API_USER, token_on_list, NULL,
      "Tokens of a model service, without the tokens themselves" },
    { METHOD_POST, "/aliquot/v1/model-services/{service}/tokens", API_USER | API_FREEZABLE,
      token_on_create, serving_token_fields,
      "Make a token by which clients may ask the service; it is shown this once",
      .answer = { 201 } },
    { METHOD_DELETE, "/aliquot/v1/model-services/{service}/tokens/{token}", API_USER,
      token_on_revoke, NULL, "Revoke a token, by its id, a prefix of it, or its label",
      .answer = { 204 } },
};
API_ROUTES_END(serving_tokens);
