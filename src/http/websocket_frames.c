/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of one side of a WebSocket (RFC 6455, section 5). */
#include "http/websocket_frames.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/utf8.h"

#define FIN 0x80u
#define RESERVED 0x70u
#define MASKED 0x80u
#define KEEP_MAX 65536 /* memory of messages that is kept for the next one */

/* Of the closes that we send by ourselves; the rest is in websocket.h. */
enum { NO_STATUS = 1005, PROTOCOL_ERROR = 1002, NOT_UTF8 = 1007, TOO_BIG = 1009, INTERNAL = 1011 };

void websocket_frames_init(struct websocket_frames *f, bool is_server, size_t message_max)
{
    *f = (struct websocket_frames){ .is_server = is_server,
                                    .message_max = message_max,
                                    .out = STRBUF_INIT,
                                    .control = STRBUF_INIT,
                                    .message = STRBUF_INIT };
}

void websocket_frames_done(struct websocket_frames *f)
{
    strbuf_done(&f->out);
    strbuf_done(&f->control);
    strbuf_done(&f->message);
}

/* ---- sending ---- */

static void websocket_frames_apply_mask(char *bytes, size_t len, const unsigned char mask[4],
                                        unsigned at)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)((unsigned char)bytes[i] ^ mask[(at + i) % 4]);
}

/* Returns the length of the head. */
static size_t websocket_frames_write_head(unsigned char head[WEBSOCKET_HEAD_MAX],
                                          enum websocket_opcode opcode, uint64_t len)
{
    size_t extra = len < 126 ? 0 : len <= UINT16_MAX ? 2 : 8;

    head[0] = (unsigned char)(FIN | opcode);
    head[1] = (unsigned char)(extra == 0 ? len : extra == 2 ? 126 : 127);
    for (size_t i = 0; i < extra; i++)
        head[2 + i] = (unsigned char)(len >> (8 * (extra - 1 - i)));
    return 2 + extra;
}

void websocket_frames_add(struct websocket_frames *f, enum websocket_opcode opcode,
                          const void *bytes, size_t len)
{
    unsigned char head[WEBSOCKET_HEAD_MAX], mask[4];
    size_t head_len = websocket_frames_write_head(head, opcode, len);

    if (f->close_sent)
        return;
    if (f->is_server) {
        strbuf_add(&f->out, head, head_len);
        strbuf_add(&f->out, bytes, len);
        return;
    }
    head[1] |= MASKED;
    if (getrandom(mask, sizeof(mask), 0) != (ssize_t)sizeof(mask))
        f->out.failed = true;
    strbuf_add(&f->out, head, head_len);
    strbuf_add(&f->out, mask, sizeof(mask));
    strbuf_add(&f->out, bytes, len);
    if (strbuf_ok(&f->out))
        websocket_frames_apply_mask(f->out.data + f->out.len - len, len, mask, 0);
}

void websocket_frames_add_pong(struct websocket_frames *f)
{
    if (f->owes_pong)
        websocket_frames_add(f, WEBSOCKET_PONG, f->pong, f->pong_len);
    f->owes_pong = false;
}

void websocket_frames_close(struct websocket_frames *f, uint16_t code, const char *reason)
{
    unsigned char payload[WEBSOCKET_CONTROL_MAX] = { (unsigned char)(code >> 8),
                                                     (unsigned char)code };
    size_t len = reason ? strnlen(reason, sizeof(payload) - 2) : 0;

    if (f->close_sent)
        return;
    if (reason)
        memcpy(payload + 2, reason, len);
    websocket_frames_add(f, WEBSOCKET_CLOSE, payload, code == NO_STATUS ? 0 : len + 2);
    f->close_sent = true;
    f->sent_code = code;
}

/* ---- receiving ---- */

/* The peer broke the rules, or memory is short: say so and read no further. */
static void websocket_frames_refuse(struct websocket_frames *f, uint16_t code, const char *reason)
{
    websocket_frames_close(f, code, reason);
    f->over = true;
}

static void websocket_frames_refuse_size(struct websocket_frames *f)
{
    char reason[WEBSOCKET_CONTROL_MAX];

    (void)snprintf(reason, sizeof(reason),
                   "the message exceeds %zu bytes, the limit here; send smaller ones",
                   f->message_max);
    websocket_frames_refuse(f, TOO_BIG, reason);
}

/* Of the head, as far as it is known. */
static size_t websocket_frames_head_size(const struct websocket_frames *f)
{
    unsigned len = f->head[1] & 0x7fu;

    if (f->head_len < 2)
        return 2;
    return 2u + (len == 126 ? 2 : len == 127 ? 8 : 0) + (f->head[1] & MASKED ? 4 : 0);
}

static enum websocket_opcode websocket_frames_opcode_of(const struct websocket_frames *f)
{
    return (enum websocket_opcode)(f->head[0] & 0x0fu);
}

static bool websocket_frames_is_control(const struct websocket_frames *f)
{
    return (websocket_frames_opcode_of(f) & WEBSOCKET_CLOSE) != 0;
}

/* False for a length that has a shorter form, or is not one. */
static bool websocket_frames_read_length(const struct websocket_frames *f, uint64_t *ret)
{
    unsigned len = f->head[1] & 0x7fu;
    size_t extra = len == 126 ? 2 : len == 127 ? 8 : 0;
    uint64_t value = extra ? 0 : len;

    for (size_t i = 0; i < extra; i++)
        value = value << 8 | f->head[2 + i];
    *ret = value;
    return extra == 0 || (extra == 2 && value >= 126)
           || (extra == 8 && value > UINT16_MAX && value <= INT64_MAX);
}

