/* SPDX-License-Identifier: Apache-2.0 */
/* Keypair policies as accounts. */
#include "manager/account/account.h"

static const void *policy_find(const struct core *core, const char *key)
{
    return core_find_policy(core, key);
}

static const void *policy_find_same(const struct core *core, const void *params)
{
    return core_find_policy(core, ((const struct keypair_policy *)params)->name);
}

static void policy_select_row(struct account_row *row, struct store_query *query)
{
    query->name = account_keep(row, row->event->policy.name);
}

const struct account_kind account_policy = {
    .object = "keypair resource policy",
    .noun = "policy",
    .purge = PURGE_POLICY,
    .event = EVENT_KEYPAIR_POLICY_SAVED,
    .entity = &keypair_policy_entity,
    .offset = offsetof(struct event, policy),
    .create = keypair_policy_create,
    .change = keypair_policy_change,
    .list = store_list_policies,
    .find = policy_find,
    .find_same = policy_find_same,
    .select = policy_select_row,
};
