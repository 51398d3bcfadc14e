/* SPDX-License-Identifier: Apache-2.0 */
/* validate.c - rules that keep a session from starting even where it fits */
#include "sched/scheduler_internal.h"

/* SCHED_PLACED if it has nothing to say. */
typedef enum sched_verdict (*validator_fn)(const struct sched *s, const struct sched_entry *e,
                                           int64_t now_usec, uint32_t *ret_account);

static enum sched_verdict validate_check_start(const struct sched *s, const struct sched_entry *e,
                                               int64_t now_usec, uint32_t *ret_account)
{
    (void)s;
    (void)ret_account;
    return e->type == SESSION_BATCH && now_usec < e->starts_usec ? SCHED_TOO_EARLY : SCHED_PLACED;
}

static enum sched_verdict validate_check_dependencies(const struct sched *s,
                                                      const struct sched_entry *e, int64_t now_usec,
                                                      uint32_t *ret_account)
{
    (void)s;
    (void)now_usec;
    (void)ret_account;
    return e->dependencies;
}

static enum sched_verdict validate_check_concurrency(const struct sched *s,
                                                     const struct sched_entry *e, int64_t now_usec,
                                                     uint32_t *ret_account)
{
    (void)now_usec;
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++) {
        uint32_t account = e->accounts[kind];

        if (account < s->account_count && s->accounts[account].max_sessions > 0
            && s->accounts[account].sessions >= s->accounts[account].max_sessions) {
            *ret_account = account;
            return SCHED_CONCURRENCY;
        }
    }
    return SCHED_PLACED;
}

int64_t account_limit(const struct account_state *a, size_t column)
{
    return a->limits ? a->limits[column] : AMOUNT_INFINITE;
}

int64_t entry_amount(const struct sched_entry *e, size_t column)
{
    int64_t total = 0;

    for (uint32_t i = 0; i < e->req_count; i++)
        if (__builtin_add_overflow(total, e->reqs[i]->amounts[column], &total))
            return AMOUNT_INFINITE;
    return total;
}

/* Would 'e' go over a limit of the account? Only slots that are wanted count. */
static bool validate_is_over(const struct sched *s, const struct account_state *a,
                             const struct sched_entry *e)
{
    for (size_t c = 0; c < s->cluster.columns; c++) {
        int64_t limit = account_limit(a, c), total;

        if (limit == AMOUNT_INFINITE || (total = entry_amount(e, c)) <= 0)
            continue;
        if (total > limit || a->used[c] > limit - total)
            return true;
    }
    return false;
}

static enum sched_verdict validate_check_quota(const struct sched *s, const struct sched_entry *e,
                                               int64_t now_usec, uint32_t *ret_account)
{
    (void)now_usec;
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++)
        if (e->accounts[kind] < s->account_count
            && validate_is_over(s, &s->accounts[e->accounts[kind]], e)) {
            *ret_account = e->accounts[kind];
            return SCHED_QUOTA;
        }
    return SCHED_PLACED;
}

static const validator_fn validators[] = { validate_check_start, validate_check_dependencies,
                                           validate_check_concurrency, validate_check_quota };

enum sched_verdict validate_entry(const struct sched *s, const struct sched_entry *e,
                                  int64_t now_usec, uint32_t *ret_account)
{
    *ret_account = SCHED_NO_ACCOUNT;
    for (size_t i = 0; i < AQ_COUNT(validators); i++) {
        enum sched_verdict verdict = validators[i](s, e, now_usec, ret_account);

        if (verdict != SCHED_PLACED)
            return verdict;
    }
    return SCHED_PLACED;
}
