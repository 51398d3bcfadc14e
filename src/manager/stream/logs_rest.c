/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of sessions: kept ones whole, live ones as they grow.
 *
 * Bytes come over a stream from the agent that ran the kernel. A reader that
 * is slower than the program holds the stream back; nobody else notices.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "manager/stream/stream_feature.h"
#include "manager/session/session.h"
#include "manager/stream/log_quota.h"
#include "manager/call/streams.h"
#include "store/query.h"

/* The old route answers with one JSON text: the end of a longer log, from a character on. */
#define LOG_TEXT_MAX (1024 * 1024)
#define LOG_TYPE "text/plain; charset=utf-8"
#define TAIL_ALL (-1)

struct log_params {
    struct api *api;
    const char *owner_access_key, *kernel;
    struct uuid kernel_id;
    bool as_text; /* one JSON text at the end, else bytes as they come */
    bool follow, timestamps;
    int64_t tail, attempt;
    const char *since;
    int64_t since_usec, ago_usec; /* as in msg_stream_open */
};

static const struct field text_fields[] = {
    OWNER_FIELD(struct log_params, owner_access_key),
    { "kernel_id", FIELD_UUID, FIELD_NULLABLE, offsetof(struct log_params, kernel_id) },
    FIELD_END,
};

static const struct field stream_fields[] = {
    OWNER_FIELD(struct log_params, owner_access_key),
    KERNEL_FIELD(struct log_params, kernel),
    { "follow", FIELD_BOOL, 0, offsetof(struct log_params, follow),
      .doc = "go on until the program ends" },
    { "tail", FIELD_INT, 0, offsetof(struct log_params, tail), 0, 1000000,
      .doc = "only the last lines; 0 = only what is written from now on" },
    { "since", FIELD_STR, FIELD_NULLABLE, offsetof(struct log_params, since), 1, 64,
      .doc = "only lines printed then or later: a date, Unix time, or how long ago, e.g. 10m" },
    { "attempt", FIELD_INT, 0, offsetof(struct log_params, attempt), 1, INT32_MAX,
      .doc = "of a session that was run again: only this attempt, from 1; default: the last" },
    { "timestamps", FIELD_BOOL, 0, offsetof(struct log_params, timestamps),
      .doc = "before each line when it was printed" },
    FIELD_END,
};

struct logs_reader {
    struct api *api;
    struct pump pump;
    struct request *req;
    bool as_text, follow, timestamps;
    int64_t tail; /* TAIL_ALL, or so many lines */
    int64_t since_usec, ago_usec;
    int64_t kernel_attempt; /* 0 = the newest */
    bool has_begun;
    struct strbuf text;
    struct uuid kernel_id;
    uint32_t rank;
    struct link_stream *stream;         /* NULL until open and after its end */
    struct log_quota_readers *place;    /* among those of the user; NULL = none yet */
    struct core_subscriber *subscriber; /* while the kernel has not been started */
    struct api_stream right;
};

/* Neither its agent, its session, its right nor its request finds the reader any more. */
static void logs_reader_free(struct logs_reader *reader)
{
    request_set_gone(reader->req, NULL, NULL);
    api_stream_close(&reader->right);
    if (reader->subscriber)
        core_unsubscribe(reader->api->core, reader->subscriber);
    link_stream_close(reader->stream);
    pump_done(&reader->pump);
    log_quota_leave(reader->place);
    strbuf_done(&reader->text);
    free(reader);
}

static void logs_cut_text(struct strbuf *text)
{
    if (text->len <= LOG_TEXT_MAX)
        return;
    strbuf_consume(text, text->len - LOG_TEXT_MAX);
    strbuf_consume(text, utf8_rest(text->data, text->len));
}

