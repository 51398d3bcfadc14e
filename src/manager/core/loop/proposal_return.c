/* SPDX-License-Identifier: Apache-2.0 */
/* proposal_return.c - what follows when a proposal comes back from the store
 *
 * commit/proposal.c calls these hooks and knows nothing of queues, schedulers and commands.
 */
#include "manager/core/loop/apply.h"
#include "manager/core/loop/proposal_return.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/resource_group_entry.h"

static void return_on_pass(struct core *core, struct resource_group_entry *g, int result)
{
    if (result < 0)
        queue_capacity_freed(core, g);
    else if (g->needs_pass)
        core_schedule_turn(core);
}

const struct proposal_hooks proposal_return_hooks = {
    .apply = apply_event,
    .on_pass = return_on_pass,
};
