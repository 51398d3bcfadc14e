/* SPDX-License-Identifier: Apache-2.0 */
/* Routes that promote and abort rollouts of model services. */
#include "manager/serving/serving_call.h"
#include "manager/serving/serving_feature.h"

/* In the request's arena. */
struct rollout_call {
    const struct api *api;
    struct request *req;
    struct uuid id;
};

static void rollout_on_changed(void *data, int r, const struct aq_error *err)
{
    const struct rollout_call *call = data;

    if (r < 0)
        request_fail(call->req, err);
    else
        serving_reply_by_id(call->api, call->req, &call->id, 200);
}

static void rollout_start(const struct api *api, struct request *req,
                          void (*command)(struct core *core, const struct uuid *id,
                                          const struct audit_who *by, core_done_fn done,
                                          void *data))
{
    struct rollout_call *call = arena_alloc(request_get_arena(req), sizeof(*call));
    const struct model_service *s;

    if (!api_has_no_params(req) || !(s = serving_find_or_fail(api, req)))
        return;
    *call = (struct rollout_call){ .api = api, .req = req, .id = s->id };
    command(api->core, &s->id, api_who(api, req), rollout_on_changed, call);
}

static void rollout_on_promote(struct request *req, void *data)
{
    rollout_start(data, req, core_promote_service);
}

static void rollout_on_abort(struct request *req, void *data)
{
    rollout_start(data, req, core_abort_rollout);
}

static const struct route serving_rollout_routes[] = {
    { METHOD_POST, "/aliquot/v1/model-services/{service}/rollout/promote", API_USER | API_FREEZABLE,
      rollout_on_promote, NULL,
      "Give the new replicas of a rollout that waits all requests, or a canary its next step" },
    { METHOD_POST, "/aliquot/v1/model-services/{service}/rollout/abort", API_USER | API_FREEZABLE,
      rollout_on_abort, NULL, "Go back to the revision from which the rollout began" },
};
API_ROUTES_END(serving_rollout);
