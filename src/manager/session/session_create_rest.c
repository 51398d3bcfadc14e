/* SPDX-License-Identifier: Apache-2.0 */
/* Making sessions: POST /session and several at once.
 *
 * A client that does not say enqueueOnly waits until its session has left the
 * queue and runs or has ended, at most maxWaitSeconds. What is kept for a request
 * that is sent again (repeat.h) is how the session began; it may wait again.
 *
 * The steps of one session, in the order of the functions below:
 *
 * 1. session_create_on_create(): a request that was answered before goes to session_create_again().
 * 2. session_create_make(): members of a template that it names become its own.
 * 3. session_create_on_params(): its parameters, checked; core_create_sessions() makes the session.
 * 4. session_create_on_created(): the session is durable, or why not.
 * 5. session_create_wait_for(): the answer, now or when the session runs or has ended.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "manager/session/session.h"
#include "manager/session/session_feature.h"
#include "manager/session/session_params.h"
#include "manager/session/session_template.h"
#include "manager/call/repeat.h"
#include "model/array_range.h"

#define WAIT_MAX_SEC 86400

/* One creation whose request waits for the answer. */
struct session_create_creation {
    struct api *api;
    struct request *req;
    bool enqueue_only;
    int64_t max_wait_sec;
    struct uuid id;
    char name[SESSION_NAME_MAX + 1];
    struct core_answered answered;
    struct core_subscriber *subscriber; /* while waiting */
    uv_timer_t *timer;                  /* NULL = waits as long as it takes */
};

static void session_create_make(struct request *req, void *data);
static void session_create_again(struct request *req, void *data,
                                 const struct request_answer *answer);
static void session_create_on_params(struct request *req, void *data, json_t *tree,
                                     const struct aq_error *err);
static void session_create_on_created(void *data, int r, const struct aq_error *err,
                                      const struct core_created *created);
static void session_create_wait_for(struct session_create_creation *creation,
                                    const struct core_created *created);

/* ---- what is answered ---- */

static const char *session_create_status_text_for(const struct request *req,
                                                  enum session_status status)
{
    return principal_is_old(api_principal(req)) ? session_status_name_2203(status)
                                                : session_status_name(status);
}

/* 'session': NULL = gone from memory */
static void session_create_write_created(const struct uuid *id, const char *name,
                                         const char *status, bool is_new,
                                         const struct session *session, struct jsonw *w)
{
    const struct kernel *main = session ? session_find_kernel(session, NULL, NULL) : NULL;

    jsonw_object_begin(w);
    api_write_uuid(w, "sessionId", id);
    jsonw_member_str(w, "sessionName", name);
    jsonw_member_str(w, "status", status);
    if (is_new) {
        jsonw_key(w, "servicePorts");
        apps_write(main, w);
    } else {
        api_write_raw(w, "service_ports", apps_raw(main));
    }
    jsonw_member_bool(w, "created", is_new);
    jsonw_object_end(w);
}

static void session_create_reply_created(const struct session_create_creation *creation,
                                         const struct uuid *id, const char *name,
                                         const char *status, bool is_new)
{
    struct request *req = creation->req;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    session_create_write_created(id, name, status, is_new,
                                 core_find_session(creation->api->core, id), &w);
    if (is_new)
        request_reply_json(req, 201, &out);
    else
        repeat_reply_unmade(creation->api, req, 200, &out);
    AQ_FAULT("api.create.answered");
}

/* {"existingSessionId": ...}, for session-already-exists */
static void session_create_fail_creation(struct api *api, struct request *req,
                                         const struct aq_error *err,
                                         const struct core_created *created)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf data = STRBUF_INIT;
    struct jsonw w = jsonw_make(&data);

    if (!created || !err->kind || strcmp(err->kind, "session-already-exists")) {
        repeat_fail(api, req, err, NULL);
        return;
    }
    jsonw_object_begin(&w);
    api_write_uuid(&w, "existingSessionId", &created->id);
    jsonw_object_end(&w);
    repeat_fail(api, req, err, data.data);
}

/* What is written with it: at once the status is what it begins with. */
static int session_create_write_answer(void *data, const struct core_created *created,
                                       struct strbuf *out)
{
    const struct session_create_creation *creation = data;
    struct jsonw w = jsonw_make(out);

