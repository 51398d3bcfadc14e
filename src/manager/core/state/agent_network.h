/* SPDX-License-Identifier: Apache-2.0 */
/* agent_network.h - the offer of an agent for the network between agents, and unreachable agents
 *
 * Loop's thread only.
 */
#ifndef AQ_MANAGER_CORE_STATE_AGENT_NETWORK_H
#define AQ_MANAGER_CORE_STATE_AGENT_NETWORK_H

#include "base/lists.h"
#include "model/cluster_network.h"

struct agent_entry;
struct core;

struct agent_network {
    char *text;         /* as it greeted: JSON of a cluster_network_offer */
    struct arena arena; /* of 'offer' */
    struct cluster_network_offer offer;
    uint32_t address;            /* its own, for checks of the way to it; 0 = it has none */
    char *peers;                 /* network.peers that it was sent last; NULL = none since it
                                         connected */
    struct str_list unreachable; /* ids of agents that do not answer it; in one block */
};

/* It has greeted with this offer (NULL = none). One that is false (-EINVAL), or has the key of
 * another agent (-EEXIST), counts as none.
 */
int agent_network_set(struct core *core, struct agent_entry *a, const char *text,
                      struct aq_error *err);
void agent_network_free(struct core *core, struct agent_network *network);

/* Agents of one class can be in one network; NULL = this one can be in none. Static. */
const char *agent_network_class(const struct agent_entry *a);

/* The same for the scheduler: agents whose kernels are processes use the nodes' own network, and are
 * one class without an offer. Static.
 */
const char *agent_network_sched_class(const struct agent_entry *a);

bool agent_network_misses(const struct agent_network *network, const char *agent_id);
/* One of them does not reach the other. */
bool agent_network_is_cut(const struct agent_entry *a, const struct agent_entry *b);
void agent_network_set_unreachable(struct agent_network *network, const struct str_list *ids);

/* As the manager tells other agents of it; borrows from it, and 'address' from the arena. */
struct cluster_network_agent agent_network_describe(const struct agent_entry *a,
                                                    struct arena *arena);

/* {"mode", "endpoint", "address", "mtu", "note", "unreachable": [...]} for clients. */
void agent_network_write(const struct agent_entry *a, struct jsonw *w);

#endif
