/* SPDX-License-Identifier: Apache-2.0 */
/* timer.c - timers of loops: a heap by time, and in the order of starting */
#include "base/vec.h"
#include "simuv/simuv_internal.h"

static size_t timer_place(const uv_timer_t *timer)
{
    return (size_t)(uintptr_t)timer->heap_node[0];
}

static void timer_put(struct simuv_loop *loop, size_t i, uv_timer_t *timer)
{
    loop->timers[i] = timer;
    timer->heap_node[0] = (void *)(uintptr_t)i;
}

static bool timer_is_before(const uv_timer_t *a, const uv_timer_t *b)
{
    return a->timeout < b->timeout || (a->timeout == b->timeout && a->start_id < b->start_id);
}

static void timer_sift_up(struct simuv_loop *loop, size_t i, uv_timer_t *timer)
{
    for (size_t parent; i > 0; i = parent) {
        parent = (i - 1) / 2;
        if (!timer_is_before(timer, loop->timers[parent]))
            break;
        timer_put(loop, i, loop->timers[parent]);
    }
    timer_put(loop, i, timer);
}

static void timer_sift_down(struct simuv_loop *loop, size_t i, uv_timer_t *timer)
{
    for (size_t child; (child = 2 * i + 1) < loop->timer_count; i = child) {
        if (child + 1 < loop->timer_count
            && timer_is_before(loop->timers[child + 1], loop->timers[child]))
            child++;
        if (!timer_is_before(loop->timers[child], timer))
            break;
        timer_put(loop, i, loop->timers[child]);
    }
    timer_put(loop, i, timer);
}

static void timer_add(struct simuv_loop *loop, uv_timer_t *timer)
{
    vec_grow(&loop->timers, &loop->timer_cap, loop->timer_count + 1, sizeof(uv_timer_t *));
    timer_sift_up(loop, loop->timer_count++, timer);
}

static void timer_remove(struct simuv_loop *loop, uv_timer_t *timer)
{
    size_t i = timer_place(timer);
    uv_timer_t *last = loop->timers[--loop->timer_count];

    if (last == timer)
        return;
    if (i > 0 && timer_is_before(last, loop->timers[(i - 1) / 2]))
        timer_sift_up(loop, i, last);
    else
        timer_sift_down(loop, i, last);
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
    if (timer->flags & SIMUV_ACTIVE)
        timer_remove(loop, timer);
    timer->timer_cb = fn;
    if (__builtin_add_overflow(loop->uv->time, timeout, &timer->timeout))
        timer->timeout = UINT64_MAX;
    timer->repeat = repeat;
    timer->start_id = loop->uv->timer_counter++;
    timer_add(loop, timer);
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
    return loop->timer_count ? AQ_MIN(loop->timers[0]->timeout, (uint64_t)INT64_MAX / 1000)
                             : UINT64_MAX;
}

void simuv_timers_run(struct simuv_loop *loop)
{
    while (loop->timer_count && loop->timers[0]->timeout <= loop->uv->time) {
        uv_timer_t *timer = loop->timers[0];

        (void)uv_timer_stop(timer);
        (void)uv_timer_again(timer);
        timer->timer_cb(timer);
    }
}
