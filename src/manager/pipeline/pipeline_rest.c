/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of pipelines and their runs. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "manager/call/repeat.h"
#include "manager/pipeline/pipeline.h"
#include "manager/pipeline/pipeline_call.h"
#include "manager/pipeline/pipeline_clock.h"
#include "manager/pipeline/pipeline_feature.h"
#include "manager/pipeline/pipeline_runs.h"

#define PIPELINE_BODY_MAX (4 << 20) /* JSON escapes make a file longer */

#define AT(member) offsetof(struct pipeline_params, member)
/* clang-format off */
#define PIPELINE_OWNER { "owner_access_key", FIELD_STR, FIELD_NULLABLE, AT(owner_access_key), 1, 64, \
                         .doc = "act for this key; administrators" }
#define PIPELINE_PAYLOAD(flags) { "payload", FIELD_STR, flags, AT(payload), 1, PIPELINE_BYTES_MAX, \
                                  .doc = "the file: aliquot-pipeline(1)" }
/* clang-format on */
static const struct field pipeline_list_fields[] = {
    { "all", FIELD_BOOL, 0, AT(all), .doc = "of all users that an administrator may see" },
    PIPELINE_OWNER,
    API_PAGE_FIELDS(struct pipeline_params),
    FIELD_END,
};
static const struct field pipeline_save_fields[] = { PIPELINE_PAYLOAD(FIELD_REQUIRED),
                                                     PIPELINE_OWNER, FIELD_END };
static const struct field pipeline_cancel_fields[] = { PIPELINE_OWNER, FIELD_END };
static const struct field pipeline_run_show_fields[] = {
    { "graph", FIELD_BOOL, 0, AT(graph), .doc = "also how it is drawn, and its parameters" },
    PIPELINE_OWNER,
    FIELD_END,
};
static const struct field pipeline_show_fields[] = {
    { "graph", FIELD_BOOL, 0, AT(graph), .doc = "also how it is drawn, and its parameters" },
    { "version", FIELD_INT, 0, AT(version), 1, INT32_MAX, .doc = "default: the latest" },
    PIPELINE_OWNER,
    FIELD_END,
};
static const struct field pipeline_versions_fields[] = {
    PIPELINE_OWNER,
    API_PAGE_FIELDS(struct pipeline_params),
    FIELD_END,
};
static const struct field pipeline_run_fields[] = {
    PIPELINE_PAYLOAD(FIELD_NULLABLE),
    { "pipeline", FIELD_STR, FIELD_NULLABLE, AT(pipeline), 1, PIPELINE_NAME_MAX,
      .doc = "instead: the name of one that is kept" },
    { "parameters", FIELD_OBJECT, FIELD_NULLABLE, AT(parameters) },
    { "group", FIELD_STR, FIELD_NULLABLE, AT(group), 1, 64, .doc = "project of the sessions" },
    { "resource_group", FIELD_STR, FIELD_NULLABLE, AT(resource_group), 1, 64,
      .doc = "of sessions whose task names none" },
    { "cache", FIELD_BOOL, 0, AT(cache),
      .doc = "reuse unchanged tasks that succeeded in an earlier run" },
    PIPELINE_OWNER,
    FIELD_END,
};
static const struct field pipeline_resume_fields[] = { PIPELINE_PAYLOAD(FIELD_NULLABLE),
                                                       PIPELINE_OWNER, FIELD_END };
#undef AT

/* ---- answers ---- */

/* The object is left open. */
static void pipeline_write_version(const struct pipeline_row *row, struct jsonw *w)
{
    jsonw_object_begin(w);
    api_write_uuid(w, "id", &row->id);
    jsonw_member_str(w, "name", row->name);
    jsonw_member_int(w, "version", row->version);
    jsonw_member_str(w, "hash", row->hash);
    if (row->saved_usec)
        api_write_time(w, "saved_at", row->saved_usec);
    if (row->user_email) {
        AQ_CLEANUP(aq_freep) char *last_run = aq_format("%s.%lld", row->name,
                                                        (long long)row->last_run);

        jsonw_member_str(w, "user_email", row->user_email);
        jsonw_member_str(w, "last_run", row->last_run ? last_run : NULL);
        jsonw_member_str(w, "last_run_state", row->last_run_state);
        api_write_time(w, "next_at", row->next_usec);
    }
    if (row->text)
        jsonw_member_str(w, "text", row->text);
}

