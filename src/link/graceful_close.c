/* SPDX-License-Identifier: Apache-2.0 */
/* graceful_close.c - close a stream without losing the last words */
#include "link/graceful_close.h"

#include <stdlib.h>

#include "base/memory.h"

#define LINGER_MSEC 2000

struct graceful_close {
    struct stream *stream;
    uv_timer_t timer;
    uint64_t sent; /* at the last look */
};

static void graceful_close_on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void graceful_close_finish(struct graceful_close *linger)
{
    if (uv_is_closing((uv_handle_t *)&linger->timer))
        return;
    stream_close(linger->stream);
    uv_close((uv_handle_t *)&linger->timer, graceful_close_on_closed);
}

static void graceful_close_on_read(void *data, const char *bytes, size_t len)
{
    (void)data;
    (void)bytes;
    (void)len;
}

static void graceful_close_on_end(void *data, const struct aq_error *err)
{
    (void)err;
    graceful_close_finish(data);
}

static void graceful_close_on_timer(uv_timer_t *timer)
{
    struct graceful_close *linger = timer->data;
    uint64_t sent = stream_sent(linger->stream);

    if (stream_queued(linger->stream) == 0 || sent == linger->sent)
        graceful_close_finish(linger);
    linger->sent = sent;
}

void graceful_close(uv_loop_t *loop, struct stream *stream)
{
    static const struct stream_ops ops = { .on_read = graceful_close_on_read,
                                           .on_end = graceful_close_on_end };
    struct graceful_close *linger = aq_alloc(sizeof(*linger));

    (void)uv_timer_init(loop, &linger->timer);
    linger->stream = stream;
    linger->timer.data = linger;
    linger->sent = stream_sent(stream);
    stream_set_ops(stream, &ops, linger);
    stream_resume(stream);
    stream_shutdown(stream);
    (void)uv_timer_start(&linger->timer, graceful_close_on_timer, LINGER_MSEC, LINGER_MSEC);
}
