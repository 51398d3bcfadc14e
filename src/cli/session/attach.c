/* SPDX-License-Identifier: Apache-2.0 */
/* A terminal in a session: raw bytes both ways over a WebSocket. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <nettle/base64.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/memory.h"
#include "cli/client.h"
#include "cli/reopen.h"
#include "cli/session/session.h"
#include "cli/signals.h"
#include "cli/verbs.h"
#include "http/websocket.h"

#define KEY_FIRST 0x10     /* Ctrl-P */
#define KEY_SECOND 0x11    /* Ctrl-Q */
#define KEY_INTERRUPT 0x03 /* Ctrl-C, while there is no terminal that it could go to */
#define INPUT_MAX 4096
#define AWAY_USEC (300 * USEC_PER_SEC) /* without a manager before giving up */
#define PING_MSEC 10000 /* so that a manager that has stopped is noticed while the user types */

struct attach_run {
    struct cli *cli;
    const char *name;
    const struct follow_session *session;
    uv_loop_t *loop;
    struct websocket *ws;
    struct reopen reopen;
    struct termios saved;
    bool is_raw, is_open, was_open, is_over, is_detached, has_output;
    bool half_detached; /* the first of the two keys is held back */
    uv_poll_t input;
    bool is_polled; /* 'input' is open */
    struct cli_signals signals;
    int r;
    struct aq_error err;
};

static void attach_leave(struct attach_run *a, int r)
{
    if (a->is_over)
        return;
    a->is_over = true;
    a->r = r;
}

/* ---- to the session ---- */

static void attach_send_text(struct attach_run *a, const struct strbuf *text)
{
    int r = websocket_send(a->ws, true, text->data, text->len);

    if (r < 0)
        attach_leave(a, aq_fail(&a->err, -r, "cannot send to session '%s'", a->name));
}

static void attach_send_input(struct attach_run *a, const unsigned char *bytes, size_t len)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    char coded[BASE64_ENCODE_RAW_LENGTH(INPUT_MAX + 1)];

    if (len == 0)
        return;
    base64_encode_raw(coded, len, bytes);
    strbuf_addf(&out, "{\"type\":\"stdin\",\"chars\":\"%.*s\"}", (int)BASE64_ENCODE_RAW_LENGTH(len),
                coded);
    attach_send_text(a, &out);
}

static void attach_send_size(struct attach_run *a)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct winsize size;

    if (!a->is_open || ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row == 0)
        return;
    strbuf_addf(&out, "{\"type\":\"resize\",\"rows\":%u,\"cols\":%u}", size.ws_row, size.ws_col);
    attach_send_text(a, &out);
}

/* Keys for a terminal that is not connected are for nobody, but those that leave it. */
static void attach_note_key(struct attach_run *a, unsigned char key)
{
    if (!a->is_open && key == KEY_INTERRUPT)
        attach_leave(a, aq_fail(&a->err, ECANCELED, "left; '%s' goes on", a->name));
}

static void attach_on_input(uv_poll_t *poll, int status, int events)
{
    struct attach_run *a = poll->data;
    unsigned char bytes[INPUT_MAX], typed[INPUT_MAX + 1];
    ssize_t got = status < 0 ? 0 : read(STDIN_FILENO, bytes, sizeof(bytes));
    size_t count = 0;

    (void)events;
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0) {
        a->is_detached = true;
        attach_leave(a, 0);
        return;
    }
    for (ssize_t i = 0; i < got; i++) {
        bool was_half = a->half_detached;

        a->half_detached = false;
        if (was_half && bytes[i] == KEY_SECOND) {
            a->is_detached = true;
            attach_leave(a, 0);
            return;
        }
        attach_note_key(a, bytes[i]);
        if (was_half)
            typed[count++] = KEY_FIRST;
        if (bytes[i] == KEY_FIRST)
            a->half_detached = true;
        else
            typed[count++] = bytes[i];
    }
    if (a->is_open)
        attach_send_input(a, typed, count);
}

/* ---- from the session ---- */

