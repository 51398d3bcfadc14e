/* A command in a session's container: standard input, output and errors, or a
 * terminal, over a WebSocket (manager/api/exec.c says what goes over it).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/jsonw.h"
#include "cli/client.h"
#include "cli/session.h"
#include "cli/verbs.h"
#include "http/websocket.h"

#define INPUT_MAX 16384
#define QUEUE_HIGH (256 * 1024)
#define EXIT_CANNOT_EXECUTE 126 /* as shells say it */
#define EXIT_NO_SUCH_PROGRAM 127

enum { CHANNEL_INPUT = 0, CHANNEL_OUTPUT = 1, CHANNEL_ERRORS = 2 };
enum { SIGNAL_COUNT = 5 };

struct exec_opts {
    bool tty, no_tty, no_input;
    const char *cwd;
    struct cli_list env;
};

struct exec {
    struct cli *cli;
    const struct exec_opts *opts;
    char **argv; /* of the command */
    int argc;
    const char *name; /* of the session */
    uv_loop_t *loop;
    struct client *client;
    struct websocket *ws;
    struct termios saved;
    int saved_flags; /* of standard input, which libuv makes non-blocking; -1 = as it was */
    bool tty, is_raw, is_over;
    bool has_poll;   /* standard input is no file */
    bool is_file, is_reading; /* a file: 'read' is under way */
    uv_poll_t input;
    uv_fs_t read;
    char bytes[1 + INPUT_MAX];
    uv_signal_t signals[SIGNAL_COUNT];
    unsigned handles;
    bool was_interrupted;
    int status; /* of the command */
    int r;
    struct aq_error err;
};

static void leave(struct exec *e, int r)
{
    if (e->is_over)
        return;
    e->is_over = true;
    e->r = r;
}

/* ---- to the session ---- */

static void send_message(struct exec *e, bool is_text, const void *bytes, size_t len)
{
    int r = websocket_send(e->ws, is_text, bytes, len);

    if (r < 0)
        leave(e, aq_fail(&e->err, -r, "cannot send to session '%s'", e->name));
}

static void send_text(struct exec *e, const struct strbuf *text)
{
    if (strbuf_ok(text))
        send_message(e, true, text->data, text->len);
    else
        leave(e, aq_fail(&e->err, ENOMEM, "command"));
}

static bool get_size(struct winsize *ret)
{
    return ioctl(STDIN_FILENO, TIOCGWINSZ, ret) == 0 && ret->ws_row && ret->ws_col;
}

static void send_size(struct exec *e)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct winsize size;

    if (!e->tty || !get_size(&size))
        return;
    strbuf_addf(&out, "{\"type\":\"resize\",\"rows\":%u,\"cols\":%u}", size.ws_row, size.ws_col);
    send_text(e, &out);
}

static void send_signal(struct exec *e, int signum)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    strbuf_addf(&out, "{\"type\":\"signal\",\"signal\":%d}", signum);
    send_text(e, &out);
}

static void add_env(struct exec *e, struct jsonw *w)
{
    const char *term = getenv("TERM");

    jsonw_key(w, "env");
    jsonw_object_begin(w);
    if (e->tty && term && term[0])
        jsonw_member_str(w, "TERM", term);
    for (size_t i = 0; i < e->opts->env.count; i++) {
        const char *item = e->opts->env.items[i], *equals = strchr(item, '=');

        jsonw_keyn(w, item, (size_t)(equals - item));
        jsonw_str(w, equals + 1);
    }
    jsonw_object_end(w);
}

static void send_start(struct exec *e)
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
    add_env(e, &w);
    if (e->opts->cwd)
        jsonw_member_str(&w, "cwd", e->opts->cwd);
    jsonw_member_bool(&w, "tty", e->tty);
    jsonw_member_bool(&w, "input", !e->opts->no_input);
    if (e->tty && get_size(&size)) {
        jsonw_member_int(&w, "rows", size.ws_row);
        jsonw_member_int(&w, "cols", size.ws_col);
    }
    jsonw_object_end(&w);
    send_text(e, &out);
}

