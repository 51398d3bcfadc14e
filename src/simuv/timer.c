/* SPDX-License-Identifier: Apache-2.0 */
/* timer.c - timers of loops: a heap by time, and in the order of starting */
#include "base/vec.h"
#include "simuv/simuv_internal.h"

#define CHILDREN 4 /* of a node of the heap */

static size_t timer_place(const uv_timer_t *timer)
{
    return (size_t)(uintptr_t)timer->heap_node[0];
}

static void timer_put(struct simuv_loop *loop, size_t i, struct simuv_due due)
{
    loop->timers[i] = due;
    due.timer->heap_node[0] = (void *)(uintptr_t)i;
}

static bool timer_is_before(const struct simuv_due *a, const struct simuv_due *b)
{
    return a->timeout < b->timeout || (a->timeout == b->timeout && a->start_id < b->start_id);
}

static void timer_sift_up(struct simuv_loop *loop, size_t i, struct simuv_due due)
{
    for (size_t parent; i > 0; i = parent) {
        parent = (i - 1) / CHILDREN;
        if (!timer_is_before(&due, &loop->timers[parent]))
            break;
        timer_put(loop, i, loop->timers[parent]);
    }
    timer_put(loop, i, due);
}

static void timer_sift_down(struct simuv_loop *loop, size_t i, struct simuv_due due)
{
    for (;;) {
        size_t first = CHILDREN * i + 1, least = first;

        if (first >= loop->timer_count)
            break;
        for (size_t child = first + 1; child < first + CHILDREN && child < loop->timer_count;
             child++)
            if (timer_is_before(&loop->timers[child], &loop->timers[least]))
                least = child;
        if (!timer_is_before(&loop->timers[least], &due))
            break;
        timer_put(loop, i, loop->timers[least]);
        i = least;
    }
    timer_put(loop, i, due);
}

/* Into the place of a former entry. */
static void timer_replace(struct simuv_loop *loop, size_t i, struct simuv_due due)
{
    if (i > 0 && timer_is_before(&due, &loop->timers[(i - 1) / CHILDREN]))
        timer_sift_up(loop, i, due);
    else
        timer_sift_down(loop, i, due);
}

static void timer_remove(struct simuv_loop *loop, const uv_timer_t *timer)
{
    struct simuv_due last = loop->timers[--loop->timer_count];

    if (last.timer != timer)
        timer_replace(loop, timer_place(timer), last);
}

/* Of an active timer, or one that is about to be. */
static void timer_schedule(struct simuv_loop *loop, uv_timer_t *timer, uint64_t timeout)
{
    struct simuv_due due = { .timer = timer };

    if (__builtin_add_overflow(loop->uv->time, timeout, &timer->timeout))
        timer->timeout = UINT64_MAX;
    timer->start_id = loop->uv->timer_counter++;
    due.timeout = timer->timeout;
    due.start_id = timer->start_id;
    if (timer->flags & SIMUV_ACTIVE) {
        timer_replace(loop, timer_place(timer), due);
        return;
    }
    vec_grow(&loop->timers, &loop->timer_cap, loop->timer_count + 1, sizeof(*loop->timers));
    timer_sift_up(loop, loop->timer_count++, due);
}

int uv_timer_init(uv_loop_t *loop, uv_timer_t *timer)
{
    simuv_handle_init(loop, (uv_handle_t *)timer, UV_TIMER);
    timer->timer_cb = NULL;
    timer->timeout = timer->repeat = timer->start_id = 0;
    return 0;
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb fn, uint64_t timeout, uint64_t repeat)
{
    struct simuv_loop *loop = simuv_loop_of(timer->loop);

    if (uv_is_closing((uv_handle_t *)timer) || !fn)
        return UV_EINVAL;
    timer->timer_cb = fn;
    timer->repeat = repeat;
    timer_schedule(loop, timer, timeout);
    simuv_handle_start((uv_handle_t *)timer);
    simuv_loop_touch(loop);
    return 0;
}

int uv_timer_stop(uv_timer_t *timer)
{
    if (!(timer->flags & SIMUV_ACTIVE))
        return 0;
    timer_remove(simuv_loop_of(timer->loop), timer);
    simuv_handle_stop((uv_handle_t *)timer);
    return 0;
}

int uv_timer_again(uv_timer_t *timer)
{
    if (!timer->timer_cb)
        return UV_EINVAL;
    if (timer->repeat)
        return uv_timer_start(timer, timer->timer_cb, timer->repeat, timer->repeat);
    return 0;
}

void uv_timer_set_repeat(uv_timer_t *timer, uint64_t repeat)
{
    timer->repeat = repeat;
}

uint64_t uv_timer_get_repeat(const uv_timer_t *timer)
{
    return timer->repeat;
}

uint64_t uv_timer_get_due_in(const uv_timer_t *timer)
{
    return timer->loop->time < timer->timeout ? timer->timeout - timer->loop->time : 0;
}

uint64_t simuv_timers_next_msec(const struct simuv_loop *loop)
{
    return loop->timer_count ? AQ_MIN(loop->timers[0].timeout, (uint64_t)INT64_MAX / 1000)
                             : UINT64_MAX;
}

void simuv_timers_run(struct simuv_loop *loop)
{
    while (loop->timer_count && loop->timers[0].timeout <= loop->uv->time) {
        uv_timer_t *timer = loop->timers[0].timer;

        if (timer->repeat)
            timer_schedule(loop, timer, timer->repeat);
        else
            (void)uv_timer_stop(timer);
        timer->timer_cb(timer);
    }
}
