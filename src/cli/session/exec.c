/* SPDX-License-Identifier: Apache-2.0 */
/* A command in a session: standard input, output and errors, or a
 * terminal, over a WebSocket (manager/stream/exec_rest.c says what goes over it).
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "cli/client.h"
#include "cli/reopen.h"
#include "cli/session/session.h"
#include "cli/session/session_spec.h"
#include "cli/session/standard_input.h"
#include "cli/signals.h"
#include "cli/verbs.h"
#include "http/websocket.h"

#define QUEUE_HIGH (256 * 1024)
#define OPEN_USEC (60 * USEC_PER_SEC) /* for a manager to open the connection */

enum { CHANNEL_OUTPUT = 1, CHANNEL_ERRORS = 2 };

struct exec_opts {
    bool interactive, tty, no_tty, no_input;
    const char *cwd, *kernel;
    struct cli_list env;
};

struct exec_run {
    struct cli *cli;
    const struct exec_opts *opts;
    char **argv; /* of the command */
    int argc;
    json_t *env;      /* of the command, besides the session's */
    const char *name; /* of the session */
    const struct follow_session *session;
    uv_loop_t *loop;
    struct websocket *ws;
    struct reopen reopen; /* until the command was sent */
    struct termios saved;
    bool tty, is_sent, is_raw, is_started, is_over;
    struct standard_input input;
    bool is_reported; /* the session says how much of the input is read */
    struct cli_signals signals;
    bool was_interrupted;
    int status; /* of the command */
    int r;
    struct aq_error err;
};

static void exec_leave(struct exec_run *e, int r)
{
    if (e->is_over)
        return;
    e->is_over = true;
    e->r = r;
}

/* ---- to the session ---- */

static void exec_send_message(struct exec_run *e, bool is_text, const void *bytes, size_t len)
{
    int r = websocket_send(e->ws, is_text, bytes, len);

    if (r < 0)
        exec_leave(e, aq_fail(&e->err, -r, "cannot send to session '%s'", e->name));
}

static void exec_send_text(struct exec_run *e, const struct strbuf *text)
{
    exec_send_message(e, true, text->data, text->len);
}

static bool exec_get_size(struct winsize *ret)
{
    return ioctl(STDIN_FILENO, TIOCGWINSZ, ret) == 0 && ret->ws_row && ret->ws_col;
}

static void exec_send_size(struct exec_run *e)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct winsize size;

    if (!e->tty || !exec_get_size(&size))
        return;
    strbuf_addf(&out, "{\"type\":\"resize\",\"rows\":%u,\"cols\":%u}", size.ws_row, size.ws_col);
    exec_send_text(e, &out);
}

static void exec_send_signal(struct exec_run *e, int signum)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    strbuf_addf(&out, "{\"type\":\"signal\",\"signal\":%d}", signum);
    exec_send_text(e, &out);
}

/* With what this terminal is, which an option replaces. */
static int exec_make_env(struct exec_run *e, struct aq_error *err)
{
    const char *term = e->tty ? getenv("TERM") : NULL;

    if (term && term[0])
        (void)json_object_set_new(e->env, "TERM", json_string(term));
    return spec_add_environ(&e->opts->env, e->env, err);
}

static void exec_add_env(const struct exec_run *e, struct jsonw *w)
{
    const char *name;
    json_t *value;

    jsonw_key(w, "env");
    jsonw_object_begin(w);
    json_object_foreach(e->env, name, value)
        jsonw_member_str(w, name, json_string_value(value));
    jsonw_object_end(w);
}

static void exec_send_start(struct exec_run *e)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct winsize size;

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "type", "start");
    jsonw_key(&w, "command");
    jsonw_array_begin(&w);
    for (int i = 0; i < e->argc; i++)
        jsonw_str(&w, e->argv[i]);
    jsonw_array_end(&w);
    exec_add_env(e, &w);
    if (e->opts->cwd)
        jsonw_member_str(&w, "cwd", e->opts->cwd);
    jsonw_member_bool(&w, "tty", e->tty);
    jsonw_member_bool(&w, "input", !e->opts->no_input);
    if (e->input.is_held)
        jsonw_member_bool(&w, "report_input", true);
    if (e->tty && exec_get_size(&size)) {
        jsonw_member_int(&w, "rows", size.ws_row);
        jsonw_member_int(&w, "cols", size.ws_col);
    }
    jsonw_object_end(&w);
    exec_send_text(e, &out);
}