static void logs_reply_text(struct request *req, struct strbuf *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    logs_cut_text(text);
    jsonw_object_begin(&w);
    jsonw_key(&w, "result");
    jsonw_object_begin(&w);
    jsonw_key(&w, "logs");
    jsonw_strn(&w, text->data, text->len);
    jsonw_object_end(&w);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

static void logs_on_drain(struct request *req, void *data)
{
    struct logs_reader *reader = data;

    (void)req;
    pump_drained(&reader->pump, PUMP_CLIENT);
}

static void logs_begin(struct logs_reader *reader)
{
    if (!reader->as_text && !reader->has_begun) {
        request_begin(reader->req, 200, LOG_TYPE, logs_on_drain, reader);
        (void)pump_open(&reader->pump, PUMP_CLIENT); /* nothing waits */
    }
    reader->has_begun = true;
}

/* Everything was read ('err' NULL) or nothing more will come. The reader is freed before the reply:
 * it follows an event or a stream which others follow, too.
 */
static void logs_finish(struct logs_reader *reader, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = reader->text;
    const struct aq_error why = err ? *err : (struct aq_error){ 0 };
    struct request *req = reader->req;
    bool as_text = reader->as_text;
    bool has_begun = reader->has_begun;

    strbuf_init(&reader->text);
    logs_reader_free(reader);
    if (err && (as_text || !has_begun)) {
        request_fail(req, &why); /* a part would look like the whole */
    } else if (as_text) {
        logs_reply_text(req, &text);
    } else if (err) {
        request_abort(req);
    } else {
        if (!has_begun)
            request_begin(req, 200, LOG_TYPE, NULL, NULL);
        request_end(req);
    }
}

static void logs_on_gone(struct request *req, void *data)
{
    struct aq_error err = { 0 };

    (void)req;
    aq_fail(&err, EPIPE, "the reader has gone");
    logs_finish(data, &err);
}

static void logs_on_forbidden(void *data, const struct aq_error *err)
{
    logs_finish(data, err);
}

/* ---- the agent's stream ---- */

static void logs_on_open(void *data, struct link_stream *stream)
{
    struct logs_reader *reader = data;

    pump_join(&reader->pump, PUMP_KERNEL, &link_stream_pump, stream);
    logs_begin(reader);
}

static void logs_on_data(void *data, struct link_stream *stream, const char *bytes, size_t len)
{
    struct logs_reader *reader = data;
    struct aq_error err = { 0 };

    (void)stream;
    if (reader->as_text) {
        strbuf_add(&reader->text, bytes, len);
        if (reader->text.len > 2 * LOG_TEXT_MAX)
            logs_cut_text(&reader->text);
        return;
    }
    if (pump_give(&reader->pump, PUMP_KERNEL, bytes, len) < 0) {
        aq_fail(&err, EPIPE, "the reader has gone or is too slow");
        logs_finish(reader, &err);
    }
}

static void logs_on_close(void *data, struct link_stream *stream, const struct aq_error *err)
{
    struct logs_reader *reader = data;

    (void)stream;
    pump_part(&reader->pump, PUMP_KERNEL);
    reader->stream = NULL;
    /* An agent keeps no log of a program that wrote nothing. */
    logs_finish(reader, err && err->code == ENOENT ? NULL : err);
}

static const struct link_stream_ops stream_ops = {
    .on_open = logs_on_open,
    .on_data = logs_on_data,
    .on_close = logs_on_close,
};

/* Ask the kernel's agent. A kernel that was never given to one has no log. */
static void logs_open_stream(struct logs_reader *reader, const char *agent_id)
{
    bool is_timed = reader->timestamps || reader->since_usec || reader->ago_usec;
    struct msg_stream_open open = { .kind = is_timed ? "timed-logs" : "logs",
                                    .kernel_id = reader->kernel_id,
                                    .follow = reader->follow,
                                    .tail_lines = AQ_MAX(reader->tail, INT64_C(0)),
                                    .only_new = reader->tail == 0,
                                    .attempt = reader->kernel_attempt,
                                    .since_usec = reader->since_usec,
                                    .ago_usec = reader->ago_usec,
                                    .timestamps = reader->timestamps };
    struct aq_error err = { 0 };
    int r;

    if (!agent_id || !*agent_id) {
        logs_finish(reader, NULL);
        return;
    }
    r = log_quota_enter(reader->api->stream->log_quota, &api_principal(reader->req)->user_id,
                        agent_id, &reader->place, &err);
    if (r == -EAGAIN)
        request_add_header_int(reader->req, "Retry-After", 1);
    if (r == 0)
        r = core_open_stream(reader->api->core, agent_id, &open, &stream_ops, reader,
                             &reader->stream, &err);
    if (r == 0)
        return;
    if (r == -ENOTCONN)
        err.kind = "service-unavailable";
    logs_finish(reader, &err);
}

/* ---- which kernel, and has it begun ---- */

/* A kernel in CREATING runs its bootstrap script, whose output is in the log. */
static bool kernel_has_begun(enum kernel_status status)
{
    return status >= KERNEL_CREATING;
}

static void logs_on_event(void *data, const struct core_event *event)
{
    struct logs_reader *reader = data;
    const struct kernel *kernel;

    if (reader->rank >= event->session->kernel_count)
        return;
    kernel = &event->session->kernels[reader->rank];
    if (!kernel_has_begun(kernel->status))
        return;
    core_unsubscribe(reader->api->core, reader->subscriber);
    reader->subscriber = NULL;
    if (reader->tail == 0)
        reader->tail = TAIL_ALL; /* all of it is new */
    logs_open_stream(reader, kernel->agent_id);
}

static const struct kernel *logs_choose(const struct session *session,
                                        const struct log_params *params, struct aq_error *err)
{
    if (uuid_is_nil(&params->kernel_id))
        return session_find_kernel(session, params->kernel, err);
    for (size_t i = 0; i < session->kernel_count; i++)
        if (uuid_equals(&session->kernels[i].id, &params->kernel_id))
            return &session->kernels[i];
    (void)problem_no_such(err, "kernel", "session '%s' has no kernel with this id", session->name);
    return NULL;
}

static struct logs_reader *logs_reader_new(struct request *req, const struct log_params *params,
                                           const struct kernel *kernel)
{
    struct logs_reader *reader = aq_alloc(sizeof(*reader));

    reader->api = params->api;
    reader->req = req;
    reader->as_text = params->as_text;
    reader->follow = params->follow;
    reader->tail = params->tail;
    reader->timestamps = params->timestamps;
    reader->since_usec = params->since_usec;
    reader->ago_usec = params->ago_usec;
    reader->kernel_id = kernel->id;
    reader->rank = kernel->rank;
    strbuf_init(&reader->text);
    pump_init(&reader->pump);
    pump_join(&reader->pump, PUMP_CLIENT, &request_pump, req);
    api_stream_open(params->api, api_principal(req)->access_key, &reader->right, logs_on_forbidden,
                    reader);
    request_set_gone(req, logs_on_gone, reader);
    return reader;
}

static void logs_serve(struct request *req, const struct session *session,
                       const struct log_params *params)
{
    const struct kernel *live, *chosen;
    struct logs_reader *reader;
    struct aq_error err = { 0 };

    chosen = logs_choose(session, params, &err);
    if (chosen && request_is_gone(req))
        (void)aq_fail(&err, EPIPE, "the client has closed the connection");
    if (err.code) {
        request_fail(req, &err);
        return;
    }
    reader = logs_reader_new(req, params, chosen);
    live = core_find_kernel(params->api->core, &reader->kernel_id); /* newer than a row */
    if (!live || kernel_has_begun(live->status))
        logs_open_stream(reader, live ? live->agent_id : chosen->agent_id);
    else if (!reader->follow)
        logs_finish(reader, NULL); /* nothing was written yet */
    else
        reader->subscriber = core_subscribe(reader->api->core, &session->id, logs_on_event, reader);
}

/* The attempt that was asked for, if it has ended; NULL = it is the last one, or with 'err' none. */
static const struct run_row *logs_find_run(const struct session_row *row,
                                           const struct log_params *params, struct aq_error *err)
{
    int64_t last = row->session.rerun ? row->session.rerun->attempts + 1 : 1;

    for (size_t i = 0; i < row->run_count; i++)
        if (row->runs[i].number == params->attempt)
            return &row->runs[i];
    if (params->attempt && params->attempt != last)
        (void)api_fail_param(err, "attempt", "session '%s' has no attempt %lld; its last is %lld",
                             row->session.name, (long long)params->attempt, (long long)last);
    return NULL;
}

/* The log of an attempt that has ended, from the agent where it ran. */
static void logs_serve_run(struct request *req, const struct session *session,
                           const struct run_row *run, const struct log_params *params)
{
    struct aq_error err = { 0 };
    const struct kernel *ended = &session->kernels[AQ_MIN(run->rank, session->kernel_count - 1)];
    const struct kernel *chosen = params->kernel ? logs_choose(session, params, &err) : ended;
    struct logs_reader *reader;
    char hostname[KERNEL_HOSTNAME_MAX];

    if (chosen && chosen != ended)
        (void)api_fail_param(&err, "kernel",
                             "only the log of kernel '%s' is known of attempt %u; leave out the "
                             "kernel, or name that one",
                             kernel_hostname(ended, hostname), (unsigned)run->number);
    if (err.code) {
        request_fail(req, &err);
        return;
    }
    reader = logs_reader_new(req, params, chosen);
    reader->kernel_attempt = run->kernel_attempt;
    logs_open_stream(reader, run->agent_id);
}

static void logs_on_found(struct request *req, const struct session_row *row, void *data)
{
    const struct session session = session_of_row(row, request_get_arena(req));
    struct aq_error err = { 0 };
    const struct run_row *run = logs_find_run(row, data, &err);

    if (err.code)
        request_fail(req, &err);
    else if (run)
        logs_serve_run(req, &session, run, data);
    else
        logs_serve(req, &session, data);
}

static int logs_decode(struct request *req, struct log_params *params, struct aq_error *err)
{
    int r;

    params->tail = TAIL_ALL;
    r = api_decode(req, params, NULL, err);
    if (r < 0 || !params->since
        || clock_parse_since(params->since, &params->since_usec, &params->ago_usec) == 0)
        return r;
    return api_fail_param(err, "since",
                          "'%s' is neither a date such as 2026-11-23T02:00:00Z, nor Unix time, nor "
                          "how long ago, such as 10m",
                          params->since);
}

static void logs_start(struct request *req, struct api *api, bool as_text)
{
    struct log_params *params = arena_alloc(request_get_arena(req), sizeof(*params));
    const struct session *live;
    struct aq_error err = { 0 };

    if (logs_decode(req, params, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    params->api = api;
    params->as_text = as_text;
    live = params->attempt ? NULL : session_find_certain(api, req, params->owner_access_key);
    if (live)
        logs_serve(req, live, params);
    else
        session_find(api, req, params->owner_access_key, logs_on_found, params);
}

static void logs_on_text(struct request *req, void *data)
{
    logs_start(req, data, true);
}

static void logs_on_stream(struct request *req, void *data)
{
    logs_start(req, data, false);
}

/* ---- by the id of a task: a kernel, or the session whose main kernel it is ---- */

static const struct field task_fields[] = {
    { "taskId|task_id|kernel_id", FIELD_UUID, FIELD_REQUIRED,
      offsetof(struct log_params, kernel_id), .doc = "id of a kernel or a session" },
    OWNER_FIELD(struct log_params, owner_access_key),
    FIELD_END,
};

struct logs_task {
    struct request *req;
    struct log_params params;
    struct store_query query;
    struct store_page *page;
    char id[UUID_TEXT_MAX];
};

/* store_tx_fn */
static int logs_find_task(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct logs_task *task = data;

    return store_find_sessions(tx, &task->query, task->id, &task->page, err);
}

static void logs_on_task_found(void *data, int r, const struct aq_error *err)
{
    struct logs_task *task = data;
    struct store_page *page = task->page;
    struct aq_error own = { 0 };

    if (r < 0) {
        request_fail(task->req, err);
        return;
    }
    if (page->count != 1) {
        problem_no_such(&own, "session", "there is no session or kernel %s", task->id);
        request_fail(task->req, &own);
    } else {
        if (uuid_equals(&page->sessions[0].session.id, &task->params.kernel_id))
            task->params.kernel_id = (struct uuid){ 0 };
        logs_on_found(task->req, &page->sessions[0], &task->params);
    }
    store_page_free(page);
}

static void logs_on_task(struct request *req, void *data)
{
    struct logs_task *task = arena_alloc(request_get_arena(req), sizeof(*task));
    const struct keypair *owner;
    struct api *api = data;
    struct aq_error err = { 0 };

    if (logs_decode(req, &task->params, &err) < 0
        || api_owner(api, req, task->params.owner_access_key, &owner, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    task->req = req;
    task->params.api = api;
    task->query.with_kernels = true;
    task->query.access_key = arena_strdup(request_get_arena(req), owner->access_key);
    (void)uuid_format(&task->params.kernel_id, task->id);
    store_read(core_store(api->core), logs_find_task, logs_on_task_found, task);
}

static const struct route logs_routes[] = {
    { METHOD_GET, "/session/_/logs", API_USER, logs_on_task, task_fields,
      "A log as plain bytes, by the id of a kernel", .answer = { .types = LOG_TYPE } },
    { METHOD_GET, "/session/{name}/logs", API_USER, logs_on_text, text_fields,
      "The end of a session's log, as one text" },
    { METHOD_GET, "/aliquot/v1/sessions/{name}/logs", API_USER, logs_on_stream, stream_fields,
      "A session's log as plain bytes, followed live if wanted", .answer = { .types = LOG_TYPE } },
};
API_ROUTES_END(logs);
