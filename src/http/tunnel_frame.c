/* SPDX-License-Identifier: Apache-2.0 */
/* tunnel_frame.c - see tunnel_frame.h */
#include "http/tunnel_frame.h"

static size_t tunnel_frame_head_size(const struct tunnel_frame *frame)
{
    return frame->head_len < 2 ? 2 : frame->head[1] == 126 ? 4 : frame->head[1] == 127 ? 10 : 2;
}

static void tunnel_frame_read_head(struct tunnel_frame *frame)
{
    size_t size = frame->head_len;

    frame->left = size == 2 ? frame->head[1] : 0;
    for (size_t i = 2; i < size; i++)
        frame->left = frame->left << 8 | frame->head[i];
    frame->is_close = (frame->head[0] & 0xf) == WEBSOCKET_CLOSE;
    frame->head_len = 0;
}

void tunnel_frame_follow(struct tunnel_frame *frame, const char *bytes, size_t len)
{
    while (len) {
        size_t n = frame->left ? (size_t)AQ_MIN(frame->left, len) : 1;

        if (frame->left) {
            frame->left -= n;
        } else {
            frame->head[frame->head_len++] = (unsigned char)*bytes;
            if (frame->head_len == tunnel_frame_head_size(frame))
                tunnel_frame_read_head(frame);
        }
        bytes += n;
        len -= n;
    }
}

bool tunnel_frame_is_between(const struct tunnel_frame *frame)
{
    return !frame->is_close && !frame->left && !frame->head_len;
}
