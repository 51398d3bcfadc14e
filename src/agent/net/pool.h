/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h - IPv4 ranges, and the allocator of addresses in one */
#ifndef AQ_AGENT_NET_POOL_H
#define AQ_AGENT_NET_POOL_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/cluster_network.h"

struct range {
    uint32_t first; /* host byte order */
    unsigned bits;  /* of the prefix */
};

#define RANGE_TEXT_MAX (INET_ADDRSTRLEN + 3)

/* "10.213.0.0/16"; "10.0.0.1" is one address. -EINVAL, too if bits behind the
 * prefix are set.
 */
int range_parse(const char *text, struct range *ret, struct aq_error *err);
char *range_format(const struct range *range, char text[RANGE_TEXT_MAX]);
bool range_overlaps(const struct range *a, const struct range *b);

static inline uint64_t range_size(const struct range *range)
{
    return UINT64_C(1) << (32 - range->bits);
}

/* Addresses by their number in the range; 0, the last and the gateway's are
 * never given out. One that was given back comes again as late as possible.
 */
struct pool {
    struct range range;
    uint64_t *used; /* a bit each */
    uint32_t next;
};

#define POOL_GATEWAY 1 /* its number */

int pool_init(struct pool *pool, const struct range *range, struct aq_error *err);
void pool_done(struct pool *pool);

/* -ENOSPC if all are in use. */
int pool_take(struct pool *pool, uint32_t *ret_number, struct aq_error *err);
/* This one; false if it is in use or out of range. */
bool pool_take_number(struct pool *pool, uint32_t number);
void pool_give(struct pool *pool, uint32_t number);

static inline uint32_t pool_address(const struct pool *pool, uint32_t number)
{
    return pool->range.first + number;
}

#endif
