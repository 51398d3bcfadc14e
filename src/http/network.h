/* SPDX-License-Identifier: Apache-2.0 */
/* network.h - networks of addresses, and which of them are private or this machine's
 *
 * For programs that connect to addresses that a client names. Pure, but for network_is_own().
 */
#ifndef AQ_HTTP_NETWORK_H
#define AQ_HTTP_NETWORK_H

#include <stdbool.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/error.h"

struct network {
    unsigned char bytes[16]; /* IPv4 in the last four, as ::ffff:a.b.c.d */
    unsigned bits;           /* of those 128 */
};

/* "10.0.0.0/8", "fd00::/8", or one address. -EINVAL. */
int network_parse(const char *text, struct network *ret);

/* An IPv4 address and ::ffff: with the same address are one. */
bool network_has(const struct network *network, const struct sockaddr *addr);

/* The IPv4 address that packets to 'addr' may arrive at: itself, or the one that an IPv6 address
 * carries (mapped, compatible, NAT64, 6to4, Teredo, ISATAP). False if there is none.
 */
bool network_get_four(const struct sockaddr *addr, struct sockaddr_in *ret);

/* Whether an interface of this machine has the address, or the IPv4 address in it. On failure
 * -errno of getifaddrs(3), which needs AF_NETLINK. Any thread.
 */
int network_is_own(const struct sockaddr *addr, bool *ret, struct aq_error *err);

/* Whether the internet does not route the address: loopback, link-local, private, shared,
 * multicast, reserved; IPv6 addresses that carry an IPv4 address, but for ::ffff: with a public
 * one; and other families.
 */
bool network_is_private(const struct sockaddr *addr);

#endif