    session_create_write_created(
        &created->id, created->name, session_create_status_text_for(creation->req, created->status),
        created->is_new, core_find_session(creation->api->core, &created->id), &w);
    return created->is_new ? 201 : 200;
}

/* ---- step 1: was it made before? ---- */

static void session_create_on_create(struct request *req, void *data)
{
    static const struct repeat_handler handler = { session_create_make, session_create_again };

    repeat_start(data, req, &handler);
}

/* ---- step 2: the template ---- */

static void session_create_make(struct request *req, void *data)
{
    session_template_expand(data, req, session_create_on_params, data);
}

/* ---- step 3: parameters, and the command ---- */

/* NULL after an answer that says why not; 'tree' NULL = 'failed' says so. */
static struct session_create_creation *session_create_read(struct api *api, struct request *req,
                                                           const json_t *tree,
                                                           const struct aq_error *failed,
                                                           struct session_params *params)
{
    struct session_create_creation *creation = arena_alloc(request_get_arena(req),
                                                           sizeof(*creation));
    struct aq_error err = { 0 };

    if (!tree)
        err = *failed;
    if (err.code || session_params_read(api, req, tree, params, &err) < 0) {
        repeat_fail(api, req, &err, NULL);
        return NULL;
    }
    *creation = (struct session_create_creation){ .api = api,
                                                  .req = req,
                                                  .enqueue_only = params->enqueue_only,
                                                  .max_wait_sec = params->max_wait_sec };
    return creation;
}

/* What arrays are made of. */
static int session_create_read_array(const struct api *api, const struct session_params *params,
                                     struct array_set *ret, int64_t *ret_limit,
                                     struct aq_error *err)
{
    if (params->request.type != SESSION_BATCH)
        return api_fail_param(err, "array",
                              "elements of an array are batch sessions; set type to "
                              "batch");
    if (params->request.spec.input)
        return api_fail_param(err, "array", "elements of an array have no input; leave input out");
    return array_set_parse(params->array, core_array_size_max(api->core), ret, ret_limit, err);
}

static void session_create_array(struct session_create_creation *creation,
                                 const struct session_params *params)
{
    AQ_CLEANUP(array_set_done) struct array_set indices = { 0 };
    const struct api *api = creation->api;
    struct aq_error err = { 0 };
    int64_t limit;

    if (session_create_read_array(api, params, &indices, &limit, &err) < 0)
        repeat_fail(creation->api, creation->req, &err, NULL);
    else
        core_create_array(api->core, &params->request, &indices, limit, &creation->answered,
                          api_who(api, creation->req), session_create_on_created, creation);
}

static void session_create_on_params(struct request *req, void *data, json_t *tree,
                                     const struct aq_error *err)
{
    struct session_params params;
    struct api *api = data;
    struct session_create_creation *creation = session_create_read(api, req, tree, err, &params);
    const struct session_request *request = &params.request;

    json_decref(tree);
    if (!creation)
        return;
    AQ_FAULT("api.create.decoded");
    repeat_fill(req, &creation->answered);
    creation->answered.write = session_create_write_answer;
    if (params.array)
        session_create_array(creation, &params);
    else
        core_create_sessions(api->core, &request, 1, &creation->answered, api_who(api, req),
                             session_create_on_created, creation);
    session_params_done(&params);
}

/* ---- step 4: it is durable, or was refused ---- */

static void session_create_on_created(void *data, int r, const struct aq_error *err,
                                      const struct core_created *created)
{
    struct session_create_creation *creation = data;

    AQ_FAULT("api.create.durable");
    if (r < 0) {
        session_create_fail_creation(creation->api, creation->req, err, created);
        return;
    }
    repeat_note_answered(creation->api, creation->req);
    if (!created->is_new)
        session_create_reply_created(creation, &created->id, created->name,
                                     session_create_status_text_for(creation->req, created->status),
                                     false);
    else
        session_create_wait_for(creation, created);
}

/* ---- step 5: waiting until it has settled ---- */

static void session_create_on_timer_closed(uv_handle_t *handle)
{
    free(handle);
}

