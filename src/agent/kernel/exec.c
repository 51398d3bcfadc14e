/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c - runs a command in a kernel's container over a stream, moves its files, or gives its
 * program input (link/exec.h)
 */
#include "agent/kernel/exec.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/runtime/runner_client.h"
#include "base/memory.h"
#include "link/exec.h"

struct exec {
    struct runner_command *command;
    const struct exec_ops *ops;
    void *data;
    struct strbuf held; /* a frame that is not whole yet */
    int full;           /* of the frames of one call: 1 = the command's input is */
};

/* ---- from the command ---- */

static void exec_put(struct exec *e, enum exec_type type, const void *bytes, size_t len)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf frame = STRBUF_INIT;

    exec_frame_add(&frame, type, bytes, len);
    e->ops->on_bytes(e->data, frame.data, frame.len);
}

static void exec_on_started(void *data)
{
    exec_put(data, EXEC_STARTED, NULL, 0);
}

static void exec_on_output(void *data, bool is_errors, const char *bytes, size_t len)
{
    exec_put(data, is_errors ? EXEC_ERRORS : EXEC_OUTPUT, bytes, len);
}

static void exec_on_taken(void *data, uint32_t bytes, bool is_all)
{
    const unsigned char payload[] = { (unsigned char)(bytes >> 24), (unsigned char)(bytes >> 16),
                                      (unsigned char)(bytes >> 8), (unsigned char)bytes,
                                      (unsigned char)is_all };

    exec_put(data, EXEC_TAKEN, payload, sizeof(payload));
}

static void exec_on_drain(void *data)
{
    struct exec *e = data;

    e->ops->on_drain(e->data);
}

static void exec_on_ended(void *data, int status)
{
    int signum = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    const unsigned char bytes[] = {
        (unsigned char)(signum ? 128 + signum : WEXITSTATUS(status)),
        (unsigned char)signum,
    };
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;
    struct exec *e = data;

    if (status != 0)
        e->ops->on_failed(e->data, &line);
    if (line.len)
        exec_put(e, EXEC_ERRORS, line.data, line.len);
    exec_put(e, EXEC_ENDED, bytes, sizeof(bytes));
    e->ops->on_end(e->data);
}

void exec_add_failure(struct strbuf *out, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf bytes = STRBUF_INIT;
    const char *kind = err->code == ENOENT ? "no-such-program"
                       : err->kind         ? err->kind
                                           : "exec-failed";

    strbuf_add(&bytes, kind, strlen(kind) + 1);
    strbuf_adds(&bytes, err->text);
    exec_frame_add(out, EXEC_FAILED, bytes.data, bytes.len);
}

static void exec_on_failed(void *data, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf frame = STRBUF_INIT;
    struct exec *e = data;

    exec_add_failure(&frame, err);
    e->ops->on_bytes(e->data, frame.data, frame.len);
    e->ops->on_end(e->data);
}

/* ---- to the command ---- */

static int exec_on_frame(void *data, enum exec_type type, const char *bytes, size_t len)
{
    struct exec *e = data;
    int r = 0;

    if (type == EXEC_INPUT)
        r = runner_command_input(e->command, bytes, len);
    else if (type == EXEC_END_INPUT)
        runner_command_end_input(e->command);
    e->full |= r == 1;
    return r < 0 && r != -EPIPE ? r : 0; /* one that has ended needs no input */
}

static int exec_take(void *end, const char *bytes, size_t len)
{
    struct exec *e = end;
    int r;

    e->full = 0;
    r = exec_frames_read(&e->held, bytes, len, exec_on_frame, e);
    return r < 0 ? r : e->full;
}

static void exec_pause(void *end, bool is_paused)
{
    struct exec *e = end;

    runner_command_pause(e->command, is_paused);
}

const struct pump_ops exec_pump = { .put = exec_take, .pause = exec_pause };

void exec_resize(struct exec *exec, uint16_t rows, uint16_t cols)
{
    runner_command_resize(exec->command, rows, cols);
}

