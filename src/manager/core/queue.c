/* queue.c - who waits for what
 *
 * A PENDING session waits in its resource group, or is parked: at the group
 * while it waits for a time, another session or an agent, at an account while
 * that account's limits hold it up. The scheduler knows only those that wait,
 * so that what cannot start costs nothing until what it waits for has changed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "manager/core/usage.h"

/* Can a pass be saved: would it end where the last one did, without coming to 'l'? */
static bool is_behind_blocker(const struct live *l)
{
    const struct sched_options *o = &l->rgroup->options;
    const struct live *b = l->rgroup->blocker;

    if (!b || o->sequencer != &sched_fifo || o->retries_to_skip)
        return false;
    if (l->s.priority != b->s.priority)
        return l->s.priority < b->s.priority;
    return l->s.row > b->s.row;
}

void queue_add(struct core *core, struct live *l)
{
    list_add(&l->rgroup->waiting, &l->queue_link);
    l->is_parked = false;
    l->verdict = SCHED_BEHIND;
    l->rgroup->pending++;
    kept_session(l);
    if (l->backoff_usec > clock_monotonic_usec()) {
        l->verdict_usec = clock_monotonic_usec();
        queue_park(core, l, SCHED_TOO_EARLY, NULL);
    } else if (l->places || !is_behind_blocker(l)) {
        l->rgroup->needs_pass = true;
        core_schedule_turn(core);
    } else if (retry_counts_waits(l->rgroup->blocker)) {
        live_touch(core, l->rgroup->blocker);
    }
}

void queue_remove(struct core *core, struct live *l)
{
    if (list_is_empty(&l->queue_link))
        return;
    list_remove(&l->queue_link);
    l->rgroup->pending--;
    if (l->seat == SEAT_WAITING)
        kept_session(l);
    if (l->rgroup->blocker == l)
        queue_room(core, l->rgroup);
}

void queue_park(struct core *core, struct live *l, enum sched_verdict verdict,
                struct account *account)
{
    struct list *to = account ? &account->parked : &l->rgroup->parked;

    (void)core;
    list_remove(&l->queue_link);
    list_add(to, &l->queue_link);
    l->is_parked = true;
    l->verdict = verdict;
    kept_give_up_places(l); /* no room will help it: others may have them */
    kept_session(l);
}

void queue_unpark(struct core *core, struct live *l)
{
    if (list_is_empty(&l->queue_link))
        return;
    queue_remove(core, l);
    queue_add(core, l);
}

void queue_room(struct core *core, struct rgroup *g)
{
    g->blocker = NULL;
    if (g->pending > 0) {
        g->needs_pass = true;
        core_schedule_turn(core);
    }
}

void queue_agent(struct core *core, struct rgroup *g)
{
    LIST_FOREACH(link, &g->parked) {
        struct live *l = LIST_ENTRY(link, struct live, queue_link);

        if (l->verdict == SCHED_NO_AGENT)
            queue_unpark(core, l);
    }
    queue_room(core, g);
}

void queue_account(struct core *core, struct account *account)
{
    struct sched_account limits;
    size_t count = SIZE_MAX;

    account->is_stale = true;
    if (list_is_empty(&account->parked))
        return;
    /* As many as may start by number; how many fit by size, only a pass can tell. */
    if (account_limits(core, account, &limits) && limits.max_sessions > 0)
        count = limits.max_sessions > (int64_t)account->member_count
                    ? (size_t)limits.max_sessions - account->member_count
                    : 0;
    while (count-- > 0 && !list_is_empty(&account->parked))
        queue_unpark(core, LIST_ENTRY(account->parked.next, struct live, queue_link));
}

/* ---- accounts ---- */

#define ACCOUNT_KEY_MAX 256

/* Of an account in the map: its kind and its name, cut to the room. */
static size_t account_key(enum sched_account_kind kind, const char *name,
                          char ret[ACCOUNT_KEY_MAX])
{
    size_t len = strnlen(name, ACCOUNT_KEY_MAX - 1);

    ret[0] = (char)kind;
    memcpy(ret + 1, name, len);
    return 1 + len;
}

struct account *account_get(struct core *core, enum sched_account_kind kind, const char *name)
{
    char key[ACCOUNT_KEY_MAX];
    size_t len = account_key(kind, name, key);
    struct account *account;

