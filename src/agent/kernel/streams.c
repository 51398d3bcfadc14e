/* SPDX-License-Identifier: Apache-2.0 */
/* streams.c - logs, terminals and commands of kernels over connections of their own */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "agent/kernel/exec.h"
#include "agent/kernel/kernel.h"
#include "agent/kernel/log_reader.h"
#include "agent/runtime/oci.h"
#include "agent/runtime/oci_host.h"
#include "agent/stat/memory_kills.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"

#define LOG_WAIT_MSEC 100 /* between looks for a log that a starting kernel will have */

struct served {
    struct list link;
    struct agent_daemon *agent;
    struct uuid kernel_id;
    struct link_stream *stream; /* NULL once closed */
    struct pump pump;           /* between it and one of the three below */
    uv_timer_t timer;           /* waiting for a log; its closing frees all this */
    /* logs */
    struct log_reader *reader;
    struct log_reader_options log;
    int64_t attempt; /* of the kernel; 0 = the newest */
    /* terminals */
    bool is_terminal;
    struct runtime_terminal *terminal;
    uint16_t rows, cols;
    /* commands */
    char *opened;          /* the message's description of it, until it runs */
    const char *exec_kind; /* "exec", "files" or "input"; NULL = it is none of them */
    bool tty, input;
    uint64_t kills; /* in the container, when the command began */
    struct exec *exec;
};

static void streams_on_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* The stream itself is closed by the caller. */
static void served_free(struct served *s)
{
    list_remove(&s->link);
    log_reader_free(s->reader);
    runtime_detach(s->terminal);
    exec_free(s->exec);
    pump_done(&s->pump);
    free(s->opened);
    uv_close((uv_handle_t *)&s->timer, streams_on_timer_closed);
}

static void streams_close_stream(struct served *s)
{
    link_stream_close(AQ_TAKE(s->stream));
    served_free(s);
}

static void streams_reject(struct agent_daemon *agent, const struct msg_stream_open *open,
                           const char *kind, const char *text)
{
    const struct message msg = {
        .type = MSG_STREAM_REFUSED,
        .stream_refused = { .stream_id = open->stream_id, .kind = kind, .text = text },
    };

    agent_send(agent, &msg);
}

/* ---- what a kernel gives ---- */

/* Nothing waits for it but what a client has sent to a log, which fails at nothing. */
static void streams_join_kernel(struct served *s, const struct pump_ops *ops, void *end)
{
    pump_join(&s->pump, PUMP_KERNEL, ops, end);
    (void)pump_open(&s->pump, PUMP_KERNEL);
}

/* A stream that fails says so by itself, later. */
static void streams_on_bytes(void *data, const char *bytes, size_t len)
{
    struct served *s = data;

    (void)pump_give(&s->pump, PUMP_KERNEL, bytes, len);
}

static void streams_on_kernel_drain(void *data)
{
    struct served *s = data;

    pump_drained(&s->pump, PUMP_KERNEL);
}

static void streams_on_end(void *data)
{
    streams_close_stream(data);
}

/* ---- logs ---- */

static bool streams_is_timed(const struct msg_stream_open *open)
{
    return strcmp(open->kind, "timed-logs") == 0;
}

static struct log_reader_options streams_make_log_options(const struct msg_stream_open *open)
{
    struct log_reader_options options = { .tail_lines = open->tail_lines,
                                          .only_new = open->only_new,
                                          .follow = open->follow };

    if (!streams_is_timed(open))
        return options;
    options.timestamps = open->timestamps;
    options.since_usec = open->since_usec;
    if (open->ago_usec)
        options.since_usec = AQ_MAX(clock_realtime_usec() - open->ago_usec, 1);
    return options;
}

static char *streams_newest_below(const char *directory)
{
    int64_t attempt = directory ? disk_worker_newest_attempt(directory) : 0;

    return attempt ? aq_format("%s/%" PRId64, directory, attempt) : NULL;
}

static bool streams_has_log(const char *directory)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/log", directory);

    return access(path, F_OK) == 0;
}