/* ---- standard input ---- */

/* As long as the manager takes it; a piece that is held, when it is known who reads it. */
static void exec_read_on(struct exec_run *e)
{
    if (e->input.loop && e->ws && (e->is_started || !e->input.is_held))
        standard_input_pause(&e->input, websocket_get_queued(e->ws) > QUEUE_HIGH);
}

static void exec_on_input(void *data, const char *message, size_t len)
{
    static const char end[] = "{\"type\":\"end\"}";
    struct exec_run *e = data;

    if (!e->ws || e->is_over)
        return;
    if (len)
        exec_send_message(e, false, message, len);
    else
        exec_send_message(e, true, end, sizeof(end) - 1);
    exec_read_on(e);
}

/* So much of the piece is the command's; all of it: the command may read on, and so do we. */
static void exec_on_taken(struct exec_run *e, const json_t *message)
{
    json_int_t bytes = json_integer_value(json_object_get(message, "bytes"));

    e->is_reported = true;
    if (e->input.is_held && e->input.is_shown && bytes >= 0 && bytes <= STANDARD_INPUT_HELD_MAX)
        standard_input_take(&e->input, (size_t)bytes,
                            json_is_true(json_object_get(message, "is_all")));
}

/* Who cannot report, an agent or a container of an earlier release, gets it all at once. */
static void exec_on_started(struct exec_run *e)
{
    e->is_started = true;
    if (!e->is_reported)
        e->input.is_held = false;
    exec_read_on(e);
}

/* ---- from the session ---- */

static void exec_put_output(struct exec_run *e, const char *bytes, size_t len)
{
    int fd = len && bytes[0] == CHANNEL_ERRORS ? STDERR_FILENO : STDOUT_FILENO;
    int r = len ? standard_output_write(fd, bytes + 1, len - 1) : 0;

    if (r < 0)
        exec_leave(e, aq_fail(&e->err, -r, "cannot write the command's output: %s", strerror(-r)));
}

static void exec_on_failed(struct exec_run *e, const json_t *message)
{
    const char *kind = json_string_value(json_object_get(message, "kind"));
    const char *text = json_string_value(json_object_get(message, "message"));

    if (!kind || !text) {
        exec_leave(e, aq_fail(&e->err, EPROTO, "the manager's answer makes no sense"));
    } else if (strcmp(kind, "no-such-program") == 0 || strcmp(kind, "exec-failed") == 0) {
        cli_note(e->cli, "aliquot: %s: %s", e->argc ? e->argv[0] : "a shell", text);
        e->status = strcmp(kind, "exec-failed") == 0 ? EXIT_CANNOT_EXECUTE : EXIT_NO_SUCH_PROGRAM;
        exec_leave(e, 0);
    } else {
        exec_leave(e, aq_fail(&e->err, ECONNABORTED, "session '%s': %s", e->name, text));
    }
}

/* The terminal is raw, and the cursor may be anywhere: the notice has lines of its own. */
static void exec_show_notice(struct exec_run *e, const json_t *message)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;
    const char *text = json_string_value(json_object_get(message, "text"));

    if (!e->tty || !text)
        return;
    strbuf_addf(&line, "\r\n[aliquot] %s.\r\n", text);
    (void)standard_output_write(STDOUT_FILENO, line.data, line.len);
}

