/* SPDX-License-Identifier: Apache-2.0 */
/* account_usage.c - what accounts and owners use: as reported, and by the sessions held here */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "sched/scheduler_internal.h"

static void account_usage_add(const struct sched *s, int64_t *sums, const struct sched_entry *e,
                              int sign)
{
    for (uint32_t i = 0; sums && i < e->req_count; i++)
        for (size_t c = 0; c < s->cluster.columns; c++)
            sums[c] += sign * e->reqs[i]->amounts[c];
}

void entry_charge(struct sched *s, const struct sched_entry *e, int sign)
{
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++)
        if (e->accounts[kind] < s->account_count) {
            s->accounts[e->accounts[kind]].sessions += sign;
            assert(s->accounts[e->accounts[kind]].sessions >= 0);
            account_usage_add(s, s->accounts[e->accounts[kind]].used, e, sign);
        }
    if (e->owner < s->owner_count)
        account_usage_add(s, s->owners[e->owner].used, e, sign);
    assert(sign > 0 || s->grouped > 0 || !e->more || !e->more->group);
    s->grouped += e->more && e->more->group ? (size_t)sign : 0;
}

static void account_usage_fill_row(const struct cluster *c, const struct slots *slots,
                                   int64_t absent, int64_t **row)
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
    account_usage_fill_row(&s->cluster, value->limits, value->missing_is_zero ? 0 : AMOUNT_INFINITE,
                           &a->limits);
    account_usage_fill_row(&s->cluster, value->used, 0, &a->used);
    a->kind = value->kind;
    a->max_sessions = value->max_sessions;
    a->sessions = value->sessions;
    for (size_t i = 0; i < s->entry_count; i++) {
        const struct sched_entry *e = &s->entries[i];

        if (entry_is_holding(e) && e->accounts[value->kind] == account) {
            a->sessions++;
            account_usage_add(s, a->used, e, 1);
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
    account_usage_fill_row(&s->cluster, value->used, 0, &o->used);
    o->factors[0] = value->domain_factor;
    o->factors[1] = value->project_factor;
    o->factors[2] = value->user_factor;
    for (size_t i = 0; i < s->entry_count; i++)
        if (entry_is_holding(&s->entries[i]) && s->entries[i].owner == owner)
            account_usage_add(s, o->used, &s->entries[i], 1);
}

void sched_set_factors(struct sched *s, uint32_t owner, double domain, double project, double user)
{
    if (owner >= s->owner_count)
        return;
    s->owners[owner].factors[0] = domain;
    s->owners[owner].factors[1] = project;
    s->owners[owner].factors[2] = user;
}