/* Whether this frame may come now. */
static bool websocket_frames_is_in_order(const struct websocket_frames *f)
{
    switch (websocket_frames_opcode_of(f)) {
    case WEBSOCKET_CONTINUATION:
        return f->in_message;
    case WEBSOCKET_TEXT:
    case WEBSOCKET_BINARY:
        return !f->in_message;
    case WEBSOCKET_CLOSE:
    case WEBSOCKET_PING:
    case WEBSOCKET_PONG:
        return f->head[0] & FIN && f->left <= WEBSOCKET_CONTROL_MAX;
    default:
        return false;
    }
}

/* The head is complete. */
static void websocket_frames_begin_frame(struct websocket_frames *f)
{
    bool is_masked = f->head[1] & MASKED;

    if (f->head[0] & RESERVED || is_masked != f->is_server
        || !websocket_frames_read_length(f, &f->left) || !websocket_frames_is_in_order(f)) {
        websocket_frames_refuse(f, PROTOCOL_ERROR, "the frame violates RFC 6455");
        return;
    }
    f->in_frame = true;
    f->mask_at = 0;
    if (websocket_frames_is_control(f)) {
        strbuf_clear(&f->control);
        return;
    }
    if (websocket_frames_opcode_of(f) != WEBSOCKET_CONTINUATION) {
        if (f->message.cap > KEEP_MAX)
            strbuf_done(&f->message);
        strbuf_clear(&f->message);
        f->in_message = true;
        f->is_text = websocket_frames_opcode_of(f) == WEBSOCKET_TEXT;
    }
    if (f->left > f->message_max - f->message.len)
        websocket_frames_refuse_size(f);
}

static void websocket_frames_take_payload(struct websocket_frames *f, const char *bytes, size_t len)
{
    struct strbuf *to = websocket_frames_is_control(f) ? &f->control : &f->message;

    strbuf_add(to, bytes, len);
    if (!strbuf_ok(to)) {
        f->out.failed = true;
        websocket_frames_refuse(f, INTERNAL, "out of memory");
        return;
    }
    if (f->is_server)
        websocket_frames_apply_mask(to->data + to->len - len, len,
                                    f->head + websocket_frames_head_size(f) - 4, f->mask_at);
    f->mask_at = (unsigned)((f->mask_at + len) % 4);
    f->left -= len;
}

static bool websocket_frames_is_code(uint16_t code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014)
           || (code >= 3000 && code <= 4999);
}

static void websocket_frames_take_close(struct websocket_frames *f)
{
    const struct strbuf *body = &f->control;
    uint16_t code = NO_STATUS;

    if (body->len >= 2)
        code = (uint16_t)((unsigned char)body->data[0] << 8 | (unsigned char)body->data[1]);
    if (body->len == 1 || (body->len >= 2 && !websocket_frames_is_code(code))) {
        websocket_frames_refuse(f, PROTOCOL_ERROR, "the close frame violates RFC 6455");
        return;
    }
    if (body->len > 2 && !utf8_is_valid(body->data + 2, body->len - 2)) {
        websocket_frames_refuse(f, NOT_UTF8, "the text is not valid UTF-8");
        return;
    }
    f->close_received = true;
    f->received_code = code;
    websocket_frames_close(f, code, NULL);
    f->over = true;
}

static void websocket_frames_take_ping(struct websocket_frames *f)
{
    f->owes_pong = true;
    f->pong_len = f->control.len;
    memcpy(f->pong, f->control.data, f->pong_len);
}

/* The payload is complete. */
static void websocket_frames_end_frame(struct websocket_frames *f, struct websocket_message *ret)
{
    f->in_frame = false;
    f->head_len = 0;
    if (websocket_frames_opcode_of(f) == WEBSOCKET_CLOSE)
        websocket_frames_take_close(f);
    else if (websocket_frames_opcode_of(f) == WEBSOCKET_PING)
        websocket_frames_take_ping(f);
    if (websocket_frames_is_control(f) || !(f->head[0] & FIN))
        return;
    f->in_message = false;
    if (f->is_text && !utf8_is_valid(f->message.data, f->message.len))
        websocket_frames_refuse(f, NOT_UTF8, "the text is not valid UTF-8");
    else
        *ret = (struct websocket_message){ .is_text = f->is_text,
                                           .bytes = f->message.data,
                                           .len = f->message.len };
}

size_t websocket_frames_read(struct websocket_frames *f, const char *bytes, size_t len,
                             struct websocket_message *ret)
{
    size_t used = 0;

    *ret = (struct websocket_message){ .bytes = NULL };
    while (used < len && !f->over && !ret->bytes) {
        size_t wanted = f->in_frame ? (size_t)AQ_MIN(f->left, (uint64_t)SIZE_MAX)
                                    : websocket_frames_head_size(f) - f->head_len;
        size_t n = AQ_MIN(wanted, len - used);

        if (f->in_frame) {
            websocket_frames_take_payload(f, bytes + used, n);
        } else {
            memcpy(f->head + f->head_len, bytes + used, n);
            f->head_len += n;
            if (f->head_len >= 2 && f->head_len == websocket_frames_head_size(f))
                websocket_frames_begin_frame(f);
        }
        used += n;
        if (f->in_frame && f->left == 0 && !f->over)
            websocket_frames_end_frame(f, ret);
    }
    return f->over ? len : used;
}

const char *websocket_frames_get_reason(const struct websocket_frames *f, size_t *ret_len)
{
    *ret_len = f->close_received && f->control.len > 2 ? f->control.len - 2 : 0;
    return *ret_len ? f->control.data + 2 : "";
}