/* Where the newest output is: the run directory, or what is kept of it. Of a kernel that is just
 * being forgotten the log is moved first, and the directory is there for a moment without it.
 */
static char *streams_find_newest_log(struct agent_daemon *agent, const struct uuid *id,
                                     bool *ret_is_live)
{
    const struct local_kernel *k = kernel_find(agent, id);
    AQ_CLEANUP(aq_freep) char *runs = disk_worker_kernel_path(agent->disk, id, "run");
    AQ_CLEANUP(aq_freep) char *kept = disk_worker_log_path(agent->disk, id);
    char *found = k ? disk_worker_run_path(agent->disk, id,
                                           k->run_attempt ? k->run_attempt : k->attempt)
                    : streams_newest_below(runs);
    char *moved;

    *ret_is_live = k && !kernel_is_final(k);
    if (*ret_is_live || (found && streams_has_log(found)) || !(moved = streams_newest_below(kept)))
        return found;
    free(found);
    return moved;
}

/* The same of one attempt, which ended unless it is the newest. */
static char *streams_find_log(struct agent_daemon *agent, const struct uuid *id, int64_t attempt,
                              bool *ret_is_live)
{
    const struct local_kernel *k = kernel_find(agent, id);
    AQ_CLEANUP(aq_freep) char *kept = NULL;
    char *run;

    if (!attempt || (k && k->attempt == attempt))
        return streams_find_newest_log(agent, id, ret_is_live);
    *ret_is_live = false;
    run = disk_worker_run_path(agent->disk, id, attempt);
    if (run && access(run, F_OK) == 0)
        return run;
    free(run);
    kept = disk_worker_log_path(agent->disk, id);
    return aq_format("%s/%" PRId64, kept, attempt);
}

static void streams_on_timer(uv_timer_t *timer);

static int streams_open_log(struct served *s, bool *ret_is_live)
{
    static const struct log_reader_ops ops = { .on_bytes = streams_on_bytes,
                                               .on_end = streams_on_end };
    AQ_CLEANUP(aq_freep) char *directory = streams_find_log(s->agent, &s->kernel_id, s->attempt,
                                                            ret_is_live);
    struct log_reader_options options = s->log;
    int r;

    if (!directory)
        return -ENOENT;
    options.follow &= *ret_is_live;
    r = log_reader_new(&s->agent->log_turns, directory, &options, &ops, s, &s->reader, NULL);
    if (r == 0)
        streams_join_kernel(s, &log_reader_pump, s->reader);
    return r;
}

static void streams_serve_log(struct served *s)
{
    bool is_live;
    int r = streams_open_log(s, &is_live);

    if (r == -ENOENT && !is_live)
        r = streams_open_log(s, &is_live); /* it was moved between the look and the opening */
    if (r == -ENOENT && is_live && s->log.follow) {
        s->log.only_new = false; /* all that comes is */
        (void)uv_timer_start(&s->timer, streams_on_timer, LOG_WAIT_MSEC, 0);
    } else if (r < 0) {
        streams_close_stream(s); /* it has written nothing */
    }
}

static void streams_on_timer(uv_timer_t *timer)
{
    streams_serve_log(timer->data);
}

/* ---- terminals ---- */

static void streams_serve_terminal(struct served *s)
{
    static const struct runtime_terminal_ops ops = {
        .on_output = streams_on_bytes,
        .on_closed = streams_on_end,
        .on_drain = streams_on_kernel_drain,
    };
    struct local_kernel *k = kernel_find(s->agent, &s->kernel_id);
    struct aq_error err = { 0 };

    if (!k || !k->run || runtime_attach(k->run, &ops, s, &s->terminal, &err) < 0) {
        streams_close_stream(s);
        return;
    }
    if (s->rows && s->cols)
        runtime_resize(s->terminal, s->rows, s->cols);
    streams_join_kernel(s, &runtime_terminal_pump, s->terminal);
}

/* ---- commands ---- */

/* So far in the container, of a command that users have given. */
static struct memory_kills streams_read_kills(const struct served *s)
{
    const struct agent_daemon *agent = s->agent;
    const struct oci_host *host = agent->containers ? runtime_oci_host(agent->containers) : NULL;
    char id[UUID_TEXT_MAX];

