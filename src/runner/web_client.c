/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to the web terminal, and its shell. */
#include "runner/web_client.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "runner/runner.h"
#include "runner/web_terminal.h"

#define OUT_MAX 65536             /* bytes to send, above which the shell waits */
#define LAST_WORDS_MAX (1u << 20) /* a program left in the background may never stop writing */
#define HEAD_MSEC 15000           /* for the request and the first message */
#define CLOSE_MSEC 30000          /* for the close of the other side */

static int64_t web_client_now(void)
{
    return clock_monotonic_usec() / USEC_PER_MSEC;
}

/* ---- what is waited for ---- */

static void web_client_set_watches(struct web_client *c)
{
    bool has_output = c->wire.frames.out.len > 0;
    bool is_reading = !c->typed.len && !c->wire.is_over;
    bool is_shown = !c->is_paused && c->wire.frames.out.len < OUT_MAX && !c->wire.frames.close_sent;

    watch_want(&c->socket, EPOLLRDHUP | (is_reading ? EPOLLIN : 0u) | (has_output ? EPOLLOUT : 0u));
    watch_want(&c->output, is_shown ? EPOLLIN : 0);
    watch_want(&c->input, c->typed.len ? EPOLLOUT : 0);
}

static void web_client_send(struct web_client *c)
{
    struct strbuf *out = &c->wire.frames.out;
    ssize_t put;

    if (!out->len)
        websocket_frames_add_pong(&c->wire.frames);
    put = out->len ? send(c->socket.fd, out->data, out->len, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
    c->is_gone |= (put < 0 && errno != EAGAIN && errno != EINTR) || !strbuf_ok(out);
    if (put > 0)
        strbuf_consume(out, (size_t)put);
    if (c->wire.is_over && !out->len)
        c->is_gone = true;
    web_client_set_watches(c);
}

/* ---- the shell ---- */

static void web_client_close(struct web_client *c, const char *why)
{
    web_wire_close(&c->wire, why);
    c->until_msec = web_client_now() + CLOSE_MSEC;
}

/* In the terminal, too, for pages that do not show why. */
static void web_client_refuse(struct web_client *c, const char *why)
{
    web_wire_add(&c->wire, '0', why, strlen(why));
    web_wire_add(&c->wire, '0', "\r\n", 2);
    web_client_close(c, why);
}

static void web_client_show_title(struct web_client *c)
{
    const char *name = getenv("BACKENDAI_SESSION_NAME");

    if (!name)
        name = "Terminal";
    web_wire_add(&c->wire, '1', name, strlen(name));
    web_wire_add(&c->wire, '2', "{}", 2);
}

static void web_client_on_terminal(struct watch *watch, uint32_t events);

static void web_client_refuse_full(struct web_client *c)
{
    char text[120];

    (void)snprintf(text, sizeof(text),
                   "this session has %d web terminals, its limit: close one, then open this again",
                   WEB_SHELLS_MAX);
    web_client_refuse(c, text);
}

static void web_client_start_shell(struct web_client *c, const struct web_message *message)
{
    static const struct options options = { .socket = -1, .report = -1, .bootstrap = -1 };
    static char *argv[] = { NULL };
    const struct command_spec spec = {
        .argv = argv,
        .streams = COMMAND_TERMINAL,
        .rows = message->rows ? message->rows : 24,
        .cols = message->cols ? message->cols : 80,
    };
    struct aq_error err = { 0 };
    struct command command;

    if (*c->shell_count >= WEB_SHELLS_MAX) {
        web_client_refuse_full(c);
        return;
    }
    if (command_start(&options, &spec, &command, &err) < 0) {
        web_client_refuse(c, err.text);
        return;
    }
    c->pid = command.pid;
    c->start = command.start;
    watch_init(&c->input, c->socket.epoll, command.input, web_client_on_terminal, c);
    watch_init(&c->output, c->socket.epoll, command.output, web_client_on_terminal, c);
    ++*c->shell_count;
    c->until_msec = INT64_MAX;
    web_client_show_title(c);
}

static void web_client_tell_end(struct web_client *c)
{
    struct command_failure failure = { 0 };
    char text[RUNNER_TEXT_MAX];

    (void)command_read_start(&c->start, &failure);
    if (failure.code == ENOENT) {
        web_client_refuse(c, "the image of this session has no shell, so there is no terminal");
    } else if (failure.code) {
        command_failure_text(&failure, text);
        web_client_refuse(c, text);
    } else {
        bool is_signaled = WIFSIGNALED(c->status);

        (void)snprintf(text, sizeof(text), "the shell has ended with %s %d",
                       is_signaled ? "signal" : "status",
                       is_signaled ? WTERMSIG(c->status) : WEXITSTATUS(c->status));
        web_client_close(c, text);
    }
}

/* What it shows now; false if there is nothing. */
static bool web_client_show(struct web_client *c)
{
    char bytes[WEB_OUTPUT_MAX];
    ssize_t got = read(c->output.fd, bytes, sizeof(bytes));

    if (got > 0)
        web_wire_add(&c->wire, '0', bytes, (size_t)got);
    else if (got == 0 || (errno != EAGAIN && errno != EINTR))
        watch_close(&c->output); /* nobody has it open any more */
    c->last_words += c->has_ended && got > 0 ? (size_t)got : 0;
    return got > 0;
}

/* What it wrote before it ended is shown first. */
static void web_client_turn_output(struct web_client *c)
{
    bool is_more = true;

    while (is_more && c->output.fd >= 0 && !c->is_paused && c->last_words < LAST_WORDS_MAX
           && c->wire.frames.out.len < OUT_MAX)
        is_more = web_client_show(c) && c->has_ended;
    if (c->has_ended && !c->wire.frames.close_sent
        && (!is_more || c->output.fd < 0 || c->last_words >= LAST_WORDS_MAX))
        web_client_tell_end(c);
}

bool web_client_type_on(struct web_client *c)
{
    while (c->typed.len) {
        ssize_t put = c->input.fd >= 0 ? write(c->input.fd, c->typed.data, c->typed.len) : -1;

        if (put < 0 && c->input.fd >= 0 && errno == EINTR)
            continue;
        if (put < 0 && c->input.fd >= 0 && errno == EAGAIN)
            break;
        strbuf_consume(&c->typed, put > 0 ? (size_t)put : c->typed.len); /* nobody reads */
    }
    web_client_set_watches(c);
    return c->typed.len > 0;
}

/* ---- the connection ---- */

static void web_client_take(struct web_client *c, const struct web_message *message)
{
    switch (message->kind) {
    case WEB_OPEN:
        web_client_start_shell(c, message);
        break;
    case WEB_INPUT:
        strbuf_add(&c->typed, message->bytes, message->len);
        c->is_gone |= !strbuf_ok(&c->typed); /* rather than lose a piece in the middle */
        (void)web_client_type_on(c);
        break;
    case WEB_RESIZE:
        if (c->input.fd >= 0 && message->rows && message->cols)
            terminal_resize(c->input.fd, message->rows, message->cols);
        break;
    case WEB_PAUSE:
    case WEB_RESUME:
        c->is_paused = message->kind == WEB_PAUSE;
        break;
    case WEB_NOTHING:
        break;
    }
}

static void web_client_read_on(struct web_client *c)
{
    while (c->received.len && !c->typed.len && !c->is_gone) {
        struct web_message message;
        size_t used = web_wire_read(&c->wire, c->received.data, c->received.len, &message);

        web_client_take(c, &message);
        strbuf_consume(&c->received, used);
    }
}

static void web_client_receive(struct web_client *c)
{
    char bytes[16384];
    ssize_t got = recv(c->socket.fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (got > 0)
        strbuf_add(&c->received, bytes, (size_t)got);
    c->is_gone |= got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)
                  || !strbuf_ok(&c->received);
}

static void web_client_turn(struct web_client *c)
{
    (void)web_client_type_on(c);
    web_client_read_on(c);
    web_client_turn_output(c);
    web_client_send(c);
}

static void web_client_on_terminal(struct watch *watch, uint32_t events)
{
    (void)events;
    web_client_turn(watch->owner);
}

static void web_client_on_socket(struct watch *watch, uint32_t events)
{
    struct web_client *c = watch->owner;

    if (events & EPOLLIN)
        web_client_receive(c);
    else if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        c->is_gone = true;
    web_client_turn(c);
}

void web_client_reaped(struct web_client *c, int status)
{
    c->pid = 0;
    c->status = status;
    c->has_ended = true;
    --*c->shell_count;
    web_client_turn(c);
}

struct web_client *web_client_new(int epoll, int socket, size_t *shell_count, int64_t now_msec)
{
    struct web_client *c = calloc(1, sizeof(*c));
    struct aq_error err;

    if (!c || web_wire_init(&c->wire, &err) < 0) {
        if (c)
            web_wire_done(&c->wire);
        free(c);
        return NULL;
    }
    list_init(&c->link);
    strbuf_init(&c->received);
    strbuf_init(&c->typed);
    c->start = -1;
    c->shell_count = shell_count;
    c->until_msec = now_msec + HEAD_MSEC;
    c->input = c->output = (struct watch)WATCH_CLOSED;
    watch_init(&c->socket, epoll, socket, web_client_on_socket, c);
    web_client_set_watches(c);
    return c;
}

void web_client_free(struct web_client *c)
{
    if (c->pid) {
        command_signal(c->pid, SIGHUP);
        command_signal(c->pid, SIGCONT);
        --*c->shell_count;
    }
    watch_close(&c->socket);
    watch_close(&c->input);
    watch_close(&c->output);
    aq_closep(&c->start);
    web_wire_done(&c->wire);
    strbuf_done(&c->received);
    strbuf_done(&c->typed);
    list_remove(&c->link);
    free(c);
}
