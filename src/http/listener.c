/* SPDX-License-Identifier: Apache-2.0 */
/* A listening socket that hands out streams. */
#include "http/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "http/defer.h"

#define BACKLOG 1024
#define AGAIN_MSEC 100 /* until a connection that waits is told of again */
#define TURN_ACCEPTS 32

struct listener {
    union {
        uv_handle_t any;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    struct address address;
    struct tls_context *tls;
    listener_waiting_fn *on_waiting;
    void *data;
    struct defer *again; /* libuv says nothing of others while one waits */
    uint64_t turn_msec;  /* the loop's time of the turn in which so many came: */
    unsigned turn_count;
    struct stat bound; /* the socket's file as it was made; zeroed = none */
};

/* Others are to be served between many that come at once. */
static bool listener_may_accept(struct listener *l)
{
    uint64_t now = uv_now(l->uv.any.loop);

    if (l->turn_msec != now) {
        l->turn_msec = now;
        l->turn_count = 0;
    }
    return l->turn_count++ < TURN_ACCEPTS;
}

static void listener_on_connection(uv_stream_t *uv, int status)
{
    struct listener *l = uv->data;

    if (status < 0)
        return;
    if (listener_may_accept(l))
        l->on_waiting(l, l->data);
    else
        defer_start(l->again, 0);
}

static void listener_on_again(void *data)
{
    struct listener *l = data;

    l->on_waiting(l, l->data);
}

static int listener_bind_tcp(struct listener *l)
{
    struct sockaddr_in6 six;
    struct sockaddr_in four;
    const char *host = !strcmp(l->address.host, "localhost") ? "127.0.0.1" : l->address.host;

    if (uv_ip4_addr(host, l->address.port, &four) == 0)
        return uv_tcp_bind(&l->uv.tcp, (const struct sockaddr *)&four, 0);
    if (uv_ip6_addr(host, l->address.port, &six) == 0)
        return uv_tcp_bind(&l->uv.tcp, (const struct sockaddr *)&six, 0);
    return UV_EINVAL;
}

/* Remove a socket's file that nobody listens on any more. */
static void listener_remove_stale(const char *path)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    AQ_CLEANUP(aq_closep) int fd = -1;
    struct stat st;

    if (lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
        return;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    memcpy(addr.sun_path, path, strlen(path) + 1);
    if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0 && errno == ECONNREFUSED)
        (void)unlink(path);
}

/* The socket has its mode before it has its name, less the umask, which stays as it is: threads
 * make files meanwhile. 0 or -errno.
 */
static int listener_bind_path(int fd, const struct sockaddr_un *addr, mode_t mode)
{
    if (fchmod(fd, mode) < 0 || bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0
        || fchmodat(AT_FDCWD, addr->sun_path, mode, 0) < 0)
        return -errno;
    return 0;
}

/* Not by libuv, which would remove whatever is there by this name when the handle is closed. */
static int listener_bind_unix(struct listener *l, unsigned mode)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

    if (fd < 0)
        return -errno;
    listener_remove_stale(l->address.path);
    memcpy(addr.sun_path, l->address.path, strlen(l->address.path) + 1);
    r = listener_bind_path(fd, &addr, mode ? mode : 0600);
    if (r == 0)
        (void)lstat(l->address.path, &l->bound);
    if (r == 0)
        r = uv_pipe_open(&l->uv.pipe, fd);
    if (r < 0)
        aq_closep(&fd);
    return r;
}

/* Remove the socket's file, unless another has been made in its place. */
static void listener_unlink(const struct listener *l)
{
    struct stat st;

    if (l->bound.st_ino && lstat(l->address.path, &st) == 0 && st.st_dev == l->bound.st_dev
        && st.st_ino == l->bound.st_ino)
        (void)unlink(l->address.path);
}

static void listener_on_closed(uv_handle_t *handle)
{
    struct listener *l = handle->data;

    tls_context_free(l->tls);
    free(l);
}

void listener_close(struct listener *l)
{
    if (!l)
        return;
    listener_unlink(l);
    defer_cancel(l->again);
    uv_close(&l->uv.any, listener_on_closed);
}

static int listener_start(struct listener *l, const struct listener_options *options,
                          struct aq_error *err)
{
    int r = l->address.is_unix ? listener_bind_unix(l, options->mode) : listener_bind_tcp(l);

    if (r == 0)
        r = uv_listen(&l->uv.stream, BACKLOG, listener_on_connection);
    if (r == UV_EINVAL && !l->address.is_unix)
        return aq_fail(err, EINVAL, "cannot listen on '%s': give an IP address and port",
                       options->address);
    if (r < 0)
        return aq_fail(err, -r, "cannot listen on '%s': %s", options->address, uv_strerror(r));
    return 0;
}

int listener_new(uv_loop_t *loop, const struct listener_options *options,
                 listener_waiting_fn *on_waiting, void *data, struct listener **ret,
                 struct aq_error *err)
{
    struct address address;
    struct listener *l;
    int r;

    r = address_parse(options->address, 0, &address, err);
    if (r < 0)
        return r;
    if (!options->tls && !options->insecure && !address_is_local(&address))
        return aq_fail(err, EPERM,
                       "'%s' can be reached from outside without TLS: give it a certificate, or "
                       "set 'insecure = true' if something before it speaks TLS",
                       options->address);
    l = aq_alloc(sizeof(*l));
    l->again = defer_new(loop, listener_on_again, l);
    r = address.is_unix ? uv_pipe_init(loop, &l->uv.pipe, 0) : uv_tcp_init(loop, &l->uv.tcp);
    if (r < 0) {
        defer_cancel(l->again);
        free(l);
        return aq_fail(err, -r, "cannot make a socket: %s", uv_strerror(r));
    }
    l->uv.any.data = l;
    l->address = address;
    l->tls = options->tls ? tls_context_ref(options->tls) : NULL;
    l->on_waiting = on_waiting;
    l->data = data;
    r = listener_start(l, options, err);
    if (r < 0) {
        listener_close(l);
        return r;
    }
    *ret = l;
    return 0;
}

int listener_accept(struct listener *l, const struct stream_ops *ops, void *data,
                    struct stream **ret, struct aq_error *err)
{
    int r = stream_accept(&l->uv.stream, l->tls, ops, data, ret, err);

    if (r == -ENOMEM)
        listener_wait(l);
    return r;
}

void listener_wait(struct listener *l)
{
    defer_start(l->again, AGAIN_MSEC);
}

uint16_t listener_get_port(const struct listener *l)
{
    struct sockaddr_storage addr;
    int len = sizeof(addr);

    if (l->address.is_unix || uv_tcp_getsockname(&l->uv.tcp, (struct sockaddr *)&addr, &len) < 0)
        return 0;
    return addr.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&addr)->sin6_port)
                                      : ntohs(((struct sockaddr_in *)&addr)->sin_port);
}
