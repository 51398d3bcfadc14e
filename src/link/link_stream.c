/* SPDX-License-Identifier: Apache-2.0 */
/* link_stream.c - a link_stream from the inside: waiting for its connection, then bytes */
#include "link/link_stream.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "link/graceful_close.h"

#define OPEN_MSEC 10000

#define LINGER_MSEC 2000 /* for the other side to end a framed stream, too */

static const unsigned char end_record[4];

struct link_stream {
    struct uuid id;
    uv_loop_t *loop;
    struct stream *stream; /* NULL while waiting and once closed */
    uv_timer_t timer;
    const struct link_stream_ops *ops;
    void *data;
    void (*gone)(void *owner, struct link_stream *stream);
    void *owner;
    bool is_paused;
    bool is_closed; /* no callback any more; a framed stream may have to part still */
    struct connection_reuse *reuse; /* NULL: a plain stream */
    unsigned head_len;              /* framed: bytes of the record's head that have come */
    uint32_t left;                  /* framed: its length so far, then what is to come of it */
    uint64_t sent;                  /* parting: at the last look */
};

static void link_stream_on_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* No callback comes after this, nor does its owner know it any more. */
static void link_stream_detach_owner(struct link_stream *stream)
{
    stream->is_closed = true;
    if (stream->gone)
        stream->gone(stream->owner, stream);
}

static void link_stream_dispose(struct link_stream *stream)
{
    if (stream->stream)
        stream_close(AQ_TAKE(stream->stream));
    connection_reuse_unref(AQ_TAKE(stream->reuse));
    uv_close((uv_handle_t *)&stream->timer, link_stream_on_timer_closed);
}

void link_stream_fail(struct link_stream *stream, const struct aq_error *err)
{
    if (stream->stream)
        stream_close(AQ_TAKE(stream->stream));
    link_stream_detach_owner(stream);
    link_stream_dispose(stream);
    stream->ops->on_close(stream->data, stream, err);
}

static void link_stream_on_timeout(uv_timer_t *timer)
{
    struct aq_error err;

    (void)aq_fail(&err, ETIMEDOUT, "the agent did not open the stream within %d seconds",
                  OPEN_MSEC / 1000);
    link_stream_fail(timer->data, &err);
}

struct link_stream *link_stream_new(uv_loop_t *loop, const struct uuid *id,
                                    const struct link_stream_ops *ops, void *data)
{
    struct link_stream *stream = aq_alloc(sizeof(*stream));

    (void)uv_timer_init(loop, &stream->timer);
    stream->id = *id;
    stream->loop = loop;
    stream->ops = ops;
    stream->data = data;
    stream->timer.data = stream;
    (void)uv_timer_start(&stream->timer, link_stream_on_timeout, OPEN_MSEC, 0);
    return stream;
}

/* ---- bytes ---- */

static void link_stream_on_read(void *data, const char *bytes, size_t len)
{
    struct link_stream *stream = data;

    stream->ops->on_data(stream->data, stream, bytes, len);
}

static void link_stream_on_end(void *data, const struct aq_error *err)
{
    link_stream_fail(data, err->code ? err : NULL);
}

static void link_stream_on_drain(void *data)
{
    struct link_stream *stream = data;

    if (stream->ops->on_drain && !stream->is_closed)
        stream->ops->on_drain(stream->data, stream);
}

/* An app may say why it hangs up in the middle of what it is sent. */
static const struct stream_ops plain_ops = {
    .on_read = link_stream_on_read,
    .on_end = link_stream_on_end,
    .on_drain = link_stream_on_drain,
    .hears_out = true,
};

/* ---- records ---- */

/* The other side has ended; if we have not, we do now. */
static void link_stream_hand_over(struct link_stream *stream, const char *rest, size_t len)
{
    struct stream *connection = AQ_TAKE(stream->stream);
    bool was_closed = stream->is_closed;

    if (!was_closed) {
        (void)stream_write(connection, end_record, sizeof(end_record));
        link_stream_detach_owner(stream);
    }
    connection_reuse_give(stream->reuse, connection, rest, len);
    link_stream_dispose(stream);
    if (!was_closed)
        stream->ops->on_close(stream->data, stream, NULL);
}

/* True after the last byte of a head; 'left' is then the record's length. */
static bool link_stream_take_head(struct link_stream *stream, unsigned char byte)
{
    stream->left = stream->head_len ? stream->left << 8 | byte : byte;
    stream->head_len = (stream->head_len + 1) % sizeof(end_record);
    return stream->head_len == 0;
}

