/* SPDX-License-Identifier: Apache-2.0 */
/* A byte stream over TCP, a Unix socket or memory, plain or TLS. */
#include "http/stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/memory.h"
#include "http/stream_internal.h"

#define READ_SIZE 65536
#define RECORD_SIZE 16384 /* of TLS, at most */
#define KEEPALIVE_SEC 60
#define LAST_WORDS 16 /* reads of READ_SIZE */

/* One buffer serves all streams of a thread: bytes are used up before the next read. */
static _Thread_local char read_buffer[READ_SIZE];
static _Thread_local char plain_buffer[16384];

/* ---- making and ending ---- */

static void stream_on_nothing(void *data, const struct aq_error *err)
{
    (void)data;
    (void)err;
}

static const struct stream_ops no_ops = { .on_end = stream_on_nothing };

static void stream_on_later(void *data);

static void stream_ignore_sigpipe(void)
{
    struct sigaction now;

    if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        (void)signal(SIGPIPE, SIG_IGN);
}

struct stream *stream_new(uv_loop_t *loop, enum stream_kind kind, const struct stream_ops *ops,
                          void *data)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct stream *s = aq_alloc(sizeof(*s));

    (void)pthread_once(&once, stream_ignore_sigpipe);
    s->later = defer_new(loop, stream_on_later, s);
    s->loop = loop;
    s->kind = kind;
    s->ops = ops;
    s->data = data;
    strbuf_init(&s->pushed);
    strbuf_init(&s->out);
    strbuf_init(&s->flight);
    return s;
}

void stream_set_ops(struct stream *s, const struct stream_ops *ops, void *data)
{
    s->ops = ops;
    s->data = data;
}

static void stream_release(void *data)
{
    struct stream *s = data;

    tls_session_free(s->tls);
    tls_context_free(s->tls_later);
    strbuf_done(&s->pushed);
    strbuf_done(&s->out);
    strbuf_done(&s->flight);
    free(s);
}

static void stream_on_handle_closed(uv_handle_t *uv)
{
    struct stream *s = uv->data;

    free(uv);
    if (s)
        stream_release(s);
}

void stream_renew_handle(struct stream *s)
{
    struct stream_handle *h = aq_alloc(sizeof(*h));

    /* neither makes a socket yet, nor fails */
    if (s->kind == STREAM_TCP)
        (void)uv_tcp_init(s->loop, &h->uv.tcp);
    else
        (void)uv_pipe_init(s->loop, &h->uv.pipe, 0);
    if (s->handle) {
        s->handle->uv.any.data = NULL;
        uv_close(&s->handle->uv.any, stream_on_handle_closed);
    }
    h->uv.any.data = s;
    s->handle = h;
}

/* ---- reading ---- */

static void stream_want_later(struct stream *s)
{
    if (!s->closed)
        defer_start(s->later, 0);
}

/* Bytes for the owner. What was pushed back comes first. */
static void stream_give(struct stream *s, const char *bytes, size_t len)
{
    if (s->closed || s->ended)
        return;
    if (s->paused || s->pushed.len)
        stream_push_back(s, bytes, len);
    else
        s->ops->on_read(s->data, bytes, len);
}

static void stream_give_pushed(struct stream *s)
{
    struct strbuf bytes = s->pushed;

    if (!bytes.len || s->paused)
        return;
    strbuf_init(&s->pushed);
    stream_give(s, bytes.data, bytes.len);
    strbuf_done(&bytes);
}

void stream_end(struct stream *s, const struct aq_error *err)
{
    if (!s->ended)
        stream_give_pushed(s);
    if (s->ended || s->closed)
        return;
    s->ended = true;
    if (s->connected && s->handle)
        (void)uv_read_stop(&s->handle->uv.stream);
    s->ops->on_end(s->data, err);
}

const char *stream_error_text(int code)
{
    return code == ENOMEM ? "out of memory" : uv_strerror(-code);
}

static void stream_end_errno(struct stream *s, int code, const char *what)
{
    struct aq_error err = { .code = 0 };

    (void)aq_fail(&err, code, "%s: %s", what, stream_error_text(code));
    stream_end(s, &err);
}

static int stream_write_plain(struct stream *s, const uv_buf_t *bufs, unsigned count, size_t total);
static void stream_flush(struct stream *s);
static void stream_update_reading(struct stream *s);

