/* SPDX-License-Identifier: Apache-2.0 */
/* network.c - networks of addresses, and which of them are private */
#include "http/network.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/cleanup.h"

#define MAPPED_BITS 96 /* before the IPv4 address in ::ffff:a.b.c.d */
static const unsigned char network_mapped[12] = { [10] = 0xff, [11] = 0xff };

/* 0, or -EINVAL for an address of another kind. */
static int network_get_bytes(const struct sockaddr *addr, unsigned char ret[16])
{
    struct sockaddr_in four;
    struct sockaddr_in6 six;

    if (addr->sa_family == AF_INET) {
        memcpy(&four, addr, sizeof(four));
        memcpy(ret, network_mapped, sizeof(network_mapped));
        memcpy(ret + sizeof(network_mapped), &four.sin_addr, 4);
        return 0;
    }
    if (addr->sa_family != AF_INET6)
        return -EINVAL;
    memcpy(&six, addr, sizeof(six));
    memcpy(ret, &six.sin6_addr, 16);
    return 0;
}

static bool network_starts_with(const unsigned char *bytes, const unsigned char *start,
                                unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;

    if (memcmp(bytes, start, whole) != 0)
        return false;
    return rest == 0 || ((bytes[whole] ^ start[whole]) >> (8 - rest)) == 0;
}

int network_parse(const char *text, struct network *ret)
{
    const char *slash = strchr(text, '/');
    size_t len = slash ? (size_t)(slash - text) : strlen(text);
    char address[INET6_ADDRSTRLEN], *end = NULL;
    struct network network = { .bits = 128 };
    bool is_four = !memchr(text, ':', len);
    unsigned long bits;

    if (len >= sizeof(address))
        return -EINVAL;
    memcpy(address, text, len);
    address[len] = '\0';
    if (is_four)
        memcpy(network.bytes, network_mapped, sizeof(network_mapped));
    if (inet_pton(is_four ? AF_INET : AF_INET6, address, network.bytes + (is_four ? 12 : 0)) != 1)
        return -EINVAL;
    if (slash) {
        if (slash[1] < '0' || slash[1] > '9')
            return -EINVAL;
        bits = strtoul(slash + 1, &end, 10);
        if (*end || bits > (is_four ? 32 : 128))
            return -EINVAL;
        network.bits = (unsigned)bits + (is_four ? MAPPED_BITS : 0);
    }
    *ret = network;
    return 0;
}

bool network_has(const struct network *network, const struct sockaddr *addr)
{
    unsigned char bytes[16];

    return network_get_bytes(addr, bytes) == 0
           && network_starts_with(bytes, network->bytes, network->bits);
}

struct network_start {
    unsigned char start[4];
    unsigned bits;
};

/* clang-format off */
static const struct network_start private_four[] = {
    { { 0 }, 8 },               /* this network */
    { { 10 }, 8 },
    { { 100, 64 }, 10 },        /* shared by customers of a provider */
    { { 127 }, 8 },
    { { 169, 254 }, 16 },       /* link-local; metadata services of clouds */
    { { 172, 16 }, 12 },
    { { 192, 0, 0 }, 24 },
    { { 192, 88, 99 }, 24 },    /* relays to IPv6 */
    { { 192, 168 }, 16 },
    { { 198, 18 }, 15 },        /* benchmarks */
    { { 224 }, 3 },             /* multicast, reserved, broadcast */
};

/* Of 2000::/3; whatever else there is of IPv6 is private. */
static const struct network_start private_six[] = {
    { { 0x20, 0x01, 0x00 }, 23 },       /* of protocols, such as Teredo */
    { { 0x20, 0x01, 0x0d, 0xb8 }, 32 }, /* documents */
    { { 0x20, 0x02 }, 16 },             /* an IPv4 address follows */
};
/* clang-format on */

static bool network_is_among(const unsigned char *bytes, const struct network_start *starts,
                             size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (network_starts_with(bytes, starts[i].start, starts[i].bits))
            return true;
    return false;
}

bool network_is_private(const struct sockaddr *addr)
{
    unsigned char bytes[16];

    if (network_get_bytes(addr, bytes) < 0)
        return true;
    if (network_starts_with(bytes, network_mapped, MAPPED_BITS))
        return network_is_among(bytes + sizeof(network_mapped), private_four,
                                AQ_COUNT(private_four));
    return bytes[0] >> 5 != 1 || network_is_among(bytes, private_six, AQ_COUNT(private_six));
}
