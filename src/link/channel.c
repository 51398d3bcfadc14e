/* SPDX-License-Identifier: Apache-2.0 */
/* channel.c - one control connection: frames, acknowledgements, keep-alive */
#include "link/channel.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "link/graceful_close.h"
#include "link/link.h"

#define WINDOW_BYTES (1u << 20) /* written but not taken by the system */

struct channel {
    uv_loop_t *loop;
    struct stream *stream; /* NULL once closed or released */
    bool is_ended;         /* by the other side or an error: nothing more can be said */
    uv_timer_t timer;
    struct strbuf in;
    size_t used;            /* of 'in': the frames up to and with the one being handled */
    struct link_peer *peer; /* NULL before channel_bind() */
    const struct channel_ops *ops;
    void *data;
    uint64_t sent_seq; /* on this connection */
    uint64_t sent_ack;
    int64_t ping_usec, dead_usec;
    int64_t heard_usec, spoke_usec; /* monotonic */
    bool is_silent;
};

/* ---- sending ---- */

static int channel_send_frame(struct channel *ch, uint64_t seq, const char *body, size_t len)
{
    unsigned char head[FRAME_HEAD_BYTES];
    uint64_t ack = ch->peer ? ch->peer->handled_seq : 0;
    uv_buf_t bufs[2] = { uv_buf_init((char *)head, sizeof(head)),
                         uv_buf_init((char *)(uintptr_t)body, (unsigned)len) };

    frame_write_head(head, seq, ack, len);
    ch->sent_ack = ack;
    ch->spoke_usec = clock_monotonic_usec();
    return stream_writev(ch->stream, bufs, len ? 2 : 1);
}

static int channel_check_length(const struct message *msg, size_t len, struct aq_error *err)
{
    if (len <= LINK_FRAME_MAX - FRAME_HEAD_BYTES)
        return 0;
    return aq_fail(err, EMSGSIZE, "message '%s' of %zu bytes is too long",
                   message_type_name(msg->type), len);
}

int channel_send(struct channel *ch, const struct message *msg, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r;

    if (stream_queued(ch->stream) > 2 * WINDOW_BYTES)
        return aq_fail(err, ENOBUFS, "the other side reads too slowly");
    r = message_encode(msg, &text, err);
    if (r == 0)
        r = channel_check_length(msg, text.len, err);
    if (r == 0) {
        r = channel_send_frame(ch, 0, text.data, text.len);
        if (r < 0)
            r = aq_fail(err, -r, "send '%s'", message_type_name(msg->type));
    }
    return r;
}

void channel_flush(struct channel *ch)
{
    struct peer_item *item = peer_after(ch->peer, ch->sent_seq);

    while (item && !ch->peer->is_held && stream_queued(ch->stream) < WINDOW_BYTES) {
        if (channel_send_frame(ch, item->seq, item->body, item->len) < 0)
            return; /* on_end follows */
        ch->sent_seq = item->seq;
        AQ_FAULT("link.message.sent");
        item = item->link.next == &ch->peer->items
                   ? NULL
                   : LIST_ENTRY(item->link.next, struct peer_item, link);
    }
}

void channel_acknowledge(struct channel *ch)
{
    if (ch->peer && ch->sent_ack != ch->peer->handled_seq)
        (void)channel_send_frame(ch, 0, NULL, 0);
}

int link_send(struct link_peer *peer, struct channel *channel, const struct message *msg,
              struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r;

    if (!message_is_reliable(msg->type))
        return channel ? channel_send(channel, msg, err)
                       : aq_fail(err, ENOTCONN, "'%s' needs a connection",
                                 message_type_name(msg->type));
    r = message_encode(msg, &text, err);
    if (r == 0)
        r = channel_check_length(msg, text.len, err);
    if (r < 0)
        return r;
    r = peer_push(peer, text.data, text.len);
    if (r < 0)
        return aq_fail(err, -r, "message '%s': too much is waiting for the other side",
                       message_type_name(msg->type));
    if (channel)
        channel_flush(channel);
    return 0;
}

/* ---- receiving ---- */

static void channel_end(struct channel *ch, const char *why)
{
    (void)uv_timer_stop(&ch->timer);
    ch->ops->on_end(ch->data, why);
}