/* The wait is over; answer with 'status'. */
static void session_create_finish_wait(struct session_create_creation *creation, const char *status)
{
    request_set_gone(creation->req, NULL, NULL);
    core_unsubscribe(creation->api->core, creation->subscriber);
    if (creation->timer)
        uv_close((uv_handle_t *)creation->timer, session_create_on_timer_closed);
    session_create_reply_created(creation, &creation->id, creation->name, status, true);
}

static void session_create_on_wait_gone(struct request *req, void *data)
{
    (void)req;
    session_create_finish_wait(data, "TIMEOUT");
}

static void session_create_on_wait_over(uv_timer_t *timer)
{
    session_create_finish_wait(timer->data, "TIMEOUT");
}

static bool session_create_has_settled(enum session_status status)
{
    return status == SESSION_RUNNING || status == SESSION_RUNNING_DEGRADED
           || session_is_terminal(status);
}

static void session_create_on_wait_event(void *data, const struct core_event *event)
{
    struct session_create_creation *creation = data;

    if (!event->kernel && session_create_has_settled(event->session->status))
        session_create_finish_wait(
            creation, session_create_status_text_for(creation->req, event->session->status));
}

/* Answer now, or when the session has settled. */
static void session_create_wait_for(struct session_create_creation *creation,
                                    const struct core_created *created)
{
    const struct session *session = core_find_session(creation->api->core, &created->id);
    enum session_status status = session ? session->status : created->status;

    creation->id = created->id;
    memcpy(creation->name, created->name, sizeof(creation->name));
    if (creation->enqueue_only || !session || session_create_has_settled(status)) {
        session_create_reply_created(creation, &created->id, created->name,
                                     session_create_status_text_for(creation->req, status), true);
        return;
    }
    creation->subscriber = core_subscribe(creation->api->core, &created->id,
                                          session_create_on_wait_event, creation);
    if (request_is_gone(creation->req)) {
        session_create_finish_wait(creation, session_create_status_text_for(creation->req, status));
        return;
    }
    if (creation->max_wait_sec) {
        creation->timer = aq_alloc(sizeof(*creation->timer));
        uv_timer_init(request_get_loop(creation->req), creation->timer);
        creation->timer->data = creation;
        uv_timer_start(creation->timer, session_create_on_wait_over,
                       (uint64_t)creation->max_wait_sec * 1000, 0);
    }
    request_set_gone(creation->req, session_create_on_wait_gone, creation);
}

/* ---- sent again ---- */

/* The session that was made before; false if that cannot be said any more. */
static bool session_create_read_answer(const struct core *core, const struct request_answer *answer,
                                       struct core_created *ret)
{
    json_auto_t *tree = answer->status == 201 ? json_loads(answer->body, 0, NULL) : NULL;
    const char *id = json_string_value(json_object_get(tree, "sessionId"));
    const char *name = json_string_value(json_object_get(tree, "sessionName"));
    const struct session *session;

    *ret = (struct core_created){ .is_new = true };
    if (!id || !name || uuid_parse(id, &ret->id) < 0
        || !(session = core_find_session(core, &ret->id)))
        return false;
    ret->status = session->status;
    (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
    return true;
}

/* Whether and how long its client waits: all else was read when it was made, and its template may
 * have changed.
 */
static int session_create_read_wait(struct request *req, struct session_create_creation *ret,
                                    struct aq_error *err)
{
#define AT(member) offsetof(struct session_create_creation, member)
    static const struct field fields[] = {
        { "enqueueOnly|enqueue_only", FIELD_BOOL, 0, AT(enqueue_only) },
        { "maxWaitSeconds|max_wait_seconds", FIELD_INT, 0, AT(max_wait_sec), 0, WAIT_MAX_SEC },
        FIELD_END,
    };
#undef AT
    json_auto_t *tree = NULL;
    json_auto_t *wait = json_object();
    json_t *value;
    const char *name;
    int r = api_parse(req, &tree, err);

