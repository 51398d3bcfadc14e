/* SPDX-License-Identifier: Apache-2.0 */
/* command_runner.h - further commands beside a program that is in no container
 *
 * A container has aliquot-runner as process 1. Other programs have it beside them, without a
 * program of its own, from when the first command is asked for: the monitor listens on
 * "runner.sock" of the kernel's directory and gives the socket away. It has the environment,
 * folder, limits and ids of the program, and ends with the monitor.
 */
#ifndef AQ_MONITOR_COMMAND_RUNNER_H
#define AQ_MONITOR_COMMAND_RUNNER_H

#include <sys/types.h>

#include "monitor/program.h"

struct command_runner {
    int listener; /* -1 = there are no commands */
    pid_t pid;    /* 0 = it does not run */
};

/* Listen, in the working directory. -errno; then there are no commands. */
int command_runner_open(struct command_runner *runner, struct aq_error *err);

/* Somebody has connected: start it. If that fails, who waits is sent away. */
int command_runner_start(struct command_runner *runner, const struct program *program,
                         struct aq_error *err);

/* True if this child was it; who has connected since is sent away. */
bool command_runner_reaped(struct command_runner *runner, pid_t pid);

void command_runner_close(struct command_runner *runner);

#endif