/* ---- standard input ---- */

static void read_on(struct exec *e);

static void give_input(struct exec *e, ssize_t got)
{
    static const char end[] = "{\"type\":\"end\"}";

    if (!e->ws || e->is_over)
        return;
    if (got <= 0) {
        if (e->has_poll)
            (void)uv_poll_stop(&e->input);
        e->is_file = false;
        send_message(e, true, end, sizeof(end) - 1);
        return;
    }
    e->bytes[0] = CHANNEL_INPUT;
    send_message(e, false, e->bytes, (size_t)got + 1);
    read_on(e);
}

static void on_input(uv_poll_t *poll, int status, int events)
{
    struct exec *e = poll->data;
    ssize_t got = status < 0 ? 0 : read(STDIN_FILENO, e->bytes + 1, INPUT_MAX);

    (void)events;
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    give_input(e, got);
}

static void on_read(uv_fs_t *request)
{
    struct exec *e = request->data;
    ssize_t got = request->result;

    uv_fs_req_cleanup(request);
    e->is_reading = false;
    give_input(e, got);
}

/* As long as the manager takes it. */
static void read_on(struct exec *e)
{
    const uv_buf_t buf = uv_buf_init(e->bytes + 1, INPUT_MAX);

    if (e->ws && websocket_get_queued(e->ws) > QUEUE_HIGH) {
        if (e->has_poll)
            (void)uv_poll_stop(&e->input);
        return; /* on_drain() */
    }
    if (e->has_poll) {
        (void)uv_poll_start(&e->input, UV_READABLE | UV_DISCONNECT, on_input);
    } else if (e->is_file && !e->is_reading) {
        e->read.data = e;
        e->is_reading = uv_fs_read(e->loop, &e->read, STDIN_FILENO, &buf, 1, -1, on_read) == 0;
    }
}

/* What epoll does not take is a file, which never keeps a reader waiting. */
static int open_input(struct exec *e, struct aq_error *err)
{
    int r;

    if (e->opts->no_input)
        return 0;
    e->saved_flags = fcntl(STDIN_FILENO, F_GETFL);
    r = uv_poll_init(e->loop, &e->input, STDIN_FILENO);
    if (r < 0 && r != UV_EPERM)
        return aq_fail(err, -r, "standard input: %s", uv_strerror(r));
    e->is_file = r < 0;
    if (r < 0)
        return 0;
    e->has_poll = true;
    e->input.data = e;
    e->handles++;
    return 0;
}

/* ---- from the session ---- */

static int write_all(int fd, const char *bytes, size_t len)
{
    while (len) {
        struct pollfd ready = { .fd = fd, .events = POLLOUT };
        ssize_t put = write(fd, bytes, len);

        if (put < 0 && errno == EAGAIN)
            (void)poll(&ready, 1, -1); /* it shares its flags with standard input */
        else if (put < 0 && errno != EINTR)
            return -errno;
        if (put > 0) {
            bytes += put;
            len -= (size_t)put;
        }
    }
    return 0;
}

static void put_output(struct exec *e, const char *bytes, size_t len)
{
    int fd = len && bytes[0] == CHANNEL_ERRORS ? STDERR_FILENO : STDOUT_FILENO;
    int r = len ? write_all(fd, bytes + 1, len - 1) : 0;

    if (r < 0)
        leave(e, aq_fail(&e->err, -r, "cannot write the command's output: %s", strerror(-r)));
}

static void on_failed(struct exec *e, const json_t *message)
{
    const char *kind = json_string_value(json_object_get(message, "kind"));
    const char *text = json_string_value(json_object_get(message, "message"));

    if (!kind || !text) {
        leave(e, aq_fail(&e->err, EPROTO, "the manager's answer makes no sense"));
    } else if (strcmp(kind, "no-such-program") == 0 || strcmp(kind, "exec-failed") == 0) {
        cli_note(e->cli, "aliquot: %s: %s", e->argc ? e->argv[0] : "a shell", text);
        e->status = strcmp(kind, "exec-failed") == 0 ? EXIT_CANNOT_EXECUTE : EXIT_NO_SUCH_PROGRAM;
        leave(e, 0);
    } else {
        leave(e, aq_fail(&e->err, ECONNABORTED, "session '%s': %s", e->name, text));
    }
}

