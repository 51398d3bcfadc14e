/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - libuv's streams over simulated sockets: reading, writing, accepting */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "simuv/simuv_internal.h"

#define READS 32        /* of one stream in a turn, as in libuv */
#define SUGGESTED 65536 /* room for a read */

#define STREAM_LIST(queue) ((struct list *)(void *)(queue))

static uv_write_t *stream_first_write(uv_stream_t *stream)
{
    struct list *queue = STREAM_LIST(stream->write_queue);

    return list_is_empty(queue) ? NULL : AQ_CONTAINER_OF(queue->next, uv_write_t, queue[0]);
}

/* ---- being active, and being told ---- */

static void stream_update_active(uv_stream_t *stream)
{
    if (stream->flags & (SIMUV_READING | SIMUV_LISTENING) || stream->connect_req
        || stream_first_write(stream))
        simuv_handle_start((uv_handle_t *)stream);
    else
        simuv_handle_stop((uv_handle_t *)stream);
}

static bool stream_is_interested(const struct simuv_socket *socket)
{
    const uv_stream_t *stream = socket->uv;

    if (stream->connect_req)
        return socket->state == SIMUV_CONNECTED || socket->error;
    if (stream->flags & SIMUV_LISTENING)
        return stream->accepted_fd < 0 && !list_is_empty(&socket->waiting);
    if (stream->flags & SIMUV_READING && simuv_socket_is_readable(socket))
        return true;
    return stream->write_queue_size > 0 && !socket->wants_room;
}

void simuv_stream_notify(struct simuv_socket *socket)
{
    struct simuv_loop *loop;

    if (!socket->uv || uv_is_closing((uv_handle_t *)socket->uv))
        return;
    if (socket->error)
        socket->wants_room = false;
    if (!stream_is_interested(socket) || !list_is_empty(&socket->io_link))
        return;
    loop = simuv_loop_of(socket->uv->loop);
    list_add(&loop->io, &socket->io_link);
    simuv_loop_touch(loop);
}

/* A write or shutdown ends in the next iteration. */
static void stream_feed(uv_stream_t *stream)
{
    struct simuv_loop *loop = simuv_loop_of(stream->loop);
    struct simuv_socket *socket = simuv_stream_socket(stream);

    if (!list_is_empty(&socket->pending_link))
        return;
    list_add(&loop->pending, &socket->pending_link);
    simuv_loop_touch(loop);
}

/* ---- listening ---- */

int uv_listen(uv_stream_t *stream, int backlog, uv_connection_cb fn)
{
    struct simuv_socket *socket = simuv_stream_socket(stream);
    int r = socket ? simuv_socket_listen(socket, backlog) : UV_EINVAL; /* it is not bound */

    if (r < 0)
        return r;
    stream->connection_cb = fn;
    stream->flags |= SIMUV_LISTENING;
    stream_update_active(stream);
    simuv_stream_notify(socket);
    return 0;
}

int uv_accept(uv_stream_t *server, uv_stream_t *client)
{
    struct simuv_socket *listener = simuv_stream_socket(server), *socket;

    if (server->accepted_fd < 0 || list_is_empty(&listener->waiting))
        return UV_EAGAIN;
    socket = LIST_ENTRY(list_take(&listener->waiting), struct simuv_socket, waiting_link);
    server->accepted_fd = -1;
    client->queued_fds = socket;
    client->flags |= SIMUV_READABLE | SIMUV_WRITABLE;
    socket->uv = client;
    simuv_stream_notify(listener);
    return 0;
}

static void stream_offer(uv_stream_t *stream)
{
    struct simuv_socket *listener = simuv_stream_socket(stream);

    while (!uv_is_closing((uv_handle_t *)stream) && stream->accepted_fd < 0
           && !list_is_empty(&listener->waiting)) {
        stream->accepted_fd = 0;
        stream->connection_cb(stream, 0);
    }
}

/* ---- connecting ---- */

static void stream_tell_connected(uv_stream_t *stream)
{
    struct simuv_socket *socket = simuv_stream_socket(stream);
    uv_connect_t *req = stream->connect_req;
    int error = socket->error;

    if (!error && socket->state != SIMUV_CONNECTED)
        return;
    stream->connect_req = NULL;
    stream->loop->active_reqs.count--;
    if (error)
        socket->was_told = true;
    else
        stream->flags |= SIMUV_READABLE | SIMUV_WRITABLE;
    stream_update_active(stream);
    if (req->cb)
        req->cb(req, -error);
}

/* ---- reading ---- */

int uv_read_start(uv_stream_t *stream, uv_alloc_cb alloc, uv_read_cb fn)
{
    if (!alloc || !fn || uv_is_closing((uv_handle_t *)stream))
        return UV_EINVAL;
    if (stream->flags & SIMUV_READING)
        return UV_EALREADY;
    if (!(stream->flags & SIMUV_READABLE))
        return UV_ENOTCONN;
    stream->flags |= SIMUV_READING;
    stream->alloc_cb = alloc;
    stream->read_cb = fn;
    stream_update_active(stream);
    simuv_stream_notify(simuv_stream_socket(stream));
    return 0;
}

