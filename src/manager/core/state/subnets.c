/* SPDX-License-Identifier: Apache-2.0 */
/* subnets.c - addresses of sessions whose kernels are on several agents */
#include "manager/core/state/subnets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "manager/core/state/account.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

static bool subnets_test(const uint64_t *bits, uint32_t i)
{
    return bits[i / 64] >> i % 64 & 1;
}

static void subnets_set(uint64_t *bits, uint32_t i, bool on)
{
    uint64_t bit = UINT64_C(1) << i % 64;

    bits[i / 64] = on ? bits[i / 64] | bit : bits[i / 64] & ~bit;
}

static uint32_t subnets_agent_count(const struct subnets *subnets)
{
    return UINT32_C(1) << (30 - subnets->pool.bits);
}

int subnets_init(struct subnets *subnets, const char *pool, struct aq_error *err)
{
    const char *text = pool && pool[0] ? pool : CLUSTER_NETWORK_POOL;
    uint32_t agents;

    *subnets = (struct subnets){ .used = NULL };
    if (cluster_range_parse(text, &subnets->pool) < 0 || subnets->pool.bits < 8
        || subnets->pool.bits > 22)
        return aq_fail_field(err, EINVAL, "cluster-pool",
                             "'%s' is not an IPv4 range of at least 1024 addresses, such as "
                             "%s",
                             text, CLUSTER_NETWORK_POOL);
    agents = subnets_agent_count(subnets);
    subnets->block_count = 4 * agents / SUBNET_BLOCK;
    subnets->next = agents / SUBNET_BLOCK;
    subnets->used = aq_alloc_array(subnets->block_count / 64 + 1, sizeof(*subnets->used));
    subnets->named = aq_alloc_array(agents / 64 + 1, sizeof(*subnets->named));
    return 0;
}

void subnets_done(struct subnets *subnets)
{
    free(AQ_TAKE(subnets->used));
    free(AQ_TAKE(subnets->named));
}

/* ---- ranges ---- */

/* Of the smallest range with room for 'count' addresses beside its first and last. */
static uint32_t subnets_blocks_for(uint32_t count)
{
    uint32_t blocks = 1;

    while (blocks * SUBNET_BLOCK < count + 2)
        blocks *= 2;
    return blocks;
}

static uint32_t subnets_blocks_of(const struct cluster_range *range)
{
    return (UINT32_C(1) << (32 - range->bits)) / SUBNET_BLOCK;
}

static bool subnets_is_free(const struct subnets *subnets, uint32_t block, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (subnets_test(subnets->used, block + i))
            return false;
    return true;
}

static void subnets_mark(struct subnets *subnets, const struct cluster_range *range, bool on)
{
    uint32_t block = (range->first - subnets->pool.first) / SUBNET_BLOCK;

    for (uint32_t i = 0; i < subnets_blocks_of(range); i++)
        subnets_set(subnets->used, block + i, on);
}

bool subnets_take(struct subnets *subnets, uint32_t count, struct cluster_range *ret)
{
    uint32_t first = subnets_agent_count(subnets) / SUBNET_BLOCK;
    uint32_t blocks = subnets_blocks_for(count);
    uint32_t steps = (subnets->block_count - first) / blocks;
    uint32_t at = (subnets->next + blocks - 1) / blocks * blocks;
    unsigned bits = 29 - (unsigned)__builtin_ctz(blocks);

    for (uint32_t i = 0; i < steps; i++, at += blocks) {
        if (at + blocks > subnets->block_count)
            at = (first + blocks - 1) / blocks * blocks;
        if (at + blocks > subnets->block_count || !subnets_is_free(subnets, at, blocks))
            continue;
        *ret = (struct cluster_range){ subnets->pool.first + at * SUBNET_BLOCK, bits };
        subnets_mark(subnets, ret, true);
        subnets->next = at + blocks < subnets->block_count ? at + blocks : first;
        return true;
    }
    return false;
}

bool subnets_take_range(struct subnets *subnets, const struct cluster_range *range)
{
    uint32_t block = (range->first - subnets->pool.first) / SUBNET_BLOCK;

    if (range->bits > 29 || range->bits < subnets->pool.bits
        || !cluster_range_has(&subnets->pool, range->first)
        || !subnets_is_free(subnets, block, subnets_blocks_of(range)))
        return false;
    subnets_mark(subnets, range, true);
    return true;
}

