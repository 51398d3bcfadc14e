/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle.c - what follows from a session's status, requests and facts
 *
 * Called for a touched session that has no proposal under way. Each state has
 * one function, which orders agents what they must do and proposes at most
 * one change of the session and of each kernel; when that is durable the
 * session is touched again. Kernel events come before the session's, so that
 * a session ends after its kernels. Looking twice changes nothing.
 */
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "manager/core/booking/booking_member.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/scheduling/preemption.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/session/agent_command.h"
#include "manager/core/session/control.h"
#include "manager/core/session/drain.h"
#include "manager/core/session/elastic.h"
#include "manager/core/session/idle.h"
#include "manager/core/session/kernel_failure.h"
#include "manager/core/session/lifecycle.h"
#include "manager/core/session/rerun.h"
#include "manager/core/session/resize.h"
#include "manager/core/session/retry.h"
#include "manager/core/session/session_network.h"
#include "manager/core/session/termination.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/booking_entry.h"
#include "manager/core/state/clock_adjustment.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

/* The agent ends a batch program at its limit; we step in when it does not. */
#define BATCH_MARGIN_USEC (60 * USEC_PER_SEC)

struct event *lifecycle_end_kernel(struct core *core, struct session_entry *l, size_t rank,
                                   const char *reason)
{
    struct kernel_entry *f = &l->kernels[rank];
    struct event *e = proposal_add_kernel_status(core, l, rank, KERNEL_TERMINATED,
                                                 f->reason ? f->reason : reason);

    if (f->has_exit) {
        e->kernel_status.has_exit = true;
        e->kernel_status.exit_code = f->exit_code;
    }
    if (f->outputs)
        e->kernel_status.outputs = aq_strdup(f->outputs);
    if (l->s.running_usec == 0) /* what was chosen for it was never given */
        e->kernel_status.alloc = aq_strdup("");
    return e;
}

bool lifecycle_has_ended(const struct core *core, const struct session_entry *l, size_t rank,
                         int64_t now)
{
    const struct kernel *k = &l->s.kernels[rank];
    const struct kernel_entry *f = &l->kernels[rank];

    if (!kernel_is_holding(k->status) || !k->agent_id)
        return true;
    if (f->fact == FACT_ENDED || f->fact == FACT_ERROR)
        return true;
    /* Absent from an inventory that an order may have crossed: wait and see. */
    if (f->fact == FACT_ABSENT && (f->sent_usec == 0 || now - f->sent_usec >= RESEND_USEC))
        return true;
    return kernel_failure_is_given_up(core, l, rank, l->s.forced);
}

static bool lifecycle_all_ended(const struct core *core, const struct session_entry *l, int64_t now)
{
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (!lifecycle_has_ended(core, l, i, now))
            return false;
    return true;
}

void lifecycle_end_by(struct core *core, struct session_entry *l, size_t rank, const char *reason,
                      enum session_result result)
{
    AQ_CLEANUP(aq_freep) char *data = kernel_failure_json(l, rank);

    if (!rerun_begin(core, l, rank, reason, data))
        termination_begin(core, l, reason, result, data);
}

/* ---- preemption ---- */

/* It is to be preempted. True if that was proposed. */
static bool lifecycle_preempt(struct core *core, struct session_entry *l, int64_t now)
{
    AQ_CLEANUP(aq_freep) char *data = preemption_data(l);
    const char *reason = l->reservation.agents ? REASON_MOVED : REASON_PREEMPTED;

    if (lifecycle_has_ended(core, l, 0, now))
        return false; /* it has ended by itself */
    if (preemption_fate(l) != CORE_TERMINATED && termination_may_reschedule(l)) {
        rerun_requeue(core, l, 0,
                      session_status_may_follow(l->s.status, SESSION_PREEMPTED)
                          ? SESSION_PREEMPTED
                          : SESSION_RESCHEDULING,
                      reason, data);
    } else if (!rerun_begin(core, l, 0, reason, data)) {
        termination_begin(core, l, reason, termination_result(l), data);
    }
    AQ_FAULT("core.preempt.proposed");
    return true;
}

/* ---- RUNNING ---- */

/* End the session, or its attempt, because this kernel ended. */
static void lifecycle_finish(struct core *core, struct session_entry *l, size_t rank, int64_t now)
{
    AQ_CLEANUP(aq_freep) char *data = kernel_failure_json(l, rank);
    enum session_result result;
    const char *reason = kernel_failure_reason(l, rank, &result);
    bool all = lifecycle_all_ended(core, l, now);

    if (rerun_begin(core, l, rank, reason, data))
        return;
    termination_cancel_waiting(core, l, reason);
    for (size_t i = 0; i < l->s.kernel_count; i++) {
        if (!kernel_is_holding(l->s.kernels[i].status))
            continue;
        if (lifecycle_has_ended(core, l, i, now))
            (void)lifecycle_end_kernel(core, l, i, reason);
        else
            (void)proposal_add_kernel_status(core, l, i, KERNEL_TERMINATING, reason);
    }
    termination_propose(core, l, all ? SESSION_TERMINATED : SESSION_TERMINATING, reason, result,
                        data);
    AQ_FAULT("core.finish.proposed");
}

