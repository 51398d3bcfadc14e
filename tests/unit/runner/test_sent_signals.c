/* SPDX-License-Identifier: Apache-2.0 */
/* Which signals the runner passes on: real ones, of the Linux kernel and of other processes. */
#include "testing.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "runner/runner.h"

/* ---- signals of the Linux kernel ---- */

static void raise_pipe(void)
{
    int pair[2];

    assert_int_equal(pipe(pair), 0);
    aq_closep(&pair[0]);
    assert_int_equal(write(pair[1], "x", 1), -1);
}

static void raise_file_size(void)
{
    const struct rlimit none = { 0, 0 };
    int fd = fileno(tmpfile());

    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    assert_int_equal(write(fd, "x", 1), -1);
}

static void raise_out_of_band(void)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(fcntl(pair[0], F_SETOWN, getpid()), 0);
    if (send(pair[1], "x", 1, MSG_OOB) < 0) /* Linux before 5.15 has none in local sockets */
        (void)kill(getpid(), SIGURG);
}

static void raise_input_ready(void)
{
    int pair[2];

    assert_int_equal(pipe(pair), 0);
    assert_int_equal(fcntl(pair[0], F_SETOWN, getpid()), 0);
    assert_int_equal(fcntl(pair[0], F_SETFL, O_ASYNC), 0);
    assert_int_equal(write(pair[1], "x", 1), 1);
}

static void raise_alarm(void)
{
    const struct itimerval soon = { .it_value = { .tv_usec = 1 } };

    assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
}

static int open_own_terminal(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY), slave;

    assert_true(setsid() > 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_int_equal(ioctl(slave, TIOCSCTTY, 0), 0);
    return master;
}

static void raise_new_size(void)
{
    const struct winsize size = { .ws_row = 5, .ws_col = 7 };

    assert_int_equal(ioctl(open_own_terminal(), TIOCSWINSZ, &size), 0);
}

static void raise_terminal_closed(void)
{
    (void)close(open_own_terminal());
}

static void raise_interrupt_key(void)
{
    assert_int_equal(write(open_own_terminal(), "\3", 1), 1);
}

/* ---- signals that were sent ---- */

static void raise_kill(void)
{
    pid_t self = getpid(), pid = fork();

    if (pid == 0)
        _exit(kill(self, SIGPIPE));
}

static void raise_queue(void)
{
    pid_t self = getpid(), pid = fork();

    if (pid == 0)
        _exit(sigqueue(self, SIGUSR1, (union sigval){ .sival_int = 1 }));
}

static void raise_to_thread(void)
{
    pid_t self = getpid(), pid = fork();

    if (pid == 0)
        _exit(tgkill(self, self, SIGTERM));
}

/* In a child: 0 if it was not sent, 1 if it was, 2 if it was another signal. */
static int judge_signal(void (*raise_it)(void), int signum)
{
    struct pollfd ready = { .events = POLLIN };
    struct signalfd_siginfo info;
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        sigset_t mask;

        (void)sigfillset(&mask);
        (void)sigdelset(&mask, SIGCHLD);
        (void)sigdelset(&mask, SIGABRT);
        (void)sigprocmask(SIG_SETMASK, &mask, NULL);
        ready.fd = signalfd(-1, &mask, SFD_CLOEXEC);
        raise_it();
        if (poll(&ready, 1, 30000) != 1 || read(ready.fd, &info, sizeof(info)) != sizeof(info)
            || (int)info.ssi_signo != signum)
            _exit(2);
        _exit(runner_signal_is_sent(&info));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_what_was_sent(void **state)
{
    static const struct {
        void (*raise_it)(void);
        int signum, is_sent;
    } rows[] = {
        { raise_pipe, SIGPIPE, 0 },           { raise_file_size, SIGXFSZ, 0 },
        { raise_out_of_band, SIGURG, 0 },     { raise_input_ready, SIGIO, 0 },
        { raise_alarm, SIGALRM, 0 },          { raise_new_size, SIGWINCH, 0 },
        { raise_terminal_closed, SIGHUP, 0 }, { raise_interrupt_key, SIGINT, 0 },
        { raise_kill, SIGPIPE, 1 },           { raise_queue, SIGUSR1, 1 },
        { raise_to_thread, SIGTERM, 1 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        assert_row(judge_signal(rows[i].raise_it, rows[i].signum) == rows[i].is_sent,
                   "row %zu, signal %d", i, rows[i].signum);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_what_was_sent) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
