/* SPDX-License-Identifier: Apache-2.0 */
/* runner_client.h - what the agent asks of aliquot-runner inside a container
 *
 * Over FOLDER/runner.sock (runner/protocol.h), on the loop: further commands; over
 * FOLDER/monitor.sock the standard input of the program. Callbacks never come from
 * within a call.
 */
#ifndef AQ_AGENT_RUNTIME_RUNNER_CLIENT_H
#define AQ_AGENT_RUNTIME_RUNNER_CLIENT_H

#include "agent/runtime/runtime.h"

#define RUNNER_SOCKET "runner.sock"

struct runner_command;

struct runner_command_spec {
    bool is_files;           /* 'argv' is for runner/files.h, and not a program */
    bool in_container;       /* it is one of ours that the container has */
    const char *const *argv; /* empty = a shell */
    size_t argc;
    const char *const *envp; /* "NAME=value", added to the container's own */
    size_t envc;
    const char *cwd; /* NULL = the program's */
    bool tty, has_input, reports_input;
    uint16_t rows, cols;
};

struct runner_command_ops {
    void (*on_started)(void *data);
    void (*on_output)(void *data, bool is_errors, const char *bytes, size_t len);
    void (*on_drain)(void *data); /* all input has been taken */
    /* With reports_input, before on_started(): 0 bytes, the command's first input will be
     * reported on (runner/protocol.h); and later the report. May be NULL.
     */
    void (*on_taken)(void *data, uint32_t bytes, bool is_all);
    /* Exactly one of the two, then runner_command_free(). 'status' is of
     * waitpid(). Failed: it could not be started (ENOENT: no such program), or
     * ECONNRESET: the container has ended.
     */
    void (*on_ended)(void *data, int status);
    void (*on_failed)(void *data, const struct aq_error *err);
};

/* Run a command in the container of 'directory', whose process 1 is a child of 'keeper'; or
 * beside the process of 'directory', with 'keeper' 0. -ENOTCONN if no runner is there, -E2BIG if
 * the command is longer than a packet. 'is_files' fails with "old-runner" in a container that was
 * started by an agent that had none of it.
 */
int runner_command_new(uv_loop_t *loop, const char *directory, pid_t keeper,
                       const struct runner_command_spec *spec, const struct runner_command_ops *ops,
                       void *data, struct runner_command **ret, struct aq_error *err);

/* The standard input of the program of 'directory', of whom its monitor keeps the other end:
 * as a command that says on_started() and writes nothing. Its release ends the input.
 */
int runner_feed_new(uv_loop_t *loop, const char *directory, const struct runner_command_ops *ops,
                    void *data, struct runner_command **ret, struct aq_error *err);

/* Queue input. 1 = wait for on_drain() before giving more; 0, or -errno. */
int runner_command_input(struct runner_command *command, const char *bytes, size_t len);
void runner_command_end_input(struct runner_command *command);
void runner_command_resize(struct runner_command *command, uint16_t rows, uint16_t cols);
void runner_command_signal(struct runner_command *command, int signum);
/* Stop and go on calling on_output(); the command waits meanwhile. */
void runner_command_pause(struct runner_command *command, bool paused);
/* No callback follows; a command that runs gets SIGHUP. NULL is fine. */
void runner_command_free(struct runner_command *command);

#endif
