/* SPDX-License-Identifier: Apache-2.0 */
/* The route that lists what was changed of a model service, which may have ended. */
#include "manager/serving/serving_call.h"
#include "manager/serving/serving_feature.h"
#include "store/model_service.h"

#define HISTORY_LIMIT_DEFAULT 100

struct history_params {
    int64_t limit;
};

static const struct field history_fields[] = {
    { "limit", FIELD_INT, 0, offsetof(struct history_params, limit), 1, MODEL_SERVICE_HISTORY_MAX,
      .doc = "at most so many changes; default 100" },
    FIELD_END,
};

/* A request that waits for the store; in the request's arena. */
struct history_call {
    const struct api *api;
    struct request *req;
    struct history_params params;
    struct uuid id; /* of a live service; nil: one that has ended is looked for by 'name' */
    const char *name;
    struct model_service_rows rows;
    struct model_service_changes changes;
};

static void history_done(struct history_call *call)
{
    model_service_rows_done(&call->rows);
    model_service_changes_done(&call->changes);
}

/* store_tx_fn */
static int history_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct history_call *call = data;
    const struct uuid *id = &call->id;
    int r = 0;

    history_done(call); /* of a try before */
    if (uuid_is_nil(id)) {
        struct model_service_ended of = serving_view_ended(api_principal(call->req), true);

        of.text = call->name;
        r = store_read_ended_model_services(tx, &of, &call->rows, err);
        id = call->rows.count ? &call->rows.items[0].id : NULL;
    }
    return r < 0 || !id ? r
                        : store_read_model_service_changes(tx, id, (size_t)call->params.limit,
                                                           &call->changes, err);
}

static void history_write(const struct model_service_changes *changes, struct jsonw *w)
{
    jsonw_object_begin(w);
    jsonw_key(w, "items");
    jsonw_array_begin(w);
    for (size_t i = 0; i < changes->count; i++) {
        const struct model_service_change *change = &changes->items[i];

        jsonw_object_begin(w);
        api_write_time(w, "at", change->at_usec);
        jsonw_member_int(w, "version", change->version);
        jsonw_member_int(w, "replicas", change->replicas);
        serving_view_write_share("share", change->share_micro, w); /* null: the revision's */
        jsonw_member_int(w, "revision", change->goal);
        jsonw_member_str(w, "reason", change->reason);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
    jsonw_object_end(w);
}

static void history_on_read(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct history_call *call = data; /* the answer frees it */
    const struct model_service *ended = call->rows.count ? call->rows.items : NULL;
    struct aq_error unknown = { 0 };

    if (r == 0 && uuid_is_nil(&call->id) && (!ended || !serving_view_may(call->req, ended))) {
        r = serving_view_set_unknown(call->name, &unknown);
        err = &unknown;
    }
    if (r == 0)
        history_write(&call->changes, &w);
    history_done(call);
    if (r < 0)
        request_fail(call->req, err);
    else
        request_reply_json(call->req, 200, &out);
}

static void history_on_list(struct request *req, void *data)
{
    struct history_call *call = arena_alloc(request_get_arena(req), sizeof(*call));
    const struct model_service *s;
    struct aq_error err = { 0 };

    *call = (struct history_call){ .api = data,
                                   .req = req,
                                   .params = { HISTORY_LIMIT_DEFAULT },
                                   .name = request_get_param(req, "service") };
    if (api_decode(req, &call->params, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    if ((s = serving_find(call->api, req, &err)))
        call->id = s->id;
    store_read(core_store(call->api->core), history_read, history_on_read, call);
}

static const struct route serving_history_routes[] = {
    { METHOD_GET, "/aliquot/v1/model-services/{service}/history", API_USER, history_on_list,
      history_fields, "What was changed of a model service, and why, the newest first" },
};
API_ROUTES_END(serving_history);
