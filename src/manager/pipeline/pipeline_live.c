/* SPDX-License-Identifier: Apache-2.0 */
/* Runs as other features follow them: see pipeline.h. */
#include "manager/pipeline/pipeline.h"

#include <stdlib.h>

#include "base/memory.h"
#include "manager/pipeline/pipeline_call.h"
#include "manager/pipeline/pipeline_runs.h"

static bool pipeline_live_fill(const struct pipeline_run *run, struct pipeline_live *ret)
{
    if (run)
        *ret = (struct pipeline_live){ run->row.id, run->row.user_id };
    return run;
}

bool pipeline_list_live(const struct api *api, size_t i, struct pipeline_live *ret)
{
    return pipeline_live_fill(pipeline_runs_get(api->pipeline, i), ret);
}

bool pipeline_get_live(const struct api *api, const struct uuid *id, struct pipeline_live *ret)
{
    return pipeline_live_fill(pipeline_runs_find(api->pipeline, id), ret);
}

uint64_t pipeline_get_changed(const struct api *api, const struct uuid *id)
{
    const struct pipeline_run *run = pipeline_runs_find(api->pipeline, id);

    return run ? run->changed : pipeline_runs_last_end(api->pipeline);
}

void pipeline_write_live(const struct api *api, const struct uuid *id, struct jsonw *w)
{
    const struct pipeline_run *run = pipeline_runs_find(api->pipeline, id);
    const struct user *user;
    struct pipeline_run_row row;

    if (!run)
        return;
    user = core_find_user(api->core, &run->row.user_id);
    row = run->row;
    row.user_email = user ? user->email : NULL;
    pipeline_call_write_run(&row, w);
    jsonw_object_end(w);
}

/* ---- tasks ---- */

struct pipeline_reading {
    pipeline_read_fn *fn; /* NULL = cancelled */
    void *data;
    struct folder_viewer who;
    char *run, *admin_of;
    bool with_tasks;
    struct arena arena; /* what was read */
    struct uuid run_id;
    struct pipeline_task_row *tasks;
    size_t count;
};

static void pipeline_reading_free(struct pipeline_reading *reading)
{
    if (!reading)
        return;
    arena_done(&reading->arena);
    free(reading->run);
    free(reading->admin_of);
    free(reading);
}

AQ_DEFINE_CLEANUP(struct pipeline_reading, pipeline_reading_free)

/* store_tx_fn */
static int pipeline_reading_run(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct pipeline_reading *reading = data;
    struct pipeline_run_row row;
    int r = pipeline_run_find(tx, &reading->who, reading->run, &reading->arena, &row, err);

    if (r < 0)
        return r;
    reading->run_id = row.id;
    return reading->with_tasks ? pipeline_tasks_read(tx, &row.id, &reading->arena, &reading->tasks,
                                                     &reading->count, err)
                               : 0;
}

/* store_done_fn */
static void pipeline_reading_on_done(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(pipeline_reading_freep) struct pipeline_reading *reading = data;

    if (reading->fn)
        reading->fn(reading->data, r, &reading->run_id, reading->tasks, reading->count, err);
}

struct pipeline_reading *pipeline_read(const struct api *api, const struct folder_viewer *who,
                                       const char *run, bool with_tasks, pipeline_read_fn *fn,
                                       void *data)
{
    struct pipeline_reading *reading = aq_alloc(sizeof(*reading));

    reading->fn = fn;
    reading->data = data;
    reading->with_tasks = with_tasks;
    reading->run = aq_strdup(run);
    reading->who = *who;
    reading->who.admin_of = reading->admin_of = aq_strdup(who->admin_of);
    store_read(core_store(api->core), pipeline_reading_run, pipeline_reading_on_done, reading);
    return reading;
}

void pipeline_reading_cancel(struct pipeline_reading *reading)
{
    if (reading)
        reading->fn = NULL;
}
