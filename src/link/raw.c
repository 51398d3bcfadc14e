#include "link/raw.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "link/linger.h"

#define OPEN_MSEC 10000
#define HIGH_WATER_BYTES (256u << 10)

struct link_stream {
    struct uuid id;
    uv_loop_t *loop;
    struct stream *stream; /* NULL while waiting and once closed */
    uv_timer_t timer;
    const struct link_stream_ops *ops;
    void *data;
    void (*gone)(void *owner, struct link_stream *stream);
    void *owner;
    bool is_paused, is_closed;
};

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void finish(struct link_stream *stream)
{
    stream->is_closed = true;
    if (stream->gone)
        stream->gone(stream->owner, stream);
    uv_close((uv_handle_t *)&stream->timer, on_timer_closed);
}

void raw_fail(struct link_stream *stream, const struct aq_error *err)
{
    if (stream->stream)
        stream_close(AQ_TAKE(stream->stream));
    finish(stream);
    stream->ops->on_close(stream->data, stream, err);
}

static void on_timeout(uv_timer_t *timer)
{
    struct aq_error err;

    (void)aq_fail(&err, ETIMEDOUT, "the agent did not open the stream within %d seconds",
                  OPEN_MSEC / 1000);
    raw_fail(timer->data, &err);
}

int raw_new(uv_loop_t *loop, const struct uuid *id, const struct link_stream_ops *ops, void *data,
            struct link_stream **ret, struct aq_error *err)
{
    struct link_stream *stream = calloc(1, sizeof(*stream));

    if (!stream || uv_timer_init(loop, &stream->timer) < 0) {
        free(stream);
        return aq_fail(err, ENOMEM, "stream");
    }
    stream->id = *id;
    stream->loop = loop;
    stream->ops = ops;
    stream->data = data;
    stream->timer.data = stream;
    (void)uv_timer_start(&stream->timer, on_timeout, OPEN_MSEC, 0);
    *ret = stream;
    return 0;
}

static void on_read(void *data, const char *bytes, size_t len)
{
    struct link_stream *stream = data;

    stream->ops->on_data(stream->data, stream, bytes, len);
}

static void on_end(void *data, const struct aq_error *err)
{
    raw_fail(data, err->code ? err : NULL);
}

static void on_drain(void *data)
{
    struct link_stream *stream = data;

    if (stream->ops->on_drain)
        stream->ops->on_drain(stream->data, stream);
}

void raw_attach(struct link_stream *stream, struct stream *connection, const struct strbuf *rest)
{
    static const struct stream_ops ops = {
        .on_read = on_read,
        .on_end = on_end,
        .on_drain = on_drain,
    };

    (void)uv_timer_stop(&stream->timer);
    stream->stream = connection;
    stream_set_ops(connection, &ops, stream);
    if (stream->is_paused)
        stream_pause(connection);
    if (stream->ops->on_open)
        stream->ops->on_open(stream->data, stream);
    if (!stream->is_closed && rest->len)
        stream->ops->on_data(stream->data, stream, rest->data, rest->len);
}

void raw_on_gone(struct link_stream *stream, void (*gone)(void *owner, struct link_stream *stream),
                 void *owner)
{
    stream->gone = gone;
    stream->owner = owner;
}

bool raw_is_attached(const struct link_stream *stream)
{
    return stream->stream != NULL;
}

int link_stream_write(struct link_stream *stream, const void *bytes, size_t len)
{
    int r = stream->stream ? stream_write(stream->stream, bytes, len) : -ENOTCONN;

    return r < 0 ? r : stream_queued(stream->stream) > HIGH_WATER_BYTES;
}

void link_stream_pause(struct link_stream *stream, bool paused)
{
    stream->is_paused = paused;
    if (!stream->stream)
        return;
    if (paused)
        stream_pause(stream->stream);
    else
        stream_resume(stream->stream);
}

void link_stream_close(struct link_stream *stream)
{
    if (!stream || stream->is_closed)
        return;
    if (stream->stream)
        linger_close(stream->loop, AQ_TAKE(stream->stream));
    finish(stream);
}

const struct uuid *link_stream_id(const struct link_stream *stream)
{
    return &stream->id;
}
