/* SPDX-License-Identifier: Apache-2.0 */
/* network.c - networks of addresses, and which of them are private or this machine's */
#include "http/network.h"

#include <errno.h>
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "base/cleanup.h"

#define MAPPED_BITS 96 /* before the IPv4 address in ::ffff:a.b.c.d */
static const unsigned char network_mapped[12] = { [10] = 0xff, [11] = 0xff };

static void network_set_four(unsigned char bytes[16], const struct in_addr *four)
{
    memcpy(bytes, network_mapped, sizeof(network_mapped));
    memcpy(bytes + sizeof(network_mapped), four, sizeof(*four));
}

/* 0, or -EINVAL for an address of another kind. */
static int network_get_bytes(const struct sockaddr *addr, unsigned char ret[16])
{
    struct sockaddr_in four;
    struct sockaddr_in6 six;

    if (addr->sa_family == AF_INET) {
        memcpy(&four, addr, sizeof(four));
        network_set_four(ret, &four.sin_addr);
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

/* Forms of IPv6 addresses with an IPv4 address in them. */
static const struct network_form {
    unsigned char start[12];
    unsigned bits;
    unsigned at; /* first byte of the IPv4 address */
    bool is_inverted;
} network_forms[] = {
    { { [10] = 0xff, [11] = 0xff }, 96, 12, false },           /* mapped */
    { { 0 }, 96, 12, false },                                  /* compatible */
    { { [8] = 0xff, [9] = 0xff }, 96, 12, false },             /* translated (RFC 2765) */
    { { 0x00, 0x64, 0xff, 0x9b }, 96, 12, false },             /* NAT64 (RFC 6052) */
    { { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 }, 48, 12, false }, /* local NAT64 (RFC 8215) */
    { { 0x20, 0x02 }, 16, 2, false },                          /* 6to4 */
    { { 0x20, 0x01, 0x00, 0x00 }, 32, 12, true },              /* Teredo */
};

/* ISATAP interfaces, whatever the prefix; the second is that of a unique IPv4 address. */
static const unsigned char network_isatap[2][4] = { { 0x00, 0x00, 0x5e, 0xfe },
                                                    { 0x02, 0x00, 0x5e, 0xfe } };

/* NULL = no IPv4 address in it. */
static const struct network_form *network_find_form(const unsigned char bytes[16])
{
    static const struct network_form isatap = { { 0 }, 0, 12, false };

    for (size_t i = 0; i < AQ_COUNT(network_forms); i++)
        if (network_starts_with(bytes, network_forms[i].start, network_forms[i].bits))
            return &network_forms[i];
    for (size_t i = 0; i < AQ_COUNT(network_isatap); i++)
        if (memcmp(bytes + 8, network_isatap[i], sizeof(network_isatap[i])) == 0)
            return &isatap;
    return NULL;
}

bool network_get_four(const struct sockaddr *addr, struct sockaddr_in *ret)
{
    struct sockaddr_in four = { .sin_family = AF_INET };
    unsigned char bytes[16], *to = (unsigned char *)&four.sin_addr;
    const struct network_form *form;

    if (network_get_bytes(addr, bytes) < 0 || !(form = network_find_form(bytes)))
        return false;
    for (size_t i = 0; i < sizeof(four.sin_addr); i++)
        to[i] = form->is_inverted ? (unsigned char)~bytes[form->at + i] : bytes[form->at + i];
    *ret = four;
    return true;
}

int network_is_own(const struct sockaddr *addr, bool *ret, struct aq_error *err)
{
    struct network own[2] = { { .bits = 128 }, { .bits = 128 } }; /* as given, and the IPv4 one */
    struct sockaddr_in four;
    struct ifaddrs *list = NULL;
    bool has_four = network_get_four(addr, &four), found = false;

    if (network_get_bytes(addr, own[0].bytes) < 0)
        return aq_fail(err, EAFNOSUPPORT, "address family %d is neither IPv4 nor IPv6",
                       addr->sa_family);
    if (has_four)
        network_set_four(own[1].bytes, &four.sin_addr);
    if (getifaddrs(&list) < 0)
        return aq_fail_errno(err, "cannot list the addresses of this machine");
    for (const struct ifaddrs *i = list; i && !found; i = i->ifa_next)
        found = i->ifa_addr
                && (network_has(&own[0], i->ifa_addr)
                    || (has_four && network_has(&own[1], i->ifa_addr)));
    freeifaddrs(list);
    *ret = found;
    return 0;
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
    { { 0x3f, 0xff, 0x00 }, 20 },       /* documents */
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
    struct sockaddr_in four;

    if (network_get_bytes(addr, bytes) < 0)
        return true;
    if (network_get_four(addr, &four)
        && network_is_among((const unsigned char *)&four.sin_addr, private_four,
                            AQ_COUNT(private_four)))
        return true;
    if (network_starts_with(bytes, network_mapped, MAPPED_BITS))
        return false;
    return bytes[0] >> 5 != 1 || network_is_among(bytes, private_six, AQ_COUNT(private_six));
}
