/* SPDX-License-Identifier: Apache-2.0 */
/* termination.c - proposals that end a session, or send it back to the queue */
#include <string.h>

#include "base/fault.h"
#include "base/memory.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/session/control.h"
#include "manager/core/session/kernel_failure.h"
#include "manager/core/session/limit_violation.h"
#include "manager/core/session/termination.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"
#include "manager/core/booking/booking_member.h"
#include "model/booking.h"
#include "model/end_signal.h"

struct event *termination_propose(struct core *core, struct session_entry *l,
                                  enum session_status to, const char *reason,
                                  enum session_result result, const char *data)
{
    struct event *e = proposal_add_session_status(core, l, to, reason);
    AQ_CLEANUP(aq_freep) char *violations = data ? NULL : limit_violation_json(l);

    if (data && l->s.status != SESSION_TERMINATING)
        kernel_failure_log(l, data);
    data = data ? data : violations;
    e->session_status.result = l->s.result == RESULT_UNDEFINED ? result : RESULT_UNDEFINED;
    e->session_status.status_data = aq_strdup(data);
    return e;
}

static bool termination_add_forced(struct core *core, struct session_entry *l)
{
    if (!l->commands.end_is_forced || l->s.forced)
        return false;
    proposal_add(core, &l->durable, EVENT_SESSION_FORCED)->session_change.id = l->s.id;
    return true;
}

void termination_propose_forced(struct core *core, struct session_entry *l)
{
    if (termination_add_forced(core, l))
        control_audit(core, l, SESSION_TERMINATING);
}

enum session_result termination_result(const struct session_entry *l)
{
    return l->s.type == SESSION_BATCH ? RESULT_FAILURE : RESULT_UNDEFINED;
}

void termination_cancel_waiting(struct core *core, struct session_entry *l, const char *reason)
{
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (l->s.kernels[i].status == KERNEL_PENDING)
            (void)proposal_add_kernel_status(core, l, i, KERNEL_CANCELLED, reason);
}

void termination_requeue_kernel(struct core *core, struct session_entry *l, size_t rank,
                                const char *reason)
{
    struct event *e = proposal_add_kernel_status(core, l, rank, KERNEL_PENDING, reason);

    e->kernel_status.agent_id = aq_strdup("");
    e->kernel_status.alloc = aq_strdup("");
    e->kernel_status.attempt = l->s.kernels[rank].attempt + 1;
}

void termination_begin(struct core *core, struct session_entry *l, const char *reason,
                       enum session_result result, const char *data)
{
    termination_cancel_waiting(core, l, reason);
    for (size_t i = 0; i < l->s.kernel_count; i++) {
        if (!kernel_is_holding(l->s.kernels[i].status))
            continue;
        (void)proposal_add_kernel_status(core, l, i, KERNEL_TERMINATING, reason);
        if (l->s.status == SESSION_PREEMPTED) /* its notice may be longer than that of this end */
            l->kernels[i].destroy_sent = false;
    }
    (void)termination_add_forced(core, l);
    termination_propose(core, l, SESSION_TERMINATING, reason, result, data);
    if (reason == l->commands.end_reason)
        control_audit(core, l, SESSION_TERMINATING);
    AQ_FAULT("core.terminate.proposed");
}

void termination_limit_grace(const struct session_entry *l, struct session_spec *spec)
{
    int64_t max = l->resource_group->scheduling.max_grace_usec;

    if (max == 0) { /* a grace of 0 means the default below */
        spec->checkpoint_signal = NULL;
        spec->grace_usec = 0;
    } else if (spec->checkpoint_signal) {
        spec->grace_usec = end_signal_notice_usec(spec, max);
    } else {
        spec->grace_usec = AQ_MIN(spec->grace_usec, max);
    }
}

struct termination_times termination_times(const struct core *core, const struct session_entry *l)
{
    static const char *const reasons[] = { REASON_PREEMPTED, REASON_MOVED, REASON_AGENT_DRAINED,
                                           REASON_TASK_TIMEOUT, REASON_BOOKING_ENDED };
    struct termination_times times = { 0, core->conf.kill_grace_usec };
    struct session_spec spec = *l->s.spec;

    for (size_t i = 0; l->s.reason && i < AQ_COUNT(reasons); i++)
        if (strcmp(l->s.reason, reasons[i]) == 0) {
            termination_limit_grace(l, &spec);
            times.notice_usec = end_signal_notice_usec(&spec, INT64_MAX);
            times.grace_usec = end_signal_grace_usec(&spec, INT64_MAX, times.grace_usec);
        }
    if (l->s.reason && strcmp(l->s.reason, REASON_BOOKING_ENDED) == 0)
        times.notice_usec = AQ_MAX(times.notice_usec, booking_notice_usec(l));
    return times;
}

bool termination_may_reschedule(const struct session_entry *l)
{
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (kernel_is_terminal(l->s.kernels[i].status))
            return false;
    return session_status_may_follow(l->s.status, SESSION_RESCHEDULING);
}

bool termination_agents_are_connected(const struct core *core, const struct session_entry *l)
{
    for (size_t i = 0; i < l->s.kernel_count; i++) {
        const char *id = l->s.kernels[i].agent_id;

        if (id && (!core_agent_is_connected(core, id) || !agent_entry_find(core, id)->is_synced))
            return false;
    }
    return true;
}