static void pipeline_write_drawing(const struct pipeline_call *call, struct jsonw *w)
{
    if (!call->drawing.graph)
        return;
    api_write_raw(w, "graph", call->drawing.graph);
    api_write_raw(w, "declared", call->drawing.parameters);
    api_write_raw(w, "matrix", call->drawing.matrix);
}

void pipeline_write_task(const struct pipeline_task_row *task, struct jsonw *w)
{
    jsonw_object_begin(w);
    jsonw_member_str(w, "name", task->name);
    jsonw_member_str(w, "state", pipeline_state_name(task->state));
    jsonw_member_int(w, "attempt", task->attempt);
    jsonw_member_int(w, "attempt_max", task->attempt_max);
    if (uuid_is_nil(&task->session_id))
        jsonw_member_null(w, "session_id");
    else
        api_write_uuid(w, "session_id", &task->session_id);
    jsonw_member_str(w, "session_status",
                     task->has_session ? session_status_name(task->session_status) : NULL);
    jsonw_member_str(w, "reason", task->reason);
    api_write_raw(w, "outputs", task->outputs);
    api_write_time(w, "started_at", task->started_usec);
    api_write_time(w, "ended_at", task->ended_usec);
    jsonw_object_end(w);
}

static void pipeline_reply_pipeline(struct pipeline_call *call)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    bool is_saved = request_get_method(call->req) == METHOD_POST;

    if (is_saved) {
        call->pipeline.text = NULL;
        pipeline_clock_wake(pipeline_runs_clock(call->api->pipeline)); /* of another version */
    }
    pipeline_write_version(&call->pipeline, &w);
    pipeline_write_drawing(call, &w);
    jsonw_object_end(&w);
    request_reply_json(call->req, is_saved ? 201 : 200, &out);
}

static void pipeline_reply_run(struct pipeline_call *call)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    pipeline_call_write_run(&call->run, &w);
    jsonw_member_str(&w, "text", call->run.text);
    pipeline_write_drawing(call, &w);
    jsonw_key(&w, "tasks");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < call->task_count; i++)
        pipeline_write_task(&call->tasks[i], &w);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    request_reply_json(call->req, 200, &out);
}

/* It was changed: it is examined now. */
static void pipeline_reply_changed(struct pipeline_call *call)
{
    AQ_FAULT("pipeline.run.changed");
    pipeline_runs_add(call->api->pipeline, &call->run);
    if (call->params.payload)
        pipeline_clock_wake(pipeline_runs_clock(call->api->pipeline));
    pipeline_reply_run(call);
}

/* The run is new, or goes on. */
static void pipeline_reply_begun(struct pipeline_call *call)
{
    const char *body = call->answered.answered.body;

    repeat_note_answered(call->api, call->req);
    pipeline_runs_add(call->api->pipeline, &call->run);
    if (call->params.payload)
        pipeline_clock_wake(pipeline_runs_clock(call->api->pipeline));
    request_reply(call->req, (int)call->answered.answered.status, "application/json", body,
                  strlen(body));
}

static void pipeline_reply_made(struct pipeline_call *call)
{
    AQ_FAULT("pipeline.run.begun");
    pipeline_reply_begun(call);
}

static void pipeline_reply_resumed(struct pipeline_call *call)
{
    AQ_FAULT("pipeline.run.resumed");
    pipeline_reply_begun(call);
}

static void pipeline_reply_list(struct pipeline_call *call, bool is_of_runs)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    AQ_CLEANUP(store_page_freep) struct store_page *page = AQ_TAKE(call->page);
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < page->count; i++) {
        if (is_of_runs)
            pipeline_call_write_run((const struct pipeline_run_row *)page->rows + i, &w);
        else
            pipeline_write_version((const struct pipeline_row *)page->rows + i, &w);
        jsonw_object_end(&w);
    }
    jsonw_array_end(&w);
    jsonw_member_int(&w, "total", page->total);
    jsonw_object_end(&w);
    request_reply_json(call->req, 200, &out);
}

static void pipeline_reply_pipelines(struct pipeline_call *call)
{
    pipeline_reply_list(call, false);
}

static void pipeline_reply_runs(struct pipeline_call *call)
{
    pipeline_reply_list(call, true);
}