    json_object_foreach(tree, name, value)
        if (field_find(fields, name))
            (void)json_object_set(wait, name, value);
    return r < 0 ? r : decode_object(fields, wait, request_get_arena(req), ret, err);
}

/* A client that waited for it goes on waiting while it lives. */
static void session_create_again(struct request *req, void *data,
                                 const struct request_answer *answer)
{
    struct session_create_creation *creation = arena_alloc(request_get_arena(req),
                                                           sizeof(*creation));
    struct core_created created;
    struct aq_error err = { 0 };
    struct api *api = data;

    if (!session_create_read_answer(api->core, answer, &created)) {
        repeat_reply(req, answer);
        return;
    }
    *creation = (struct session_create_creation){ .api = api, .req = req };
    if (session_create_read_wait(req, creation, &err) < 0 || creation->enqueue_only) {
        repeat_reply(req, answer);
        return;
    }
    repeat_mark(req);
    session_create_wait_for(creation, &created);
}

/* ---- several at once ---- */

#define SEVERAL_MAX 1000

/* A list of creations whose request waits for the answer. */
struct several {
    struct api *api;
    struct request *req;
    struct core_answered answered;
    size_t count;
};

static int session_create_write_batch(void *data, const struct core_created *created,
                                      struct strbuf *out)
{
    const struct several *all = data;
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < all->count; i++)
        session_create_write_created(&created[i].id, created[i].name,
                                     session_create_status_text_for(all->req, created[i].status),
                                     created[i].is_new,
                                     core_find_session(all->api->core, &created[i].id), &w);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    return 201;
}

static void session_create_on_batch_created(void *data, int r, const struct aq_error *err,
                                            const struct core_created *created)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct several *all = data;

    if (r < 0) {
        session_create_fail_creation(all->api, all->req, err, created);
        return;
    }
    repeat_note_answered(all->api, all->req);
    request_reply_json(all->req, session_create_write_batch(data, created, &out), &out);
    AQ_FAULT("api.create.several-answered");
}

/* "[3].name" for the fourth element's name */
static void session_create_name_element(struct aq_error *err, size_t i)
{
    char field[sizeof(err->field)];

    memcpy(field, err->field, sizeof(field));
    snprintf(err->field, sizeof(err->field), "[%zu].%.50s", i, field);
}

/* All of them are read before the first is made: one that is malformed refuses all. */
static int session_create_read_batch(const struct api *api, struct request *req, const json_t *list,
                                     struct session_params *params, struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; i < json_array_size(list); i++) {
        if ((r = session_params_read(api, req, json_array_get(list, i), &params[i], err)) == 0
            && !params[i].array)
            continue;
        if (r == 0) {
            session_params_done(&params[i]);
            r = api_fail_param(err, "array", "an array is made by POST /session, alone");
        }
        if (json_array_size(list) > 1)
            session_create_name_element(err, i);
        while (i > 0)
            session_params_done(&params[--i]);
        return r;
    }
    return 0;
}

static void session_create_start_batch(struct several *all, struct session_params *params)
{
    const struct session_request **requests = arena_array(request_get_arena(all->req), all->count,
                                                          sizeof(struct session_request *));

    for (size_t i = 0; i < all->count; i++)
        requests[i] = &params[i].request;
    core_create_sessions(all->api->core, requests, all->count, &all->answered,
                         api_who(all->api, all->req), session_create_on_batch_created, all);
    for (size_t i = 0; i < all->count; i++)
        session_params_done(&params[i]);
}

static void session_create_on_batch_params(struct request *req, void *data, json_t *tree,
                                           const struct aq_error *failed)
{
    json_auto_t *list = NULL;
    struct aq_error err = { 0 };
    struct session_params *params = NULL;
    struct several *all = NULL;
    size_t count = 0;

    if (!tree) {
        err = *failed;
    } else {
        list = json_is_array(tree) ? json_incref(tree) : json_pack("[O]", tree);
        count = json_array_size(list);
        all = arena_alloc(request_get_arena(req), sizeof(*all));
        params = arena_array(request_get_arena(req), count ? count : 1, sizeof(*params));
        if (count == 0 || count > SEVERAL_MAX)
            api_fail_param(&err, "body", "must be 1 to %d sessions", SEVERAL_MAX);
        json_decref(tree);
    }
    if (err.code || session_create_read_batch(data, req, list, params, &err) < 0) {
        repeat_fail(data, req, &err, NULL);
        return;
    }
    AQ_FAULT("api.create.several-decoded");
    *all = (struct several){ .api = data, .req = req, .count = count };
    repeat_fill(req, &all->answered);
    all->answered.write = session_create_write_batch;
    session_create_start_batch(all, params);
}

static void session_create_make_batch(struct request *req, void *data)
{
    session_template_expand(data, req, session_create_on_batch_params, data);
}

