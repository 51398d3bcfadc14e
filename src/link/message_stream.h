/* SPDX-License-Identifier: Apache-2.0 */
/* message_stream.h - messages about streams: one further connection each
 *
 * Bytes or records (link_stream.h) follow stream.hello. See message.h for the form of a message.
 */
#ifndef AQ_LINK_MESSAGE_STREAM_H
#define AQ_LINK_MESSAGE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/uuid.h"

struct msg_stream_open {
    struct uuid stream_id;
    const char *key;  /* one-time key, presented in stream.hello */
    const char *kind; /* "logs", "timed-logs", "pty", or of link/exec.h "exec", "files", "input";
                         to a proxy "app" */
    struct uuid kernel_id;
    struct uuid request_id; /* app: of the app.connect that it answers */
    bool follow;            /* logs: go on until the kernel ends */
    int64_t tail_lines;     /* logs: only the last n lines; 0 = all that is kept */
    bool only_new;          /* logs: nothing of what is kept */
    int64_t attempt;     /* logs, timed-logs: of the kernel; 0 = the newest. Older agents send the
                               newest */
    int64_t since_usec;  /* timed-logs: only lines printed then or later; 0 = all. Older agents
                            do not know the kind */
    int64_t ago_usec;    /* timed-logs: the same, so long ago by the agent's clock */
    bool timestamps;     /* timed-logs: before each line when it was printed, RFC 3339 in UTC */
    int64_t rows, cols;  /* pty, exec: size at the start; 0 = leave */
    const char *command; /* exec: JSON {"argv":["ls"],"env":{"A":"b"},"cwd":"/tmp"}; without
                                 argv a shell */
    bool tty, input;     /* exec: on a terminal; with standard input */
    bool reuse;          /* the manager can read a framed stream (link_stream.h) */
};

struct msg_stream_hello {
    struct uuid stream_id;
    const char *key;
    bool framed; /* the connection goes on after the stream */
};

struct msg_stream_refused {
    struct uuid stream_id;
    const char *kind, *text; /* "not-found", "no-terminal" ... */
};

struct msg_stream_control { /* pty, exec: either or both */
    struct uuid stream_id;
    int64_t rows, cols;
    int64_t signal; /* to the program's process group; 0 = none */
};

#endif
