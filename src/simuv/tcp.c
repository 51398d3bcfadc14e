/* SPDX-License-Identifier: Apache-2.0 */
/* tcp.c - TCP handles: addresses, binding and connecting; pipes, which lead nowhere */
#include <errno.h>
#include <string.h>

#include "simuv/simuv_internal.h"

static void tcp_init_stream(uv_loop_t *loop, uv_stream_t *stream, uv_handle_type type)
{
    simuv_handle_init(loop, (uv_handle_t *)stream, type);
    stream->write_queue_size = 0;
    stream->alloc_cb = NULL;
    stream->read_cb = NULL;
    stream->connect_req = NULL;
    stream->shutdown_req = NULL;
    stream->connection_cb = NULL;
    stream->accepted_fd = -1;
    stream->queued_fds = NULL;
    list_init((struct list *)(void *)stream->write_queue);
    list_init((struct list *)(void *)stream->write_completed_queue);
}

static struct simuv_socket *tcp_socket(uv_stream_t *stream)
{
    if (!simuv_stream_socket(stream)) {
        stream->queued_fds = simuv_socket_new(simuv_loop_of(stream->loop)->host);
        simuv_stream_socket(stream)->uv = stream;
    }
    return simuv_stream_socket(stream);
}

int uv_tcp_init(uv_loop_t *loop, uv_tcp_t *tcp)
{
    tcp_init_stream(loop, (uv_stream_t *)tcp, UV_TCP);
    return 0;
}

int uv_tcp_open(uv_tcp_t *tcp, uv_os_sock_t fd)
{
    (void)tcp;
    (void)fd;
    return UV_ENOSYS; /* it is the real machine's */
}

int uv_tcp_nodelay(uv_tcp_t *tcp, int is_on)
{
    (void)is_on;
    return simuv_stream_socket((uv_stream_t *)tcp) ? 0 : UV_EBADF;
}

/* How long it takes to find a peer that is gone is the same for all. */
int uv_tcp_keepalive(uv_tcp_t *tcp, int is_on, unsigned delay)
{
    struct simuv_socket *socket = simuv_stream_socket((uv_stream_t *)tcp);

    (void)delay;
    if (!socket)
        return UV_EBADF;
    socket->keeps_alive = is_on;
    if (is_on && socket->peer
        && (!simuv_way_is_open(socket->out)
            || !simuv_way_is_open(simuv_way_find(socket->peer->host, socket->host))))
        simuv_socket_watch(socket);
    return 0;
}

int uv_tcp_bind(uv_tcp_t *tcp, const struct sockaddr *address, unsigned flags)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)address;
    struct simuv_socket *socket;
    struct simuv_machine *machine;

    (void)flags;
    if (address->sa_family != AF_INET)
        return UV_EAFNOSUPPORT;
    socket = tcp_socket((uv_stream_t *)tcp);
    machine = simuv_machine_find(socket->host, four->sin_addr);
    if (!machine || machine->id != socket->host)
        return UV_EADDRNOTAVAIL;
    socket->local = *four;
    return 0;
}

int uv_tcp_connect(uv_connect_t *req, uv_tcp_t *tcp, const struct sockaddr *address,
                   uv_connect_cb fn)
{
    uv_stream_t *stream = (uv_stream_t *)tcp;
    int r;

    if (address->sa_family != AF_INET)
        return UV_ENETUNREACH; /* the network has no IPv6 */
    if (stream->connect_req)
        return UV_EALREADY;
    r = simuv_socket_connect(tcp_socket(stream), (const struct sockaddr_in *)(const void *)address);
    if (r < 0)
        return r;
    req->type = UV_CONNECT;
    req->handle = stream;
    req->cb = fn;
    stream->connect_req = req;
    stream->loop->active_reqs.count++;
    simuv_handle_start((uv_handle_t *)stream);
    return 0;
}

static int tcp_copy_name(const struct sockaddr_in *from, struct sockaddr *ret, int *len)
{
    memcpy(ret, from, AQ_MIN((size_t)*len, sizeof(*from)));
    *len = sizeof(*from);
    return 0;
}

int uv_tcp_getsockname(const uv_tcp_t *tcp, struct sockaddr *ret, int *len)
{
    const struct simuv_socket *socket = simuv_stream_socket((const uv_stream_t *)tcp);

    return socket ? tcp_copy_name(&socket->local, ret, len) : UV_EBADF;
}

int uv_tcp_getpeername(const uv_tcp_t *tcp, struct sockaddr *ret, int *len)
{
    const struct simuv_socket *socket = simuv_stream_socket((const uv_stream_t *)tcp);

    if (!socket)
        return UV_EBADF;
    return socket->state == SIMUV_CONNECTED ? tcp_copy_name(&socket->remote, ret, len)
                                            : UV_ENOTCONN;
}

/* ---- pipes ---- */

int uv_pipe_init(uv_loop_t *loop, uv_pipe_t *pipe, int ipc)
{
    tcp_init_stream(loop, (uv_stream_t *)pipe, UV_NAMED_PIPE);
    pipe->ipc = ipc;
    pipe->pipe_fname = NULL;
    return 0;
}

int uv_pipe_open(uv_pipe_t *pipe, uv_file fd)
{
    (void)pipe;
    (void)fd;
    return UV_ENOSYS;
}

/* Nobody listens on any path. */
void uv_pipe_connect(uv_connect_t *req, uv_pipe_t *pipe, const char *name, uv_connect_cb fn)
{
    uv_stream_t *stream = (uv_stream_t *)pipe;
    struct simuv_socket *socket = tcp_socket(stream);

    (void)name;
    req->type = UV_CONNECT;
    req->handle = stream;
    req->cb = fn;
    stream->connect_req = req;
    stream->loop->active_reqs.count++;
    socket->state = SIMUV_ENDED;
    socket->error = ENOENT;
    simuv_handle_start((uv_handle_t *)stream);
    simuv_stream_notify(socket);
}
