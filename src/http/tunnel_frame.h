/* SPDX-License-Identifier: Apache-2.0 */
/* tunnel_frame.h - how far a tunnel is in the frames to its browser: between two of them one of
 * ours can be sent. Frames of servers, which have no mask. No allocation, no I/O.
 */
#ifndef AQ_HTTP_TUNNEL_FRAME_H
#define AQ_HTTP_TUNNEL_FRAME_H

#include "base/cleanup.h"
#include "http/websocket_frames.h"

struct tunnel_frame {
    unsigned char head[WEBSOCKET_HEAD_MAX];
    size_t head_len; /* of what came of the head */
    uint64_t left;   /* bytes of the payload that have yet to come */
    bool is_close;   /* nothing follows */
};

void tunnel_frame_follow(struct tunnel_frame *frame, const char *bytes, size_t len) AQ_UNTRUSTED;

/* Nothing of a frame has come that has not come whole, and another may follow. */
bool tunnel_frame_is_between(const struct tunnel_frame *frame);

#endif
