/* SPDX-License-Identifier: Apache-2.0 */
/* proposal_return.c - what follows when a proposal comes back from the store
 *
 * commit/proposal.c calls these hooks and knows nothing of queues, schedulers and commands.
 */
#include "manager/core/loop/apply.h"
#include "manager/core/loop/proposal_return.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/session/control.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"

static void return_on_pass(struct core *core, struct resource_group_entry *g, int result)
{
    if (result < 0)
        queue_capacity_freed(core, g);
    else if (g->needs_pass)
        core_schedule_turn(core);
}

static void return_on_session(struct core *core, struct session_entry *l)
{
    (void)core;
    if (l->sched.is_placing && l->s.status == SESSION_PENDING)
        sched_sync_mark_session(l); /* the placement came to nothing */
    l->sched.is_placing = false;
}

const struct proposal_hooks proposal_return_hooks = {
    .apply = apply_event,
    .on_pass = return_on_pass,
    .on_return = return_on_session,
    .on_failure = waiters_fail,
};
