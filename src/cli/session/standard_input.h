/* SPDX-License-Identifier: Apache-2.0 */
/* standard_input.h - this program's standard input, read on the loop for a session
 *
 * Terminals, pipes and sockets are waited for, files are read by a thread of the
 * loop. Descriptors get back the flags that the loop has changed.
 *
 * Input may be held: one piece of it is peeked at and left in the pipe, file or socket, for its
 * next reader, until standard_input_take().
 */
#ifndef AQ_CLI_SESSION_STANDARD_INPUT_H
#define AQ_CLI_SESSION_STANDARD_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/error.h"

#define STANDARD_INPUT_MAX 16384
#define STANDARD_INPUT_HELD_MAX 4096 /* bytes of the piece; as runner/protocol.h has it */
#define STANDARD_INPUT_CHANNEL 0     /* as manager/stream/exec_rest.c numbers them */

/* 'message' is the channel's byte and what was read, as a WebSocket carries it; it lives
 * until the function returns. 'len' 0: the input has ended. Not called from within
 * a call below.
 */
typedef void standard_input_fn(void *data, const char *message, size_t len);

struct standard_input {
    uv_loop_t *loop; /* NULL = not open */
    standard_input_fn *fn;
    void *data;
    int saved_flags;
    bool has_poll, is_reading, is_paused, is_ended;
    bool is_held, is_shown;   /* 'shown': the piece has been given */
    bool is_closing, is_open; /* the poll's handle */
    uv_poll_t poll;
    uv_fs_t read;
    char message[1 + STANDARD_INPUT_MAX];
};

/* Somebody gives us input: it is no terminal, not closed and not /dev/null. */
bool standard_input_is_given(void);

/* Begins paused. */
int standard_input_open(struct standard_input *input, uv_loop_t *loop, standard_input_fn *fn,
                        void *data, struct aq_error *err);

/* Before any is read: hold it. False for a terminal and what else cannot be looked at. */
bool standard_input_hold(struct standard_input *input);

/* Read so many bytes of the piece for good; with 'more' nothing is held from then on. */
void standard_input_take(struct standard_input *input, size_t bytes, bool more);

void standard_input_pause(struct standard_input *input, bool paused);

/* Runs the loop until nothing of it is left there. One that was never opened is fine. */
void standard_input_close(struct standard_input *input);

/* All of it to standard output or errors, which may share their flags with standard
 * input. 0 or -errno.
 */
int standard_output_write(int fd, const char *bytes, size_t len);

#endif