/* ---- what is read ---- */

static int pipeline_read_list(struct store_tx *tx, struct pipeline_call *call, struct aq_error *err)
{
    struct store_query query = { .limit = API_LIST_DEFAULT };

    api_page_apply(&call->params.page, &query);
    return store_list_pipelines(tx, &call->who, call->params.all, &query, &call->page, err);
}

static int pipeline_read_run_list(struct store_tx *tx, struct pipeline_call *call,
                                  struct aq_error *err)
{
    struct store_query query = { .limit = API_LIST_DEFAULT };

    api_page_apply(&call->params.page, &query);
    return store_list_pipeline_runs(tx, &call->who, call->params.all, &query, &call->page, err);
}

static int pipeline_read_one(struct store_tx *tx, struct pipeline_call *call, struct aq_error *err)
{
    struct arena *arena = call->arena;
    int r = pipeline_find(tx, &call->who.user_id, request_get_param(call->req, "pipeline"),
                          call->params.version, arena, &call->pipeline, err);

    if (r == 0 && call->params.graph)
        pipeline_draw(call->pipeline.text, arena, &call->drawing);
    return r;
}

static int pipeline_read_versions(struct store_tx *tx, struct pipeline_call *call,
                                  struct aq_error *err)
{
    const char *name = request_get_param(call->req, "pipeline");
    struct store_query query = { .limit = API_LIST_DEFAULT };
    int r = pipeline_find(tx, &call->who.user_id, name, 0, call->arena, &call->pipeline, err);

    if (r < 0)
        return r;
    api_page_apply(&call->params.page, &query);
    return store_list_pipeline_versions(tx, &call->who, name, &query, &call->page, err);
}

/* ---- requests ---- */

/* store_tx_fn */
static int pipeline_run_call(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct pipeline_call *call = data;

    return call->change(tx, call, err);
}

/* The run may have been created already, by an earlier copy of the request. */
static void pipeline_fail(struct pipeline_call *call, const struct aq_error *err)
{
    if (call->answered.kind == EVENT_REQUEST_ANSWERED)
        repeat_fail(call->api, call->req, err, NULL);
    else
        request_fail(call->req, err);
}

static void pipeline_on_done(void *data, int r, const struct aq_error *err)
{
    struct pipeline_call *call = data;
    struct aq_error own = *err;

    json_decref(AQ_TAKE(call->tree));
    if (r == -ENOENT)
        problem_no_such(&own, "pipeline", "%s", err->text);
    if (r == 0)
        call->reply(call);
    else
        pipeline_fail(call, &own);
}

static int pipeline_read_who(struct pipeline_call *call, struct aq_error *err)
{
    const struct principal *who = api_principal(call->req);
    struct arena *arena = call->arena;
    const struct keypair *key;
    const struct user *owner;
    int r = api_owner(call->api, call->req, call->params.owner_access_key, &key, err);

    if (r < 0)
        return r;
    call->by = api_who(call->api, call->req);
    call->who.user_id = key->user_id;
    call->who.is_superadmin = principal_is_superadmin(who);
    call->access_key = arena_strdup(arena, key->access_key);
    owner = core_find_user(call->api->core, &key->user_id);
    call->domain = arena_strdup(arena, owner && owner->domain ? owner->domain : "default");
    if (who->role == ROLE_ADMIN && who->domain)
        call->who.admin_of = arena_strdup(arena, who->domain);
    return 0;
}

/* Sets the key by which a repeated request is recognized. */
static void pipeline_fill_answered(struct pipeline_call *call)
{
    struct core_answered of = { .access_key = NULL };

    repeat_fill(call->req, &of);
    call->answered.kind = EVENT_REQUEST_ANSWERED;
    call->answered.answered.access_key = of.access_key;
    call->answered.answered.request_key = of.request_key;
    call->answered.answered.digest = of.digest;
    call->answered.answered.status = call->change == pipeline_call_run ? 201 : 200;
}

