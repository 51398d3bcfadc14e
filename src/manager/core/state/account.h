/* SPDX-License-Identifier: Apache-2.0 */
/* account.h - keypairs, users, projects and domains as accounts with limits */
#ifndef AQ_MANAGER_CORE_STATE_ACCOUNT_H
#define AQ_MANAGER_CORE_STATE_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "model/slot.h"
#include "sched/scheduler.h"

struct core;

struct account {
    enum sched_account_kind kind;
    char *name;
    struct list members; /* sessions that hold something */
    size_t member_count;
    struct list parked; /* PENDING sessions that this account's limits hold up */
    size_t pending;     /* of a keypair: its PENDING sessions, those under way to the store, too */
    size_t systems;     /* of a keypair: its sessions of type system that live; the same */
    uint32_t subnet_blocks; /* of a user: subnets.h */
    int64_t session_bytes;  /* of a user: session_entry.h, those under way, too */
    struct slots used;      /* what members hold, unless is_stale */
    bool is_stale;
    uint32_t index;              /* in the snapshot under construction */
    struct list resource_groups; /* resource_group_account.account_link */
};

/* The account of that kind and name, made if there is none. */
struct account *account_get(struct core *core, enum sched_account_kind kind, const char *name);

/* A domain is renamed: its account is found by the new name only. */
void account_rename_domain(struct core *core, const char *from, const char *to);

/* Its limits now; false if it has none. */
bool account_limits(const struct core *core, const struct account *account,
                    struct sched_account *ret);

/* The sum of what its members hold; good until one of them changes. 0 or -EOVERFLOW. */
int account_usage(struct account *account, const struct slots **ret);

/* NULL is fine. No session may refer to it. */
void account_free(struct account *account);

#endif
