/* SPDX-License-Identifier: Apache-2.0 */
/* Where the body of a message ends: inner part of message.c. */
#include "http/message_body.h"

#include <errno.h>

#define EXTRA_MAX 4096 /* chunk extensions and trailers of one message */
#define DIGITS_MAX 15  /* of a chunk size: stays below 2^60 */

static int message_body_fail_chunk(struct aq_error *err, const char *what)
{
    return aq_fail_kind(err, EBADMSG, "generic-bad-request", "chunked body: %s", what);
}

static int message_body_fail_size(struct aq_error *err, uint64_t max)
{
    return aq_fail_kind(err, EFBIG, "request-too-large", "the body is larger than %llu bytes",
                        (unsigned long long)max);
}

static int message_body_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int message_body_read_size(struct body_reader *body, char c, struct aq_error *err)
{
    int digit = message_body_hex_digit(c);

    if (digit >= 0) {
        if (++body->digits > DIGITS_MAX)
            return message_body_fail_chunk(err, "a chunk size has too many digits");
        body->left = body->left * 16 + (unsigned)digit;
        return 0;
    }
    if (!body->digits || (c != '\r' && c != ';'))
        return message_body_fail_chunk(err, "a chunk size is not hexadecimal");
    body->state = c == ';' ? BODY_CHUNK_EXT : BODY_CHUNK_SIZE_LF;
    return 0;
}

static int message_body_begin_chunk(struct body_reader *body, struct aq_error *err)
{
    if (!body->left) {
        body->state = BODY_TRAILER_START;
        return 0;
    }
    if (body->left > body->max - body->total)
        return message_body_fail_size(err, body->max);
    body->state = BODY_CHUNK_DATA;
    return 0;
}

/* One byte of an extension or trailer line. */
static int message_body_read_extra(struct body_reader *body, char c, enum body_state after_cr,
                                   struct aq_error *err)
{
    if (++body->extra > EXTRA_MAX)
        return message_body_fail_chunk(err, "extensions and trailers are too long");
    if (c == '\r')
        body->state = after_cr;
    else if ((c >= 0 && c < 0x20 && c != '\t') || c == 0x7f)
        return message_body_fail_chunk(err, "control character in an extension or trailer");
    return 0;
}

static int message_body_expect(struct body_reader *body, char c, char want, enum body_state next,
                               struct aq_error *err)
{
    if (c != want)
        return message_body_fail_chunk(err, "a line does not end in CR LF");
    body->state = next;
    return 0;
}

/* One byte between the data of chunks. */
static int message_body_read_framing(struct body_reader *body, char c, struct aq_error *err)
{
    switch (body->state) {
    case BODY_CHUNK_SIZE:
        return message_body_read_size(body, c, err);
    case BODY_CHUNK_EXT:
        return message_body_read_extra(body, c, BODY_CHUNK_SIZE_LF, err);
    case BODY_CHUNK_SIZE_LF:
        return c == '\n' ? message_body_begin_chunk(body, err)
                         : message_body_fail_chunk(err, "a line does not end in CR LF");
    case BODY_CHUNK_CR:
        return message_body_expect(body, c, '\r', BODY_CHUNK_LF, err);
    case BODY_CHUNK_LF:
        body->left = body->digits = 0;
        return message_body_expect(body, c, '\n', BODY_CHUNK_SIZE, err);
    case BODY_TRAILER_START:
        if (c == ' ' || c == '\t')
            return message_body_fail_chunk(err, "folded trailer line");
        body->state = BODY_TRAILER;
        return message_body_read_extra(body, c, BODY_LAST_LF, err);
    case BODY_TRAILER:
        return message_body_read_extra(body, c, BODY_TRAILER_LF, err);
    case BODY_TRAILER_LF:
        return message_body_expect(body, c, '\n', BODY_TRAILER_START, err);
    case BODY_LAST_LF:
        return message_body_expect(body, c, '\n', BODY_DONE, err);
    case BODY_LENGTH:
    case BODY_UNTIL_CLOSE:
    case BODY_CHUNK_DATA:
    case BODY_DONE:
        break;
    }
    return message_body_fail_chunk(err, "read out of turn");
}

/* A piece of data; its length. */
static ssize_t message_body_take_data(struct body_reader *body, const char *bytes, size_t len,
                                      struct message_piece *ret)
{
    size_t n = body->state == BODY_UNTIL_CLOSE || len < body->left ? len : (size_t)body->left;

    *ret = (struct message_piece){ MESSAGE_BODY, bytes, n };
    body->total += n;
    if (body->state != BODY_UNTIL_CLOSE)
        body->left -= n;
    if (!body->left && body->state == BODY_LENGTH)
        body->state = BODY_DONE;
    if (!body->left && body->state == BODY_CHUNK_DATA)
        body->state = BODY_CHUNK_CR;
    return (ssize_t)n;
}

ssize_t body_read(struct body_reader *body, const char *bytes, size_t len,
                  struct message_piece *ret, struct aq_error *err)
{
    size_t used = 0;
    int r;

    while (body->state != BODY_DONE && used < len) {
        if (body->state == BODY_UNTIL_CLOSE && len - used > body->max - body->total)
            return message_body_fail_size(err, body->max);
        if (body->state == BODY_LENGTH || body->state == BODY_UNTIL_CLOSE
            || body->state == BODY_CHUNK_DATA)
            return (ssize_t)used + message_body_take_data(body, bytes + used, len - used, ret);
        r = message_body_read_framing(body, bytes[used], err);
        if (r < 0)
            return r;
        used++;
    }
    *ret = (struct message_piece){ body->state == BODY_DONE ? MESSAGE_END : MESSAGE_MORE, NULL, 0 };
    return (ssize_t)used;
}
