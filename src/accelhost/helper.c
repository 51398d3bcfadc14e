/* SPDX-License-Identifier: Apache-2.0 */
/* helper.c - the process of one plugin: asked, timed out, restarted */
#include "accelhost/helper.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "accel/protocol.h"
#include "accelhost/answer.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/memory.h"

#define DELAY_MAX_USEC (60 * USEC_PER_SEC)
#define READ_SIZE 65536

/* Outlives its helper until it is reaped and its pipe is closed. */
struct helper_process {
    uv_process_t process;
    uv_pipe_t pipe;
    struct helper *helper; /* NULL once it has been given up */
    struct strbuf in;
    int open_handles;
    bool has_exited, has_process;
};

struct helper {
    struct helper_conf conf;        /* texts are ours */
    struct helper_process *process; /* NULL = none */
    struct list calls;              /* the first may be under way */
    bool is_busy;                   /* it is */
    int64_t last_id;
    int failures;       /* in a row */
    int64_t start_usec; /* when to start the next process; 0 = one is there */
    uv_timer_t timer;   /* its closing frees all this */
};

struct helper_call {
    struct list link;
    struct helper *helper;
    int64_t id, deadline_usec;
    char *text;          /* the request, one line */
    helper_done_fn done; /* NULL = cancelled while under way */
    void *data;
};

struct helper_request {
    uv_write_t write;
    char *text;
};

static void helper_set_timer(struct helper *h);
static void helper_send_next(struct helper *h);

/* ---- calls ---- */

static void helper_drop_call(struct helper_call *call)
{
    list_remove(&call->link);
    free(call->text);
    free(call);
}

/* Returns what the callee says about the answer. */
static bool helper_finish_call(struct helper_call *call, const json_t *result, struct aq_error *err)
{
    helper_done_fn done = call->done;
    void *data = call->data;

    helper_drop_call(call);
    return !done || done(data, result, err);
}

static struct helper_call *helper_first_call(struct helper *h)
{
    return list_is_empty(&h->calls) ? NULL : LIST_ENTRY(h->calls.next, struct helper_call, link);
}

/* ---- the end of a process ---- */

static void helper_maybe_free_process(struct helper_process *p)
{
    if (p->open_handles > 0)
        return;
    strbuf_done(&p->in);
    free(p);
}

static void helper_on_handle_closed(uv_handle_t *handle)
{
    struct helper_process *p = handle->data;

    p->open_handles--;
    helper_maybe_free_process(p);
}

/* Kill it, forget it; it is reaped later. */
static void helper_give_up_process(struct helper *h)
{
    struct helper_process *p = AQ_TAKE(h->process);

    if (!p)
        return;
    p->helper = NULL;
    h->is_busy = false;
    uv_close((uv_handle_t *)&p->pipe, helper_on_handle_closed);
    if (p->has_process && !p->has_exited)
        (void)uv_process_kill(&p->process, SIGKILL);
}

/* The process is of no more use: say why, plan the next one. */
static void helper_fail(struct helper *h, const char *why)
{
    /* at once after it has served something */
    int64_t delay = h->failures
                        ? AQ_MIN(USEC_PER_SEC << AQ_MIN(h->failures - 1, 10), DELAY_MAX_USEC)
                        : 0;
    struct helper_call *call = h->is_busy ? helper_first_call(h) : NULL;
    char text[256];

    (void)snprintf(text, sizeof(text), "%s", why);
    helper_give_up_process(h);
    h->start_usec = clock_monotonic_usec() + delay;
    h->failures++;
    if (call) {
        struct aq_error err = { 0 };

        (void)aq_fail_as(&err, EIO, "accelerator-failed", h->conf.name,
                         "accelerator plugin '%s' %s", h->conf.name, text);
        (void)helper_finish_call(call, NULL, &err);
    }
    helper_set_timer(h);
    h->conf.on_failed(h->conf.data, text);
}

