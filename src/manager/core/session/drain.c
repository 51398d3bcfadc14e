/* SPDX-License-Identifier: Apache-2.0 */
/* drain.c - sessions on agents that are drained with --end
 *
 * What the row of the agent says applies to each session that has a kernel there, whenever it was
 * placed. A session that the loss of the agent would restart, that may be moved or that has not run
 * yet goes back to the queue; another one is run again if it has a retry left, or ended. Programs
 * get the checkpoint signal and the grace that they have when they are preempted.
 */
#include "manager/core/session/drain.h"

#include "base/fault.h"
#include "base/jsonw.h"
#include "manager/core/session/kernel_failure.h"
#include "manager/core/session/lifecycle.h"
#include "manager/core/session/rerun.h"
#include "manager/core/session/termination.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

/* The first kernel on such an agent; kernel_count = there is none. */
static size_t drain_find(const struct core *core, const struct session_entry *l)
{
    size_t rank = 0;

    for (; rank < l->s.kernel_count; rank++) {
        const struct kernel *k = &l->s.kernels[rank];
        const struct agent_entry *a = kernel_is_holding(k->status) && k->agent_id
                                          ? agent_entry_find(core, k->agent_id)
                                          : NULL;

        if (a && a->is_known && a->a.ends_sessions)
            break;
    }
    return rank;
}

static bool drain_requeues(const struct session_entry *l)
{
    bool has_run = l->s.status == SESSION_RUNNING || l->s.status == SESSION_RUNNING_DEGRADED
                   || l->s.status == SESSION_RESTARTING;

    return termination_may_reschedule(l)
           && (!has_run || l->s.spec->is_movable || kernel_failure_restarts_all(l)
               || kernel_failure_restarts_lost(l));
}

static void drain_write(const struct agent *agent, struct strbuf *json)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(json);

    strbuf_addf(&text, "Agent '%s' was drained and its sessions ended", agent->id);
    if (agent->drain_reason)
        strbuf_addf(&text, ": %s", agent->drain_reason);
    strbuf_addc(&text, '.');
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "text", text.data);
    jsonw_object_end(&w);
}

bool drain_step(struct core *core, struct session_entry *l, int64_t now)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf data = STRBUF_INIT;
    size_t rank = drain_find(core, l);

    if (rank == l->s.kernel_count || l->s.status == SESSION_PREEMPTED
        || lifecycle_has_ended(core, l, rank, now))
        return false;
    drain_write(&agent_entry_find(core, l->s.kernels[rank].agent_id)->a, &data);
    if (drain_requeues(l))
        rerun_requeue(core, l, rank,
                      session_status_may_follow(l->s.status, SESSION_PREEMPTED)
                          ? SESSION_PREEMPTED
                          : SESSION_RESCHEDULING,
                      REASON_AGENT_DRAINED, data.data);
    else if (!rerun_begin(core, l, rank, REASON_AGENT_DRAINED, data.data))
        termination_begin(core, l, REASON_AGENT_DRAINED, termination_result(l), data.data);
    AQ_FAULT("core.drain.proposed");
    return true;
}
