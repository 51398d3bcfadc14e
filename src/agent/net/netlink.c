/* SPDX-License-Identifier: Apache-2.0 */
/* netlink.c - builds netlink(7) messages, sends one request and reads its answers */
#include "agent/net/netlink.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define SEQUENCE 1 /* requests follow each other */

/* ---- building ---- */

void netlink_begin(struct netlink_request *request, uint16_t type, uint16_t flags)
{
    memset(request, 0, sizeof(*request));
    request->header = (struct nlmsghdr){ .nlmsg_len = NLMSG_LENGTH(0),
                                         .nlmsg_type = type,
                                         .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
                                         .nlmsg_seq = SEQUENCE };
}

/* 'len' bytes more, all zero; NULL if they do not fit in. */
static void *netlink_extend(struct netlink_request *request, size_t len)
{
    size_t at = NLMSG_ALIGN(request->header.nlmsg_len);

    if (len > sizeof(request->bytes) - at)
        return NULL;
    request->header.nlmsg_len = (uint32_t)(at + len);
    return (char *)request + at; /* not of a member: gcc 12 takes that for the header alone */
}

void *netlink_add_header(struct netlink_request *request, size_t len)
{
    return netlink_extend(request, len);
}

void netlink_add(struct netlink_request *request, uint16_t type, const void *bytes, size_t len)
{
    struct rtattr *attr = netlink_extend(request, RTA_LENGTH(len));

    if (!attr)
        return;
    attr->rta_type = type;
    attr->rta_len = (uint16_t)RTA_LENGTH(len);
    memcpy(RTA_DATA(attr), bytes, len);
}

void netlink_add_u32(struct netlink_request *request, uint16_t type, uint32_t value)
{
    netlink_add(request, type, &value, sizeof(value));
}

void netlink_add_text(struct netlink_request *request, uint16_t type, const char *text)
{
    netlink_add(request, type, text, strlen(text) + 1);
}

size_t netlink_begin_nest(struct netlink_request *request, uint16_t type)
{
    size_t begin = NLMSG_ALIGN(request->header.nlmsg_len);

    netlink_add(request, type, "", 0);
    return begin;
}

void netlink_end_nest(struct netlink_request *request, size_t begin)
{
    struct rtattr *attr = (struct rtattr *)(void *)(request->bytes + begin);

    if (begin + sizeof(*attr) <= request->header.nlmsg_len)
        attr->rta_len = (uint16_t)(request->header.nlmsg_len - begin);
}

/* ---- talking ---- */

/* 1 = more is to come, 0 = that was all, -errno. */
static int netlink_take_answers(const struct nlmsghdr *answer, size_t len, netlink_answer_fn fn,
                                void *data)
{
    for (; NLMSG_OK(answer, len); answer = NLMSG_NEXT(answer, len)) {
        if (answer->nlmsg_seq != SEQUENCE)
            continue; /* of a request that was given up */
        if (answer->nlmsg_type == NLMSG_DONE)
            return 0;
        if (answer->nlmsg_type == NLMSG_ERROR)
            return ((const struct nlmsgerr *)NLMSG_DATA(answer))->error;
        if (fn)
            fn(answer, data);
    }
    return 1;
}

int netlink_talk(int fd, const struct netlink_request *request, netlink_answer_fn fn, void *data)
{
    union {
        struct nlmsghdr header;
        char bytes[32768];
    } answers;
    int r = 1;

    if (send(fd, request->bytes, request->header.nlmsg_len, 0) < 0)
        return -errno;
    while (r > 0) {
        struct sockaddr_nl from = { .nl_family = AF_NETLINK };
        struct iovec room = { .iov_base = answers.bytes, .iov_len = sizeof(answers) };
        struct msghdr message = {
            .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &room, .msg_iovlen = 1
        };
        ssize_t got = recvmsg(fd, &message, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (message.msg_flags & MSG_TRUNC)
            return -ENOSPC;
        if (from.nl_pid == 0) /* else it is not the kernel's */
            r = netlink_take_answers(&answers.header, (size_t)got, fn, data);
    }
    return r;
}

/* ---- reading ---- */

uint32_t netlink_get_u32(const struct rtattr *attr)
{
    uint32_t value = 0;

    if (RTA_PAYLOAD(attr) >= sizeof(value))
        memcpy(&value, RTA_DATA(attr), sizeof(value));
    return value;
}

const char *netlink_get_text(const struct rtattr *attr)
{
    return memchr(RTA_DATA(attr), '\0', RTA_PAYLOAD(attr)) ? RTA_DATA(attr) : "";
}
