/* kept.c - what the scheduler of each resource group is told
 *
 * A group's scheduler (sched/state.h) is kept between passes and knows the
 * group's agents, who waits for room, and what each of the group's sessions
 * holds. An event only marks what it has changed, which costs a list link;
 * kept_sync() tells the scheduler of what is marked, right before it is asked.
 *
 * Seldom changes have it built anew from memory: other settings, slot types or
 * devices, an agent that leaves or changes its group. What a session holds
 * outside its group (its agent has changed groups) is taken off what that
 * agent offers, and counts for accounts as what other groups' sessions hold.
 */
#include <errno.h>

#include "base/clock.h"
#include "manager/core/kept.h"

uint32_t live_tries(const struct live *l)
{
    return l->tries + (l->seat == SEAT_WAITING ? sched_retries(l->rgroup->sched, l->handle) : 0);
}

/* ---- marking ---- */

void kept_spoil(struct rgroup *g)
{
    g->is_stale = true;
}

void kept_mark(struct list *to, struct list *link)
{
    if (list_is_empty(link))
        list_add(to, link);
}

void kept_session(struct live *l)
{
    kept_mark(&l->rgroup->changes, &l->change_link);
}

void kept_give_up_places(struct live *l)
{
    struct rgroup *g = l->rgroup;

    if (l->places && g->sched && sched_unreserve(g->sched, l->s.row) < 0)
        kept_spoil(g);
    places_set(l, NULL);
}

void kept_forget(struct live *l)
{
    struct rgroup *g = l->rgroup;

    list_remove(&l->change_link);
    kept_give_up_places(l);
    if (l->seat == SEAT_NONE)
        return;
    if (sched_drop(g->sched, l->handle) < 0)
        kept_spoil(g);
    g->seats[l->handle] = NULL;
    l->seat = SEAT_NONE;
}

static struct rgroup *group_of(struct core *core, const struct agent_live *a)
{
    return a->is_known && a->a.resource_group ? rgroup_get(core, a->a.resource_group) : NULL;
}

void kept_agent(struct core *core, struct agent_live *a)
{
    struct rgroup *g = group_of(core, a);

    if (a->scheduled_by && (a->scheduled_by != g || a->cards_changed))
        kept_agent_leaves(a);
    list_remove(&a->change_link);
    if (!g)
        return;
    if (!a->scheduled_by && !list_is_empty(&a->kernels))
        kept_spoil(g); /* sessions of it are inside now */
    else
        list_add(&g->changed_agents, &a->change_link);
}

void kept_agent_leaves(struct agent_live *a)
{
    list_remove(&a->change_link);
    if (a->scheduled_by)
        kept_spoil(a->scheduled_by);
    a->scheduled_by = NULL;
}

/* Others than l's group see another usage of its accounts. */
static void mark_accounts(struct live *l)
{
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++)
        LIST_FOREACH(link, &l->accounts[kind]->groups) {
            struct group_account *ga = LIST_ENTRY(link, struct group_account, account_link);

            if (ga->rgroup != l->rgroup)
                kept_mark(&ga->rgroup->changed_accounts, &ga->change_link);
        }
}

static bool is_foreign(struct core *core, struct live *l, struct agent_live *a)
{
    if (a->scheduled_by == l->rgroup && !l->is_outside)
        return false;
    l->is_outside = true;
    kept_spoil(l->rgroup);
    kept_agent(core, a);
    return true;
}

void kept_held(struct core *core, struct live *l, struct agent_live *a)
{
    mark_accounts(l);
    if (!is_foreign(core, l, a) && !(l->seat == SEAT_HELD && l->is_placing))
        kept_session(l);
}

void kept_leaves(struct live *l)
{
    if (l->seat == SEAT_HELD && preempt_is_on(&l->rgroup->options.preemption))
        sched_leaves(l->rgroup->sched, l->handle);
}

void kept_released(struct core *core, struct live *l, struct agent_live *a)
{
    mark_accounts(l);
    if (!is_foreign(core, l, a))
        kept_session(l);
}

void kept_account(struct account *account)
{
    LIST_FOREACH(link, &account->groups) {
        struct group_account *ga = LIST_ENTRY(link, struct group_account, account_link);

        kept_mark(&ga->rgroup->changed_accounts, &ga->change_link);
    }
}

