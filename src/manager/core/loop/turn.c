/* SPDX-License-Identifier: Apache-2.0 */
/* turn.c - the turn of the loop: touched sessions, passes, the commit of what they propose */
#include <assert.h>

#include "base/clock.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/loop/key_use.h"
#include "manager/core/loop/session_use_save.h"
#include "manager/core/loop/turn.h"
#include "manager/core/nodes/liveness.h"
#include "manager/core/retention/retention_job.h"
#include "manager/core/scheduling/attempts.h"
#include "manager/core/scheduling/pass.h"
#include "manager/core/session/lifecycle.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"
#include "manager/core/statistics/series.h"

static void turn_arm_alarm(struct core *core);

static void turn_run(struct core *core)
{
    assert(core_is_own_thread(core));
    session_entry_free_retired(core);
    deferred_run(core);
    session_entry_pop_due(core, clock_monotonic_usec());
    while (!list_is_empty(&core->touched)) {
        struct session_entry *l = LIST_ENTRY(core->touched.next, struct session_entry,
                                             touched_link);

        list_remove(&l->touched_link);
        if (l->proposal.is_busy)
            continue;
        if (l->proposal.is_alone)
            proposal_commit(core);
        lifecycle_step(core, l);
        if (l->proposal.is_alone)
            proposal_commit(core);
    }
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
    int64_t wait;

    if (core->heap_count == 0) {
        (void)uv_timer_stop(&core->alarm);
        return;
    }
    wait = core->heap[0]->wake.usec - clock_monotonic_usec();
    wait = wait <= 0 ? 1 : (wait + USEC_PER_MSEC - 1) / USEC_PER_MSEC;
    (void)uv_timer_start(&core->alarm, turn_on_alarm, (uint64_t)wait, 0);
}

void turn_on_tick(uv_timer_t *timer)
{
    struct core *core = timer->data;

    liveness_tick(core, clock_monotonic_usec());
    series_tick(core);
    attempts_tick(core, clock_monotonic_usec());
    key_use_tick(core, clock_monotonic_usec());
    session_use_tick(core, clock_monotonic_usec());
    retention_tick(core, clock_monotonic_usec());
    core_schedule_turn(core);
}
