/* SPDX-License-Identifier: Apache-2.0 */
/* sched_sync_push.c - tells the scheduler of a group which agents, accounts and sessions have
 * changed
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/vec.h"
#include "manager/core/scheduling/booking_sync.h"
#include "manager/core/scheduling/fair_share.h"
#include "manager/core/scheduling/kernel_queue.h"
#include "manager/core/scheduling/preemption.h"
#include "manager/core/scheduling/reservation.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/scheduling/sched_sync_internal.h"
#include "manager/core/state/account.h"
#include "manager/core/state/agent_devices.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/agent_network.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define OWNER_KEY_MAX 160

/* ---- agents ---- */

/* What the agent offers less what others than the scheduler's sessions hold. */
static int sched_sync_find_capacity(const struct core *core, struct agent_entry *a,
                                    struct slots *free, struct sched_device *devices,
                                    uint32_t *ret_kernels)
{
    int r = 0;

    slots_copy(free, &a->a.available);
    LIST_FOREACH(link, &a->kernels) {
        const struct kernel_entry *f = LIST_ENTRY(link, struct kernel_entry, agent_link);
        const struct sched_part *parts;
        struct arena arena = { 0 };
        size_t count;

        if (r < 0 || sched_sync_is_held(a->scheduled_by, f->entry))
            continue;
        ++*ret_kernels;
        r = slots_sub(free, f->requested);
        if (r == 0)
            r = agent_devices_find_parts(core, a, f, &arena, &parts, &count);
        for (size_t i = 0; r == 0 && i < count; i++)
            devices[parts[i].device].free = AQ_MAX(devices[parts[i].device].free - parts[i].amount,
                                                   0);
        arena_done(&arena);
    }
    return r;
}

static void sched_sync_push_reach(struct resource_group_entry *g, struct agent_entry *a)
{
    for (size_t i = 0; i < g->node_count; i++)
        if (g->nodes[i] != a)
            (void)sched_set_unreachable(g->sched, a->a.id, g->nodes[i]->a.id,
                                        agent_network_is_cut(a, g->nodes[i]));
    a->is_reach_changed = false;
}

int sched_sync_push_agent(struct core *core, struct resource_group_entry *g, struct agent_entry *a,
                          bool is_new)
{
    AQ_CLEANUP(slots_donep) struct slots free = { .items = NULL };
    struct sched_agent sa = { .id = a->a.id,
                              .architecture = a->a.architecture,
                              .free = &free,
                              .capacity = &a->a.available,
                              .volumes = a->volumes.items,
                              .volume_count = a->volumes.count,
                              .is_closed = !agent_entry_is_ready(a),
                              .topology = a->a.topology,
                              .network = agent_network_sched_class(a) };
    struct sched_device *devices;
    struct aq_error err = { 0 };
    int r;

    a->scheduled_by = g;
    if ((r = agent_devices_copy(core, a, &core->scratch, &devices, &sa.device_count)) < 0
        || (r = sched_sync_find_capacity(core, a, &free, devices, &sa.kernels)) < 0)
        return r;
    sa.devices = devices;
    r = sched_set_agent(g->sched, &sa, &err);
    if (r == -EINVAL) {
        log_limited(&a->log, LOG_LEVEL_WARNING, "only sums count for agent '%s': %s", a->a.id,
                    err.text);
        sa.device_count = 0;
        r = sched_set_agent(g->sched, &sa, &err);
    }
    if (r == 0 && is_new) {
        vec_grow(&g->nodes, &g->node_cap, g->node_count + 1, sizeof(struct agent_entry *));
        g->nodes[g->node_count++] = a;
    }
    if (r == 0 && (is_new || a->is_reach_changed))
        sched_sync_push_reach(g, a);
    return r;
}

/* Sessions that wait for certain agents by name may wait for one that is new. */
static void sched_sync_mark_designated(struct resource_group_entry *g)
{
    LIST_FOREACH(link, &g->waiting) {
        struct session_entry *l = LIST_ENTRY(link, struct session_entry, queue.link);

        if (l->s.spec->agents.count)
            sched_sync_mark_session(l);
    }
}

static int sched_sync_push_agents(struct core *core, struct resource_group_entry *g)
{
    int r;

    while (!list_is_empty(&g->changed_agents)) {
        struct agent_entry *a = LIST_ENTRY(g->changed_agents.next, struct agent_entry, change_link);
        bool is_new = a->scheduled_by != g;

        list_remove(&a->change_link);
        if ((r = sched_sync_push_agent(core, g, a, is_new)) < 0)
            return r;
        if (is_new) {
            sched_sync_mark_designated(g);
            booking_sync_push_all(core, g, a->a.id);
        }
    }
    return 0;
}

/* ---- accounts and owners ---- */

