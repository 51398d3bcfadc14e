/* SPDX-License-Identifier: Apache-2.0 */
/* watcher.c - idle, prepare, check and async handles */
#include "simuv/simuv_internal.h"

/* The three that are called in each iteration differ in their names only. */
#define WATCHER_DEFINE(name, TYPE)                                                \
    int uv_##name##_init(uv_loop_t *loop, uv_##name##_t *name)                    \
    {                                                                             \
        simuv_handle_init(loop, (uv_handle_t *)name, TYPE);                       \
        list_init((struct list *)(void *)name->queue);                            \
        name->name##_cb = NULL;                                                   \
        return 0;                                                                 \
    }                                                                             \
                                                                                  \
    int uv_##name##_start(uv_##name##_t *name, uv_##name##_cb fn)                 \
    {                                                                             \
        struct simuv_loop *loop = simuv_loop_of(name->loop);                      \
                                                                                  \
        if (name->flags & SIMUV_ACTIVE)                                           \
            return 0;                                                             \
        if (!fn)                                                                  \
            return UV_EINVAL;                                                     \
        name->name##_cb = fn;                                                     \
        /* the latest first, as in libuv */                                       \
        list_add(loop->name##s.next, (struct list *)(void *)name->queue);         \
        simuv_handle_start((uv_handle_t *)name);                                  \
        simuv_loop_touch(loop);                                                   \
        return 0;                                                                 \
    }                                                                             \
                                                                                  \
    int uv_##name##_stop(uv_##name##_t *name)                                     \
    {                                                                             \
        list_remove((struct list *)(void *)name->queue);                          \
        simuv_handle_stop((uv_handle_t *)name);                                   \
        return 0;                                                                 \
    }                                                                             \
                                                                                  \
    void simuv_##name##s_run(struct simuv_loop *loop)                             \
    {                                                                             \
        AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;                    \
        struct list *link;                                                        \
                                                                                  \
        list_cursor_begin(&cursor, &loop->name##s);                               \
        while ((link = list_cursor_next(&cursor))) {                              \
            uv_##name##_t *name = AQ_CONTAINER_OF(link, uv_##name##_t, queue[0]); \
                                                                                  \
            name->name##_cb(name);                                                \
        }                                                                         \
    }

WATCHER_DEFINE(idle, UV_IDLE)
WATCHER_DEFINE(prepare, UV_PREPARE)
WATCHER_DEFINE(check, UV_CHECK)

/* ---- async ---- */

int uv_async_init(uv_loop_t *loop, uv_async_t *async, uv_async_cb fn)
{
    simuv_handle_init(loop, (uv_handle_t *)async, UV_ASYNC);
    list_init((struct list *)(void *)async->queue);
    async->async_cb = fn;
    async->pending = 0;
    simuv_handle_start((uv_handle_t *)async);
    return 0;
}

int uv_async_send(uv_async_t *async)
{
    struct simuv_loop *loop = simuv_loop_of(async->loop);

    if (async->pending || uv_is_closing((uv_handle_t *)async))
        return 0;
    async->pending = 1;
    list_add(&loop->asyncs_sent, (struct list *)(void *)async->queue);
    simuv_loop_touch(loop);
    return 0;
}

void simuv_async_close(uv_async_t *async)
{
    list_remove((struct list *)(void *)async->queue);
    async->pending = 0;
}

void simuv_asyncs_run(struct simuv_loop *loop)
{
    struct list sent, *link;

    list_init(&sent);
    list_move(&loop->asyncs_sent, &sent);
    while ((link = list_take(&sent))) {
        uv_async_t *async = AQ_CONTAINER_OF(link, uv_async_t, queue[0]);

        async->pending = 0;
        if (async->async_cb)
            async->async_cb(async);
    }
}