static void stream_send_encrypted(void *data, const char *bytes, size_t len)
{
    uv_buf_t buf = { .base = (char *)(uintptr_t)bytes, .len = len };
    struct stream *s = data;

    if (!s->failed)
        (void)stream_write_plain(s, &buf, 1, len);
}

int stream_new_tls(struct stream *s, struct tls_context *tls, const char *server_name,
                   struct aq_error *err)
{
    return tls_session_new(tls, server_name, stream_send_encrypted, s, &s->tls, err);
}

/* Bring the handshake forward; true once it is done. */
static bool stream_shake_hands(struct stream *s)
{
    struct aq_error err = { .code = 0 };
    int r;

    if (s->is_open)
        return true;
    r = tls_session_handshake(s->tls, &err);
    if (r < 0) {
        stream_end(s, &err);
        return false;
    }
    if (!r)
        return false;
    s->is_open = true;
    stream_stop_dialling(s);
    stream_update_reading(s); /* the handshake read on although paused */
    if (s->ops->on_open)
        s->ops->on_open(s->data);
    return !s->closed;
}

/* Give on what TLS has decrypted. */
static void stream_pump_tls(struct stream *s)
{
    struct aq_error err = { .code = 0 };
    int n = 1;

    if (!stream_shake_hands(s))
        return;
    while (!s->closed && !s->paused && !s->ended
           && (n = tls_session_read(s->tls, plain_buffer, sizeof(plain_buffer), &err)) > 0)
        stream_give(s, plain_buffer, (size_t)n);
    if (s->closed)
        return;
    if (n < 0)
        stream_end(s, n == -ENODATA ? &(struct aq_error){ .code = 0 } : &err);
}

/* What has come of a connection that was accepted begins its session: a peer that says nothing
 * costs no more than a socket.
 */
static void stream_feed_tls(struct stream *s, const char *bytes, size_t len)
{
    struct aq_error err = { .code = 0 };
    int r = s->tls ? 0 : stream_new_tls(s, s->tls_later, NULL, &err);

    if (r == 0) {
        tls_context_free(AQ_TAKE(s->tls_later));
        tls_session_feed(s->tls, bytes, len);
        stream_pump_tls(s);
        tls_session_keep(s->tls);
    } else
        stream_end(s, &err);
}

static void stream_on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    (void)handle;
    (void)suggested;
    *ret = uv_buf_init(read_buffer, sizeof(read_buffer));
}

static void stream_on_uv_read(uv_stream_t *uv, ssize_t n, const uv_buf_t *buf)
{
    struct stream *s = uv->data;
    struct aq_error err = { .code = 0 };

    if (n == UV_EOF && s->failed) {
        stream_end_errno(s, s->failed, "writing to the peer"); /* before on_later() told it */
    } else if (n == UV_EOF) {
        /* With TLS an end without its goodbye may be a forgery. */
        if (stream_is_tls(s) && !s->is_open)
            (void)aq_fail(&err, ECONNABORTED, "the peer closed during the TLS handshake");
        else if (s->tls)
            (void)aq_fail(&err, ECONNRESET, "the peer closed without ending TLS");
        stream_end(s, &err);
    } else if (n < 0)
        stream_end_errno(s, (int)-n, "reading from the peer");
    else if (n > 0 && !stream_is_tls(s))
        stream_give(s, buf->base, (size_t)n);
    else if (n > 0)
        stream_feed_tls(s, buf->base, (size_t)n);
}

/* The peer reads no more. What it said before, such as why, is still in the socket: a server
 * that answers in the middle of a body resets the connection when it has lingered long enough.
 */
static void stream_end_writing(struct stream *s)
{
    ssize_t got = 1;
    uv_os_fd_t fd;

    for (int i = 0; i < LAST_WORDS && got > 0 && !s->closed && !s->ended && !s->paused; i++) {
        if (!s->handle || !s->ops->hears_out || uv_fileno((uv_handle_t *)&s->handle->uv, &fd) < 0)
            break;
        got = recv(fd, read_buffer, sizeof(read_buffer), MSG_DONTWAIT);
        if (got > 0 && stream_is_tls(s))
            stream_feed_tls(s, read_buffer, (size_t)got);
        else if (got > 0)
            stream_give(s, read_buffer, (size_t)got);
    }
    if (!s->closed)
        stream_end_errno(s, s->failed, "writing to the peer");
}

