/* SPDX-License-Identifier: Apache-2.0 */
/* command_stream.h - a command in a kernel's container, over a link stream to its agent
 *
 * The manager's side of link/exec.h: commands, transfers of files, and the input of a program.
 * Its input comes from a pump, of which it is the kernel's end; its output goes to the owner, who
 * gives it to the pump in the client's words. To open one, and each byte, is an access of the
 * session (core/session_use.h). Loop's thread only; callbacks never come from within a call, and
 * each may free the stream.
 */
#ifndef AQ_MANAGER_STREAM_COMMAND_STREAM_H
#define AQ_MANAGER_STREAM_COMMAND_STREAM_H

#include "base/pump.h"
#include "manager/call/api.h"

struct command_stream;

/* What of a stream counts as work in the session (core/idle.h). */
enum command_work {
    COMMAND_WORK_BYTES,   /* each byte, in both directions */
    COMMAND_WORK_INPUT,   /* what goes in, as of a terminal: programs print by themselves */
    COMMAND_WORK_RUNNING, /* that it is open: somebody waits for the command */
    COMMAND_WORK_OWN      /* its owner counts */
};

struct command_stream_ops {
    enum command_work work;         /* of a command on a terminal COMMAND_WORK_INPUT in any case */
    void (*on_open)(void *data);    /* the agent has connected; may be NULL */
    void (*on_started)(void *data); /* the command runs; may be NULL */
    /* If the command's text has "report_input": so much of its first input was read, and it may
     * want more; 0 bytes before on_started() if that will be said. May be NULL.
     */
    void (*on_taken)(void *data, uint32_t bytes, bool is_all);
    void (*on_output)(void *data, const char *bytes, size_t len);
    void (*on_output_end)(void *data); /* and the command runs on; may be NULL */
    void (*on_errors)(void *data, const char *bytes, size_t len); /* may be NULL */
    /* One of these, once, and last; then command_stream_free(). 'code' is an exit status, or
     * 128 + 'signal'. 'kind' says why it failed (kinds of the agent, of the link and
     * "session-ended").
     */
    void (*on_ended)(void *data, int code, int signal);
    void (*on_failed)(void *data, const char *kind, const char *text);
};

/* 'open' needs kind, command and what else the kind takes; the kernel is filled in. The stream is
 * the pump's PUMP_KERNEL from now until it is freed: joined, opened when the agent has connected,
 * told to have drained, and parted from here. -EINVAL for a kernel that does not run, -ENOTCONN if
 * its agent is away.
 */
int command_stream_open(struct core *core, const struct kernel *kernel,
                        struct msg_stream_open *open, struct pump *pump,
                        const struct command_stream_ops *ops, void *data,
                        struct command_stream **ret, struct aq_error *err);

/* A terminal's size, or a signal; nothing before the agent has connected. */
int command_stream_control(struct command_stream *stream, int64_t rows, int64_t cols,
                           int64_t signal, struct aq_error *err);

/* The command gets SIGHUP if it runs. NULL is fine. */
void command_stream_free(struct command_stream *stream);

#endif
