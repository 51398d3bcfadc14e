/* SPDX-License-Identifier: Apache-2.0 */
/* See app_connection.h. */
#include "manager/stream/app_connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "http/app_activity.h"
#include "manager/stream/command_stream.h"
#include "model/service_port.h"

#define EXIT_REFUSED 69 /* EXECUTE_EXIT_REFUSED of runner/execute.h */
#define COMMAND(options) \
    "{\"argv\":[\"/opt/kernel/aliquot-runner\"," options "],\"in_container\":true}"
#define ANSWER_MAX (64 * 1024)

struct app_connection {
    struct core *core;
    struct uuid session_id;
    char app[SERVICE_NAME_MAX + 1]; /* "" = a port */
    struct strbuf answer;           /* about an app, as far as it has come */
    struct pump *pump;
    struct command_stream *stream;
    struct app_activity activity;
    size_t output; /* that has not been counted as work yet */
    bool is_ready;
    bool is_serving; /* it counts for no idle check */
    const struct app_connection_ops *ops;
    void *data;
};

/* What went through it. */
static void app_connection_count(const struct app_connection *c, struct app_use more)
{
    (void)snprintf(more.name, sizeof(more.name), "%s", c->app[0] ? c->app : "port");
    core_note_app_use(c->core, &c->session_id, &more);
}

static bool app_connection_is_repeated(void *data, uint64_t hash)
{
    const struct app_connection *c = data;

    return core_note_request(c->core, &c->session_id, hash);
}

/* What of it is somebody's work. */
static void app_connection_note_work(struct app_connection *c, const char *bytes, size_t len)
{
    struct app_activity_found found = { .is_repeated = app_connection_is_repeated, .data = c };

    if (c->is_serving)
        return;
    app_activity_take(&c->activity, bytes, len, &found);
    if (app_activity_is_work(&c->activity, c->app, &found))
        core_note_work(c->core, &c->session_id);
    else
        core_note_traffic(c->core, &c->session_id, found.bytes);
}

static void app_connection_be_ready(struct app_connection *c)
{
    c->is_ready = true;
    app_connection_count(c, (struct app_use){ .connections = 1, .requests = 1 });
}

/* ---- from the container ---- */

static void app_connection_refuse(struct app_connection *c, const char *text)
{
    struct aq_error err = { 0 };

    (void)aq_fail_kind(&err, EPIPE, "service-unavailable", "%s", text);
    c->ops->on_refused(c->data, &err);
}

/* The app's port is connected to. False if it is not, which was told. */
static bool app_connection_take_answer(struct app_connection *c)
{
    json_auto_t *answer = NULL;
    struct aq_error err = { 0 };
    uint16_t port;

    if (decode_output_json(c->answer.data, c->answer.len, &answer, &err) < 0)
        (void)aq_fail_kind(&err, EPIPE, "service-unavailable",
                           "the session's executor answers what makes no sense");
    else if (app_question_read(answer, c->app, &port, &err) == 0 && !port)
        (void)aq_fail_kind(&err, EPIPE, "service-unavailable",
                           "the session's executor answers without a port");
    if (err.code) {
        c->ops->on_refused(c->data, &err);
        return false;
    }
    app_connection_be_ready(c);
    return true;
}

/* How many bytes belong to the answer; all of them if it was refused. */
static size_t app_connection_on_answer(struct app_connection *c, const char *bytes, size_t len)
{
    const char *end = memchr(bytes, '\n', len);
    size_t part = end ? (size_t)(end - bytes) : len;

    strbuf_add(&c->answer, bytes, part);
    if (c->answer.len > ANSWER_MAX) {
        app_connection_refuse(c, "the session's executor answers too much");
        return len;
    }
    if (!end || !app_connection_take_answer(c) || !c->ops->on_ready(c->data))
        return len;
    return part + 1;
}

static void app_connection_on_output(void *data, const char *bytes, size_t len)
{
    struct app_connection *c = data;

    if (!c->is_ready) {
        size_t taken = app_connection_on_answer(c, bytes, len);

        if (taken == len)
            return;
        bytes += taken;
        len -= taken;
    }
    app_connection_count(c, (struct app_use){ .bytes_out = (int64_t)len });
    c->output += c->is_serving ? 0 : len;
    core_note_traffic(c->core, &c->session_id, (int64_t)(c->output / APP_ACTIVITY_OUTPUT_PER_BYTE));
    c->output %= APP_ACTIVITY_OUTPUT_PER_BYTE;
    c->ops->on_bytes(c->data, bytes, len);
}

