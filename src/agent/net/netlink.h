/* SPDX-License-Identifier: Apache-2.0 */
/* netlink.h - builds netlink(7) messages, sends one request and reads its answers
 *
 * Attributes are those of linux/rtnetlink.h: its macros read answers.
 */
#ifndef AQ_AGENT_NET_NETLINK_H
#define AQ_AGENT_NET_NETLINK_H

#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdint.h>

#define NETLINK_REQUEST_MAX 1024

/* Attributes that do not fit in are left out; the kernel refuses the rest then. */
struct netlink_request {
    union {
        struct nlmsghdr header;
        char bytes[NETLINK_REQUEST_MAX];
    };
};

void netlink_begin(struct netlink_request *request, uint16_t type, uint16_t flags);

/* Add zeroed bytes, as what the type's attributes follow, or NULL. */
void *netlink_add_header(struct netlink_request *request, size_t len);
void netlink_add(struct netlink_request *request, uint16_t type, const void *bytes, size_t len);
void netlink_add_u32(struct netlink_request *request, uint16_t type, uint32_t value);
void netlink_add_text(struct netlink_request *request, uint16_t type, const char *text);

/* Attributes added until the end lie within this one; returns where it begins. */
size_t netlink_begin_nest(struct netlink_request *request, uint16_t type);
void netlink_end_nest(struct netlink_request *request, size_t begin);

typedef void (*netlink_answer_fn)(const struct nlmsghdr *answer, void *data);

/* Send, and give each answer to 'fn' (may be NULL) until the last one. Blocks.
 * The kernel's -errno.
 */
int netlink_talk(int fd, const struct netlink_request *request, netlink_answer_fn fn, void *data);

/* The attribute's value; 0 or "" if it is too short for one. */
uint32_t netlink_get_u32(const struct rtattr *attr);
const char *netlink_get_text(const struct rtattr *attr);

#endif
