/* SPDX-License-Identifier: Apache-2.0 */
/* slices.c - the list of slices, and the clocks of their devices */
#include "gpuslice/slices_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/vec.h"

#define QUIET_NS 200000000    /* nobody uses a device: processes only want to know that we live */
#define LASTING_NS 1000000000 /* so long after its last work a slice's clocks are computed */

/* ---- clocks ---- */

/* Whether the clocks of a slice may have to change. */
static bool slices_is_used(const struct slices *slices, size_t i, int64_t now)
{
    const struct gpu_region_view *view = &slices->views[i];

    if (gpu_region_host_count(slices->items[i]->region))
        return true;
    for (uint32_t d = 0; d < view->limits->device_count; d++)
        if (view->wanted_ns[d] && now - view->wanted_ns[d] < LASTING_NS)
            return true;
    return false;
}

static int64_t slices_tick(struct slices *slices)
{
    int64_t now = gpu_monotonic_ns(), next = QUIET_NS;

    for (size_t i = 0; i < slices->count; i++) {
        slices->views[i].slot_end = gpu_region_host_slot_end(slices->items[i]->region);
        gpu_violation_check_sample(&slices->items[i]->violations, slices->items[i]->region);
    }
    for (size_t i = 0; i < slices->count; i++) {
        struct aq_gpu_limits *limits = gpu_region_host_limits(slices->items[i]->region);

        if (slices_is_used(slices, i, now)) {
            int64_t wanted = gpu_time_share_tick(limits, slices->views, slices->count, i,
                                                 slices->conf.conserving, now);

            next = AQ_MIN(next, wanted);
        } else {
            __atomic_store_n(&limits->alive_ns, now, __ATOMIC_RELAXED);
        }
    }
    return next;
}

static void slices_on_clocks(uv_timer_t *timer)
{
    struct slices *slices = timer->data;

    if (slices->count)
        (void)uv_timer_start(timer, slices_on_clocks,
                             (uint64_t)((slices_tick(slices) + 999999) / 1000000), 0);
}

void slices_wake(struct slices *slices)
{
    (void)uv_timer_start(&slices->clocks, slices_on_clocks, 0, 0);
}

void slices_changed(struct slices *slices, struct slice *slice)
{
    slice->limited = 0;
    slices_wake(slices);
}

/* ---- the list ---- */

void slices_add(struct slices *slices, struct slice *slice)
{
    vec_grow(&slices->items, &slices->item_cap, slices->count + 1, sizeof(*slices->items));
    vec_grow(&slices->views, &slices->view_cap, slices->count + 1, sizeof(*slices->views));
    slice->number = ++slices->last_number;
    slices->items[slices->count] = slice;
    slices->views[slices->count++] = (struct gpu_region_view){
        .limits = gpu_region_host_limits(slice->region),
        .usage = gpu_region_host_usage(slice->region)
    };
    slices_wake(slices);
    watchdog_wake(slices->watchdog);
}

void slices_remove(struct slices *slices, const struct slice *slice)
{
    for (size_t i = 0; i < slices->count; i++)
        if (slices->items[i] == slice) {
            slices->count--;
            slices->items[i] = slices->items[slices->count];
            slices->views[i] = slices->views[slices->count];
            return;
        }
}

void slices_keep_watching(struct slices *slices, bool is_wanted)
{
    slices->is_watched = is_wanted;
    if (is_wanted)
        watchdog_wake(slices->watchdog);
}

/* ---- life ---- */

static void slices_on_closed(uv_handle_t *handle)
{
    struct slices *slices = handle->data;

    free(slices->watch_program);
    free(slices->items);
    free(slices->views);
    free(slices);
}

struct slices *slices_new(const struct slices_conf *conf)
{
    struct slices *slices = aq_alloc(sizeof(*slices));

    slices->conf = *conf;
    slices->watch_program = aq_strdup(conf->watch_program);
    slices->watchdog = watchdog_new(slices);
    if (!slices->watch_program)
        log_warning("GPU limits are not checked: cannot find aliquot-gpu; install it, or set "
                    "gpu.watch to its path");
    (void)uv_timer_init(conf->loop, &slices->clocks);
    slices->clocks.data = slices;
    return slices;
}

void slices_free(struct slices *slices)
{
    if (!slices)
        return;
    watchdog_free(AQ_TAKE(slices->watchdog));
    uv_close((uv_handle_t *)&slices->clocks, slices_on_closed);
}
