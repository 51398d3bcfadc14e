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
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"
#include "manager/core/usage.h"

#define OWNER_KEY_MAX 160

uint32_t live_tries(const struct live *l)
{
    return l->tries + (l->seat == SEAT_WAITING ? sched_retries(l->rgroup->sched, l->handle) : 0);
}

/* ---- marking ---- */

void kept_spoil(struct rgroup *g)
{
    g->is_stale = true;
}

static void mark(struct list *to, struct list *link)
{
    if (list_is_empty(link))
        list_add(to, link);
}

void kept_session(struct live *l)
{
    mark(&l->rgroup->changes, &l->change_link);
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
                mark(&ga->rgroup->changed_accounts, &ga->change_link);
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

        mark(&ga->rgroup->changed_accounts, &ga->change_link);
    }
}

/* ---- agents ---- */

static bool is_held_here(const struct rgroup *g, const struct live *l)
{
    return l->rgroup == g && !l->is_outside;
}

/* What the agent offers less what others than the scheduler's sessions hold. */
static int find_room(const struct core *core, struct agent_live *a, struct slots *free,
                     struct sched_device *devices, uint32_t *ret_kernels)
{
    int r = slots_copy(free, &a->a.available);

    LIST_FOREACH(link, &a->kernels) {
        const struct kernel_live *f = LIST_ENTRY(link, struct kernel_live, agent_link);
        const struct sched_part *parts;
        struct arena arena = { 0 };
        size_t count;

        if (r < 0 || is_held_here(a->scheduled_by, f->live))
            continue;
        ++*ret_kernels;
        r = slots_sub(free, f->requested);
        if (r == 0)
            r = agent_find_parts(core, a, f, &arena, &parts, &count);
        for (size_t i = 0; r == 0 && i < count; i++)
            devices[parts[i].device].free
                = AQ_MAX(devices[parts[i].device].free - parts[i].amount, 0);
        arena_done(&arena);
    }
    return r;
}

static int number_agent(struct rgroup *g, struct agent_live *a)
{
    if (!vec_grow(&g->nodes, &g->node_cap, g->node_count + 1, sizeof(struct agent_live *)))
        return -ENOMEM;
    g->nodes[g->node_count++] = a;
    return 0;
}

static int tell_agent(struct core *core, struct rgroup *g, struct agent_live *a, bool is_new)
{
    AQ_CLEANUP(slots_donep) struct slots free = { .items = NULL };
    struct sched_agent sa = { .id = a->a.id, .architecture = a->a.architecture, .free = &free,
        .capacity = &a->a.available, .is_closed = !agent_is_ready(a) };
    struct sched_device *devices;
    struct aq_error err = { 0 };
    int r;

    a->scheduled_by = g;
    if (agent_copy_cards(core, a, &core->scratch, &devices, &sa.device_count) < 0)
        return -ENOMEM;
    sa.devices = devices;
    if (find_room(core, a, &free, devices, &sa.kernels) < 0)
        return -ENOMEM;
    r = sched_set_agent(g->sched, &sa, &err);
    if (r == -EINVAL) {
        log_warning("only sums count for agent '%s': %s", a->a.id, err.text);
        sa.device_count = 0;
        r = sched_set_agent(g->sched, &sa, &err);
    }
    return r == 0 && is_new ? number_agent(g, a) : r;
}

/* Sessions that wait for certain agents by name may wait for one that is new. */
static void mark_designated(struct rgroup *g)
{
    LIST_FOREACH(link, &g->waiting) {
        struct live *l = LIST_ENTRY(link, struct live, queue_link);

        if (l->wishes && l->wishes->agent_count)
            kept_session(l);
    }
}

static int tell_agents(struct core *core, struct rgroup *g)
{
    while (!list_is_empty(&g->changed_agents)) {
        struct agent_live *a = LIST_ENTRY(g->changed_agents.next, struct agent_live, change_link);
        bool is_new = a->scheduled_by != g;

        list_remove(&a->change_link);
        if (tell_agent(core, g, a, is_new) < 0)
            return -ENOMEM;
        if (is_new)
            mark_designated(g);
    }
    return 0;
}

/* ---- accounts and owners ---- */

static struct group_account *find_account(struct rgroup *g, struct account *account)
{
    struct group_account *ga;

    LIST_FOREACH(link, &account->groups)
        if (LIST_ENTRY(link, struct group_account, account_link)->rgroup == g)
            return LIST_ENTRY(link, struct group_account, account_link);
    if (!vec_grow(&g->accounts, &g->account_cap, g->account_count + 1,
                  sizeof(struct group_account *)) ||
        !(ga = calloc(1, sizeof(*ga))))
        return NULL;
    ga->account = account;
    ga->rgroup = g;
    ga->number = (uint32_t)g->account_count;
    list_init(&ga->change_link);
    g->accounts[g->account_count++] = ga;
    list_add(&account->groups, &ga->account_link);
    mark(&g->changed_accounts, &ga->change_link);
    return ga;
}

/* What is held of it by others than the scheduler's sessions. */
static int find_usage(const struct group_account *ga, struct slots *ret, int64_t *ret_sessions)
{
    const struct account *account = ga->account;

    LIST_FOREACH(link, &account->members) {
        const struct live *l = AQ_CONTAINER_OF(link, struct live, account_links[account->kind]);

        if (is_held_here(ga->rgroup, l))
            continue;
        ++*ret_sessions;
        for (size_t i = 0; i < l->s.kernel_count; i++)
            if (kernel_is_holding(l->s.kernels[i].status) &&
                slots_add(ret, &l->s.kernels[i].requested) < 0)
                return -ENOMEM;
    }
    return 0;
}

