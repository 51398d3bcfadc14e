/* SPDX-License-Identifier: Apache-2.0 */
/* live_tasks.h - the tasks of a run as rows, read from the store when the run has changed
 *
 * However many follow a run, its tasks are read once for all of them, and not more often than its
 * size allows. The statuses of their sessions are those of that moment: a reader that needs newer ones
 * follows the sessions. On the loop's thread.
 */
#ifndef AQ_MANAGER_LIVE_LIVE_TASKS_H
#define AQ_MANAGER_LIVE_LIVE_TASKS_H

#include "manager/call/api.h"
#include "manager/live/live_rows.h"

struct live_tasks;

/* 'rows' is borrowed: a row for each task, by its name. */
struct live_tasks *live_tasks_new(const struct api *api, const struct uuid *run_id,
                                  struct live_rows *rows);
void live_tasks_free(struct live_tasks *tasks); /* NULL is fine */

/* Begin to read if the run has changed. */
void live_tasks_tick(struct live_tasks *tasks);

#endif
