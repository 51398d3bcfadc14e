/* SPDX-License-Identifier: Apache-2.0 */
/* sched_sync.c - what the scheduler of each resource group is told
 *
 * A group's scheduler (sched/scheduler.h) is kept between passes and knows the
 * group's agents, who waits for resources, and what each of the group's sessions
 * holds. An event only marks what it has changed, which costs a list link;
 * sched_sync_push() (sched_sync_push.c) tells the scheduler of what is marked, right before it is
 * asked.
 *
 * Seldom changes have it rebuilt from memory: other settings, slot types or
 * devices, an agent that leaves or changes its group. What a session holds
 * outside its group (its agent has changed groups) is taken off what that
 * agent offers, and counts for accounts as what other groups' sessions hold.
 */
#include <assert.h>

#include "manager/core/scheduling/booking_sync.h"
#include "manager/core/scheduling/kernel_queue.h"
#include "manager/core/scheduling/preemption.h"
#include "manager/core/scheduling/reservation.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/scheduling/sched_sync_internal.h"
#include "manager/core/state/account.h"
#include "manager/core/state/agent_devices.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

uint32_t sched_sync_tries(const struct session_entry *l)
{
    return l->attempts.tries
           + (l->sched.membership == MEMBERSHIP_WAITING
                  ? sched_retries(l->resource_group->sched, l->sched.handle)
                  : 0);
}

/* ---- marking ---- */

void sched_sync_invalidate(struct resource_group_entry *g)
{
    g->is_stale = true;
}

void sched_sync_mark(struct list *to, struct list *link)
{
    if (list_is_empty(link))
        list_add(to, link);
}

void sched_sync_mark_session(struct session_entry *l)
{
    sched_sync_mark(&l->resource_group->changes, &l->sched.change_link);
}

void sched_sync_drop_reservation(struct session_entry *l)
{
    struct resource_group_entry *g = l->resource_group;

    if (l->reservation.agents && g->sched)
        sched_unreserve(g->sched, l->s.row);
    reservation_set(l, NULL);
}

void sched_sync_remove_session(struct session_entry *l)
{
    struct resource_group_entry *g = l->resource_group;

    list_remove(&l->sched.change_link);
    sched_sync_drop_reservation(l);
    if (l->sched.membership == MEMBERSHIP_NONE)
        return;
    assert(g->members[l->sched.handle] == l);
    kernel_queue_drop(g, l);
    sched_drop(g->sched, l->sched.handle);
    g->members[l->sched.handle] = NULL;
    l->sched.membership = MEMBERSHIP_NONE;
}

static struct resource_group_entry *sched_sync_group_of(struct core *core,
                                                        const struct agent_entry *a)
{
    return a->is_known && a->a.resource_group ? resource_group_entry_get(core, a->a.resource_group)
                                              : NULL;
}

void sched_sync_mark_agent(struct core *core, struct agent_entry *a)
{
    struct resource_group_entry *g = sched_sync_group_of(core, a);

    if (a->scheduled_by && (a->scheduled_by != g || a->devices_changed))
        sched_sync_remove_agent(a);
    list_remove(&a->change_link);
    if (!g)
        return;
    if (!a->scheduled_by && !list_is_empty(&a->kernels))
        sched_sync_invalidate(g); /* sessions of it are inside now */
    else
        list_add(&g->changed_agents, &a->change_link);
}

void sched_sync_devices_changed(struct core *core, struct agent_entry *a)
{
    a->devices_stale = true;
    if (agent_devices_have_twins(a))
        sched_sync_mark_agent(core, a);
}

void sched_sync_remove_agent(struct agent_entry *a)
{
    list_remove(&a->change_link);
    if (a->scheduled_by)
        sched_sync_invalidate(a->scheduled_by);
    a->scheduled_by = NULL;
}

/* Others than l's group see another usage of its accounts. */
static void sched_sync_mark_accounts(struct session_entry *l)
{
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++)
        LIST_FOREACH(link, &l->accounts[kind]->resource_groups) {
            struct resource_group_account *ga = LIST_ENTRY(link, struct resource_group_account,
                                                           account_link);

            if (ga->resource_group != l->resource_group)
                sched_sync_mark(&ga->resource_group->changed_accounts, &ga->change_link);
        }
}

static bool sched_sync_is_foreign(struct core *core, struct session_entry *l, struct agent_entry *a)
{
    if (a->scheduled_by == l->resource_group && !l->sched.is_outside)
        return false;
    l->sched.is_outside = true;
    sched_sync_invalidate(l->resource_group);
    sched_sync_mark_agent(core, a);
    return true;
}

