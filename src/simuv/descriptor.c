/* SPDX-License-Identifier: Apache-2.0 */
/* descriptor.c - system calls on descriptors of simulated sockets, by numbers that Linux never uses
 *
 * Code that has one from uv_fileno() looks at a socket past libuv. Other descriptors are the real
 * machine's. The checked variants are those of _FORTIFY_SOURCE.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/vec.h"
#include "simuv/simuv_internal.h"

#define FIRST_DESCRIPTOR 0x40000000
#define FIRST_PROCESS 10000000 /* beyond Linux's, so that a signal reaches nobody */

static struct simuv_socket **descriptors;
static size_t descriptor_count, descriptor_cap;
static size_t descriptor_free; /* all below are taken */

int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
ssize_t __real_recv(int fd, void *into, size_t len, int flags);
int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
pid_t __real_getpid(void);
int __real_gethostname(char *into, size_t len);

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap___poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t size);
ssize_t __wrap_recv(int fd, void *into, size_t len, int flags);
ssize_t __wrap___recv_chk(int fd, void *into, size_t len, size_t size, int flags);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
pid_t __wrap_getpid(void);
int __wrap_gethostname(char *into, size_t len);
int __wrap___gethostname_chk(char *into, size_t len, size_t size);

/* ---- numbers ---- */

int simuv_descriptor_of(struct simuv_socket *socket)
{
    if (socket->fd >= 0)
        return socket->fd;
    while (descriptor_free < descriptor_count && descriptors[descriptor_free])
        descriptor_free++;
    if (descriptor_free == descriptor_count) {
        vec_grow(&descriptors, &descriptor_cap, descriptor_count + 1,
                 sizeof(struct simuv_socket *));
        descriptor_count++;
    }
    descriptors[descriptor_free] = socket;
    socket->fd = FIRST_DESCRIPTOR + (int)descriptor_free++;
    return socket->fd;
}

void simuv_descriptor_free(struct simuv_socket *socket)
{
    size_t i = (size_t)socket->fd - FIRST_DESCRIPTOR;

    if (socket->fd < 0)
        return;
    descriptors[i] = NULL;
    descriptor_free = AQ_MIN(descriptor_free, i);
    socket->fd = -1;
}

static struct simuv_socket *descriptor_find(int fd)
{
    size_t i = (size_t)fd - FIRST_DESCRIPTOR;

    return fd >= FIRST_DESCRIPTOR && i < descriptor_count ? descriptors[i] : NULL;
}

int uv_fileno(const uv_handle_t *handle, uv_os_fd_t *ret)
{
    struct simuv_socket *socket = NULL;

    if (handle->type == UV_TCP || handle->type == UV_NAMED_PIPE)
        socket = simuv_stream_socket((const uv_stream_t *)handle);
    if (!socket || uv_is_closing(handle))
        return UV_EBADF;
    *ret = simuv_descriptor_of(socket);
    return 0;
}

/* ---- calls ---- */

ssize_t __wrap_recv(int fd, void *into, size_t len, int flags)
{
    struct simuv_socket *socket = descriptor_find(fd);
    ssize_t got;

    if (!socket)
        return __real_recv(fd, into, len, flags);
    got = simuv_socket_read(socket, into, len, (flags & MSG_PEEK) != 0);
    if (got >= 0)
        return got;
    errno = (int)-got;
    return -1;
}

ssize_t __wrap___recv_chk(int fd, void *into, size_t len, size_t size, int flags)
{
    if (len > size)
        simuv_cannot("recv() beyond its buffer");
    return __wrap_recv(fd, into, len, flags);
}

static short descriptor_look(const struct simuv_socket *socket)
{
    short events = 0;

    if (simuv_socket_is_readable(socket))
        events |= POLLIN;
    if (socket->has_fin)
        events |= POLLRDHUP;
    if (socket->error)
        events |= POLLERR | POLLHUP | POLLRDHUP;
    return events;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    struct simuv_socket *socket = count == 1 ? descriptor_find(fds[0].fd) : NULL;

    if (!socket)
        return __real_poll(fds, count, timeout);
    fds[0].revents = (short)(descriptor_look(socket) & (fds[0].events | POLLERR | POLLHUP));
    return fds[0].revents != 0;
}

int __wrap___poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t size)
{
    if (count > size / sizeof(*fds))
        simuv_cannot("poll() beyond its array");
    return __wrap_poll(fds, count, timeout);
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    struct simuv_socket *socket = descriptor_find(fd);
    struct linger linger;

    if (!socket)
        return __real_setsockopt(fd, level, name, value, len);
    if (level == SOL_SOCKET && name == SO_LINGER && len == sizeof(linger)) {
        memcpy(&linger, value, sizeof(linger));
        socket->lingers_not = linger.l_onoff && !linger.l_linger;
    }
    return 0;
}

/* ---- who a process is: the same in each run ---- */

pid_t __wrap_getpid(void)
{
    const struct simuv_machine *machine;

    if (!simuv_has_begun || !simuv_current_host())
        return __real_getpid();
    machine = simuv_machine_here();
    return FIRST_PROCESS + (pid_t)(machine->id + machine->boots * 1000003U) % FIRST_DESCRIPTOR;
}

int __wrap_gethostname(char *into, size_t len)
{
    if (!simuv_has_begun || !simuv_current_host())
        return __real_gethostname(into, len);
    (void)snprintf(into, len, "host%u", simuv_current_host());
    return 0;
}

int __wrap___gethostname_chk(char *into, size_t len, size_t size)
{
    return __wrap_gethostname(into, AQ_MIN(len, size));
}
