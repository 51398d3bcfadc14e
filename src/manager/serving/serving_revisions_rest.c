/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of the revisions of model services. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/memory.h"
#include "manager/call/repeat.h"
#include "manager/serving/serving_call.h"
#include "manager/serving/serving_deploy.h"
#include "manager/serving/serving_feature.h"
#include "manager/serving/serving_params.h"
#include "manager/serving/serving_rollout.h"

/* A new revision, or another goal; in the request's arena. */
struct revision_call {
    struct api *api;
    struct request *req;
    struct uuid id; /* of the service */
    const char *name;
    int64_t goal; /* that the new revision begins from */
    struct serving_params params;
    bool has_rollout; /* the request has settings of rollouts, perhaps null */
    struct serving_deploy deploy;
    struct core_answered answered;
};

/* It may have been made before, by an earlier copy of the request. */
static void revision_fail(struct revision_call *call, const struct aq_error *err)
{
    repeat_fail(call->api, call->req, err, NULL);
}

/* core_service_write_fn */
static int revision_write_deployed(void *data, const struct model_service *s, struct strbuf *out)
{
    const struct revision_call *call = data;
    struct jsonw w = jsonw_make(out);

    serving_view_write(call->api, s, true, &w);
    return 201;
}

/* The same of a rollback. */
static int revision_write_rolled_back(void *data, const struct model_service *s, struct strbuf *out)
{
    (void)revision_write_deployed(data, s, out);
    return 200;
}

/* ---- lists ---- */

static void revisions_on_list(struct request *req, void *data)
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
    for (size_t i = s->revision_count; i-- > 0;)
        serving_view_write_revision(api->core, s, &s->revisions[i], &w);
    jsonw_array_end(&w);
    jsonw_member_int(&w, "total", (int64_t)s->revision_count);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

/* ---- a new one ---- */

static void revision_on_saved(void *data, int r, const struct aq_error *err)
{
    struct revision_call *call = data;

    AQ_FAULT("api.service.deployed");
    if (r < 0) {
        revision_fail(call, err);
        return;
    }
    repeat_note_answered(call->api, call->req);
    serving_reply_by_id(call->api, call->req, &call->id, 201);
}

/* serving_deployed_fn */
static void revision_on_deployed(struct serving_deploy *deploy, const struct aq_error *err)
{
    struct revision_call *call = AQ_CONTAINER_OF(deploy, struct revision_call, deploy);
    const struct model_service *s = core_find_service_by_id(call->api->core, &call->id);
    struct aq_error wrong = { 0 };
    struct model_service changed;

    if (!err && !s)
        (void)serving_view_set_unknown(call->name, &wrong);
    else if (!err)
        (void)serving_deploy_check_goal(s, call->goal, &wrong);
    if (err || wrong.code) {
        revision_fail(call, err ? err : &wrong);
        return;
    }
    model_service_copy(&changed, s);
    serving_deploy_add_revision(&call->deploy.spec, call->params.note,
                                &api_principal(call->req)->user_id, &changed);
    if (call->has_rollout && serving_rollout_apply(call->params.rollout_text, &changed, &wrong) < 0)
        revision_fail(call, &wrong);
    else
        core_change_service_once(call->api->core, &changed, NULL, &call->answered,
                                 revision_write_deployed, api_who(call->api, call->req),
                                 revision_on_saved, call);
    model_service_done(&changed);
}

static int revision_prepare(struct revision_call *call, struct aq_error *err)
{
    struct serving_deploy *d = &call->deploy;
    struct arena *arena = request_get_arena(call->req);
    const struct model_service *s;
    json_auto_t *tree = NULL;
    int r;

    call->params.spec.priority = SERVING_PRIORITY_DEFAULT;
    if ((r = api_decode(call->req, &call->params, &tree, err)) < 0)
        return r;
    if (!(s = serving_find(call->api, call->req, err)))
        return -ENOENT;
    call->id = s->id;
    call->name = arena_strdup(arena, s->name);
    call->goal = s->goal;
    call->has_rollout = json_object_get(tree, "rollout");
    serving_params_keep(&call->params, arena);
    if ((r = serving_deploy_take_owner(d, s, err)) < 0
        || (r = serving_deploy_read_goal(s, arena, &d->spec, err)) < 0)
        return r;
    return serving_params_apply_spec(&call->params, tree, core_slot_types(call->api->core), arena,
                                     &d->spec, err);
}

