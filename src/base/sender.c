/* SPDX-License-Identifier: Apache-2.0 */
/* sender.c - which process has sent a packet of a Unix socket */
#include "base/sender.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

int sender_ask(int fd)
{
    const int yes = 1;

    return setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) < 0 ? -errno : 0;
}

ssize_t sender_receive(int fd, void *packet, size_t size, pid_t *ret)
{
    union {
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
        struct cmsghdr align;
    } control;
    struct iovec part = { packet, size };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof(control) };
    ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *head = got < 0 ? NULL : CMSG_FIRSTHDR(&message);
    struct ucred sender = { 0 };

    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_CREDENTIALS)
        memcpy(&sender, CMSG_DATA(head), sizeof(sender));
    *ret = sender.pid;
    return got;
}
