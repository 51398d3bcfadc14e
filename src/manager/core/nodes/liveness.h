/* SPDX-License-Identifier: Apache-2.0 */
/* liveness.h - agents that have been silent for too long are LOST */
#ifndef AQ_MANAGER_CORE_NODES_LIVENESS_H
#define AQ_MANAGER_CORE_NODES_LIVENESS_H

#include <stdint.h>

struct core;

/* Each second: agents that are silent for too long are LOST. 'now' is monotonic. */
void liveness_tick(struct core *core, int64_t now);

#endif