static void exec_on_text(struct exec_run *e, const json_t *message)
{
    const char *type = json_string_value(json_object_get(message, "type"));

    if (!type)
        return;
    if (strcmp(type, "started") == 0) {
        exec_on_started(e);
    } else if (strcmp(type, "taken") == 0) {
        exec_on_taken(e, message);
    } else if (strcmp(type, "ended") == 0) {
        e->status = (int)json_integer_value(json_object_get(message, "exit_code"));
        exec_leave(e, 0);
    } else if (strcmp(type, "notice") == 0) {
        exec_show_notice(e, message);
    } else if (strcmp(type, "failed") == 0) {
        exec_on_failed(e, message);
    } else if (strcmp(type, "error") == 0) {
        const char *text = json_string_value(json_object_get(message, "message"));

        exec_leave(e,
                   aq_fail(&e->err, EINVAL, "%s", text ? text : "the manager refused the command"));
    }
}

static void exec_on_message(struct websocket *ws, bool is_text, const char *bytes, size_t len,
                            void *data)
{
    struct exec_run *e = data;
    json_t *message;

    (void)ws;
    if (e->is_over)
        return;
    if (!is_text) {
        exec_put_output(e, bytes, len);
        return;
    }
    message = json_loadb(bytes, len, 0, NULL);
    exec_on_text(e, message);
    json_decref(message);
}

static void exec_on_open(struct websocket *ws, void *data)
{
    struct exec_run *e = data;

    (void)ws;
    reopen_done(&e->reopen);
    e->is_sent = true;
    exec_send_start(e);
    exec_read_on(e);
}

static void exec_on_drain(struct websocket *ws, void *data)
{
    (void)ws;
    exec_read_on(data);
}

static void exec_connect(void *data);

static void exec_on_close(struct websocket *ws, uint16_t code, const struct aq_error *err,
                          void *data)
{
    struct aq_error why = { .text = "the connection broke off" };
    struct exec_run *e = data;

    (void)ws;
    (void)code;
    e->ws = NULL;
    if (e->is_over)
        return; /* what was said last counts */
    why = err && err->text[0] ? *err : why;
    why.code = why.code ? why.code : ECONNRESET;
    if (!e->is_sent && reopen_later(&e->reopen, e->loop, &why, OPEN_USEC, exec_connect, e))
        return;
    exec_leave(e, aq_fail(&e->err, why.code, "session '%s': %s%s", e->name, why.text,
                          e->is_started ? "; the command gets SIGHUP there, and its exit status is "
                                          "not known"
                          : e->is_sent  ? "; whether the command began is not known"
                                        : ""));
}

/* ---- signals and the terminal ---- */

/* Ctrl-C reaches the command; the second one ends us, if it does not. */
static void exec_on_signal(void *data, int signum)
{
    struct exec_run *e = data;

    if (signum == SIGWINCH) {
        if (e->ws)
            exec_send_size(e);
        return;
    }
    if (e->was_interrupted || !e->ws)
        exec_leave(e, aq_fail(&e->err, ECANCELED, "ended by signal %d", signum));
    else
        exec_send_signal(e, signum);
    e->was_interrupted = true;
}

static int exec_choose_terminal(struct exec_run *e, struct aq_error *err)
{
    bool is_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);

    if (e->opts->interactive && e->opts->no_input)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "-i and --no-input exclude each other");
    if (e->opts->tty && !is_terminal)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--tty needs a terminal as standard input and output");
    e->tty = is_terminal && !e->opts->no_tty && !e->opts->no_input;
    return 0;
}

static void exec_make_raw(struct exec_run *e)
{
    struct termios raw;

    if (!e->tty || tcgetattr(STDIN_FILENO, &e->saved) < 0)
        return;
    raw = e->saved;
    cfmakeraw(&raw);
    e->is_raw = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

static void exec_restore(struct exec_run *e)
{
    if (e->is_raw)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &e->saved);
    e->is_raw = false;
}

static void exec_stop(struct exec_run *e)
{
    reopen_done(&e->reopen);
    websocket_abort(e->ws);
    e->ws = NULL;
    if (!e->loop)
        return;
    standard_input_close(&e->input);
    cli_signals_close(&e->signals);
}

/* ---- the command ---- */

