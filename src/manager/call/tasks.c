/* SPDX-License-Identifier: Apache-2.0 */
/* Background tasks, and the server-sent events of their progress in the form of
 * Backend.AI's clients.
 */
#include "manager/call/tasks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/memory.h"
#include "http/defer.h"
#include "http/sse.h"
#include "manager/call/api.h"

#define MESSAGE_MAX 2048
#define LATE_MSEC 500

struct tasks {
    struct list running, ended; /* the newest last */
    struct list late;           /* who follows one that has ended */
    size_t ended_count;
};

struct task {
    struct list link;
    struct tasks *tasks;
    struct uuid id, user_id;
    const char *status; /* "started", "done", "failed" */
    char message[MESSAGE_MAX];
    int64_t current, total;
    int64_t news; /* what was told so far: the id of the last event */
    struct list followers;
    void *data;
};

struct follower { /* in its request's arena */
    struct list link;
    struct request *req;
};

struct late { /* likewise */
    struct list link;
    struct tasks *tasks;
    struct request *req;
    struct uuid id;
    int64_t last;
    struct defer *defer;
};

/* ---- tasks ---- */

struct tasks *tasks_new(void)
{
    struct tasks *tasks = aq_alloc(sizeof(*tasks));

    list_init(&tasks->running);
    list_init(&tasks->ended);
    list_init(&tasks->late);
    return tasks;
}

static void task_free(struct task *task)
{
    LIST_FOREACH(it, &task->followers)
        list_remove(it);
    list_remove(&task->link);
    free(task->data);
    free(task);
}

void tasks_free(struct tasks *tasks)
{
    if (!tasks)
        return;
    LIST_FOREACH(it, &tasks->late)
        defer_cancel(LIST_ENTRY(it, struct late, link)->defer);
    LIST_FOREACH(it, &tasks->running)
        task_free(LIST_ENTRY(it, struct task, link));
    LIST_FOREACH(it, &tasks->ended)
        task_free(LIST_ENTRY(it, struct task, link));
    free(tasks);
}

struct task *task_start(struct tasks *tasks, const struct uuid *user_id, void *data)
{
    struct task *task = aq_alloc(sizeof(*task));

    *task = (struct task){
        .tasks = tasks, .id = uuid_random(), .user_id = *user_id, .status = "started", .data = data
    };
    list_init(&task->followers);
    list_add(&tasks->running, &task->link);
    return task;
}

const struct uuid *task_id(const struct task *task)
{
    return &task->id;
}

void task_set_total(struct task *task, int64_t total)
{
    task->total = total;
}

static struct task *task_find(struct list *list, const struct uuid *id)
{
    LIST_FOREACH(it, list)
        if (uuid_equals(&LIST_ENTRY(it, struct task, link)->id, id))
            return LIST_ENTRY(it, struct task, link);
    return NULL;
}

/* ---- telling ---- */

static void follower_end(struct follower *follower)
{
    list_remove(&follower->link);
    request_set_gone(follower->req, NULL, NULL);
    request_end(follower->req);
}

static int task_send(struct request *req, const char *event, const struct task *task)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    bool is_running = strcmp(task->status, "started") == 0;
    struct jsonw w = jsonw_make(&out);
    char id[24];

    jsonw_object_begin(&w);
    api_write_uuid(&w, "task_id", &task->id);
    if (!is_running)
        jsonw_member_str(&w, "status", task->status);
    jsonw_member_str(&w, "message", task->message);
    jsonw_member_int(&w, "current_progress", task->current);
    jsonw_member_int(&w, "total_progress", task->total);
    jsonw_object_end(&w);
    (void)snprintf(id, sizeof(id), "%lld", (long long)task->news);
    return sse_send(req, event, id, out.data, out.len);
}

static void task_tell(struct task *task, const char *event, bool is_last)
{
    AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;
    struct list *it;

    task->news++;
    /* A follower that ends may end others, and the end of other tasks may free this one. */
    list_cursor_begin(&cursor, &task->followers);
    while ((it = list_cursor_next(&cursor))) {
        struct follower *follower = LIST_ENTRY(it, struct follower, link);
        int r = task_send(follower->req, event, task);

        if (r == 0 && is_last)
            r = sse_send(follower->req, "server_close", NULL, "{}", 2);
        if (r < 0 || is_last) /* gone, or too slow to be kept */
            follower_end(follower);
    }
}

