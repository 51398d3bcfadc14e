/* SPDX-License-Identifier: Apache-2.0 */
/* turn.c - the turn of the loop: what was touched, passes, the commit of what they propose, and what
 * follows when it is back
 */
#include <assert.h>

#include "base/clock.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/loop/loop_internal.h"
#include "manager/core/nodes/liveness.h"
#include "manager/core/nodes/reach.h"
#include "manager/core/retention/retention_job.h"
#include "manager/core/scheduling/attempts.h"
#include "manager/core/scheduling/pass.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/serving/service_replica.h"
#include "manager/core/serving/service_step.h"
#include "manager/core/state/clock_adjustment.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/durable.h"
#include "manager/core/state/idle_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/state.h"
#include "manager/core/statistics/series.h"

static void turn_arm_alarm(struct core *core);

static void turn_examine(struct core *core, struct durable *d)
{
    if (d->is_busy)
        return;
    if (d->retry_usec > clock_monotonic_usec()) {
        durable_wake_at(core, d, d->retry_usec);
        return;
    }
    if (d->is_alone)
        proposal_commit(core);
    d->ops->step(core, d);
    if (d->is_alone)
        proposal_commit(core);
}

static void turn_run(struct core *core)
{
    struct durable *d;

    assert(core_is_own_thread(core));
    service_tell(core); /* before those that have ended are freed */
    durable_free_retired(core);
    deferred_run(core);
    durable_pop_due(core, clock_monotonic_usec());
    while ((d = durable_take_touched(core)))
        turn_examine(core, d);
    proposal_commit(core);
    pass_run_all(core);
    turn_arm_alarm(core);
}

void turn_on_idle(uv_idle_t *idle)
{
    struct core *core = idle->data;

    uv_idle_stop(idle);
    turn_run(core);
}

static void turn_on_alarm(uv_timer_t *timer)
{
    core_schedule_turn(timer->data);
}

/* libuv's timers count milliseconds of the loop's own clock: ours decides. */
static void turn_arm_alarm(struct core *core)
{
    int64_t due = durable_next_wake(core), wait = due - clock_monotonic_usec();

    if (!due) {
        (void)uv_timer_stop(&core->alarm);
        return;
    }
    wait = wait <= 0 ? 1 : (wait + USEC_PER_MSEC - 1) / USEC_PER_MSEC;
    (void)uv_timer_start(&core->alarm, turn_on_alarm, (uint64_t)wait, 0);
}

/* The database was opened while its file system was read-only: it has to be opened again. */
static void turn_thaw_database(struct core *core)
{
    struct aq_error err;

    (void)aq_fail(&err, ERESTART, "opening the database again: '%s' can be written",
                  core->conf.state_dir);
    if (core->conf.lost)
        core->conf.lost(core->conf.lost_data, &err);
}

void turn_on_tick(uv_timer_t *timer)
{
    struct core *core = timer->data;

    clock_adjustment_tick(core, clock_monotonic_usec());
    if (store_is_frozen(core->store) && !core->clock_text) /* the state folder can be written */
        turn_thaw_database(core);
    liveness_tick(core, clock_monotonic_usec());
    reach_tick(core);
    series_tick(core);
    attempts_tick(core, clock_monotonic_usec());
    key_use_tick(core, clock_monotonic_usec());
    session_use_tick(core, clock_monotonic_usec());
    retention_tick(core, clock_monotonic_usec());
    idle_entry_tick(core);
    core_schedule_turn(core);
}

/* ---- a proposal is back from the store: commit/proposal.c knows nothing of queues and commands ---- */

static void turn_on_pass(struct core *core, struct resource_group_entry *g, int result)
{
    if (result < 0)
        queue_capacity_freed(core, g);
    else if (g->needs_pass)
        core_schedule_turn(core);
}

const struct proposal_hooks turn_proposal_hooks = {
    .apply = apply_event,
    .on_pass = turn_on_pass,
    .is_failure = service_replica_is_failure,
};
