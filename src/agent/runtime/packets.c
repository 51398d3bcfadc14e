/* SPDX-License-Identifier: Apache-2.0 */
/* packets.c - one connection to a monitor, on the loop */
#include "agent/runtime/packets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/sender.h"

struct packets {
    uv_poll_t poll;
    int fd;
    packets_fn *on_packet;
    void *data;
};

static void packets_on_readable(uv_poll_t *poll, int status, int events)
{
    struct packets *p = poll->data;
    char packet[MONITOR_MESSAGE_MAX];
    ssize_t got = status < 0 ? 0 : recv(p->fd, packet, sizeof(packet), MSG_DONTWAIT);

    (void)events;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0)
        uv_poll_stop(poll);
    p->on_packet(p->data, packet, got < 0 ? 0 : (size_t)got);
}

int packets_new(uv_loop_t *loop, int fd, packets_fn *on_packet, void *data, struct packets **ret,
                struct aq_error *err)
{
    struct packets *p = aq_alloc(sizeof(*p));
    int r = uv_poll_init(loop, &p->poll, fd);

    if (r < 0) {
        free(p);
        aq_closep(&fd);
        return aq_fail(err, -r, "watch a monitor's socket: %s", uv_strerror(r));
    }
    p->poll.data = p;
    p->fd = fd;
    p->on_packet = on_packet;
    p->data = data;
    (void)uv_poll_start(&p->poll, UV_READABLE, packets_on_readable);
    *ret = p;
    return 0;
}

int packets_connect_to(const char *directory, const char *name, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                          0);
    AQ_CLEANUP(aq_closep) int dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    if (fd < 0 || dir < 0 || sender_ask(fd) < 0)
        return aq_fail_errno(err, "connect to %s of '%s'", name, directory);
    /* by the descriptor: the directory's path may be longer than an address */
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", dir, name);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return aq_fail_errno(err, "connect to %s of '%s'", name, directory);
    return AQ_TAKE_FD(fd);
}

int packets_connect(const char *directory, struct aq_error *err)
{
    return packets_connect_to(directory, MONITOR_SOCKET, err);
}

int packets_send(struct packets *packets, const void *packet, size_t len)
{
    return send(packets->fd, packet, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int packets_send_kept(int socket, const int kept[MONITOR_KEPT])
{
    union {
        char bytes[CMSG_SPACE(MONITOR_KEPT * sizeof(int))];
        struct cmsghdr align;
    } control = { .bytes = { 0 } };
    char type = MONITOR_KEEP;
    struct iovec part = { &type, sizeof(type) };
    const struct msghdr message = { .msg_iov = &part,
                                    .msg_iovlen = 1,
                                    .msg_control = &control,
                                    .msg_controllen = sizeof(control) };

    control.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(MONITOR_KEPT * sizeof(int)),
                                      .cmsg_level = SOL_SOCKET,
                                      .cmsg_type = SCM_RIGHTS };
    memcpy(CMSG_DATA(&control.align), kept, MONITOR_KEPT * sizeof(int));
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

static void packets_on_closed(uv_handle_t *handle)
{
    struct packets *p = handle->data;

    aq_closep(&p->fd);
    free(p);
}

void packets_close(struct packets *packets)
{
    if (!packets)
        return;
    (void)uv_poll_stop(&packets->poll);
    uv_close((uv_handle_t *)&packets->poll, packets_on_closed);
}
