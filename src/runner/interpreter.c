/* SPDX-License-Identifier: Apache-2.0 */
/* The process that runs code, and what it says. */
#include "runner/interpreter.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"

#define CODE_FILE "code"
#define NO_SUCH_PROGRAM 127
#define MUTE_MSEC 1000 /* for the end of a process that has closed its control socket */

void interpreter_init(struct interpreter *in, const struct language *language, const char *folder,
                      const struct interpreter_ops *ops, void *data)
{
    *in = (struct interpreter){ .language = *language,
                                .control = WATCH_CLOSED,
                                .output = WATCH_CLOSED,
                                .errors = WATCH_CLOSED,
                                .folder = folder,
                                .ops = ops,
                                .data = data };
    strbuf_init(&in->part);
    strbuf_init(&in->unsent);
}

/* Does it talk in packets, or is told names of files? */
static bool interpreter_has_packets(const struct interpreter *in)
{
    return in->language.kind <= LANGUAGE_JUPYTER;
}

/* ---- its end ---- */

static void interpreter_finish(struct interpreter *in, int exit_code)
{
    in->is_running = false;
    strbuf_clear(&in->part);
    in->ops->on_finished(in->data, exit_code);
}

static void interpreter_say(struct interpreter *in, const char *text)
{
    in->ops->on_output(in->data, EXECUTION_STDERR, text, strlen(text));
}

/* What is in the pipe already; what the code's own children write later comes with a later run. */
static void interpreter_drain(struct interpreter *in, struct watch *from, enum execution_kind kind)
{
    char bytes[16384];
    ssize_t got;

    for (int i = 0; i < 64 && from->fd >= 0; i++) { /* as much as a pipe of 1 MiB holds */
        got = read(from->fd, bytes, sizeof(bytes));
        if (got <= 0)
            break;
        in->ops->on_output(in->data, kind, bytes, (size_t)got);
    }
}

static void interpreter_drain_all(struct interpreter *in)
{
    interpreter_drain(in, &in->output, EXECUTION_STDOUT);
    interpreter_drain(in, &in->errors, EXECUTION_STDERR);
}

static void interpreter_close(struct interpreter *in)
{
    watch_close(&in->control);
    watch_close(&in->output);
    watch_close(&in->errors);
    strbuf_clear(&in->unsent);
    in->pid = 0;
    in->mute_msec = 0;
    in->has_ended = false;
}

