/* SPDX-License-Identifier: Apache-2.0 */
/* subnets.h - addresses of sessions whose kernels are on several agents
 *
 * A pool is divided into blocks of powers of two. The first quarter has an address for each agent,
 * by which the way to it is checked; the rest are subnets of sessions. A session has its subnet
 * from its placement until it ends or goes back to the queue, and its row says which. What was
 * given back is taken again as late as possible: a node that is cut off may still use it.
 *
 * Loop's thread only.
 */
#ifndef AQ_MANAGER_CORE_STATE_SUBNETS_H
#define AQ_MANAGER_CORE_STATE_SUBNETS_H

#include <stdbool.h>

#include "model/cluster_network.h"

#define SUBNET_BLOCK 8u /* addresses: the smallest subnet */

struct core;
struct session_entry;

struct subnets {
    struct cluster_range pool;
    uint64_t *used; /* a bit for each block of SUBNET_BLOCK addresses */
    uint32_t block_count;
    uint32_t next;   /* block: the search begins there */
    uint64_t *named; /* a bit for each address of an agent */
};

/* "10.214.0.0/16", of 8 to 22 bits; NULL = CLUSTER_NETWORK_POOL. -EINVAL. */
int subnets_init(struct subnets *subnets, const char *pool, struct aq_error *err);
void subnets_done(struct subnets *subnets);

/* An aligned range with room for 'count' addresses beside its first and last. False if there is
 * none.
 */
bool subnets_take(struct subnets *subnets, uint32_t count, struct cluster_range *ret);
/* Takes the subnet of a session that the store has; false if a part of it is in use, or outside the
 * pool.
 */
bool subnets_take_range(struct subnets *subnets, const struct cluster_range *range);
void subnets_give(struct subnets *subnets, const struct cluster_range *range);

/* An address for the agent, the same one each time unless another agent has it. 0 = all are in use.
 */
uint32_t subnets_name_agent(struct subnets *subnets, const char *agent_id);
void subnets_forget_agent(struct subnets *subnets, uint32_t address);

/* ---- of a session ---- */

/* Its kernels can be on several agents and need a network there: it is multi-node, has several
 * kernels, and these are containers.
 */
bool session_entry_needs_network(const struct session_entry *l);

/* Its containers use the network of their nodes, on ports that follow from its subnet. */
bool session_entry_uses_host_network(const struct session_entry *l);

/* With the host network and a subnet: the first of the CLUSTER_HOST_PORTS ports of that kernel. Two
 * sessions have the same ones only if more addresses lie between theirs than there are ports: the
 * agent finds that out, and the session starts again with another subnet.
 */
uint32_t session_entry_host_port(const struct core *core, const struct session_entry *l,
                                 size_t rank);

/* With it, its user's sessions have at most half of the pool, or it is the first: a session of a few
 * kernels takes the addresses of all that it may grow to, and some of these would keep those of all
 * other users from starting.
 */
bool session_entry_has_subnet_share(const struct core *core, const struct session_entry *l);

/* Take its subnet if it has none. False if its user has no share of that size left, or the pool no
 * room.
 */
bool session_entry_take_subnet(struct core *core, struct session_entry *l);
void session_entry_give_subnet(struct core *core, struct session_entry *l);

/* The store has loaded the session, or written another status of it: have what its row says. */
void session_entry_follow_subnet(struct core *core, struct session_entry *l);

#endif
