/* SPDX-License-Identifier: Apache-2.0 */
/* A command in a session's container, or the input of its program: WebSocket here, a link
 * stream to its agent.
 *
 * First in:  {"type": "start", "command": ["ls", "-l"], "env": {"A": "b"},
 *            "cwd": "/tmp", "tty": false, "input": true, "rows": 24, "cols": 80};
 *            everything but the type may be left out, no command is a shell.
 *            Or {"type": "feed"}: what follows is the standard input of the session's
 *            program, which was created with "input": "stream". It ends with the
 *            WebSocket at the latest; no output comes
 *            With "report_input" the client gives one piece of input, of 4096 bytes at most,
 *            and the rest when it hears that the command has read all of that
 * Then in:   binary: a zero byte and standard input; {"type": "end"} its end;
 *            {"type": "resize", "rows", "cols"}; {"type": "signal", "signal": 2};
 *            {"type": "ping"}
 * Out:       {"type": "taken", "bytes": 0, "is_all": false} if input will be reported on;
 *            {"type": "started"}; {"type": "taken", "bytes", "is_all"}: so much of the first
 *            piece was read, all of it or when the command ended; binary: a byte 1 and
 *            standard output, or 2 and standard error; {"type": "notice", "text"}, on a
 *            terminal only: an idle check will end the session, show it to the user; at last
 *            {"type": "ended", "exit_code", "signal"} or {"type": "failed", "kind", "message"}
 *
 * Whichever side is slow holds the other back; neither can fill memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "http/websocket.h"
#include "manager/stream/command_stream.h"
#include "manager/stream/stream_feature.h"
#include "manager/session/session.h"
#include "manager/call/streams.h"

#define EXEC_MESSAGE_MAX (256 * 1024)
#define ARGUMENTS_MAX 4096

enum { CHANNEL_INPUT = 0, CHANNEL_OUTPUT = 1, CHANNEL_ERRORS = 2 };

struct api_exec {
    struct api *api;
    struct pump pump;
    struct websocket *ws;
    struct command_stream *stream;  /* NULL before the start */
    struct core_subscriber *events; /* of the session; NULL unless the command has a terminal */
    struct uuid kernel_id;
    bool is_started; /* the client has said what to run */
    bool is_told;    /* the last message was sent */
    struct api_stream right;
};

static void api_exec_free(struct api_exec *exec)
{
    core_unsubscribe(exec->api->core, exec->events);
    api_stream_close(&exec->right);
    command_stream_free(exec->stream);
    pump_done(&exec->pump);
    free(exec);
}

/* ---- to the client ---- */

static void api_exec_send_text(struct api_exec *exec, struct strbuf *text)
{
    (void)websocket_send(exec->ws, true, text->data, text->len);
    strbuf_done(text);
}

static void api_exec_send_type(struct api_exec *exec, const char *type)
{
    struct strbuf out = STRBUF_INIT;

    strbuf_addf(&out, "{\"type\":\"%s\"}", type);
    api_exec_send_text(exec, &out);
}

/* The last message; then the WebSocket ends. */
static void api_exec_end(struct api_exec *exec, struct strbuf *text)
{
    if (exec->is_told) {
        strbuf_done(text);
        return;
    }
    exec->is_told = true;
    api_exec_send_text(exec, text);
    websocket_close(exec->ws, WEBSOCKET_NORMAL, NULL);
}

static void api_exec_fail(struct api_exec *exec, const char *kind, const char *message)
{
    struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "type", "failed");
    jsonw_member_str(&w, "kind", kind);
    jsonw_member_str(&w, "message", message);
    jsonw_object_end(&w);
    api_exec_end(exec, &out);
}

static void api_exec_fail_by(struct api_exec *exec, const struct aq_error *err)
{
    api_exec_fail(exec, err->kind ? err->kind : "service-unavailable", err->text);
}

/* The client has lost the right to it: nothing more passes. */
static void api_exec_on_forbidden(void *data, const struct aq_error *err)
{
    struct api_exec *exec = data;

    command_stream_free(AQ_TAKE(exec->stream));
    api_exec_fail_by(exec, err);
}