void sched_sync_session_holds(struct core *core, struct session_entry *l, struct agent_entry *a)
{
    sched_sync_mark_accounts(l);
    sched_sync_devices_changed(core, a);
    if (!sched_sync_is_foreign(core, l, a)
        && !(l->sched.membership == MEMBERSHIP_HOLDING && l->sched.is_placing))
        sched_sync_mark_session(l);
}

void sched_sync_session_leaves(struct session_entry *l)
{
    if (l->sched.membership != MEMBERSHIP_HOLDING)
        return;
    sched_mark_terminating(l->resource_group->sched, l->sched.handle);
    for (size_t k = 0; k < l->s.kernel_count; k++)
        if (l->kernels[k].single.is_known && kernel_is_holding(l->s.kernels[k].status))
            sched_mark_terminating(l->resource_group->sched, l->kernels[k].single.handle);
}

void sched_sync_session_releases(struct core *core, struct session_entry *l, struct agent_entry *a)
{
    sched_sync_mark_accounts(l);
    sched_sync_devices_changed(core, a);
    if (!sched_sync_is_foreign(core, l, a))
        sched_sync_mark_session(l);
}

void sched_sync_mark_account(struct account *account)
{
    LIST_FOREACH(link, &account->resource_groups) {
        struct resource_group_account *ga = LIST_ENTRY(link, struct resource_group_account,
                                                       account_link);

        sched_sync_mark(&ga->resource_group->changed_accounts, &ga->change_link);
    }
}

/* ---- the whole ---- */

static bool sched_sync_is_outside(const struct resource_group_entry *g, const struct core *core,
                                  const struct session_entry *l)
{
    for (size_t k = 0; k < l->s.kernel_count; k++)
        if (!list_is_empty(&l->kernels[k].agent_link)
            && agent_entry_find(core, l->s.kernels[k].agent_id)->scheduled_by != g)
            return true;
    return false;
}

static void sched_sync_detach(struct core *core, struct resource_group_entry *g)
{
    LIST_FOREACH(link, &core->sessions) {
        struct session_entry *l = LIST_ENTRY(link, struct session_entry, all_link);

        if (l->resource_group != g)
            continue;
        l->attempts.tries = sched_sync_tries(l);
        l->sched.membership = MEMBERSHIP_NONE;
        for (size_t k = 0; k < l->s.kernel_count; k++)
            l->kernels[k].single.is_known = false;
        l->preemption.is_preempting = false;
    }
    sched_free(AQ_TAKE(g->sched));
    map_done(&g->owners);
    g->owners = (struct map)MAP_INIT;
    g->node_count = 0;
}

static void sched_sync_mark_all(struct core *core, struct resource_group_entry *g)
{
    for (size_t i = 0; i < core->agent_count; i++) {
        struct agent_entry *a = core->agents_sorted[i];

        if (sched_sync_group_of(core, a) == g) {
            a->scheduled_by = NULL;
            sched_sync_mark(&g->changed_agents, &a->change_link);
        }
    }
    for (size_t i = 0; i < g->account_count; i++)
        sched_sync_mark(&g->changed_accounts, &g->accounts[i]->change_link);
}

/* Whose agents are all told of, when agents have been. */
static void sched_sync_mark_sessions(struct core *core, struct resource_group_entry *g)
{
    LIST_FOREACH(link, &core->sessions) {
        struct session_entry *l = LIST_ENTRY(link, struct session_entry, all_link);

        if (l->resource_group != g)
            continue;
        l->sched.is_outside = sched_sync_is_outside(g, core, l);
        list_remove(&l->sched.change_link);
        sched_sync_mark_session(l);
    }
}

int sched_sync_rebuild(struct core *core, struct resource_group_entry *g)
{
    int r;

    g->options = g->scheduling.options;
    sched_sync_detach(core, g);
    g->sched = sched_new(core->types, &g->options);
    sched_sync_mark_all(core, g);
    LIST_FOREACH(link, &g->changed_agents)
        LIST_ENTRY(link, struct agent_entry, change_link)->scheduled_by = g;
    sched_sync_mark_sessions(core, g);
    LIST_FOREACH(link, &g->changed_agents) {
        struct agent_entry *a = LIST_ENTRY(link, struct agent_entry, change_link);

        list_remove(link);
        if ((r = sched_sync_push_agent(core, g, a, true)) < 0)
            return r;
    }
    booking_sync_push_all(core, g, NULL);
    g->is_stale = false;
    return 0;
}

void sched_sync_done(struct resource_group_entry *g)
{
    sched_free(g->sched);
    map_done(&g->owners);
    for (size_t i = 0; i < g->account_count; i++)
        free(g->accounts[i]);
    free(g->accounts);
    free(g->nodes);
    free(g->members);
}
