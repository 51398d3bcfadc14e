/* SPDX-License-Identifier: Apache-2.0 */
/* connection.c - who comes through the socket: further commands, attached users
 *
 * A command's output is read only while its connection takes it, and a
 * connection is read only while its command takes its input, so nothing is
 * lost and little is kept: at most one packet each way.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/utf8.h"
#include "runner/first_input.h"
#include "runner/request.h"
#include "runner/runner.h"

#define LAST_WORDS_MAX (1u << 20) /* what a pipe can hold: read after the command's end */

enum role { ROLE_NONE, ROLE_ATTACHED, ROLE_COMMAND };

struct runner_connection {
    struct list link;
    struct runner *runner;
    struct watch watch;
    enum role role;
    size_t behind;                      /* attached: bytes of output that it has not got */
    bool is_closing;                    /* once 'unsent' has gone */
    char unsent[1 + RUNNER_OUTPUT_MAX]; /* the packet that it did not take */
    size_t unsent_len;
    bool tty;           /* 'input' is a terminal: the command's, or the program's */
    struct watch input; /* ... or the command's pipe */
    char *untaken;      /* what it did not take, or NULL */
    size_t untaken_at, untaken_len;
    /* the command */
    pid_t pid;
    bool is_started, is_ended;
    int status;
    size_t last_words; /* bytes sent after its end */
    struct watch start, output, errors;
    struct first_input first;
};

/* A socket that is closed over packets it has not read takes back those that
 * it sent: first nobody may send any more, then they are read.
 */
static void connection_end_socket(int fd)
{
    char packet[64];

    (void)shutdown(fd, SHUT_RD);
    while (recv(fd, packet, sizeof(packet), MSG_DONTWAIT) > 0)
        ;
}

static void runner_connection_drop(struct runner_connection *c)
{
    if (c->role == ROLE_COMMAND && !c->is_ended) {
        command_signal(c->pid, SIGHUP);
        command_signal(c->pid, SIGCONT);
    }
    watch_close(&c->start);
    watch_close(&c->input);
    watch_close(&c->output);
    watch_close(&c->errors);
    connection_end_socket(c->watch.fd);
    watch_close(&c->watch);
    list_remove(&c->link);
    c->runner->connection_count--;
    free(c->untaken);
    free(c);
}

/* What follows EXEC waits until the command is there. */
static bool connection_is_readable(const struct runner_connection *c)
{
    return !c->untaken && !c->is_closing && (c->role != ROLE_COMMAND || c->is_started);
}

/* Which descriptors matter now. */
static void connection_set_watches(struct runner_connection *c)
{
    uint32_t output = c->is_started && !c->unsent_len ? EPOLLIN : 0;

    watch_want(&c->watch, EPOLLRDHUP | (connection_is_readable(c) ? EPOLLIN : 0)
                              | (c->unsent_len || c->behind ? EPOLLOUT : 0));
    watch_want(&c->output, output);
    watch_want(&c->errors, output);
    watch_want(&c->input,
               c->untaken || (first_input_is_pending(&c->first) && !c->unsent_len) ? EPOLLOUT : 0);
}

/* Send, or keep until it can be sent; nothing may be kept already. Of a
 * connection that has gone the loop will hear.
 */
