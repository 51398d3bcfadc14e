/* SPDX-License-Identifier: Apache-2.0 */
/* holding.c - what follows for scheduling when a session takes or gives back resources
 *
 * state/ calls these hooks and knows nothing of queues and schedulers.
 */
#include "manager/core/scheduling/fair_share.h"
#include "manager/core/scheduling/holding.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/state/account.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

static void holding_on_hold(struct core *core, struct session_entry *l, struct agent_entry *agent)
{
    sched_sync_session_holds(core, l, agent);
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++)
        l->accounts[kind]->is_stale = true;
}

static void holding_on_release(struct core *core, struct session_entry *l, size_t rank,
                               struct agent_entry *agent, int64_t at_usec)
{
    fair_share_add(l, rank, l->kernels[rank].held_usec, at_usec);
    sched_sync_session_releases(core, l, agent);
    queue_capacity_freed(core, l->resource_group);
    if (agent->scheduled_by && agent->scheduled_by != l->resource_group) /* it has moved */
        queue_capacity_freed(core, agent->scheduled_by);
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++)
        queue_account_changed(core, l->accounts[kind]);
}

static void holding_on_retire(struct core *core, struct session_entry *l)
{
    queue_remove(core, l);
    if (l->resource_group->blocker == l)
        l->resource_group->blocker = NULL;
    sched_sync_remove_session(l);
}

static void holding_on_group(struct resource_group_entry *g)
{
    core_read_scheduling(&g->g, &g->scheduling);
    sched_sync_invalidate(g);
}

const struct state_hooks holding_hooks = {
    .on_hold = holding_on_hold,
    .on_release = holding_on_release,
    .on_retire = holding_on_retire,
    .on_group = holding_on_group,
};