void pipeline_start_call(struct request *req, struct api *api, const struct pipeline_call *of)
{
    struct pipeline_call *call = arena_alloc(request_get_arena(req), sizeof(*call));
    struct aq_error err = { 0 };

    *call = *of;
    call->api = api;
    call->req = req;
    call->arena = request_get_arena(req);
    if (call->change == pipeline_call_run || call->change == pipeline_call_resume)
        pipeline_fill_answered(call);
    if (api_decode(req, &call->params, &call->tree, &err) < 0 || pipeline_read_who(call, &err) < 0
        || (call->check && call->check(call, &err) < 0)) {
        json_decref(AQ_TAKE(call->tree));
        pipeline_fail(call, &err);
    } else if (request_get_method(req) == METHOD_GET) {
        store_read(core_store(api->core), pipeline_run_call, pipeline_on_done, call);
    } else {
        store_write(core_store(api->core), pipeline_run_call, pipeline_on_done, call);
    }
}

#define PIPELINE_HANDLER(name, change_, reply_)                                                 \
    static void pipeline_on_##name(struct request *req, void *data)                             \
    {                                                                                           \
        pipeline_start_call(req, data,                                                          \
                            &(struct pipeline_call){ .change = (change_), .reply = (reply_) }); \
    }

PIPELINE_HANDLER(list, pipeline_read_list, pipeline_reply_pipelines)
PIPELINE_HANDLER(save, pipeline_call_save, pipeline_reply_pipeline)
PIPELINE_HANDLER(show, pipeline_read_one, pipeline_reply_pipeline)
PIPELINE_HANDLER(versions, pipeline_read_versions, pipeline_reply_pipelines)
PIPELINE_HANDLER(list_runs, pipeline_read_run_list, pipeline_reply_runs)
PIPELINE_HANDLER(make_run, pipeline_call_run, pipeline_reply_made)
PIPELINE_HANDLER(show_run, pipeline_call_show, pipeline_reply_run)
PIPELINE_HANDLER(cancel_run, pipeline_call_cancel, pipeline_reply_changed)
PIPELINE_HANDLER(resume_run, pipeline_call_resume, pipeline_reply_resumed)

static void pipeline_on_run(struct request *req, void *data)
{
    static const struct repeat_handler handler = { pipeline_on_make_run, NULL };

    repeat_start(data, req, &handler);
}

static void pipeline_on_resume(struct request *req, void *data)
{
    static const struct repeat_handler handler = { pipeline_on_resume_run, NULL };

    repeat_start(data, req, &handler);
}

static const struct route pipeline_routes[] = {
    { METHOD_GET, "/aliquot/v1/pipelines", API_USER, pipeline_on_list, pipeline_list_fields,
      "Pipelines that are kept, the latest version of each" },
    { METHOD_POST, "/aliquot/v1/pipelines", API_USER, pipeline_on_save, pipeline_save_fields,
      "Check a pipeline and keep it under its name", .answer = { 201 },
      .body_max = PIPELINE_BODY_MAX },
    { METHOD_GET, "/aliquot/v1/pipelines/{pipeline}", API_USER, pipeline_on_show,
      pipeline_show_fields, "A pipeline with its text" },
    { METHOD_GET, "/aliquot/v1/pipelines/{pipeline}/versions", API_USER, pipeline_on_versions,
      pipeline_versions_fields, "All versions of a pipeline that are kept, the newest first" },
    { METHOD_GET, "/aliquot/v1/pipeline-runs", API_USER, pipeline_on_list_runs,
      pipeline_list_fields, "Runs of pipelines, the newest first" },
    { METHOD_POST, "/aliquot/v1/pipeline-runs", API_USER | API_FREEZABLE | API_ANSWERED_ONCE,
      pipeline_on_run, pipeline_run_fields, "Run a pipeline", .answer = { 201 },
      .body_max = PIPELINE_BODY_MAX },
    { METHOD_GET, "/aliquot/v1/pipeline-runs/{run}", API_USER, pipeline_on_show_run,
      pipeline_run_show_fields, "A run, by id or as digits.7, with its tasks" },
    { METHOD_POST, "/aliquot/v1/pipeline-runs/{run}/cancel", API_USER, pipeline_on_cancel_run,
      pipeline_cancel_fields, "End a run and its sessions" },
    { METHOD_POST, "/aliquot/v1/pipeline-runs/{run}/resume",
      API_USER | API_FREEZABLE | API_ANSWERED_ONCE, pipeline_on_resume, pipeline_resume_fields,
      "Run again what has not succeeded, perhaps of another file", .body_max = PIPELINE_BODY_MAX },
};
API_ROUTES_END(pipeline);
