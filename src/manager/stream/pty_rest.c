/* SPDX-License-Identifier: Apache-2.0 */
/* A terminal inside a session: WebSocket here, a link stream to its agent.
 *
 * "aliquot session attach" and Backend.AI's clients use it. The terminal in the browser is the app
 * "ttyd", which passes through app_proxy.c as all apps.
 *
 * In:  {"type": "stdin", "chars": base64}, {"type": "resize", "rows", "cols"},
 *      {"type": "ping"}
 * Out: {"type": "out", "data": base64}
 *
 * Whichever side is slow holds the other back; neither can fill memory.
 */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "http/websocket.h"
#include "manager/stream/stream_feature.h"
#include "manager/session/session.h"
#include "manager/call/streams.h"

#define PTY_MESSAGE_MAX (6 << 20) /* 4 MiB that are pasted at once, as base64 */

struct pty {
    struct api *api;
    struct pump pump;
    struct request *req;        /* until the websocket owns it */
    struct websocket *ws;       /* NULL before open */
    struct link_stream *stream; /* NULL after close */
    char agent_id[AGENT_ID_MAX + 1];
    struct uuid session_id;
    struct core_subscriber *events; /* of the session; NULL until the terminal is open */
    struct api_stream right;
};

static void pty_free(struct pty *pty)
{
    core_unsubscribe(pty->api->core, pty->events);
    api_stream_close(&pty->right);
    link_stream_close(pty->stream);
    pump_done(&pty->pump);
    free(pty);
}

/* ---- from the client ---- */

struct pty_input {
    const char *type, *chars;
    int64_t rows, cols;
};

static const struct field input_fields[] = {
    { "type", FIELD_STR, FIELD_REQUIRED, offsetof(struct pty_input, type), 1, 16 },
    { "chars", FIELD_STR, 0, offsetof(struct pty_input, chars), 0, PTY_MESSAGE_MAX },
    { "rows", FIELD_INT, 0, offsetof(struct pty_input, rows), 1, 10000 },
    { "cols", FIELD_INT, 0, offsetof(struct pty_input, cols), 1, 10000 },
    FIELD_END,
};

static int pty_send_stdin(struct pty *pty, const char *chars, struct arena *arena,
                          struct aq_error *err)
{
    size_t len = strlen(chars), size = 0;
    unsigned char *bytes = arena_alloc(arena, len + 1);

    if (sodium_base642bin(bytes, len, chars, len, "\r\n", &size, NULL,
                          sodium_base64_VARIANT_ORIGINAL)
        < 0)
        return api_fail_param(err, "chars", "not base64");
    if (pump_give(&pty->pump, PUMP_CLIENT, (const char *)bytes, size) == 0) {
        core_note_access(pty->api->core, &pty->session_id);
        core_note_work(pty->api->core, &pty->session_id);
    }
    return 0;
}

static int pty_handle_input(struct pty *pty, const char *text, size_t len, struct arena *arena,
                            struct aq_error *err)
{
    struct msg_stream_control control = { .rows = 0 };
    struct pty_input input = { .chars = "" };
    json_auto_t *json = NULL;
    int r;

    if ((r = decode_json(text, len, &json, err)) < 0
        || (r = decode_object(input_fields, json, arena, &input, err)) < 0)
        return r;
    if (strcmp(input.type, "stdin") == 0)
        return pty_send_stdin(pty, input.chars, arena, err);
    if (strcmp(input.type, "ping") == 0 || !pty->stream)
        return 0;
    if (strcmp(input.type, "resize") != 0)
        return api_fail_param(err, "type", "'%s' is not supported", input.type);
    if (!input.rows || !input.cols)
        return api_fail_param(err, input.rows ? "cols" : "rows", "is required");
    control.stream_id = *link_stream_id(pty->stream);
    control.rows = input.rows;
    control.cols = input.cols;
    return core_control_stream(pty->api->core, pty->agent_id, &control, err);
}

static void pty_send_error(struct pty *pty, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    api_write_mistake(&out, err);
    (void)websocket_send(pty->ws, true, out.data, out.len);
}

static void pty_on_message(struct websocket *ws, bool is_text, const char *bytes, size_t len,
                           void *data)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct aq_error err = { 0 };
    struct pty *pty = data;

    (void)ws;
    (void)is_text;
    if (pty_handle_input(pty, bytes, len, &arena, &err) < 0)
        pty_send_error(pty, &err);
}

static void pty_on_ws_drain(struct websocket *ws, void *data)
{
    struct pty *pty = data;

    (void)ws;
    pump_drained(&pty->pump, PUMP_CLIENT);
}

static void pty_on_ws_close(struct websocket *ws, uint16_t code, const struct aq_error *err,
                            void *data)
{
    (void)ws;
    (void)code;
    (void)err;
    pty_free(data);
}

static const struct websocket_ops ws_ops = {
    .on_message = pty_on_message,
    .on_drain = pty_on_ws_drain,
    .on_close = pty_on_ws_close,
};

/* ---- from the agent ---- */

/* Not upgraded yet: the request still wants its answer. */
static void pty_fail(struct pty *pty, const struct aq_error *err)
{
    const struct aq_error copy = *err; /* it may be the stream's */
    struct request *req = pty->req;

    request_set_gone(req, NULL, NULL);
    pty_free(pty);
    request_fail(req, &copy);
}

