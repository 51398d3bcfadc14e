/* SPDX-License-Identifier: Apache-2.0 */
/* connection.c - see connection.h */
#include "manager/core/nodes/connection.h"

#include "manager/core/nodes/agent_service_internal.h"
#include "manager/core/nodes/images_internal.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/session/resize.h"
#include "manager/core/state/agent_entry.h"

void connection_lost(struct core *core, struct agent_entry *a)
{
    a->is_connected = a->is_synced = a->is_late = false;
    images_fail_jobs(core, a);
    agent_service_lost(core, a);
    resize_lost(core, a);
    sched_sync_mark_agent(core, a);
    queue_agent_closed(core, a);
}