static struct resource_group_account *sched_sync_find_account(struct resource_group_entry *g,
                                                              struct account *account)
{
    struct resource_group_account *ga;

    LIST_FOREACH(link, &account->resource_groups)
        if (LIST_ENTRY(link, struct resource_group_account, account_link)->resource_group == g)
            return LIST_ENTRY(link, struct resource_group_account, account_link);
    vec_grow(&g->accounts, &g->account_cap, g->account_count + 1,
             sizeof(struct resource_group_account *));
    ga = aq_alloc(sizeof(*ga));
    ga->account = account;
    ga->resource_group = g;
    ga->number = (uint32_t)g->account_count;
    list_init(&ga->change_link);
    g->accounts[g->account_count++] = ga;
    list_add(&account->resource_groups, &ga->account_link);
    sched_sync_mark(&g->changed_accounts, &ga->change_link);
    return ga;
}

/* What is held of it by others than the scheduler's sessions. */
static int sched_sync_find_usage(const struct resource_group_account *ga, struct slots *ret,
                                 int64_t *ret_sessions)
{
    const struct account *account = ga->account;
    int r = 0;

    LIST_FOREACH(link, &account->members) {
        const struct session_entry *l = AQ_CONTAINER_OF(link, struct session_entry,
                                                        account_links[account->kind]);

        if (sched_sync_is_held(ga->resource_group, l))
            continue;
        ++*ret_sessions;
        for (size_t i = 0; i < l->s.kernel_count && r == 0; i++)
            if (kernel_is_holding(l->s.kernels[i].status))
                r = slots_add(ret, &l->s.kernels[i].requested);
    }
    return r;
}

static int sched_sync_push_accounts(struct core *core, struct resource_group_entry *g)
{
    while (!list_is_empty(&g->changed_accounts)) {
        struct resource_group_account *ga = LIST_ENTRY(g->changed_accounts.next,
                                                       struct resource_group_account, change_link);
        AQ_CLEANUP(slots_donep) struct slots used = { .items = NULL };
        struct sched_account sa;
        int r;

        if (!account_limits(core, ga->account, &sa))
            sa = (struct sched_account){ .kind = ga->account->kind, .name = ga->account->name };
        else if ((r = sched_sync_find_usage(ga, &used, &sa.sessions)) < 0)
            return r;
        sa.used = &used;
        sched_set_account(g->sched, ga->number, &sa);
        list_remove(&ga->change_link);
    }
    return 0;
}

/* Whose sessions are served as one: a user's, for fair share within a project and domain. */
static size_t sched_sync_owner_key(const struct resource_group_entry *g,
                                   const struct session_entry *l, char key[OWNER_KEY_MAX])
{
    size_t len = sizeof(l->s.user_id.bytes);
    int more;

    memcpy(key, l->s.user_id.bytes, len);
    if (g->options.sequencer != &sched_fair_share)
        return len;
    memcpy(key + len, l->s.project_id.bytes, sizeof(l->s.project_id.bytes));
    len += sizeof(l->s.project_id.bytes);
    more = snprintf(key + len, OWNER_KEY_MAX - len, "%s", l->s.domain ? l->s.domain : "");
    return AQ_MIN(len + (size_t)more, (size_t)OWNER_KEY_MAX);
}

static uint32_t sched_sync_number_owner(struct resource_group_entry *g,
                                        const struct session_entry *l)
{
    static const struct sched_owner fresh = { .used = NULL };
    char key[OWNER_KEY_MAX];
    size_t len = sched_sync_owner_key(g, l, key);
    uintptr_t known = (uintptr_t)map_get(&g->owners, key, len);
    uint32_t number = (uint32_t)(known ? known - 1 : g->owners.count);

    if (known)
        return number;
    sched_set_owner(g->sched, number, &fresh);
    fair_share_name_owner(g, number, l);
    map_set(&g->owners, key, len, (void *)(uintptr_t)(number + 1));
    return number;
}

/* ---- sessions ---- */

static void sched_sync_describe(struct core *core, struct resource_group_entry *g,
                                struct session_entry *l, bool holding, struct sched_session *ret)
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

int sched_sync_find_place(struct core *core, struct session_entry *l, size_t rank,
                          struct sched_place *ret)
{
    struct agent_entry *a = agent_entry_find(core, l->s.kernels[rank].agent_id);

    ret->agent_id = a->a.id;
    return agent_devices_find_parts(core, a, &l->kernels[rank], &core->scratch, &ret->parts,
                                    &ret->part_count);
}

