/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_queue.c - kernels of running sessions that are placed one by one */
#include "manager/core/scheduling/kernel_queue.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/scheduling/pass.h"
#include "manager/core/scheduling/preemption.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/scheduling/sched_sync_internal.h"
#include "manager/core/state/agent_network.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/state.h"

/* ---- sessions that lack kernels ---- */

void kernel_queue_wake(struct core *core, struct session_entry *l)
{
    sched_sync_mark_session(l);
    l->resource_group->needs_pass = true;
    core_schedule_turn(core);
}

void kernel_queue_update(struct core *core, struct session_entry *l, bool is_more)
{
    bool lacks = l->s.kernel_count > 1 && session_lacks_kernels(&l->s);

    if (lacks) {
        if (is_more || list_is_empty(&l->queue.lacking_link))
            kernel_queue_wake(core, l);
        if (list_is_empty(&l->queue.lacking_link))
            list_add(&l->resource_group->lacking, &l->queue.lacking_link);
    } else if (!list_is_empty(&l->queue.lacking_link)) {
        list_remove(&l->queue.lacking_link);
        sched_sync_mark_session(l); /* the scheduler may have entries of waiting kernels */
    }
}

/* ---- entries ---- */

/* Without addresses between agents a kernel stays where the others are. Agents that have no such
 * network of their own are combined as the scheduler's classes say.
 */
static bool kernel_queue_may_spread(const struct core *core, const struct session_entry *l)
{
    return l->s.is_multi_node
           && (l->s.subnet || !session_entry_needs_network(l)
               || !agent_network_class(agent_entry_find(core, l->s.kernels[0].agent_id)));
}

static void kernel_queue_describe(struct core *core, const struct session_entry *l, size_t rank,
                                  const struct sched_session *whole, struct sched_session *ret)
{
    const struct slots **kernels = arena_alloc(&core->scratch, sizeof(*kernels));
    const char **agents = arena_alloc(&core->scratch, sizeof(*agents));

    *kernels = &l->s.kernels[rank].requested;
    *ret = *whole;
    ret->unit = SCHED_OPTIONAL_KERNEL;
    ret->rank = (uint32_t)rank;
    ret->kernels = kernels;
    ret->kernel_count = 1;
    ret->starts_usec = 0;
    ret->dependency_count = 0;
    ret->is_preemptible = ret->is_movable = false;
    if (kernel_queue_may_spread(core, l))
        return;
    *agents = l->s.kernels[0].agent_id; /* where the others are */
    ret->designated = agents;
    ret->designated_count = 1;
    ret->designated_strict = true;
    ret->failed_agent = NULL;
}

static void kernel_queue_know(struct resource_group_entry *g, struct session_entry *l, size_t rank,
                              uint32_t handle)
{
    l->kernels[rank].single.is_known = true;
    l->kernels[rank].single.handle = handle;
    sched_sync_set_member(g, handle, l);
}

static int kernel_queue_add_running(struct core *core, struct resource_group_entry *g,
                                    struct session_entry *l, size_t rank,
                                    const struct sched_session *whole)
{
    struct sched_session single;
    struct sched_place place = { 0 };
    struct sched_running running = { .session = &single,
                                     .places = &place,
                                     .started_usec = sched_sync_started_usec(l),
                                     .is_terminating = l->kernels[rank].single.is_preempted
                                                       || preemption_is_leaving(&l->s) };
    uint32_t handle;
    int r = sched_sync_find_place(core, l, rank, &place);

    if (r < 0)
        return r;
    kernel_queue_describe(core, l, rank, whole, &single);
    r = sched_sync_add_running(g, &running, &place, 1, &handle);
    if (r == 0)
        kernel_queue_know(g, l, rank, handle);
    return r;
}

/* True if waiting kernels of the session may be placed now. */
static bool kernel_queue_is_open(const struct session_entry *l)
{
    return !list_is_empty(&l->queue.lacking_link) && l->durable.retry_usec == 0
           && !l->commands.end_reason && !l->commands.wants_restart && !l->preemption.is_preempted;
}

int kernel_queue_push(struct core *core, struct resource_group_entry *g, struct session_entry *l,
                      const struct sched_session *whole)
{
    size_t least = session_least_kernels(&l->s), held = 0;
    int64_t now = clock_monotonic_usec();
    struct sched_session single;
    uint32_t handle;
    int r = 0;

    for (size_t k = 0; r == 0 && k < l->s.kernel_count; k++)
        if (!list_is_empty(&l->kernels[k].agent_link) && held++ >= least)
            r = kernel_queue_add_running(core, g, l, k, whole);
    for (size_t k = 1; r == 0 && kernel_queue_is_open(l) && k < l->s.kernel_count; k++) {
        if (l->s.kernels[k].status != KERNEL_PENDING || l->kernels[k].single.retry_usec > now)
            continue;
        kernel_queue_describe(core, l, k, whole, &single);
        if (core->booking_count && single.lifetime_usec && l->s.running_usec) /* until its end */
            single.lifetime_usec = AQ_MAX(
                l->s.running_usec + single.lifetime_usec - clock_realtime_usec(), USEC_PER_SEC);
        if (held++ < least)
            single.unit = SCHED_REQUIRED_KERNEL;
        r = sched_add_what_if(g->sched, &single, &handle, NULL); /* added on each change */
        if (r == 0)
            kernel_queue_know(g, l, k, handle);
    }
    if (r < 0)
        kernel_queue_drop(g, l);
    return r;
}

void kernel_queue_drop(struct resource_group_entry *g, struct session_entry *l)
{
    for (size_t k = 1; k < l->s.kernel_count; k++) {
        if (!l->kernels[k].single.is_known)
            continue;
        sched_drop(g->sched, l->kernels[k].single.handle);
        g->members[l->kernels[k].single.handle] = NULL;
        l->kernels[k].single.is_known = false;
    }
}

size_t kernel_queue_find(const struct session_entry *l, uint32_t handle)
{
    for (size_t k = 1; k < l->s.kernel_count; k++)
        if (l->kernels[k].single.is_known && l->kernels[k].single.handle == handle)
            return k;
    return 0;
}

/* ---- what follows from a pass ---- */

void kernel_queue_take(struct core *core, struct resource_group_entry *g, struct session_entry *l,
                       size_t rank, const struct sched_outcome *out)
{
    if (out->verdict == SCHED_PREEMPTING) {
        preemption_call_victims(g, core, &l->s.id, out);
        return;
    }
    if (out->verdict != SCHED_PLACED)
        return; /* the next pass tries the session again */
    /* One batch may place several kernels of a session. */
    if ((l->durable.is_busy && !proposal_is_of(core, &l->durable)) || l->commands.end_reason) {
        pass_postpone(core, g, l);
        return;
    }
    pass_place_kernel(core, l, rank, g->nodes[out->agents[0]], out->chosen[0]);
    l->sched.is_placing = true;
    AQ_FAULT("core.kernel.placed");
}
