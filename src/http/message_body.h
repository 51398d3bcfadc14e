/* SPDX-License-Identifier: Apache-2.0 */
/* message_body.h - where the body of a message ends: inner part of message.c
 *
 * Bodies are decoded here rather than by http_parser, whose library in Debian
 * is built without its strict mode: it takes any two bytes for the line break
 * after a chunk, and a bare LF inside a chunk extension.
 */
#ifndef AQ_HTTP_MESSAGE_BODY_H
#define AQ_HTTP_MESSAGE_BODY_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "http/message.h"

enum body_state {
    BODY_LENGTH, /* 'left' bytes follow */
    BODY_UNTIL_CLOSE,
    BODY_CHUNK_SIZE, /* hex digits */
    BODY_CHUNK_EXT,
    BODY_CHUNK_SIZE_LF,
    BODY_CHUNK_DATA, /* 'left' bytes of this chunk follow */
    BODY_CHUNK_CR,
    BODY_CHUNK_LF,
    BODY_TRAILER_START,
    BODY_TRAILER,
    BODY_TRAILER_LF,
    BODY_LAST_LF,
    BODY_DONE,
};

struct body_reader {
    enum body_state state;
    uint64_t left;
    uint64_t total, max; /* decoded bytes */
    unsigned digits;     /* of the chunk size */
    unsigned extra;      /* bytes of extensions and trailers */
};

/* As message_feed(), once the head is through. */
ssize_t body_read(struct body_reader *body, const char *bytes, size_t len,
                  struct message_piece *ret, struct aq_error *err) AQ_UNTRUSTED;

#endif