static void pty_on_forbidden(void *data, const struct aq_error *err)
{
    struct pty *pty = data;

    if (!pty->ws) {
        pty_fail(pty, err);
        return;
    }
    pump_part(&pty->pump, PUMP_KERNEL); /* nothing more passes */
    link_stream_close(AQ_TAKE(pty->stream));
    websocket_close(pty->ws, WEBSOCKET_POLICY, err->text);
}

static void pty_show(struct pty *pty, const char *bytes, size_t len)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    size_t size = sodium_base64_encoded_len(len, sodium_base64_VARIANT_ORIGINAL);

    strbuf_adds(&out, "{\"type\":\"out\",\"data\":\"");
    (void)strbuf_reserve(&out, size);
    sodium_bin2base64(out.data + out.len, size, (const unsigned char *)bytes, len,
                      sodium_base64_VARIANT_ORIGINAL);
    out.len += size - 1;
    strbuf_adds(&out, "\"}");
    if (pump_give(&pty->pump, PUMP_KERNEL, out.data, out.len) < 0)
        websocket_close(pty->ws, WEBSOCKET_INTERNAL, "the reader is too slow");
}

/* Prints idle warnings in the terminal, because its user does not see events. */
static void pty_on_event(void *data, const struct core_event *event)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, line = STRBUF_INIT;
    struct pty *pty = data;

    if (pty->ws && pty->stream)
        core_idle_write_warning(pty->api->core, event, &text);
    if (!text.len)
        return;
    strbuf_addf(&line, "\r\n[aliquot] %s.\r\n", text.data);
    pty_show(pty, line.data, line.len);
}

static void pty_on_open(void *data, struct link_stream *stream)
{
    const struct websocket_options options = { .message_max = PTY_MESSAGE_MAX };
    struct aq_error err = { 0 };
    struct pty *pty = data;

    request_set_gone(pty->req, NULL, NULL);
    if (websocket_accept(pty->req, &options, &ws_ops, pty, &pty->ws, &err) < 0) {
        pty_fail(pty, &err);
        return;
    }
    pty->events = core_subscribe(pty->api->core, &pty->session_id, pty_on_event, pty);
    pump_join(&pty->pump, PUMP_CLIENT, &websocket_pump_text, pty->ws);
    pump_join(&pty->pump, PUMP_KERNEL, &link_stream_pump, stream);
    (void)pump_open(&pty->pump, PUMP_CLIENT); /* nothing waits for either */
    (void)pump_open(&pty->pump, PUMP_KERNEL);
}

static void pty_on_data(void *data, struct link_stream *stream, const char *bytes, size_t len)
{
    struct pty *pty = data;

    (void)stream;
    core_note_access(pty->api->core, &pty->session_id);
    pty_show(pty, bytes, len);
}

static void pty_on_drain(void *data, struct link_stream *stream)
{
    struct pty *pty = data;

    (void)stream;
    pump_drained(&pty->pump, PUMP_KERNEL);
}

static void pty_on_close(void *data, struct link_stream *stream, const struct aq_error *err)
{
    struct pty *pty = data;
    struct aq_error gone = { 0 };

    (void)stream;
    pump_part(&pty->pump, PUMP_KERNEL);
    pty->stream = NULL;
    if (pty->ws) {
        websocket_close(pty->ws, err ? WEBSOCKET_TRY_LATER : WEBSOCKET_NORMAL,
                        err ? err->text : NULL);
        return;
    }
    if (!err)
        aq_fail_kind(&gone, EIO, "service-unavailable", "the terminal ended before it began");
    pty_fail(pty, err ? err : &gone);
}

static const struct link_stream_ops stream_ops = {
    .on_open = pty_on_open,
    .on_data = pty_on_data,
    .on_drain = pty_on_drain,
    .on_close = pty_on_close,
};

/* ---- the request ---- */

static void pty_on_gone(struct request *req, void *data)
{
    struct aq_error err = { 0 };

    (void)req;
    aq_fail(&err, EPIPE, "the client has gone");
    pty_fail(data, &err);
}

static int pty_open_stream(struct pty *pty, const struct kernel *kernel, struct aq_error *err)
{
    struct msg_stream_open open = { .kind = "pty", .kernel_id = kernel->id };
    int r;

    if ((r = session_check_kernel_runs(kernel, err)) < 0)
        return r;
    pty->session_id = kernel->session->id;
    memcpy(pty->agent_id, kernel->agent_id, strlen(kernel->agent_id) + 1);
    r = core_open_stream(pty->api->core, kernel->agent_id, &open, &stream_ops, pty, &pty->stream,
                         err);
    if (r == -ENOTCONN && err)
        err->kind = "service-unavailable";
    return r;
}

static void pty_on_request(struct request *req, void *data)
{
    const struct kernel *kernel = session_find_live_kernel(data, req);
    struct aq_error err = { 0 };
    struct pty *pty;

    if (!kernel)
        return;
    pty = aq_alloc(sizeof(*pty));
    pty->api = data;
    pty->req = req;
    pump_init(&pty->pump);
    api_stream_open(data, api_principal(req)->access_key, &pty->right, pty_on_forbidden, pty);
    if (pty_open_stream(pty, kernel, &err) < 0)
        pty_fail(pty, &err);
    else
        request_set_gone(req, pty_on_gone, pty);
}

static const struct route pty_routes[] = {
    { METHOD_GET, "/stream/session/{name}/pty", API_USER, pty_on_request, kernel_fields,
      "A terminal in a kernel of a session, over WebSocket", .answer = { 101 } },
};
API_ROUTES_END(pty);
