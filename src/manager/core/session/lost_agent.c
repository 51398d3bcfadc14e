/* SPDX-License-Identifier: Apache-2.0 */
/* lost_agent.c - a session whose agent was lost: once more elsewhere, or the end, as its group says */
#include <string.h>

#include "base/fault.h"
#include "manager/core/commit/proposal_session.h"
#include "manager/core/session/lost_agent.h"
#include "manager/core/session/termination.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"

bool lost_agent_step(struct core *core, struct session_entry *l)
{
    const char *policy = l->resource_group->g.agent_loss_policy;

    for (size_t i = 0; i < l->s.kernel_count; i++) {
        if (!kernel_is_holding(l->s.kernels[i].status)
            || !agent_entry_is_given_up(core, l->s.kernels[i].agent_id, false))
            continue;
        if (policy && strcmp(policy, "requeue") == 0 && termination_may_reschedule(l))
            proposal_add_session_status(core, l, SESSION_RESCHEDULING, REASON_AGENT_LOST);
        else
            termination_begin(core, l, REASON_AGENT_LOST, termination_result(l), NULL);
        AQ_FAULT("core.loss.proposed");
        return true;
    }
    return false;
}
