/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.h - runs of pipelines, for other features: what consoles follow
 *
 * Memory has how far each run is that has not ended, and the store has the tasks. On the loop's
 * thread.
 */
#ifndef AQ_MANAGER_PIPELINE_PIPELINE_H
#define AQ_MANAGER_PIPELINE_PIPELINE_H

#include "manager/call/api.h"
#include "store/pipeline.h"

/* A run that has not ended. */
struct pipeline_live {
    struct uuid id, user_id;
};

/* All of them, in no order: 0, 1, ... until false. */
bool pipeline_list_live(const struct api *api, size_t i, struct pipeline_live *ret);
/* False if it has ended, or there is none. */
bool pipeline_get_live(const struct api *api, const struct uuid *id, struct pipeline_live *ret);

/* Another number after each change of the run or of its tasks; of a run that has ended also after
 * the end of any other.
 */
uint64_t pipeline_get_changed(const struct api *api, const struct uuid *id);

/* The run as lists of runs show it; nothing if it does not live. */
void pipeline_write_live(const struct api *api, const struct uuid *id, struct jsonw *w);

/* ---- tasks, from the store ---- */

void pipeline_write_task(const struct pipeline_task_row *task, struct jsonw *w);

struct pipeline_reading;

/* All tasks by place, borrowed for the call; r = -ENOENT: 'who' sees no such run. */
typedef void pipeline_read_fn(void *data, int r, const struct uuid *run_id,
                              const struct pipeline_task_row *tasks, size_t count,
                              const struct aq_error *err);

/* Read a run by id or a name such as digits.7; without 'with_tasks' only whether 'who' (copied)
 * sees it. 'fn' is called once, later, unless it is cancelled before.
 */
struct pipeline_reading *pipeline_read(const struct api *api, const struct folder_viewer *who,
                                       const char *run, bool with_tasks, pipeline_read_fn *fn,
                                       void *data);
void pipeline_reading_cancel(struct pipeline_reading *reading); /* NULL is fine */

#endif
