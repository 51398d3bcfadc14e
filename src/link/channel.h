/* SPDX-License-Identifier: Apache-2.0 */
/* channel.h - one control connection: frames, acknowledgements, keep-alive
 *
 * Serves both ends. Until channel_bind() only transient messages pass (the
 * greeting); afterwards reliable ones of the bound peer flow, resent from
 * what the other side said it has.
 */
#ifndef AQ_LINK_CHANNEL_H
#define AQ_LINK_CHANNEL_H

#include "http/stream.h"
#include "link/frame.h"
#include "link/message.h"
#include "link/peer.h"

#define CHANNEL_GREETING_MAX (64u << 10) /* frames before channel_bind() */
#define CHANNEL_GREETING_USEC (10 * USEC_PER_SEC)

struct channel;

struct channel_ops {
    void (*on_open)(void *data); /* may be NULL */
    /* 'seq' 0 = transient. The callback may close the channel. */
    void (*on_message)(void *data, uint64_t seq, const struct message *msg);
    /* Before channel_bind(): the other side begins with a request of HTTP instead of a frame. The
     * owner closes or releases the channel. NULL: as a frame of an impossible length.
     */
    void (*on_http)(void *data);
    /* The connection is of no use any more; the owner calls channel_close(). */
    void (*on_end)(void *data, const char *why);
};

/* Owns 'stream' afterwards. */
struct channel *channel_new(uv_loop_t *loop, struct stream *stream, const struct channel_ops *ops,
                            void *data);
void channel_set_ops(struct channel *ch, const struct channel_ops *ops, void *data);

struct channel_target {
    const char *address; /* HOST[:PORT] */
    struct tls_context *tls;
    int64_t connect_usec; /* until on_open, half of it for a first answer */
};

/* A channel that has yet to connect: made first, so that the stream's
 * callbacks have their owner. -EINVAL for an address that is malformed.
 */
int channel_connect(uv_loop_t *loop, const struct channel_target *target,
                    const struct channel_ops *ops, void *data, struct channel **ret,
                    struct aq_error *err);

/* How long the other side may be silent before its greeting; at first
 * CHANNEL_GREETING_USEC.
 */
void channel_set_patience(struct channel *ch, int64_t usec);

/* The greeting is over: keep alive and carry this peer's reliable messages. */
void channel_bind(struct channel *ch, struct link_peer *peer, int64_t ping_usec, int64_t dead_usec);

/* End it, as silent, once the other machine has not acknowledged what was sent for so long. */
void channel_limit_unacknowledged(struct channel *ch, int64_t usec);

/* Send a transient message. -ENOBUFS when the other side does not take what
 * was sent before.
 */
int channel_send(struct channel *ch, const struct message *msg, struct aq_error *err);

/* Queue a reliable message in 'peer' and send it if there is a bound channel;
 * send a transient one if there is a channel, else -ENOTCONN.
 */
int link_send(struct link_peer *peer, struct channel *channel, const struct message *msg,
              struct aq_error *err);

/* Send what is queued in the peer, as far as the other side takes it. */
void channel_flush(struct channel *ch);
/* Tell the other side peer->handled_seq if it does not know it. */
void channel_acknowledge(struct channel *ch);

/* Within on_end(): it ends because neither the other side nor its machine has been heard. */
bool channel_is_silent(const struct channel *ch);

bool channel_get_peer(const struct channel *ch, struct tls_peer *ret);
/* stream_get_address() of its connection. */
const char *channel_get_address(const struct channel *ch);

/* Take the stream out and close the channel; 'rest', which is empty, gets the
 * bytes read beyond the last message.
 */
struct stream *channel_release(struct channel *ch, struct strbuf *rest);

/* What was sent goes out, then the connection ends; no callback follows. NULL is fine. */
void channel_close(struct channel *ch);

#endif