/* A mistake of the client: what runs goes on. */
static void api_exec_complain(struct api_exec *exec, const struct aq_error *err)
{
    struct strbuf out = STRBUF_INIT;

    api_write_mistake(&out, err);
    api_exec_send_text(exec, &out);
}

/* Idle warnings, as a message of their own: only the client knows where its terminal is. */
static void api_exec_on_event(void *data, const struct core_event *event)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct api_exec *exec = data;
    struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    core_idle_write_warning(exec->api->core, event, &text);
    if (!text.len || exec->is_told)
        return;
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "type", "notice");
    jsonw_member_str(&w, "text", text.data);
    jsonw_object_end(&w);
    api_exec_send_text(exec, &out);
}

/* ---- from the agent ---- */

static void api_exec_pass_output(struct api_exec *exec, char channel, const char *bytes, size_t len)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    strbuf_addc(&out, channel);
    strbuf_add(&out, bytes, len);
    if (pump_give(&exec->pump, PUMP_KERNEL, out.data, out.len) < 0)
        websocket_close(exec->ws, WEBSOCKET_INTERNAL, "the reader is too slow");
}

static void api_exec_on_started(void *data)
{
    api_exec_send_type(data, "started");
}

static void api_exec_on_taken(void *data, uint32_t bytes, bool is_all)
{
    struct strbuf out = STRBUF_INIT;

    strbuf_addf(&out, "{\"type\":\"taken\",\"bytes\":%u,\"is_all\":%s}", (unsigned)bytes,
                is_all ? "true" : "false");
    api_exec_send_text(data, &out);
}

static void api_exec_on_output(void *data, const char *bytes, size_t len)
{
    api_exec_pass_output(data, CHANNEL_OUTPUT, bytes, len);
}

static void api_exec_on_errors(void *data, const char *bytes, size_t len)
{
    api_exec_pass_output(data, CHANNEL_ERRORS, bytes, len);
}

static void api_exec_on_ended(void *data, int code, int signal)
{
    struct api_exec *exec = data;
    struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "type", "ended");
    jsonw_member_int(&w, "exit_code", code);
    if (signal)
        jsonw_member_int(&w, "signal", signal);
    else
        jsonw_member_null(&w, "signal");
    jsonw_object_end(&w);
    api_exec_end(exec, &out);
}

static void api_exec_on_failed(void *data, const char *kind, const char *text)
{
    api_exec_fail(data, kind, text);
}

static const struct command_stream_ops stream_ops = {
    .work = COMMAND_WORK_RUNNING,
    .on_started = api_exec_on_started,
    .on_taken = api_exec_on_taken,
    .on_output = api_exec_on_output,
    .on_errors = api_exec_on_errors,
    .on_ended = api_exec_on_ended,
    .on_failed = api_exec_on_failed,
};

/* ---- from the client ---- */

struct exec_input {
    const char *type, *cwd;
    const json_t *command, *env;
    bool tty, input, report_input;
    int64_t rows, cols, signal;
};

static const struct field input_fields[] = {
    { "type", FIELD_STR, FIELD_REQUIRED, offsetof(struct exec_input, type), 1, 16 },
    { "command", FIELD_JSON, FIELD_NULLABLE, offsetof(struct exec_input, command) },
    { "env", FIELD_OBJECT, FIELD_NULLABLE, offsetof(struct exec_input, env) },
    { "cwd", FIELD_STR, FIELD_NULLABLE, offsetof(struct exec_input, cwd), 1, 4096 },
    { "tty", FIELD_BOOL, 0, offsetof(struct exec_input, tty) },
    { "input", FIELD_BOOL, 0, offsetof(struct exec_input, input) },
    { "report_input", FIELD_BOOL, 0, offsetof(struct exec_input, report_input) },
    { "rows", FIELD_INT, 0, offsetof(struct exec_input, rows), 1, 10000 },
    { "cols", FIELD_INT, 0, offsetof(struct exec_input, cols), 1, 10000 },
    { "signal", FIELD_INT, 0, offsetof(struct exec_input, signal), 1, 64 },
    FIELD_END,
};

