/* SPDX-License-Identifier: Apache-2.0 */
/* deferred.c - callbacks that wait for the next turn of the loop; the end for want of memory */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/state.h"

void core_die(const char *what)
{
    log_error("out of memory: %s; memory would no longer show what is stored. Ending, so that a "
              "restart loads it afresh",
              what);
    _exit(70); /* EX_SOFTWARE */
}

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
    core_oom_fn call; /* or this, of 'other' */
    void (*other)(void);
    void *data;
    int r;
    struct aq_error err;
};

/* So many are kept for answers while memory is short. */
#define DEFERRED_SPARES 32

static struct deferred *deferred_new(struct core *core)
{
    struct deferred *d = calloc(1, sizeof(*d));

    if (d)
        return d;
    if (list_is_empty(&core->deferred_spares))
        core_die("a callback");
    d = LIST_ENTRY(core->deferred_spares.next, struct deferred, link);
    list_remove(&d->link);
    core->deferred_spare_count--;
    return d;
}

static void deferred_free(struct core *core, struct deferred *d)
{
    if (core->deferred_spare_count == DEFERRED_SPARES) {
        free(d);
        return;
    }
    *d = (struct deferred){ .r = 0 };
    list_add(&core->deferred_spares, &d->link);
    core->deferred_spare_count++;
}

int deferred_reserve(struct core *core)
{
    while (core->deferred_spare_count < DEFERRED_SPARES) {
        struct deferred *d = calloc(1, sizeof(*d));

        if (!d)
            return -ENOMEM;
        deferred_free(core, d);
    }
    return 0;
}

void deferred_release(struct core *core)
{
    LIST_FOREACH(link, &core->deferred_spares) {
        list_remove(link);
        free(LIST_ENTRY(link, struct deferred, link));
    }
}

void core_defer(struct core *core, core_done_fn done, void *data, int r, const struct aq_error *err)
{
    struct deferred *d = deferred_new(core);

    d->done = done;
    d->data = data;
    d->r = r;
    if (err)
        d->err = *err;
    list_add(&core->deferred, &d->link);
    core_schedule_turn(core);
}

void core_defer_oom(struct core *core, core_oom_fn call, void (*done)(void), void *data)
{
    struct deferred *d = deferred_new(core);

    d->call = call;
    d->other = done;
    d->data = data;
    d->r = aq_fail_oom(&d->err);
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
        if (d->call)
            d->call(d->other, d->data, d->r, &d->err);
        else
            d->done(d->data, d->r, d->r < 0 ? &d->err : NULL);
        deferred_free(core, d);
    }
}