/* The same for who follows late: clients know no other. */
static const char *task_end_event(const struct task *task)
{
    return strcmp(task->status, "done") == 0 ? "bgtask_done" : "bgtask_failed";
}

void task_update(struct task *task, int64_t current, const char *message)
{
    task->current = current;
    (void)snprintf(task->message, sizeof(task->message), "%s", message);
    task_tell(task, "bgtask_updated", false);
}

void task_end(struct task *task, bool has_failed, const char *message)
{
    struct tasks *tasks = task->tasks;

    task->status = has_failed ? "failed" : "done";
    if (!has_failed)
        task->current = task->total;
    (void)snprintf(task->message, sizeof(task->message), "%s", message);
    free(AQ_TAKE(task->data));
    list_remove(&task->link);
    list_add(&tasks->ended, &task->link);
    if (++tasks->ended_count > TASKS_KEPT) {
        task_free(LIST_ENTRY(tasks->ended.next, struct task, link));
        tasks->ended_count--;
    }
    task_tell(task, task_end_event(task), true);
}

/* ---- requests that follow a task ---- */

static void task_on_gone(struct request *req, void *data)
{
    (void)req;
    follower_end(data);
}

/* 'last' is the id of the last event that the client had; -1 = none. */
static void task_follow(struct request *req, struct task *task, int64_t last,
                        struct follower *follower)
{
    *follower = (struct follower){ .req = req };
    list_add(&task->followers, &follower->link);
    sse_begin(req, NULL, NULL);
    request_set_gone(req, task_on_gone, follower);
    if (task->message[0] && task->news != last && task_send(req, "bgtask_updated", task) < 0)
        follower_end(follower);
}

static void task_send_ended(struct request *req, const struct task *task, int64_t last)
{
    if (task->news == last || task_send(req, task_end_event(task), task) == 0)
        (void)sse_send(req, "server_close", NULL, "{}", 2);
    request_end(req);
}

static void task_on_late(void *data)
{
    struct late *late = data;
    struct task *task = task_find(&late->tasks->ended, &late->id);

    list_remove(&late->link);
    if (task)
        task_send_ended(late->req, task, late->last);
    else
        request_end(late->req);
}

/* The event comes after the head of the answer: clients that draw a spinner break if it is there
 * before they have begun.
 */
static void task_follow_ended(struct tasks *tasks, struct request *req, const struct task *task,
                              int64_t last)
{
    struct late *late = arena_alloc(request_get_arena(req), sizeof(*late));

    *late = (struct late){ .tasks = tasks, .req = req, .id = task->id, .last = last };
    late->defer = defer_call(request_get_loop(req), LATE_MSEC, task_on_late, late);
    list_add(&tasks->late, &late->link);
    sse_begin(req, NULL, NULL);
}

static int task_read_last(const struct request *req, int64_t *ret, struct aq_error *err)
{
    const char *text = request_get_header(req, "Last-Event-ID");
    size_t len = text ? strlen(text) : 0;

    *ret = -1;
    if (len == 0)
        return 0;
    if (len > 18 || strspn(text, "0123456789") < len)
        return api_fail_param(err, "Last-Event-ID", "must be the id of an event of this route");
    *ret = strtoll(text, NULL, 10);
    return 0;
}

int tasks_follow(struct tasks *tasks, const struct uuid *id, struct request *req,
                 struct aq_error *err)
{
    struct follower *follower = arena_alloc(request_get_arena(req), sizeof(*follower));
    const struct principal *who = api_principal(req);
    struct task *running = task_find(&tasks->running, id);
    struct task *task = running ? running : task_find(&tasks->ended, id);
    int64_t last;
    int r = task_read_last(req, &last, err);

    if (r < 0)
        return r;
    if (!task || (!uuid_equals(&task->user_id, &who->user_id) && !principal_is_superadmin(who)))
        return problem_no_such(err, "background task",
                               "there is none of yours with this id; those that ended are kept "
                               "until 200 others have, or the manager is restarted");
    if (running)
        task_follow(req, running, last, follower);
    else
        task_follow_ended(tasks, req, task, last);
    return 0;
}