/* As long as the runner's packet allows; it says so. */
static int api_exec_check_command(const json_t *command, struct aq_error *err)
{
    const json_t *word;
    size_t i;

    if (command && (!json_is_array(command) || json_array_size(command) > ARGUMENTS_MAX))
        return api_fail_param(err, "command", "must be a list of at most %d texts", ARGUMENTS_MAX);
    json_array_foreach((json_t *)command, i, word)
        if (!json_is_string(word) || strlen(json_string_value(word)) != json_string_length(word))
            return api_fail_param(err, "command", "argument %zu is no text", i);
    return 0;
}

static int api_exec_check_env(const json_t *env, struct aq_error *err)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)env, name, value) {
        if (!name[0] || strchr(name, '='))
            return api_fail_param(err, "env", "'%.40s' is no name of a variable", name);
        if (!json_is_string(value))
            return api_fail_param(err, "env", "'%.40s' must be text", name);
    }
    return 0;
}

static void api_exec_put_json(struct jsonw *w, const char *key, const json_t *value)
{
    AQ_CLEANUP(aq_freep) char *text = value ? json_dump_text(value, JSON_COMPACT) : NULL;

    if (text) {
        jsonw_key(w, key);
        jsonw_raw(w, text, strlen(text));
    }
}

static void api_exec_describe(const struct exec_input *input, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    api_exec_put_json(&w, "argv", input->command);
    api_exec_put_json(&w, "env", input->env);
    if (input->cwd)
        jsonw_member_str(&w, "cwd", input->cwd);
    if (input->report_input)
        jsonw_member_bool(&w, "report_input", true);
    jsonw_object_end(&w);
}

static void api_exec_open(struct api_exec *exec, struct msg_stream_open *open)
{
    const struct kernel *kernel = core_find_kernel(exec->api->core, &exec->kernel_id);
    struct aq_error err = { 0 };

    exec->is_started = true;
    if (!kernel)
        api_exec_fail(exec, "session-ended", "the session has ended");
    else if (command_stream_open(exec->api->core, kernel, open, &exec->pump, &stream_ops, exec,
                                 &exec->stream, &err)
             < 0)
        api_exec_fail_by(exec, &err);
    else
        (void)pump_give(&exec->pump, PUMP_CLIENT, NULL, 0); /* texts, too, wait for the agent */
    if (exec->stream && open->tty)
        exec->events = core_subscribe(exec->api->core, &kernel->session->id, api_exec_on_event,
                                      exec);
}

static int api_exec_feed(struct api_exec *exec, struct aq_error *err)
{
    struct msg_stream_open open = { .kind = "input" };

    if (exec->is_started)
        return api_fail_param(err, "type", "the input or a command has begun already");
    api_exec_open(exec, &open);
    return 0;
}

static int api_exec_start(struct api_exec *exec, const struct exec_input *input,
                          struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf command = STRBUF_INIT;
    struct msg_stream_open open = { .kind = "exec",
                                    .tty = input->tty,
                                    .input = input->input,
                                    .rows = input->rows,
                                    .cols = input->cols };
    int r;

    if (exec->is_started)
        return api_fail_param(err, "type", "the command runs already");
    if (input->cwd && input->cwd[0] != '/')
        return api_fail_param(err, "cwd", "must be an absolute path");
    r = api_exec_check_command(input->command, err);
    if (r == 0)
        r = api_exec_check_env(input->env, err);
    if (r < 0)
        return r;
    api_exec_describe(input, &command);
    open.command = command.data;
    api_exec_open(exec, &open);
    return 0;
}

static int api_exec_control(struct api_exec *exec, const struct exec_input *input,
                            struct aq_error *err)
{
    return exec->stream
               ? command_stream_control(exec->stream, input->rows, input->cols, input->signal, err)
               : 0;
}

