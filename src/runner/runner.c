/* SPDX-License-Identifier: Apache-2.0 */
/* runner.c - the state of aliquot-runner and its parts */
#include "runner/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "runner/unsent.h"

#define TYPE_AGAIN_MSEC 50 /* a terminal that discards a line too long has room, and wakes nobody */

/* Everything at once: a thousand orphans may end behind one SIGCHLD. */
static void runner_reap(struct runner *r)
{
    struct rusage usage;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
        if (pid == r->program.pid)
            program_reaped(r, status, &usage);
        else if (!ssh_reaped(r, pid))
            connections_reaped(r, pid, status);
    }
}

bool runner_signal_is_sent(const struct signalfd_siginfo *info)
{
    const bool is_by_process = info->ssi_code == SI_USER || info->ssi_code == SI_QUEUE
                               || info->ssi_code == SI_TKILL;

    return is_by_process && (pid_t)info->ssi_pid != getpid();
}

static bool runner_is_request_to_end(int signum)
{
    return signum == SIGTERM || signum == SIGHUP || signum == SIGINT;
}

static void runner_on_signal(struct watch *watch, uint32_t events)
{
    struct runner *r = watch->owner;
    struct signalfd_siginfo info;

    (void)events;
    if (read(watch->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    if (info.ssi_signo == SIGCHLD) {
        runner_reap(r);
        return;
    }
    if (!runner_signal_is_sent(&info))
        return;
    if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP)
        connections_signal(r, (int)info.ssi_signo);
    if (r->program.pid)
        program_signal(r, (int)info.ssi_signo);
    else if (runner_is_request_to_end((int)info.ssi_signo))
        r->is_over = true;
}

/* All but those that a fault of our own raises. SIGPIPE and SIGXFSZ are not ignored, which would
 * not help: a blocked signal is queued all the same. They are read here and not passed on.
 */
static int runner_open_signals(struct runner *r, struct aq_error *err)
{
    static const int others[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS };
    sigset_t mask;
    int fd;

    (void)sigfillset(&mask);
    for (size_t i = 0; i < AQ_COUNT(others); i++)
        (void)sigdelset(&mask, others[i]);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return aq_fail_errno(err, "signalfd");
    watch_init(&r->signals, r->epoll, fd, runner_on_signal, r);
    watch_want(&r->signals, EPOLLIN);
    return 0;
}

/* Out of reach: no core, no ptrace, no /proc/1/fd; nothing is inherited. */
static int runner_hide(struct aq_error *err)
{
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return aq_fail_errno(err, "PR_SET_DUMPABLE");
    if (close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
        return aq_fail_errno(err, "close_range");
    if (getpid() != 1 && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return aq_fail_errno(err, "PR_SET_CHILD_SUBREAPER");
    return 0;
}

/* The log is one. runc copies from two pipes into it, so that what is written to the one comes
 * before or in the middle of what was written to the other; all of ours goes through the first.
 */
static int runner_join_outputs(struct aq_error *err)
{
    return dup2(STDOUT_FILENO, STDERR_FILENO) < 0 ? aq_fail_errno(err, "standard error") : 0;
}

/* One event at a time: it may close what the next one would have been about. */
static void runner_loop(struct runner *r)
{
    struct epoll_event event;

    while (!r->is_over && !r->program.is_ended) {
        int idle_msec = ssh_idle_msec(r);
        int wait_msec = connections_type_on(r) ? TYPE_AGAIN_MSEC : idle_msec;

        if (idle_msec == 0)
            r->is_over = true;
        if (epoll_wait(r->epoll, &event, 1, wait_msec) == 1) {
            struct watch *watch = event.data.ptr;

            watch->fn(watch, event.events);
        }
    }
}

int runner_run(const struct options *options, struct aq_error *err)
{
    struct runner r = {
        .options = *options,
        .epoll = epoll_create1(EPOLL_CLOEXEC),
        .signals = WATCH_CLOSED,
        .listener = WATCH_CLOSED,
        .ssh = { .listener = WATCH_CLOSED },
        .program = { .output = -1,
                     .start = WATCH_CLOSED,
                     .bootstrap = WATCH_CLOSED,
                     .terminal = WATCH_CLOSED,
                     .standard = WATCH_CLOSED },
    };
    int result;

    if (r.epoll < 0)
        return aq_fail_errno(err, "epoll");
    list_init(&r.connections);
    result = runner_hide(err);
    if (result == 0)
        result = runner_join_outputs(err);
    if (result == 0)
        result = runner_open_signals(&r, err);
    if (result == 0) {
        connections_open(&r);
        home_files_copy(&r.options);
        ssh_open(&r);
        program_start(&r);
        runner_loop(&r);
        watch_close(&r.ssh.listener);
        if (r.options.linger_sec)
            unsent_wait(r.options.linger_sec * USEC_PER_SEC);
        result = program_finish(&r);
        connections_close(&r, r.program.status);
    }
    watch_close(&r.signals);
    aq_closep(&r.epoll);
    return result;
}
