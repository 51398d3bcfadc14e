/* pending.c - what follows for a session that waits: see step.c */
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "manager/core/parts.h"

#define EXPLAIN_USEC (2 * USEC_PER_SEC)
/* starts_usec is wall-clock time, which can be set: look again now and then. */
#define WALL_CHECK_USEC (30 * USEC_PER_SEC)
/* A pass every second until whoever holds up others has failed often enough. */
#define AGAIN_USEC USEC_PER_SEC

static void propose_explanation(struct core *core, struct live *l, struct strbuf *json)
{
    struct event *e = propose(core, l, EVENT_SESSION_EXPLAINED);

    if (!e)
        return;
    e->session_change.id = l->s.id;
    e->session_change.reason = strdup(l->verdict == SCHED_NO_ROOM ? "no-available-instances"
                                                                  : "predicate-checks-failed");
    e->session_change.status_data = strbuf_steal(json);
    if (l->verdict != l->explained)
        attempts_explained(core, l, e->session_change.status_data);
    l->explained = l->verdict;
    l->places_unsaid = false;
}

/* A place that others make is a promise, and written at once: beside what makes them go. */
static void explain_later(struct core *core, struct live *l, int64_t now)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf json = STRBUF_INIT;

    if (!l->places_unsaid) {
        if (l->verdict == l->explained || l->verdict == SCHED_BEHIND) {
            attempts_keep(core, l, now);
            return;
        }
        if (now < l->verdict_usec + EXPLAIN_USEC) {
            live_wake_at(core, l, l->verdict_usec + EXPLAIN_USEC);
            return;
        }
    }
    if (explain(core, l, NULL, &json, NULL) == 0)
        propose_explanation(core, l, &json);
    else
        l->explained = l->verdict;
}

/* Nothing tells when a session has run long enough to be displaced. */
static void look_at_victims_again(struct core *core, struct live *l, int64_t now)
{
    const struct sched_preemption *p = &l->rgroup->options.preemption;

    if (!preempt_is_on(p) || !p->min_runtime_usec || l->verdict != SCHED_NO_ROOM ||
        (!p->moves && (!l->wishes || !l->wishes->job_priority)))
        return;
    if (now >= l->pass_usec) {
        l->rgroup->needs_pass |= l->pass_usec != 0;
        l->pass_usec = now + p->min_runtime_usec;
        core_schedule_turn(core);
    }
    live_wake_at(core, l, l->pass_usec);
}

/* Nothing may happen for long that looks at it again, while others behind it would fit. */
static void look_at_blocker_again(struct core *core, struct live *l, int64_t now)
{
    if (l->rgroup->blocker != l || l->rgroup->pending < 2 || !retry_counts_waits(l))
        return;
    if (now >= l->again_usec) {
        l->rgroup->needs_pass |= l->again_usec != 0;
        l->again_usec = now + AGAIN_USEC;
        core_schedule_turn(core);
    }
    live_wake_at(core, l, l->again_usec);
}

/* An agent where it has its place is not there: after a manager's start agents come one by one. */
static void wait_for_places(struct core *core, struct live *l, int64_t now)
{
    int64_t due = places_due(core, l);

    if (due > now) {
        live_wake_at(core, l, due);
    } else if (l->places && l->seat == SEAT_NONE) {
        if (due > 0)
            kept_give_up_places(l);
        kept_session(l);
        l->rgroup->needs_pass = true;
        core_schedule_turn(core);
    }
}

/* Parked until a time: its own, or that of the next try. */
static void wait_for_time(struct core *core, struct live *l, int64_t now)
{
    int64_t wait = l->s.starts_usec - clock_realtime_usec();

    wait = AQ_MAX(AQ_MIN(wait, WALL_CHECK_USEC), l->backoff_usec - now);
    if (wait <= 0)
        queue_unpark(core, l);
    else
        live_wake_at(core, l, now + wait);
}

/* 0 = none */
static int64_t pending_timeout(const struct live *l)
{
    int64_t a = l->rgroup->scheduling.pending_timeout_usec;
    int64_t b = l->rgroup->scheduling.retry[RETRY_SCHEDULE].timeout_usec;

    return a && b ? AQ_MIN(a, b) : a + b;
}

void step_pending(struct core *core, struct live *l, int64_t now)
{
    int64_t timeout = pending_timeout(l);

    if (timeout > 0 && now >= age_due(core, l, timeout) && !l->end_reason) {
        l->end_reason = REASON_PENDING_TIMEOUT;
        retry_note_timeout(core, l);
    }
    if (l->end_reason) {
        for (size_t i = 0; i < l->s.kernel_count; i++)
            (void)propose_kernel(core, l, i, KERNEL_CANCELLED, l->end_reason);
        end_propose(core, l, SESSION_CANCELLED, l->end_reason, RESULT_UNDEFINED, NULL);
        AQ_FAULT("core.cancel.proposed");
        return;
    }
    if (timeout > 0)
        live_wake_at(core, l, age_due(core, l, timeout));
    if (l->retry_usec) {
        l->retry_usec = 0;
        queue_unpark(core, l);
    }
    if (retry_deprioritize(core, l))
        return;
    if (l->verdict == SCHED_TOO_EARLY)
        wait_for_time(core, l, now);
    wait_for_places(core, l, now);
    look_at_blocker_again(core, l, now);
    look_at_victims_again(core, l, now);
    explain_later(core, l, now);
}