static void lifecycle_restart(struct core *core, struct session_entry *l)
{
    for (size_t i = 0; i < l->s.kernel_count; i++) {
        struct event *e;

        if (l->s.kernels[i].status != KERNEL_RUNNING)
            continue;
        e = proposal_add_kernel_status(core, l, i, KERNEL_RESTARTING, REASON_RESTARTING);
        e->kernel_status.attempt = l->s.kernels[i].attempt + 1;
    }
    rerun_requeue(core, l, 0, SESSION_RESTARTING, REASON_RESTARTING, NULL);
    control_audit(core, l, SESSION_RESTARTING);
    AQ_FAULT("core.restart.proposed");
}

/* Grace that the agent gives the program after its time limit, in addition to kill-grace. */
static int64_t lifecycle_timeout_grace(const struct session_entry *l)
{
    struct session_spec spec = *l->s.spec;

    termination_limit_grace(l, &spec);
    return spec.grace_usec;
}

static void lifecycle_running(struct core *core, struct session_entry *l, int64_t now)
{
    int64_t timeout = l->s.spec->batch_timeout_usec;
    int64_t limit = timeout ? timeout + BATCH_MARGIN_USEC + lifecycle_timeout_grace(l) : 0;
    size_t ending = kernel_failure_find(core, l, now);
    bool degraded;

    if (ending < l->s.kernel_count) {
        lifecycle_finish(core, l, ending, now);
        return;
    }
    if (limit && now >= clock_adjustment_due(core, l, limit)) {
        if (!rerun_begin(core, l, 0, REASON_TASK_TIMEOUT, NULL))
            termination_begin(core, l, REASON_TASK_TIMEOUT, RESULT_FAILURE, NULL);
        return;
    }
    if (limit)
        durable_wake_at(core, &l->durable, clock_adjustment_due(core, l, limit));
    if (idle_step(core, l, now))
        return;
    if (l->commands.wants_restart) {
        lifecycle_restart(core, l);
        return;
    }
    session_network_follow(core, l);
    if (resize_step(core, l, now))
        return;
    degraded = elastic_step(core, l, now);
    for (size_t i = 1; i < l->s.kernel_count; i++)
        if (l->s.kernels[i].status == KERNEL_RUNNING && lifecycle_has_ended(core, l, i, now)
            && !elastic_take_end(core, l, i, now)) {
            (void)lifecycle_end_kernel(core, l, i, REASON_SELF_TERMINATED);
            degraded |= !elastic_has_finished(l, i);
        }
    if (degraded && l->s.status == SESSION_RUNNING)
        proposal_add_session_status(core, l, SESSION_RUNNING_DEGRADED, NULL);
}

/* ---- RESTARTING ---- */

static void lifecycle_restarting(struct core *core, struct session_entry *l, int64_t now)
{
    bool all = true;

    for (size_t i = 0; i < l->s.kernel_count; i++) {
        const struct kernel_entry *f = &l->kernels[i];

        if (l->s.kernels[i].status != KERNEL_RESTARTING)
            continue;
        if (f->fact == FACT_ERROR
            || (f->fact == FACT_ABSENT && lifecycle_has_ended(core, l, i, now))) {
            lifecycle_end_by(core, l, i, REASON_FAILED_TO_START, termination_result(l));
            return;
        }
        all &= f->fact == FACT_RUNNING || f->fact == FACT_ENDED;
        if (f->fact == FACT_NONE && (f->sent_usec == 0 || now - f->sent_usec >= RESEND_USEC))
            agent_command_restart(core, l, i);
    }
    start_release(core, l, now);
    if (!all)
        return;
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (l->s.kernels[i].status == KERNEL_RESTARTING)
            (void)proposal_add_kernel_status(core, l, i, KERNEL_RUNNING, NULL);
    proposal_add_session_status(core, l, SESSION_RUNNING, NULL);
}

/* ---- TERMINATING, RESCHEDULING ---- */

