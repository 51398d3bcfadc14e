/* SPDX-License-Identifier: Apache-2.0 */
/* input.h - the standard input of a program: a pipe that one client fills
 *
 * The program waits for its input until a client has said MONITOR_FEED and what it
 * then sends. Nothing is lost: while the pipe is full, no more is read from the
 * client. The input ends when the client says so or goes, and where none came
 * in time.
 */
#ifndef AQ_MONITOR_INPUT_H
#define AQ_MONITOR_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "monitor/protocol.h"

struct input {
    int pipe;  /* its end for writing; -1 = the input has ended, or there is none */
    int timer; /* readable when no client is waited for any more; -1 = none */
    int slot;  /* of the client that gives it; -1 = none has come */
    bool is_ending;
    size_t len, at; /* of 'held', and from where on it is not written */
    char held[MONITOR_MESSAGE_MAX];
};

/* Take the pipe, which does not block (-1 = there is none), and begin to wait. */
void input_open(struct input *input, int pipe, int64_t wait_sec);
void input_close(struct input *input);

/* Nobody gives it yet. */
bool input_is_awaited(const struct input *input);

/* A client wants to give it; false if it may not. */
bool input_take(struct input *input, int slot);

/* The client's bytes, at most a packet, and only after all before were written. True once
 * they are; false while the pipe is full: then input_write() when it is not.
 */
bool input_give(struct input *input, const char *bytes, size_t len);
bool input_write(struct input *input);

/* It ends after what was given. */
void input_end(struct input *input);

#endif
