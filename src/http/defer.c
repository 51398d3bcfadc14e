/* SPDX-License-Identifier: Apache-2.0 */
/* Call a function from the loop instead of from here. */
#include "http/defer.h"

#include <stdlib.h>

#include "base/memory.h"

struct defer {
    uv_timer_t timer;
    void (*fn)(void *data);
    void *data;
};

static void defer_on_close(uv_handle_t *handle)
{
    free(handle->data);
}

void defer_cancel(struct defer *defer)
{
    if (defer)
        uv_close((uv_handle_t *)&defer->timer, defer_on_close);
}

static void defer_on_timer(uv_timer_t *timer)
{
    struct defer *defer = timer->data;
    void (*fn)(void *) = defer->fn;
    void *data = defer->data;

    defer_cancel(defer);
    fn(data);
}

static void defer_on_start(uv_timer_t *timer)
{
    struct defer *defer = timer->data;

    defer->fn(defer->data);
}

struct defer *defer_new(uv_loop_t *loop, void (*fn)(void *data), void *data)
{
    struct defer *defer = aq_alloc(sizeof(*defer));

    defer->fn = fn;
    defer->data = data;
    (void)uv_timer_init(loop, &defer->timer); /* cannot fail */
    defer->timer.data = defer;
    return defer;
}

void defer_start(struct defer *defer, unsigned msec)
{
    if (!uv_is_active((uv_handle_t *)&defer->timer))
        (void)uv_timer_start(&defer->timer, defer_on_start, msec, 0);
}

void defer_end(struct defer *defer, void (*fn)(void *data), void *data)
{
    defer->fn = fn;
    defer->data = data;
    (void)uv_timer_start(&defer->timer, defer_on_timer, 0, 0);
}

struct defer *defer_call(uv_loop_t *loop, unsigned msec, void (*fn)(void *data), void *data)
{
    struct defer *defer = defer_new(loop, fn, data);

    if (msec)
        uv_update_time(loop);
    (void)uv_timer_start(&defer->timer, defer_on_timer, msec, 0);
    return defer;
}
