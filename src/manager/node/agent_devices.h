/* SPDX-License-Identifier: Apache-2.0 */
/* agent_devices.h - the devices of an agent, with their holders */
#ifndef AQ_MANAGER_NODE_AGENT_DEVICES_H
#define AQ_MANAGER_NODE_AGENT_DEVICES_H

#include "base/jsonw.h"
#include "manager/core/core.h"
#include "manager/call/caller.h"
#include "model/agent.h"

/* The member "devices" as 'who', an administrator, may see it. On the loop's thread. */
void agent_devices_write(const struct core *core, const struct principal *who,
                         const struct agent *agent, struct jsonw *w);

#endif
