/* SPDX-License-Identifier: Apache-2.0 */
/* exec.h - what goes over streams of kind "exec", a command in a container, "files", files into
 * and out of it as of a command (its argv is for runner/files.h), and "input", the standard
 * input of a kernel's program
 *
 * Frames: a type byte, the length of the rest in 4 bytes (big endian), the
 * rest. The agent says STARTED, OUTPUT and ERRORS, at last ENDED; or FAILED. An empty OUTPUT is
 * the end of a command's output that comes before its own.
 * The manager says INPUT and END_INPUT; sizes and signals are stream.control.
 *
 * With "input" STARTED means that the program's input is ours now, and neither
 * OUTPUT, ERRORS nor ENDED come. A stream that breaks off ends the input.
 */
#ifndef AQ_LINK_EXEC_H
#define AQ_LINK_EXEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"

#define EXEC_PAYLOAD_MAX 65536
#define EXEC_HEAD_SIZE 5

enum exec_type {
    EXEC_STARTED = 'b',
    EXEC_OUTPUT = 'o',
    EXEC_ERRORS = 'e',
    EXEC_ENDED = 'x',  /* 1 byte exit code (128+n for signal n), 1 byte signal or 0 */
    EXEC_TAKEN = 't',  /* 4 bytes, big endian: how much of its first input the command has read
                          (runner/protocol.h), 1 byte: it may want more. 0 and 0, before
                          STARTED: that will be said */
    EXEC_FAILED = 'f', /* a kind (error.h), NUL, text */
    EXEC_INPUT = 'i',
    EXEC_END_INPUT = 'd',
};

/* Append one frame; 'len' at most EXEC_PAYLOAD_MAX. */
void exec_frame_add(struct strbuf *out, enum exec_type type, const void *bytes, size_t len);

/* The whole frames among 'bytes' and what was kept of earlier calls: call 'fn'
 * for each, keep the rest in 'held'. 'fn' returns 0 to go on, another value
 * to stop, which is returned; the bytes are gone then. -EPROTO for a frame
 * that is too long.
 */
typedef int exec_frame_fn(void *data, enum exec_type type, const char *bytes, size_t len);
int exec_frames_read(struct strbuf *held, const char *bytes, size_t len, exec_frame_fn *fn,
                     void *data) AQ_UNTRUSTED;

#endif