void exec_signal(struct exec *exec, int signum)
{
    runner_command_signal(exec->command, signum);
}

/* ---- the start ---- */

/* What the JSON text says; strings are borrowed from 'json'. */
struct exec_wanted {
    json_t *json;
    const char **argv;
    char **envp;
    struct runner_command_spec spec;
};

static void exec_wanted_done(struct exec_wanted *w)
{
    for (size_t i = 0; i < w->spec.envc; i++)
        free(w->envp[i]);
    free(w->envp);
    free(w->argv);
    json_decref(w->json);
}

static int exec_read_argv(struct exec_wanted *w, struct aq_error *err)
{
    const json_t *list = json_object_get(w->json, "argv"), *word;
    size_t i;

    w->argv = aq_alloc_array(json_array_size(list) + 1, sizeof(*w->argv));
    json_array_foreach((json_t *)list, i, word) {
        if (!json_is_string(word))
            return aq_fail_field(err, EINVAL, "argv", "an argument is no text");
        w->argv[w->spec.argc++] = json_string_value(word);
    }
    w->spec.argv = w->argv;
    return 0;
}

static int exec_read_env(struct exec_wanted *w, struct aq_error *err)
{
    json_t *env = json_object_get(w->json, "env"), *value;
    const char *name;

    w->envp = aq_alloc_array(json_object_size(env) + 1, sizeof(*w->envp));
    json_object_foreach(env, name, value) {
        if (!json_is_string(value) || !name[0] || strchr(name, '='))
            return aq_fail_field(err, EINVAL, "env", "a variable is no text");
        w->envp[w->spec.envc++] = aq_format("%s=%s", name, json_string_value(value));
    }
    w->spec.envp = (const char *const *)w->envp;
    return 0;
}

static int exec_read_wanted(const struct msg_stream_open *open, struct exec_wanted *w,
                            struct aq_error *err)
{
    int r;

    w->json = json_loads(open->command ? open->command : "{}", 0, NULL);
    if (!json_is_object(w->json))
        return aq_fail_field(err, EINVAL, "command", "the command is no JSON object");
    w->spec = (struct runner_command_spec){
        .is_files = strcmp(open->kind, "files") == 0,
        .in_container = json_is_true(json_object_get(w->json, "in_container")),
        .cwd = json_string_value(json_object_get(w->json, "cwd")),
        .tty = open->tty,
        .has_input = open->input,
        .reports_input = json_is_true(json_object_get(w->json, "report_input")),
        .rows = (uint16_t)AQ_MIN(open->rows, UINT16_MAX),
        .cols = (uint16_t)AQ_MIN(open->cols, UINT16_MAX),
    };
    r = exec_read_argv(w, err);
    return r < 0 ? r : exec_read_env(w, err);
}

int exec_new(struct runtime_kernel *run, const struct msg_stream_open *open,
             const struct exec_ops *ops, void *data, struct exec **ret, struct aq_error *err)
{
    static const struct runner_command_ops command_ops = {
        .on_started = exec_on_started,
        .on_taken = exec_on_taken,
        .on_output = exec_on_output,
        .on_drain = exec_on_drain,
        .on_ended = exec_on_ended,
        .on_failed = exec_on_failed,
    };
    struct exec *e = aq_alloc(sizeof(*e));
    struct exec_wanted wanted = { .json = NULL };
    int r;

    strbuf_init(&e->held);
    e->ops = ops;
    e->data = data;
    r = exec_read_wanted(open, &wanted, err);
    if (r == 0)
        r = strcmp(open->kind, "input") == 0
                ? runtime_feed(run, &command_ops, e, &e->command, err)
                : runtime_exec(run, &wanted.spec, &command_ops, e, &e->command, err);
    exec_wanted_done(&wanted);
    if (r < 0)
        exec_free(e);
    else
        *ret = e;
    return r;
}

void exec_free(struct exec *exec)
{
    if (!exec)
        return;
    runner_command_free(exec->command);
    strbuf_done(&exec->held);
    free(exec);
}
