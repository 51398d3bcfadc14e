/* SPDX-License-Identifier: Apache-2.0 */
/* What has something for its connection: see flushes.h. */
#include "manager/call/flushes.h"

#include <errno.h>

#include "base/memory.h"

#define TURN_FLUSHES 8 /* a write is tens of microseconds */

struct flush_queue {
    struct list waiting; /* flush.link */
    uv_idle_t *idle;     /* while there are any */
};

struct flush_queue *flushes_new(void)
{
    struct flush_queue *flushes = aq_alloc(sizeof(*flushes));

    list_init(&flushes->waiting);
    return flushes;
}

static void flushes_on_closed(uv_handle_t *handle)
{
    free(handle);
}

static void flushes_close_idle(struct flush_queue *flushes)
{
    if (flushes->idle)
        uv_close((uv_handle_t *)flushes->idle, flushes_on_closed);
    flushes->idle = NULL;
}

void flushes_free(struct flush_queue *flushes)
{
    if (!flushes)
        return;
    flushes_close_idle(flushes);
    free(flushes);
}

static void flushes_on_idle(uv_idle_t *idle)
{
    struct flush_queue *flushes = idle->data;

    for (unsigned i = 0; i < TURN_FLUSHES && !list_is_empty(&flushes->waiting); i++) {
        struct flush *flush = LIST_ENTRY(flushes->waiting.next, struct flush, link);

        flush_cancel(flush);
        flush->fn(flush);
    }
    if (list_is_empty(&flushes->waiting))
        flushes_close_idle(flushes);
}

void flushes_add(struct flush_queue *flushes, uv_loop_t *loop, struct flush *flush)
{
    if (flush->waits_in)
        return;
    if (!flushes->idle) {
        flushes->idle = aq_alloc(sizeof(*flushes->idle));
        (void)uv_idle_init(loop, flushes->idle);
        flushes->idle->data = flushes;
        (void)uv_idle_start(flushes->idle, flushes_on_idle);
    }
    flush->waits_in = flushes;
    list_add(&flushes->waiting, &flush->link);
}

void flush_cancel(struct flush *flush)
{
    if (!flush->waits_in)
        return;
    list_remove(&flush->link);
    flush->waits_in = NULL;
}