static void link_stream_on_records(void *data, const char *bytes, size_t len)
{
    struct link_stream *stream = data;

    while (len) {
        bool is_head = stream->head_len || !stream->left;
        size_t n = is_head ? 1 : AQ_MIN(stream->left, len);

        if (is_head && link_stream_take_head(stream, (unsigned char)*bytes) && !stream->left) {
            link_stream_hand_over(stream, bytes + 1, len - 1);
            return;
        }
        if (!is_head) {
            stream->left -= (uint32_t)n;
            if (!stream->is_closed)
                stream->ops->on_data(stream->data, stream, bytes, n);
        }
        bytes += n;
        len -= n;
        if (stream->is_paused) {
            stream_push_back(stream->stream, bytes, len);
            return;
        }
    }
}

static void link_stream_on_framed_end(void *data, const struct aq_error *err)
{
    struct link_stream *stream = data;
    struct aq_error why = *err;

    if (!why.code)
        (void)aq_fail(&why, ECONNRESET, "the connection ended before its stream");
    if (stream->is_closed)
        link_stream_dispose(stream);
    else
        link_stream_fail(stream, &why);
}

static const struct stream_ops framed_ops = {
    .on_read = link_stream_on_records,
    .on_end = link_stream_on_framed_end,
    .on_drain = link_stream_on_drain,
};

/* The other side does not end: wait only as long as it takes our bytes. */
static void link_stream_on_ending(uv_timer_t *timer)
{
    struct link_stream *stream = timer->data;
    uint64_t sent = stream_sent(stream->stream);

    if (stream_queued(stream->stream) == 0 || sent == stream->sent)
        link_stream_dispose(stream);
    stream->sent = sent;
}

static void link_stream_end_framed(struct link_stream *stream)
{
    (void)stream_write(stream->stream, end_record, sizeof(end_record));
    stream->is_paused = false;
    stream_resume(stream->stream);
    stream->sent = stream_sent(stream->stream);
    (void)uv_timer_start(&stream->timer, link_stream_on_ending, LINGER_MSEC, LINGER_MSEC);
    link_stream_detach_owner(stream);
}

/* ---- the connection ---- */

void link_stream_attach(struct link_stream *stream, struct stream *connection,
                        const struct strbuf *rest, struct connection_reuse *reuse)
{
    (void)uv_timer_stop(&stream->timer);
    stream->stream = connection;
    stream->reuse = reuse ? connection_reuse_ref(reuse) : NULL;
    stream_set_ops(connection, reuse ? &framed_ops : &plain_ops, stream);
    if (stream->is_paused)
        stream_pause(connection);
    stream_push_back(connection, rest->data, rest->len);
    if (stream->ops->on_open)
        stream->ops->on_open(stream->data, stream);
}

void link_stream_on_gone(struct link_stream *stream,
                         void (*gone)(void *owner, struct link_stream *stream), void *owner)
{
    stream->gone = gone;
    stream->owner = owner;
}

bool link_stream_is_attached(const struct link_stream *stream)
{
    return stream->stream != NULL;
}

static int link_stream_write_record(struct stream *connection, const void *bytes, size_t len)
{
    unsigned char head[4] = { (unsigned char)(len >> 24), (unsigned char)(len >> 16),
                              (unsigned char)(len >> 8), (unsigned char)len };
    const uv_buf_t bufs[] = { uv_buf_init((char *)head, sizeof(head)),
                              { .base = (char *)(uintptr_t)bytes, .len = len } };

    return stream_writev(connection, bufs, AQ_COUNT(bufs));
}

int link_stream_write(struct link_stream *stream, const void *bytes, size_t len)
{
    int r = -ENOTCONN;

    if (stream->stream && stream->reuse)
        r = len ? link_stream_write_record(stream->stream, bytes, len) : 0;
    else if (stream->stream)
        r = stream_write(stream->stream, bytes, len);
    return r < 0 ? r : stream_queued(stream->stream) > PUMP_QUEUE_HIGH;
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

bool link_stream_is_quiet(const struct link_stream *stream)
{
    return stream->stream && stream_is_quiet(stream->stream);
}

void link_stream_close(struct link_stream *stream)
{
    if (!stream || stream->is_closed)
        return;
    if (stream->stream && stream->reuse) {
        link_stream_end_framed(stream);
        return;
    }
    if (stream->stream)
        graceful_close(stream->loop, AQ_TAKE(stream->stream));
    link_stream_detach_owner(stream);
    link_stream_dispose(stream);
}

const struct uuid *link_stream_id(const struct link_stream *stream)
{
    return &stream->id;
}

/* ---- as an end of a pump ---- */

static int link_stream_put(void *end, const char *bytes, size_t len)
{
    return link_stream_write(end, bytes, len);
}

static void link_stream_hold(void *end, bool is_paused)
{
    link_stream_pause(end, is_paused);
}

const struct pump_ops link_stream_pump = { .put = link_stream_put, .pause = link_stream_hold };
