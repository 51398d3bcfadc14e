/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c - who waits for what
 *
 * A PENDING session waits in its resource group, or is parked: at the group
 * while it waits for a time, another session or an agent (any, or one that
 * could hold it), at an account while
 * that account's limits hold it up. The scheduler knows only those that wait,
 * so that what cannot start costs nothing until what it waits for has changed.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "manager/core/scheduling/fair_share.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/scheduling/retry_options.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/state/account.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/array_entry.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

/* Can a pass be saved: would it end where the last one did, without coming to 'l'? */
static bool queue_is_behind_blocker(const struct session_entry *l)
{
    const struct sched_options *o = &l->resource_group->options;
    const struct session_entry *b = l->resource_group->blocker;

    if (!b || o->sequencer != &sched_fifo || o->retries_to_skip)
        return false;
    if (l->s.priority != b->s.priority)
        return l->s.priority < b->s.priority;
    return l->s.row > b->s.row;
}

void queue_add(struct core *core, struct session_entry *l)
{
    assert(list_is_empty(&l->queue.link));
    list_add(&l->resource_group->waiting, &l->queue.link);
    l->queue.is_parked = false;
    l->queue.verdict = SCHED_BEHIND;
    l->resource_group->pending++;
    l->accounts[SCHED_KEYPAIR]->pending++;
    sched_sync_mark_session(l);
    if (l->retry.backoff_usec > clock_monotonic_usec()) {
        l->queue.verdict_usec = clock_monotonic_usec();
        queue_park(core, l, SCHED_TOO_EARLY, NULL);
    } else if (!array_entry_admit(core, l)) {
        queue_park(core, l, SCHED_BEHIND, NULL);
    } else if (l->reservation.agents || !queue_is_behind_blocker(l)) {
        l->resource_group->needs_pass = true;
        core_schedule_turn(core);
    } else if (retry_options_count_waits(l->resource_group->blocker)) {
        durable_touch(core, &l->resource_group->blocker->durable);
    }
}

void queue_remove(struct core *core, struct session_entry *l)
{
    if (list_is_empty(&l->queue.link))
        return;
    array_entry_release(l);
    list_remove(&l->queue.link);
    assert(l->resource_group->pending > 0 && l->accounts[SCHED_KEYPAIR]->pending > 0);
    l->resource_group->pending--;
    l->accounts[SCHED_KEYPAIR]->pending--;
    if (l->sched.membership == MEMBERSHIP_WAITING)
        sched_sync_mark_session(l);
    if (l->resource_group->blocker == l || !list_is_empty(&l->resource_group->lacking))
        queue_capacity_freed(core, l->resource_group); /* to kernels: what was kept for it */
}

void queue_park(struct core *core, struct session_entry *l, enum sched_verdict verdict,
                struct account *account)
{
    struct list *to = account ? &account->parked : &l->resource_group->parked;

    if (verdict == SCHED_TOO_EARLY || verdict == SCHED_DEPENDENCY)
        array_entry_dismiss(core, l);
    list_remove(&l->queue.link);
    list_add(to, &l->queue.link);
    l->queue.is_parked = true;
    l->queue.verdict = verdict;
    sched_sync_drop_reservation(l); /* free resources will not help it: others may have them */
    sched_sync_mark_session(l);
}

void queue_unpark(struct core *core, struct session_entry *l)
{
    if (list_is_empty(&l->queue.link))
        return;
    queue_remove(core, l);
    l->queue.eligible_usec = clock_realtime_usec();
    queue_add(core, l);
}

void queue_capacity_freed(struct core *core, struct resource_group_entry *g)
{
    g->blocker = NULL;
    if (g->pending > 0 || !list_is_empty(&g->lacking)) {
        g->needs_pass = true;
        core_schedule_turn(core);
    }
}

void queue_agent_changed(struct core *core, struct resource_group_entry *g)
{
    LIST_FOREACH(link, &g->parked) {
        struct session_entry *l = LIST_ENTRY(link, struct session_entry, queue.link);

        if (l->queue.verdict == SCHED_NO_AGENT || l->queue.verdict == SCHED_NO_CAPACITY)
            queue_unpark(core, l);
    }
    queue_capacity_freed(core, g);
}

void queue_agent_closed(struct core *core, const struct agent_entry *a)
{
    struct resource_group_entry *g = a->a.resource_group
                                         ? resource_group_entry_find(core, a->a.resource_group)
                                         : NULL;

    if (g)
        queue_capacity_freed(core, g);
}

void queue_account_changed(struct core *core, struct account *account)
{
    struct sched_account limits;
    size_t count = SIZE_MAX;

    account->is_stale = true;
    LIST_FOREACH(link, &account->resource_groups) {
        struct resource_group_entry *g =
            LIST_ENTRY(link, struct resource_group_account, account_link)->resource_group;

        if (!list_is_empty(&g->lacking)) { /* kernels that wait are parked nowhere */
            g->needs_pass = true;
            core_schedule_turn(core);
        }
    }
    if (list_is_empty(&account->parked))
        return;
    /* As many as may start by number; how many fit by size, only a pass can tell. */
    if (account_limits(core, account, &limits) && limits.max_sessions > 0)
        count = limits.max_sessions > (int64_t)account->member_count
                    ? (size_t)limits.max_sessions - account->member_count
                    : 0;
    while (count-- > 0 && !list_is_empty(&account->parked))
        queue_unpark(core, LIST_ENTRY(account->parked.next, struct session_entry, queue.link));
}

/* ---- a session takes or gives back resources: state/ knows nothing of queues and schedulers ----
 */

static void queue_on_hold(struct core *core, struct session_entry *l, struct agent_entry *agent)
{
    sched_sync_session_holds(core, l, agent);
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++)
        l->accounts[kind]->is_stale = true;
}

static void queue_on_release(struct core *core, struct session_entry *l, size_t rank,
                             struct agent_entry *agent, int64_t at_usec)
{
    fair_share_add(l, rank, l->kernels[rank].held_usec, at_usec);
    sched_sync_session_releases(core, l, agent);
    queue_capacity_freed(core, l->resource_group);
    if (agent->scheduled_by && agent->scheduled_by != l->resource_group) /* it has moved */
        queue_capacity_freed(core, agent->scheduled_by);
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++)
        queue_account_changed(core, l->accounts[kind]);
}

static void queue_on_retire(struct core *core, struct session_entry *l)
{
    queue_remove(core, l);
    list_remove(&l->queue.lacking_link);
    if (l->resource_group->blocker == l)
        l->resource_group->blocker = NULL;
    sched_sync_remove_session(l);
}

static void queue_on_group(struct resource_group_entry *g)
{
    core_read_scheduling(&g->g, &g->scheduling);
    sched_sync_invalidate(g);
}

const struct state_hooks queue_hooks = {
    .on_hold = queue_on_hold,
    .on_release = queue_on_release,
    .on_retire = queue_on_retire,
    .on_group = queue_on_group,
};