/* ---- answers ---- */

static void helper_on_result(struct helper *h, int64_t id, const json_t *result,
                             struct aq_error *why)
{
    struct helper_call *call = h->is_busy ? helper_first_call(h) : NULL;

    if (id == 0) { /* it could not be loaded */
        helper_fail(h, why->text);
        return;
    }
    if (!call || call->id != id) {
        helper_fail(h, "answers what it was not asked");
        return;
    }
    h->is_busy = false;
    if (!result) {
        struct aq_error err = { 0 };

        (void)aq_fail_as(&err, EIO, "accelerator-failed", h->conf.name,
                         "accelerator plugin '%s': %s", h->conf.name, why->text);
        (void)helper_finish_call(call, NULL, &err);
    } else if (helper_finish_call(call, result, why)) {
        h->failures = 0;
    } else {
        helper_fail(h, why->text);
        return;
    }
    helper_send_next(h);
    helper_set_timer(h);
}

static void helper_on_line(struct helper *h, const char *line, size_t len)
{
    struct aq_error why = { 0 }, err = { 0 };
    json_t *result = NULL;
    int64_t id;

    if (answer_parse(line, len, &id, &result, &why, &err) < 0)
        helper_fail(h, err.text);
    else
        helper_on_result(h, id, result, &why);
    json_decref(result);
}

static void helper_on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct helper_process *p = handle->data;

    (void)suggested;
    strbuf_reserve(&p->in, READ_SIZE);
    *buf = uv_buf_init(p->in.data + p->in.len, READ_SIZE);
}

/* 'got' further bytes are in the buffer: answer every whole line. */
static void helper_take_bytes(struct helper_process *p, size_t got)
{
    size_t from = p->in.len;
    const char *end;

    p->in.len += got;
    p->in.data[p->in.len] = '\0';
    while (p->helper && (end = memchr(p->in.data + from, '\n', p->in.len - from))) {
        size_t len = (size_t)(end - p->in.data);
        AQ_CLEANUP(aq_freep) char *line = aq_strndup(p->in.data, len);

        strbuf_consume(&p->in, len + 1);
        from = 0;
        helper_on_line(p->helper, line, len);
    }
    if (p->helper && p->in.len > ACCEL_LINE_MAX)
        helper_fail(p->helper, "answers without an end");
}

static void helper_on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    (void)buf;
    if (got < 0)
        (void)uv_read_stop(stream); /* its end is told by its exit status */
    else
        helper_take_bytes(stream->data, (size_t)got);
}

/* What it wrote before its end and nobody has read yet. */
static void helper_read_rest(struct helper_process *p)
{
    uv_os_fd_t fd;

    while (p->helper && uv_fileno((uv_handle_t *)&p->pipe, &fd) == 0) {
        ssize_t got;

        strbuf_reserve(&p->in, READ_SIZE);
        got = recv(fd, p->in.data + p->in.len, READ_SIZE, MSG_DONTWAIT);
        if (got <= 0)
            return;
        helper_take_bytes(p, (size_t)got);
    }
}

static void helper_on_exit_seen(uv_process_t *process, int64_t status, int signum)
{
    struct helper_process *p = process->data;
    char why[80];

    p->has_exited = true;
    uv_close((uv_handle_t *)process, helper_on_handle_closed);
    helper_read_rest(p);
    if (!p->helper)
        return;
    if (signum)
        (void)snprintf(why, sizeof(why), "has crashed: %s", strsignal(signum));
    else
        (void)snprintf(why, sizeof(why), "has ended with status %d", (int)status);
    helper_fail(p->helper, why);
}

/* ---- requests ---- */

static void helper_on_written(uv_write_t *write, int status)
{
    struct helper_request *request = write->data;

    (void)status; /* a broken pipe is told by the exit status */
    free(request->text);
    free(request);
}

