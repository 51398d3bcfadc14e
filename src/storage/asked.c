/* SPDX-License-Identifier: Apache-2.0 */
/* asked.c - operations that the manager asks for, from the message to the answer */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "http/defer.h"
#include "storage/ops.h"

#define OPS_MAX 4096 /* under way */
#define PROGRESS_MSEC 500

struct asked {
    struct work work;
    struct list link; /* storage.asked */
    struct usage_hold hold;
    struct storage *storage;
    struct volume *volume;
    struct uuid id, user;
    char *op;
    json_t *args;
    struct strbuf out;
    struct aq_error err;
    struct op_progress progress;
    uint64_t told; /* of its bytes */
    struct defer *timer;
};

static void asked_free(struct asked *a)
{
    struct storage *storage = a->storage;

    list_remove(&a->link);
    usage_release(storage->usage, &a->hold);
    defer_cancel(a->timer);
    free(a->op);
    json_decref(a->args);
    strbuf_done(&a->out);
    free(a);
    storage->op_count--;
    storage_settle(storage);
}

/* Nobody waits for it once the manager has gone. */
static void asked_answer(const struct storage *storage, const struct uuid *id, const char *result,
                         const struct aq_error *err)
{
    struct message msg = { .type = MSG_STORAGE_ANSWER,
                           .storage_answer = { .request_id = *id, .result = result } };

    if (!result) {
        msg.storage_answer.error_code = strerrorname_np(err->code);
        msg.storage_answer.error_kind = err->kind;
        msg.storage_answer.error_field = *err->field ? err->field : NULL;
        msg.storage_answer.error_text = err->text;
    }
    (void)front_send(storage->front, &msg, NULL);
}

/* Of what takes long, how far it is. */
static void asked_on_timer(void *data)
{
    struct asked *a = data;
    struct message msg = { .type = MSG_STORAGE_PROGRESS,
                           .storage_progress = { .request_id = a->id,
                                                 .done = (int64_t)a->progress.done,
                                                 .total = (int64_t)a->progress.total } };

    if (msg.storage_progress.done != (int64_t)a->told)
        (void)front_send(a->storage->front, &msg, NULL);
    a->told = (uint64_t)msg.storage_progress.done;
    a->timer = defer_call(a->storage->loop, PROGRESS_MSEC, asked_on_timer, a);
}

static void asked_run(struct work *work)
{
    struct asked *a = AQ_CONTAINER_OF(work, struct asked, work);

    (void)op_run(a->volume, a->op, a->args, &a->progress, &a->out, &a->err);
}

static void asked_on_done(struct work *work)
{
    struct asked *a = AQ_CONTAINER_OF(work, struct asked, work);
    struct uuid folder;

    if (strcmp(a->op, "purge") == 0 && !a->err.code)
        storage_purge(a->volume);
    if (op_touches(a->op, a->args, &folder))
        storage_touch(a->volume, &folder, &a->user);
    asked_answer(a->storage, &a->id, a->err.code ? NULL : a->out.data, &a->err);
    asked_free(a);
}

static int asked_submit(struct asked *a, struct aq_error *err)
{
    enum work_lane_kind lane = op_lane(a->op, a->args);
    int r = work_submit(&a->volume->lanes[lane], &a->work, &a->user, asked_run, asked_on_done, err);

    if (r == 0 && lane == WORK_COPY)
        a->timer = defer_call(a->storage->loop, PROGRESS_MSEC, asked_on_timer, a);
    return r;
}

static void asked_on_counted(struct usage_hold *hold, const struct aq_error *err)
{
    struct asked *a = AQ_CONTAINER_OF(hold, struct asked, hold);

    if (err)
        a->err = *err;
    if (a->err.code || asked_submit(a, &a->err) < 0) {
        asked_answer(a->storage, &a->id, NULL, &a->err);
        asked_free(a);
    }
}

static bool asked_read_id(const json_t *args, const char *name, struct uuid *ret)
{
    const char *text = json_string_value(json_object_get(args, name));

    return text && uuid_parse(text, ret) == 0;
}

/* What needs to know how much the folder holds waits for that. */
static int asked_start(struct asked *a, struct aq_error *err)
{
    int64_t age_usec = op_count_age(a->op, a->args);
    struct uuid folder;
    int r = 1;

    if (!asked_read_id(a->args, "user", &a->user))
        a->user = (struct uuid){ 0 };
    if (age_usec >= 0 && asked_read_id(a->args, "id", &folder))
        r = usage_hold(a->storage->usage, a->volume, &folder, &a->user, age_usec, &a->hold,
                       asked_on_counted, err);
    return r <= 0 ? r : asked_submit(a, err);
}

static int asked_begin(struct storage *storage, const struct msg_storage_ask *ask,
                       struct aq_error *err)
{
    struct volume *volume = storage_find_volume(storage, ask->volume);
    struct asked *a;
    int r;

    if (!volume)
        return aq_fail(err, ENODEV, "storage '%s' has no volume '%.64s'",
                       storage->settings->common.name, ask->volume);
    if (storage->op_count >= OPS_MAX)
        return aq_fail(err, EAGAIN, "too much is asked of this storage host; try again");
    a = aq_alloc(sizeof(*a));
    storage->op_count++;
    storage->counts.ops++;
    list_add(&storage->asked, &a->link);
    a->storage = storage;
    a->volume = volume;
    a->id = ask->request_id;
    strbuf_init(&a->out);
    a->op = aq_strdup(ask->op);
    a->args = json_load_string(ask->args, 0);
    r = asked_start(a, err);
    if (r < 0)
        asked_free(a);
    return r;
}

void op_cancel(struct storage *storage, const struct uuid *id)
{
    LIST_FOREACH(it, &storage->asked) {
        struct asked *a = LIST_ENTRY(it, struct asked, link);

        if (!uuid_equals(&a->id, id))
            continue;
        if (a->hold.is_waiting || work_withdraw(&a->work))
            asked_free(a);
        return;
    }
}

void op_begin(struct storage *storage, const struct msg_storage_ask *ask)
{
    struct aq_error err = { 0 };

    if (asked_begin(storage, ask, &err) < 0)
        asked_answer(storage, &ask->request_id, NULL, &err);
}