/* The terminal is raw, and the cursor may be anywhere. */
static void attach_show_note(const struct attach_run *a, const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;

    strbuf_addf(&line, "\r\n[aliquot] %s\r\n", text);
    if (!a->cli->globals.quiet)
        (void)fs_write_all(STDERR_FILENO, line.data, line.len);
}

static void attach_connect(void *data);

/* The terminal and its programs stay in the session: another connection finds them. */
static bool attach_again(struct attach_run *a, uint16_t code, const struct aq_error *err)
{
    bool is_first = !a->reopen.since_usec;
    bool is_restart = code == WEBSOCKET_RESTART
                      || (a->was_open && !is_first && code == WEBSOCKET_TRY_LATER);
    struct aq_error why = *err;

    if (is_restart)
        why.code = EAGAIN;
    if (!why.code || !reopen_later(&a->reopen, a->loop, &why, AWAY_USEC, attach_connect, a))
        return false;
    if (is_first && a->was_open)
        attach_show_note(a, "the connection is lost; connecting again, Ctrl-C leaves");
    return true;
}

static void attach_on_open(struct websocket *ws, void *data)
{
    struct attach_run *a = data;

    (void)ws;
    reopen_done(&a->reopen);
    if (a->was_open)
        attach_show_note(a, "connected again");
    a->is_open = a->was_open = true;
    attach_send_size(a);
    (void)uv_poll_start(&a->input, UV_READABLE | UV_DISCONNECT, attach_on_input);
}

static void attach_put_output(struct attach_run *a, const char *coded, size_t len)
{
    AQ_CLEANUP(aq_freep) uint8_t *bytes = aq_alloc(BASE64_DECODE_LENGTH(len));
    struct base64_decode_ctx ctx;
    size_t size;

    base64_decode_init(&ctx);
    if (!base64_decode_update(&ctx, &size, bytes, len, coded) || !base64_decode_final(&ctx))
        return;
    a->has_output |= size > 0;
    if (fs_write_all(STDOUT_FILENO, bytes, size) < 0)
        attach_leave(a, aq_fail(&a->err, EIO, "cannot write to the terminal"));
}

static void attach_on_message(struct websocket *ws, bool is_text, const char *bytes, size_t len,
                              void *data)
{
    struct attach_run *a = data;
    json_t *message = is_text ? json_loadb(bytes, len, 0, NULL) : NULL;
    const char *type = json_string_value(json_object_get(message, "type"));
    const json_t *out = json_object_get(message, "data");

    (void)ws;
    if (type && strcmp(type, "out") == 0 && json_is_string(out))
        attach_put_output(a, json_string_value(out), json_string_length(out));
    json_decref(message);
}

static void attach_on_close(struct websocket *ws, uint16_t code, const struct aq_error *err,
                            void *data)
{
    struct attach_run *a = data;

    (void)ws;
    a->ws = NULL;
    a->is_open = false;
    if (code == WEBSOCKET_NORMAL || code == WEBSOCKET_GOING_AWAY)
        attach_leave(a, 0);
    else if (err && attach_again(a, code, err))
        return;
    else if (err && err->text[0]) /* a failure, or the manager's reason */
        attach_leave(a, aq_fail(&a->err, err->code ? err->code : ECONNRESET, "session '%s': %s",
                                a->name, err->text));
    else
        attach_leave(
            a, aq_fail(&a->err, ECONNRESET, "session '%s': the connection broke off", a->name));
}

/* ---- the terminal ---- */

static int attach_check_terminal(struct aq_error *err)
{
    if (isatty(STDIN_FILENO))
        return 0;
    return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                        "attach needs a terminal; 'aliquot session logs -f' does not");
}

static int attach_make_raw(struct attach_run *a, struct aq_error *err)
{
    struct termios raw;

    if (tcgetattr(STDIN_FILENO, &a->saved) < 0)
        return aq_fail_errno(err, "terminal");
    raw = a->saved;
    cfmakeraw(&raw);
    if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) < 0)
        return aq_fail_errno(err, "terminal");
    a->is_raw = true;
    return 0;
}