static void connection_send_packet(struct runner_connection *c, const void *packet, size_t len)
{
    if (send(c->watch.fd, packet, len, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 || errno != EAGAIN)
        return;
    memcpy(c->unsent, packet, len);
    c->unsent_len = len;
}

/* The last packet; true if the connection is gone with it. */
static bool connection_send_last(struct runner_connection *c, const void *packet, size_t len)
{
    connection_send_packet(c, packet, len);
    c->is_closing = true;
    if (c->unsent_len) {
        connection_set_watches(c);
        return false;
    }
    runner_connection_drop(c);
    return true;
}

static void connection_fail(struct runner_connection *c, int code, const char *text)
{
    struct runner_failed failed = { .type = RUNNER_FAILED, .code = code };

    (void)snprintf(failed.text, sizeof(failed.text), "%.*s", (int)sizeof(failed.text) - 1, text);
    utf8_drop_partial(failed.text);
    (void)connection_send_last(c, &failed, sizeof(failed));
}

/* ---- a command's output ---- */

/* Pass on one piece; bytes, or 0 = nothing now or forever. */
static size_t connection_pass_output(struct runner_connection *c, struct watch *from, char type)
{
    char packet[1 + RUNNER_OUTPUT_MAX];
    ssize_t got;

    if (from->fd < 0)
        return 0;
    do
        got = read(from->fd, packet + 1, sizeof(packet) - 1);
    while (got < 0 && errno == EINTR);
    if (got > 0) {
        packet[0] = type;
        connection_send_packet(c, packet, (size_t)got + 1);
        return (size_t)got;
    }
    if (got == 0 || errno != EAGAIN)
        watch_close(from); /* EIO: a terminal that nobody has open */
    return 0;
}

/* How much of its first input the command has read; nothing may be kept. */
static void connection_tell_taken(struct runner_connection *c, bool is_all)
{
    const struct runner_taken taken = {
        .type = RUNNER_TAKEN,
        .is_all = is_all,
        .bytes = (uint32_t)first_input_end(&c->first, c->input.fd),
    };

    connection_send_packet(c, &taken, sizeof(taken));
}

/* The command has ended: what it had written, then how it ended. */
static void connection_finish(struct runner_connection *c)
{
    const struct runner_ended ended = { .type = RUNNER_ENDED, .status = c->status };

    while (!c->unsent_len && c->last_words < LAST_WORDS_MAX) {
        size_t passed = connection_pass_output(c, &c->output, RUNNER_OUTPUT);

        if (!passed)
            passed = connection_pass_output(c, &c->errors, RUNNER_ERRORS);
        if (!passed)
            break;
        c->last_words += passed;
    }
    if (!c->unsent_len && c->first.is_awaited)
        connection_tell_taken(c, false);
    if (c->unsent_len)
        connection_set_watches(c);
    else
        (void)connection_send_last(c, &ended, sizeof(ended));
}

static void connection_on_output(struct watch *watch, uint32_t events)
{
    struct runner_connection *c = watch->owner;

    (void)events;
    (void)connection_pass_output(c, watch, watch == &c->errors ? RUNNER_ERRORS : RUNNER_OUTPUT);
    if (watch == &c->output && watch->fd < 0)
        connection_send_packet(c, (const char[]){ RUNNER_OUTPUT }, 1);
    connection_set_watches(c);
}

/* Tell whether it was executed; false if the connection is gone with that. */
static bool connection_tell_start(struct runner_connection *c)
{
    const struct runner_started started = { .type = RUNNER_STARTED,
                                            .reports = c->first.is_awaited,
                                            .pid = c->pid };
    struct command_failure failure;
    char text[RUNNER_TEXT_MAX];
    int fd = c->start.fd;

    watch_want(&c->start, 0);
    if (!command_read_start(&fd, &failure)) {
        watch_want(&c->start, EPOLLIN);
        return true;
    }
    c->start.fd = -1;
    if (failure.code) {
        command_failure_text(&failure, text);
        c->is_ended = true;
        connection_fail(c, failure.code, text);
        return false;
    }
    c->is_started = true;
    connection_send_packet(c, &started, sizeof(started));
    connection_set_watches(c);
    return true;
}

static void connection_on_start(struct watch *watch, uint32_t events)
{
    (void)events;
    (void)connection_tell_start(watch->owner);
}

/* ---- input, of a command or for the program's terminal ---- */

static void connection_give_input(struct runner_connection *c)
{
    while (c->untaken && c->untaken_at < c->untaken_len) {
        ssize_t put = write(c->input.fd, c->untaken + c->untaken_at,
                            c->untaken_len - c->untaken_at);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && errno == EAGAIN)
            break;
        if (put <= 0) {
            c->untaken_at = c->untaken_len; /* nobody reads */
        } else {
            c->untaken_at += (size_t)put;
            c->first.given += (size_t)put;
        }
    }
    if (c->untaken && c->untaken_at == c->untaken_len)
        free(AQ_TAKE(c->untaken));
    connection_set_watches(c);
}