static void on_text(struct exec *e, const json_t *message)
{
    const char *type = json_string_value(json_object_get(message, "type"));

    if (!type)
        return;
    if (strcmp(type, "ended") == 0) {
        e->status = (int)json_integer_value(json_object_get(message, "exit_code"));
        leave(e, 0);
    } else if (strcmp(type, "failed") == 0) {
        on_failed(e, message);
    } else if (strcmp(type, "error") == 0) {
        const char *text = json_string_value(json_object_get(message, "message"));

        leave(e, aq_fail(&e->err, EINVAL, "%s", text ? text : "the manager refused the command"));
    }
}

static void on_message(struct websocket *ws, bool is_text, const char *bytes, size_t len,
                       void *data)
{
    struct exec *e = data;
    json_t *message;

    (void)ws;
    if (e->is_over)
        return;
    if (!is_text) {
        put_output(e, bytes, len);
        return;
    }
    message = json_loadb(bytes, len, 0, NULL);
    on_text(e, message);
    json_decref(message);
}

static void on_open(struct websocket *ws, void *data)
{
    struct exec *e = data;

    (void)ws;
    send_start(e);
    read_on(e);
}

static void on_drain(struct websocket *ws, void *data)
{
    (void)ws;
    read_on(data);
}

static void on_close(struct websocket *ws, uint16_t code, const struct aq_error *err, void *data)
{
    struct exec *e = data;

    (void)ws;
    (void)code;
    e->ws = NULL;
    if (e->is_over)
        return; /* what was said last counts */
    if (err && err->code)
        leave(e, aq_fail(&e->err, err->code, "session '%s': %s", e->name, err->text));
    else
        leave(e, aq_fail(&e->err, ECONNRESET, "session '%s': the connection broke off", e->name));
}

/* ---- signals and the terminal ---- */

/* Ctrl-C reaches the command; the second one ends us, if it does not. */
static void on_signal(uv_signal_t *handle, int signum)
{
    struct exec *e = handle->data;

    if (signum == SIGWINCH) {
        if (e->ws)
            send_size(e);
        return;
    }
    if (e->was_interrupted || !e->ws)
        leave(e, aq_fail(&e->err, ECANCELED, "ended by signal %d", signum));
    else
        send_signal(e, signum);
    e->was_interrupted = true;
}

static void start_signals(struct exec *e)
{
    static const int signums[SIGNAL_COUNT] = { SIGWINCH, SIGINT, SIGTERM, SIGHUP, SIGQUIT };

    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        (void)uv_signal_init(e->loop, &e->signals[i]);
        e->signals[i].data = e;
        e->handles++;
        (void)uv_signal_start(&e->signals[i], on_signal, signums[i]);
    }
}

static int choose_terminal(struct exec *e, struct aq_error *err)
{
    bool is_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);

    if (e->opts->tty && !is_terminal)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--tty needs a terminal as standard input and output");
    e->tty = is_terminal && !e->opts->no_tty && !e->opts->no_input;
    return 0;
}

static void make_raw(struct exec *e)
{
    struct termios raw;

    if (!e->tty || tcgetattr(STDIN_FILENO, &e->saved) < 0)
        return;
    raw = e->saved;
    cfmakeraw(&raw);
    e->is_raw = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

static void restore(struct exec *e)
{
    if (e->is_raw)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &e->saved);
    if (e->saved_flags >= 0)
        (void)fcntl(STDIN_FILENO, F_SETFL, e->saved_flags);
    e->is_raw = false;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct exec *e = handle->data;

    e->handles--;
}

