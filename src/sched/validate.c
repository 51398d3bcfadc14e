/* SPDX-License-Identifier: Apache-2.0 */
/* validate.c - rules that keep a session from starting even where it fits, and the use of accounts
 * that they compare with limits
 */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "sched/scheduler_internal.h"

/* ---- what accounts and owners use: as reported, and by the sessions held here ---- */

static void validate_add_usage(const struct sched *s, int64_t *sums, const struct sched_entry *e,
                               int sign)
{
    for (uint32_t i = 0; sums && i < e->req_count; i++)
        for (size_t c = 0; c < s->cluster.columns; c++)
            sums[c] += sign * e->reqs[i]->amounts[c];
}

void entry_count(struct sched *s, const struct sched_entry *e, int sign)
{
    bool has_group = e->more && e->more->group, is_optional = e->unit == SCHED_OPTIONAL_KERNEL;

    assert(sign > 0 || (s->grouped >= has_group && s->optional >= is_optional));
    s->grouped += has_group ? (size_t)sign : 0;
    s->optional += is_optional ? (size_t)sign : 0;
}

void entry_charge(struct sched *s, const struct sched_entry *e, int sign)
{
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++)
        if (e->accounts[kind] < s->account_count) {
            s->accounts[e->accounts[kind]].sessions += e->unit == SCHED_SESSION ? sign : 0;
            assert(s->accounts[e->accounts[kind]].sessions >= 0);
            validate_add_usage(s, s->accounts[e->accounts[kind]].used, e, sign);
        }
    if (e->owner < s->owner_count)
        validate_add_usage(s, s->owners[e->owner].used, e, sign);
    entry_count(s, e, sign);
}

static void validate_fill_row(const struct cluster *c, const struct slots *slots, int64_t absent,
                              int64_t **row)
{
    if (!*row)
        *row = aq_alloc_array(c->width, sizeof(**row));
    cluster_fill_row(c, slots, absent, *row);
}

void sched_set_account(struct sched *s, uint32_t account, const struct sched_account *value)
{
    struct account_state *a;

    if (account >= s->account_count) {
        vec_grow(&s->accounts, &s->account_cap, (size_t)account + 1, sizeof(*s->accounts));
        memset(&s->accounts[s->account_count], 0,
               (account + 1 - s->account_count) * sizeof(*s->accounts));
        s->account_count = (size_t)account + 1;
    }
    a = &s->accounts[account];
    validate_fill_row(&s->cluster, value->limits, value->missing_is_zero ? 0 : AMOUNT_INFINITE,
                      &a->limits);
    validate_fill_row(&s->cluster, value->used, 0, &a->used);
    a->kind = value->kind;
    a->max_sessions = value->max_sessions;
    a->sessions = value->sessions;
    for (size_t i = 0; i < s->entry_count; i++) {
        const struct sched_entry *e = &s->entries[i];

        if (entry_is_holding(e) && e->accounts[value->kind] == account) {
            a->sessions += e->unit == SCHED_SESSION;
            validate_add_usage(s, a->used, e, 1);
        }
    }
}

void sched_set_owner(struct sched *s, uint32_t owner, const struct sched_owner *value)
{
    struct owner_state *o;

    if (owner >= s->owner_count) {
        vec_grow(&s->owners, &s->owner_cap, (size_t)owner + 1, sizeof(*s->owners));
        memset(&s->owners[s->owner_count], 0, (owner + 1 - s->owner_count) * sizeof(*s->owners));
        s->owner_count = (size_t)owner + 1;
    }
    o = &s->owners[owner];
    validate_fill_row(&s->cluster, value->used, 0, &o->used);
    o->factors[0] = value->domain_factor;
    o->factors[1] = value->project_factor;
    o->factors[2] = value->user_factor;
    for (size_t i = 0; i < s->entry_count; i++)
        if (entry_is_holding(&s->entries[i]) && s->entries[i].owner == owner)
            validate_add_usage(s, o->used, &s->entries[i], 1);
}

void sched_set_factors(struct sched *s, uint32_t owner, double domain, double project, double user)
{
    if (owner >= s->owner_count)
        return;
    s->owners[owner].factors[0] = domain;
    s->owners[owner].factors[1] = project;
    s->owners[owner].factors[2] = user;
}

/* ---- rules ---- */

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

/* A session of a booking waits for its start; and does not start if its time limit goes beyond the
 * end, where it would be ended with its work undone.
 */
static enum sched_verdict validate_check_booking(const struct sched *s, const struct sched_entry *e,
                                                 int64_t now_usec, uint32_t *ret_account)
{
    const struct booked *b = booked_find(s, e->booking);

    (void)ret_account;
    if (!b || b->is_over)
        return SCHED_PLACED;
    if (!b->is_active)
        return SCHED_TOO_EARLY;
    return e->own_lifetime_usec > b->ends_usec - now_usec && !e->may_be_cut ? SCHED_CUT
                                                                            : SCHED_PLACED;
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
    if (e->unit != SCHED_SESSION)
        return SCHED_PLACED; /* its session is counted */
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

static const validator_fn validators[] = { validate_check_start, validate_check_booking,
                                           validate_check_dependencies, validate_check_concurrency,
                                           validate_check_quota };

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
