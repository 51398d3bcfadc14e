/* SPDX-License-Identifier: Apache-2.0 */
/* tasks.h - work that goes on after its request was answered, and who follows it
 *
 * Backend.AI's clients call it a background task: an id in a reply, by which
 * GET /events/background-task tells how far it is. In memory: a manager that
 * is restarted has none. On the loop's thread.
 *
 * A task belongs to what started it until task_end(), which is called once. A request that follows
 * belongs to the task: it leaves the task before its answer ends, so that followers may come, leave
 * and end others while the task is told.
 */
#ifndef AQ_MANAGER_CALL_TASKS_H
#define AQ_MANAGER_CALL_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/uuid.h"
#include "http/server.h"

#define TASKS_KEPT 200 /* that have ended, for clients that ask late */

struct feature;
struct tasks;
struct task;

/* GET /events/background-task. */
extern const struct feature tasks_feature;

struct tasks *tasks_new(void);
/* With all tasks; nobody is told. NULL is fine. */
void tasks_free(struct tasks *tasks);

/* Begin one that this user and superadmins may follow. It owns 'data' and frees
 * it when it ends.
 */
struct task *task_start(struct tasks *tasks, const struct uuid *user_id, void *data);
const struct uuid *task_id(const struct task *task);

/* How many units it is; 0 unless set. */
void task_set_total(struct task *task, int64_t total);

/* How far it is, and in words. */
void task_update(struct task *task, int64_t current, const char *message);

/* All is done, or it failed and 'message' says why; the task is not the caller's any more. */
void task_end(struct task *task, bool has_failed, const char *message);

/* Answer 'req' with the task's progress as server-sent events until it ends, beginning with how far
 * it is, unless the request's Last-Event-ID says that the client knows. Of one that has ended there
 * is a single event, named after its status. -ENOENT unless the task is the caller's or the caller
 * a superadmin, -EINVAL: then the request is not answered.
 */
int tasks_follow(struct tasks *tasks, const struct uuid *id, struct request *req,
                 struct aq_error *err);

#endif
