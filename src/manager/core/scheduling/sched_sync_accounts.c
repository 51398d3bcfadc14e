/* SPDX-License-Identifier: Apache-2.0 */
/* sched_sync_accounts.c - the accounts and owners of a group as its scheduler sees them */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "manager/core/scheduling/fair_share.h"
#include "manager/core/scheduling/sched_sync_internal.h"
#include "manager/core/state/account.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"

#define OWNER_KEY_MAX 160

struct resource_group_account *sched_sync_find_account(struct resource_group_entry *g,
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

int sched_sync_push_accounts(struct core *core, struct resource_group_entry *g)
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

uint32_t sched_sync_number_owner(struct resource_group_entry *g, const struct session_entry *l)
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
