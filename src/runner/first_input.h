/* SPDX-License-Identifier: Apache-2.0 */
/* first_input.h - how much of the first piece of its input a command has read
 *
 * A client whose standard input others use after it, such as the body of a loop, gives one piece
 * and keeps the rest until the command has read that. The pipe has room for a page meanwhile: it
 * can be written to again only when all of the page has been read, which epoll tells.
 */
#ifndef AQ_RUNNER_FIRST_INPUT_H
#define AQ_RUNNER_FIRST_INPUT_H

#include <stdbool.h>
#include <stddef.h>

struct first_input {
    bool is_awaited; /* nothing has been reported yet */
    bool is_shut;    /* nobody can read it any more */
    size_t given;    /* bytes in the pipe, or read from it */
};

/* Make the pipe ready, of which this is the end to write to and which is empty. It is not
 * awaited if that cannot be.
 */
void first_input_begin(struct first_input *first, int pipe);

/* True if first_input_is_read() is to be asked when the pipe can be written to. */
bool first_input_is_pending(const struct first_input *first);

/* All of it has been read, and somebody may want more. 'has_reader': the event is not EPOLLERR. */
bool first_input_is_read(struct first_input *first, int pipe, bool has_reader);

/* Bytes of it that were read so far; nothing is awaited any more, and the pipe has its usual size. */
size_t first_input_end(struct first_input *first, int pipe);

#endif
