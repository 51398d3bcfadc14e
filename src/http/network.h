/* SPDX-License-Identifier: Apache-2.0 */
/* network.h - networks of addresses, and which of them are private
 *
 * For programs that connect where a stranger says. Pure.
 */
#ifndef AQ_HTTP_NETWORK_H
#define AQ_HTTP_NETWORK_H

#include <stdbool.h>

#include <sys/socket.h>

struct network {
    unsigned char bytes[16]; /* IPv4 in the last four, as ::ffff:a.b.c.d */
    unsigned bits;           /* of those 128 */
};

/* "10.0.0.0/8", "fd00::/8", or one address. -EINVAL. */
int network_parse(const char *text, struct network *ret);

bool network_has(const struct network *network, const struct sockaddr *addr);

/* Is it an address that the internet knows no way to, or that stands for one: loopback,
 * link-local, private, shared, multicast, reserved, and those of IPv6 with an IPv4 address in
 * them? So is what is neither IPv4 nor IPv6.
 */
bool network_is_private(const struct sockaddr *addr);

#endif
