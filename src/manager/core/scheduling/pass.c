/* SPDX-License-Identifier: Apache-2.0 */
/* pass.c - passes of the scheduler, and what follows from their outcomes
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
#include "base/memory.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/scheduling/attempts.h"
#include "manager/core/scheduling/fair_share.h"
#include "manager/core/scheduling/kernel_queue.h"
#include "manager/core/scheduling/pass.h"
#include "manager/core/scheduling/preemption.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/scheduling/rejection.h"
#include "manager/core/scheduling/retry_options.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/state/account.h"
#include "manager/core/state/agent_devices.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/agent_network.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

/* When as many starts in a row have failed its agent chooses: it may know its devices better. Beside
 * a booking it may not choose: it does not know which devices that keeps.
 */
#define CHOICES_MAX 2

void pass_place_kernel(struct core *core, struct session_entry *l, size_t k,
                       const struct agent_entry *a, struct sched_choice chosen)
{
    struct event *e = proposal_add_kernel_status(core, l, k, KERNEL_SCHEDULED, NULL);

    e->kernel_status.agent_id = aq_strdup(a->a.id);
    if (l->s.retry.attempts >= CHOICES_MAX && !chosen.is_binding)
        chosen.count = 0;
    e->kernel_status.alloc = agent_devices_write_chosen(core, a, &chosen, l->kernels[k].requested);
}

/* Kernels on several agents need addresses there, and those with the host network ports. Where the pool has none the start fails: see
 * session/session_network.c.
 */
static char *pass_take_subnet(struct core *core, const struct resource_group_entry *g,
                              struct session_entry *l, const struct sched_outcome *out)
{
    char text[INET_ADDRSTRLEN];
    bool is_spread = l->s.is_multi_node && session_is_elastic(&l->s); /* or will be */
    bool is_wanted;

    for (size_t k = 1; k < session_least_kernels(&l->s); k++)
        is_spread |= out->agents[k] != out->agents[0];
    is_wanted = session_entry_uses_host_network(l)
                || (is_spread && session_entry_needs_network(l)
                    && agent_network_class(g->nodes[out->agents[0]]));
    if (!is_wanted || !session_entry_take_subnet(core, l))
        return NULL;
    return aq_format("%s/%u", cluster_address_format(l->network.subnet.first, text),
                     l->network.subnet.bits);
}

static void pass_place(struct core *core, const struct resource_group_entry *g,
                       struct session_entry *l, const struct sched_outcome *out)
{
    struct event *e;

    for (size_t k = 0; k < session_least_kernels(&l->s); k++)
        pass_place_kernel(core, l, k, g->nodes[out->agents[k]], out->chosen[k]);
    e = proposal_add(core, &l->durable, EVENT_SESSION_STATUS);
    e->session_status = (struct event_session_status){ .id = l->s.id,
                                                       .from = l->s.status,
                                                       .to = SESSION_SCHEDULED,
                                                       .version = l->s.version,
                                                       .reason = l->s.reason ? "scheduled" : NULL };
    e->session_status.subnet = pass_take_subnet(core, g, l, out);
    if (l->s.status_data)
        e->session_status.status_data = rejection_keep(l->s.status_data, l->s.retry.attempts);
    attempts_placed(core, l, out->choices);
    core->counts.scheduled++;
}

void pass_postpone(struct core *core, struct resource_group_entry *g, struct session_entry *l)
{
    l->queue.was_skipped = l->durable.is_busy;
    sched_sync_mark_session(l);
    if (l->commands.end_reason) {
        g->needs_pass = true; /* for others */
        core_schedule_turn(core);
    }
}

static void pass_handle(struct core *core, struct resource_group_entry *g,
                        const struct sched_outcome *out)
{
    struct session_entry *l = g->members[out->session];
    size_t rank = kernel_queue_find(l, out->session);

    if (rank > 0) {
        kernel_queue_take(core, g, l, rank, out);
        return;
    }
    if (l->queue.verdict != out->verdict) {
        l->queue.verdict_usec = clock_monotonic_usec();
        l->attempts.tries_base = sched_sync_tries(l) - AQ_MIN(sched_sync_tries(l), 1u);
    }
    switch (out->verdict) {
    case SCHED_PLACED:
        l->preemption.is_preempting = false;
        l->sched.membership = MEMBERSHIP_HOLDING;
        if (l->durable.is_busy || l->commands.end_reason) {
            pass_postpone(core, g, l);
            return;
        }
        pass_place(core, g, l, out);
        l->sched.is_placing = true;
        return;
    case SCHED_DOOMED:
        l->commands.end_reason = REASON_DEPENDENCY_FAILED;
        break;
    case SCHED_NO_ROOM:
    case SCHED_BOOKED:
    case SCHED_CUT:
        if (l->preemption.is_preempting)
            sched_sync_drop_reservation(l); /* its agent takes nothing any more */
        l->preemption.is_preempting = false;
        l->queue.verdict = out->verdict;
        break;
    case SCHED_PREEMPTING:
        preemption_begin(g, core, l, out);
        break;
    default:
        queue_park(core, l, out->verdict,
                   out->account == SCHED_NO_ACCOUNT ? NULL : g->accounts[out->account]->account);
        break;
    }
    durable_touch(core, &l->durable);
}

static int pass_run(struct core *core, struct resource_group_entry *g)
{
    struct sched_result result;
    int r = sched_sync_push(core, g);

    if (r == 0)
        r = fair_share_push(core, g);
    if (r < 0)
        return r;
    sched_pass(g->sched, clock_realtime_usec(), &core->scratch, &result);
    if (result.is_blocked)
        g->blocker = g->members[result.blocker];
    for (size_t i = 0; i < result.count; i++)
        pass_handle(core, g, &result.outcomes[i]);
    if (g->blocker && retry_options_count_waits(g->blocker))
        durable_touch(core, &g->blocker->durable);
    AQ_FAULT("core.schedule.decided");
    return 0;
}

void pass_run_all(struct core *core)
{
    if (core->orphans.restored_usec)
        return; /* what waits here may run on an agent already */
    for (size_t i = 0; i < core->resource_groups.count; i++) {
        struct resource_group_entry *g = core->resource_groups.entries[i].value;
        int r;

        if (!g->needs_pass || (g->pending == 0 && list_is_empty(&g->lacking))
            || !fair_share_is_ready(core, g))
            continue;
        g->needs_pass = false;
        g->blocker = NULL;
        if ((r = pass_run(core, g)) < 0) {
            g->needs_pass = true; /* the next tick tries again, or the end of what is under way */
            if (r != -EAGAIN)
                log_error("scheduling pass of resource group '%s' failed: %s", g->g.name,
                          strerror(-r));
        }
        arena_clear(&core->scratch, 1 << 16);
        proposal_add_pass(core, g);
        proposal_commit(core);
    }
}
