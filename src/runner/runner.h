/* SPDX-License-Identifier: Apache-2.0 */
/* runner.h - the state of aliquot-runner and its parts
 *
 * One thread and one epoll set. program.c runs what the container is for,
 * connection.c serves who comes through the socket, runner.c has the loop,
 * signals and reaping.
 */
#ifndef AQ_RUNNER_RUNNER_H
#define AQ_RUNNER_RUNNER_H

#include <sys/resource.h>
#include <sys/signalfd.h>

#include "base/list.h"
#include "runner/command.h"
#include "runner/replay.h"
#include "runner/watch.h"

/* The container's program. */
struct runner_program {
    pid_t pid; /* 0 = there is none */
    bool is_ended;
    int status; /* of waitpid() */
    struct rusage usage;
    bool is_bootstrapping;            /* its bootstrap script has not succeeded yet */
    int64_t started_usec, ended_usec; /* wall clock; ended 0 = it did not end */
    int failure;                      /* errno of a start that failed, with 'text' */
    int output;                       /* of options.output; -1 = none */
    char text[RUNNER_TEXT_MAX];
    struct watch start, bootstrap, terminal,
        standard;          /* 'standard': the runner's standard output, when full */
    struct replay *replay; /* with a terminal */
};

#define SSH_CLIENTS_MAX 128

struct runner_ssh_client {
    pid_t server;
    uint32_t address;
};

/* Connections to the SSH server. Anybody who reaches the port has one before a login. */
struct runner_ssh {
    struct watch listener;
    struct runner_ssh_client clients[SSH_CLIENTS_MAX];
    size_t count;
    int64_t idle_from_usec; /* monotonic; while there is none */
};

struct runner {
    struct options options;
    int epoll;
    struct watch signals, listener;
    struct runner_ssh ssh;
    struct runner_program program;
    struct list connections;
    int connection_count;
    bool is_over; /* leave the loop */
};

/* Run until the program ends; standard error becomes what standard output is. Returns
 * the exit status of the process, or -errno if the runner itself could not start.
 */
int runner_run(const struct options *options, struct aq_error *err);

/* Another process has sent it on purpose, and the program shall get it: neither the Linux kernel
 * (a terminal's end, a limit of CPU time, a descriptor's owner) nor this process itself, in whose
 * name the Linux kernel raises SIGPIPE when a reader has gone and SIGXFSZ at RLIMIT_FSIZE.
 */
bool runner_signal_is_sent(const struct signalfd_siginfo *info);

/* ---- preflight.c ---- */

/* Run options->check to its end, for 30 seconds at most. 0, or -errno with the last line
 * of its standard error.
 */
int preflight_run(const struct options *options, char text[RUNNER_TEXT_MAX]);

/* ---- home_files.c ---- */

/* Copy options->home_from into options->home_to, if they are set; waits. */
void home_files_copy(const struct options *options);

/* ---- ssh.c ---- */

/* Listen, if options->ssh is set. */
void ssh_open(struct runner *runner);

/* True if 'pid', which has ended, was a server. */
bool ssh_reaped(struct runner *runner, pid_t pid);

/* How long to wait until the container ends as nobody was connected; 0 = now, -1 = not foreseen. */
int ssh_idle_msec(const struct runner *runner);

/* ---- program.c ---- */

/* A program that cannot be started counts as ended. */
void program_start(struct runner *runner);
void program_signal(struct runner *runner, int signum);
void program_reaped(struct runner *runner, int status, const struct rusage *usage);

/* Its last words, and its report. Returns the exit status for the runner. */
int program_finish(struct runner *runner);

/* ---- connection.c ---- */

void connections_open(struct runner *runner);

/* Say HELLO again to those who have asked for nothing yet: the bootstrap script has succeeded. */
void connections_greet(struct runner *runner);

/* 'pid' has ended, which may have been a command. */
void connections_reaped(struct runner *runner, pid_t pid, int status);

/* The program's terminal has written. */
void connections_output(struct runner *runner, const char *bytes, size_t len);

/* Give terminals what they did not take of what was typed. True while one does not. */
bool connections_type_on(struct runner *runner);

/* SIGTERM or SIGHUP to all commands. */
void connections_signal(struct runner *runner, int signum);

/* Say that the program has ended, and close. */
void connections_close(struct runner *runner, int status);

/* Set the size of a terminal. */
void terminal_resize(int terminal, uint16_t rows, uint16_t cols);

#endif
