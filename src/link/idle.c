#include "link/idle.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "http/defer.h"

struct idle {
    struct list link;
    struct idle_pool *pool;
    struct stream *connection;
    struct defer *end;
};

void idle_init(struct idle_pool *pool, uv_loop_t *loop)
{
    pool->loop = loop;
    pool->count = 0;
    list_init(&pool->idles);
}

static struct stream *leave(struct idle *idle)
{
    struct stream *connection = idle->connection;

    defer_cancel(idle->end);
    list_remove(&idle->link);
    idle->pool->count--;
    free(idle);
    return connection;
}

static void drop(struct idle *idle)
{
    stream_close(leave(idle));
}

/* Nothing may be said on an idle connection. */
static void on_read(void *data, const char *bytes, size_t len)
{
    (void)bytes;
    (void)len;
    drop(data);
}

static void on_end(void *data, const struct aq_error *err)
{
    (void)err;
    drop(data);
}

static void on_late(void *data)
{
    struct idle *idle = data;

    idle->end = NULL;
    drop(idle);
}

void idle_add(struct idle_pool *pool, struct stream *connection)
{
    static const struct stream_ops ops = { .on_read = on_read, .on_end = on_end };
    struct idle *idle = pool->count < IDLE_MAX ? calloc(1, sizeof(*idle)) : NULL;

    if (idle)
        idle->end = defer_call(pool->loop, IDLE_MSEC, on_late, idle);
    if (!idle || !idle->end) {
        free(idle);
        stream_close(connection);
        return;
    }
    idle->pool = pool;
    idle->connection = connection;
    list_add(&pool->idles, &idle->link);
    pool->count++;
    stream_set_ops(connection, &ops, idle);
    stream_resume(connection);
}

struct stream *idle_take(struct idle_pool *pool)
{
    return pool->count ? leave(LIST_ENTRY(pool->idles.prev, struct idle, link)) : NULL;
}

void idle_clear(struct idle_pool *pool)
{
    while (pool->count)
        drop(LIST_ENTRY(pool->idles.next, struct idle, link));
}