void subnets_give(struct subnets *subnets, const struct cluster_range *range)
{
    subnets_mark(subnets, range, false);
}

/* ---- agents ---- */

/* FNV-1a, which is the same in each process: agents keep their addresses when the manager restarts.
 */
static uint32_t subnets_hash(const char *text)
{
    uint32_t hash = 2166136261u;

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

uint32_t subnets_name_agent(struct subnets *subnets, const char *agent_id)
{
    uint32_t count = subnets_agent_count(subnets);
    uint32_t at = subnets_hash(agent_id);

    for (uint32_t i = 0; i < count; i++, at++) {
        uint32_t number = at % count;

        if (number == 0 || subnets_test(subnets->named, number))
            continue;
        subnets_set(subnets->named, number, true);
        return subnets->pool.first + number;
    }
    return 0;
}

void subnets_forget_agent(struct subnets *subnets, uint32_t address)
{
    if (address)
        subnets_set(subnets->named, address - subnets->pool.first, false);
}

/* ---- of a session ---- */

bool session_entry_uses_host_network(const struct session_entry *l)
{
    return l->s.spec && session_spec_uses_host_network(l->s.spec);
}

uint32_t session_entry_host_port(const struct core *core, const struct session_entry *l,
                                 size_t rank)
{
    const uint32_t blocks = (CLUSTER_HOST_PORT_LAST - CLUSTER_HOST_PORT_FIRST + 1)
                            / CLUSTER_HOST_PORTS;
    uint32_t number = l->network.subnet.first - core->subnets.pool.first + (uint32_t)rank;

    return CLUSTER_HOST_PORT_FIRST + number % blocks * CLUSTER_HOST_PORTS;
}

bool session_entry_needs_network(const struct session_entry *l)
{
    return !session_entry_uses_host_network(l) && l->s.is_multi_node && l->s.kernel_count > 1
           && l->s.image && strcmp(l->s.image, IMAGE_OF_PROCESSES) != 0;
}

bool session_entry_has_subnet_share(const struct core *core, const struct session_entry *l)
{
    const struct subnets *subnets = &core->subnets;
    uint32_t all = subnets->block_count - subnets_agent_count(subnets) / SUBNET_BLOCK;
    uint32_t held = l->accounts[SCHED_USER]->subnet_blocks;

    return held == 0 || held + subnets_blocks_for((uint32_t)l->s.kernel_count) <= all / 2;
}

bool session_entry_take_subnet(struct core *core, struct session_entry *l)
{
    struct cluster_range *range = &l->network.subnet;

    if (range->bits)
        return true;
    if (!session_entry_has_subnet_share(core, l)
        || !subnets_take(&core->subnets, (uint32_t)l->s.kernel_count, range))
        return false;
    l->accounts[SCHED_USER]->subnet_blocks += subnets_blocks_of(range);
    return true;
}

void session_entry_give_subnet(struct core *core, struct session_entry *l)
{
    struct cluster_range *range = &l->network.subnet;

    if (!range->bits)
        return;
    subnets_give(&core->subnets, range);
    l->accounts[SCHED_USER]->subnet_blocks -= subnets_blocks_of(range);
    *range = (struct cluster_range){ 0 };
}

void session_entry_follow_subnet(struct core *core, struct session_entry *l)
{
    struct cluster_range range;

    if (session_gives_subnet_back(l->s.status)) {
        free(AQ_TAKE(l->s.subnet));
        session_entry_give_subnet(core, l);
        return;
    }
    if (!l->s.subnet || l->network.subnet.bits)
        return;
    if (cluster_range_parse(l->s.subnet, &range) == 0
        && subnets_take_range(&core->subnets, &range)) {
        l->network.subnet = range;
        l->accounts[SCHED_USER]->subnet_blocks += subnets_blocks_of(&range);
    } else {
        log_warning("session '%s' uses addresses %s, which [network] cluster-pool does not have or "
                    "another session has; its kernels keep them",
                    l->s.name, l->s.subnet);
    }
    l->network.version++; /* its agents may have an older list */
}