static void stream_update_reading(struct stream *s)
{
    if (!s->connected || !s->handle || s->ended || s->closed)
        return;
    if (s->paused && (s->is_open || !stream_is_tls(s)))
        (void)uv_read_stop(&s->handle->uv.stream);
    else
        (void)uv_read_start(&s->handle->uv.stream, stream_on_alloc, stream_on_uv_read);
}

void stream_pause(struct stream *s)
{
    s->paused = true;
    stream_update_reading(s);
}

void stream_resume(struct stream *s)
{
    if (!s->paused)
        return;
    s->paused = false;
    stream_update_reading(s);
    if (s->tls || s->pushed.len)
        stream_want_later(s); /* bytes may be waiting in memory */
}

bool stream_is_paused(const struct stream *s)
{
    return s->paused;
}

bool stream_is_quiet(const struct stream *s)
{
    char byte;
    int fd;

    if (!s->is_open || s->failed || s->ended || s->closed || s->pushed.len || stream_queued(s)
        || !s->handle || uv_fileno((uv_handle_t *)&s->handle->uv, &fd) < 0)
        return false;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0
           && (errno == EAGAIN || errno == EWOULDBLOCK);
}

bool stream_has_left(const struct stream *s)
{
    struct pollfd look = { .events = POLLRDHUP };

    return s->paused && s->handle && !s->ended && !s->closed
           && uv_fileno((uv_handle_t *)&s->handle->uv, &look.fd) == 0 && poll(&look, 1, 0) > 0;
}

void stream_push_back(struct stream *s, const char *bytes, size_t len)
{
    strbuf_add(&s->pushed, bytes, len);
    if (len)
        stream_want_later(s);
}

/* What must not happen within a call of the owner. */
static void stream_on_later(void *data)
{
    struct stream *s = data;

    stream_give_pushed(s);
    if (!s->closed && s->tls && s->is_open && !s->paused && !s->ended)
        stream_pump_tls(s);
    if (!s->closed && s->failed)
        stream_end_writing(s);
}

void stream_connected(struct stream *s)
{
    s->connected = true;
    if (s->kind == STREAM_TCP) {
        (void)uv_tcp_nodelay(&s->handle->uv.tcp, 1);
        (void)uv_tcp_keepalive(&s->handle->uv.tcp, 1, KEEPALIVE_SEC);
    }
    s->is_open = !stream_is_tls(s);
    stream_update_reading(s);
    if (s->tls)
        (void)stream_shake_hands(s);
}

void stream_limit_unacknowledged(struct stream *s, int64_t usec)
{
    unsigned msec = (unsigned)(usec / USEC_PER_MSEC);
    uv_os_fd_t fd;

    if (s->kind == STREAM_TCP && !s->closed
        && uv_fileno((const uv_handle_t *)&s->handle->uv.tcp, &fd) == 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &msec, sizeof(msec));
}

/* ---- writing ---- */

static void stream_fail_later(struct stream *s, int code)
{
    s->failed = code;
    strbuf_done(&s->out);
    stream_want_later(s);
}

static void stream_on_shutdown(uv_shutdown_t *req, int status)
{
    (void)req;
    (void)status;
}

static void stream_on_written(uv_write_t *req, int status)
{
    struct stream *s = req->data;

    s->writing = false;
    s->sent += s->flight.len;
    strbuf_done(&s->flight);
    if (s->closed)
        return;
    if (status < 0) {
        s->failed = -status;
        stream_end_writing(s);
        return;
    }
    stream_flush(s);
    if (s->writing || s->failed)
        return;
    if (s->shutting)
        (void)uv_shutdown(&s->shutdown, &s->handle->uv.stream, stream_on_shutdown);
    else if (s->is_open && s->ops->on_drain)
        s->ops->on_drain(s->data);
}

/* Hand what is queued to libuv, which waits for the socket. */
static void stream_start_write(struct stream *s)
{
    struct strbuf swap = s->flight;
    uv_buf_t buf;
    int r;

    s->flight = s->out;
    s->out = swap;
    buf = uv_buf_init(s->flight.data, (unsigned)s->flight.len);
    s->write.data = s;
    s->writing = true;
    r = uv_write(&s->write, &s->handle->uv.stream, &buf, 1, stream_on_written);
    if (r < 0) {
        s->writing = false;
        strbuf_done(&s->flight);
        stream_fail_later(s, -r);
    }
}

