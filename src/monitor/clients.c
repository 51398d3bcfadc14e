/* SPDX-License-Identifier: Apache-2.0 */
/* clients.c - connections to monitor.sock */
#include "monitor/clients.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int clients_open(struct clients *clients, struct aq_error *err)
{
    const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = MONITOR_SOCKET };

    clients->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (clients->listener < 0)
        return aq_fail_errno(err, "socket");
    (void)unlink(address.sun_path);
    if (bind(clients->listener, (const struct sockaddr *)&address, sizeof(address)) < 0
        || listen(clients->listener, CLIENTS_MAX) < 0) {
        int r = aq_fail_errno(err, "listen on monitor.sock");

        aq_closep(&clients->listener);
        return r;
    }
    return 0;
}

void clients_stop_listening(struct clients *clients)
{
    if (clients->listener >= 0)
        (void)unlink(MONITOR_SOCKET); /* ours, not another monitor's */
    aq_closep(&clients->listener);
}

void clients_close(struct clients *clients)
{
    for (int i = 0; i < CLIENTS_MAX; i++)
        clients_drop(clients, i);
    clients_stop_listening(clients);
}

static bool clients_is_trusted(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0
           && (peer.uid == 0 || peer.uid == geteuid());
}

bool clients_has_any(const struct clients *clients)
{
    for (int i = 0; i < CLIENTS_MAX; i++)
        if (clients->slots[i].fd >= 0)
            return true;
    return false;
}

void clients_adopt(struct clients *clients, int fd)
{
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    clients->slots[0] = (struct client){ .fd = fd, .typed = STRBUF_INIT };
}

void clients_greet(struct clients *clients, int slot, const struct monitor_hello *hello)
{
    if (send(clients->slots[slot].fd, hello, sizeof(*hello), MSG_NOSIGNAL) < 0)
        clients_drop(clients, slot);
}

/* The terminal that connected shows why it is closed: with bytes left unread, it would find an
 * error in place of them.
 */
static void clients_refuse(int fd)
{
    char text[128], unread[MONITOR_MESSAGE_MAX];
    int len = snprintf(text, sizeof(text),
                       "%c\r\naliquot: this program has %d terminals, its limit; close one, then "
                       "connect again\r\n",
                       MONITOR_OUTPUT, CLIENTS_MAX);

    (void)shutdown(fd, SHUT_RD);
    while (recv(fd, unread, sizeof(unread), MSG_DONTWAIT) > 0)
        ;
    (void)send(fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int clients_accept(struct clients *clients, const struct monitor_hello *hello)
{
    AQ_CLEANUP(aq_closep) int fd = accept4(clients->listener, NULL, NULL,
                                           SOCK_CLOEXEC | SOCK_NONBLOCK);
    int slot = 0;

    while (slot < CLIENTS_MAX && clients->slots[slot].fd >= 0)
        slot++;
    if (fd < 0 || !clients_is_trusted(fd))
        return -1;
    if (slot == CLIENTS_MAX) {
        clients_refuse(fd);
        return -1;
    }
    clients->slots[slot] = (struct client){ .fd = AQ_TAKE_FD(fd), .typed = STRBUF_INIT };
    if (hello)
        clients_greet(clients, slot, hello);
    return clients->slots[slot].fd < 0 ? -1 : slot;
}

void clients_drop(struct clients *clients, int slot)
{
    aq_closep(&clients->slots[slot].fd);
    strbuf_done(&clients->slots[slot].typed);
    clients->slots[slot] = (struct client){ .fd = -1 };
}

/* The kernel installs no more of them than there is room for. */
static void clients_take_descriptors(struct msghdr *message, int ret_fds[MONITOR_KEPT])
{
    const struct cmsghdr *rights = CMSG_FIRSTHDR(message);

    for (int i = 0; i < MONITOR_KEPT; i++)
        ret_fds[i] = -1;
    if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS)
        memcpy(ret_fds, CMSG_DATA(rights),
               AQ_MIN(rights->cmsg_len - CMSG_LEN(0), MONITOR_KEPT * sizeof(int)));
}

long clients_receive(struct clients *clients, int slot, char *buf, int ret_fds[MONITOR_KEPT])
{
    union {
        char bytes[CMSG_SPACE(MONITOR_KEPT * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = { buf, MONITOR_MESSAGE_MAX };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof(control) };
    ssize_t got;

    do
        got = recvmsg(clients->slots[slot].fd, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        message.msg_controllen = 0;
    clients_take_descriptors(&message, ret_fds);
    if (got < 0)
        return errno == EAGAIN ? -1 : 0;
    return got;
}

/* A packet of a type byte and 'len' bytes; false if the client has no room. */
static bool clients_send_packet(const struct client *client, char type, const char *bytes,
                                size_t len)
{
    char packet[MONITOR_MESSAGE_MAX];

    packet[0] = type;
    if (len)
        memcpy(packet + 1, bytes, len);
    return send(client->fd, packet, len + 1, MSG_NOSIGNAL) >= 0;
}

bool clients_send_skipped(const struct client *client)
{
    return clients_send_packet(client, MONITOR_SKIPPED, NULL, 0);
}

size_t clients_send_output(const struct client *client, const char *bytes, size_t len)
{
    size_t sent = 0;

    while (sent < len) {
        size_t part = AQ_MIN(len - sent, (size_t)MONITOR_MESSAGE_MAX - 1);

        if (!clients_send_packet(client, MONITOR_OUTPUT, bytes + sent, part))
            break;
        sent += part;
    }
    return sent;
}

void clients_send_gone(struct clients *clients)
{
    for (int i = 0; i < CLIENTS_MAX; i++)
        if (clients->slots[i].fd >= 0)
            (void)clients_send_packet(&clients->slots[i], MONITOR_GONE, NULL, 0);
}
