/* SPDX-License-Identifier: Apache-2.0 */
/* sched_sync_sessions.c - the sessions of a group as its scheduler sees them, with reservations */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/vec.h"
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

void sched_sync_describe(struct core *core, struct resource_group_entry *g, struct session_entry *l,
                         bool holding, struct sched_session *ret)
{
    session_entry_describe(core, l, holding, ret);
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++) {
        const struct resource_group_account *ga = sched_sync_find_account(g, l->accounts[kind]);

        ret->accounts[kind] = l->s.type == SESSION_SYSTEM ? SCHED_NO_ACCOUNT : ga->number;
    }
    preemption_describe(core, l, ret);
    ret->owner = sched_sync_number_owner(g, l);
}

/* What is held on one agent as one place: the parts of 'more' behind those of 'to'. */
static void sched_sync_join_place(struct core *core, struct sched_place *to,
                                  const struct sched_place *more)
{
    struct sched_part *parts = arena_array(&core->scratch, to->part_count + more->part_count + 1,
                                           sizeof(*parts));

    if (to->part_count)
        memcpy(parts, to->parts, to->part_count * sizeof(*parts));
    if (more->part_count)
        memcpy(parts + to->part_count, more->parts, more->part_count * sizeof(*parts));
    to->parts = parts;
    to->part_count += more->part_count;
}

/* Per kernel that holds something; one for a single-node session. */
static int sched_sync_find_places(struct core *core, struct session_entry *l,
                                  struct sched_place **ret)
{
    struct sched_place *places = arena_array(&core->scratch, l->s.kernel_count, sizeof(*places));
    size_t count = 0;
    int r;

    for (size_t k = 0; k < l->s.kernel_count; k++) {
        struct agent_entry *a = agent_entry_find(core, l->s.kernels[k].agent_id);
        struct sched_place *p = &places[count];

        if (list_is_empty(&l->kernels[k].agent_link))
            continue;
        p->agent_id = a->a.id;
        if ((r = agent_devices_find_parts(core, a, &l->kernels[k], &core->scratch, &p->parts,
                                          &p->part_count))
            < 0)
            return r;
        if (l->s.is_multi_node || count == 0)
            count++;
        else
            sched_sync_join_place(core, &places[0], p);
    }
    *ret = places;
    return 0;
}

static int sched_sync_tell_holding(struct core *core, struct resource_group_entry *g,
                                   struct session_entry *l)
{
    struct sched_session session;
    struct sched_running running = { .session = &session,
                                     .started_usec = l->s.running_usec ? l->s.running_usec
                                                                       : l->s.status_changed_usec,
                                     .is_terminating = preemption_is_leaving(&l->s) };
    struct sched_place *places;
    struct aq_error err;
    int r;

    sched_sync_describe(core, g, l, true, &session);
    if ((r = sched_sync_find_places(core, l, &places)) < 0)
        return r;
    running.places = places;
    session.is_movable &= session.kernel_count == l->s.kernel_count; /* all of it, or none */
    r = sched_add_running(g->sched, &running, &l->sched.handle, &err);
    if (r == -EINVAL) { /* devices that are not what they were */
        for (size_t i = 0; i < session.kernel_count; i++)
            places[i].part_count = 0;
        r = sched_add_running(g->sched, &running, &l->sched.handle, &err);
    }
    return r;
}

static enum sched_membership sched_sync_find_membership(const struct core *core,
                                                        const struct session_entry *l)
{
    if (l->is_in_usage)
        return l->sched.is_outside ? MEMBERSHIP_NONE : MEMBERSHIP_HOLDING;
    return l->s.status == SESSION_PENDING && !l->queue.is_parked && l->durable.retry_usec == 0
                   && !l->commands.end_reason && !list_is_empty(&l->queue.link)
                   && reservation_due(core, l) <= clock_monotonic_usec()
               ? MEMBERSHIP_WAITING
               : MEMBERSHIP_NONE;
}

static void sched_sync_take_membership(struct resource_group_entry *g, struct session_entry *l,
                                       enum sched_membership membership)
{
    size_t cap = g->member_cap;

