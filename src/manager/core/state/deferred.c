/* SPDX-License-Identifier: Apache-2.0 */
/* deferred.c - callbacks that wait for the next turn of the loop */
#include <stdlib.h>

#include "base/memory.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/state.h"

bool core_is_own_thread(const struct core *core)
{
    uv_thread_t self = uv_thread_self();

    return uv_thread_equal(&self, &core->thread) != 0;
}

void core_schedule_turn(struct core *core)
{
    if (core->is_started && !core->is_stopping)
        (void)uv_idle_start(&core->turn, core->on_turn);
}

/* ---- callbacks ---- */

struct deferred {
    struct list link;
    core_done_fn done;
    void *data;
    int r;
    struct aq_error err;
};

void core_defer(struct core *core, core_done_fn done, void *data, int r, const struct aq_error *err)
{
    struct deferred *d = aq_alloc(sizeof(*d));

    d->done = done;
    d->data = data;
    d->r = r;
    if (err)
        d->err = *err;
    list_add(&core->deferred, &d->link);
    core_schedule_turn(core);
}

void deferred_run(struct core *core)
{
    struct list now;

    if (list_is_empty(&core->deferred))
        return;
    now = core->deferred;
    now.next->prev = now.prev->next = &now;
    list_init(&core->deferred);
    while (!list_is_empty(&now)) {
        struct deferred *d = LIST_ENTRY(now.next, struct deferred, link);

        list_remove(&d->link);
        d->done(d->data, d->r, d->r < 0 ? &d->err : NULL);
        free(d);
    }
}