int sched_sync_find_places(struct core *core, struct session_entry *l, struct sched_place **ret)
{
    struct sched_place *places = arena_array(&core->scratch, l->s.kernel_count, sizeof(*places));
    size_t count = 0, held = 0;
    int r;

    for (size_t k = 0; k < l->s.kernel_count && held < session_least_kernels(&l->s); k++) {
        struct sched_place *p = &places[count];

        if (list_is_empty(&l->kernels[k].agent_link))
            continue;
        held++;
        if ((r = sched_sync_find_place(core, l, k, p)) < 0)
            return r;
        if (l->s.is_multi_node || count == 0)
            count++;
        else
            sched_sync_join_place(core, &places[0], p);
    }
    *ret = places;
    return 0;
}

int sched_sync_add_running(struct resource_group_entry *g, struct sched_running *running,
                           struct sched_place *places, size_t count, uint32_t *ret_handle)
{
    struct aq_error err;
    int r = sched_add_running(g->sched, running, ret_handle, &err);

    if (r != -EINVAL)
        return r;
    for (size_t i = 0; i < count; i++)
        places[i].part_count = 0;
    return sched_add_running(g->sched, running, ret_handle, &err);
}

static int sched_sync_tell_holding(struct core *core, struct resource_group_entry *g,
                                   struct session_entry *l)
{
    struct sched_session session;
    struct sched_running running = { .session = &session,
                                     .started_usec = sched_sync_started_usec(l),
                                     .is_terminating = preemption_is_leaving(&l->s) };
    struct sched_place *places;
    int r;

    sched_sync_describe(core, g, l, true, &session);
    if ((r = sched_sync_find_places(core, l, &places)) < 0)
        return r;
    running.places = places;
    session.is_movable &= session.kernel_count == l->s.kernel_count; /* all of it, or none */
    r = sched_sync_add_running(g, &running, places, session.kernel_count, &l->sched.handle);
    if (r == 0 && (r = kernel_queue_push(core, g, l, &session)) < 0)
        sched_drop(g->sched, l->sched.handle);
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

void sched_sync_set_member(struct resource_group_entry *g, uint32_t handle, struct session_entry *l)
{
    size_t cap = g->member_cap;

    vec_grow(&g->members, &g->member_cap, (size_t)handle + 1, sizeof(struct session_entry *));
    if (g->member_cap > cap)
        memset(&g->members[cap], 0, (g->member_cap - cap) * sizeof(struct session_entry *));
    g->members[handle] = l;
}

static void sched_sync_leave_membership(struct resource_group_entry *g, struct session_entry *l)
{
    if (l->sched.membership == MEMBERSHIP_NONE)
        return;
    l->attempts.tries = sched_sync_tries(l);
    kernel_queue_drop(g, l);
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
    if (r == 0) {
        sched_sync_set_member(g, l->sched.handle, l);
        l->sched.membership = membership;
    }
    return r;
}

static int sched_sync_push_sessions(struct core *core, struct resource_group_entry *g)
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

/* ---- reservations ---- */

/* A place that is not there although all its agents are: what made it has come to nothing. */
static bool sched_sync_is_void(const struct core *core, const struct session_entry *l)
{
    for (size_t k = 0; k < session_least_kernels(&l->s); k++) {
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
static int sched_sync_push_reservations(struct core *core, struct resource_group_entry *g)
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

/* ---- all that is marked ---- */

int sched_sync_push(struct core *core, struct resource_group_entry *g)
{
    int r = 0;

    if (g->is_stale && g->open_passes)
        return -EAGAIN;
    if (g->is_stale)
        r = sched_sync_rebuild(core, g);
    if (r == 0)
        r = sched_sync_push_agents(core, g);
    if (r == 0)
        r = sched_sync_push_sessions(core, g);
    if (r == 0)
        r = sched_sync_push_agents(core, g); /* those with sessions that it cannot hold */
    if (r == 0)
        r = sched_sync_push_reservations(core, g);
    if (r == 0)
        r = sched_sync_push_accounts(core, g);
    if (r < 0)
        sched_sync_invalidate(g);
    return r;
}

int sched_sync_what_if(struct core *core, struct session_entry *l, uint32_t *handles, size_t count,
                       size_t max, struct sched_start_estimate **ret)
{
    struct resource_group_entry *g = l->resource_group;
    struct sched_session session;
    size_t added = 0;
    int r = sched_sync_push(core, g);

    if (r < 0)
        return r;
    sched_sync_describe(core, g, l, false, &session);
    if ((r = sched_sync_push_accounts(core, g)) < 0)
        return r;
    session.row = INT64_MAX - (int64_t)count;
    for (; added < count && r == 0; added += r == 0) {
        session.row++;
        r = sched_add_what_if(g->sched, &session, &handles[added], NULL);
    }
    if (r == 0)
        r = (int)sched_estimate_starts(g->sched, clock_realtime_usec(), max, &core->scratch, ret);
    while (added > 0)
        sched_drop(g->sched, handles[--added]);
    return r;
}
