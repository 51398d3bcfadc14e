/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of a run as rows: see live_tasks.h. */
#include "manager/live/live_tasks.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "manager/live/live_text.h"

#define TASKS_REST_USEC (500 * USEC_PER_MSEC) /* between two readings, at least */
#define TASKS_REST_EACH_USEC 500              /* and for each task: 10,000 are read every 5 s */
#define TASKS_AGAIN_USEC (5 * USEC_PER_SEC)   /* after a failure */

struct live_tasks {
    const struct api *api;
    struct uuid run_id;
    struct live_rows *rows;
    struct pipeline_reading *reading; /* NULL = none is under way */
    uint64_t changed;                 /* pipeline_get_changed() when it was read */
    bool was_read;
    int64_t rest_usec; /* monotonic: not before */
};

struct live_tasks *live_tasks_new(const struct api *api, const struct uuid *run_id,
                                  struct live_rows *rows)
{
    struct live_tasks *tasks = aq_alloc(sizeof(*tasks));

    tasks->api = api;
    tasks->run_id = *run_id;
    tasks->rows = rows;
    live_tasks_tick(tasks);
    return tasks;
}

void live_tasks_free(struct live_tasks *tasks)
{
    if (!tasks)
        return;
    pipeline_reading_cancel(tasks->reading);
    free(tasks);
}

/* A resumed run may have other tasks than before. */
static void live_tasks_remove_others(struct live_tasks *tasks, const struct map *names)
{
    const struct live_row *row;

    for (size_t i = 0; (row = live_rows_get(tasks->rows, i)); i++)
        if (row->fixed && !map_gets(names, row->key))
            live_rows_remove(tasks->rows, row->key);
}

/* pipeline_read_fn */
static void live_tasks_on_read(void *data, int r, const struct uuid *run_id,
                               const struct pipeline_task_row *read, size_t count,
                               const struct aq_error *err)
{
    struct map names = MAP_INIT;
    struct live_tasks *tasks = data;

    (void)run_id;
    (void)err;
    tasks->reading = NULL;
    tasks->rest_usec = clock_monotonic_usec()
                       + AQ_MAX(TASKS_REST_USEC, (int64_t)count * TASKS_REST_EACH_USEC);
    if (r < 0 && r != -ENOENT) { /* -ENOENT: it was removed, as the oldest runs are */
        tasks->was_read = false;
        tasks->rest_usec = clock_monotonic_usec() + TASKS_AGAIN_USEC;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf fixed = STRBUF_INIT;
        AQ_CLEANUP(strbuf_donep) struct strbuf none = STRBUF_INIT;

        live_text_write_task(&read[i], &fixed);
        live_rows_set(tasks->rows, read[i].name, &fixed, &none);
        (void)map_sets(&names, read[i].name, tasks);
    }
    live_tasks_remove_others(tasks, &names);
    map_done(&names);
}

void live_tasks_tick(struct live_tasks *tasks)
{
    const struct folder_viewer anybody = { .is_superadmin = true }; /* who reads was let in */
    uint64_t changed = pipeline_get_changed(tasks->api, &tasks->run_id);
    char id[UUID_TEXT_MAX];

    if (tasks->reading || (tasks->was_read && changed == tasks->changed)
        || clock_monotonic_usec() < tasks->rest_usec)
        return;
    tasks->changed = changed;
    tasks->was_read = true;
    tasks->reading = pipeline_read(tasks->api, &anybody, uuid_format(&tasks->run_id, id), true,
                                   live_tasks_on_read, tasks);
}