static int interpreter_exit_code(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The process has ended; its state with it, which is told if there was any. */
static void interpreter_has_gone(struct interpreter *in)
{
    bool had_state = in->language.kind != LANGUAGE_ONCE;
    int code = interpreter_exit_code(in->status);

    interpreter_drain_all(in);
    interpreter_close(in);
    if (!in->is_running)
        return;
    if (had_state && code != NO_SUCH_PROGRAM)
        interpreter_say(in, "[the interpreter has ended; the next run starts another]\n");
    interpreter_finish(in, code);
}

void interpreter_reaped(struct interpreter *in, pid_t pid, int status)
{
    if (!in->pid || pid != in->pid)
        return;
    in->status = status;
    in->has_ended = true;
    if (!in->is_paused)
        interpreter_has_gone(in);
}

/* ---- what it says ---- */

/* Bytes of the text in JSON at most. */
static size_t interpreter_count_escaped(const struct strbuf *text)
{
    size_t count = 0;

    for (size_t i = 0; i < text->len; i++) {
        unsigned char c = (unsigned char)text->data[i];

        count += c < ' ' || c == 0x7f ? 6 : c >= 0x80 ? 3 : c == '"' || c == '\\' ? 2 : 1;
    }
    return count;
}

static void interpreter_take_media(struct interpreter *in, enum execution_kind kind, bool is_whole,
                                   const char *bytes, size_t len)
{
    static const char told[] = "a picture or text of more than 512 KiB is not shown";

    if (in->part.len <= EXECUTION_MEDIA_MAX)
        strbuf_add(&in->part, bytes, len);
    if (!is_whole)
        return;
    if (!strbuf_ok(&in->part) || interpreter_count_escaped(&in->part) > EXECUTION_MEDIA_MAX)
        in->ops->on_output(in->data, EXECUTION_LOG, told, sizeof(told) - 1);
    else
        in->ops->on_output(in->data, kind, in->part.data, in->part.len);
    strbuf_done(&in->part);
    strbuf_init(&in->part);
}

static void interpreter_on_finish_packet(struct interpreter *in, const char *bytes, size_t len)
{
    char text[16] = "";

    memcpy(text, bytes, AQ_MIN(len, sizeof(text) - 1));
    interpreter_drain_all(in);
    if (in->is_running)
        interpreter_finish(in, (int)strtol(text, NULL, 10));
}

static void interpreter_on_packet(struct interpreter *in, char type, const char *bytes, size_t len)
{
    switch (type) {
    case 'o':
    case 'e':
        in->ops->on_output(in->data, type == 'o' ? EXECUTION_STDOUT : EXECUTION_STDERR, bytes, len);
        break;
    case 'm':
    case 'M':
        interpreter_take_media(in, EXECUTION_MEDIA, type == 'm', bytes, len);
        break;
    case 'h':
    case 'H':
        interpreter_take_media(in, EXECUTION_HTML, type == 'h', bytes, len);
        break;
    case 'w':
        interpreter_drain_all(in);
        in->ops->on_waiting(in->data, len && *bytes == '1');
        break;
    case 'f':
        interpreter_on_finish_packet(in, bytes, len);
        break;
    case 's':
        in->ops->on_suggestions(in->data, bytes, len);
        break;
    default:
        break;
    }
}

static void interpreter_send_unsent(struct interpreter *in)
{
    while (in->unsent.len) {
        uint32_t len;

        memcpy(&len, in->unsent.data, sizeof(len));
        if (send(in->control.fd, in->unsent.data + sizeof(len), len, MSG_DONTWAIT | MSG_NOSIGNAL)
                < 0
            && errno == EAGAIN)
            break;
        strbuf_consume(&in->unsent, sizeof(len) + len);
    }
    watch_want(&in->control, (in->is_paused ? 0 : EPOLLIN) | (in->unsent.len ? EPOLLOUT : 0));
}

/* It ends, or has closed what it would tell the end of a run by. */
static void interpreter_on_closed(struct interpreter *in)
{
    watch_want(&in->control, 0);
    in->mute_msec = clock_monotonic_usec() / USEC_PER_MSEC;
}

static void interpreter_on_python(struct watch *watch, uint32_t events)
{
    static char packet[INTERPRETER_PACKET_MAX + 1];
    struct interpreter *in = watch->owner;
    ssize_t got;

    if (events & EPOLLOUT)
        interpreter_send_unsent(in);
    if (!(events & (EPOLLIN | EPOLLHUP)))
        return;
    got = recv(watch->fd, packet, sizeof(packet), MSG_DONTWAIT);
    if (got > 0)
        interpreter_on_packet(in, packet[0], packet + 1, (size_t)got - 1);
    else if (got == 0)
        interpreter_on_closed(in);
}

/* A number for each file of code that it has read. */
static void interpreter_on_shell(struct watch *watch, uint32_t events)
{
    struct interpreter *in = watch->owner;
    char text[32] = "";
    ssize_t got = recv(watch->fd, text, sizeof(text) - 1, MSG_DONTWAIT);

    (void)events;
    if (got == 0)
        interpreter_on_closed(in);
    else if (got > 0)
        interpreter_on_finish_packet(in, text, (size_t)got);
}

static void interpreter_on_output(struct watch *watch, uint32_t events)
{
    struct interpreter *in = watch->owner;
    char bytes[16384];
    ssize_t got = read(watch->fd, bytes, sizeof(bytes));

    (void)events;
    if (got > 0)
        in->ops->on_output(in->data, watch == &in->output ? EXECUTION_STDOUT : EXECUTION_STDERR,
                           bytes, (size_t)got);
    else if (got == 0 || errno != EAGAIN)
        watch_want(watch, 0);
}

/* ---- start ---- */

struct interpreter_pipes {
    int output[2], errors[2], control[2]; /* ours, theirs */
};

static void interpreter_pipes_close(struct interpreter_pipes *p)
{
    for (int i = 0; i < 2; i++) {
        aq_closep(&p->output[i]);
        aq_closep(&p->errors[i]);
        aq_closep(&p->control[i]);
    }
}

static bool interpreter_pipes_open(struct interpreter_pipes *p, const struct interpreter *in)
{
    int type = interpreter_has_packets(in) ? SOCK_SEQPACKET : SOCK_STREAM;

    return pipe2(p->output, O_CLOEXEC) == 0 && pipe2(p->errors, O_CLOEXEC) == 0
           && (in->language.kind == LANGUAGE_ONCE
               || socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, p->control) == 0);
}

