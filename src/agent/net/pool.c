/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - IPv4 ranges, and the allocator of addresses in one */
#include "agent/net/pool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

static int pool_parse_bits(const char *text, unsigned *ret)
{
    if (!text[0] || strlen(text) > 2 || text[strspn(text, "0123456789")] != '\0')
        return -EINVAL;
    *ret = (unsigned)atoi(text);
    return *ret <= 32 ? 0 : -EINVAL;
}

int range_parse(const char *text, struct range *ret, struct aq_error *err)
{
    const char *slash = strchr(text, '/');
    char address[INET_ADDRSTRLEN] = "";
    struct range range = { .bits = 32 };
    struct in_addr in;

    (void)snprintf(address, sizeof(address), "%.*s",
                   (int)(slash ? (size_t)(slash - text) : strlen(text)), text);
    if (inet_pton(AF_INET, address, &in) != 1
        || (slash && pool_parse_bits(slash + 1, &range.bits) < 0))
        return aq_fail(err, EINVAL, "'%s' is no IPv4 address or range such as 10.213.0.0/16", text);
    range.first = ntohl(in.s_addr);
    if (range.first & (uint32_t)(range_size(&range) - 1))
        return aq_fail(err, EINVAL, "'%s': bits behind the first %u are set", text, range.bits);
    *ret = range;
    return 0;
}

char *address_format(uint32_t address, char text[INET_ADDRSTRLEN])
{
    const struct in_addr in = { .s_addr = htonl(address) };

    (void)inet_ntop(AF_INET, &in, text, INET_ADDRSTRLEN);
    return text;
}

char *range_format(const struct range *range, char text[RANGE_TEXT_MAX])
{
    char address[INET_ADDRSTRLEN];

    (void)snprintf(text, RANGE_TEXT_MAX, "%s/%u", address_format(range->first, address),
                   range->bits);
    return text;
}

bool range_overlaps(const struct range *a, const struct range *b)
{
    unsigned bits = AQ_MIN(a->bits, b->bits);
    uint32_t mask = bits ? ~UINT32_C(0) << (32 - bits) : 0;

    return (a->first & mask) == (b->first & mask);
}

int pool_init(struct pool *pool, const struct range *range, struct aq_error *err)
{
    uint64_t *used;

    if (range->bits < 8 || range->bits > 29)
        return aq_fail_field(err, EINVAL, "pool", "a pool has a prefix of 8 to 29 bits, not %u",
                             range->bits);
    used = aq_alloc_array((range_size(range) + 63) / 64, sizeof(*used));
    *pool = (struct pool){ .range = *range, .used = used, .next = POOL_GATEWAY + 1 };
    return 0;
}

void pool_done(struct pool *pool)
{
    free(AQ_TAKE(pool->used));
}

static bool pool_is_used(const struct pool *pool, uint32_t number)
{
    return pool->used[number / 64] >> (number % 64) & 1;
}

static bool pool_is_ordinary(const struct pool *pool, uint32_t number)
{
    return number > POOL_GATEWAY && number < range_size(&pool->range) - 1;
}

bool pool_take_number(struct pool *pool, uint32_t number)
{
    if (!pool_is_ordinary(pool, number) || pool_is_used(pool, number))
        return false;
    pool->used[number / 64] |= UINT64_C(1) << (number % 64);
    return true;
}

int pool_take(struct pool *pool, uint32_t *ret_number, struct aq_error *err)
{
    uint32_t count = (uint32_t)range_size(&pool->range);
    char text[RANGE_TEXT_MAX];

    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = (uint32_t)(((uint64_t)pool->next + i) % count);

        if (!pool_take_number(pool, number))
            continue;
        pool->next = number + 1;
        *ret_number = number;
        return 0;
    }
    return aq_fail_kind(err, ENOSPC, "insufficient-resource",
                        "all addresses of %s are in use; give the agent a larger network pool",
                        range_format(&pool->range, text));
}

void pool_give(struct pool *pool, uint32_t number)
{
    if (pool_is_ordinary(pool, number))
        pool->used[number / 64] &= ~(UINT64_C(1) << (number % 64));
}