/* In order and not yet seen? -EBADMSG for a gap. */
static int channel_accept_seq(struct channel *ch, uint64_t seq)
{
    if (seq == 0)
        return 1;
    if (!ch->peer || seq > ch->peer->delivered_seq + 1)
        return -EBADMSG;
    return seq > ch->peer->delivered_seq;
}

/* The first byte of a frame is 0, because frames are shorter than 16 MiB; that of a request is a
 * letter of its method.
 */
static bool channel_is_http(const struct channel *ch)
{
    return !ch->peer && ch->used == 0 && ch->in.len && ch->in.data[0] >= 'A'
           && ch->in.data[0] <= 'Z';
}

static int channel_deliver(struct channel *ch, const struct link_frame *frame, struct aq_error *err)
{
    struct message msg;
    int r;

    if (ch->peer && peer_acknowledge(ch->peer, frame->ack) < 0)
        return aq_fail(err, EBADMSG, "it acknowledged what was never sent");
    if (frame->body_len == 0)
        return 0;
    r = channel_accept_seq(ch, frame->seq);
    if (r < 0)
        return aq_fail(err, EBADMSG, "a message is missing");
    if (r == 0)
        return 0;
    r = message_decode(frame->body, frame->body_len, &msg, err);
    if (r == -EINVAL && frame->seq) {
        /* it would come again after each reconnect: as good as an unknown type */
        log_limited(&ch->peer->log, LOG_LEVEL_WARNING, "link: a message is skipped: %s", err->text);
        *err = (struct aq_error){ .code = 0 };
        msg = (struct message){ .type = MSG_UNKNOWN };
    } else if (r < 0) {
        return r;
    }
    if (frame->seq) /* no sooner: what cannot be read for want of memory comes again */
        ch->peer->delivered_seq = frame->seq;
    AQ_FAULT("link.message.received");
    ch->ops->on_message(ch->data, frame->seq, &msg);
    message_done(&msg);
    return 0;
}

static void channel_on_read(void *data, const char *bytes, size_t len)
{
    struct channel *ch = data;
    struct aq_error err = { 0 };
    struct link_frame frame;
    ssize_t n;

    ch->heard_usec = clock_monotonic_usec();
    if (ch->peer)
        ch->peer->heard_usec = ch->heard_usec;
    strbuf_add(&ch->in, bytes, len);
    if (ch->ops->on_http && channel_is_http(ch)) {
        ch->ops->on_http(ch->data);
        return;
    }
    while (ch->stream) {
        size_t limit = ch->peer ? LINK_FRAME_MAX : CHANNEL_GREETING_MAX;

        n = frame_read(ch->in.data + ch->used, ch->in.len - ch->used, limit, &frame);
        if (n < 0)
            (void)aq_fail(&err, EBADMSG, "it sent a frame of an impossible length");
        if (n <= 0)
            break;
        ch->used += (size_t)n;
        if (channel_deliver(ch, &frame, &err) < 0)
            break;
    }
    if (!ch->stream)
        return; /* closed or released by a callback */
    strbuf_consume(&ch->in, ch->used);
    ch->used = 0;
    if (err.code)
        channel_end(ch, err.text);
    else
        channel_acknowledge(ch);
}

static void channel_on_stream_open(void *data)
{
    struct channel *ch = data;

    ch->heard_usec = clock_monotonic_usec();
    if (ch->ops->on_open)
        ch->ops->on_open(ch->data);
}

static void channel_on_stream_end(void *data, const struct aq_error *err)
{
    struct channel *ch = data;

    ch->is_ended = true;
    ch->is_silent = err->code == ETIMEDOUT;
    channel_end(ch, err->code ? err->text : "the other side closed the connection");
}

static void channel_on_stream_drain(void *data)
{
    struct channel *ch = data;

    if (ch->peer)
        channel_flush(ch);
}

static void channel_on_timer(uv_timer_t *timer)
{
    struct channel *ch = timer->data;
    int64_t now = clock_monotonic_usec();
    char why[80];

    if (now - ch->heard_usec >= ch->dead_usec) {
        ch->is_silent = true;
        (void)snprintf(why, sizeof(why),
                       ch->peer ? "no sign of life for %lld seconds"
                                : "no greeting within %lld seconds",
                       (long long)(ch->dead_usec / USEC_PER_SEC));
        channel_end(ch, why);
    } else if (ch->peer && now - ch->spoke_usec >= ch->ping_usec) {
        (void)channel_send_frame(ch, 0, NULL, 0);
    }
}

