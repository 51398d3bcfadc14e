/* SPDX-License-Identifier: Apache-2.0 */
/* wait_queue.c - the sessions that wait, sorted: by priority, then by row */
#include <assert.h>
#include <string.h>

#include "base/vec.h"
#include "sched/scheduler_internal.h"

/* < 0: a comes before b. */
int wait_queue_compare(const struct queue_item *a, const struct queue_item *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

/* The first that does not come before 'q'. */
size_t wait_queue_find(const struct sched *s, const struct queue_item *q)
{
    size_t low = 0, high = s->queue_count;

    if (high && wait_queue_compare(&s->queue[high - 1], q) < 0)
        return high;
    while (low < high) {
        size_t middle = (low + high) / 2;

        if (wait_queue_compare(&s->queue[middle], q) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t wait_queue_band_end(const struct sched *s, size_t from)
{
    size_t low = from, high = s->queue_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (s->queue[middle].priority == s->queue[from].priority)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void room_search_add(struct room_search *search, uint32_t handle)
{
    if (search->count == ROOM_SEARCH_MAX)
        *search = (struct room_search){ 0 };
    else if (search->version)
        search->handles[search->count++] = handle;
}

void wait_queue_insert(struct sched *s, uint32_t handle)
{
    struct sched_entry *e = &s->entries[handle];
    struct queue_item q = { e->row, e->priority, handle, e->owner };
    size_t at = wait_queue_find(s, &q);

    assert(at == s->queue_count || wait_queue_compare(&q, &s->queue[at]) < 0); /* rows are unique */
    vec_grow(&s->queue, &s->queue_cap, s->queue_count + 1, sizeof(*s->queue));
    memmove(&s->queue[at + 1], &s->queue[at], (s->queue_count - at) * sizeof(q));
    s->queue[at] = q;
    s->queue_count++;
    e->queued_in_pass = s->pass_count;
    room_search_add(&s->search, handle);
}

void wait_queue_remove(struct sched *s, const struct sched_entry *e)
{
    struct queue_item q = { .row = e->row, .priority = e->priority };
    size_t at = wait_queue_find(s, &q);

    assert(at < s->queue_count && s->queue[at].row == e->row);
    memmove(&s->queue[at], &s->queue[at + 1], (s->queue_count - at - 1) * sizeof(q));
    s->queue_count--;
}
