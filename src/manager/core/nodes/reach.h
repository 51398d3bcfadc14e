/* SPDX-License-Identifier: Apache-2.0 */
/* reach.h - which agents can reach each other over the network between them
 *
 * Agents of one resource group check the ways to each other, each to at most REACH_PEERS_MAX: those
 * next to it when they are sorted by name and stand in a ring, so that both sides of a pair check
 * it. What they report is excluded from placements (sched_set_unreachable()).
 */
#ifndef AQ_MANAGER_CORE_NODES_REACH_H
#define AQ_MANAGER_CORE_NODES_REACH_H

#define REACH_PEERS_MAX 32

struct agent_entry;
struct core;
struct msg_network_reach;

/* What it says in its greeting; NULL = it offers no network. */
void reach_take_offer(struct core *core, struct agent_entry *a, const char *offer);

/* The first heartbeat of a connection: it was told of no peers yet. */
void reach_connected(struct core *core, struct agent_entry *a);

void reach_take_report(struct core *core, struct agent_entry *a,
                       const struct msg_network_reach *report);

/* Each second: send network.peers to agents whose list has changed. */
void reach_tick(struct core *core);

#endif