static void attach_restore(struct attach_run *a)
{
    if (a->is_raw)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &a->saved);
    a->is_raw = false;
}

static void attach_on_signal(void *data, int signum)
{
    struct attach_run *a = data;

    if (signum == SIGWINCH)
        attach_send_size(a);
    else
        attach_leave(a, aq_fail(&a->err, ECANCELED, "ended by signal %d", signum));
}

static void attach_on_handle_closed(uv_handle_t *handle)
{
    struct attach_run *a = handle->data;

    a->is_polled = false;
}

static int attach_start(struct attach_run *a, struct aq_error *err)
{
    static const int signums[] = { SIGWINCH, SIGTERM, SIGHUP, 0 };
    int r = uv_poll_init(a->loop, &a->input, STDIN_FILENO);

    if (r < 0)
        return aq_fail(err, -r, "terminal: %s", uv_strerror(r));
    a->input.data = a;
    a->is_polled = true;
    cli_signals_open(&a->signals, a->loop, signums, attach_on_signal, a);
    return 0;
}

static void attach_stop(struct attach_run *a)
{
    reopen_done(&a->reopen);
    websocket_abort(a->ws);
    a->ws = NULL;
    if (a->is_polled)
        uv_close((uv_handle_t *)&a->input, attach_on_handle_closed);
    while (a->is_polled)
        (void)uv_run(a->loop, UV_RUN_ONCE);
    cli_signals_close(&a->signals);
}

static void attach_connect(void *data)
{
    static const struct websocket_ops ops = {
        .on_open = attach_on_open,
        .on_message = attach_on_message,
        .on_close = attach_on_close,
    };
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct websocket_options options = { .ping_msec = PING_MSEC };
    struct attach_run *a = data;
    int r;

    strbuf_addf(&path, "/stream/session/%s/pty", a->session->id);
    cli_path_query(&path, "kernel", a->session->kernel);
    r = cli_begin_websocket(a->cli, path.data, &options, &ops, a, &a->ws, &a->err);
    if (r < 0)
        attach_leave(a, r);
}

int attach_session(struct cli *cli, const struct follow_session *session, struct attach_result *ret,
                   struct aq_error *err)
{
    struct attach_run a = { .cli = cli, .name = session->name, .session = session };
    int r = cli_client_open(cli, &a.loop, NULL, err);

    if (r == 0)
        r = attach_make_raw(&a, err);
    if (r == 0)
        r = attach_start(&a, err);
    if (r == 0)
        attach_connect(&a);
    while (r == 0 && !a.is_over)
        (void)uv_run(a.loop, UV_RUN_ONCE);
    attach_stop(&a);
    attach_restore(&a);
    *ret = (struct attach_result){ a.was_open, a.has_output, a.is_detached };
    if (r < 0)
        return r;
    if (a.r < 0)
        *err = a.err;
    else if (a.is_detached)
        cli_note(cli, "\nDetached; '%s' goes on. Again: aliquot session attach %s", session->name,
                 session->name);
    return a.r;
}

struct attach_opts {
    const char *kernel;
};

static const struct cli_opt attach_opts[] = {
    SESSION_KERNEL_OPT_ROW(struct attach_opts, kernel),
    CLI_OPT_END,
};

static int attach_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct attach_opts *opts = data;
    struct attach_result result;
    struct follow_session session;
    int r = attach_check_terminal(err);

    (void)argc;
    if (r == 0)
        r = session_await_kernel(cli, argv[0], opts->kernel, &session, err);
    return r < 0 ? r : attach_session(cli, &session, &result, err);
}

const struct cli_verb verb_session_attach = {
    .name = "session attach",
    .args = "SESSION",
    .summary = "Open a terminal in a session",
    .details = "Ctrl-P Ctrl-Q leaves it; what runs there goes on. A session that waits is\n"
               "waited for.",
    .examples = "aliquot session attach notebook\n"
                "aliquot session attach --kernel sub1 train",
    .opts = attach_opts,
    .opts_size = sizeof(struct attach_opts),
    .min_args = 1,
    .max_args = 1,
    .run = attach_run,
};
