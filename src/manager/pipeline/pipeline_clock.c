/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_clock.c - one thing that is due after the other */
#include "manager/pipeline/pipeline_clock.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/pipeline/pipeline_fire.h"
#include "manager/pipeline/pipeline_trigger.h"

#define CLOCK_AGAIN_USEC (10 * USEC_PER_SEC)       /* after a failure of the store */
#define CLOCK_BACK_USEC (24 * 3600 * USEC_PER_SEC) /* set back so far, it was wrong before */

struct pipeline_clock {
    struct api *api;
    struct pipeline_runs *runs;
    struct pipeline_fire *fire; /* under way; NULL = none */
    bool is_touched, is_stopped, has_failed;
    int64_t next_usec; /* wall clock; 0 = nothing is due */
    int64_t rest_usec; /* monotonic: not before */
    int64_t seen_usec; /* wall clock at the last tick */
};

static void clock_fail(struct pipeline_clock *clock, const struct aq_error *err)
{
    if (!clock->has_failed)
        log_warning("failed to start pipelines that are due, trying again: %s", err->text);
    clock->has_failed = clock->is_touched = true;
    clock->rest_usec = clock_monotonic_usec() + CLOCK_AGAIN_USEC;
}

static void clock_finish(struct pipeline_clock *clock)
{
    struct pipeline_fire *fire = AQ_TAKE(clock->fire);

    arena_done(&fire->arena);
    free(fire);
}

/* store_done_fn of pipeline_fire_write() */
static void clock_on_fired(void *data, int r, const struct aq_error *err)
{
    struct pipeline_fire *fire = data;
    struct pipeline_clock *clock = fire->clock;

    AQ_FAULT("pipeline.trigger.fired");
    if (r < 0) {
        clock_fail(clock, err);
    } else {
        clock->has_failed = false;
        clock->next_usec = fire->next_usec;
        for (size_t i = 0; i < fire->run_count && !clock->is_stopped; i++)
            pipeline_runs_add(clock->runs, &fire->runs[i]);
    }
    clock_finish(clock);
    pipeline_clock_tick(clock);
}

/* store_done_fn of pipeline_fire_find() and clock_plan() */
static void clock_on_found(void *data, int r, const struct aq_error *err)
{
    struct pipeline_fire *fire = data;
    struct pipeline_clock *clock = fire->clock;

    if (r < 0)
        clock_fail(clock, err);
    else if (!fire->is_found)
        clock->next_usec = fire->next_usec;
    if (r < 0 || !fire->is_found || clock->is_stopped) {
        clock_finish(clock);
        return;
    }
    AQ_FAULT("pipeline.trigger.due");
    pipeline_fire_check(fire);
    store_write(core_store(clock->api->core), pipeline_fire_write, clock_on_fired, fire);
}

/* store_tx_fn */
static int clock_plan(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct pipeline_fire *fire = data;
    int r = pipeline_triggers_plan_all(tx, fire->now_usec, err);

    return r < 0 ? r : pipeline_triggers_next(tx, &fire->next_usec, err);
}

void pipeline_clock_tick(struct pipeline_clock *clock)
{
    struct store *store = core_store(clock->api->core);
    int64_t now = clock_realtime_usec();
    bool is_back = now + CLOCK_BACK_USEC < clock->seen_usec;

    if (clock->fire || clock->is_stopped || clock->api->is_frozen
        || core_restored_usec(clock->api->core) || clock->rest_usec > clock_monotonic_usec())
        return;
    clock->seen_usec = now;
    if (!is_back && !clock->is_touched && (!clock->next_usec || clock->next_usec > now))
        return;
    clock->is_touched = false;
    clock->fire = aq_alloc(sizeof(*clock->fire));
    clock->fire->api = clock->api;
    clock->fire->clock = clock;
    clock->fire->now_usec = now;
    if (is_back) {
        log_info("the clock was set back by more than a day: planning pipelines by the new time");
        store_write(store, clock_plan, clock_on_found, clock->fire);
    } else {
        store_read(store, pipeline_fire_find, clock_on_found, clock->fire);
    }
}

void pipeline_clock_wake(struct pipeline_clock *clock)
{
    clock->is_touched = true;
    pipeline_clock_tick(clock);
}

int pipeline_clock_open(struct api *api, struct pipeline_runs *runs, struct pipeline_clock **ret,
                        struct aq_error *err)
{
    struct pipeline_clock *clock = *ret = aq_alloc(sizeof(*clock));
    struct pipeline_fire fire = { .now_usec = clock_realtime_usec() };
    int r = store_call(core_store(api->core), clock_plan, &fire, err);

    clock->api = api;
    clock->runs = runs;
    clock->next_usec = fire.next_usec;
    return r;
}

void pipeline_clock_stop(struct pipeline_clock *clock)
{
    clock->is_stopped = true;
}

void pipeline_clock_free(struct pipeline_clock *clock)
{
    free(clock);
}
