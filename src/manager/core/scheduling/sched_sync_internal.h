/* SPDX-License-Identifier: Apache-2.0 */
/* sched_sync_internal.h - the scheduler that is kept for each resource group, from the inside
 *
 * sched_sync.c has what happens to it (sched_sync.h); the other sched_sync_*.c tell it of what is
 * marked. After an error of theirs (-EINVAL, -EOVERFLOW, -EEXIST) the scheduler is rebuilt.
 */
#ifndef AQ_MANAGER_CORE_SCHED_SYNC_INTERNAL_H
#define AQ_MANAGER_CORE_SCHED_SYNC_INTERNAL_H

#include "manager/core/state/account.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"

/* Into the list, unless it is in one. */
void sched_sync_mark(struct list *to, struct list *link);

/* Does the group's own scheduler know what the session holds? */
static inline bool sched_sync_is_held(const struct resource_group_entry *g,
                                      const struct session_entry *l)
{
    return l->resource_group == g && !l->sched.is_outside;
}

int sched_sync_push_agent(struct core *core, struct resource_group_entry *g, struct agent_entry *a,
                          bool is_new);
int sched_sync_push_agents(struct core *core, struct resource_group_entry *g);
int sched_sync_push_accounts(struct core *core, struct resource_group_entry *g);
int sched_sync_push_sessions(struct core *core, struct resource_group_entry *g);
int sched_sync_push_reservations(struct core *core, struct resource_group_entry *g);

/* The account as the group sees it, made if need be. */
struct resource_group_account *sched_sync_find_account(struct resource_group_entry *g,
                                                       struct account *account);

/* Whose the session is, by the group's rules. */
uint32_t sched_sync_number_owner(struct resource_group_entry *g, const struct session_entry *l);

/* A session as the scheduler is told of it: session_entry_describe(), and whose it is. */
void sched_sync_describe(struct core *core, struct resource_group_entry *g, struct session_entry *l,
                         bool holding, struct sched_session *ret);

#endif