static void stop(struct exec *e)
{
    websocket_abort(e->ws);
    e->ws = NULL;
    if (!e->loop)
        return;
    if (e->has_poll)
        uv_close((uv_handle_t *)&e->input, on_handle_closed);
    for (size_t i = 0; e->signals[0].data && i < SIGNAL_COUNT; i++)
        uv_close((uv_handle_t *)&e->signals[i], on_handle_closed);
    while (e->handles || e->is_reading)
        (void)uv_run(e->loop, UV_RUN_ONCE);
}

/* ---- the command ---- */

static int connect_to(struct exec *e, const char *id, struct aq_error *err)
{
    static const struct websocket_ops ops = {
        .on_open = on_open, .on_message = on_message, .on_drain = on_drain, .on_close = on_close,
    };
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf url = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT;
    const struct websocket_options options = { .message_max = 0 };
    struct client_request request = { .method = METHOD_GET };
    int r;

    session_path(e->cli, &path, id, "/exec");
    r = cli_request_prepare(e->cli, METHOD_GET, path.data, true, &url, &headers, err);
    if (r < 0)
        return r;
    request.url = url.data;
    request.headers = headers.data;
    return websocket_connect(e->client, &request, &options, &ops, e, &e->ws, err);
}

static int check_env(const struct exec_opts *opts, struct aq_error *err)
{
    for (size_t i = 0; i < opts->env.count; i++) {
        const char *equals = strchr(opts->env.items[i], '=');

        if (!equals || equals == opts->env.items[i])
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--env wants NAME=VALUE, not '%s'",
                                opts->env.items[i]);
    }
    return 0;
}

static int exec(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    struct exec e = { .cli = cli, .opts = data, .argv = argv + 1, .argc = argc - 1,
                      .saved_flags = -1 };
    struct follow_session session;
    int r = check_env(e.opts, err);

    if (e.argc && strcmp(e.argv[0], "--") == 0) {
        e.argv++;
        e.argc--;
    }
    if (r == 0)
        r = choose_terminal(&e, err);
    if (r == 0)
        r = session_resolve(cli, argv[0], &session, err);
    if (r == 0)
        r = cli_client_open(cli, &e.loop, &e.client, err);
    if (r < 0)
        return r;
    e.name = session.name;
    r = open_input(&e, err);
    if (r == 0)
        r = connect_to(&e, session.id, err);
    if (r == 0) {
        start_signals(&e);
        make_raw(&e);
    }
    while (r == 0 && !e.is_over)
        (void)uv_run(e.loop, UV_RUN_ONCE);
    stop(&e);
    restore(&e);
    if (r < 0)
        return r;
    if (e.r < 0)
        *err = e.err;
    return e.r < 0 ? e.r : e.status;
}

#define AT(member) offsetof(struct exec_opts, member)

static const struct cli_opt exec_options[] = {
    { 't', "tty", CLI_FLAG, AT(tty), NULL, "Fail unless it can have a terminal" },
    { 'T', "no-tty", CLI_FLAG, AT(no_tty), NULL, "Without a terminal, even if there is one here" },
    { 'n', "no-input", CLI_FLAG, AT(no_input), NULL, "With an empty standard input" },
    { 'w', "workdir", CLI_STR, AT(cwd), "FOLDER", "Start it in this folder" },
    { 'e', "env", CLI_LIST, AT(env), "NAME=VALUE", "Set a variable; may be repeated" },
    CLI_OPT_END,
};

const struct cli_verb verb_exec = {
    .name = "exec",
    .args = "SESSION [--] [COMMAND...]",
    .summary = "Run a command in a session's container",
    .details = "The command gets this terminal if there is one, else standard input, output\n"
               "and errors as they are here, and its exit status becomes that of this command;\n"
               "it is 127 if the container has no such program.\n"
               "Without COMMAND it is a shell.",
    .examples = "aliquot exec notebook\n"
                "aliquot exec notebook nvidia-smi\n"
                "tar c data | aliquot exec notebook tar x",
    .opts = exec_options,
    .opts_size = sizeof(struct exec_opts),
    .min_args = 1,
    .max_args = -1,
    .flags = CLI_STOP_AT_FIRST | CLI_RUNS_PROGRAM,
    .run = exec,
};
