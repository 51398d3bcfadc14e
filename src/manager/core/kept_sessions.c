/* The sessions of a group as its scheduler sees them, and places that are set aside for them. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/vec.h"
#include "manager/core/kept.h"

int kept_describe(struct core *core, struct rgroup *g, struct live *l, bool holding,
                  struct sched_session *ret)
{
    if (live_describe(core, l, holding, ret) < 0)
        return -ENOMEM;
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++) {
        const struct group_account *ga = kept_find_account(g, l->accounts[kind]);

        if (!ga)
            return -ENOMEM;
        ret->accounts[kind] = ga->number;
    }
    if (preempt_describe(core, l, ret) < 0)
        return -ENOMEM;
    return kept_number_owner(g, l, &ret->owner);
}

/* What is held on one agent as one place: the parts of 'more' behind those of 'to'. */
static int join_place(struct core *core, struct sched_place *to, const struct sched_place *more)
{
    struct sched_part *parts = arena_array(&core->scratch, to->part_count + more->part_count + 1,
                                           sizeof(*parts));

    if (!parts)
        return -ENOMEM;
    if (to->part_count)
        memcpy(parts, to->parts, to->part_count * sizeof(*parts));
    if (more->part_count)
        memcpy(parts + to->part_count, more->parts, more->part_count * sizeof(*parts));
    to->parts = parts;
    to->part_count += more->part_count;
    return 0;
}

/* Per kernel that holds something; one for a single-node session. */
static int find_places(struct core *core, struct live *l, struct sched_place **ret)
{
    struct sched_place *places = arena_array(&core->scratch, l->s.kernel_count, sizeof(*places));
    size_t count = 0;

    for (size_t k = 0; places && k < l->s.kernel_count; k++) {
        struct agent_live *a = agent_find(core, l->s.kernels[k].agent_id);
        struct sched_place *p = &places[count];

        if (list_is_empty(&l->kernels[k].agent_link))
            continue;
        p->agent_id = a->a.id;
        if (agent_find_parts(core, a, &l->kernels[k], &core->scratch, &p->parts,
                             &p->part_count) < 0)
            return -ENOMEM;
        if (!l->is_single_node || count == 0)
            count++;
        else if (join_place(core, &places[0], p) < 0)
            return -ENOMEM;
    }
    *ret = places;
    return places ? 0 : -ENOMEM;
}

static int tell_holding(struct core *core, struct rgroup *g, struct live *l)
{
    struct sched_session session;
    struct sched_running running = { .session = &session,
        .started_usec = l->s.running_usec ? l->s.running_usec : l->s.status_changed_usec,
        .is_leaving = preempt_is_leaving(&l->s) };
    struct sched_place *places;
    struct aq_error err;
    int r;

    if (kept_describe(core, g, l, true, &session) < 0 || find_places(core, l, &places) < 0)
        return -ENOMEM;
    running.places = places;
    session.is_movable &= session.kernel_count == l->s.kernel_count; /* all of it, or none */
    r = sched_add_running(g->sched, &running, &l->handle, &err);
    if (r == -EINVAL) { /* devices that are not what they were */
        for (size_t i = 0; i < session.kernel_count; i++)
            places[i].part_count = 0;
        r = sched_add_running(g->sched, &running, &l->handle, &err);
    }
    return r;
}

static enum seat find_seat(const struct core *core, const struct live *l)
{
    if (l->is_in_usage)
        return l->is_outside ? SEAT_NONE : SEAT_HELD;
    return l->s.status == SESSION_PENDING && !l->is_parked && l->retry_usec == 0 &&
                   !l->end_reason && !list_is_empty(&l->queue_link) &&
                   places_due(core, l) <= clock_monotonic_usec()
               ? SEAT_WAITING
               : SEAT_NONE;
}

static int take_seat(struct rgroup *g, struct live *l, enum seat seat)
{
    size_t cap = g->seat_cap;

    if (!vec_grow(&g->seats, &g->seat_cap, (size_t)l->handle + 1, sizeof(struct live *)))
        return -ENOMEM; /* the scheduler is built anew */
    if (g->seat_cap > cap)
        memset(&g->seats[cap], 0, (g->seat_cap - cap) * sizeof(struct live *));
    g->seats[l->handle] = l;
    l->seat = seat;
    return 0;
}

static int leave_seat(struct rgroup *g, struct live *l)
{
    if (l->seat == SEAT_NONE)
        return 0;
    l->tries = live_tries(l);
    if (sched_drop(g->sched, l->handle) < 0)
        return -ENOMEM;
    g->seats[l->handle] = NULL;
    l->seat = SEAT_NONE;
    return 0;
}

static int tell_session(struct core *core, struct rgroup *g, struct live *l)
{
    enum seat seat = find_seat(core, l);
    struct sched_session session;
    int r;

    if (l->is_placing || (l->is_preempting && seat == SEAT_WAITING))
        return 0; /* what becomes of that marks it again, or ends it */
    l->is_preempting = false;
    if ((r = leave_seat(g, l)) < 0 || seat == SEAT_NONE)
        return r;
    if (seat == SEAT_WAITING) {
        if ((r = kept_describe(core, g, l, false, &session)) == 0)
            r = sched_add(g->sched, &session, &l->handle, NULL);
    } else if ((r = tell_holding(core, g, l)) < 0 && r != -ENOMEM) {
        l->is_outside = true;
        for (size_t k = 0; k < l->s.kernel_count; k++)
            if (!list_is_empty(&l->kernels[k].agent_link))
                kept_agent(core, agent_find(core, l->s.kernels[k].agent_id));
        for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++)
            kept_account(l->accounts[kind]);
        return 0;
    }
    return r < 0 ? r : take_seat(g, l, seat);
}

int kept_tell_sessions(struct core *core, struct rgroup *g)
{
    while (!list_is_empty(&g->changes)) {
        struct live *l = LIST_ENTRY(g->changes.next, struct live, change_link);
        int r;

        list_remove(&l->change_link);
        if ((r = tell_session(core, g, l)) < 0)
            return r;
    }
    return 0;
}

/* ---- places ---- */

/* A place that is not there although all its agents are: what made it has come to nothing. */
static bool is_void(const struct core *core, const struct live *l)
{
    for (size_t k = 0; k < l->s.kernel_count; k++) {
        const struct agent_live *a = agent_find(core, l->places[k]);

        if (!a || !agent_is_ready(a))
            return false;
    }
    return l->s.status == SESSION_PENDING;
}

static int tell_places_of(struct core *core, struct rgroup *g, struct live *l)
{
    struct sched_session session;
    int r = kept_describe(core, g, l, false, &session);

    if (r == 0)
        r = sched_reserve(g->sched, &session, (const char *const *)l->places);
    if (r == -ENOMEM)
        return r;
    if (r == -ENOENT && is_void(core, l))
        kept_give_up_places(l);
    return (find_seat(core, l) == SEAT_WAITING) != (l->seat == SEAT_WAITING)
               ? tell_session(core, g, l)
               : 0;
}

/* Places that were set aside, which a scheduler that is built anew does not know, nor one whose
 * agents come back after a start. It says so if it knows, or if there is no room (yet). Who waits
 * for such an agent has no seat meanwhile.
 */
int kept_tell_places(struct core *core, struct rgroup *g)
{
    if (g->promised == 0)
        return 0;
    LIST_FOREACH(link, &core->sessions) {
        struct live *l = LIST_ENTRY(link, struct live, all_link);

        if (l->rgroup == g && l->places && !l->is_placing && !l->is_preempting &&
            tell_places_of(core, g, l) < 0)
            return -ENOMEM;
    }
    return 0;
}
