/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_runs.c - which runs there are, and when each is examined */
#include "manager/pipeline/pipeline_runs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/pipeline/pipeline_clock.h"
#include "manager/pipeline/pipeline_step.h"

#define RUNS_TICK_MSEC 1000
#define RUNS_SMALL 500     /* nodes: a run of so many is examined at once */
#define RUNS_REST_USEC 100 /* per node between two steps of a larger one, which read all nodes */
#define RUNS_LOOK_USEC (60 * USEC_PER_SEC) /* a run is examined at least so often */

struct pipeline_runs {
    struct api *api;
    struct map by_id;      /* struct pipeline_run */
    struct map by_session; /* likewise, of each session that has not ended */
    struct core_subscriber *subscriber;
    struct pipeline_clock *clock;
    uv_timer_t *timer;
    uint64_t changes;  /* the last number that a change of a run got */
    uint64_t last_end; /* of these, that of the last run that ended */
    bool is_stopped;
};

struct api *pipeline_runs_api(const struct pipeline_runs *runs)
{
    return runs->api;
}

struct pipeline_clock *pipeline_runs_clock(const struct pipeline_runs *runs)
{
    return runs->clock;
}

bool pipeline_runs_are_stopped(const struct pipeline_runs *runs)
{
    return runs->is_stopped;
}

/* ---- a run in memory ---- */

static void pipeline_run_free(struct pipeline_run *run)
{
    pipeline_free(run->file);
    json_decref(run->parameters);
    json_decref(run->options);
    arena_done(&run->arena);
    free(run);
}

void pipeline_runs_replace(struct pipeline_run *run, const struct pipeline_run_row *row)
{
    struct arena *arena = &run->arena;
    struct aq_error err = { 0 };

    pipeline_free(AQ_TAKE(run->file));
    json_decref(run->parameters);
    json_decref(run->options);
    arena_clear(arena, 0);
    run->row = *row;
    run->row.access_key = arena_strdup(arena, row->access_key);
    run->row.name = arena_strdup(arena, row->name);
    run->row.state = arena_strdup(arena, row->state);
    run->row.parameters = arena_strdup(arena, row->parameters);
    run->row.options = arena_strdup(arena, row->options);
    run->row.text = run->row.user_email = run->row.domain =
        NULL; /* the user's, who may get others */
    run->changed = ++run->runs->changes;
    (void)snprintf(run->name, sizeof(run->name), "%s.%lld", row->name, (long long)row->number);
    run->parameters = json_load_string(row->parameters, 0);
    run->options = json_load_string(row->options, 0);
    if (pipeline_parse(row->text, strlen(row->text), &run->file, &err) < 0)
        log_error("failed to read pipeline '%s' of run %s: %s", row->name, run->name, err.text);
}

static void pipeline_run_examine(struct pipeline_run *run)
{
    int64_t now = clock_monotonic_usec();

    if (run->step) {
        run->is_touched = true;
        return;
    }
    if (run->runs->is_stopped)
        return;
    run->is_touched = false;
    if (run->rest_usec > now) {
        run->wake_usec = run->rest_usec;
        return;
    }
    if (run->file && run->file->node_count > RUNS_SMALL)
        run->rest_usec = now + (int64_t)run->file->node_count * RUNS_REST_USEC;
    run->wake_usec = now + RUNS_LOOK_USEC;
    pipeline_step_start(run);
}

static void pipeline_run_forget(struct pipeline_run *run)
{
    struct pipeline_runs *runs = run->runs;

    for (size_t i = runs->by_session.count; i-- > 0;)
        if (runs->by_session.entries[i].value == run)
            (void)map_remove(&runs->by_session, runs->by_session.entries[i].key,
                             sizeof(struct uuid));
    (void)map_remove(&runs->by_id, run->row.id.bytes, sizeof(run->row.id.bytes));
    runs->last_end = ++runs->changes;
    pipeline_run_free(run);
}

void pipeline_runs_step_done(struct pipeline_run *run, bool is_over)
{
    run->step = NULL;
    if (run->is_touched)
        pipeline_run_examine(run);
    else if (is_over)
        pipeline_run_forget(run);
}

void pipeline_runs_watch(struct pipeline_run *run, const struct uuid *session_id)
{
    (void)map_set(&run->runs->by_session, session_id->bytes, sizeof(session_id->bytes), run);
}

/* It is examined at the next tick. */
static struct pipeline_run *pipeline_runs_load(struct pipeline_runs *runs,
                                               const struct pipeline_run_row *row)
{
    struct pipeline_run *run = aq_alloc(sizeof(*run));

    run->runs = runs;
    (void)map_set(&runs->by_id, row->id.bytes, sizeof(row->id.bytes), run);
    pipeline_runs_replace(run, row);
    return run;
}