static int tell_accounts(struct core *core, struct rgroup *g)
{
    while (!list_is_empty(&g->changed_accounts)) {
        struct group_account *ga
            = LIST_ENTRY(g->changed_accounts.next, struct group_account, change_link);
        AQ_CLEANUP(slots_donep) struct slots used = { .items = NULL };
        struct sched_account sa;

        if (!account_limits(core, ga->account, &sa))
            sa = (struct sched_account){ .kind = ga->account->kind, .name = ga->account->name };
        else if (find_usage(ga, &used, &sa.sessions) < 0)
            return -ENOMEM;
        sa.used = &used;
        if (sched_set_account(g->sched, ga->number, &sa) < 0)
            return -ENOMEM;
        list_remove(&ga->change_link);
    }
    return 0;
}

/* Whose sessions are served as one: a user's, for fair share within a project and domain. */
static size_t owner_key(const struct rgroup *g, const struct live *l, char key[OWNER_KEY_MAX])
{
    size_t len = sizeof(l->s.user_id.bytes);
    int more;

    memcpy(key, l->s.user_id.bytes, len);
    if (g->options.sequencer != &sched_fair_share)
        return len;
    memcpy(key + len, l->s.group_id.bytes, sizeof(l->s.group_id.bytes));
    len += sizeof(l->s.group_id.bytes);
    more = snprintf(key + len, OWNER_KEY_MAX - len, "%s", l->s.domain ? l->s.domain : "");
    return AQ_MIN(len + (size_t)more, (size_t)OWNER_KEY_MAX);
}

static int number_owner(struct rgroup *g, const struct live *l, uint32_t *ret)
{
    static const struct sched_owner fresh = { .used = NULL };
    char key[OWNER_KEY_MAX];
    size_t len = owner_key(g, l, key);
    uintptr_t known = (uintptr_t)map_get(&g->owners, key, len);

    *ret = (uint32_t)(known ? known - 1 : g->owners.count);
    if (known)
        return 0;
    if (sched_set_owner(g->sched, *ret, &fresh) < 0 || usage_name_owner(g, *ret, l) < 0)
        return -ENOMEM;
    return map_set(&g->owners, key, len, (void *)(uintptr_t)(*ret + 1));
}

/* ---- sessions ---- */

/* Of its kernels, those that hold something, or all. */
static int describe(struct core *core, struct rgroup *g, struct live *l, bool holding,
                    struct sched_session *ret)
{
    const struct slots **kernels = arena_array(&core->scratch, l->s.kernel_count,
                                               sizeof(*kernels));

    if (!kernels)
        return -ENOMEM;
    *ret = (struct sched_session){
        .id = l->s.id,
        .row = l->s.row,
        .type = l->s.type,
        .priority = l->s.priority,
        .starts_usec = l->s.starts_usec,
        .architecture = l->architecture,
        .single_node = l->is_single_node,
        .kernels = kernels,
        .dependencies = l->s.dependencies,
        .dependency_count = l->s.dependency_count,
        .failed_agent = l->failed_agent,
        .lifetime_usec = l->s.batch_timeout_usec,
    };
    for (size_t k = 0; k < l->s.kernel_count; k++)
        if (!holding || !list_is_empty(&l->kernels[k].agent_link))
            kernels[ret->kernel_count++] = &l->s.kernels[k].requested;
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++) {
        const struct group_account *ga = find_account(g, l->accounts[kind]);

        if (!ga)
            return -ENOMEM;
        ret->accounts[kind] = ga->number;
    }
    if (wishes_describe(core, l, ret) < 0 || preempt_describe(core, l, ret) < 0)
        return -ENOMEM;
    return number_owner(g, l, &ret->owner);
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

    if (describe(core, g, l, true, &session) < 0 || find_places(core, l, &places) < 0)
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
        if ((r = describe(core, g, l, false, &session)) == 0)
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

static int tell_sessions(struct core *core, struct rgroup *g)
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
            mark(&g->changed_agents, &a->change_link);
        }
    }
    for (size_t i = 0; i < g->account_count; i++)
        mark(&g->changed_accounts, &g->accounts[i]->change_link);
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
        if (tell_agent(core, g, a, true) < 0)
            return -ENOMEM;
    }
    g->is_stale = false;
    return 0;
}

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
    int r = describe(core, g, l, false, &session);

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
static int tell_places(struct core *core, struct rgroup *g)
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

int kept_sync(struct core *core, struct rgroup *g)
{
    int r = 0;

    if (g->is_stale && g->passing)
        return -EAGAIN;
    if (g->is_stale)
        r = build(core, g);
    if (r == 0)
        r = tell_agents(core, g);
    if (r == 0)
        r = tell_sessions(core, g);
    if (r == 0)
        r = tell_agents(core, g); /* those with sessions that it cannot hold */
    if (r == 0)
        r = tell_places(core, g);
    if (r == 0)
        r = tell_accounts(core, g);
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
        r = describe(core, g, l, false, &session);
    if (r == 0)
        r = tell_accounts(core, g);
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