/* ---- life ---- */

static const struct stream_ops stream_ops = {
    .on_open = channel_on_stream_open,
    .on_read = channel_on_read,
    .on_end = channel_on_stream_end,
    .on_drain = channel_on_stream_drain,
};

static void channel_start_timer(struct channel *ch)
{
    uint64_t msec = (uint64_t)(AQ_MIN(ch->ping_usec, ch->dead_usec) / 2 / USEC_PER_MSEC);

    (void)uv_timer_start(&ch->timer, channel_on_timer, msec, AQ_MAX(msec, 1u));
}

static struct channel *channel_make(uv_loop_t *loop, const struct channel_ops *ops, void *data)
{
    struct channel *ch = aq_alloc(sizeof(*ch));

    (void)uv_timer_init(loop, &ch->timer);
    ch->loop = loop;
    ch->timer.data = ch;
    strbuf_init(&ch->in);
    ch->ops = ops;
    ch->data = data;
    ch->ping_usec = ch->dead_usec = CHANNEL_GREETING_USEC;
    ch->heard_usec = ch->spoke_usec = clock_monotonic_usec();
    channel_start_timer(ch);
    return ch;
}

struct channel *channel_new(uv_loop_t *loop, struct stream *stream, const struct channel_ops *ops,
                            void *data)
{
    struct channel *ch = channel_make(loop, ops, data);

    ch->stream = stream;
    stream_set_ops(stream, &stream_ops, ch);
    return ch;
}

int channel_connect(uv_loop_t *loop, const struct channel_target *target,
                    const struct channel_ops *ops, void *data, struct channel **ret,
                    struct aq_error *err)
{
    const struct stream_options options = {
        .tls = target->tls,
        .server_name = "aliquot-manager",
        .connect_msec = (unsigned)(target->connect_usec / USEC_PER_MSEC),
    };
    struct address address;
    struct channel *ch;
    int r = address_parse(target->address, LINK_PORT, &address, err);

    if (r == 0 && address.is_unix)
        r = aq_fail(err, EINVAL, "'%s' is not an address like host:port", target->address);
    if (r < 0)
        return r;
    ch = channel_make(loop, ops, data);
    r = stream_connect(loop, &address, &options, &stream_ops, ch, &ch->stream, err);
    if (r < 0) {
        channel_close(ch);
        return r;
    }
    *ret = ch;
    return 0;
}

void channel_set_ops(struct channel *ch, const struct channel_ops *ops, void *data)
{
    ch->ops = ops;
    ch->data = data;
}

void channel_set_patience(struct channel *ch, int64_t usec)
{
    ch->ping_usec = ch->dead_usec = usec;
    channel_start_timer(ch);
}

void channel_bind(struct channel *ch, struct link_peer *peer, int64_t ping_usec, int64_t dead_usec)
{
    ch->peer = peer;
    ch->sent_seq = peer->acked_seq;
    ch->sent_ack = peer->handled_seq;
    ch->ping_usec = ping_usec;
    ch->dead_usec = dead_usec;
    channel_start_timer(ch);
}

void channel_limit_unacknowledged(struct channel *ch, int64_t usec)
{
    stream_limit_unacknowledged(ch->stream, usec);
}

bool channel_is_silent(const struct channel *ch)
{
    return ch->is_silent;
}

bool channel_get_peer(const struct channel *ch, struct tls_peer *ret)
{
    return stream_get_peer(ch->stream, ret);
}

const char *channel_get_address(const struct channel *ch)
{
    return stream_get_address(ch->stream);
}

static void channel_on_timer_closed(uv_handle_t *handle)
{
    struct channel *ch = handle->data;

    strbuf_done(&ch->in);
    free(ch);
}

struct stream *channel_release(struct channel *ch, struct strbuf *rest)
{
    strbuf_consume(&ch->in, ch->used);
    *rest = ch->in;
    strbuf_init(&ch->in);
    uv_close((uv_handle_t *)&ch->timer, channel_on_timer_closed);
    return AQ_TAKE(ch->stream);
}

void channel_close(struct channel *ch)
{
    if (!ch)
        return;
    if (ch->stream && ch->is_ended)
        stream_close(AQ_TAKE(ch->stream));
    else if (ch->stream)
        graceful_close(ch->loop, AQ_TAKE(ch->stream));
    uv_close((uv_handle_t *)&ch->timer, channel_on_timer_closed);
}