static int api_exec_handle_text(struct api_exec *exec, const char *text, size_t len,
                                struct arena *arena, struct aq_error *err)
{
    struct exec_input input = { .rows = 0 };
    json_auto_t *json = NULL;
    int r;

    if ((r = decode_json(text, len, &json, err)) < 0
        || (r = decode_object(input_fields, json, arena, &input, err)) < 0)
        return r;
    if (strcmp(input.type, "start") == 0)
        return api_exec_start(exec, &input, err);
    if (strcmp(input.type, "feed") == 0)
        return api_exec_feed(exec, err);
    if (strcmp(input.type, "ping") == 0)
        return 0;
    if (strcmp(input.type, "end") == 0) {
        if (exec->stream)
            pump_finish(&exec->pump, PUMP_CLIENT);
        return 0;
    }
    if (strcmp(input.type, "resize") == 0)
        return input.rows && input.cols
                   ? api_exec_control(exec, &input, err)
                   : api_fail_param(err, input.rows ? "cols" : "rows", "is required");
    if (strcmp(input.type, "signal") == 0)
        return input.signal ? api_exec_control(exec, &input, err)
                            : api_fail_param(err, "signal", "is required");
    return api_fail_param(err, "type", "'%s' is not supported", input.type);
}

static void api_exec_on_message(struct websocket *ws, bool is_text, const char *bytes, size_t len,
                                void *data)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct aq_error err = { 0 };
    struct api_exec *exec = data;

    (void)ws;
    if (exec->is_told)
        return;
    if (is_text) {
        if (api_exec_handle_text(exec, bytes, len, &arena, &err) < 0)
            api_exec_complain(exec, &err);
    } else if (len && bytes[0] == CHANNEL_INPUT && len > 1) {
        if (exec->stream)
            (void)pump_give(&exec->pump, PUMP_CLIENT, bytes + 1, len - 1);
    }
}

static void api_exec_on_ws_drain(struct websocket *ws, void *data)
{
    struct api_exec *exec = data;

    (void)ws;
    pump_drained(&exec->pump, PUMP_CLIENT);
}

static void api_exec_on_ws_close(struct websocket *ws, uint16_t code, const struct aq_error *err,
                                 void *data)
{
    (void)ws;
    (void)code;
    (void)err;
    api_exec_free(data);
}

static const struct websocket_ops ws_ops = {
    .on_message = api_exec_on_message,
    .on_drain = api_exec_on_ws_drain,
    .on_close = api_exec_on_ws_close,
};

/* ---- the request ---- */

static int api_exec_accept(struct request *req, struct api *api, const struct kernel *kernel,
                           struct aq_error *err)
{
    const struct websocket_options options = { .message_max = EXEC_MESSAGE_MAX };
    struct api_exec *exec;
    int r;

    if ((r = session_check_kernel_runs(kernel, err)) < 0)
        return r;
    exec = aq_alloc(sizeof(*exec));
    exec->api = api;
    exec->kernel_id = kernel->id;
    pump_init(&exec->pump);
    api_stream_open(api, api_principal(req)->access_key, &exec->right, api_exec_on_forbidden, exec);
    r = websocket_accept(req, &options, &ws_ops, exec, &exec->ws, err);
    if (r < 0) {
        api_exec_free(exec);
        return r;
    }
    pump_join(&exec->pump, PUMP_CLIENT, &websocket_pump_binary, exec->ws);
    return pump_open(&exec->pump, PUMP_CLIENT);
}

static void api_exec_on_request(struct request *req, void *data)
{
    const struct kernel *kernel = session_find_live_kernel(data, req);
    struct aq_error err = { 0 };

    if (kernel && api_exec_accept(req, data, kernel, &err) < 0)
        request_fail(req, &err);
}

static const struct route exec_routes[] = {
    { METHOD_GET, "/aliquot/v1/sessions/{name}/exec", API_USER, api_exec_on_request, kernel_fields,
      "Run a command in a kernel of a session, or give its program input, over WebSocket",
      .answer = { 101 } },
};
API_ROUTES_END(exec);