static void helper_send_next(struct helper *h)
{
    struct helper_call *call = helper_first_call(h);
    struct helper_request *request;
    uv_buf_t buf;

    if (!h->process || h->is_busy || !call)
        return;
    request = aq_alloc(sizeof(*request));
    request->text = AQ_TAKE(call->text);
    request->write.data = request;
    buf = uv_buf_init(request->text, (unsigned)strlen(request->text));
    h->is_busy = true;
    if (uv_write(&request->write, (uv_stream_t *)&h->process->pipe, &buf, 1, helper_on_written) < 0)
        helper_on_written(&request->write, 0);
}

/* ---- the start of a process ---- */

static int helper_spawn(struct helper *h, struct helper_process *p, int theirs)
{
    char *args[] = { (char *)(uintptr_t)h->conf.program, (char *)(uintptr_t)h->conf.plugin,
                     (char *)(uintptr_t)h->conf.config, NULL };
    uv_stdio_container_t stdio[] = {
        { .flags = UV_IGNORE },
        { .flags = UV_IGNORE },
        { .flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO },
        { .flags = UV_INHERIT_FD, .data.fd = theirs },
    };
    const uv_process_options_t options = {
        .exit_cb = helper_on_exit_seen,
        .file = h->conf.program,
        .args = args,
        .stdio_count = ACCEL_DESCRIPTOR + 1,
        .stdio = stdio,
    };
    int r = uv_spawn(h->conf.loop, &p->process, &options);

    p->open_handles++; /* also after a failure it must be closed */
    p->has_process = r == 0;
    if (r < 0)
        uv_close((uv_handle_t *)&p->process, helper_on_handle_closed);
    return r;
}

/* The pipe of ours must be closed by the caller that gives the process up. */
static int helper_start_process(struct helper *h, struct helper_process *p)
{
    int fds[2], r;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    r = uv_pipe_open(&p->pipe, fds[0]);
    if (r < 0)
        (void)close(fds[0]);
    else
        r = helper_spawn(h, p, fds[1]);
    (void)close(fds[1]);
    if (r == 0)
        r = uv_read_start((uv_stream_t *)&p->pipe, helper_on_room, helper_on_read);
    return r;
}

static void helper_start(struct helper *h)
{
    struct helper_process *p = aq_alloc(sizeof(*p));
    int r;

    h->start_usec = 0;
    strbuf_init(&p->in);
    p->helper = h;
    p->process.data = p->pipe.data = p;
    (void)uv_pipe_init(h->conf.loop, &p->pipe, 0);
    p->open_handles = 1;
    h->process = p;
    r = helper_start_process(h, p);
    if (r < 0) {
        char why[256];

        (void)snprintf(why, sizeof(why), "cannot be started: %.160s: %s", h->conf.program,
                       r == UV_ENOENT && access(h->conf.program, X_OK) == 0
                           ? "it needs the GNU C library (glibc), which this machine does not have"
                           : uv_strerror(r));
        helper_fail(h, why);
        return;
    }
    h->conf.on_started(h->conf.data);
    helper_send_next(h);
}

/* ---- time ---- */

static void helper_fail_late(struct helper *h, struct helper_call *call)
{
    struct aq_error err = { 0 };

    (void)aq_fail_as(&err, ETIMEDOUT, "accelerator-failed", h->conf.name,
                     "accelerator plugin '%s' did not answer within %lld ms", h->conf.name,
                     (long long)(h->conf.limit_usec / USEC_PER_MSEC));
    (void)helper_finish_call(call, NULL, &err);
}

/* A callback may drop other calls. */
static void helper_fail_all_late(struct helper *h, const struct helper_call *busy, int64_t now)
{
    AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;
    struct list *link;

    list_cursor_begin(&cursor, &h->calls);
    while ((link = list_cursor_next(&cursor))) {
        struct helper_call *call = LIST_ENTRY(link, struct helper_call, link);

        if (call != busy && now >= call->deadline_usec)
            helper_fail_late(h, call);
    }
}