static void lifecycle_send_end(struct core *core, struct session_entry *l, size_t rank,
                               bool now_at_once)
{
    const struct kernel_entry *f = &l->kernels[rank];
    const bool *is_sent = now_at_once ? &f->kill_sent : &f->destroy_sent;
    struct termination_times times = { 0, 0 };

    if (*is_sent)
        return;
    if (!now_at_once)
        times = termination_times(core, l);
    if (times.notice_usec && l->booking && booking_notice_usec(l)) /* until the booking's end */
        times.notice_usec = AQ_MIN(
            times.notice_usec,
            AQ_MAX(l->booking->b.ends_usec - clock_realtime_usec(), USEC_PER_SEC));
    agent_command_destroy(core, l, rank, times.notice_usec, times.grace_usec, l->s.reason);
    if (!*is_sent) /* its agent's reports may hold no news: they do not have it looked at again */
        durable_wake_at(core, &l->durable, clock_monotonic_usec() + RESEND_USEC);
}

static void lifecycle_terminating(struct core *core, struct session_entry *l, int64_t now,
                                  bool give_up)
{
    bool all = give_up || lifecycle_all_ended(core, l, now);

    termination_propose_forced(core, l);
    for (size_t i = 0; i < l->s.kernel_count; i++) {
        if (!kernel_is_holding(l->s.kernels[i].status))
            continue;
        if (give_up || lifecycle_has_ended(core, l, i, now)) {
            (void)lifecycle_end_kernel(core, l, i, NULL);
        } else {
            lifecycle_send_end(core, l, i, l->s.forced);
            /* To see whether an absent one stays absent. */
            if (l->kernels[i].fact == FACT_ABSENT)
                durable_wake_at(core, &l->durable, l->kernels[i].sent_usec + RESEND_USEC);
        }
    }
    if (all) {
        bool never_ran = l->s.running_usec == 0 && l->s.reason
                         && strncmp(l->s.reason, "failed-to-", 10) == 0;

        termination_propose(core, l, never_ran ? SESSION_ERROR : SESSION_TERMINATED,
                            give_up ? REASON_HANG_TIMEOUT : NULL, termination_result(l),
                            kernel_failure_is_noted(l)         ? l->s.status_data
                            : l->kernels[0].fact == FACT_ENDED ? l->kernels[0].error
                                                               : NULL);
        AQ_FAULT("core.terminate.finished");
    }
}

/* Its programs may save what they have, within the grace. */
static void lifecycle_preempted(struct core *core, struct session_entry *l, int64_t now)
{
    if (lifecycle_all_ended(core, l, now)) {
        proposal_add_session_status(core, l, SESSION_RESCHEDULING, NULL);
        AQ_FAULT("core.preempt.gone");
        return;
    }
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (!lifecycle_has_ended(core, l, i, now)) {
            lifecycle_send_end(core, l, i, false);
            if (l->kernels[i].fact == FACT_ABSENT)
                durable_wake_at(core, &l->durable, l->kernels[i].sent_usec + RESEND_USEC);
        }
}

static void lifecycle_rescheduling(struct core *core, struct session_entry *l, int64_t now)
{
    bool all = true;

    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (!lifecycle_has_ended(core, l, i, now)) {
            all = false;
            lifecycle_send_end(core, l, i, true);
        }
    if (!all)
        return;
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (l->s.kernels[i].status != KERNEL_PENDING)
            termination_requeue_kernel(core, l, i, NULL);
    proposal_add_session_status(core, l, SESSION_PENDING, NULL);
    AQ_FAULT("core.requeue.proposed");
}

/* ---- all ---- */

/* It has been in this state for too long. */
static void lifecycle_expire(struct core *core, struct session_entry *l, struct status_deadline d,
                             int64_t now)
{
    if (l->s.status == SESSION_TERMINATING) {
        lifecycle_terminating(core, l, now, true);
    } else if (!termination_agents_are_connected(core, l)) {
        durable_wake_at(core, &l->durable,
                        now + d.after_usec); /* how long to wait for an agent is a policy */
    } else if (d.next == SESSION_TERMINATING) {
        if (!rerun_begin(core, l, 0, d.reason, NULL))
            termination_begin(core, l, d.reason, termination_result(l), NULL);
    } else {
        proposal_add_session_status(core, l, d.next, d.reason);
    }
    AQ_FAULT("core.deadline.passed");
}

static bool lifecycle_has_started(enum session_status s)
{
    return s != SESSION_PENDING && s != SESSION_TERMINATING && s != SESSION_RESCHEDULING
           && s != SESSION_DEPRIORITIZING && s != SESSION_RESERVED;
}

/* The agent of a kernel is given up: the session is started once more elsewhere, wholly or in part,
 * or ended. True if that was proposed.
 */
