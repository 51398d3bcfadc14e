/* SPDX-License-Identifier: Apache-2.0 */
/* A command in a kernel's container, over a link stream to its agent. */
#include "base/memory.h"
#include "manager/stream/command_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "link/exec.h"
#include "manager/session/session.h"

struct command_stream {
    struct core *core;
    struct link_stream *stream; /* NULL after its end */
    const struct command_stream_ops *ops;
    void *data;
    struct pump *pump; /* the kernel's end of it is this */
    char agent_id[AGENT_ID_MAX + 1];
    struct uuid session_id;
    struct strbuf held; /* of a frame that is not whole */
    bool is_open;       /* the agent has connected */
    bool is_told;       /* that it has ended or failed */
    enum command_work work;
    bool is_counted; /* among the session's commands */
    bool *freed;     /* to be set by command_stream_free(), while frames are read */
};

/* ---- from the agent ---- */

static void command_stream_fail(struct command_stream *cs, const char *kind, const char *text)
{
    if (cs->is_told)
        return;
    cs->is_told = true;
    cs->ops->on_failed(cs->data, kind, text);
}

/* 'bytes' are a kind, NUL, and a text. */
static void command_stream_take_failure(struct command_stream *cs, const char *bytes, size_t len)
{
    AQ_CLEANUP(aq_freep) char *kind = aq_strndup(bytes, len);
    size_t text = AQ_MIN(strlen(kind) + 1, len);
    AQ_CLEANUP(aq_freep) char *message = aq_strndup(bytes + text, len - text);

    command_stream_fail(cs, kind, message);
}

static void command_stream_take_end(struct command_stream *cs, const char *bytes, size_t len)
{
    int code = len > 0 ? (unsigned char)bytes[0] : 1;
    int signal = len > 1 ? (unsigned char)bytes[1] : 0;

    if (cs->is_told)
        return;
    cs->is_told = true;
    cs->ops->on_ended(cs->data, code, signal);
}

static void command_stream_take_report(struct command_stream *cs, const char *bytes, size_t len)
{
    const unsigned char *b = (const unsigned char *)bytes;

    if (len >= 5 && cs->ops->on_taken)
        cs->ops->on_taken(cs->data,
                          (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3],
                          b[4] != 0);
}

static int command_stream_on_frame(void *data, enum exec_type type, const char *bytes, size_t len)
{
    struct command_stream *cs = data;
    const bool *freed = cs->freed;

    switch (type) {
    case EXEC_STARTED:
        if (cs->ops->on_started)
            cs->ops->on_started(cs->data);
        break;
    case EXEC_OUTPUT:
        if (len)
            cs->ops->on_output(cs->data, bytes, len);
        else if (cs->ops->on_output_end)
            cs->ops->on_output_end(cs->data);
        break;
    case EXEC_ERRORS:
        if (cs->ops->on_errors)
            cs->ops->on_errors(cs->data, bytes, len);
        break;
    case EXEC_TAKEN:
        command_stream_take_report(cs, bytes, len);
        break;
    case EXEC_ENDED:
        command_stream_take_end(cs, bytes, len);
        break;
    case EXEC_FAILED:
        command_stream_take_failure(cs, bytes, len);
        break;
    case EXEC_INPUT:
    case EXEC_END_INPUT:
    default:
        break;
    }
    return *freed;
}

static void command_stream_on_data(void *data, struct link_stream *stream, const char *bytes,
                                   size_t len)
{
    struct command_stream *cs = data;
    bool freed = false;
    int r;

    (void)stream;
    cs->freed = &freed;
    core_note_access(cs->core, &cs->session_id);
    if (cs->work == COMMAND_WORK_BYTES)
        core_note_work(cs->core, &cs->session_id);
    r = exec_frames_read(&cs->held, bytes, len, command_stream_on_frame, cs);
    if (freed)
        return;
    cs->freed = NULL;
    if (r < 0)
        command_stream_fail(cs, "service-unavailable", "the agent's answer makes no sense");
}

static void command_stream_on_drain(void *data, struct link_stream *stream)
{
    struct command_stream *cs = data;

    (void)stream;
    pump_drained(cs->pump, PUMP_KERNEL);
}

static void command_stream_on_open(void *data, struct link_stream *stream)
{
    struct command_stream *cs = data;

    (void)stream;
    cs->is_open = true;
    if (pump_open(cs->pump, PUMP_KERNEL) < 0)
        command_stream_fail(cs, "service-unavailable", "the connection to the agent failed");
    else if (cs->ops->on_open)
        cs->ops->on_open(cs->data);
}

