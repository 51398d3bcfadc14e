/* schedule.c - passes of the scheduler, and what follows from their outcomes
 *
 * What a pass places is held by the scheduler at once and becomes durable
 * behind it, so that passes need not wait for each other. A placement that
 * could not be made durable is taken back.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "manager/core/usage.h"

static void place(struct core *core, const struct rgroup *g, struct live *l,
                  const struct sched_outcome *out)
{
    struct event *e;

    for (size_t k = 0; k < l->s.kernel_count; k++) {
        if (!(e = propose_kernel(core, l, k, KERNEL_SCHEDULED, NULL)))
            return;
        e->kernel_status.agent_id = strdup(g->nodes[out->agents[k]]->a.id);
        if (!e->kernel_status.agent_id)
            core_die("an agent's id");
    }
    if (!(e = propose(core, l, EVENT_SESSION_STATUS)))
        return;
    e->session_status = (struct event_session_status){ .id = l->s.id,
        .from = l->s.status, .to = SESSION_SCHEDULED, .version = l->s.version,
        .reason = l->s.reason ? "scheduled" : NULL };
    if (l->s.status_data && !(e->session_status.status_data = strdup("{}")))
        core_die("a status");
    attempts_placed(core, l, out->choices);
    core->counts.scheduled++;
}

/* It has its place; another proposal of it, or its end, comes first. */
static void put_off(struct core *core, struct rgroup *g, struct live *l)
{
    l->was_skipped = l->is_busy;
    kept_session(l);
    if (l->end_reason) {
        g->needs_pass = true; /* for others */
        core_schedule_turn(core);
    }
}

static void handle(struct core *core, struct rgroup *g, const struct sched_outcome *out)
{
    struct live *l = g->seats[out->session];

    if (l->verdict != out->verdict) {
        l->verdict_usec = clock_monotonic_usec();
        l->tries_base = live_tries(l) - AQ_MIN(live_tries(l), 1u);
    }
    switch (out->verdict) {
    case SCHED_PLACED:
        l->is_preempting = false;
        l->seat = SEAT_HELD;
        if (l->is_busy || l->end_reason) {
            put_off(core, g, l);
            return;
        }
        place(core, g, l, out);
        l->is_placing = l->is_busy;
        if (!l->is_placing)
            kept_session(l); /* memory is short */
        return;
    case SCHED_DOOMED:
        l->end_reason = REASON_DEPENDENCY_FAILED;
        break;
    case SCHED_NO_ROOM:
        if (l->is_preempting)
            kept_give_up_places(l); /* its agent takes nothing any more */
        l->is_preempting = false;
        l->verdict = out->verdict;
        break;
    case SCHED_PREEMPTING:
        preempt_begin(g, core, l, out);
        break;
    default:
        queue_park(core, l, out->verdict,
                   out->account == SCHED_NO_ACCOUNT ? NULL : g->accounts[out->account]->account);
        break;
    }
    live_touch(core, l);
}

static int pass(struct core *core, struct rgroup *g)
{
    struct sched_result result;
    int r = kept_sync(core, g);

    if (r == 0)
        r = usage_tell(core, g);
    if (r == 0)
        r = sched_pass(g->sched, clock_realtime_usec(), &core->scratch, &result, NULL);
    if (r < 0)
        return r;
    if (result.is_blocked)
        g->blocker = g->seats[result.blocker];
    for (size_t i = 0; i < result.count; i++)
        handle(core, g, &result.outcomes[i]);
    if (g->blocker && retry_counts_waits(g->blocker))
        live_touch(core, g->blocker);
    AQ_FAULT("core.schedule.decided");
    return 0;
}

void schedule(struct core *core)
{
    for (size_t i = 0; i < core->rgroups.count; i++) {
        struct rgroup *g = core->rgroups.entries[i].value;
        int r;

        if (!g->needs_pass || g->pending == 0 || !usage_is_ready(core, g))
            continue;
        g->needs_pass = false;
        g->blocker = NULL;
        if ((r = pass(core, g)) < 0) {
            g->needs_pass = true; /* the next tick tries again, or the end of what is under way */
            if (r != -EAGAIN)
                log_error("out of memory in a scheduling pass");
        }
        arena_clear(&core->scratch, 1 << 16);
        propose_pass(core, g);
        propose_flush(core);
    }
}
