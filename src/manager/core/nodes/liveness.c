/* SPDX-License-Identifier: Apache-2.0 */
/* liveness.c - agents that have been silent for too long are LOST */
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/nodes/agent_service_internal.h"
#include "manager/core/nodes/liveness.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/session/kernel_lease.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/state.h"

/* A tick this late means that this process slept: nobody was silent then. */
#define TICK_LATE_USEC (3 * USEC_PER_SEC)
/* An agent whose leader fell silent hangs up after 15 s and has found the next one 5 s later; one
 * that was cut off tries again after ten seconds at most (link/client.c).
 */
#define RETURN_USEC (20 * USEC_PER_SEC)

void liveness_hear(struct core *core, struct agent_entry *a)
{
    a->heard_usec = clock_monotonic_usec();
    a->contact_usec = clock_realtime_usec();
    if (!a->is_late)
        return;
    a->is_late = false;
    sched_sync_mark_agent(core, a);
    queue_agent_changed(
        core, resource_group_entry_get(core, a->a.resource_group ? a->a.resource_group : ""));
}

void liveness_forgive(struct core *core, int64_t now)
{
    int64_t more = AQ_MAX(RETURN_USEC - core->conf.agent_timeout_usec, 0);

    for (size_t i = 0; i < core->agent_count; i++)
        core->agents_sorted[i]->heard_usec = now + more;
}

/* Until it is heard of again. */
static void liveness_check_late(struct core *core, struct agent_entry *a, int64_t now)
{
    if (a->is_late || !a->is_synced || now - a->heard_usec < 2 * core->conf.heartbeat_usec)
        return;
    a->is_late = true;
    sched_sync_mark_agent(core, a);
    queue_agent_closed(core, a);
}

static void liveness_on_lost_saved(void *data, int r, const struct aq_error *err)
{
    (void)data;
    if (r < 0)
        log_warning("an agent's loss could not be recorded, trying again: %s", err->text);
}

static void liveness_lose(struct core *core, struct agent_entry *a)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_AGENT_STATUS, clock_realtime_usec());

    log_warning("agent '%s' is lost: not heard from for %lld s", a->a.id,
                (long long)(core->conf.agent_timeout_usec / USEC_PER_SEC));
    memcpy(e->agent_status.id, a->a.id, sizeof(a->a.id));
    e->agent_status.to = AGENT_LOST;
    e->agent_status.reason = REASON_AGENT_LOST;
    a->heard_usec = core->ticked_usec; /* once per timeout, should the store refuse it */
    proposal_commit_command(core, batch, liveness_on_lost_saved, NULL);
    AQ_FAULT("core.agent.lost.proposed");
}

static void liveness_check(struct core *core, struct agent_entry *a, int64_t now)
{
    if (!a->is_known)
        return;
    liveness_check_late(core, a, now);
    if (a->a.status == AGENT_ALIVE && now - a->heard_usec >= core->conf.agent_timeout_usec)
        liveness_lose(core, a);
    if (a->a.status == AGENT_LOST && !a->loss_handled
        && now - a->lost_usec >= kernel_lease_loss_usec(core, a)) {
        a->loss_handled = true;
        agent_entry_touch_sessions(core, a);
    }
}

void liveness_tick(struct core *core, int64_t now)
{
    int64_t late = now - core->ticked_usec;

    agent_service_tick(core, now);
    core->ticked_usec = now;
    if (late > TICK_LATE_USEC)
        liveness_forgive(core, now);
    for (size_t i = 0; i < core->agent_count; i++)
        liveness_check(core, core->agents_sorted[i], now);
}
