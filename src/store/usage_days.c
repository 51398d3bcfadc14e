/* SPDX-License-Identifier: Apache-2.0 */
/* usage_days.c - what was held on each day, summed while the ledger is read */
#include "store/usage_days.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"
#include "store/list_query.h"

#define DAY_USEC (INT64_C(86400) * USEC_PER_SEC)
#define KEY_MAX 320

enum usage_days_of { USAGE_DAYS_OF_DOMAIN, USAGE_DAYS_OF_PROJECT, USAGE_DAYS_OF_USER };

struct usage_days {
    enum usage_days_of of;
    const struct store_query *query;
    int64_t now_usec;
    struct store_page *page;
    struct map days; /* struct usage_day * by holder and day */
};

static bool usage_days_is_wanted(const struct store_query *q, const struct store_usage *row)
{
    return row->resource_group && row->domain
           && (!q->resource_group || strcmp(q->resource_group, row->resource_group) == 0)
           && (!q->domain || strcmp(q->domain, row->domain) == 0)
           && (!q->project_id || uuid_equals(q->project_id, &row->project))
           && (!q->user_id || uuid_equals(q->user_id, &row->user));
}

static struct usage_day *usage_days_find(struct usage_days *days, const struct store_usage *row,
                                         int64_t day_usec)
{
    char project[UUID_TEXT_MAX] = "", user[UUID_TEXT_MAX] = "", key[KEY_MAX];
    struct arena *arena = &days->page->arena;
    struct usage_day *day;

    if (days->of >= USAGE_DAYS_OF_PROJECT)
        uuid_format(&row->project, project);
    if (days->of == USAGE_DAYS_OF_USER)
        uuid_format(&row->user, user);
    (void)snprintf(key, sizeof(key), "%lld/%s/%s/%s/%s", (long long)day_usec, project, user,
                   row->resource_group, row->domain);
    if ((day = map_gets(&days->days, key)))
        return day;
    day = arena_alloc(arena, sizeof(*day));
    day->resource_group = arena_strdup(arena, row->resource_group);
    day->domain = arena_strdup(arena, row->domain);
    (void)map_sets(&days->days, key, day);
    day->day_usec = day_usec;
    if (*project)
        day->project = row->project;
    if (*user)
        day->user = row->user;
    return day;
}

static void usage_days_add(struct usage_days *days, struct usage_day *day, const char *slot,
                           double amount_sec)
{
    struct usage_day_slot *one = day->slots;

    while (one && one->name != slot)
        one = one->next;
    if (!one) {
        one = arena_alloc(&days->page->arena, sizeof(*one));
        *one = (struct usage_day_slot){ .name = slot, .next = day->slots };
        day->slots = one;
    }
    one->amount_sec += amount_sec;
}

/* store_usage_fn */
static int usage_days_on_row(void *data, const struct store_usage *row)
{
    struct usage_days *days = data;
    int64_t until = row->until_usec ? row->until_usec : days->now_usec, next;

    if (!usage_days_is_wanted(days->query, row))
        return 0;
    until = AQ_MIN(until, days->query->until_usec);
    for (int64_t at = AQ_MAX(row->from_usec, days->query->since_usec); at < until; at = next) {
        int64_t day_usec = at / DAY_USEC * DAY_USEC;

        next = AQ_MIN(day_usec + DAY_USEC, until);
        usage_days_add(days, usage_days_find(days, row, day_usec), row->slot,
                       (double)row->amount * (double)(next - at) / USEC_PER_SEC);
        if (days->days.count > USAGE_DAYS_ROWS_MAX)
            return -E2BIG;
        if (arena_is_over(&days->page->arena))
            return -EMSGSIZE;
    }
    return 0;
}

/* ---- a page of them ---- */

static int usage_days_compare_holders(const struct usage_day *a, const struct usage_day *b)
{
    int r = strcmp(a->resource_group, b->resource_group);

    if (r == 0)
        r = strcmp(a->domain, b->domain);
    if (r == 0)
        r = uuid_compare(&a->project, &b->project);
    return r ? r : uuid_compare(&a->user, &b->user);
}

static int usage_days_compare_earliest(const void *a, const void *b)
{
    const struct usage_day *left = a, *right = b;

    if (left->day_usec != right->day_usec)
        return left->day_usec < right->day_usec ? -1 : 1;
    return usage_days_compare_holders(left, right);
}

static int usage_days_compare_latest(const void *a, const void *b)
{
    const struct usage_day *left = a, *right = b;

    if (left->day_usec != right->day_usec)
        return left->day_usec > right->day_usec ? -1 : 1;
    return usage_days_compare_holders(left, right);
}

static int usage_days_fill(const struct usage_days *days)
{
    struct store_page *page = days->page;
    const struct store_query *q = days->query;
    size_t count = days->days.count, offset = AQ_MIN((size_t)q->offset, count);
    struct usage_day *rows;

    if (!arena_has_room(&page->arena, count + 1, sizeof(*rows)))
        return -EMSGSIZE;
    rows = arena_array(&page->arena, count + 1, sizeof(*rows));
    for (size_t i = 0; i < count; i++)
        rows[i] = *(const struct usage_day *)days->days.entries[i].value;
    if (count)
        qsort(rows, count, sizeof(*rows),
              q->order && q->order[0] != '-' ? usage_days_compare_earliest
                                             : usage_days_compare_latest);
    page->rows = rows + offset;
    page->total = (int64_t)count;
    page->count = AQ_MIN(count - offset, (size_t)q->limit);
    return 0;
}

static int usage_days_list(struct store_tx *tx, enum usage_days_of of, const struct store_query *q,
                           struct store_page **ret, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = aq_alloc(sizeof(*page));
    struct usage_days days = {
        .of = of, .query = q, .now_usec = clock_realtime_usec(), .page = page
    };
    int r;

    page->arena.limit = q->bytes_max;
    r = store_read_usage(tx, q->since_usec, usage_days_on_row, &days, err);
    if (r == 0)
        r = usage_days_fill(&days);
    map_done(&days.days);
    if (r == -EMSGSIZE)
        return list_fail_page(q, err);
    if (r == -E2BIG)
        return aq_fail(err, E2BIG,
                       "there are more than %d days of use: ask for a shorter period, or for "
                       "one resource group",
                       USAGE_DAYS_ROWS_MAX);
    if (r == 0)
        *ret = AQ_TAKE(page);
    return r;
}

int store_list_domain_days(struct store_tx *tx, const struct store_query *q,
                           struct store_page **ret, struct aq_error *err)
{
    return usage_days_list(tx, USAGE_DAYS_OF_DOMAIN, q, ret, err);
}

int store_list_project_days(struct store_tx *tx, const struct store_query *q,
                            struct store_page **ret, struct aq_error *err)
{
    return usage_days_list(tx, USAGE_DAYS_OF_PROJECT, q, ret, err);
}

int store_list_user_days(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                         struct aq_error *err)
{
    return usage_days_list(tx, USAGE_DAYS_OF_USER, q, ret, err);
}
