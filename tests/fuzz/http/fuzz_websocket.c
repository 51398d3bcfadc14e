/* SPDX-License-Identifier: Apache-2.0 */
/* Frames from a peer: the first byte says whether it is a client's or a server's. */
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"
#include "http/websocket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    struct websocket *ws;
    bool closed;
};

static void on_message(struct websocket *ws, bool is_text, const char *bytes, size_t len,
                       void *data)
{
    (void)data;
    if (len > 500 || (is_text && !utf8_is_valid(bytes, len)))
        __builtin_trap();
    if (len == 3)
        websocket_close(ws, WEBSOCKET_NORMAL, "three");
    else if (len == 4)
        websocket_pause(ws);
    else
        (void)websocket_send(ws, is_text, bytes, len);
}

static void on_close(struct websocket *ws, uint16_t code, const struct aq_error *err, void *data)
{
    struct seen *seen = data;

    (void)ws;
    (void)code;
    (void)err;
    if (seen->closed)
        __builtin_trap();
    seen->closed = true;
}

static const struct stream_ops no_ops = { .on_open = NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct websocket_ops ops = { NULL, on_message, NULL, on_close };
    static const struct websocket_options options = { .message_max = 500 };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct seen seen = { .closed = false };
    struct stream *stream;
    uv_loop_t loop;
    size_t step = 1 + size % 11;

    if (!size || uv_loop_init(&loop) < 0)
        return 0;
    stream = stream_memory(&loop, &out, &no_ops, NULL);
    seen.ws = websocket_new(&loop, stream, data[0] & 1, &options, &ops, &seen);
    for (size_t at = 1; at < size && !seen.closed; at += step)
        stream_memory_feed(stream, (const char *)data + at, AQ_MIN(step, size - at));
    if (seen.closed)
        stream_memory_end(stream); /* it lingers until the peer hangs up */
    else
        websocket_abort(seen.ws);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&loop) < 0)
        __builtin_trap();
    return 0;
}
