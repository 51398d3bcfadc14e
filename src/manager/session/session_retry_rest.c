/* SPDX-License-Identifier: Apache-2.0 */
/* Repeating a session that has ended: POST .../retry makes a new one like it. */
#include <errno.h>
#include <string.h>

#include "base/fault.h"
#include "manager/call/repeat.h"
#include "manager/session/session.h"
#include "manager/session/session_feature.h"
#include "manager/session/session_params.h"
#include "manager/session/session_retry.h"
#include "manager/session/session_view.h"
#include "store/session_graph.h"

/* A request that waits for the store. */
struct session_retry {
    struct api *api;
    struct request *req;
    struct session_retry_params params;
    struct uuid id, array_id;
    struct store_page *sessions, *arrays;
    struct str_list waits, left_out;
    size_t ended_dependencies;
    struct core_answered answered;
};

/* Members of the body; resources are read at once, as they belong to the body. */
struct session_retry_body {
    struct session_retry_params params;
    const json_t *resources;
};

#define AT(member) offsetof(struct session_retry_body, params.member)

static const struct field retry_fields[] = {
    OWNER_FIELD(struct session_retry_body, params.owner_access_key),
    { "name", FIELD_STR, FIELD_NULLABLE, AT(name), 1, 64,
      .doc = "of the new session; default: the name of the ended one, NAME-INDEX for an element of "
             "an array" },
    { "image", FIELD_STR, FIELD_NULLABLE, AT(image), 1, 512, .doc = "in place of the same image" },
    { "resources", FIELD_OBJECT, FIELD_NULLABLE, offsetof(struct session_retry_body, resources),
      .doc = "slots whose amounts per kernel differ, e.g. {\"mem\": \"4g\"}" },
    { "with_suggested|withSuggested", FIELD_BOOL, 0, AT(with_suggested),
      .doc = "take the suggested amounts of its summary" },
    { "no_input|noInput", FIELD_BOOL, 0, AT(with_empty_input),
      .doc = "run it with an empty standard input, if it read that of its client" },
    FIELD_END,
};

#undef AT

/* Before the answer, with which the request ends. */
static void session_retry_free_pages(struct session_retry *retry)
{
    store_page_free(AQ_TAKE(retry->sessions));
    store_page_free(AQ_TAKE(retry->arrays));
}

static void session_retry_fail(struct session_retry *retry, const struct aq_error *err)
{
    session_retry_free_pages(retry);
    repeat_fail(retry->api, retry->req, err, NULL);
}

/* ---- the answer ---- */

/* core_answered.write */
static int session_retry_write_answer(void *data, const struct core_created *created,
                                      struct strbuf *out)
{
    const struct session_retry *retry = data;
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    api_write_uuid(&w, "sessionId", &created->id);
    jsonw_member_str(&w, "sessionName", created->name);
    jsonw_member_str(&w, "status", session_view_status(api_principal(retry->req), created->status));
    api_write_uuid(&w, "retry_of", &retry->id);
    jsonw_key(&w, "not_repeated");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < retry->left_out.count; i++)
        jsonw_str(&w, retry->left_out.items[i]);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    return 201;
}

/* core_create_fn */
static void session_retry_on_created(void *data, int r, const struct aq_error *err,
                                     const struct core_created *created)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct session_retry *retry = data;

    AQ_FAULT("api.retry.durable");
    if (r < 0) {
        session_retry_fail(retry, err);
        return;
    }
    session_retry_free_pages(retry);
    repeat_note_answered(retry->api, retry->req);
    request_reply_json(retry->req, session_retry_write_answer(retry, created, &out), &out);
}

/* ---- the session, once more with all that belongs to it ---- */

