/* SPDX-License-Identifier: Apache-2.0 */
/* replica_metrics.c - see replica_metrics.h */
#include "manager/core/nodes/replica_metrics.h"

#include <string.h>

#include "manager/core/services.h"
#include "manager/core/session/agent_command.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

void core_set_metrics_ops(struct core *core, const struct core_metrics_ops *ops, void *data)
{
    core->metrics.ops = ops;
    core->metrics.data = data;
}

bool core_watch_metrics(struct core *core, const char *agent_id,
                        const struct msg_metrics_watch *watch)
{
    return agent_command_watch_metrics(core, agent_id, watch);
}

void replica_metrics_take(struct core *core, const char *agent_id,
                          const struct msg_metrics_values *values)
{
    const struct session_entry *l = map_get(&core->kernels_by_id, values->kernel_id.bytes,
                                            sizeof(values->kernel_id.bytes));
    const struct kernel *k = l && l->replica ? &l->s.kernels[0] : NULL;

    if (core->metrics.ops && k && uuid_equals(&k->id, &values->kernel_id) && k->agent_id
        && strcmp(k->agent_id, agent_id) == 0)
        core->metrics.ops->on_values(core->metrics.data, values);
}

void replica_metrics_greet(struct core *core, const char *agent_id)
{
    if (core->metrics.ops)
        core->metrics.ops->on_agent(core->metrics.data, agent_id);
}