static struct revision_call *revision_call_new(struct api *api, struct request *req)
{
    struct revision_call *call = arena_alloc(request_get_arena(req), sizeof(*call));

    call->api = api;
    call->req = req;
    repeat_fill(req, &call->answered);
    return call;
}

static void revision_make(struct request *req, void *data)
{
    struct revision_call *call = revision_call_new(data, req);
    struct aq_error err = { 0 };

    call->deploy.api = data;
    call->deploy.req = req;
    call->deploy.done = revision_on_deployed;
    if (revision_prepare(call, &err) < 0)
        revision_fail(call, &err);
    else
        serving_deploy_start(&call->deploy);
}

static void revision_on_deploy(struct request *req, void *data)
{
    static const struct repeat_handler handler = { revision_make, NULL };

    repeat_start(data, req, &handler);
}

/* ---- back to an older one ---- */

struct rollback_params {
    int64_t revision; /* 0 = the one before the goal */
    const char *note;
};

static const struct field rollback_fields[] = {
    { "revision", FIELD_INT, FIELD_NULLABLE, offsetof(struct rollback_params, revision), 1,
      INT64_C(1000000000), .doc = "its number; default: the one before" },
    { "note", FIELD_STR, FIELD_NULLABLE | FIELD_LINE, offsetof(struct rollback_params, note), 0,
      256, .doc = "why, for people; the history shows it" },
    FIELD_END,
};

static void revision_on_rolled_back(void *data, int r, const struct aq_error *err)
{
    struct revision_call *call = data;

    if (r < 0) {
        revision_fail(call, err);
        return;
    }
    repeat_note_answered(call->api, call->req);
    serving_reply_by_id(call->api, call->req, &call->id, 200);
}

/* 0 = none is older. */
static int64_t revision_find_before(const struct model_service *s)
{
    int64_t before = 0;

    for (size_t i = 0; i < s->revision_count; i++)
        if (s->revisions[i].number < s->goal)
            before = AQ_MAX(before, s->revisions[i].number);
    return before;
}

static void revision_roll_back(struct request *req, void *data)
{
    struct revision_call *call = revision_call_new(data, req);
    struct rollback_params params = { .revision = 0 };
    const struct model_service *s;
    struct model_service changed;
    struct aq_error err = { 0 };
    int64_t to;

    if (api_decode(req, &params, NULL, &err) < 0 || !(s = serving_find(call->api, req, &err))) {
        revision_fail(call, &err);
        return;
    }
    to = params.revision ? params.revision : revision_find_before(s);
    if (!to)
        (void)api_fail_param(&err, "revision", "'%s' has no revision before %lld", s->name,
                             (long long)s->goal);
    else if (!model_service_find_revision(s, to))
        (void)api_fail_param(
            &err, "revision",
            "'%s' has no revision %lld; 'aliquot service revisions %s' lists those that are kept",
            s->name, (long long)to, s->name);
    if (err.code) {
        revision_fail(call, &err);
        return;
    }
    call->id = s->id;
    model_service_copy(&changed, s);
    changed.goal = to;
    core_change_service_once(call->api->core, &changed, params.note, &call->answered,
                             revision_write_rolled_back, api_who(call->api, req),
                             revision_on_rolled_back, call);
    model_service_done(&changed);
}

static void revision_on_rollback(struct request *req, void *data)
{
    static const struct repeat_handler handler = { revision_roll_back, NULL };

    repeat_start(data, req, &handler);
}

static const struct route serving_revisions_routes[] = {
    { METHOD_GET, "/aliquot/v1/model-services/{service}/revisions", API_USER, revisions_on_list,
      NULL, "Revisions of a model service that are kept, the newest first" },
    { METHOD_POST, "/aliquot/v1/model-services/{service}/revisions",
      API_USER | API_FREEZABLE | API_ANSWERED_ONCE, revision_on_deploy, serving_revision_fields,
      "Deploy a new revision, which replaces the replicas one by one", .answer = { 201 } },
    { METHOD_POST, "/aliquot/v1/model-services/{service}/rollback",
      API_USER | API_FREEZABLE | API_ANSWERED_ONCE, revision_on_rollback, rollback_fields,
      "Deploy an older revision again" },
};
API_ROUTES_END(serving_revisions);