static void connection_on_input(struct watch *watch, uint32_t events)
{
    struct runner_connection *c = watch->owner;

    if (c->untaken)
        connection_give_input(c);
    else if (first_input_is_read(&c->first, watch->fd, !(events & EPOLLERR)))
        connection_tell_taken(c, true);
    connection_set_watches(c);
}

static void connection_take_input(struct runner_connection *c, const char *bytes, size_t len)
{
    if (c->input.fd < 0 || !len)
        return;
    if (!(c->untaken = malloc(len))) {
        runner_connection_drop(c); /* rather than lose a piece in the middle */
        return;
    }
    memcpy(c->untaken, bytes, len);
    c->untaken_at = 0;
    c->untaken_len = len;
    if (c->first.given)
        c->first.is_awaited = false; /* who gives more has nothing to keep */
    connection_give_input(c);
}

/* A terminal has no end of its own: the character that says so. */
static void connection_take_end_of_input(struct runner_connection *c)
{
    const char end_of_file = 4;

    if (c->tty)
        connection_take_input(c, &end_of_file, 1);
    else
        watch_close(&c->input);
    c->first.is_awaited = false;
}

/* ---- packets ---- */

static void connection_run_command(struct runner_connection *c, const struct request *request,
                                   bool is_files)
{
    const struct command_spec spec = {
        .is_files = is_files,
        .argv = request->argv,
        .envp = request->envp,
        .cwd = request->cwd,
        .streams = request->tty     ? COMMAND_TERMINAL
                   : request->input ? COMMAND_PIPES
                                    : COMMAND_PIPES_NO_INPUT,
        .rows = request->rows,
        .cols = request->cols,
    };
    int epoll = c->runner->epoll;
    struct aq_error err = { 0 };
    struct command command;
    int r = command_start(&c->runner->options, &spec, &command, &err);

    if (r < 0) {
        connection_fail(c, -r, err.text);
        return;
    }
    c->role = ROLE_COMMAND;
    c->tty = request->tty;
    c->pid = command.pid;
    watch_init(&c->start, epoll, command.start, connection_on_start, c);
    watch_init(&c->input, epoll, command.input, connection_on_input, c);
    watch_init(&c->output, epoll, command.output, connection_on_output, c);
    watch_init(&c->errors, epoll, command.errors, connection_on_output, c);
    if (request->reports && command.input >= 0)
        first_input_begin(&c->first, command.input);
    watch_want(&c->start, EPOLLIN);
    connection_set_watches(c);
}

static void connection_exec(struct runner_connection *c, const char *packet, size_t len)
{
    struct aq_error err = { 0 };
    struct request request;
    int r = request_parse(packet, len, &request, &err);

    if (r < 0) {
        connection_fail(c, -r, err.text);
        return;
    }
    connection_run_command(c, &request, packet[0] == RUNNER_FILES);
    request_done(&request);
}