/* ---- the whole ---- */

static bool is_outside(const struct rgroup *g, const struct core *core, const struct live *l)
{
    for (size_t k = 0; k < l->s.kernel_count; k++)
        if (!list_is_empty(&l->kernels[k].agent_link) &&
            agent_find(core, l->s.kernels[k].agent_id)->scheduled_by != g)
            return true;
    return false;
}

static void forget(struct core *core, struct rgroup *g)
{
    LIST_FOREACH(link, &core->sessions) {
        struct live *l = LIST_ENTRY(link, struct live, all_link);

        if (l->rgroup != g)
            continue;
        l->tries = live_tries(l);
        l->seat = SEAT_NONE;
        l->is_preempting = false;
    }
    sched_free(AQ_TAKE(g->sched));
    map_done(&g->owners);
    g->owners = (struct map)MAP_INIT;
    g->node_count = 0;
}

static void mark_all(struct core *core, struct rgroup *g)
{
    for (size_t i = 0; i < core->agent_count; i++) {
        struct agent_live *a = core->agents_sorted[i];

        if (group_of(core, a) == g) {
            a->scheduled_by = NULL;
            kept_mark(&g->changed_agents, &a->change_link);
        }
    }
    for (size_t i = 0; i < g->account_count; i++)
        kept_mark(&g->changed_accounts, &g->accounts[i]->change_link);
}

/* Whose agents are all told of, when agents have been. */
static void mark_sessions(struct core *core, struct rgroup *g)
{
    LIST_FOREACH(link, &core->sessions) {
        struct live *l = LIST_ENTRY(link, struct live, all_link);

        if (l->rgroup != g)
            continue;
        l->is_outside = is_outside(g, core, l);
        list_remove(&l->change_link);
        kept_session(l);
    }
}

static int build(struct core *core, struct rgroup *g)
{
    g->options = g->scheduling.options;
    forget(core, g);
    if (sched_new(core->types, &g->options, &g->sched, NULL) < 0)
        return -ENOMEM;
    mark_all(core, g);
    LIST_FOREACH(link, &g->changed_agents)
        LIST_ENTRY(link, struct agent_live, change_link)->scheduled_by = g;
    mark_sessions(core, g);
    LIST_FOREACH(link, &g->changed_agents) {
        struct agent_live *a = LIST_ENTRY(link, struct agent_live, change_link);

        list_remove(link);
        if (kept_tell_agent(core, g, a, true) < 0)
            return -ENOMEM;
    }
    g->is_stale = false;
    return 0;
}

int kept_sync(struct core *core, struct rgroup *g)
{
    int r = 0;

    if (g->is_stale && g->passing)
        return -EAGAIN;
    if (g->is_stale)
        r = build(core, g);
    if (r == 0)
        r = kept_tell_agents(core, g);
    if (r == 0)
        r = kept_tell_sessions(core, g);
    if (r == 0)
        r = kept_tell_agents(core, g); /* those with sessions that it cannot hold */
    if (r == 0)
        r = kept_tell_places(core, g);
    if (r == 0)
        r = kept_tell_accounts(core, g);
    if (r < 0)
        kept_spoil(g);
    return r;
}

int kept_guess(struct core *core, struct live *l, size_t max, struct sched_planned **ret)
{
    struct rgroup *g = l->rgroup;
    struct sched_session session;
    int r = kept_sync(core, g);

    if (r == 0)
        r = kept_describe(core, g, l, false, &session);
    if (r == 0)
        r = kept_tell_accounts(core, g);
    if (r < 0)
        return r;
    session.row = INT64_MAX;
    if ((r = sched_add_guess(g->sched, &session, &l->handle, NULL)) < 0)
        return r;
    r = sched_plan(g->sched, clock_realtime_usec(), max, &core->scratch, ret);
    if (sched_drop(g->sched, l->handle) < 0)
        kept_spoil(g);
    return r;
}

void kept_done(struct rgroup *g)
{
    sched_free(g->sched);
    map_done(&g->owners);
    for (size_t i = 0; i < g->account_count; i++)
        free(g->accounts[i]);
    free(g->accounts);
    free(g->nodes);
    free(g->seats);
}