/* Bytes the socket took of these at once; 0 also if it is full. -errno. */
static ssize_t stream_try_write(struct stream *s, const uv_buf_t *bufs, unsigned count)
{
    int n = uv_try_write(&s->handle->uv.stream, bufs, count);

    if (n == UV_EAGAIN)
        return 0;
    if (n > 0)
        s->sent += (uint64_t)n;
    return n;
}

static void stream_flush(struct stream *s)
{
    uv_buf_t buf = uv_buf_init(s->out.data, (unsigned)s->out.len);
    ssize_t n;

    if (s->writing || !s->out.len || s->failed)
        return;
    n = stream_try_write(s, &buf, 1);
    if (n < 0) {
        stream_fail_later(s, (int)-n);
        return;
    }
    strbuf_consume(&s->out, (size_t)n);
    if (s->out.len)
        stream_start_write(s);
    else
        strbuf_done(&s->out);
}

/* Queue all but the first 'skip' bytes. */
static void stream_queue_rest(struct stream *s, const uv_buf_t *bufs, unsigned count, size_t skip)
{
    for (unsigned i = 0; i < count; i++) {
        size_t gone = AQ_MIN(skip, bufs[i].len);

        strbuf_add(&s->out, bufs[i].base + gone, bufs[i].len - gone);
        skip -= gone;
    }
}

static int stream_write_plain(struct stream *s, const uv_buf_t *bufs, unsigned count, size_t total)
{
    ssize_t n = 0;

    if (!s->writing && !s->out.len)
        n = stream_try_write(s, bufs, count);
    if (n < 0) {
        stream_fail_later(s, (int)-n);
        return -EPIPE;
    }
    if ((size_t)n == total)
        return 0;
    stream_queue_rest(s, bufs, count, (size_t)n);
    if (!s->writing)
        stream_start_write(s);
    return 0;
}

static int stream_write_tls(struct stream *s, const uv_buf_t *bufs, unsigned count, size_t total)
{
    char record[RECORD_SIZE];
    uv_buf_t joined = uv_buf_init(record, 0);

    /* several small pieces are one record */
    if (count > 1 && total <= sizeof(record)) {
        for (unsigned i = 0; i < count; joined.len += bufs[i++].len)
            memcpy(record + joined.len, bufs[i].base, bufs[i].len);
        bufs = &joined;
        count = 1;
    }
    for (unsigned i = 0; i < count; i++)
        if (tls_session_write(s->tls, bufs[i].base, bufs[i].len, NULL) < 0) {
            stream_fail_later(s, EPROTO);
            return -EPIPE;
        }
    return s->failed ? -EPIPE : 0;
}

int stream_writev(struct stream *s, const uv_buf_t *bufs, unsigned count)
{
    size_t total = 0;

    if (s->failed || s->shutting || s->closed || !s->is_open)
        return -EPIPE;
    for (unsigned i = 0; i < count; i++)
        total += bufs[i].len;
    if (!total)
        return 0;
    if (s->memory_out) {
        for (unsigned i = 0; i < count; i++)
            strbuf_add(s->memory_out, bufs[i].base, bufs[i].len);
        s->sent += total;
        return 0;
    }
    return s->tls ? stream_write_tls(s, bufs, count, total)
                  : stream_write_plain(s, bufs, count, total);
}

int stream_write(struct stream *s, const void *bytes, size_t len)
{
    uv_buf_t buf = { .base = (char *)(uintptr_t)bytes, .len = len };

    return stream_writev(s, &buf, 1);
}

/* Bytes of 'flight' that libuv still has. */
static size_t stream_in_flight(const struct stream *s)
{
    return s->writing ? uv_stream_get_write_queue_size(&s->handle->uv.stream) : 0;
}

size_t stream_queued(const struct stream *s)
{
    return s->out.len + stream_in_flight(s);
}

uint64_t stream_sent(const struct stream *s)
{
    return s->sent + (s->writing ? s->flight.len - stream_in_flight(s) : 0);
}

