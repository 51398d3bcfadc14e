/* SPDX-License-Identifier: Apache-2.0 */
/* helper_process.c - one process of aliquot-accel: started, sent requests, read, killed */
#include "accelhost/helper_process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "accel/protocol.h"
#include "base/memory.h"
#include "base/strbuf.h"

#define READ_SIZE 65536

/* Outlives its owner until it is reaped and its pipe is closed. */
struct helper_process {
    uv_process_t process;
    uv_pipe_t pipe;
    const struct helper_events *events; /* NULL once it has been given up */
    void *data;
    struct strbuf in;
    int open_handles;
    bool has_exited, has_process;
};

struct helper_request {
    uv_write_t write;
    char *text;
};

/* ---- the end ---- */

static void helper_process_on_closed(uv_handle_t *handle)
{
    struct helper_process *p = handle->data;

    if (--p->open_handles > 0)
        return;
    strbuf_done(&p->in);
    free(p);
}

void helper_process_free(struct helper_process *process)
{
    if (!process)
        return;
    process->events = NULL;
    uv_close((uv_handle_t *)&process->pipe, helper_process_on_closed);
    if (process->has_process && !process->has_exited)
        (void)uv_process_kill(&process->process, SIGKILL);
}

/* ---- answers ---- */

static void helper_process_on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct helper_process *p = handle->data;

    (void)suggested;
    strbuf_reserve(&p->in, READ_SIZE);
    *buf = uv_buf_init(p->in.data + p->in.len, READ_SIZE);
}

/* 'got' further bytes are in the buffer: hand out every whole line. */
static void helper_process_take_bytes(struct helper_process *p, size_t got)
{
    size_t from = p->in.len;
    const char *end;

    p->in.len += got;
    p->in.data[p->in.len] = '\0';
    while (p->events && (end = memchr(p->in.data + from, '\n', p->in.len - from))) {
        size_t len = (size_t)(end - p->in.data);
        AQ_CLEANUP(aq_freep) char *line = aq_strndup(p->in.data, len);

        strbuf_consume(&p->in, len + 1);
        from = 0;
        p->events->on_line(p->data, line, len);
    }
    if (p->events && p->in.len > ACCEL_LINE_MAX)
        p->events->on_failed(p->data, "answers without an end");
}

static void helper_process_on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    (void)buf;
    if (got < 0)
        (void)uv_read_stop(stream); /* its end is told by its exit status */
    else
        helper_process_take_bytes(stream->data, (size_t)got);
}

/* What it wrote before its end and nobody has read yet. */
static void helper_process_read_rest(struct helper_process *p)
{
    uv_os_fd_t fd;

    while (p->events && uv_fileno((uv_handle_t *)&p->pipe, &fd) == 0) {
        ssize_t got;

        strbuf_reserve(&p->in, READ_SIZE);
        got = recv(fd, p->in.data + p->in.len, READ_SIZE, MSG_DONTWAIT);
        if (got <= 0)
            return;
        helper_process_take_bytes(p, (size_t)got);
    }
}

static void helper_process_on_exit(uv_process_t *process, int64_t status, int signum)
{
    struct helper_process *p = process->data;
    char why[80];

    p->has_exited = true;
    uv_close((uv_handle_t *)process, helper_process_on_closed);
    helper_process_read_rest(p);
    if (!p->events)
        return;
    if (signum)
        (void)snprintf(why, sizeof(why), "has crashed: %s", strsignal(signum));
    else
        (void)snprintf(why, sizeof(why), "has ended with status %d", (int)status);
    p->events->on_failed(p->data, why);
}

/* ---- requests ---- */

static void helper_process_on_written(uv_write_t *write, int status)
{
    struct helper_request *request = write->data;

    (void)status; /* a broken pipe is told by the exit status */
    free(request->text);
    free(request);
}

void helper_process_send(struct helper_process *process, char *text)
{
    struct helper_request *request = aq_alloc(sizeof(*request));
    uv_buf_t buf = uv_buf_init(text, (unsigned)strlen(text));

    request->text = text;
    request->write.data = request;
    if (uv_write(&request->write, (uv_stream_t *)&process->pipe, &buf, 1, helper_process_on_written)
        < 0)
        helper_process_on_written(&request->write, 0);
}

/* ---- the start ---- */

static int helper_process_spawn(struct helper_process *p, const struct helper_conf *conf,
                                int theirs)
{
    char *args[] = { (char *)(uintptr_t)conf->program, (char *)(uintptr_t)conf->plugin,
                     (char *)(uintptr_t)conf->config, NULL };
    uv_stdio_container_t stdio[] = {
        { .flags = UV_IGNORE },
        { .flags = UV_IGNORE },
        { .flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO },
        { .flags = UV_INHERIT_FD, .data.fd = theirs },
    };
    const uv_process_options_t options = {
        .exit_cb = helper_process_on_exit,
        .file = conf->program,
        .args = args,
        .stdio_count = ACCEL_DESCRIPTOR + 1,
        .stdio = stdio,
    };
    int r = uv_spawn(conf->loop, &p->process, &options);

    p->open_handles++; /* also after a failure it must be closed */
    p->has_process = r == 0;
    if (r < 0)
        uv_close((uv_handle_t *)&p->process, helper_process_on_closed);
    return r;
}

/* The caller closes the pipe after a failure. */
static int helper_process_start(struct helper_process *p, const struct helper_conf *conf)
{
    int fds[2], r;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    r = uv_pipe_open(&p->pipe, fds[0]);
    if (r < 0)
        (void)close(fds[0]);
    else
        r = helper_process_spawn(p, conf, fds[1]);
    (void)close(fds[1]);
    if (r == 0)
        r = uv_read_start((uv_stream_t *)&p->pipe, helper_process_on_room, helper_process_on_read);
    return r;
}

int helper_process_new(const struct helper_conf *conf, const struct helper_events *events,
                       void *data, struct helper_process **ret)
{
    struct helper_process *p = aq_alloc(sizeof(*p));
    int r;

    p->events = events;
    p->data = data;
    strbuf_init(&p->in);
    p->process.data = p->pipe.data = p;
    (void)uv_pipe_init(conf->loop, &p->pipe, 0);
    p->open_handles = 1;
    r = helper_process_start(p, conf);
    if (r < 0)
        helper_process_free(p);
    else
        *ret = p;
    return r;
}
