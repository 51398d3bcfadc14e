/* SPDX-License-Identifier: Apache-2.0 */
/* A command of the administrator's that is asked a question. */
#include "manager/login/hook_command.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/strbuf.h"

struct hook_command {
    uv_process_t process;
    uv_pipe_t input, output;
    uv_write_t write;
    int handles; /* not closed yet */
    char *question;
    struct strbuf answer;
    char room[4096];
    bool is_running, is_over, has_ended_output;
    int64_t status;
    int signal;
    hook_answer_fn *done; /* NULL = was called, or nobody wants to know */
    void *data;
};

static void hook_command_on_closed(uv_handle_t *handle)
{
    struct hook_command *c = handle->data;

    if (--c->handles > 0)
        return;
    free(c->question);
    strbuf_done(&c->answer);
    free(c);
}

static void hook_command_close(void *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, hook_command_on_closed);
}

/* The process that was killed is waited for: its handle is closed when it has ended. */
void hook_command_stop(struct hook_command *c)
{
    c->done = NULL;
    if (c->is_over)
        return;
    c->is_over = true;
    if (c->process.pid > 0 && (c->is_running || !c->has_ended_output))
        (void)kill(-c->process.pid, SIGKILL);
    hook_command_close(&c->input);
    hook_command_close(&c->output);
    if (!c->is_running)
        hook_command_close(&c->process);
}

static void hook_command_end(struct hook_command *c, const struct aq_error *err)
{
    hook_answer_fn *done = AQ_TAKE(c->done);

    if (done)
        done(c->data, c->answer.data ? c->answer.data : "", c->answer.len, err);
    hook_command_stop(c);
}

/* Once it has exited and nobody can write any more. */
static void hook_command_end_if_over(struct hook_command *c)
{
    struct aq_error err = { 0 };

    if (c->is_running || !c->has_ended_output || c->is_over)
        return;
    if (c->signal)
        aq_fail(&err, ECHILD, "it was ended by signal %d", c->signal);
    else if (c->status)
        aq_fail(&err, ECHILD, "its exit status is %d", (int)c->status);
    hook_command_end(c, &err);
}

static void hook_command_on_exit(uv_process_t *process, int64_t status, int signal)
{
    struct hook_command *c = process->data;

    c->is_running = false;
    c->status = status;
    c->signal = signal;
    if (c->is_over)
        hook_command_close(&c->process);
    else
        hook_command_end_if_over(c);
}

static void hook_command_on_room(uv_handle_t *handle, size_t size, uv_buf_t *ret)
{
    struct hook_command *c = handle->data;

    (void)size;
    *ret = uv_buf_init(c->room, sizeof(c->room));
}

static void hook_command_on_output(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct hook_command *c = stream->data;
    struct aq_error err = { 0 };

    if (got < 0) {
        (void)uv_read_stop(stream);
        c->has_ended_output = true;
        hook_command_end_if_over(c);
        return;
    }
    strbuf_add(&c->answer, buf->base, (size_t)got);
    if (c->answer.len > HOOK_ANSWER_MAX) {
        aq_fail(&err, EFBIG, "it answers with more than %u bytes", HOOK_ANSWER_MAX);
        hook_command_end(c, &err);
    }
}

/* What does not read its question may answer all the same. */
static void hook_command_on_written(uv_write_t *write, int status)
{
    struct hook_command *c = write->data;

    (void)status;
    hook_command_close(&c->input);
}

/* In a process group of its own, which is killed as a whole. */
static int hook_command_spawn(struct hook_command *c, uv_loop_t *loop,
                              const struct hook_command_spec *spec)
{
    char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    char *environment[] = { path, NULL };
    uv_stdio_container_t stdio[] = {
        { .flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&c->input },
        { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&c->output },
        { .flags = UV_INHERIT_FD, .data.fd = 2 }, /* into the manager's log */
    };
    const uv_process_options_t options = {
        .exit_cb = hook_command_on_exit,
        .file = spec->argv[0],
        .args = spec->argv,
        .env = environment,
        .cwd = "/",
        .flags = UV_PROCESS_DETACHED
                 | (spec->sets_user ? UV_PROCESS_SETUID | UV_PROCESS_SETGID : 0),
        .uid = spec->uid,
        .gid = spec->gid,
        .stdio = stdio,
        .stdio_count = AQ_COUNT(stdio),
    };
    const uv_buf_t question = uv_buf_init(c->question, (unsigned)strlen(c->question));
    int r = uv_spawn(loop, &c->process, &options);

    c->is_running = r == 0;
    if (r == 0)
        r = uv_read_start((uv_stream_t *)&c->output, hook_command_on_room, hook_command_on_output);
    if (r == 0)
        r = uv_write(&c->write, (uv_stream_t *)&c->input, &question, 1, hook_command_on_written);
    return r;
}

int hook_command_start(uv_loop_t *loop, const struct hook_command_spec *spec, const char *question,
                       hook_answer_fn *done, void *data, struct hook_command **ret,
                       struct aq_error *err)
{
    struct hook_command *c = aq_alloc(sizeof(*c));
    int r;

    c->question = aq_strdup(question);
    strbuf_init(&c->answer);
    c->process.data = c->input.data = c->output.data = c->write.data = c;
    c->handles = 3;
    (void)uv_pipe_init(loop, &c->input, 0);
    (void)uv_pipe_init(loop, &c->output, 0);
    if ((r = hook_command_spawn(c, loop, spec)) < 0) {
        hook_command_stop(c);
        return aq_fail(err, -r, "start '%s': %s", spec->argv[0], uv_strerror(r));
    }
    c->done = done;
    c->data = data;
    *ret = c;
    return 0;
}
