/* SPDX-License-Identifier: Apache-2.0 */
/* websocket_frames.h - the frames of one side of a WebSocket (RFC 6455, section 5)
 *
 * No sockets: bytes go in, whole messages come out, and what has to be sent
 * is collected in 'out'. Fragments are joined, closes echoed; a peer that breaks
 * the rules gets a close that says which. Of several pings only the newest is
 * owed a pong (section 5.5.3).
 */
#ifndef AQ_HTTP_WEBSOCKET_FRAMES_H
#define AQ_HTTP_WEBSOCKET_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

enum websocket_opcode {
    WEBSOCKET_CONTINUATION = 0,
    WEBSOCKET_TEXT = 1,
    WEBSOCKET_BINARY = 2,
    WEBSOCKET_CLOSE = 8,
    WEBSOCKET_PING = 9,
    WEBSOCKET_PONG = 10,
};

#define WEBSOCKET_HEAD_MAX 14
#define WEBSOCKET_CONTROL_MAX 125 /* bytes in a ping, pong or close */

struct websocket_frames {
    bool is_server;     /* the peer masks, we do not */
    size_t message_max; /* bytes of a message received */
    struct strbuf out;  /* to be sent; the caller takes it from here */
    /* the frame that is being read */
    unsigned char head[WEBSOCKET_HEAD_MAX];
    size_t head_len;
    bool in_frame; /* its head is complete */
    uint64_t left; /* bytes of its payload that have yet to come */
    unsigned mask_at;
    struct strbuf control; /* its payload, if it is a control frame */
    /* the message that is being read */
    bool in_message, is_text;
    struct strbuf message;
    bool owes_pong; /* of these bytes; a peer that reads none of them costs no more */
    unsigned char pong[WEBSOCKET_CONTROL_MAX];
    size_t pong_len;
    /* closes */
    bool over; /* nothing is read any more */
    bool close_sent, close_received;
    uint16_t sent_code, received_code;
};

struct websocket_message {
    bool is_text;      /* valid UTF-8 then */
    const char *bytes; /* until the next call; NULL = there is none */
    size_t len;
};

void websocket_frames_init(struct websocket_frames *f, bool is_server, size_t message_max);
void websocket_frames_done(struct websocket_frames *f);

/* Read up to the end of the first message in bytes[len], or all; returns how
 * many bytes that were. If memory is short, 'out' has failed afterwards.
 */
size_t websocket_frames_read(struct websocket_frames *f, const char *bytes, size_t len,
                             struct websocket_message *ret) AQ_UNTRUSTED;

/* Add one frame to 'out', a whole message or a ping. Not after a close. If
 * there is no memory (or no randomness for the mask), 'out' has failed.
 */
void websocket_frames_add(struct websocket_frames *f, enum websocket_opcode opcode,
                          const void *bytes, size_t len);

/* Add the pong that is owed, if there is one. */
void websocket_frames_add_pong(struct websocket_frames *f);

/* Add a close, once. 'reason' may be NULL; what does not fit in is cut. */
void websocket_frames_close(struct websocket_frames *f, uint16_t code, const char *reason);

/* Nothing is left to do but to send 'out': both sides have closed, or the peer broke the rules. */
static inline bool websocket_frames_is_over(const struct websocket_frames *f)
{
    return f->over;
}

/* How it ended: the code of the peer's close, or of ours for what the peer did wrong. */
static inline uint16_t websocket_frames_get_code(const struct websocket_frames *f)
{
    return f->close_received ? f->received_code : f->sent_code;
}

/* What the peer's close says in words, valid UTF-8 without an end of its own; "" if nothing. */
const char *websocket_frames_get_reason(const struct websocket_frames *f, size_t *ret_len);

#endif
