/* SPDX-License-Identifier: Apache-2.0 */
/* tool.c - runs a program for the image store and passes on its output */
#include "agent/image/tool.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

#define ARGS_MAX 32
#define WRAPPER_MAX 6

extern char **environ;

struct tool {
    uv_process_t process;
    uv_pipe_t output, complaints;
    struct strbuf complaint;
    const struct tool_events *events; /* NULL = stopped */
    void *data;
    int status;
    int open; /* handles that are not closed yet */
    bool is_started;
    char chunk[16384];
};

static void tool_on_closed(uv_handle_t *handle)
{
    struct tool *tool = handle->data;

    if (--tool->open)
        return;
    if (tool->events && tool->is_started)
        tool->events->on_end(tool->data, tool->status, tool->complaint.data);
    strbuf_done(&tool->complaint);
    free(tool);
}

static void tool_close_handle(void *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, tool_on_closed);
}

static void tool_on_exit_status(uv_process_t *process, int64_t status, int signum)
{
    struct tool *tool = process->data;

    tool->status = signum ? 128 + signum : (int)status;
    tool_close_handle(process);
}

static void tool_on_room(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    struct tool *tool = handle->data;

    (void)size;
    *buf = uv_buf_init(tool->chunk, sizeof(tool->chunk));
}

static void tool_on_output(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct tool *tool = stream->data;

    if (got < 0)
        tool_close_handle(stream);
    else if (got > 0 && tool->events)
        tool->events->on_output(tool->data, buf->base, (size_t)got);
}

static void tool_on_complaint(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct tool *tool = stream->data;

    if (got < 0) {
        tool_close_handle(stream);
        return;
    }
    strbuf_add(&tool->complaint, buf->base, (size_t)got);
    if (tool->complaint.len > TOOL_COMPLAINT_MAX)
        strbuf_consume(&tool->complaint, tool->complaint.len - TOOL_COMPLAINT_MAX);
}

/* Our environment with another TMPDIR. The entries stay whose they are. */
static char **tool_make_environment(char *tmpdir)
{
    size_t count = 0, kept = 0;
    char **copy;

    while (environ[count])
        count++;
    copy = aq_alloc_array(count + 2, sizeof(*copy));
    for (size_t i = 0; i < count; i++)
        if (!tmpdir || strncmp(environ[i], "TMPDIR=", 7) != 0)
            copy[kept++] = environ[i];
    if (tmpdir)
        copy[kept] = tmpdir;
    return copy;
}

static int tool_spawn(struct tool *tool, uv_loop_t *loop, char **args, char **environment)
{
    uv_stdio_container_t stdio[] = {
        { .flags = UV_IGNORE },
        { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&tool->output },
        { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
          .data.stream = (uv_stream_t *)&tool->complaints },
    };
    const uv_process_options_t options = {
        .exit_cb = tool_on_exit_status,
        .file = args[0],
        .args = args,
        .env = environment,
        .stdio = stdio,
        .stdio_count = 3,
    };
    int r = uv_spawn(loop, &tool->process, &options);

    if (r == 0)
        r = uv_read_start((uv_stream_t *)&tool->output, tool_on_room, tool_on_output);
    if (r == 0)
        r = uv_read_start((uv_stream_t *)&tool->complaints, tool_on_room, tool_on_complaint);
    return r;
}

int tool_start(uv_loop_t *loop, const char *const *argv, const char *tmpdir, uint32_t group,
               const struct tool_events *events, void *data, struct tool **ret,
               struct aq_error *err)
{
    /* the kernel ends it when we end, however that happens */
    const char *args[ARGS_MAX + WRAPPER_MAX] = { "setpriv", "--pdeathsig", "KILL" };
    char group_arg[sizeof("--regid=4294967295")];
    AQ_CLEANUP(aq_freep) char *tmp = tmpdir ? aq_format("TMPDIR=%s", tmpdir) : NULL;
    AQ_CLEANUP(aq_freep) char **environment = tool_make_environment(tmp);
    struct tool *tool = aq_alloc(sizeof(*tool));
    size_t count = 3;
    int r;

    if (group) {
        (void)snprintf(group_arg, sizeof(group_arg), "--regid=%" PRIu32, group);
        args[count++] = group_arg;
        args[count++] = "--keep-groups";
    }
    args[count++] = "--";
    for (size_t i = 0; argv[i] && i < ARGS_MAX - 1; i++)
        args[count++] = argv[i];
    strbuf_init(&tool->complaint);
    tool->events = events;
    tool->data = data;
    tool->process.data = tool->output.data = tool->complaints.data = tool;
    tool->open = 3;
    (void)uv_pipe_init(loop, &tool->output, 0);
    (void)uv_pipe_init(loop, &tool->complaints, 0);
    r = tool_spawn(tool, loop, (char **)(uintptr_t)args, environment);
    if (r < 0) {
        tool_stop(tool);
        return aq_fail(err, -r, "start '%s': %s", argv[0], uv_strerror(r));
    }
    tool->is_started = true;
    *ret = tool;
    return 0;
}

void tool_stop(struct tool *tool)
{
    if (!tool)
        return;
    tool->events = NULL;
    if (uv_is_active((uv_handle_t *)&tool->process))
        (void)uv_process_kill(&tool->process, SIGKILL);
    else
        tool_close_handle(&tool->process);
    tool_close_handle(&tool->output);
    tool_close_handle(&tool->complaints);
}