__attribute__((noreturn)) static void interpreter_become(const struct interpreter_pipes *p,
                                                         const char *const argv[], pid_t parent)
{
    int null = open("/dev/null", O_RDONLY);
    int control = p->control[1] >= 0 ? fcntl(p->control[1], F_DUPFD, 10) : -1;
    sigset_t none;

    (void)setsid();
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* who runs it is what its state and output are for */
    if (getppid() != parent)
        _exit(126);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(p->output[1], STDOUT_FILENO) < 0
        || dup2(p->errors[1], STDERR_FILENO) < 0 || (control >= 0 && dup2(control, 3) < 0))
        _exit(126);
    if (control > 3)
        (void)close(control);
    (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
    (void)dprintf(STDERR_FILENO, "%s: %s\n", argv[0],
                  errno == ENOENT ? "this image has no such program" : strerror(errno));
    _exit(NO_SUCH_PROGRAM);
}

static void interpreter_watch(struct interpreter *in, int epoll, struct watch *watch, int fd,
                              watch_fn *fn)
{
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    watch_init(watch, epoll, fd, fn, in);
    watch_want(watch, in->is_paused ? 0 : EPOLLIN);
}

/* False after it has finished the run. */
static bool interpreter_start(struct interpreter *in, int epoll, const char *const argv[])
{
    struct interpreter_pipes p = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
    pid_t parent = getpid(), pid = -1;

    if (interpreter_pipes_open(&p, in) && (pid = fork()) == 0)
        interpreter_become(&p, argv, parent);
    if (pid < 0) {
        interpreter_pipes_close(&p);
        interpreter_say(in, "the container has no room for another process\n");
        interpreter_finish(in, 126);
        return false;
    }
    in->pid = pid;
    in->has_ended = false;
    interpreter_watch(in, epoll, &in->output, AQ_TAKE_FD(p.output[0]), interpreter_on_output);
    interpreter_watch(in, epoll, &in->errors, AQ_TAKE_FD(p.errors[0]), interpreter_on_output);
    if (in->language.kind != LANGUAGE_ONCE)
        interpreter_watch(in, epoll, &in->control, AQ_TAKE_FD(p.control[0]),
                          interpreter_has_packets(in) ? interpreter_on_python
                                                      : interpreter_on_shell);
    interpreter_pipes_close(&p);
    return true;
}

/* ---- runs ---- */

