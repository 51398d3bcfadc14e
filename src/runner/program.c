/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - what the container is for: one program, or nothing but waiting */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/values_file.h"
#include "runner/runner.h"

#define STANDARD_MAX 4096         /* PIPE_BUF: a pipe that is ready takes this without waiting */
#define LAST_WORDS_MAX (1u << 20) /* a process that is left may write forever */

void terminal_resize(int terminal, uint16_t rows, uint16_t cols)
{
    const struct winsize size = { .ws_row = rows, .ws_col = cols };

    (void)ioctl(terminal, TIOCSWINSZ, &size);
}

static void runner_program_fail(struct runner *r, int code, const char *text)
{
    struct runner_program *p = &r->program;

    p->failure = code;
    (void)snprintf(p->text, sizeof(p->text), "%.*s", (int)sizeof(p->text) - 1, text);
    p->status = (code == ENOENT ? 127 : 126) << 8;
    p->is_ended = true;
    (void)dprintf(STDERR_FILENO, "aliquot-runner: '%s' cannot be started: %s\n",
                  r->options.argv[0] ? r->options.argv[0] : "", text);
}

static void runner_program_on_start(struct watch *watch, uint32_t events)
{
    struct runner *r = watch->owner;
    struct command_failure failure;
    int fd = watch->fd;

    (void)events;
    watch_want(watch, 0);
    if (!command_read_start(&fd, &failure)) {
        watch_want(watch, EPOLLIN);
        return;
    }
    watch->fd = -1;
    if (failure.code) {
        char text[RUNNER_TEXT_MAX];

        command_failure_text(&failure, text);
        runner_program_fail(r, failure.code, text);
    }
}

/* End of file without a byte means that the script failed. */
static void program_on_bootstrap(struct watch *watch, uint32_t events)
{
    struct runner *r = watch->owner;
    char byte;
    bool has_succeeded = read(watch->fd, &byte, 1) == 1;

    (void)events;
    watch_close(watch);
    if (!has_succeeded)
        return;
    r->program.is_bootstrapping = false;
    connections_greet(r);
}

/* ---- the terminal's output: kept, passed on, shown ---- */

/* Bytes now, 0 = none now, or forever (then the watch is closed). */
static size_t runner_program_take_output(struct runner *r, char bytes[STANDARD_MAX])
{
    ssize_t got;

    do
        got = read(r->program.terminal.fd, bytes, STANDARD_MAX);
    while (got < 0 && errno == EINTR);
    if (got > 0)
        return (size_t)got;
    if (got == 0 || errno != EAGAIN)
        watch_want(&r->program.terminal, 0); /* EIO: nobody has it open any more */
    return 0;
}

static void runner_program_pass_output(struct runner *r, const char *bytes, size_t len)
{
    replay_add(r->program.replay, bytes, len);
    (void)fs_write_all(STDOUT_FILENO, bytes, len);
    connections_output(r, bytes, len);
}

static bool program_standard_is_full(void)
{
    struct pollfd pfd = { .fd = STDOUT_FILENO, .events = POLLOUT };

    return poll(&pfd, 1, 0) == 0;
}

static void program_on_terminal(struct watch *watch, uint32_t events)
{
    struct runner *r = watch->owner;
    char bytes[STANDARD_MAX];
    size_t got;

    (void)events;
    if (program_standard_is_full()) {
        watch_want(&r->program.terminal, 0);
        watch_want(&r->program.standard, EPOLLOUT);
        return;
    }
    got = runner_program_take_output(r, bytes);
    if (got)
        runner_program_pass_output(r, bytes, got);
}

static void program_on_standard(struct watch *watch, uint32_t events)
{
    struct runner *r = watch->owner;

    (void)events;
    watch_want(watch, 0);
    watch_want(&r->program.terminal, EPOLLIN);
}

static int runner_program_open_terminal(struct runner *r, struct command *command,
                                        struct aq_error *err)
{
    struct runner_program *p = &r->program;

    p->replay = calloc(1, sizeof(*p->replay));
    if (!p->replay)
        return aq_fail_oom(err);
    aq_closep(&command->input);
    watch_init(&p->terminal, r->epoll, command->output, program_on_terminal, r);
    watch_init(&p->standard, r->epoll, fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3),
               program_on_standard, r);
    watch_want(&p->terminal, EPOLLIN);
    return 0;
}

/* ---- what the others call ---- */

/* What it writes to belongs to it, so that /dev/stdout can be opened. */
static void program_give_streams(const struct options *o)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        fs_try_chown(fd, o->uid);
}

/* A program that finds no file fails by itself if it needs one. */
static void program_open_output(struct runner *r)
{
    const struct options *o = &r->options;
    struct aq_error err = { 0 };

    if (!o->output)
        return;
    r->program.output = values_file_create(o->output, o->has_uid ? o->uid : (uid_t)-1,
                                           o->has_gid ? o->gid : (gid_t)-1, &err);
    if (r->program.output < 0)
        (void)dprintf(STDERR_FILENO, "aliquot-runner: %s\n", err.text);
}

