/* SPDX-License-Identifier: Apache-2.0 */
/* resource_group_entry.h - a resource group in memory, with its queue and its scheduler */
#ifndef AQ_MANAGER_CORE_STATE_RESOURCE_GROUP_ENTRY_H
#define AQ_MANAGER_CORE_STATE_RESOURCE_GROUP_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "manager/core/lookup.h"
#include "model/accounts.h"

struct account;
struct agent_entry;
struct core;
struct core_scheduling;
struct fair_share;
struct plan;
struct sched;
struct sched_options;
struct session_entry;

struct resource_group_entry {
    struct resource_group g;
    struct core_scheduling scheduling; /* what g says */
    bool is_known;                     /* has a row; else only sessions or agents name it */
    struct list waiting;               /* PENDING sessions to look at */
    struct list parked;                /* PENDING: something else than room must change first */
    size_t pending;                    /* waiting and parked, here or at accounts */
    struct list lacking;               /* running sessions that kernels wait for */
    bool needs_pass;
    struct session_entry *blocker; /* the last pass stopped at it; NULL = none */
    /* sched_sync.c: the scheduler, and what it has not been told yet */
    struct sched *sched;
    bool is_stale;      /* to be rebuilt from memory */
    size_t open_passes; /* passes whose placements are under way */
    size_t reserved;    /* sessions with places */
    struct sched_options options;
    struct list changes; /* session_entry.change_link */
    struct list changed_agents, changed_accounts;
    struct session_entry **members; /* by handle */
    size_t member_cap;
    struct agent_entry **nodes; /* by number */
    size_t node_count, node_cap;
    struct resource_group_account **accounts; /* by number */
    size_t account_count, account_cap;
    struct map owners; /* id of a user; for fair share also project and domain -> number + 1 */
    struct fair_share *fair_share; /* fair_share.c: of fair share; NULL = none */
    struct plan *plan;             /* start_estimate.c: the last one; NULL = none */
};

/* An account as one resource group's scheduler sees it. */
struct resource_group_account {
    struct account *account;
    struct resource_group_entry *resource_group;
    uint32_t number;
    struct list account_link; /* in account.groups */
    struct list change_link;  /* in resource_group_entry.changed_accounts */
};

/* The group of that name; made if it is only named so far. Cannot fail. */
struct resource_group_entry *resource_group_entry_get(struct core *core, const char *name);

/* Its scheduler, its fair share and its plan are freed before. NULL is fine. */
void resource_group_entry_free(struct resource_group_entry *g);

/* The group of that name; NULL = nobody has named it. */
struct resource_group_entry *resource_group_entry_find(const struct core *core, const char *name);

#endif
