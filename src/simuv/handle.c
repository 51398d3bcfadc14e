/* SPDX-License-Identifier: Apache-2.0 */
/* handle.c - what all handles have in common: being active, references, closing */
#include <stdio.h>
#include <stdlib.h>

#include "simuv/simuv_internal.h"

_Noreturn void simuv_cannot(const char *what)
{
    (void)fprintf(stderr, "simuv: the simulation cannot go on: %s\n", what);
    abort();
}

void simuv_handle_init(uv_loop_t *loop, uv_handle_t *handle, uv_handle_type type)
{
    handle->loop = loop;
    handle->type = type;
    handle->flags = SIMUV_REF;
    handle->next_closing = NULL;
    handle->close_cb = NULL;
    list_add((struct list *)(void *)loop->handle_queue,
             (struct list *)(void *)handle->handle_queue);
}

void simuv_handle_start(uv_handle_t *handle)
{
    if (handle->flags & SIMUV_ACTIVE)
        return;
    handle->flags |= SIMUV_ACTIVE;
    if (handle->flags & SIMUV_REF)
        handle->loop->active_handles++;
}

void simuv_handle_stop(uv_handle_t *handle)
{
    if (!(handle->flags & SIMUV_ACTIVE))
        return;
    handle->flags &= ~(unsigned)SIMUV_ACTIVE;
    if (handle->flags & SIMUV_REF)
        handle->loop->active_handles--;
}

void uv_ref(uv_handle_t *handle)
{
    if (handle->flags & SIMUV_REF)
        return;
    handle->flags |= SIMUV_REF;
    if (handle->flags & SIMUV_ACTIVE && !(handle->flags & SIMUV_CLOSING))
        handle->loop->active_handles++;
}

void uv_unref(uv_handle_t *handle)
{
    if (!(handle->flags & SIMUV_REF))
        return;
    handle->flags &= ~(unsigned)SIMUV_REF;
    if (handle->flags & SIMUV_ACTIVE && !(handle->flags & SIMUV_CLOSING))
        handle->loop->active_handles--;
}

int uv_has_ref(const uv_handle_t *handle)
{
    return (handle->flags & SIMUV_REF) != 0;
}

int uv_is_active(const uv_handle_t *handle)
{
    return (handle->flags & SIMUV_ACTIVE) && !(handle->flags & SIMUV_CLOSING);
}

int uv_is_closing(const uv_handle_t *handle)
{
    return (handle->flags & (SIMUV_CLOSING | SIMUV_CLOSED)) != 0;
}

void uv_walk(uv_loop_t *loop, uv_walk_cb fn, void *data)
{
    AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;
    struct list *link;

    list_cursor_begin(&cursor, (struct list *)(void *)loop->handle_queue);
    while ((link = list_cursor_next(&cursor)))
        fn(AQ_CONTAINER_OF((void *)link, uv_handle_t, handle_queue), data);
}

static void handle_end(uv_handle_t *handle)
{
    switch (handle->type) {
    case UV_TIMER:
        (void)uv_timer_stop((uv_timer_t *)handle);
        break;
    case UV_IDLE:
        (void)uv_idle_stop((uv_idle_t *)handle);
        break;
    case UV_PREPARE:
        (void)uv_prepare_stop((uv_prepare_t *)handle);
        break;
    case UV_CHECK:
        (void)uv_check_stop((uv_check_t *)handle);
        break;
    case UV_ASYNC:
        simuv_async_close((uv_async_t *)handle);
        break;
    case UV_TCP:
    case UV_NAMED_PIPE:
        simuv_stream_close((uv_stream_t *)handle);
        break;
    default:
        break;
    }
    simuv_handle_stop(handle);
}

void uv_close(uv_handle_t *handle, uv_close_cb fn)
{
    if (uv_is_closing(handle))
        simuv_cannot("uv_close() of a handle that is being closed");
    handle->close_cb = fn;
    handle_end(handle);
    handle->flags |= SIMUV_CLOSING;
    handle->next_closing = handle->loop->closing_handles;
    handle->loop->closing_handles = handle;
    simuv_loop_touch(simuv_loop_of(handle->loop));
}

/* The last that was closed is the first, as in libuv. */
void simuv_handles_run_closing(struct simuv_loop *loop)
{
    uv_handle_t *handle = loop->uv->closing_handles, *next;

    loop->uv->closing_handles = NULL;
    for (; handle; handle = next) {
        next = handle->next_closing;
        handle->flags |= SIMUV_CLOSED;
        if (handle->type == UV_TCP || handle->type == UV_NAMED_PIPE)
            simuv_stream_finish_close((uv_stream_t *)handle);
        list_remove((struct list *)(void *)handle->handle_queue);
        if (handle->close_cb)
            handle->close_cb(handle);
    }
}