static int session_retry_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct session_retry *retry = data;
    struct store_query query = { .ids = &retry->id, .id_count = 1, .limit = 1 };
    const struct store_query array = { .ids = &retry->array_id, .id_count = 1, .limit = 1 };
    int r;

    session_view_apply_fields(SESSION_FIELDS_ALL, &query);
    r = store_list_sessions(tx, &query, &retry->sessions, err);
    if (r == 0)
        r = session_graph_read_waits(tx, &retry->id, request_get_arena(retry->req), &retry->waits,
                                     &retry->ended_dependencies, err);
    if (r == 0 && !uuid_is_nil(&retry->array_id))
        r = store_list_arrays(tx, &array, &retry->arrays, err);
    return r;
}

static void session_retry_on_read(void *data, int r, const struct aq_error *read_err)
{
    struct session_retry *retry = data;
    struct session_retry_source source = { .waits = &retry->waits,
                                           .ended_dependencies = retry->ended_dependencies };
    const struct session_request *request;
    struct session_request built;
    struct aq_error err = { 0 };

    if (r < 0)
        err = *read_err;
    else if (!retry->sessions->count || !retry->sessions->sessions[0].session.spec)
        r = aq_fail_kind(&err, ENOENT, "session-not-found", "the session was removed meanwhile");
    if (r == 0) {
        source.row = &retry->sessions->sessions[0];
        source.array = retry->arrays && retry->arrays->count
                           ? &((const struct array_row *)retry->arrays->rows)[0]
                           : NULL;
        r = session_retry_build(retry->api, api_principal(retry->req),
                                request_get_arena(retry->req), &source, &retry->params, &built,
                                &retry->left_out, &err);
    }
    if (r < 0) {
        session_retry_fail(retry, &err);
        return;
    }
    AQ_FAULT("api.retry.decoded");
    request = &built;
    repeat_fill(retry->req, &retry->answered);
    retry->answered.write = session_retry_write_answer;
    core_create_sessions(retry->api->core, &request, 1, &retry->answered,
                         api_who(retry->api, retry->req), session_retry_on_created, retry);
    session_retry_done(&built);
}

static void session_retry_on_found(struct request *req, const struct session_row *row, void *data)
{
    struct session_retry *retry = data;

    (void)req;
    retry->id = row->session.id;
    retry->array_id = row->session.array_id;
    store_read(core_store(retry->api->core), session_retry_read, session_retry_on_read, retry);
}

/* ---- the request ---- */

static int session_retry_read_body(const struct api *api, struct request *req,
                                   struct session_retry_params *ret, struct aq_error *err)
{
    AQ_CLEANUP(slots_donep) struct slots changes = { 0 };
    struct session_retry_body body = { .resources = NULL };
    json_auto_t *tree = NULL;
    int r;

    if ((r = api_decode(req, &body, &tree, err)) < 0
        || (r = session_params_read_slots(api, body.resources, &changes, err)) < 0)
        return r;
    *ret = body.params;
    ret->changes = arena_array(request_get_arena(req), changes.count + 1, sizeof(*ret->changes));
    ret->change_count = changes.count;
    if (changes.count)
        memcpy(ret->changes, changes.items, changes.count * sizeof(*changes.items));
    return 0;
}

static void session_retry_make(struct request *req, void *data)
{
    struct session_retry *retry = arena_alloc(request_get_arena(req), sizeof(*retry));
    struct aq_error err = { 0 };

    *retry = (struct session_retry){ .api = data, .req = req };
    if (session_retry_read_body(data, req, &retry->params, &err) < 0)
        session_retry_fail(retry, &err);
    else
        session_find(data, req, retry->params.owner_access_key, session_retry_on_found, retry);
}

static void session_retry_on_retry(struct request *req, void *data)
{
    static const struct repeat_handler handler = { session_retry_make, NULL };

    repeat_start(data, req, &handler);
}

static const struct route session_retry_routes[] = {
    { METHOD_POST, "/aliquot/v1/sessions/{name}/retry",
      API_USER | API_FREEZABLE | API_ANSWERED_ONCE, session_retry_on_retry, retry_fields,
      "Queue a new session that repeats a batch session which has ended", .answer = { 201 } },
};
API_ROUTES_END(session_retry);
