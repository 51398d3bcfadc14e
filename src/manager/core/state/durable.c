/* SPDX-License-Identifier: Apache-2.0 */
/* durable.c - durable objects: which are touched, the heap of wake times, their end */
#include <assert.h>

#include "base/vec.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/durable.h"
#include "manager/core/state/state.h"

#define NOT_IN_HEAP UINT32_MAX

void durable_init(struct durable *d, const struct durable_ops *ops)
{
    *d = (struct durable){ .ops = ops, .heap_index = NOT_IN_HEAP };
    list_init(&d->link);
}

void durable_add(struct core *core, struct durable *d)
{
    assert(!d->is_live);
    vec_grow(&core->durables.heap, &core->durables.heap_cap, core->durables.count + 1,
             sizeof(struct durable *));
    core->durables.count++;
    d->is_live = true;
}

void durable_touch(struct core *core, struct durable *d)
{
    if (d->is_live && list_is_empty(&d->link))
        list_add(&core->durables.touched, &d->link);
    core_schedule_turn(core);
}

struct durable *durable_take_touched(struct core *core)
{
    struct durable *d;

    if (list_is_empty(&core->durables.touched))
        return NULL;
    d = LIST_ENTRY(core->durables.touched.next, struct durable, link);
    list_remove(&d->link);
    return d;
}

/* ---- the heap: earliest wake_usec on top ---- */

static void durable_heap_put(struct core *core, size_t i, struct durable *d)
{
    core->durables.heap[i] = d;
    d->heap_index = (uint32_t)i;
}

static void durable_heap_up(struct core *core, size_t i, struct durable *d)
{
    struct durable **heap = core->durables.heap;

    while (i > 0 && heap[(i - 1) / 2]->wake_usec > d->wake_usec) {
        durable_heap_put(core, i, heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    durable_heap_put(core, i, d);
}

static void durable_heap_down(struct core *core, size_t i, struct durable *d)
{
    struct durable **heap = core->durables.heap;

    for (;;) {
        size_t child = 2 * i + 1;

        if (child >= core->durables.heap_count)
            break;
        if (child + 1 < core->durables.heap_count
            && heap[child + 1]->wake_usec < heap[child]->wake_usec)
            child++;
        if (heap[child]->wake_usec >= d->wake_usec)
            break;
        durable_heap_put(core, i, heap[child]);
        i = child;
    }
    durable_heap_put(core, i, d);
}

void durable_cancel_wake(struct core *core, struct durable *d)
{
    struct durable **heap = core->durables.heap, *last;
    size_t i = d->heap_index;

    d->wake_usec = 0;
    if (i == NOT_IN_HEAP)
        return;
    assert(i < core->durables.heap_count && heap[i] == d);
    d->heap_index = NOT_IN_HEAP;
    last = heap[--core->durables.heap_count];
    if (last == d)
        return;
    if (i > 0 && heap[(i - 1) / 2]->wake_usec > last->wake_usec)
        durable_heap_up(core, i, last);
    else
        durable_heap_down(core, i, last);
}

void durable_wake_at(struct core *core, struct durable *d, int64_t usec)
{
    bool is_new = d->heap_index == NOT_IN_HEAP;

    if (!d->is_live || (!is_new && usec >= d->wake_usec))
        return;
    assert(core->durables.heap_count + is_new <= core->durables.count);
    d->wake_usec = usec;
    durable_heap_up(core, is_new ? core->durables.heap_count++ : d->heap_index, d);
}

int64_t durable_next_wake(const struct core *core)
{
    return core->durables.heap_count > 0 ? core->durables.heap[0]->wake_usec : 0;
}

void durable_pop_due(struct core *core, int64_t now)
{
    while (core->durables.heap_count > 0 && core->durables.heap[0]->wake_usec <= now) {
        struct durable *d = core->durables.heap[0];

        durable_cancel_wake(core, d);
        durable_touch(core, d);
    }
}

/* ---- the end ---- */

void durable_retire(struct core *core, struct durable *d)
{
    assert(d->is_live);
    durable_cancel_wake(core, d);
    core->durables.count--;
    d->is_live = false;
    list_remove(&d->link);
    list_add(&core->durables.retired, &d->link);
    core_schedule_turn(core);
}

void durable_free_retired(struct core *core)
{
    LIST_FOREACH(link, &core->durables.retired) {
        struct durable *d = LIST_ENTRY(link, struct durable, link);

        if (d->is_busy)
            continue;
        list_remove(link);
        d->ops->free(d);
    }
}
