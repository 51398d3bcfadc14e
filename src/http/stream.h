/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - a byte stream over TCP, a Unix socket or memory, plain or TLS
 *
 * Belongs to one loop and is used only on its thread. Callbacks are never
 * called from within stream_write() or stream_close(), and never after
 * stream_close(). A callback may close its own stream.
 *
 * The first stream of a process lets it ignore SIGPIPE, unless it has a handler
 * for that: libuv writes without MSG_NOSIGNAL.
 */
#ifndef AQ_HTTP_STREAM_H
#define AQ_HTTP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/socket.h>

#include <uv.h>

#include "base/error.h"
#include "base/pump.h"
#include "base/strbuf.h"
#include "http/tls.h"
#include "http/url.h"

struct stream;

struct stream_ops {
    /* Connected and, with TLS, both ends verified. Not called for streams that
     * are open from the start.
     */
    void (*on_open)(void *data);
    void (*on_read)(void *data, const char *bytes, size_t len);
    /* Nothing more will be read or, after an error, written: err->code is 0
     * for an orderly end by the peer. Called once at most. The owner closes.
     */
    void (*on_end)(void *data, const struct aq_error *err);
    /* stream_queued() fell to zero after it had been above. May be NULL. */
    void (*on_drain)(void *data);
    /* When writing fails, what the peer said before still comes to on_read(), then on_end(). */
    bool hears_out;
};

struct stream_options {
    struct tls_context *tls; /* NULL = plain; a reference is taken */
    const char *server_name; /* TLS: the name to verify and send; NULL = the address' host */
    unsigned connect_msec;   /* until on_open, half of it for a first answer; 0 = 30 s */
    /* May it connect to this address, of those that the name has? NULL = to all. If to none,
     * on_end() says EACCES.
     */
    bool (*may_reach)(void *data, const struct sockaddr *addr);
    void *reach_data;
};

/* Connect; the name is looked up in a worker thread. Failures of the network
 * come as on_end(). Reading begins by itself. Returns 0 or -EINVAL.
 */
int stream_connect(uv_loop_t *loop, const struct address *address,
                   const struct stream_options *options, const struct stream_ops *ops, void *data,
                   struct stream **ret, struct aq_error *err);

/* Take over a connected, non-blocking TCP socket: the stream is open at once. -errno, and the
 * descriptor is still the caller's.
 */
int stream_adopt(uv_loop_t *loop, int fd, const struct stream_ops *ops, void *data,
                 struct stream **ret, struct aq_error *err);

/* Go on with TLS as a client, with a plain stream that is open: on_open() follows the handshake.
 * What the peer said before must have been read. -EINVAL.
 */
int stream_start_tls(struct stream *stream, struct tls_context *tls, const char *server_name,
                     struct aq_error *err);

/* Take over a listening socket's next connection (used by listener.c). With
 * TLS on_open() follows the handshake, else the stream is open at once. After
 * -ENOMEM of the kernel the connection still waits.
 */
int stream_accept(uv_stream_t *listening, struct tls_context *tls, const struct stream_ops *ops,
                  void *data, struct stream **ret, struct aq_error *err);

/* A stream without a socket, for tests and fuzzing: what is written is
 * appended to 'out', what the peer says is given to stream_memory_feed().
 */
struct stream *stream_memory(uv_loop_t *loop, struct strbuf *out, const struct stream_ops *ops,
                             void *data);
void stream_memory_feed(struct stream *stream, const char *bytes, size_t len);
void stream_memory_end(struct stream *stream);

/* Hand the stream to another owner. */
void stream_set_ops(struct stream *stream, const struct stream_ops *ops, void *data);

/* Send what the system takes at once and queue a copy of the rest. Returns 0,
 * or -EPIPE after the stream ended (on_end() tells why).
 */
int stream_write(struct stream *stream, const void *bytes, size_t len);
int stream_writev(struct stream *stream, const uv_buf_t *bufs, unsigned count);

/* Bytes accepted but not yet taken by the system. */
size_t stream_queued(const struct stream *stream);

/* Bytes the system has taken since the beginning: a stuck peer shows as a
 * count that stands still.
 */
uint64_t stream_sent(const struct stream *stream);

/* End with -ETIMEDOUT once the other machine has not acknowledged bytes for so long: it is off, or the
 * network to it is cut. A program there that is busy or stopped makes no difference. Connections
 * that are not TCP, and a socket that does not take the option, go on as before.
 */
void stream_limit_unacknowledged(struct stream *stream, int64_t usec);

/* Give bytes to on_read() once more, from the loop; used when a stream changes
 * its owner.
 */
void stream_push_back(struct stream *stream, const char *bytes, size_t len);

/* Stop and continue reading; the peer is slowed down by its own full queue. */
void stream_pause(struct stream *stream);
void stream_resume(struct stream *stream);
bool stream_is_paused(const struct stream *stream);

/* Open, with nothing queued, and the system has neither bytes nor an end of it: a peer that has
 * closed meanwhile is noticed before the loop tells. Costs a system call.
 */
bool stream_is_quiet(const struct stream *stream);

/* The peer of a paused connection has closed it, for writing at least, or reset it: on_end() would come
 * if it were read. Costs a system call; false for one that is not paused.
 */
bool stream_has_left(const struct stream *stream);

/* An end of a pump that is a struct stream. */
extern const struct pump_ops stream_pump;

/* Send what is queued, then tell the peer that nothing follows; reading goes on. */
void stream_shutdown(struct stream *stream);

/* Close at once and free; what is queued is dropped. NULL is fine. */
void stream_close(struct stream *stream);

/* stream_close() will reset the connection, so that its peer gets an error in place of an end. */
void stream_break(struct stream *stream);

/* The verified certificate of the peer; false without one or before on_open(). */
bool stream_get_peer(const struct stream *stream, struct tls_peer *ret);
bool stream_is_tls(const struct stream *stream);

/* "127.0.0.1", "::1", "unix" or "memory"; lives as long as the stream. */
const char *stream_get_address(struct stream *stream);

#endif
