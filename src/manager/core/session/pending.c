/* SPDX-License-Identifier: Apache-2.0 */
/* pending.c - what follows for a session that waits: see lifecycle.c */
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "manager/core/booking/booking_member.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/scheduling/attempts.h"
#include "manager/core/scheduling/pending_reason.h"
#include "manager/core/scheduling/preemption.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/scheduling/reservation.h"
#include "manager/core/scheduling/retry_options.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/session/control.h"
#include "manager/core/session/lifecycle.h"
#include "manager/core/session/retry.h"
#include "manager/core/session/termination.h"
#include "manager/core/state/clock_adjustment.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "model/booking.h"

#define EXPLAIN_USEC (2 * USEC_PER_SEC)
/* starts_usec is wall-clock time, which can be set: look again now and then. */
#define WALL_CHECK_USEC (30 * USEC_PER_SEC)
/* A pass every second until the session that holds up others has failed often enough. */
#define AGAIN_USEC USEC_PER_SEC

static void pending_propose_explanation(struct core *core, struct session_entry *l,
                                        struct strbuf *json)
{
    struct event *e = proposal_add(core, &l->durable, EVENT_SESSION_EXPLAINED);

    e->session_change.id = l->s.id;
    e->session_change.reason = aq_strdup(l->queue.verdict == SCHED_NO_ROOM
                                                 || l->queue.verdict == SCHED_BOOKED
                                                 || l->queue.verdict == SCHED_NO_CAPACITY
                                             ? "no-available-instances"
                                             : "predicate-checks-failed");
    e->session_change.status_data = strbuf_steal(json);
    if (l->queue.verdict != l->queue.explained)
        attempts_explained(core, l, e->session_change.status_data);
    l->queue.explained = l->queue.verdict;
    l->reservation.is_unsaved = false;
}

/* A place that others make is a promise, and written at once: beside what makes them go. */
static void pending_reason_later(struct core *core, struct session_entry *l, int64_t now)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf json = STRBUF_INIT;

    if (!l->reservation.is_unsaved) {
        if (l->queue.verdict == l->queue.explained || l->queue.verdict == SCHED_BEHIND) {
            attempts_keep(core, l, now);
            return;
        }
        if (now < l->queue.verdict_usec + EXPLAIN_USEC) {
            durable_wake_at(core, &l->durable, l->queue.verdict_usec + EXPLAIN_USEC);
            return;
        }
        if (!attempts_have_turn(core, l, now))
            return;
    }
    if (pending_reason_write(core, l, NULL, &json, NULL) == 0)
        pending_propose_explanation(core, l, &json);
    else
        l->queue.explained = l->queue.verdict;
}

/* Nothing tells when a session has run long enough to be preempted. */
static void pending_look_at_victims_again(struct core *core, struct session_entry *l, int64_t now)
{
    const struct sched_preemption *p = &l->resource_group->options.preemption;

    if (!preemption_is_on(p) || !p->min_runtime_usec || l->queue.verdict != SCHED_NO_ROOM
        || (!p->moves && !preemption_may_preempt(l)))
        return;
    if (now >= l->preemption.next_pass_usec) {
        l->resource_group->needs_pass |= l->preemption.next_pass_usec != 0;
        l->preemption.next_pass_usec = now + p->min_runtime_usec;
        core_schedule_turn(core);
    }
    durable_wake_at(core, &l->durable, l->preemption.next_pass_usec);
}

/* Nothing may happen for long that looks at it again, while others behind it would fit. */
static void pending_look_at_blocker_again(struct core *core, struct session_entry *l, int64_t now)
{
    if (l->resource_group->blocker != l || l->resource_group->pending < 2
        || !retry_options_count_waits(l))
        return;
    if (now >= l->queue.again_usec) {
        l->resource_group->needs_pass |= l->queue.again_usec != 0;
        l->queue.again_usec = now + AGAIN_USEC;
        core_schedule_turn(core);
    }
    durable_wake_at(core, &l->durable, l->queue.again_usec);
}

/* An agent where it has its place is not there: after a manager's start agents come one by one. */
static void pending_wait_for_places(struct core *core, struct session_entry *l, int64_t now)
{
    int64_t due = reservation_due(core, l);

    if (due > now) {
        durable_wake_at(core, &l->durable, due);
    } else if (l->reservation.agents && l->sched.membership == MEMBERSHIP_NONE) {
        if (due > 0)
            sched_sync_drop_reservation(l);
        sched_sync_mark_session(l);
        l->resource_group->needs_pass = true;
        core_schedule_turn(core);
    }
}

/* Parked until a time: its own, its booking's, or that of the next try. */
static void pending_wait_for_time(struct core *core, struct session_entry *l, int64_t now)
{
    int64_t wait = session_entry_starts_usec(l) - clock_realtime_usec();

    wait = AQ_MAX(AQ_MIN(wait, WALL_CHECK_USEC), l->retry.backoff_usec - now);
    if (wait <= 0)
        queue_unpark(core, l);
    else
        durable_wake_at(core, &l->durable, now + wait);
}

/* 0 = none */
static int64_t pending_timeout(const struct session_entry *l)
{
    int64_t a = l->resource_group->scheduling.pending_timeout_usec;
    int64_t b = l->resource_group->scheduling.retry[RETRY_SCHEDULE].timeout_usec;

    return a && b ? AQ_MIN(a, b) : a + b;
}

void pending_step(struct core *core, struct session_entry *l, int64_t now)
{
    int64_t timeout = pending_timeout(l), due = 0;

    if (timeout > 0) /* a delay between attempts is no wait in the queue */
        due = AQ_MAX(clock_adjustment_due(core, l, timeout), l->retry.backoff_usec);
    if (timeout > 0 && now >= due && !l->commands.end_reason) {
        l->commands.end_reason = REASON_PENDING_TIMEOUT;
        retry_note_timeout(core, l);
    }
    if (booking_is_orphan(l) && !l->commands.end_reason)
        l->commands.end_reason = REASON_BOOKING_CANCELED;
    if (l->commands.end_reason) {
        for (size_t i = 0; i < l->s.kernel_count; i++)
            (void)proposal_add_kernel_status(core, l, i, KERNEL_CANCELLED, l->commands.end_reason);
        termination_propose(core, l, SESSION_CANCELLED, l->commands.end_reason, RESULT_UNDEFINED,
                            NULL);
        control_audit(core, l, SESSION_CANCELLED);
        AQ_FAULT("core.cancel.proposed");
        return;
    }
    if (timeout > 0)
        durable_wake_at(core, &l->durable, due);
    if (l->durable.retry_usec) {
        l->durable.retry_usec = 0;
        queue_unpark(core, l);
    }
    if (retry_deprioritize(core, l))
        return;
    if (l->queue.verdict == SCHED_TOO_EARLY)
        pending_wait_for_time(core, l, now);
    pending_wait_for_places(core, l, now);
    pending_look_at_blocker_again(core, l, now);
    pending_look_at_victims_again(core, l, now);
    pending_reason_later(core, l, now);
}