void pipeline_runs_add(struct pipeline_runs *runs, const struct pipeline_run_row *row)
{
    struct pipeline_run *run = map_get(&runs->by_id, row->id.bytes, sizeof(row->id.bytes));

    pipeline_run_examine(run ? run : pipeline_runs_load(runs, row));
}

struct pipeline_run *pipeline_runs_get(const struct pipeline_runs *runs, size_t i)
{
    return i < runs->by_id.count ? runs->by_id.entries[i].value : NULL;
}

struct pipeline_run *pipeline_runs_find(const struct pipeline_runs *runs, const struct uuid *id)
{
    return map_get(&runs->by_id, id->bytes, sizeof(id->bytes));
}

uint64_t pipeline_runs_last_end(const struct pipeline_runs *runs)
{
    return runs->last_end;
}

/* ---- what happens ---- */

void pipeline_runs_note(struct pipeline_run *run, const struct pipeline_task_row *tasks,
                        size_t count, bool is_cancelled, bool has_changed)
{
    struct pipeline_run_row *row = &run->row;

    if (!has_changed && row->is_cancelled == is_cancelled)
        return;
    row->is_cancelled = is_cancelled;
    row->task_count = (int64_t)count;
    row->succeeded = row->failed = row->running = 0;
    for (size_t i = 0; i < count; i++) {
        row->succeeded += tasks[i].state == PIPELINE_SUCCEEDED;
        row->failed += tasks[i].state == PIPELINE_FAILED;
        row->running += tasks[i].state == PIPELINE_RUNNING;
    }
    run->changed = ++run->runs->changes;
}

static void pipeline_runs_on_event(void *data, const struct core_event *event)
{
    struct pipeline_runs *runs = data;
    const struct uuid *id = &event->session->id;
    struct pipeline_run *run;

    if (event->kernel || !session_is_terminal(event->session->status))
        return;
    run = map_remove(&runs->by_session, id->bytes, sizeof(id->bytes));
    if (run)
        pipeline_run_examine(run);
}

static void pipeline_runs_on_tick(uv_timer_t *timer)
{
    struct pipeline_runs *runs = timer->data;
    int64_t now = clock_monotonic_usec();

    for (size_t i = runs->by_id.count; i-- > 0;) {
        struct pipeline_run *run = runs->by_id.entries[i].value;

        if (!run->step && run->wake_usec <= now)
            pipeline_run_examine(run);
    }
    pipeline_clock_tick(runs->clock);
}

/* ---- begin and end ---- */

/* store_tx_fn; they are examined at the first tick. */
static int pipeline_runs_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const struct folder_viewer who = { .is_superadmin = true };
    struct pipeline_runs *runs = data;
    struct uuid_list live;
    int r = pipeline_run_list_live(tx, &arena, &live, err);

    for (size_t i = 0; r == 0 && i < live.count; i++) {
        struct pipeline_run_row row;
        char id[UUID_TEXT_MAX];

        r = pipeline_run_find(tx, &who, uuid_format(&live.items[i], id), &arena, &row, err);
        if (r == 0)
            (void)pipeline_runs_load(runs, &row);
    }
    return r;
}

int pipeline_runs_open(struct api *api, struct pipeline_runs **ret, struct aq_error *err)
{
    struct pipeline_runs *runs = *ret = aq_alloc(sizeof(*runs));
    int r;

    runs->api = api;
    if ((r = store_call(core_store(api->core), pipeline_runs_read, runs, err)) < 0
        || (r = pipeline_clock_open(api, runs, &runs->clock, err)) < 0)
        return r;
    runs->subscriber = core_subscribe(api->core, NULL, pipeline_runs_on_event, runs);
    runs->timer = aq_alloc(sizeof(*runs->timer));
    (void)uv_timer_init(core_loop(api->core), runs->timer);
    runs->timer->data = runs;
    (void)uv_timer_start(runs->timer, pipeline_runs_on_tick, 0, RUNS_TICK_MSEC);
    return 0;
}

static void pipeline_runs_on_timer_closed(uv_handle_t *handle)
{
    free(handle);
}

void pipeline_runs_stop(struct pipeline_runs *runs)
{
    if (!runs || runs->is_stopped)
        return;
    runs->is_stopped = true;
    if (runs->clock)
        pipeline_clock_stop(runs->clock);
    if (runs->subscriber)
        core_unsubscribe(runs->api->core, AQ_TAKE(runs->subscriber));
    if (runs->timer)
        uv_close((uv_handle_t *)AQ_TAKE(runs->timer), pipeline_runs_on_timer_closed);
}

void pipeline_runs_free(struct pipeline_runs *runs)
{
    if (!runs)
        return;
    pipeline_runs_stop(runs);
    pipeline_clock_free(runs->clock);
    for (size_t i = 0; i < runs->by_id.count; i++)
        pipeline_run_free(runs->by_id.entries[i].value);
    map_done(&runs->by_id);
    map_done(&runs->by_session);
    free(runs);
}
