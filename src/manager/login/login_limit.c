/* SPDX-License-Identifier: Apache-2.0 */
/* How soon the next password may be tried. */
#include "manager/login/login_limit.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"

#define SETS 2048u
#define WAYS 8u
#define FORGET_USEC (3600 * USEC_PER_SEC)
#define KNOWN_USEC (INT64_C(30) * 86400 * USEC_PER_SEC)

enum login_count { COUNT_PAIR, COUNT_ACCOUNT, COUNT_ADDRESS };

/* After 'free' failures the delay is a second; it doubles with every 'step' more. */
static const struct login_delay {
    uint32_t free, step;
    int64_t max_usec;
} delays[] = {
    [COUNT_PAIR] = { 4, 1, 900 * USEC_PER_SEC },
    [COUNT_ACCOUNT] = { 30, 10, 60 * USEC_PER_SEC },
    [COUNT_ADDRESS] = { 50, 10, 300 * USEC_PER_SEC },
};

struct login_entry {
    uint64_t hash;     /* of what is counted; 0 = free */
    int64_t used_usec; /* the last failure, or login */
    int64_t until_usec;
    int64_t good_usec;   /* COUNT_PAIR: the last login; 0 = none */
    int64_t failed_usec; /* COUNT_ACCOUNT: the last failure since the last login */
    uint32_t count;
    uint32_t failed; /* COUNT_ACCOUNT: since the last login */
};

struct login_limits {
    struct login_entry entries[SETS][WAYS];
};

struct login_limits *login_limits_new(void)
{
    return aq_alloc(sizeof(struct login_limits));
}

void login_limits_free(struct login_limits *limits)
{
    free(limits);
}

static uint64_t login_limit_hash(enum login_count what, const struct login_try *t)
{
    uint64_t parts[3] = { what, 0, 0 };

    if (what != COUNT_ADDRESS)
        parts[1] = aq_hash(t->account, strlen(t->account));
    if (what != COUNT_ACCOUNT)
        parts[2] = aq_hash(t->address, strlen(t->address));
    parts[0] = aq_hash(parts, sizeof(parts));
    return parts[0] ? parts[0] : 1;
}

/* Which of a set makes room: a free one, one that nobody logged in by, the oldest. */
static bool login_limit_goes_first(const struct login_entry *a, const struct login_entry *b)
{
    if (!a->hash != !b->hash)
        return !a->hash;
    if (!a->good_usec != !b->good_usec)
        return !a->good_usec;
    return a->used_usec < b->used_usec;
}

static struct login_entry *login_limit_find(struct login_limits *limits, enum login_count what,
                                            const struct login_try *t)
{
    uint64_t hash = login_limit_hash(what, t);
    struct login_entry *set = limits->entries[hash % SETS], *entry = NULL;

    for (size_t i = 0; i < WAYS && !entry; i++)
        if (set[i].hash == hash)
            entry = &set[i];
    if (!entry) {
        entry = set;
        for (size_t i = 1; i < WAYS; i++)
            if (login_limit_goes_first(&set[i], entry))
                entry = &set[i];
        *entry = (struct login_entry){ .hash = hash, .used_usec = t->now_usec };
    }
    if (t->now_usec - entry->used_usec > FORGET_USEC)
        entry->count = 0;
    return entry;
}

static void login_limit_count(struct login_entry *entry, enum login_count what, int64_t now)
{
    const struct login_delay *delay = &delays[what];
    int64_t wait = USEC_PER_SEC;

    entry->used_usec = now;
    if (++entry->count <= delay->free)
        return;
    for (uint32_t n = delay->free + delay->step; n < entry->count && wait < delay->max_usec;
         n += delay->step)
        wait *= 2;
    entry->until_usec = now + AQ_MIN(wait, delay->max_usec);
}

static void login_limit_uncount(struct login_entry *entry)
{
    entry->count -= entry->count > 0;
    entry->until_usec = 0;
}

int64_t login_limits_begin(struct login_limits *limits, struct login_try *attempt)
{
    struct login_entry *pair = login_limit_find(limits, COUNT_PAIR, attempt);
    struct login_entry *account = login_limit_find(limits, COUNT_ACCOUNT, attempt);
    struct login_entry *address = login_limit_find(limits, COUNT_ADDRESS, attempt);
    int64_t now = attempt->now_usec, until = pair->until_usec;

    attempt->is_known = attempt->is_device
                        || (pair->good_usec && now - pair->good_usec < KNOWN_USEC);
    if (!attempt->is_known)
        until = AQ_MAX(until, AQ_MAX(account->until_usec, address->until_usec));
    if (now < until)
        return until - now;
    login_limit_count(pair, COUNT_PAIR, now);
    if (!attempt->is_known) {
        login_limit_count(account, COUNT_ACCOUNT, now);
        login_limit_count(address, COUNT_ADDRESS, now);
    }
    account->failed++;
    account->failed_usec = now;
    return 0;
}

void login_limits_cancel(struct login_limits *limits, const struct login_try *attempt)
{
    struct login_entry *account = login_limit_find(limits, COUNT_ACCOUNT, attempt);

    account->failed -= account->failed > 0;
    login_limit_uncount(login_limit_find(limits, COUNT_PAIR, attempt));
    if (attempt->is_known)
        return;
    login_limit_uncount(account);
    login_limit_uncount(login_limit_find(limits, COUNT_ADDRESS, attempt));
}

void login_limits_succeed(struct login_limits *limits, const struct login_try *attempt,
                          struct login_failures *ret)
{
    struct login_entry *account = login_limit_find(limits, COUNT_ACCOUNT, attempt);
    struct login_entry *pair = login_limit_find(limits, COUNT_PAIR, attempt);

    login_limits_cancel(limits, attempt);
    ret->count = account->failed;
    ret->ago_usec = account->failed ? attempt->now_usec - account->failed_usec : 0;
    account->failed = 0;
    pair->count = 0;
    pair->used_usec = attempt->now_usec;
    pair->good_usec = attempt->now_usec;
}
