/* The blobs of an image that are missing, into a folder of its own. */
#include <errno.h>
#include <string.h>

#include "agent/image/folder.h"
#include "agent/image/pull.h"
#include "base/fault.h"

#define MEASURE_MSEC 200
#define ROOM_MSEC 100
#define ROOM_FACTOR 4 /* of the blobs' size, for what is in them */

/* ---- when the disk is full ---- */

static void on_room(uv_timer_t *timer)
{
    struct pull *pull = timer->data;

    if (!list_is_empty(&pull->images->rubbish))
        return;
    (void)uv_timer_stop(timer);
    pull_fetch(pull);
}

bool pull_make_room(struct pull *pull)
{
    if (pull->made_room
        || gc_collect(pull->images, pull->manifest.size_bytes * ROOM_FACTOR) == 0)
        return false;
    pull->made_room = true;
    (void)uv_timer_start(&pull->timer, on_room, ROOM_MSEC, ROOM_MSEC);
    return true;
}

/* ---- fetching ---- */

static void on_measure(uv_work_t *work)
{
    struct pull *pull = AQ_CONTAINER_OF(work, struct pull, measuring);

    pull->measured_bytes = prepare_measure(&pull->folder);
}

static void on_measured(uv_work_t *work, int status)
{
    struct pull *pull = AQ_CONTAINER_OF(work, struct pull, measuring);

    (void)status;
    pull->is_measuring = false;
    if (pull->is_over)
        pull_let_go(pull);
    else if (pull->phase <= IMAGE_FETCHING)
        pull_tell(pull, IMAGE_FETCHING, pull->measured_bytes);
}

static void on_timer(uv_timer_t *timer)
{
    struct pull *pull = timer->data;

    if (pull->is_measuring)
        return;
    pull->is_measuring = true;
    (void)uv_queue_work(pull->images->loop, &pull->measuring, on_measure, on_measured);
}

static void on_no_output(void *data, const char *bytes, size_t len)
{
    (void)data;
    (void)bytes;
    (void)len;
}

static void on_fetched(void *data, int status, const char *complaint)
{
    struct pull *pull = data;
    struct aq_error err = { 0 };

    pull->tool = NULL;
    (void)uv_timer_stop(&pull->timer);
    AQ_FAULT("agent.image.fetched");
    if (status) {
        if (fetch_failed(&pull->ref, status, complaint, &err) != -ENOSPC || !pull_make_room(pull))
            pull_failed(pull, &err);
        return;
    }
    pull_tell(pull, IMAGE_FETCHING, pull->manifest.size_bytes);
    pull_unpack(pull);
}

static void on_prepare(uv_work_t *work)
{
    struct pull *pull = work->data;

    (void)prepare_folder(&pull->folder, pull->images->settings->image_keep_free,
                         &pull->missing_bytes, &pull->work_err);
}

static void after_prepare(struct pull *pull, const struct aq_error *failure)
{
    static const struct tool_events events = { .on_output = on_no_output, .on_end = on_fetched };
    struct aq_error err = *failure;

    if (!err.code && pull->missing_bytes == 0) {
        pull_unpack(pull);
        return;
    }
    if (!err.code)
        (void)fetch_blobs(pull->images, &pull->ref, pull->digest, pull->folder.path, &events, pull,
                          &pull->tool, &err);
    if (err.code == ENOSPC && pull_make_room(pull))
        return;
    if (err.code) {
        pull_failed(pull, &err);
        return;
    }
    on_timer(&pull->timer);
    (void)uv_timer_start(&pull->timer, on_timer, MEASURE_MSEC, MEASURE_MSEC);
}

void pull_fetch(struct pull *pull)
{
    for (size_t i = 0; i < pull->manifest.layer_count; i++)
        pull->folder.layers[i].is_here =
            ((struct layer *)map_gets(&pull->images->layers, pull->config.diff_ids[i]))->is_here;
    pull->phase = IMAGE_FETCHING;
    pull->told_bytes = -1;
    pull_work(pull, on_prepare, after_prepare);
}

int pull_plan(struct pull *pull, struct aq_error *err)
{
    size_t count = pull->manifest.layer_count;

    pull->waiters = calloc(count, sizeof(*pull->waiters));
    pull->folder.layers = calloc(count, sizeof(*pull->folder.layers));
    pull->folder.layer_count = count;
    pull->folder.path = aq_format("%s/pulls/%s", pull->images->folder, folder_hex(pull->digest));
    if (!pull->waiters || !pull->folder.layers || !pull->folder.path)
        return aq_fail(err, ENOMEM, "image");
    for (size_t i = 0; i < count; i++) {
        const char *diff_id = pull->config.diff_ids[i];
        bool is_again = false;

        for (size_t k = 0; k < i; k++)
            is_again = is_again || strcmp(diff_id, pull->config.diff_ids[k]) == 0;
        (void)strcpy(pull->folder.layers[i].digest, pull->manifest.layers[i].digest);
        pull->folder.layers[i].size_bytes = pull->manifest.layers[i].size_bytes;
        pull->waiters[i].pull = pull;
        if (!is_again && !(pull->waiters[i].layer = layer_use(pull->images, diff_id)))
            return aq_fail(err, ENOMEM, "image");
    }
    return 0;
}
