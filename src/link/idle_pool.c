/* SPDX-License-Identifier: Apache-2.0 */
/* idle_pool.c - the agent's connections that wait for their next stream */
#include "link/idle_pool.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "http/defer.h"

struct idle_connection {
    struct list link;
    struct idle_pool *pool;
    struct stream *connection;
    struct defer *end;
};

void idle_pool_init(struct idle_pool *pool, uv_loop_t *loop)
{
    pool->loop = loop;
    pool->count = 0;
    list_init(&pool->idles);
}

static struct stream *idle_pool_remove(struct idle_connection *idle)
{
    struct stream *connection = idle->connection;

    defer_cancel(idle->end);
    list_remove(&idle->link);
    idle->pool->count--;
    free(idle);
    return connection;
}

static void idle_pool_drop(struct idle_connection *idle)
{
    stream_close(idle_pool_remove(idle));
}

/* Nothing may be said on an idle connection. */
static void idle_pool_on_read(void *data, const char *bytes, size_t len)
{
    (void)bytes;
    (void)len;
    idle_pool_drop(data);
}

static void idle_pool_on_end(void *data, const struct aq_error *err)
{
    (void)err;
    idle_pool_drop(data);
}

static void idle_pool_on_timeout(void *data)
{
    struct idle_connection *idle = data;

    idle->end = NULL;
    idle_pool_drop(idle);
}

void idle_pool_add(struct idle_pool *pool, struct stream *connection)
{
    static const struct stream_ops ops = { .on_read = idle_pool_on_read,
                                           .on_end = idle_pool_on_end };
    struct idle_connection *idle;

    if (pool->count >= IDLE_MAX) {
        stream_close(connection);
        return;
    }
    idle = aq_alloc(sizeof(*idle));
    idle->end = defer_call(pool->loop, IDLE_MSEC, idle_pool_on_timeout, idle);
    idle->pool = pool;
    idle->connection = connection;
    list_add(&pool->idles, &idle->link);
    pool->count++;
    stream_set_ops(connection, &ops, idle);
    stream_resume(connection);
}

struct stream *idle_pool_take(struct idle_pool *pool)
{
    return pool->count
               ? idle_pool_remove(LIST_ENTRY(pool->idles.prev, struct idle_connection, link))
               : NULL;
}

void idle_pool_clear(struct idle_pool *pool)
{
    while (pool->count)
        idle_pool_drop(LIST_ENTRY(pool->idles.next, struct idle_connection, link));
}
