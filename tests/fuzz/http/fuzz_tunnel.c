/* SPDX-License-Identifier: Apache-2.0 */
/* Frames from a manager to a browser, in pieces whose size the first byte says: wherever they are
 * cut, the tunnel knows whether a frame of its own can be sent.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/tunnel_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Are these whole frames, the last of which is no close? Read at once, and not followed. */
static bool fuzz_are_whole(const uint8_t *bytes, size_t len)
{
    bool is_close = false;

    while (len) {
        size_t more = len < 2 ? 0 : bytes[1] == 126 ? 2 : bytes[1] == 127 ? 8 : 0;
        uint64_t payload = 0;

        if (len < 2 + more)
            return false;
        for (size_t i = 0; i < more; i++)
            payload = payload << 8 | bytes[2 + i];
        if (!more)
            payload = bytes[1];
        if (len - 2 - more < payload)
            return false;
        is_close = (bytes[0] & 0xf) == WEBSOCKET_CLOSE;
        bytes += 2 + more + payload;
        len -= 2 + more + payload;
    }
    return !is_close;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tunnel_frame frame = { .head_len = 0 };
    size_t step = size ? 1 + data[0] % 16 : 1;

    for (size_t at = 1; at < size; at += step) {
        size_t n = AQ_MIN(step, size - at);

        tunnel_frame_follow(&frame, (const char *)data + at, n);
        if (tunnel_frame_is_between(&frame) != fuzz_are_whole(data + 1, at + n - 1))
            abort();
    }
    return 0;
}
