/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of sessions that live, found in memory. */
#include "manager/session/session_live.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "manager/core/core.h"
#include "store/query.h"

#define SESSION_LIVE_MAX 16384 /* looked at and sorted in a few milliseconds of one turn */
#define SESSION_LIVE_FEW 128   /* kept in order as they come; more are sorted at the end */

bool session_live_is_known(const struct core *core, const struct store_query *q)
{
    for (int i = 0; i < SESSION_STATUS_COUNT; i++)
        if ((q->statuses & 1u << i) && session_is_terminal((enum session_status)i))
            return false;
    return q->statuses && !q->filter && !q->order && !q->id_count && !q->name && !q->user_id
           && !q->array_id && !q->resource_group && core_count_sessions(core) <= SESSION_LIVE_MAX;
}

static bool session_live_matches(const struct store_query *q, const struct session *s)
{
    return (q->statuses & 1u << s->status) && (!q->domain || strcmp(q->domain, s->domain) == 0)
           && (!q->access_key || strcmp(q->access_key, s->access_key) == 0)
           && (!q->no_elements || uuid_is_nil(&s->array_id))
           && (!q->project_id || uuid_equals(q->project_id, &s->project_id));
}

/* As store_list_sessions() orders them. */
static int session_live_compare(const void *a, const void *b)
{
    const struct session_live *x = a, *y = b;

    if (x->changed_usec != y->changed_usec)
        return x->changed_usec < y->changed_usec ? 1 : -1;
    return (x->row < y->row) - (x->row > y->row);
}

/* Into the first 'max' of the 'count' items, which are in order. Returns how many there are. */
static size_t session_live_insert(struct session_live *items, size_t count, size_t max,
                                  const struct session_live *item)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (session_live_compare(item, &items[middle]) < 0)
            high = middle;
        else
            low = middle + 1;
    }
    if (low == max)
        return count;
    count = AQ_MIN(count + 1, max);
    memmove(&items[low + 1], &items[low], (count - low - 1) * sizeof(*items));
    items[low] = *item;
    return count;
}

void session_live_list(const struct core *core, const struct store_query *q, struct arena *arena,
                       struct session_live **ret, size_t *ret_count, int64_t *ret_total)
{
    size_t all = core_count_sessions(core), count = 0, total = 0, offset;
    size_t max = q->limit ? AQ_MIN((size_t)q->limit + (size_t)q->offset, all) : all;
    bool is_few = max <= SESSION_LIVE_FEW;
    struct session_live *items = arena_array(arena, (is_few ? max : all) + 1, sizeof(*items));

    for (const struct session *s = NULL; (s = core_next_session(core, s));) {
        struct session_live item = { s->status_changed_usec, s->row, s->id };

        if (!session_live_matches(q, s))
            continue;
        if (is_few)
            count = session_live_insert(items, count, max, &item);
        else
            items[count++] = item;
        total++;
    }
    if (!is_few)
        qsort(items, count, sizeof(*items), session_live_compare);
    offset = AQ_MIN((size_t)q->offset, count);
    *ret = items + offset;
    *ret_count = AQ_MIN(max, count) - offset;
    *ret_total = (int64_t)total;
}
