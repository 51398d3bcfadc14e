#include "http/defer.h"

#include <stdlib.h>

struct defer {
    uv_timer_t timer;
    void (*fn)(void *data);
    void *data;
};

static void on_close(uv_handle_t *handle)
{
    free(handle->data);
}

void defer_cancel(struct defer *defer)
{
    if (defer)
        uv_close((uv_handle_t *)&defer->timer, on_close);
}

static void on_timer(uv_timer_t *timer)
{
    struct defer *defer = timer->data;
    void (*fn)(void *) = defer->fn;
    void *data = defer->data;

    defer_cancel(defer);
    fn(data);
}

struct defer *defer_call(uv_loop_t *loop, unsigned msec, void (*fn)(void *data), void *data)
{
    struct defer *defer = malloc(sizeof(*defer));

    if (!defer)
        return NULL;
    defer->fn = fn;
    defer->data = data;
    (void)uv_timer_init(loop, &defer->timer); /* cannot fail */
    defer->timer.data = defer;
    if (msec)
        uv_update_time(loop);
    (void)uv_timer_start(&defer->timer, on_timer, msec, 0);
    return defer;
}