    return host && strcmp(s->exec_kind, "exec") == 0
               ? memory_kills_read(&host->cgroups, uuid_format(&s->kernel_id, id))
               : (struct memory_kills){ 0 };
}

static void streams_on_exec_failed(void *data, struct strbuf *out)
{
    const struct served *s = data;
    const struct memory_kills kills = streams_read_kills(s);

    if (kills.count <= s->kills)
        return;
    strbuf_adds(out, "aliquot: a process was killed: out of memory");
    if (kills.limit_bytes) {
        strbuf_adds(out, ", limit ");
        strbuf_add_size(out, kills.limit_bytes);
    }
    strbuf_adds(out, s->tty ? "\r\n" : "\n");
}

static int streams_start_exec(struct served *s, struct aq_error *err)
{
    static const struct exec_ops ops = {
        .on_bytes = streams_on_bytes,
        .on_drain = streams_on_kernel_drain,
        .on_failed = streams_on_exec_failed,
        .on_end = streams_on_end,
    };
    const struct msg_stream_open open = { .kind = s->exec_kind,
                                          .command = s->opened,
                                          .tty = s->tty,
                                          .input = s->input,
                                          .rows = s->rows,
                                          .cols = s->cols };
    struct local_kernel *k = kernel_find(s->agent, &s->kernel_id);

    if (!k || !k->run)
        return aq_fail(err, ENOTCONN, "this kernel does not run");
    s->kills = streams_read_kills(s).count;
    return exec_new(k->run, &open, &ops, s, &s->exec, err);
}

static void streams_serve_exec(struct served *s)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf frame = STRBUF_INIT;
    struct aq_error err = { 0 };

    if (streams_start_exec(s, &err) == 0) {
        streams_join_kernel(s, &exec_pump, s->exec);
        return;
    }
    exec_add_failure(&frame, &err);
    (void)link_stream_write(s->stream, frame.data, frame.len);
    streams_close_stream(s);
}

/* ---- the stream's side ---- */

static void streams_on_open(void *data, struct link_stream *stream)
{
    struct served *s = data;

    AQ_FAULT("agent.stream.opened");
    pump_join(&s->pump, PUMP_CLIENT, &link_stream_pump, stream);
    (void)pump_open(&s->pump, PUMP_CLIENT); /* nothing has been given yet */
    if (s->is_terminal)
        streams_serve_terminal(s);
    else if (s->exec_kind)
        streams_serve_exec(s);
    else
        streams_serve_log(s);
}

static void streams_on_data(void *data, struct link_stream *stream, const char *bytes, size_t len)
{
    struct served *s = data;

    (void)stream;
    if (pump_give(&s->pump, PUMP_CLIENT, bytes, len) < 0) /* rather than lose a piece of it */
        streams_close_stream(s);
}

static void streams_on_drain(void *data, struct link_stream *stream)
{
    struct served *s = data;

    (void)stream;
    pump_drained(&s->pump, PUMP_CLIENT);
}

static void streams_on_close(void *data, struct link_stream *stream, const struct aq_error *err)
{
    struct served *s = data;

    (void)stream;
    if (err)
        log_debug("a stream ended: %s", err->text);
    s->stream = NULL;
    served_free(s);
}

static const struct link_stream_ops stream_ops = {
    .on_open = streams_on_open,
    .on_data = streams_on_data,
    .on_drain = streams_on_drain,
    .on_close = streams_on_close,
};

static const char *streams_reason_against_log(struct agent_daemon *agent,
                                              const struct msg_stream_open *open,
                                              const char **ret_kind)
{
    bool is_live;
    AQ_CLEANUP(aq_freep) char *log = streams_find_log(agent, &open->kernel_id, open->attempt,
                                                      &is_live);

    *ret_kind = "not-found";
    if (!log)
        return "this node has no logs of this kernel any more";
    *ret_kind = "no-times";
    return streams_is_timed(open) && log_reader_lacks_times(log)
               ? "the times of this log's lines were not recorded; it can be read without them"
               : NULL;
}

