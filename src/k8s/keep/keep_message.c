/* SPDX-License-Identifier: Apache-2.0 */
/* keep_message.c - see keep_message.h */
#include "k8s/keep/keep_message.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

union keep_control {
    char bytes[CMSG_SPACE(KEEP_FILES * sizeof(int))];
    struct cmsghdr align;
};

int keep_message_send(int socket, enum keep_kind kind, const char *key, const char *text,
                      const int files[KEEP_FILES])
{
    struct keep_message message = { .magic = KEEP_MAGIC, .version = KEEP_VERSION, .kind = kind };
    union keep_control control = { .bytes = { 0 } };
    struct iovec part = { &message, sizeof(message) };
    struct msghdr packet = { .msg_iov = &part, .msg_iovlen = 1 };

    if (strlen(key) >= sizeof(message.key) || strlen(text) >= sizeof(message.text))
        return -EMSGSIZE;
    memcpy(message.key, key, strlen(key));
    memcpy(message.text, text, strlen(text));
    if (files) {
        control.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(KEEP_FILES * sizeof(int)),
                                          .cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_RIGHTS };
        memcpy(CMSG_DATA(&control.align), files, KEEP_FILES * sizeof(int));
        packet.msg_control = &control;
        packet.msg_controllen = sizeof(control);
    }
    return sendmsg(socket, &packet, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* As many as fit have come; others were closed by the kernel. */
static void keep_take_files(struct msghdr *packet, int files[KEEP_FILES])
{
    const struct cmsghdr *rights = CMSG_FIRSTHDR(packet);
    size_t count = 0;

    if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS)
        count = AQ_MIN((rights->cmsg_len - CMSG_LEN(0)) / sizeof(int), (size_t)KEEP_FILES);
    if (count)
        memcpy(files, CMSG_DATA(rights), count * sizeof(int));
}

int keep_message_receive(int socket, struct keep_message *ret, int files[KEEP_FILES])
{
    union keep_control control = { .bytes = { 0 } };
    struct iovec part = { ret, sizeof(*ret) };
    struct msghdr packet = { .msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control) };
    ssize_t got;

    for (size_t i = 0; i < KEEP_FILES; i++)
        files[i] = -1;
    got = recvmsg(socket, &packet, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -ECONNRESET;
    if (got == 0)
        return -ECONNRESET;
    keep_take_files(&packet, files);
    if (got == sizeof(*ret) && !(packet.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
        && ret->magic == KEEP_MAGIC && ret->version == KEEP_VERSION
        && !ret->key[sizeof(ret->key) - 1] && !ret->text[sizeof(ret->text) - 1])
        return 1;
    for (size_t i = 0; i < KEEP_FILES; i++)
        aq_closep(&files[i]);
    return -EPROTO;
}

int keep_address(const char *folder, struct sockaddr_un *ret, struct aq_error *err)
{
    int len;

    *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
    len = snprintf(ret->sun_path, sizeof(ret->sun_path), "%s/" KEEP_FOLDER "/" KEEP_SOCKET, folder);
    return len < (int)sizeof(ret->sun_path)
               ? 0
               : aq_fail_field(err, ENAMETOOLONG, "plugin.run",
                               "the path '%s' is too long for a socket in it", folder);
}
