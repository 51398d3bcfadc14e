/* SPDX-License-Identifier: Apache-2.0 */
/* liveness.h - agents that have been silent for too long are LOST */
#ifndef AQ_MANAGER_CORE_NODES_LIVENESS_H
#define AQ_MANAGER_CORE_NODES_LIVENESS_H

#include <stdint.h>

struct agent_entry;
struct core;

/* It has connected or sent a message just now. */
void liveness_hear(struct core *core, struct agent_entry *a);

/* No agent is LOST before all have had the time to connect again: this process has just started,
 * or was stopped itself.
 */
void liveness_forgive(struct core *core, int64_t now);

/* Each second: agents that are silent for too long are LOST. 'now' is monotonic. */
void liveness_tick(struct core *core, int64_t now);

#endif