static void interpreter_send(struct interpreter *in, char type, const char *bytes, size_t len)
{
    do {
        size_t part = AQ_MIN(len, (size_t)INTERPRETER_PACKET_MAX - 1);
        uint32_t size = (uint32_t)part + 1;

        strbuf_add(&in->unsent, &size, sizeof(size));
        strbuf_addc(&in->unsent, part < len ? (char)(type - 'a' + 'A') : type);
        strbuf_add(&in->unsent, bytes, part);
        bytes += part;
        len -= part;
    } while (len);
    if (strbuf_ok(&in->unsent)) {
        interpreter_send_unsent(in);
        return;
    }
    (void)kill(in->pid, SIGKILL); /* half a message is none */
    strbuf_done(&in->unsent);
    strbuf_init(&in->unsent);
}

/* Start it unless it lives; 'file' is the code's. False after it has finished the run. */
static bool interpreter_start_language(struct interpreter *in, int epoll, const char *file)
{
    const char *argv[LANGUAGE_ARGUMENTS_MAX];

    language_command(&in->language, file, argv);
    return in->pid || interpreter_start(in, epoll, argv);
}

/* The path of a file with the code, unless the run was finished. */
static void interpreter_write_code(struct interpreter *in, const char *code, size_t len, char *ret,
                                   size_t size)
{
    struct aq_error err = { 0 };

    (void)snprintf(ret, size, "%s/" CODE_FILE, in->folder);
    if (fs_write_quick(AT_FDCWD, ret, code, len, 0600, &err) == 0)
        return;
    interpreter_say(in, err.text);
    interpreter_finish(in, 126);
}

void interpreter_run(struct interpreter *in, int epoll, const char *code, size_t len)
{
    char path[PATH_MAX] = "";

    in->is_running = true;
    if (!interpreter_has_packets(in))
        interpreter_write_code(in, code, len, path, sizeof(path) - 1);
    if (!in->is_running || !interpreter_start_language(in, epoll, path))
        return;
    if (interpreter_has_packets(in)) {
        interpreter_send(in, 'r', code, len);
    } else if (in->language.kind == LANGUAGE_READER) {
        (void)strcat(path, "\n");
        (void)!send(in->control.fd, path, strlen(path), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

void interpreter_run_command(struct interpreter *in, int epoll, const char *command)
{
    const char *argv[] = { "sh", "-c", command, NULL };

    in->is_running = true;
    (void)interpreter_start(in, epoll, argv);
}

void interpreter_answer(struct interpreter *in, const char *text, size_t len)
{
    if (interpreter_has_packets(in))
        interpreter_send(in, 'i', text, len);
}

bool interpreter_complete(struct interpreter *in, const char *json, size_t len)
{
    if (!interpreter_has_packets(in) || in->is_running || !in->pid)
        return false;
    interpreter_send(in, 'c', json, len);
    return true;
}

void interpreter_interrupt(struct interpreter *in)
{
    if (in->pid && in->is_running && kill(-in->pid, SIGINT) < 0)
        (void)kill(in->pid, SIGINT);
}

void interpreter_kill(struct interpreter *in)
{
    if (in->pid && kill(-in->pid, SIGKILL) < 0)
        (void)kill(in->pid, SIGKILL);
    interpreter_close(in);
    strbuf_clear(&in->part);
    in->is_running = false;
    in->is_paused = false;
}

int64_t interpreter_end_mute(struct interpreter *in, int64_t now_msec)
{
    if (!in->pid || in->has_ended || !in->mute_msec)
        return INT64_MAX;
    if (now_msec < in->mute_msec + MUTE_MSEC)
        return in->mute_msec + MUTE_MSEC;
    (void)kill(in->pid, SIGKILL);
    return INT64_MAX;
}

void interpreter_pause(struct interpreter *in, bool paused)
{
    if (in->is_paused == paused)
        return;
    in->is_paused = paused;
    watch_want(&in->output, paused ? 0 : EPOLLIN);
    watch_want(&in->errors, paused ? 0 : EPOLLIN);
    if (interpreter_has_packets(in))
        interpreter_send_unsent(in);
    if (!paused && in->has_ended)
        interpreter_has_gone(in);
}