/* Calls that waited behind one that hung have as long as if they came now. */
static void helper_extend_waiting(struct helper *h, int64_t now)
{
    LIST_FOREACH(link, &h->calls)
        LIST_ENTRY(link, struct helper_call, link)->deadline_usec = now + h->conf.limit_usec;
}

static void helper_on_timer(uv_timer_t *timer)
{
    struct helper *h = timer->data;
    int64_t now = clock_monotonic_usec();
    struct helper_call *busy = h->is_busy ? helper_first_call(h) : NULL;

    if (busy && now >= busy->deadline_usec) {
        char why[80];

        (void)snprintf(why, sizeof(why), "did not answer within %lld ms",
                       (long long)(h->conf.limit_usec / USEC_PER_MSEC));
        helper_extend_waiting(h, now);
        helper_fail(h, why);
        return; /* the timer is set */
    }
    helper_fail_all_late(h, busy, now);
    if (h->start_usec && now >= h->start_usec)
        helper_start(h);
    helper_set_timer(h);
}

/* At the next moment when something is due. */
static void helper_set_timer(struct helper *h)
{
    int64_t next = h->start_usec ? h->start_usec : INT64_MAX, now = clock_monotonic_usec();

    if (uv_is_closing((uv_handle_t *)&h->timer))
        return;
    LIST_FOREACH(link, &h->calls)
        next = AQ_MIN(next, LIST_ENTRY(link, struct helper_call, link)->deadline_usec);
    if (next == INT64_MAX)
        (void)uv_timer_stop(&h->timer);
    else
        (void)uv_timer_start(&h->timer, helper_on_timer,
                             next > now ? (uint64_t)((next - now) / USEC_PER_MSEC + 1) : 0, 0);
}

/* ---- life ---- */

struct helper *helper_new(const struct helper_conf *conf)
{
    struct helper *h = aq_alloc(sizeof(*h));

    h->conf = *conf;
    h->conf.program = aq_strdup(conf->program);
    h->conf.plugin = aq_strdup(conf->plugin);
    h->conf.config = aq_strdup(conf->config);
    h->conf.name = aq_strdup(conf->name);
    list_init(&h->calls);
    (void)uv_timer_init(conf->loop, &h->timer);
    h->timer.data = h;
    h->start_usec = 1;
    helper_set_timer(h);
    return h;
}

static void helper_on_timer_closed(uv_handle_t *handle)
{
    struct helper *h = handle->data;

    free((void *)(uintptr_t)h->conf.program);
    free((void *)(uintptr_t)h->conf.plugin);
    free((void *)(uintptr_t)h->conf.config);
    free((void *)(uintptr_t)h->conf.name);
    free(h);
}

void helper_free(struct helper *helper)
{
    if (!helper)
        return;
    LIST_FOREACH(link, &helper->calls)
        helper_drop_call(LIST_ENTRY(link, struct helper_call, link));
    helper_give_up_process(helper);
    uv_close((uv_handle_t *)&helper->timer, helper_on_timer_closed);
}

struct helper_call *helper_ask(struct helper *helper, const char *members, helper_done_fn done,
                               void *data)
{
    struct helper_call *call = aq_alloc(sizeof(*call));

    call->helper = helper;
    call->id = ++helper->last_id;
    call->deadline_usec = clock_monotonic_usec() + helper->conf.limit_usec;
    call->done = done;
    call->data = data;
    call->text = aq_format("{\"id\":%lld,%s}\n", (long long)call->id, members);
    list_add(&helper->calls, &call->link);
    helper_send_next(helper);
    helper_set_timer(helper);
    return call;
}

void helper_cancel(struct helper_call *call)
{
    if (!call)
        return;
    if (call->helper->is_busy && helper_first_call(call->helper) == call)
        call->done = NULL; /* its answer will come */
    else
        helper_drop_call(call);
}