static void app_connection_on_output_end(void *data)
{
    const struct app_connection *c = data;

    if (c->is_ready && c->ops->on_bytes_end)
        c->ops->on_bytes_end(c->data);
}

static void app_connection_on_ended(void *data, int code, int signal)
{
    struct app_connection *c = data;
    bool is_unheard = code == EXIT_REFUSED;
    const char *text = is_unheard ? "nobody listens on this port" : "";

    (void)signal;
    if (c->is_ready)
        c->ops->on_closed(c->data, is_unheard, text);
    else
        app_connection_refuse(c, is_unheard ? text
                                            : "the session's executor has ended; connect again");
}

static void app_connection_on_failed(void *data, const char *kind, const char *text)
{
    struct app_connection *c = data;
    struct aq_error err = { 0 };
    bool has_no_ports = strcmp(kind, "no-such-program") == 0 || strcmp(kind, "no-container") == 0;

    if (c->is_ready) {
        c->ops->on_closed(c->data, has_no_ports,
                          has_no_ports ? "only containers have ports of their own" : text);
    } else if (has_no_ports) {
        (void)problem_no_such(&err, "app service", "only sessions of container images have apps");
        c->ops->on_refused(c->data, &err);
    } else {
        app_connection_refuse(c, text);
    }
}

static const struct command_stream_ops app_connection_stream_ops = {
    .work = COMMAND_WORK_OWN,
    .on_output = app_connection_on_output,
    .on_output_end = app_connection_on_output_end,
    .on_ended = app_connection_on_ended,
    .on_failed = app_connection_on_failed,
};

/* ---- opening ---- */

static int app_connection_start(struct app_connection *c, const struct kernel *kernel,
                                const char *command, struct aq_error *err)
{
    struct msg_stream_open open = { .kind = "exec", .input = true, .command = command };

    return command_stream_open(c->core, kernel, &open, c->pump, &app_connection_stream_ops, c,
                               &c->stream, err);
}

static int app_connection_open_port(struct app_connection *c, const struct kernel *kernel,
                                    const struct app_params *params, uint16_t port,
                                    struct aq_error *err)
{
    char command[128];
    int r;

    (void)snprintf(command, sizeof(command), COMMAND("\"--connect\",\"%u\"%s"), port,
                   params->half_close ? ",\"--half-close\"" : "");
    r = app_connection_start(c, kernel, command, err);
    if (r == 0)
        app_connection_be_ready(c);
    return r;
}

static int app_connection_open_app(struct app_connection *c, const struct kernel *kernel,
                                   const struct app_params *params, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf question = STRBUF_INIT;
    const char *command = params->half_close ? COMMAND("\"--app\",\"--half-close\"")
                                             : COMMAND("\"--app\"");
    int r = app_question_write(params, &body, err);

    if (r == 0)
        r = app_connection_start(c, kernel, command, err);
    if (r < 0)
        return r;
    strbuf_addf(&question, "app %s %d - %zu\n%s", params->app, APP_WAIT_MSEC, body.len, body.data);
    (void)pump_give(c->pump, PUMP_CLIENT, question.data, question.len); /* failure: on_failed */
    return 0;
}

int app_connection_open(struct core *core, const struct kernel *kernel,
                        const struct app_params *params, uint16_t port, struct pump *pump,
                        const struct app_connection_ops *ops, void *data,
                        struct app_connection **ret, struct aq_error *err)
{
    struct app_connection *c = aq_alloc(sizeof(*c));
    int r;

    c->core = core;
    c->session_id = kernel->session->id;
    c->pump = pump;
    c->ops = ops;
    c->data = data;
    c->is_serving = params->is_serving;
    if (params->app)
        (void)snprintf(c->app, sizeof(c->app), "%s", params->app);
    strbuf_init(&c->answer);
    app_activity_begin(&c->activity);
    r = port ? app_connection_open_port(c, kernel, params, port, err)
             : app_connection_open_app(c, kernel, params, err);
    if (r < 0)
        app_connection_free(c);
    else
        *ret = c;
    return r;
}

/* ---- to the container ---- */

int app_connection_give(struct app_connection *c, const char *bytes, size_t len)
{
    int r = pump_give(c->pump, PUMP_CLIENT, bytes, len);

    if (r == 0) {
        app_connection_count(c, (struct app_use){ .bytes_in = (int64_t)len });
        app_connection_note_work(c, bytes, len);
    }
    return r;
}

void app_connection_free(struct app_connection *c)
{
    if (!c)
        return;
    if (c->is_ready)
        app_connection_count(c, (struct app_use){ .connections = -1 });
    command_stream_free(c->stream);
    strbuf_done(&c->answer);
    app_activity_done(&c->activity);
    free(c);
}
