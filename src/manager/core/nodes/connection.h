/* SPDX-License-Identifier: Apache-2.0 */
/* connection.h - the end of an agent's connection */
#ifndef AQ_MANAGER_CORE_NODES_CONNECTION_H
#define AQ_MANAGER_CORE_NODES_CONNECTION_H

struct agent_entry;
struct core;

/* It has ended, by whichever side: nothing new is placed on the agent, and who waits for an answer
 * of it is told. What it runs stays its own.
 */
void connection_lost(struct core *core, struct agent_entry *a);

#endif