int uv_read_stop(uv_stream_t *stream)
{
    if (!(stream->flags & SIMUV_READING))
        return 0;
    stream->flags &= ~(unsigned)SIMUV_READING;
    stream_update_active(stream);
    return 0;
}

static void stream_end_reading(uv_stream_t *stream, int error, const uv_buf_t *buf)
{
    if (error == UV_EOF)
        (void)uv_read_stop(stream);
    else
        stream->flags &= ~(unsigned)(SIMUV_READABLE | SIMUV_WRITABLE);
    stream->read_cb(stream, error, buf);
    if (error != UV_EOF && !uv_is_closing((uv_handle_t *)stream))
        (void)uv_read_stop(stream);
}

static bool stream_read_once(uv_stream_t *stream)
{
    uv_buf_t buf = uv_buf_init(NULL, 0);
    ssize_t got;

    stream->alloc_cb((uv_handle_t *)stream, SUGGESTED, &buf);
    if (!buf.base || !buf.len) {
        stream->read_cb(stream, UV_ENOBUFS, &buf);
        return false;
    }
    got = simuv_socket_read(simuv_stream_socket(stream), buf.base, buf.len, false);
    if (got == -EAGAIN) {
        stream->read_cb(stream, 0, &buf);
        return false;
    }
    if (got <= 0) {
        stream_end_reading(stream, got ? (int)got : UV_EOF, &buf);
        return false;
    }
    stream->read_cb(stream, got, &buf);
    return (size_t)got == buf.len;
}

static void stream_read(uv_stream_t *stream)
{
    for (int i = 0; i < READS && stream->flags & SIMUV_READING; i++)
        if (!stream_read_once(stream))
            break;
}

/* ---- writing ---- */

static void stream_finish_write(uv_stream_t *stream, uv_write_t *req, int error)
{
    struct list *link = STREAM_LIST(req->queue);

    req->error = error;
    for (unsigned i = req->write_index; i < req->nbufs; i++)
        stream->write_queue_size -= req->bufs[i].len;
    list_remove(link);
    list_add(STREAM_LIST(stream->write_completed_queue), link);
    stream_feed(stream);
}

/* These bytes are gone; true if all of the request are. */
static bool stream_advance(uv_stream_t *stream, uv_write_t *req, size_t len)
{
    stream->write_queue_size -= len;
    while (req->write_index < req->nbufs) {
        uv_buf_t *buf = &req->bufs[req->write_index];
        size_t part = AQ_MIN(buf->len, len);

        buf->base += part;
        buf->len -= part;
        len -= part;
        if (buf->len)
            return false;
        req->write_index++;
    }
    return true;
}

static void stream_write_queued(uv_stream_t *stream)
{
    struct simuv_socket *socket = simuv_stream_socket(stream);
    uv_write_t *req;

    while ((req = stream_first_write(stream))) {
        ssize_t n = simuv_socket_write(socket, req->bufs + req->write_index,
                                       req->nbufs - req->write_index);

        if (n >= 0 && stream_advance(stream, req, (size_t)n)) {
            stream_finish_write(stream, req, 0);
        } else if (n >= 0) {
            simuv_stream_notify(socket); /* it took a part, and may take more */
            return;
        } else if (n == -EAGAIN) {
            simuv_socket_want_room(socket);
            return;
        } else {
            stream_finish_write(stream, req, (int)n);
        }
    }
}

int uv_write(uv_write_t *req, uv_stream_t *stream, const uv_buf_t bufs[], unsigned count,
             uv_write_cb fn)
{
    bool is_first = !stream_first_write(stream);

    if (!simuv_stream_socket(stream))
        return UV_EBADF;
    if (!(stream->flags & SIMUV_WRITABLE) && !stream->connect_req)
        return UV_EPIPE;
    req->type = UV_WRITE;
    req->cb = fn;
    req->handle = stream;
    req->send_handle = NULL;
    req->error = 0;
    req->write_index = 0;
    req->nbufs = count;
    req->bufs = count <= AQ_COUNT(req->bufsml) ? req->bufsml : aq_alloc_array(count, sizeof(*bufs));
    memcpy(req->bufs, bufs, count * sizeof(*bufs));
    for (unsigned i = 0; i < count; i++)
        stream->write_queue_size += bufs[i].len;
    stream->loop->active_reqs.count++;
    list_add(STREAM_LIST(stream->write_queue), STREAM_LIST(req->queue));
    stream_update_active(stream);
    if (is_first && !stream->connect_req)
        stream_write_queued(stream);
    return 0;
}

int uv_try_write(uv_stream_t *stream, const uv_buf_t bufs[], unsigned count)
{
    if (stream->connect_req || stream->write_queue_size)
        return UV_EAGAIN;
    if (!simuv_stream_socket(stream))
        return UV_EBADF;
    if (!(stream->flags & SIMUV_WRITABLE))
        return UV_EPIPE;
    return (int)simuv_socket_write(simuv_stream_socket(stream), bufs, count);
}