static void command_stream_on_close(void *data, struct link_stream *stream,
                                    const struct aq_error *err)
{
    struct command_stream *cs = data;

    (void)stream;
    cs->stream = NULL;
    if (err)
        command_stream_fail(cs, err->kind ? err->kind : "service-unavailable", err->text);
    else
        command_stream_fail(cs, "session-ended", "the session has ended");
}

static const struct link_stream_ops command_stream_link_ops = {
    .on_open = command_stream_on_open,
    .on_data = command_stream_on_data,
    .on_drain = command_stream_on_drain,
    .on_close = command_stream_on_close,
};

/* ---- to the agent ---- */

static int command_stream_put(void *end, const char *bytes, size_t len)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf frames = STRBUF_INIT;
    const struct command_stream *cs = end;

    if (!cs->stream || cs->is_told)
        return -EPIPE;
    for (size_t at = 0; at < len; at += EXEC_PAYLOAD_MAX)
        exec_frame_add(&frames, EXEC_INPUT, bytes + at, AQ_MIN(len - at, (size_t)EXEC_PAYLOAD_MAX));
    core_note_access(cs->core, &cs->session_id);
    if (cs->work == COMMAND_WORK_BYTES || cs->work == COMMAND_WORK_INPUT)
        core_note_work(cs->core, &cs->session_id);
    return link_stream_write(cs->stream, frames.data, frames.len);
}

static void command_stream_hold(void *end, bool is_paused)
{
    const struct command_stream *cs = end;

    if (cs->stream)
        link_stream_pause(cs->stream, is_paused);
}

static void command_stream_end_input(void *end)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf frame = STRBUF_INIT;
    const struct command_stream *cs = end;

    exec_frame_add(&frame, EXEC_END_INPUT, NULL, 0);
    if (cs->stream && !cs->is_told)
        (void)link_stream_write(cs->stream, frame.data, frame.len); /* failure: on_close */
}

static const struct pump_ops command_stream_pump = { .put = command_stream_put,
                                                     .pause = command_stream_hold,
                                                     .finish = command_stream_end_input };

int command_stream_control(struct command_stream *cs, int64_t rows, int64_t cols, int64_t signal,
                           struct aq_error *err)
{
    struct msg_stream_control control = { .rows = rows, .cols = cols, .signal = signal };

    if (!cs->stream || !cs->is_open)
        return 0;
    control.stream_id = *link_stream_id(cs->stream);
    return core_control_stream(cs->core, cs->agent_id, &control, err);
}

/* ---- its life ---- */

int command_stream_open(struct core *core, const struct kernel *kernel,
                        struct msg_stream_open *open, struct pump *pump,
                        const struct command_stream_ops *ops, void *data,
                        struct command_stream **ret, struct aq_error *err)
{
    struct command_stream *cs;
    int r;

    if ((r = session_check_kernel_runs(kernel, err)) < 0)
        return r;
    cs = aq_alloc(sizeof(*cs));
    strbuf_init(&cs->held);
    cs->core = core;
    cs->pump = pump;
    cs->ops = ops;
    cs->data = data;
    cs->session_id = kernel->session->id;
    memcpy(cs->agent_id, kernel->agent_id, strlen(kernel->agent_id) + 1);
    open->kernel_id = kernel->id;
    r = core_open_stream(core, kernel->agent_id, open, &command_stream_link_ops, cs, &cs->stream,
                         err);
    if (r < 0) {
        if (!err->kind)
            err->kind = "service-unavailable";
        command_stream_free(cs);
        return r;
    }
    pump_join(pump, PUMP_KERNEL, &command_stream_pump, cs);
    core_note_access(core, &cs->session_id);
    cs->work = open->tty || strcmp(open->kind, "input") == 0 ? COMMAND_WORK_INPUT : ops->work;
    if (cs->work == COMMAND_WORK_RUNNING)
        core_note_command(core, &cs->session_id, 1);
    else if (cs->work != COMMAND_WORK_OWN)
        core_note_work(core, &cs->session_id);
    cs->is_counted = cs->work == COMMAND_WORK_RUNNING;
    *ret = cs;
    return 0;
}

void command_stream_free(struct command_stream *cs)
{
    if (!cs)
        return;
    if (cs->freed)
        *cs->freed = true;
    if (cs->is_counted)
        core_note_command(cs->core, &cs->session_id, -1);
    pump_part(cs->pump, PUMP_KERNEL);
    link_stream_close(cs->stream);
    strbuf_done(&cs->held);
    free(cs);
}