void stream_shutdown(struct stream *s)
{
    if (s->shutting || s->closed || !s->is_open || s->failed)
        return;
    if (s->tls)
        tls_session_shutdown(s->tls);
    s->shutting = true;
    if (s->handle && !s->writing && !s->failed)
        (void)uv_shutdown(&s->shutdown, &s->handle->uv.stream, stream_on_shutdown);
}

void stream_close(struct stream *s)
{
    if (!s || s->closed)
        return;
    if (s->tls && s->is_open && !s->failed && !s->shutting && !s->is_broken)
        tls_session_shutdown(s->tls); /* as far as the socket takes it at once */
    s->closed = true;
    s->ops = &no_ops;
    stream_stop_dialling(s);
    if (s->handle) {
        defer_cancel(s->later);
        uv_close(&s->handle->uv.any, stream_on_handle_closed);
    } else {
        defer_end(s->later, stream_release, s); /* a callback of its own may be running */
    }
}

/* A socket that lingers for no time is reset when it is closed; TLS does not say goodbye. */
void stream_break(struct stream *s)
{
    const struct linger none = { .l_onoff = 1, .l_linger = 0 };
    uv_os_fd_t fd;

    s->is_broken = true;
    if (s->handle && uv_fileno(&s->handle->uv.any, &fd) == 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

/* ---- other ends ---- */

/* -ENOTCONN if the other side has reset the connection. */
static int stream_find_address(struct stream *s)
{
    struct sockaddr_storage addr;
    int len = sizeof(addr), r;

    if ((r = uv_tcp_getpeername(&s->handle->uv.tcp, (struct sockaddr *)&addr, &len)) < 0)
        return r;
    return uv_ip_name((struct sockaddr *)&addr, s->address, sizeof(s->address));
}

int stream_accept(uv_stream_t *listening, struct tls_context *tls, const struct stream_ops *ops,
                  void *data, struct stream **ret, struct aq_error *err)
{
    enum stream_kind kind = listening->type == UV_TCP ? STREAM_TCP : STREAM_UNIX;
    struct stream *s = stream_new(listening->loop, kind, ops, data);
    int r;

    stream_renew_handle(s);
    if (tls)
        s->tls_later = tls_context_ref(tls);
    r = uv_accept(listening, &s->handle->uv.stream);
    if (r == 0 && kind == STREAM_TCP) /* who asks is known for as long as it is worked on */
        r = stream_find_address(s);
    if (r < 0) {
        stream_close(s);
        return aq_fail(err, -r, "cannot accept a connection: %s", uv_strerror(r));
    }
    stream_connected(s);
    *ret = s;
    return 0;
}

struct stream *stream_memory(uv_loop_t *loop, struct strbuf *out, const struct stream_ops *ops,
                             void *data)
{
    struct stream *s = stream_new(loop, STREAM_MEMORY, ops, data);

    s->memory_out = out;
    s->is_open = s->connected = true;
    return s;
}

void stream_memory_feed(struct stream *s, const char *bytes, size_t len)
{
    stream_give(s, bytes, len);
}

void stream_memory_end(struct stream *s)
{
    stream_end(s, &(struct aq_error){ .code = 0 });
}

bool stream_get_peer(const struct stream *s, struct tls_peer *ret)
{
    return s->tls && s->is_open && tls_session_get_peer(s->tls, ret);
}

bool stream_is_tls(const struct stream *s)
{
    return s->tls || s->tls_later;
}

const char *stream_get_address(struct stream *s)
{
    if (s->kind != STREAM_TCP)
        return s->kind == STREAM_UNIX ? "unix" : "memory";
    if (!s->address[0] && stream_find_address(s) < 0)
        (void)snprintf(s->address, sizeof(s->address), "unknown");
    return s->address;
}

/* ---- as an end of a pump ---- */

static int stream_put(void *end, const char *bytes, size_t len)
{
    int r = stream_write(end, bytes, len);

    return r < 0 ? r : stream_queued(end) > PUMP_QUEUE_HIGH;
}

static void stream_hold(void *end, bool is_paused)
{
    if (is_paused)
        stream_pause(end);
    else
        stream_resume(end);
}

static void stream_finish(void *end)
{
    stream_shutdown(end);
}

const struct pump_ops stream_pump = { .put = stream_put,
                                      .pause = stream_hold,
                                      .finish = stream_finish };
