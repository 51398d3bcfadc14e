/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - IPv4 ranges, and the allocator of addresses in one */
#include "agent/net/pool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

int range_parse(const char *text, struct range *ret, struct aq_error *err)
{
    struct cluster_range range;

    if (cluster_range_parse(text, &range) < 0)
        return aq_fail(err, EINVAL,
                       "'%s' is not an IPv4 address or a range such as 10.213.0.0/16, in which all "
                       "bits behind the prefix are 0",
                       text);
    *ret = (struct range){ .first = range.first, .bits = range.bits };
    return 0;
}

char *range_format(const struct range *range, char text[RANGE_TEXT_MAX])
{
    char address[INET_ADDRSTRLEN];

    (void)snprintf(text, RANGE_TEXT_MAX, "%s/%u", cluster_address_format(range->first, address),
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
