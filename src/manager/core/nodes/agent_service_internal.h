/* SPDX-License-Identifier: Apache-2.0 */
/* agent_service_internal.h - agents as services; inside core */
#ifndef AQ_MANAGER_CORE_NODES_AGENT_SERVICE_INTERNAL_H
#define AQ_MANAGER_CORE_NODES_AGENT_SERVICE_INTERNAL_H

#include <stdint.h>

struct agent_entry;
struct core;
struct msg_service_status;

/* The answer of an agent. */
void agent_service_take_status(struct core *core, const struct agent_entry *a,
                               const struct msg_service_status *msg);
/* Its connection has ended. */
void agent_service_lost(struct core *core, const struct agent_entry *a);
/* Whose answer does not come: 'now' is monotonic. */
void agent_service_tick(struct core *core, int64_t now);
/* All commands under way, at the end. */
void agent_service_free(struct core *core);

#endif
