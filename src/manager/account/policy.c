/* SPDX-License-Identifier: Apache-2.0 */
/* Keypair policies: what can be given, and what becomes of it. */
#include "manager/account/account.h"

#define UNSET (-1)

struct policy_params {
    const char *name;
    enum maybe unlimited_unspecified;
    const json_t *total_slots, *max_pending_slots;
    int64_t max_session_lifetime_sec, idle_timeout_sec, max_concurrent_sessions;
    int64_t max_concurrent_sftp_sessions, max_containers_per_session, max_pending_sessions,
        max_priority;
};

/* clang-format off */
#define NUMBER(name, most)                                                                         \
    { #name, FIELD_INT, 0, offsetof(struct policy_params, name), 0, most, .doc = "0 = no limit" }
/* clang-format on */
/* clang-format off */
#define CHANGES                                                                                    \
    { "unlimited_unspecified", FIELD_MAYBE, 0, offsetof(struct policy_params, unlimited_unspecified),     \
      .doc = "slots that total_slots does not name are unlimited, else 0" },                       \
    { "total_slots|total_resource_slots", FIELD_OBJECT, 0, offsetof(struct policy_params, total_slots) }, \
    NUMBER(max_session_lifetime_sec, INT64_C(1) << 40), NUMBER(idle_timeout_sec, INT64_C(1) << 40), \
    NUMBER(max_concurrent_sessions, 1000000), NUMBER(max_concurrent_sftp_sessions, 1000000),       \
    NUMBER(max_containers_per_session, 1000000),                                                   \
    NUMBER(max_pending_sessions, 1000000),                                                         \
    { "max_pending_slots|max_pending_session_resource_slots", FIELD_OBJECT, 0,                     \
      offsetof(struct policy_params, max_pending_slots),                                                  \
      .doc = "all that sessions which wait may ask for together" },                                \
    { "max_priority", FIELD_INT, 0, offsetof(struct policy_params, max_priority), 0, 100 }
/* clang-format on */

const struct field account_policy_create[] = {
    { "name", FIELD_STR, FIELD_REQUIRED | FIELD_LINE, offsetof(struct policy_params, name), 1,
      256 },
    CHANGES,
    FIELD_END,
};

const struct field account_policy_change[] = { CHANGES, FIELD_END };

static const void *policy_find(const struct core *core, const char *key)
{
    return core_find_policy(core, key);
}

static const void *policy_find_same(const struct core *core, const void *params)
{
    return core_find_policy(core, ((const struct policy_params *)params)->name);
}

static void policy_fill(struct account_row *row)
{
    static const struct keypair_policy fresh = { .is_active = true,
                                                 .max_concurrent_sftp_sessions = 1,
                                                 .max_pending_sessions = 100000,
                                                 .max_priority = 100 };
    const struct policy_params *params = row->params;
    const struct keypair_policy *old = row->old ? row->old : &fresh;
    struct keypair_policy *policy = &row->event->policy;

    policy->name = account_text(row, params->name, old->name);
    policy->is_active = old->is_active;
    policy->unlimited_unspecified = account_bool(params->unlimited_unspecified,
                                                 old->unlimited_unspecified);
    account_slots(row, "total_slots", params->total_slots, &old->total_slots, &policy->total_slots);
    account_slots(row, "max_pending_slots", params->max_pending_slots, &old->max_pending_slots,
                  &policy->max_pending_slots);
#define CHOOSE(member, type) \
    policy->member = params->member == UNSET ? old->member : (type)params->member
    CHOOSE(max_session_lifetime_sec, int64_t);
    CHOOSE(idle_timeout_sec, int64_t);
    CHOOSE(max_concurrent_sessions, int);
    CHOOSE(max_concurrent_sftp_sessions, int);
    CHOOSE(max_containers_per_session, int);
    CHOOSE(max_pending_sessions, int);
    CHOOSE(max_priority, int);
#undef CHOOSE
}

static void policy_select_row(struct account_row *row, struct store_query *query)
{
    query->name = account_keep(row, row->event->policy.name);
}

static const struct policy_params defaults = { NULL,  MAYBE_UNSET, NULL,  NULL,  UNSET, UNSET,
                                               UNSET, UNSET,       UNSET, UNSET, UNSET };

const struct account_kind account_policy = {
    .object = "keypair resource policy",
    .noun = "policy",
    .purge = PURGE_POLICY,
    .event = EVENT_KEYPAIR_POLICY_SAVED,
    .create = account_policy_create,
    .change = account_policy_change,
    .params_size = sizeof(struct policy_params),
    .defaults = &defaults,
    .list = store_list_policies,
    .find = policy_find,
    .find_same = policy_find_same,
    .fill = policy_fill,
    .select = policy_select_row,
};