size_t uv_stream_get_write_queue_size(const uv_stream_t *stream)
{
    return stream->write_queue_size;
}

static void stream_tell_written(uv_stream_t *stream)
{
    struct list done, *link;

    list_init(&done);
    list_move(STREAM_LIST(stream->write_completed_queue), &done);
    while ((link = list_take(&done))) {
        uv_write_t *req = AQ_CONTAINER_OF(link, uv_write_t, queue[0]);

        if (req->bufs != req->bufsml)
            free(req->bufs);
        stream->loop->active_reqs.count--;
        stream_update_active(stream);
        if (req->cb)
            req->cb(req, req->error);
    }
}

/* ---- the end of writing ---- */

int uv_shutdown(uv_shutdown_t *req, uv_stream_t *stream, uv_shutdown_cb fn)
{
    if (!(stream->flags & SIMUV_WRITABLE) || stream->flags & SIMUV_SHUTTING
        || uv_is_closing((uv_handle_t *)stream))
        return UV_ENOTCONN;
    req->type = UV_SHUTDOWN;
    req->handle = stream;
    req->cb = fn;
    stream->shutdown_req = req;
    stream->flags = (stream->flags | SIMUV_SHUTTING) & ~(unsigned)SIMUV_WRITABLE;
    stream->loop->active_reqs.count++;
    if (!stream_first_write(stream))
        stream_feed(stream);
    return 0;
}

static void stream_tell_shut(uv_stream_t *stream, int status)
{
    uv_shutdown_t *req = stream->shutdown_req;

    stream->shutdown_req = NULL;
    stream->loop->active_reqs.count--;
    if (req->cb)
        req->cb(req, status);
}

static void stream_drain(uv_stream_t *stream)
{
    struct simuv_socket *socket = simuv_stream_socket(stream);
    int error = socket->state == SIMUV_CONNECTED ? 0 : UV_ENOTCONN;

    simuv_socket_shutdown(socket);
    stream_tell_shut(stream, error);
}

/* ---- in the turns of the loop ---- */

static void stream_on_io(uv_stream_t *stream)
{
    struct simuv_socket *socket = simuv_stream_socket(stream);

    if (stream->flags & SIMUV_LISTENING) {
        stream_offer(stream);
        return;
    }
    if (stream->connect_req)
        stream_tell_connected(stream);
    if (!uv_is_closing((uv_handle_t *)stream))
        stream_read(stream);
    if (!uv_is_closing((uv_handle_t *)stream) && !stream->connect_req)
        stream_write_queued(stream);
    if (!uv_is_closing((uv_handle_t *)stream))
        simuv_stream_notify(socket); /* what is left is for the next turn */
}

void simuv_streams_run_io(struct simuv_loop *loop)
{
    struct list ready, *link;

    list_init(&ready);
    list_move(&loop->io, &ready);
    while ((link = list_take(&ready)))
        stream_on_io(LIST_ENTRY(link, struct simuv_socket, io_link)->uv);
}

void simuv_streams_run_pending(struct simuv_loop *loop)
{
    struct list ready, *link;

    list_init(&ready);
    list_move(&loop->pending, &ready);
    while ((link = list_take(&ready))) {
        uv_stream_t *stream = LIST_ENTRY(link, struct simuv_socket, pending_link)->uv;

        stream_tell_written(stream);
        if (!uv_is_closing((uv_handle_t *)stream) && stream->shutdown_req
            && !stream_first_write(stream))
            stream_drain(stream);
    }
}

/* ---- closing ---- */

void simuv_stream_close(uv_stream_t *stream)
{
    struct simuv_socket *socket = simuv_stream_socket(stream);

    stream->flags &= ~(unsigned)(SIMUV_READING | SIMUV_READABLE | SIMUV_WRITABLE | SIMUV_LISTENING);
    stream->queued_fds = NULL;
    if (socket)
        simuv_socket_close(socket);
}

/* Requests that are under way end before the handle. */
void simuv_stream_finish_close(uv_stream_t *stream)
{
    uv_connect_t *connecting = stream->connect_req;
    struct list *queue = STREAM_LIST(stream->write_queue), *link;

    if (connecting) {
        stream->connect_req = NULL;
        stream->loop->active_reqs.count--;
        connecting->cb(connecting, UV_ECANCELED);
    }
    while ((link = list_take(queue))) {
        AQ_CONTAINER_OF(link, uv_write_t, queue[0])->error = UV_ECANCELED;
        list_add(STREAM_LIST(stream->write_completed_queue), link);
    }
    stream->write_queue_size = 0;
    stream_tell_written(stream);
    if (stream->shutdown_req)
        stream_tell_shut(stream, UV_ECANCELED);
    simuv_handle_stop((uv_handle_t *)stream);
}
