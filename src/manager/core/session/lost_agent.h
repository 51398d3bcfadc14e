/* SPDX-License-Identifier: Apache-2.0 */
/* lost_agent.h - what becomes of a session whose agent was lost */
#ifndef AQ_MANAGER_CORE_SESSION_LOST_AGENT_H
#define AQ_MANAGER_CORE_SESSION_LOST_AGENT_H

#include <stdbool.h>

struct core;
struct session_entry;

/* If the agent of a kernel is given up, what its resource group wants then. True if that was
 * proposed.
 */
bool lost_agent_step(struct core *core, struct session_entry *l);

#endif