/* What exec.c does, or NULL. */
static const char *streams_exec_kind(const struct msg_stream_open *open)
{
    static const char *const kinds[] = { "exec", "files", "input" };

    for (size_t i = 0; i < AQ_COUNT(kinds); i++)
        if (strcmp(open->kind, kinds[i]) == 0)
            return kinds[i];
    return NULL;
}

/* Refusals that need no connection: a reason, or NULL. */
static const char *streams_reason_against(struct agent_daemon *agent,
                                          const struct msg_stream_open *open, const char **ret_kind)
{
    const struct local_kernel *k = kernel_find(agent, &open->kernel_id);

    *ret_kind = "not-found";
    if (strcmp(open->kind, "pty") == 0 || streams_exec_kind(open))
        return k && k->run ? NULL : "this kernel does not run";
    if (strcmp(open->kind, "logs") == 0 || streams_is_timed(open))
        return streams_reason_against_log(agent, open, ret_kind);
    *ret_kind = "unknown-kind";
    return "this agent does not know this kind of stream";
}

void streams_open(struct agent_daemon *agent, const struct msg_stream_open *open)
{
    const char *kind, *reason = streams_reason_against(agent, open, &kind);
    struct aq_error err = { 0 };
    struct served *s;

    if (reason) {
        streams_reject(agent, open, kind, reason);
        return;
    }
    s = aq_alloc(sizeof(*s));
    s->opened = aq_strdup(open->command);
    s->agent = agent;
    s->kernel_id = open->kernel_id;
    s->is_terminal = strcmp(open->kind, "pty") == 0;
    s->exec_kind = streams_exec_kind(open);
    s->tty = open->tty;
    s->input = open->input;
    s->log = streams_make_log_options(open);
    s->attempt = open->attempt;
    s->rows = (uint16_t)AQ_MIN(open->rows, UINT16_MAX);
    s->cols = (uint16_t)AQ_MIN(open->cols, UINT16_MAX);
    pump_init(&s->pump);
    s->timer.data = s;
    (void)uv_timer_init(agent->loop, &s->timer);
    list_add(&agent->streams, &s->link);
    if (link_client_open_stream(agent->link, open, &stream_ops, s, &s->stream, &err) < 0) {
        streams_reject(agent, open, "refused", err.text);
        served_free(s);
    }
}

static void streams_control_one(struct served *s, const struct msg_stream_control *control)
{
    const struct local_kernel *k = kernel_find(s->agent, &s->kernel_id);
    uint16_t rows = (uint16_t)AQ_MIN(control->rows, UINT16_MAX);
    uint16_t cols = (uint16_t)AQ_MIN(control->cols, UINT16_MAX);
    int signum = (int)AQ_MIN(control->signal, 64);

    if (rows && cols && s->terminal)
        runtime_resize(s->terminal, rows, cols);
    else if (rows && cols)
        exec_resize(s->exec, rows, cols);
    if (signum && s->exec)
        exec_signal(s->exec, signum);
    else if (signum && k && k->run)
        runtime_signal(k->run, signum);
}

void streams_control(struct agent_daemon *agent, const struct msg_stream_control *control)
{
    LIST_FOREACH(it, &agent->streams) {
        struct served *s = LIST_ENTRY(it, struct served, link);

        if ((!s->terminal && !s->exec)
            || !uuid_equals(link_stream_id(s->stream), &control->stream_id))
            continue;
        streams_control_one(s, control);
        return;
    }
}

void streams_kernel_ended(struct agent_daemon *agent, const struct uuid *kernel_id)
{
    LIST_FOREACH(it, &agent->streams) {
        struct served *s = LIST_ENTRY(it, struct served, link);

        if (!uuid_equals(&s->kernel_id, kernel_id))
            continue;
        if (s->reader)
            log_reader_finish(s->reader);
        if (s->exec_kind) /* a terminal ends by itself, after the last output */
            streams_close_stream(s);
    }
}

void streams_free(struct agent_daemon *agent)
{
    LIST_FOREACH(it, &agent->streams)
        streams_close_stream(LIST_ENTRY(it, struct served, link));
}