static bool lifecycle_lose_agent(struct core *core, struct session_entry *l)
{
    AQ_CLEANUP(aq_freep) char *data = NULL;
    size_t rank = 0;

    while (rank < l->s.kernel_count
           && (!kernel_is_holding(l->s.kernels[rank].status)
               || !kernel_failure_is_given_up(core, l, rank, false)))
        rank++;
    if (rank == l->s.kernel_count)
        return false;
    if (kernel_failure_restarts_lost(l) && lifecycle_restart_lost_kernels(core, l))
        return true;
    data = kernel_failure_loss_json(l, rank);
    if (kernel_failure_restarts_all(l) && termination_may_reschedule(l)) {
        rerun_requeue(core, l, rank, SESSION_RESCHEDULING, REASON_AGENT_LOST, data);
    } else if (l->s.spec->on_node_loss || !rerun_begin(core, l, rank, REASON_AGENT_LOST, data)) {
        termination_begin(core, l, REASON_AGENT_LOST, termination_result(l), data);
    }
    AQ_FAULT("core.loss.proposed");
    return true;
}

/* Time that the session's programs get to end in addition to kill-grace. */
static int64_t lifecycle_extra_time(const struct core *core, const struct session_entry *l)
{
    struct termination_times times = termination_times(core, l);

    return times.notice_usec + AQ_MAX(times.grace_usec - core->conf.kill_grace_usec, INT64_C(0));
}

/* What is done in any state, before what its own function does. True if nothing else is to be
 * done in this turn.
 */
static bool lifecycle_interrupt(struct core *core, struct session_entry *l, int64_t now)
{
    struct status_deadline d = session_deadline(l->s.status);

    d.after_usec = retry_deadline(l, d.after_usec);
    if (l->s.status == SESSION_PREEMPTED || l->s.status == SESSION_TERMINATING)
        d.after_usec += lifecycle_extra_time(core, l);
    if (d.after_usec && now >= clock_adjustment_due(core, l, d.after_usec)) {
        lifecycle_expire(core, l, d, now);
        return true;
    }
    if (d.after_usec)
        durable_wake_at(core, &l->durable, clock_adjustment_due(core, l, d.after_usec));
    if (!lifecycle_has_started(l->s.status))
        return false;
    if (l->commands.end_reason) {
        termination_begin(core, l, l->commands.end_reason, termination_result(l), NULL);
        return true;
    }
    return lifecycle_lose_agent(core, l) || drain_step(core, l, now)
           || (l->preemption.is_preempted && lifecycle_preempt(core, l, now));
}

static struct session_entry *lifecycle_session_of(struct durable *d)
{
    return AQ_CONTAINER_OF(d, struct session_entry, durable);
}

static void lifecycle_step(struct core *core, struct durable *d)
{
    struct session_entry *l = lifecycle_session_of(d);
    int64_t now = clock_monotonic_usec();

    if (lifecycle_interrupt(core, l, now))
        return;
    switch (l->s.status) {
    case SESSION_DEPRIORITIZING:
        if (l->commands.end_reason)
            pending_step(core, l, now);
        else
            retry_lower(core, l);
        break;
    case SESSION_PENDING:
    case SESSION_RESERVED:
        pending_step(core, l, now);
        break;
    case SESSION_SCHEDULED:
    case SESSION_PREPARING:
    case SESSION_PULLING:
    case SESSION_PREPARED:
    case SESSION_CREATING:
        start_step(core, l, now);
        break;
    case SESSION_RUNNING:
    case SESSION_RUNNING_DEGRADED:
        lifecycle_running(core, l, now);
        break;
    case SESSION_RESTARTING:
        lifecycle_restarting(core, l, now);
        break;
    case SESSION_TERMINATING:
        lifecycle_terminating(core, l, now, false);
        break;
    case SESSION_PREEMPTED:
        lifecycle_preempted(core, l, now);
        break;
    case SESSION_RESCHEDULING:
        lifecycle_rescheduling(core, l, now);
        break;
    case SESSION_TERMINATED:
    case SESSION_ERROR:
    case SESSION_CANCELLED:
    case SESSION_STATUS_COUNT:
        break;
    }
}

/* ---- a proposal is back from the store ---- */

/* A pass has not seen it: only another one can tell what it waits for. */
static void lifecycle_pass_again(struct core *core, struct session_entry *l)
{
    if (!l->queue.was_skipped)
        return;
    l->queue.was_skipped = false;
    l->resource_group->needs_pass = true;
    core_schedule_turn(core);
}

static void lifecycle_returned(struct core *core, struct durable *d, int result,
                               const struct aq_error *err)
{
    struct session_entry *l = lifecycle_session_of(d);

    if (l->sched.is_placing && l->s.status != SESSION_SCHEDULED)
        sched_sync_mark_session(l); /* the placement came to nothing, or was of single kernels */
    l->sched.is_placing = false;
    if (!session_is_terminal(l->s.status))
        lifecycle_pass_again(core, l);
    if (result < 0)
        waiters_fail(core, l, result, err);
}

static void lifecycle_free(struct durable *d)
{
    session_entry_free(lifecycle_session_of(d));
}

const struct durable_ops session_durable_ops = {
    .step = lifecycle_step,
    .returned = lifecycle_returned,
    .free = lifecycle_free,
};