    vec_grow(&g->members, &g->member_cap, (size_t)l->sched.handle + 1,
             sizeof(struct session_entry *));
    if (g->member_cap > cap)
        memset(&g->members[cap], 0, (g->member_cap - cap) * sizeof(struct session_entry *));
    g->members[l->sched.handle] = l;
    l->sched.membership = membership;
}

static void sched_sync_leave_membership(struct resource_group_entry *g, struct session_entry *l)
{
    if (l->sched.membership == MEMBERSHIP_NONE)
        return;
    l->attempts.tries = sched_sync_tries(l);
    sched_drop(g->sched, l->sched.handle);
    g->members[l->sched.handle] = NULL;
    l->sched.membership = MEMBERSHIP_NONE;
}

static int sched_sync_push_session(struct core *core, struct resource_group_entry *g,
                                   struct session_entry *l)
{
    enum sched_membership membership = sched_sync_find_membership(core, l);
    struct sched_session session;
    int r = 0;

    if (l->sched.is_placing || (l->preemption.is_preempting && membership == MEMBERSHIP_WAITING))
        return 0; /* what becomes of that marks it again, or ends it */
    l->preemption.is_preempting = false;
    sched_sync_leave_membership(g, l);
    if (membership == MEMBERSHIP_NONE)
        return 0;
    if (membership == MEMBERSHIP_WAITING) {
        sched_sync_describe(core, g, l, false, &session);
        r = sched_add(g->sched, &session, &l->sched.handle, NULL);
    } else if (sched_sync_tell_holding(core, g, l) < 0) {
        l->sched.is_outside = true;
        for (size_t k = 0; k < l->s.kernel_count; k++)
            if (!list_is_empty(&l->kernels[k].agent_link))
                sched_sync_mark_agent(core, agent_entry_find(core, l->s.kernels[k].agent_id));
        for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++)
            sched_sync_mark_account(l->accounts[kind]);
        return 0;
    }
    if (r == 0)
        sched_sync_take_membership(g, l, membership);
    return r;
}

int sched_sync_push_sessions(struct core *core, struct resource_group_entry *g)
{
    while (!list_is_empty(&g->changes)) {
        struct session_entry *l = LIST_ENTRY(g->changes.next, struct session_entry,
                                             sched.change_link);
        int r;

        list_remove(&l->sched.change_link);
        if ((r = sched_sync_push_session(core, g, l)) < 0)
            return r;
    }
    return 0;
}

/* ---- places ---- */

/* A place that is not there although all its agents are: what made it has come to nothing. */
static bool sched_sync_is_void(const struct core *core, const struct session_entry *l)
{
    for (size_t k = 0; k < l->s.kernel_count; k++) {
        const struct agent_entry *a = agent_entry_find(core, l->reservation.agents[k]);

        if (!a || !agent_entry_is_ready(a))
            return false;
    }
    return l->s.status == SESSION_PENDING;
}

static int sched_sync_tell_places_of(struct core *core, struct resource_group_entry *g,
                                     struct session_entry *l)
{
    struct sched_session session;
    int r;

    sched_sync_describe(core, g, l, false, &session);
    r = sched_reserve(g->sched, &session, (const char *const *)l->reservation.agents);
    if (r == -ENOENT && sched_sync_is_void(core, l))
        sched_sync_drop_reservation(l);
    return (sched_sync_find_membership(core, l) == MEMBERSHIP_WAITING)
                   != (l->sched.membership == MEMBERSHIP_WAITING)
               ? sched_sync_push_session(core, g, l)
               : 0;
}

/* Places that were set aside, which a scheduler that is rebuilt does not know, nor one whose
 * agents come back after a start. It says so if it knows, or if there is no room (yet). Who waits
 * for such an agent is not a member meanwhile.
 */
int sched_sync_push_reservations(struct core *core, struct resource_group_entry *g)
{
    int r = 0;

    if (g->reserved == 0)
        return 0;
    LIST_FOREACH(link, &core->sessions) {
        struct session_entry *l = LIST_ENTRY(link, struct session_entry, all_link);

        if (l->resource_group == g && l->reservation.agents && !l->sched.is_placing
            && !l->preemption.is_preempting && (r = sched_sync_tell_places_of(core, g, l)) < 0)
            return r;
    }
    return 0;
}