static void exec_connect(void *data)
{
    static const struct websocket_ops ops = {
        .on_open = exec_on_open,
        .on_message = exec_on_message,
        .on_drain = exec_on_drain,
        .on_close = exec_on_close,
    };
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct websocket_options options = { .message_max = 0 };
    struct exec_run *e = data;
    int r;

    session_path(e->cli, &path, e->session->id, "/exec");
    cli_path_query(&path, "kernel", e->session->kernel);
    r = cli_begin_websocket(e->cli, path.data, &options, &ops, e, &e->ws, &e->err);
    if (r < 0)
        exec_leave(e, r);
}

static int exec_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    static const int signums[] = { SIGWINCH, SIGINT, SIGTERM, SIGHUP, SIGQUIT, 0 };
    json_auto_t *env = json_object();
    struct exec_run e = {
        .cli = cli, .opts = data, .argv = argv + 1, .argc = argc - 1, .env = env
    };
    struct follow_session session;
    int r;

    if (e.argc && strcmp(e.argv[0], "--") == 0) {
        e.argv++;
        e.argc--;
    }
    r = exec_choose_terminal(&e, err);
    if (r == 0)
        r = exec_make_env(&e, err);
    if (r == 0)
        r = session_await_kernel(cli, argv[0], e.opts->kernel, &session, err);
    if (r == 0)
        r = cli_client_open(cli, &e.loop, NULL, err);
    if (r < 0)
        return r;
    e.name = session.name;
    e.session = &session;
    if (!e.opts->no_input)
        r = standard_input_open(&e.input, e.loop, exec_on_input, &e, err);
    if (r == 0 && !e.tty && !e.opts->interactive && !e.opts->no_input)
        (void)standard_input_hold(&e.input);
    if (r == 0) {
        exec_connect(&e);
        cli_signals_open(&e.signals, e.loop, signums, exec_on_signal, &e);
        exec_make_raw(&e);
    }
    while (r == 0 && !e.is_over)
        (void)uv_run(e.loop, UV_RUN_ONCE);
    exec_stop(&e);
    exec_restore(&e);
    if (r < 0)
        return r;
    if (e.r < 0)
        *err = e.err;
    return e.r < 0 ? e.r : e.status;
}

#define AT(member) offsetof(struct exec_opts, member)

static const struct cli_opt exec_options[] = {
    { 'i', "interactive", CLI_FLAG, AT(interactive), NULL,
      "With standard input from the start, whether it is read or not" },
    { 't', "tty", CLI_FLAG, AT(tty), NULL, "Fail unless it can have a terminal" },
    { 'T', "no-tty", CLI_FLAG, AT(no_tty), NULL, "Without a terminal, even if there is one here" },
    { 'n', "no-input", CLI_FLAG, AT(no_input), NULL, "With an empty standard input" },
    { 'w', "workdir", CLI_STR, AT(cwd), "FOLDER", "Start it in this folder" },
    { 'e', "env", CLI_LIST, AT(env), "NAME[=VALUE]",
      "environment variable; without value: as it is here" },
    SESSION_KERNEL_OPT_ROW(struct exec_opts, kernel),
    CLI_OPT_END,
};

const struct cli_verb verb_exec = {
    .name = "exec",
    .args = "SESSION [--] [COMMAND...]",
    .summary = "Run a command in a session",
    .details = "The command gets this terminal if there is one, else standard input, output\n"
               "and errors as they are here, and its exit status becomes that of this command;\n"
               "it is 127 if there is no such program.\n"
               "Without COMMAND it is a shell. A session that waits is waited for.",
    .examples = "aliquot exec notebook\n"
                "aliquot exec -it notebook bash\n"
                "aliquot exec notebook nvidia-smi\n"
                "aliquot exec --kernel sub1 train nvidia-smi\n"
                "tar c data | aliquot exec notebook tar x",
    .opts = exec_options,
    .opts_size = sizeof(struct exec_opts),
    .min_args = 1,
    .max_args = -1,
    .flags = CLI_STOP_AT_FIRST | CLI_RUNS_PROGRAM,
    .run = exec_run,
};
