/* SPDX-License-Identifier: Apache-2.0 */
/* Code that is run in a session, over a WebSocket.
 *
 * First in:  {"mode", "code", "options"}; then answers to waiting-input, as they are
 * Out:       each piece of the result as it comes; after the last it is closed
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "http/websocket.h"
#include "manager/stream/code_run.h"
#include "manager/stream/stream_feature.h"
#include "manager/session/session.h"
#include "model/session_feature.h"
#include "manager/call/streams.h"

#define STREAM_MSEC 8000 /* without news: then it is asked again */
#define MESSAGE_MAX (CODE_RUN_MAX + 65536)

struct code_stream {
    struct websocket *ws;
    struct executor_link *link;
    struct uuid kernel_id;
    struct code_run run;
    bool is_started, waits_for_input;
    bool waits_for_reader; /* to ask how it goes on */
    struct api_stream right;
};

static void code_stream_free(struct code_stream *st)
{
    api_stream_close(&st->right);
    executor_link_close(st->link);
    strbuf_done(&st->run.bytes);
    free(st);
}

static void code_stream_fail(struct code_stream *st, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "status", "error");
    jsonw_member_str(&w, "msg", err->text);
    jsonw_object_end(&w);
    executor_link_close(AQ_TAKE(st->link));
    (void)websocket_send(st->ws, true, out.data, out.len);
    websocket_close(st->ws, WEBSOCKET_NORMAL, "");
}

static void code_stream_on_forbidden(void *data, const struct aq_error *err)
{
    code_stream_fail(data, err);
}

static void code_stream_ask(struct code_stream *st, const char *verb, const char *bytes, size_t len)
{
    const struct executor_question question = { .verb = verb,
                                                .id = st->run.id,
                                                .language = "-",
                                                .wait_msec = STREAM_MSEC,
                                                .bytes = bytes,
                                                .len = len };
    struct aq_error err = { 0 };

    if (executor_link_ask(st->link, &question, &err) < 0)
        code_stream_fail(st, &err);
}

static void code_stream_on_reply(void *data, const json_t *reply)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const char *status = code_run_text(reply, "status");
    bool is_news = json_array_size(json_object_get(reply, "console")) || !status
                   || strcmp(status, "continued") != 0;
    struct jsonw w = jsonw_make(&out);
    struct code_stream *st = data;
    struct aq_error err = { 0 };
    bool is_last;

    if (code_run_check_reply(reply, &err) < 0) {
        code_stream_fail(st, &err);
        return;
    }
    is_last = code_run_announce(&st->run, reply);
    jsonw_object_begin(&w);
    code_run_write_result(reply, &w);
    jsonw_object_end(&w);
    if (is_news && websocket_send(st->ws, true, out.data, out.len) < 0) {
        websocket_close(st->ws, WEBSOCKET_INTERNAL, "the reader is too slow");
        return;
    }
    st->waits_for_input = status && strcmp(status, "waiting-input") == 0;
    if (is_last)
        websocket_close(st->ws, WEBSOCKET_NORMAL, "");
    else if (!st->waits_for_input
             && !(st->waits_for_reader = websocket_get_queued(st->ws) > PUMP_QUEUE_HIGH))
        code_stream_ask(st, "continue", NULL, 0);
}

static void code_stream_on_link_failed(void *data, const struct aq_error *err)
{
    code_stream_fail(data, err);
}

static const struct executor_link_ops code_stream_link_ops = { code_stream_on_reply,
                                                               code_stream_on_link_failed };

static int code_stream_start(struct code_stream *st, const char *text, size_t len,
                             struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const struct kernel *kernel = core_find_kernel(st->run.api->core, &st->kernel_id);
    struct code_run_params params = { NULL };
    json_auto_t *json = NULL;
    int r;

    if ((r = decode_json(text, len, &json, err)) < 0
        || (r = decode_object(code_run_fields, json, &arena, &params, err)) < 0
        || (r = code_run_read(&params, &st->run, err)) < 0)
        return r;
    if (strcmp(st->run.verb, "run") != 0 && strcmp(st->run.verb, "batch") != 0)
        return api_fail_param(err, "mode", "must be query or batch");
    if (!kernel)
        return aq_fail(err, EPIPE, "the session has ended");
    st->is_started = true;
    if ((r = executor_link_open(st->run.api->core, kernel, &code_stream_link_ops, st, &st->link,
                                err))
        < 0)
        return r;
    return code_run_ask(st->link, &st->run, STREAM_MSEC, err);
}

static void code_stream_on_message(struct websocket *ws, bool is_text, const char *bytes,
                                   size_t len, void *data)
{
    struct code_stream *st = data;
    struct aq_error err = { 0 };

    (void)ws;
    (void)is_text;
    if (!st->is_started && code_stream_start(st, bytes, len, &err) < 0)
        code_stream_fail(st, &err);
    else if (st->waits_for_input && st->link) {
        st->waits_for_input = false;
        code_stream_ask(st, "input", bytes, len);
    }
}

static void code_stream_on_drain(struct websocket *ws, void *data)
{
    struct code_stream *st = data;

    (void)ws;
    if (!st->waits_for_reader || !st->link)
        return;
    st->waits_for_reader = false;
    code_stream_ask(st, "continue", NULL, 0);
}

static void code_stream_on_close(struct websocket *ws, uint16_t code, const struct aq_error *err,
                                 void *data)
{
    (void)ws;
    (void)code;
    (void)err;
    code_stream_free(data);
}

static const struct websocket_ops code_stream_ws_ops = {
    .on_message = code_stream_on_message,
    .on_drain = code_stream_on_drain,
    .on_close = code_stream_on_close,
};

static int code_stream_accept(struct request *req, struct api *api, const struct kernel *kernel,
                              struct aq_error *err)
{
    const struct websocket_options options = { .message_max = MESSAGE_MAX };
    struct code_stream *st = aq_alloc(sizeof(*st));
    int r;

    st->run.api = api;
    st->run.session_id = kernel->session->id;
    st->kernel_id = kernel->id;
    strbuf_init(&st->run.bytes);
    api_stream_open(api, api_principal(req)->access_key, &st->right, code_stream_on_forbidden, st);
    r = websocket_accept(req, &options, &code_stream_ws_ops, st, &st->ws, err);
    if (r < 0)
        code_stream_free(st);
    return r;
}

static void code_stream_on_request(struct request *req, void *data)
{
    const struct kernel *kernel = session_find_live_kernel(data, req);
    struct aq_error err = { 0 };

    if (kernel
        && (session_feature_check(kernel->session->type, SESSION_CODE, &err) < 0
            || code_stream_accept(req, data, kernel, &err) < 0))
        request_fail(req, &err);
}

static const struct route code_stream_routes[] = {
    { METHOD_GET, "/stream/session/{name}/execute", API_USER, code_stream_on_request, kernel_fields,
      "Run code in a kernel of a session, over WebSocket", .answer = { 101 } },
};
API_ROUTES_END(code_stream);
