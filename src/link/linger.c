#include "link/linger.h"

#include <stdlib.h>

#define LINGER_MSEC 2000

struct lingering {
    struct stream *stream;
    uv_timer_t timer;
    uint64_t sent; /* at the last look */
};

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void finish(struct lingering *linger)
{
    if (uv_is_closing((uv_handle_t *)&linger->timer))
        return;
    stream_close(linger->stream);
    uv_close((uv_handle_t *)&linger->timer, on_closed);
}

static void on_read(void *data, const char *bytes, size_t len)
{
    (void)data;
    (void)bytes;
    (void)len;
}

static void on_end(void *data, const struct aq_error *err)
{
    (void)err;
    finish(data);
}

static void on_timer(uv_timer_t *timer)
{
    struct lingering *linger = timer->data;
    uint64_t sent = stream_sent(linger->stream);

    if (stream_queued(linger->stream) == 0 || sent == linger->sent)
        finish(linger);
    linger->sent = sent;
}

void linger_close(uv_loop_t *loop, struct stream *stream)
{
    static const struct stream_ops ops = { .on_read = on_read, .on_end = on_end };
    struct lingering *linger = calloc(1, sizeof(*linger));

    if (!linger || uv_timer_init(loop, &linger->timer) < 0) {
        free(linger);
        stream_close(stream);
        return;
    }
    linger->stream = stream;
    linger->timer.data = linger;
    linger->sent = stream_sent(stream);
    stream_set_ops(stream, &ops, linger);
    stream_resume(stream);
    stream_shutdown(stream);
    (void)uv_timer_start(&linger->timer, on_timer, LINGER_MSEC, LINGER_MSEC);
}