    if ((account = map_get(&core->accounts, key, len)))
        return account;
    account = calloc(1, sizeof(*account));
    if (!account || !(account->name = strdup(name)) ||
        map_set(&core->accounts, key, len, account) < 0) {
        account_free(account);
        return NULL;
    }
    account->kind = kind;
    list_init(&account->members);
    list_init(&account->groups);
    list_init(&account->parked);
    return account;
}

void account_free(struct account *account)
{
    if (!account)
        return;
    free(account->name);
    slots_done(&account->used);
    free(account);
}

bool account_limits(const struct core *core, const struct account *account,
                    struct sched_account *ret)
{
    struct sched_account limits = { .kind = account->kind, .name = account->name };
    const struct keypair *keypair;
    const struct keypair_policy *policy = NULL;
    const struct user *user;
    const struct domain *domain;
    const struct group *group;
    struct uuid id;

    switch (account->kind) {
    case SCHED_KEYPAIR:
        keypair = core_find_keypair(core, account->name);
        policy = keypair && keypair->policy ? core_find_policy(core, keypair->policy) : NULL;
        if (!policy)
            return false;
        limits.limits = &policy->total_slots;
        limits.missing_is_zero = !policy->unlimited_unspecified;
        limits.max_sessions = policy->max_concurrent_sessions;
        break;
    case SCHED_USER:
        user = uuid_parse(account->name, &id) == 0 ? core_find_user(core, &id) : NULL;
        limits.limits = user ? &user->total_slots : NULL;
        limits.max_sessions = user ? user->max_concurrent_sessions : 0;
        break;
    case SCHED_GROUP:
        group = uuid_parse(account->name, &id) == 0 ? core_find_group(core, &id) : NULL;
        limits.limits = group ? &group->total_slots : NULL;
        break;
    case SCHED_DOMAIN:
        domain = core_find_domain(core, account->name);
        limits.limits = domain ? &domain->total_slots : NULL;
        break;
    case SCHED_ACCOUNT_KINDS:
        break;
    }
    *ret = limits;
    return (limits.limits && limits.limits->count > 0) || limits.missing_is_zero ||
           limits.max_sessions > 0;
}

int account_usage(struct account *account, const struct slots **ret)
{
    if (account->is_stale) {
        int r = 0;

        slots_done(&account->used);
        account->used = (struct slots){ 0 };
        LIST_FOREACH(link, &account->members) {
            struct live *l = AQ_CONTAINER_OF(link, struct live, account_links[account->kind]);

            for (size_t i = 0; i < l->s.kernel_count && r == 0; i++)
                if (kernel_is_holding(l->s.kernels[i].status))
                    r = slots_add(&account->used, &l->s.kernels[i].requested);
        }
        if (r < 0)
            return r;
        account->is_stale = false;
    }
    *ret = &account->used;
    return 0;
}

int core_get_usage(const struct core *core, const char *access_key, struct slots *ret_held,
                   size_t *ret_sessions)
{
    char key[ACCOUNT_KEY_MAX];
    size_t len = account_key(SCHED_KEYPAIR, access_key, key);
    struct account *account = map_get(&core->accounts, key, len);
    static const struct slots none;
    const struct slots *used = &none;
    int r = account ? account_usage(account, &used) : 0;

    if (r < 0 || (r = slots_copy(ret_held, used)) < 0)
        return r;
    *ret_sessions = account ? account->member_count : 0;
    return 0;
}

/* ---- resource groups ---- */

static struct rgroup *rgroup_new(void)
{
    struct rgroup *g = calloc(1, sizeof(*g));

    if (!g)
        return NULL;
    list_init(&g->waiting);
    list_init(&g->parked);
    list_init(&g->changes);
    list_init(&g->changed_agents);
    list_init(&g->changed_accounts);
    core_read_scheduling(&g->g, &g->scheduling);
    kept_spoil(g);
    return g;
}

void rgroup_free(struct rgroup *g)
{
    if (!g)
        return;
    outlook_done(g);
    kept_done(g);
    usage_free(g->usage);
    resource_group_done(&g->g);
    free(g);
}

struct rgroup *rgroup_find(const struct core *core, const char *name)
{
    return map_gets(&core->rgroups, name);
}

struct rgroup *rgroup_get(struct core *core, const char *name)
{
    struct rgroup *g = rgroup_find(core, name);

    if (g)
        return g;
    g = rgroup_new();
    if (!g || !(g->g.name = strdup(name)) || map_sets(&core->rgroups, name, g) < 0)
        core_die("a resource group");
    return g;
}