/* Send someone attached output; how many bytes it took. */
static size_t connection_show(const struct runner_connection *c, const char *bytes, size_t len)
{
    char packet[1 + RUNNER_OUTPUT_MAX] = { RUNNER_OUTPUT };
    size_t sent = 0;

    while (sent < len) {
        size_t part = AQ_MIN(len - sent, sizeof(packet) - 1);

        memcpy(packet + 1, bytes + sent, part);
        if (send(c->watch.fd, packet, part + 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            break;
        sent += part;
    }
    return sent;
}

/* How much there is to show, from the beginning of a character on. */
static size_t connection_count_kept(const struct replay *replay)
{
    size_t kept = AQ_MIN(replay->total, sizeof(replay->bytes)), len;
    const char *bytes = replay_get(replay, 0, &len);

    return replay->total > kept ? kept - utf8_rest(bytes, len) : kept;
}

/* Send someone attached what it lacks: all, or the newest RUNNER_REPLAY_MAX bytes. */
static void connection_catch_up(struct runner_connection *c)
{
    const struct replay *replay = c->runner->program.replay;
    size_t kept = AQ_MIN(replay->total, sizeof(replay->bytes)), sent = 1;
    const char skipped = RUNNER_SKIPPED;

    if (c->behind > kept) {
        if (send(c->watch.fd, &skipped, 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            return;
        c->behind = connection_count_kept(replay);
    }
    while (c->behind && sent) {
        size_t len;
        const char *bytes = replay_get(replay, kept - c->behind, &len);

        sent = connection_show(c, bytes, len);
        c->behind -= sent;
    }
    connection_set_watches(c);
}

static void connection_attach(struct runner_connection *c)
{
    const struct replay *replay = c->runner->program.replay;
    int terminal = replay ? fcntl(c->runner->program.terminal.fd, F_DUPFD_CLOEXEC, 3) : -1;

    if (!replay) {
        connection_fail(c, ENOTTY, "the program has no terminal");
        return;
    }
    if (terminal < 0) {
        connection_fail(c, errno, strerror(errno));
        return;
    }
    c->role = ROLE_ATTACHED;
    c->tty = true;
    watch_init(&c->input, c->runner->epoll, terminal, connection_on_input, c);
    c->behind = connection_count_kept(replay);
    connection_catch_up(c);
}

/* Copy the packet into the struct of its type; false if it is too short. */
#define UNPACK(into, packet, len) \
    ((len) >= sizeof(into) && (memcpy(&(into), (packet), sizeof(into)), true))

static void connection_signal_command(const struct runner_connection *c, int signum)
{
    if (c->role == ROLE_COMMAND && !c->is_ended)
        command_signal(c->pid, signum);
}

static void connection_send_signal(struct runner_connection *c, int signum)
{
    if (signum <= 0 || signum >= NSIG)
        return;
    if (c->role == ROLE_COMMAND)
        connection_signal_command(c, signum);
    else
        program_signal(c->runner, signum);
}

static void connection_resize(struct runner_connection *c, uint16_t rows, uint16_t cols)
{
    if (c->tty && c->input.fd >= 0)
        terminal_resize(c->input.fd, rows, cols);
}

static void connection_on_packet(struct runner_connection *c, const char *packet, size_t len)
{
    struct runner_resize size;
    struct runner_signal sig;

    switch (packet[0]) {
    case RUNNER_EXEC:
    case RUNNER_FILES:
        if (c->role == ROLE_NONE)
            connection_exec(c, packet, len);
        break;
    case RUNNER_ATTACH:
        if (c->role == ROLE_NONE)
            connection_attach(c);
        break;
    case RUNNER_INPUT:
        connection_take_input(c, packet + 1, len - 1);
        break;
    case RUNNER_END_INPUT:
        if (c->role == ROLE_COMMAND)
            connection_take_end_of_input(c);
        break;
    case RUNNER_RESIZE:
        if (UNPACK(size, packet, len))
            connection_resize(c, size.rows, size.cols);
        break;
    case RUNNER_SIGNAL:
        if (UNPACK(sig, packet, len))
            connection_send_signal(c, sig.signal);
        break;
    default:
        break; /* of a newer agent */
    }
}

/* True while the connection is there. */
static bool connection_send_unsent(struct runner_connection *c)
{
    size_t len = c->unsent_len;

    c->unsent_len = 0;
    connection_send_packet(c, c->unsent, len);
    if (c->unsent_len)
        return true;
    if (c->is_closing) {
        runner_connection_drop(c);
        return false;
    }
    if (c->is_ended) {
        connection_finish(c);
        return false; /* gone, or there is nothing to do now */
    }
    connection_set_watches(c);
    return true;
}

static void connection_on_connection(struct watch *watch, uint32_t events)
{
    static char packet[RUNNER_PACKET_MAX]; /* one thread */
    struct runner_connection *c = watch->owner;
    ssize_t got;

    if ((events & EPOLLOUT) && c->unsent_len && !connection_send_unsent(c))
        return;
    if ((events & EPOLLOUT) && c->behind)
        connection_catch_up(c);
    if (!(events & EPOLLIN) || !connection_is_readable(c)) {
        if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
            runner_connection_drop(c);
        return;
    }
    got = recv(c->watch.fd, packet, sizeof(packet), MSG_DONTWAIT | MSG_TRUNC);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0 || (size_t)got > sizeof(packet))
        runner_connection_drop(c);
    else
        connection_on_packet(c, packet, (size_t)got);
}

/* ---- the listener ---- */

/* PID 1 sees the ids of its container's processes and 0 for all others. */
static bool connection_is_trusted(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return false;
    return getpid() == 1 ? peer.pid == 0 : peer.uid == 0 || peer.uid == geteuid();
}

static void connection_greet(struct runner_connection *c)
{
    const struct runner_program *p = &c->runner->program;
    const struct runner_hello hello = {
        .type = RUNNER_HELLO,
        .protocol = RUNNER_PROTOCOL,
        .tty = p->replay != NULL,
        .flags = (uint8_t)((p->pid == 0 ? RUNNER_HELLO_IDLE : 0)
                           | (p->is_bootstrapping ? RUNNER_HELLO_BOOTSTRAP : 0)),
        .pid = p->pid,
        .started_usec = p->started_usec,
    };

    connection_send_packet(c, &hello, sizeof(hello));
}

static void connection_on_listener(struct watch *watch, uint32_t events)
{
    struct runner *r = watch->owner;
    int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct runner_connection *c = NULL;

    (void)events;
    if (fd >= 0 && r->connection_count < RUNNER_CONNECTIONS_MAX && connection_is_trusted(fd))
        c = calloc(1, sizeof(*c));
    if (!c) {
        aq_closep(&fd);
        return;
    }
    c->runner = r;
    c->start = c->input = c->output = c->errors = (struct watch)WATCH_CLOSED;
    watch_init(&c->watch, r->epoll, fd, connection_on_connection, c);
    list_add(&r->connections, &c->link);
    r->connection_count++;
    connection_greet(c);
    connection_set_watches(c);
}

/* ---- what the others call ---- */

void connections_open(struct runner *r)
{
    if (r->options.socket < 0)
        return;
    watch_init(&r->listener, r->epoll, r->options.socket, connection_on_listener, r);
    watch_want(&r->listener, EPOLLIN);
}

void connections_greet(struct runner *r)
{
    LIST_FOREACH(it, &r->connections) {
        struct runner_connection *c = LIST_ENTRY(it, struct runner_connection, link);

        if (c->role == ROLE_NONE)
            connection_greet(c);
    }
}

void connections_reaped(struct runner *r, pid_t pid, int status)
{
    LIST_FOREACH(it, &r->connections) {
        struct runner_connection *c = LIST_ENTRY(it, struct runner_connection, link);

        if (c->role != ROLE_COMMAND || c->pid != pid || c->is_ended)
            continue;
        if (c->start.fd >= 0 && !connection_tell_start(c))
            return;
        c->status = status;
        c->is_ended = true;
        connection_finish(c);
        return;
    }
}

void connections_output(struct runner *r, const char *bytes, size_t len)
{
    LIST_FOREACH(it, &r->connections) {
        struct runner_connection *c = LIST_ENTRY(it, struct runner_connection, link);

        if (c->role != ROLE_ATTACHED)
            continue;
        c->behind += len - (c->behind ? 0 : connection_show(c, bytes, len));
        connection_set_watches(c);
    }
}

bool connections_type_on(struct runner *r)
{
    bool is_full = false;

    LIST_FOREACH(it, &r->connections) {
        struct runner_connection *c = LIST_ENTRY(it, struct runner_connection, link);

        if (c->tty && c->untaken)
            connection_give_input(c);
        is_full |= c->tty && c->untaken;
    }
    return is_full;
}

void connections_signal(struct runner *r, int signum)
{
    LIST_FOREACH(it, &r->connections)
        connection_signal_command(LIST_ENTRY(it, struct runner_connection, link), signum);
}

void connections_close(struct runner *r, int status)
{
    const struct runner_ended ended = { .type = RUNNER_ENDED, .status = status };

    watch_close(&r->listener);
    LIST_FOREACH(it, &r->connections) {
        struct runner_connection *c = LIST_ENTRY(it, struct runner_connection, link);

        if (c->role == ROLE_ATTACHED)
            (void)send(c->watch.fd, &ended, sizeof(ended), MSG_NOSIGNAL | MSG_DONTWAIT);
        connection_signal_command(c, SIGKILL);
        runner_connection_drop(c);
    }
}
