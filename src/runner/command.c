/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - starts one process, in a terminal or with pipes */
#include "runner/command.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fs.h"
#include "model/device_variable.h"
#include "runner/files.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

#define FILES_PIPE_SIZE (256 * 1024)
#define TTY_GROUP 5 /* of terminals in every distribution, and of devpts in containers */

struct command_plumbing {
    int ours[3], theirs[3]; /* standard input, output, error */
    int start_read, start_write;
    int bootstrap_read, bootstrap_write; /* -1 = none */
};

static void command_plumbing_close(struct command_plumbing *pl)
{
    for (int i = 0; i < 3; i++) {
        aq_closep(&pl->ours[i]);
        aq_closep(&pl->theirs[i]);
    }
    aq_closep(&pl->start_read);
    aq_closep(&pl->start_write);
    aq_closep(&pl->bootstrap_read);
    aq_closep(&pl->bootstrap_write);
}

/* By descriptors: the directory /dev/pts may show another instance. */
static int command_open_terminal(const struct options *o, const struct command_spec *spec,
                                 struct command_plumbing *pl, struct aq_error *err)
{
    const struct winsize size = { .ws_row = spec->rows, .ws_col = spec->cols };
    int unlock = 0;

    pl->ours[0] = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (pl->ours[0] < 0)
        pl->ours[0] = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (pl->ours[0] < 0 || ioctl(pl->ours[0], TIOCSPTLCK, &unlock) < 0)
        return aq_fail_errno(err, "open a terminal");
    pl->theirs[0] = ioctl(pl->ours[0], TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (pl->theirs[0] < 0)
        return aq_fail_errno(err, "open a terminal's other side");
    (void)ioctl(pl->theirs[0], TIOCSWINSZ, &size);
    if (o->has_uid && fchown(pl->theirs[0], o->uid, TTY_GROUP) < 0)
        fs_try_chown(pl->theirs[0], o->uid);
    for (int i = 1; i < 3; i++)
        pl->theirs[i] = fcntl(pl->theirs[0], F_DUPFD_CLOEXEC, 3);
    pl->ours[1] = fcntl(pl->ours[0], F_DUPFD_CLOEXEC, 3);
    if (pl->ours[1] < 0 || pl->theirs[1] < 0 || pl->theirs[2] < 0)
        return aq_fail_errno(err, "open a terminal");
    return 0;
}

static int command_open_pipe(int *ret_read, int *ret_write, struct aq_error *err)
{
    int pair[2];

    if (pipe2(pair, O_CLOEXEC) < 0)
        return aq_fail_errno(err, "pipe");
    *ret_read = pair[0];
    *ret_write = pair[1];
    return 0;
}

/* Larger pipes: less waiting for the other side. It does no harm if they cannot be had. */
static void command_widen_pipes(const struct command_plumbing *pl)
{
    for (int i = 0; i < 2; i++)
        if (pl->ours[i] >= 0)
            (void)fcntl(pl->ours[i], F_SETPIPE_SZ, FILES_PIPE_SIZE);
}

static int command_open_pipes(bool has_input, struct command_plumbing *pl, struct aq_error *err)
{
    int r = 0;

    if (has_input)
        r = command_open_pipe(&pl->theirs[0], &pl->ours[0], err);
    else if ((pl->theirs[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
        r = aq_fail_errno(err, "open '/dev/null'");
    if (r == 0)
        r = command_open_pipe(&pl->ours[1], &pl->theirs[1], err);
    return r < 0 ? r : command_open_pipe(&pl->ours[2], &pl->theirs[2], err);
}

static int command_open_socket(int socket, struct command_plumbing *pl, struct aq_error *err)
{
    pl->theirs[0] = fcntl(socket, F_DUPFD_CLOEXEC, 3);
    pl->theirs[1] = fcntl(socket, F_DUPFD_CLOEXEC, 3);
    pl->theirs[2] = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (pl->theirs[0] < 0 || pl->theirs[1] < 0 || pl->theirs[2] < 0)
        return aq_fail_errno(err, "socket of a command");
    return 0;
}

/* Out of the way of the descriptor that the program gets. */
static int command_raise_fd(int fd, int above)
{
    int raised = fcntl(fd, F_DUPFD_CLOEXEC, above + 1);

    aq_closep(&fd);
    return raised;
}

static int command_open_bootstrap(int fd, struct command_plumbing *pl, struct aq_error *err)
{
    int r = command_open_pipe(&pl->bootstrap_read, &pl->bootstrap_write, err);

    if (r < 0)
        return r;
    pl->start_write = command_raise_fd(pl->start_write, fd);
    pl->bootstrap_write = command_raise_fd(pl->bootstrap_write, fd);
    return pl->start_write < 0 || pl->bootstrap_write < 0 ? aq_fail_errno(err, "pipe") : 0;
}

static int command_open_plumbing(const struct options *o, const struct command_spec *spec,
                                 struct command_plumbing *pl, struct aq_error *err)
{
    int r = command_open_pipe(&pl->start_read, &pl->start_write, err);

    if (r == 0 && spec->has_bootstrap)
        r = command_open_bootstrap(o->bootstrap, pl, err);
    if (r < 0 || spec->streams == COMMAND_INHERITS)
        return r;
    if (spec->streams == COMMAND_TERMINAL)
        return command_open_terminal(o, spec, pl, err);
    if (spec->streams == COMMAND_SOCKET)
        return command_open_socket(spec->socket, pl, err);
    r = command_open_pipes(spec->streams == COMMAND_PIPES, pl, err);
    if (r == 0 && spec->is_files)
        command_widen_pipes(pl);
    return r;
}

/* ---- in the child, between fork and exec ---- */

static const char *command_set_descriptors(const struct options *o, const struct command_spec *spec,
                                           const struct command_plumbing *pl)
{
    if (setsid() < 0)
        return "setsid";
    if (spec->streams == COMMAND_TERMINAL && ioctl(pl->theirs[0], TIOCSCTTY, 0) < 0)
        return "controlling terminal";
    for (int i = 0; i < 3; i++)
        if (pl->theirs[i] >= 0 && dup2(pl->theirs[i], i) < 0)
            return "standard descriptors";
    if (pl->bootstrap_write >= 0 && dup2(pl->bootstrap_write, o->bootstrap) < 0)
        return "descriptor of the bootstrap script";
    return NULL;
}

/* Raising one's score is always allowed, so this undoes the runner's. */
static void command_set_oom_score(const struct options *o)
{
    AQ_CLEANUP(aq_closep) int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    char text[16] = "";

    if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
        return;
    if (o->has_oom_score)
        (void)dprintf(fd, "%d", o->oom_score);
    else if (text[0] == '-')
        (void)dprintf(fd, "0");
}

const char *command_set_identity(const struct options *o)
{
    if (o->has_gid && (setgroups(o->group_count, o->groups) < 0 || setgid(o->gid) < 0))
        return "gid";
    if (o->has_uid && setuid(o->uid) < 0)
        return "uid";
    return NULL;
}

static void command_reset_signals(void)
{
    const struct sigaction usual = { .sa_handler = SIG_DFL };
    sigset_t none;

    for (int n = 1; n < NSIG; n++)
        (void)sigaction(n, &usual, NULL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The agent says it in the environment of the runner. */
size_t command_count_devices(void)
{
    const char *count = getenv(DEVICE_COUNT_VARIABLE);

    return count ? strtoul(count, NULL, 10) : 0;
}

static void command_execute_shell(void)
{
    const char *const shells[] = { getenv("SHELL"), "/bin/bash", "/usr/bin/bash",
                                   "/bin/sh",       "/bin/ash",  "/busybox/sh" };

    for (size_t i = 0; i < AQ_COUNT(shells); i++)
        if (shells[i] && shells[i][0] == '/')
            (void)execl(shells[i], shells[i], (char *)NULL);
}

/* Returns only if it cannot be executed, with the step that failed. */
static const char *command_execute(const struct options *o, const struct command_spec *spec,
                                   const struct command_plumbing *pl)
{
    const char *cwd = spec->cwd ? spec->cwd : o->cwd, *step = command_set_descriptors(o, spec, pl);
    size_t devices = command_count_devices();

    command_reset_signals();
    command_set_oom_score(o);
    if (!step)
        step = command_set_identity(o);
    for (char **variable = spec->envp; !step && variable && *variable; variable++)
        if (!device_variable_exceeds(*variable, devices) && putenv(*variable) != 0)
            step = "environment";
    if (!step && cwd && chdir(cwd) < 0)
        step = "working folder";
    if (step)
        return step;
    if (spec->is_files) {
        (void)close_range(STDERR_FILENO + 1, ~0u, 0); /* 'start', too: it runs */
        _exit(files_run(spec->argv));
    }
    if (!spec->argv[0]) {
        command_execute_shell();
        return "find a shell";
    }
    (void)execvp(spec->argv[0], spec->argv);
    return "execute";
}

__attribute__((noreturn)) static void command_become(const struct options *o,
                                                     const struct command_spec *spec,
                                                     const struct command_plumbing *pl)
{
    struct command_failure failure = { 0 };
    const char *step = command_execute(o, spec, pl);

    failure.code = errno;
    (void)snprintf(failure.step, sizeof(failure.step), "%s", step);
    (void)fs_write_all(pl->start_write, &failure, sizeof(failure));
    _exit(127);
}

/* ---- in the runner ---- */

int command_start(const struct options *options, const struct command_spec *spec,
                  struct command *ret, struct aq_error *err)
{
    struct command_plumbing pl = { { -1, -1, -1 }, { -1, -1, -1 }, -1, -1, -1, -1 };
    int r = command_open_plumbing(options, spec, &pl, err);
    pid_t pid = -1;

    if (r == 0) {
        pid = fork();
        if (pid == 0)
            command_become(options, spec, &pl);
        if (pid < 0)
            r = aq_fail_errno(err, "fork");
    }
    if (r == 0) {
        for (int i = 0; i < 3; i++)
            if (pl.ours[i] >= 0)
                (void)fcntl(pl.ours[i], F_SETFL, O_NONBLOCK);
        (void)fcntl(pl.start_read, F_SETFL, O_NONBLOCK);
        *ret = (struct command){
            .pid = pid,
            .start = AQ_TAKE_FD(pl.start_read),
            .input = AQ_TAKE_FD(pl.ours[0]),
            .output = AQ_TAKE_FD(pl.ours[1]),
            .errors = AQ_TAKE_FD(pl.ours[2]),
            .bootstrap = AQ_TAKE_FD(pl.bootstrap_read),
        };
    }
    command_plumbing_close(&pl);
    return r;
}

/* End of file means that exec closed the pipe. */
bool command_read_start(int *start, struct command_failure *ret)
{
    struct command_failure failure;
    ssize_t got = read(*start, &failure, sizeof(failure));

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    *ret = got == (ssize_t)sizeof(failure) ? failure : (struct command_failure){ 0 };
    aq_closep(start);
    return true;
}

void command_failure_text(const struct command_failure *failure, char text[RUNNER_TEXT_MAX])
{
    (void)snprintf(text, RUNNER_TEXT_MAX, "%s: %s", failure->step, strerror(failure->code));
}

void command_signal(pid_t pid, int signum)
{
    if (kill(-pid, signum) < 0)
        (void)kill(pid, signum);
}
