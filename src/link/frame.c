/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c - the unit of a control connection */
#include "link/frame.h"

#include <errno.h>

static unsigned char *frame_put(unsigned char *at, uint64_t value, int bytes)
{
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
        *at++ = (unsigned char)(value >> shift);
    return at;
}

static uint64_t frame_get(const char *at, int bytes)
{
    uint64_t value = 0;

    for (int i = 0; i < bytes; i++)
        value = value << 8 | (unsigned char)at[i];
    return value;
}

void frame_write_head(unsigned char head[FRAME_HEAD_BYTES], uint64_t seq, uint64_t ack,
                      size_t body_len)
{
    (void)frame_put(frame_put(frame_put(head, body_len + FRAME_HEAD_BYTES - 4, 4), seq, 8), ack, 8);
}

ssize_t frame_read(const char *bytes, size_t len, size_t limit, struct link_frame *ret)
{
    size_t rest;

    if (len < 4)
        return 0;
    rest = (size_t)frame_get(bytes, 4);
    if (rest < FRAME_HEAD_BYTES - 4 || rest > limit)
        return -EBADMSG;
    if (len < 4 + rest)
        return 0;
    *ret = (struct link_frame){ .seq = frame_get(bytes + 4, 8),
                                .ack = frame_get(bytes + 12, 8),
                                .body = bytes + FRAME_HEAD_BYTES,
                                .body_len = rest + 4 - FRAME_HEAD_BYTES };
    return (ssize_t)(4 + rest);
}