static void session_create_on_create_batch(struct request *req, void *data)
{
    static const struct repeat_handler handler = { session_create_make_batch, NULL };

    repeat_start(data, req, &handler);
}

/* ---- without making it ---- */

static void session_create_on_dry_run_done(void *data, int r, const struct aq_error *err,
                                           const struct core_dry_run *trial)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    if (r < 0) {
        request_fail(data, err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "resource_group", trial->resource_group);
    jsonw_member_int(&w, "count", (int64_t)trial->count);
    jsonw_member_int(&w, "starts_now", (int64_t)trial->started);
    jsonw_member_str(&w, "text", trial->text);
    api_write_raw(&w, "explanation", trial->json);
    jsonw_object_end(&w);
    request_reply_json(data, 200, &out);
}

/* How many sessions are tried: a member beside those of one session. */
static int session_create_take_count(json_t *tree, size_t *ret, struct aq_error *err)
{
    const json_t *count = json_object_get(tree, "count");

    if (count && (json_integer_value(count) < 1 || json_integer_value(count) > SEVERAL_MAX))
        return api_fail_param(err, "count", "must be a number from 1 to %d", SEVERAL_MAX);
    *ret = count ? (size_t)json_integer_value(count) : 1;
    (void)json_object_del(tree, "count");
    return 0;
}

/* Elements, as many as are tried at most; 0 with an error. */
static size_t session_create_count_array(const struct api *api, const struct session_params *params,
                                         struct aq_error *err)
{
    AQ_CLEANUP(array_set_done) struct array_set indices = { 0 };
    int64_t limit, count;

    if (session_create_read_array(api, params, &indices, &limit, err) < 0)
        return 0;
    count = AQ_MIN(array_set_size(&indices), SEVERAL_MAX);
    return (size_t)(limit ? AQ_MIN(count, limit) : count);
}

static void session_create_on_dry_run_params(struct request *req, void *data, json_t *tree,
                                             const struct aq_error *failed)
{
    struct session_params params = { .array = NULL };
    struct api *api = data;
    struct aq_error err = { 0 };
    size_t count = 1;
    int r = tree ? session_create_take_count(tree, &count, &err) : -failed->code;

    if (r == 0)
        r = session_params_read(api, req, tree, &params, &err);
    json_decref(tree);
    if (r < 0) {
        request_fail(req, tree ? &err : failed);
        return;
    }
    params.request.reuse = false;
    if (params.array)
        count = session_create_count_array(api, &params, &err);
    if (!count) {
        request_fail(req, &err);
        session_params_done(&params);
        return;
    }
    core_dry_run_session(api->core, &params.request, count, session_create_on_dry_run_done, req);
    session_params_done(&params);
}

static void session_create_on_dry_run(struct request *req, void *data)
{
    session_template_expand(data, req, session_create_on_dry_run_params, data);
}

/* Who may make sessions, and that each request makes them once. */
#define CREATE_ROLE (API_USER | API_FREEZABLE | API_ANSWERED_ONCE)

static const struct route session_create_routes[] = {
    { METHOD_POST, "/session", CREATE_ROLE, session_create_on_create, session_fields,
      "Make a session, or find the live one of this name", .answer = { 201, 200 } },
    { METHOD_POST, "/session/_/create", CREATE_ROLE, session_create_on_create, session_fields,
      "Make a session, or find the live one of this name", .answer = { 201, 200 } },
    { METHOD_POST, "/session/_/create-from-template", CREATE_ROLE, session_create_on_create,
      session_fields, "Make a session as a template says", .answer = { 201, 200 } },
    { METHOD_POST, "/session/_/create-cluster", CREATE_ROLE, session_create_on_create,
      session_fields, "Make a session of several roles, as a cluster's template says",
      .answer = { 201, 200 } },
    { METHOD_POST, "/aliquot/v1/sessions", CREATE_ROLE, session_create_on_create_batch,
      session_fields, "Queue one session or a list of sessions", .answer = { 201 },
      .list_max = SEVERAL_MAX },
    { METHOD_POST, "/aliquot/v1/sessions/_/dry-run", API_USER, session_create_on_dry_run,
      session_fields,
      "Say what would become of a session, or of as many as the member count says, and make "
      "none" },
};
API_ROUTES_END(session_create);
