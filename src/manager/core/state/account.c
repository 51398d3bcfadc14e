/* SPDX-License-Identifier: Apache-2.0 */
/* account.c - keypairs, users, projects and domains as accounts: their limits, and what they hold
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "manager/core/state/account.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define ACCOUNT_KEY_MAX 256

/* Of an account in the map: its kind and its name, cut to the room. */
static size_t account_key(enum sched_account_kind kind, const char *name, char ret[ACCOUNT_KEY_MAX])
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
    account = aq_alloc(sizeof(*account));
    account->name = aq_strdup(name);
    map_set(&core->accounts, key, len, account);
    account->kind = kind;
    list_init(&account->members);
    list_init(&account->resource_groups);
    list_init(&account->parked);
    return account;
}

/* Under the name that it has. */
static void account_put(struct core *core, struct account *account)
{
    char key[ACCOUNT_KEY_MAX];
    size_t len = account_key(account->kind, account->name, key);

    map_set(&core->accounts, key, len, account);
}

/* An account of the new name may be left from a domain that had it before: it has no sessions, but
 * resource groups refer to it, so the two exchange their names.
 */
void account_rename_domain(struct core *core, const char *from, const char *to)
{
    char key[ACCOUNT_KEY_MAX];
    struct account *account = map_remove(&core->accounts, key,
                                         account_key(SCHED_DOMAIN, from, key));
    struct account *other = map_remove(&core->accounts, key, account_key(SCHED_DOMAIN, to, key));
    char *name;

    if (account) {
        name = other ? AQ_TAKE(other->name) : aq_strdup(to);
        if (other)
            other->name = account->name;
        else
            free(account->name);
        account->name = name;
        account_put(core, account);
    }
    if (other)
        account_put(core, other);
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
    const struct project *project;
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
        limits.label = user ? user->email : NULL;
        limits.limits = user ? &user->total_slots : NULL;
        limits.max_sessions = user ? user->max_concurrent_sessions : 0;
        break;
    case SCHED_PROJECT:
        project = uuid_parse(account->name, &id) == 0 ? core_find_project(core, &id) : NULL;
        limits.label = project ? project->name : NULL;
        limits.limits = project ? &project->total_slots : NULL;
        break;
    case SCHED_DOMAIN:
        domain = core_find_domain(core, account->name);
        limits.limits = domain ? &domain->total_slots : NULL;
        break;
    case SCHED_ACCOUNT_KINDS:
        break;
    }
    *ret = limits;
    return (limits.limits && limits.limits->count > 0) || limits.missing_is_zero
           || limits.max_sessions > 0;
}

int account_usage(struct account *account, const struct slots **ret)
{
    if (account->is_stale) {
        int r = 0;

        slots_done(&account->used);
        account->used = (struct slots){ 0 };
        LIST_FOREACH(link, &account->members) {
            struct session_entry *l = AQ_CONTAINER_OF(link, struct session_entry,
                                                      account_links[account->kind]);

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

    if (r < 0)
        return r;
    slots_copy(ret_held, used);
    *ret_sessions = account ? account->member_count : 0;
    return 0;
}