void program_start(struct runner *r)
{
    const struct command_spec spec = {
        .argv = r->options.argv,
        .streams = r->options.tty ? COMMAND_TERMINAL : COMMAND_INHERITS,
        .rows = r->options.rows,
        .cols = r->options.cols,
        .has_bootstrap = r->options.bootstrap >= 0,
    };
    struct aq_error err = { 0 };
    struct command command;
    char text[RUNNER_TEXT_MAX];
    int result = r->options.check ? preflight_run(&r->options, text) : 0;

    if (result < 0) {
        runner_program_fail(r, -result, text);
        return;
    }
    r->program.started_usec = clock_realtime_usec();
    if (!r->options.argv[0])
        return;
    if (r->options.has_uid && r->options.uid != 0)
        program_give_streams(&r->options);
    program_open_output(r);
    result = command_start(&r->options, &spec, &command, &err);
    if (result == 0 && r->options.tty) {
        result = runner_program_open_terminal(r, &command, &err);
        if (result < 0)
            (void)kill(command.pid, SIGKILL);
    }
    if (result < 0) {
        runner_program_fail(r, -result, err.text);
        return;
    }
    r->program.pid = command.pid;
    watch_init(&r->program.start, r->epoll, command.start, runner_program_on_start, r);
    watch_want(&r->program.start, EPOLLIN);
    r->program.is_bootstrapping = command.bootstrap >= 0;
    watch_init(&r->program.bootstrap, r->epoll, command.bootstrap, program_on_bootstrap, r);
    watch_want(&r->program.bootstrap, EPOLLIN);
}

/* An interactive shell minds SIGHUP only, a stopped program nothing. */
void program_signal(struct runner *r, int signum)
{
    if (r->program.pid <= 0 || r->program.is_ended)
        return;
    command_signal(r->program.pid, signum);
    if (signum == SIGTERM && r->program.terminal.fd >= 0)
        command_signal(r->program.pid, SIGHUP);
    if (signum == SIGTERM || signum == SIGHUP)
        command_signal(r->program.pid, SIGCONT);
}

void program_reaped(struct runner *r, int status, const struct rusage *usage)
{
    struct runner_program *p = &r->program;

    if (p->start.fd >= 0)
        runner_program_on_start(&p->start, EPOLLIN); /* the reason, if it never was the program */
    if (p->is_ended)
        return;
    p->status = status;
    p->usage = *usage;
    p->ended_usec = clock_realtime_usec();
    p->is_ended = true;
}

static int64_t program_usec_of(const struct timeval *time)
{
    return time->tv_sec * USEC_PER_SEC + time->tv_usec;
}

/* The report comes last: once it is there, so is all that it announces. */
static void program_write_report(const struct runner *r)
{
    static char output[VALUES_FILE_READ_MAX];
    const struct runner_program *p = &r->program;
    struct runner_report report = {
        .magic = RUNNER_REPORT_MAGIC,
        .status = p->status,
        .code = p->failure,
        .started_usec = p->failure ? 0 : p->started_usec,
        .ended_usec = p->ended_usec ? p->ended_usec : clock_realtime_usec(),
        .user_usec = program_usec_of(&p->usage.ru_utime),
        .system_usec = program_usec_of(&p->usage.ru_stime),
        .max_rss_bytes = (uint64_t)p->usage.ru_maxrss * 1024,
    };

    (void)snprintf(report.text, sizeof(report.text), "%s", p->text);
    if (p->output >= 0)
        report.output = values_file_read(p->output, r->options.output, output);
    if (r->options.report < 0)
        return;
    if (report.output > 0) {
        (void)lseek(r->options.report, (off_t)sizeof(report), SEEK_SET);
        (void)fs_write_all(r->options.report, output, (size_t)report.output);
        (void)lseek(r->options.report, 0, SEEK_SET);
    }
    (void)fs_write_all(r->options.report, &report, sizeof(report));
}

int program_finish(struct runner *r)
{
    struct runner_program *p = &r->program;
    char bytes[STANDARD_MAX];
    size_t got, total = 0;

    while (p->terminal.fd >= 0 && total < LAST_WORDS_MAX
           && (got = runner_program_take_output(r, bytes)) > 0) {
        runner_program_pass_output(r, bytes, got);
        total += got;
    }
    watch_close(&p->terminal);
    watch_close(&p->standard);
    watch_close(&p->start);
    watch_close(&p->bootstrap);
    program_write_report(r);
    aq_closep(&p->output);
    free(AQ_TAKE(p->replay));
    return WIFSIGNALED(p->status) ? 128 + WTERMSIG(p->status) : WEXITSTATUS(p->status);
}
