/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for an image on its way, and how that ends. */
#include "agent/image/pull.h"
#include "agent/image/platform.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

#define PULLS_MAX 4 /* at a time; more wait */

/* ---- several names of one image ---- */

static bool pull_follows(const struct pull *pull, const struct pull *of)
{
    return pull->is_following && strcmp(pull->digest, of->digest) == 0;
}

static void pull_on_go_on(uv_timer_t *timer)
{
    pull_fetch_once(timer->data);
}

/* Its directory is free. */
static void pull_let_followers_go_on(const struct pull *pull)
{
    LIST_FOREACH(it, &pull->images->pulls) {
        struct pull *other = LIST_ENTRY(it, struct pull, link);

        if (!pull_follows(other, pull))
            continue;
        other->is_following = false;
        (void)uv_timer_start(&other->timer, pull_on_go_on, 0, 0);
    }
}

void pull_fetch_once(struct pull *pull)
{
    if (map_gets(&pull->images->records, pull->digest)) {
        pull_publish(pull, false);
        return;
    }
    LIST_FOREACH(it, &pull->images->pulls) {
        const struct pull *other = LIST_ENTRY(it, struct pull, link);

        if (other->is_fetching && strcmp(other->digest, pull->digest) == 0) {
            pull->is_following = true;
            return;
        }
    }
    pull->is_fetching = true;
    pull_fetch(pull);
}

/* ---- the end ---- */

static void pull_on_timer_closed(uv_handle_t *handle)
{
    struct pull *pull = handle->data;
    struct images *images = pull->images;

    for (size_t i = 0; pull->waiters && i < pull->manifest.layer_count; i++) {
        if (pull->waiters[i].layer)
            layer_unuse(pull->waiters[i].layer);
        free(pull->waiters[i].blob);
    }
    free(pull->waiters);
    reference_done(&pull->ref);
    manifest_done(&pull->manifest);
    index_choice_done(&pull->choice);
    image_config_done(&pull->config);
    strbuf_done(&pull->manifest_text);
    strbuf_done(&pull->config_text);
    strbuf_done(&pull->report);
    free(pull->directory.path);
    free(pull->directory.layers);
    free(pull->architecture);
    free(pull->key);
    free(pull);
    images_let_go(images);
}

void pull_let_go(struct pull *pull)
{
    if (!pull->is_over || pull->is_working || pull->is_measuring
        || uv_is_closing((uv_handle_t *)&pull->timer))
        return;
    if (pull->is_fetching)
        pull_let_followers_go_on(pull);
    uv_close((uv_handle_t *)&pull->timer, pull_on_timer_closed);
}

static void pull_start_waiting(struct images *images);

static void pull_end(struct pull *pull)
{
    struct images *images = pull->images;

    if (pull->is_over)
        return;
    pull->is_over = true;
    list_remove(&pull->link);
    list_remove(&pull->room.link);
    tool_stop(AQ_TAKE(pull->tool));
    (void)uv_timer_stop(&pull->timer);
    for (size_t i = 0; pull->waiters && i < pull->manifest.layer_count; i++)
        if (pull->waiters[i].is_waiting)
            layer_leave(pull->waiters[i].layer, &pull->waiters[i].waiter);
    pull_let_go(pull);
    pull_start_waiting(images);
}

static struct image_request *pull_next_request(struct pull *pull)
{
    struct image_request *request;

    if (list_is_empty(&pull->requests))
        return NULL;
    request = LIST_ENTRY(pull->requests.next, struct image_request, waiting);
    list_remove(&request->waiting);
    request->pull = NULL;
    return request;
}

void pull_failed(struct pull *pull, const struct aq_error *err)
{
    const struct aq_error copy = *err;
    struct image_request *request;

    log_info("pull of %s failed: %s", pull->ref.text, copy.text);
    pull->is_working = true; /* keeps it until all are told */
    pull_end(pull);
    while ((request = pull_next_request(pull)))
        image_request_failed(request, &copy);
    pull->is_working = false;
    pull_let_go(pull);
}

void pull_ready(struct pull *pull, struct image_record *record)
{
    struct image_request *request;

    record->refs++;
    pull->is_working = true;
    pull_end(pull);
    while ((request = pull_next_request(pull)))
        image_request_ready(request, record);
    image_record_unref(record);
    pull->is_working = false;
    pull_let_go(pull);
}

/* A callback may cancel any request, and end any pull by that. */
static void pull_tell_all(struct pull *pull, const struct image_progress *progress)
{
    AQ_CLEANUP(list_cursor_end) struct list_cursor requests;
    AQ_CLEANUP(list_cursor_end) struct list_cursor pulls;
    struct list *it;

    list_cursor_begin(&requests, &pull->requests);
    list_cursor_begin(&pulls, &pull->images->pulls);
    while ((it = list_cursor_next(&requests))) {
        struct image_request *request = LIST_ENTRY(it, struct image_request, waiting);

        if (request->events->on_progress)
            request->events->on_progress(request->data, progress);
    }
    while ((it = list_cursor_next(&pulls))) {
        struct pull *other = LIST_ENTRY(it, struct pull, link);

        if (!pull_follows(other, pull))
            continue;
        other->failure = pull->failure;
        pull_tell(other, progress->phase, progress->done_bytes);
    }
}

void pull_tell(struct pull *pull, enum image_phase phase, int64_t done)
{
    const struct image_progress progress = {
        .phase = phase,
        .done_bytes = done,
        .total_bytes = pull->manifest.size_bytes,
        .failure = phase == IMAGE_RETRYING ? &pull->failure : NULL,
    };

    if (pull->phase == phase && pull->told_bytes == done)
        return;
    pull->phase = phase;
    pull->told_bytes = done;
    pull_tell_all(pull, &progress);
}

/* ---- work in a thread ---- */

static void pull_on_worked(uv_work_t *work, int status)
{
    struct pull *pull = work->data;
    const struct aq_error err = pull->work_err;

    (void)status; /* nobody cancels it */
    pull->is_working = false;
    if (pull->is_over)
        pull_let_go(pull);
    else
        pull->after(pull, &err);
}

void pull_work(struct pull *pull, uv_work_cb fn,
               void (*after)(struct pull *pull, const struct aq_error *err))
{
    pull->work_err = (struct aq_error){ 0 };
    pull->work.data = pull;
    pull->after = after;
    pull->is_working = true;
    (void)uv_queue_work(pull->images->loop, &pull->work, fn, pull_on_worked);
}

/* ---- joining and leaving ---- */

static void pull_on_start(uv_timer_t *timer)
{
    struct pull *pull = timer->data;
    struct aq_error err = { 0 };

    pull->began_usec = clock_monotonic_usec();
    if (pull_resolve(pull, &err) < 0)
        pull_failed(pull, &err);
}

static void pull_start_waiting(struct images *images)
{
    size_t running = 0;

    if (images->is_closing)
        return;
    LIST_FOREACH(it, &images->pulls) {
        struct pull *pull = LIST_ENTRY(it, struct pull, link);

        if (!pull->is_started && running < PULLS_MAX) {
            pull->is_started = true;
            /* not from within: what cannot start fails from the loop */
            (void)uv_timer_start(&pull->timer, pull_on_start, 0, 0);
        }
        running += pull->is_started;
    }
}

static int pull_new(struct images *images, struct image_request *request, char *key,
                    struct pull **ret, struct aq_error *err)
{
    struct pull *pull = aq_alloc(sizeof(*pull));
    int r = reference_parse(request->ref.text, NULL, &pull->ref, err);

    if (r < 0) {
        free(pull);
        return r;
    }
    pull->images = images;
    pull->architecture = aq_strdup(request->architecture);
    pull->key = key;
    pull->timer.data = pull;
    index_choice_init(&pull->choice, pull->architecture, pull->ref.name, platform_level());
    strbuf_init(&pull->manifest_text);
    strbuf_init(&pull->config_text);
    strbuf_init(&pull->report);
    list_init(&pull->requests);
    list_init(&pull->room.link);
    (void)uv_timer_init(images->loop, &pull->timer);
    list_add(&images->pulls, &pull->link);
    images->open++;
    *ret = pull;
    return 0;
}

int pull_join(struct images *images, struct image_request *request, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *key = image_name_key(request->ref.text, request->architecture);
    struct pull *pull = NULL;
    int r;

    LIST_FOREACH(it, &images->pulls)
        if (strcmp(LIST_ENTRY(it, struct pull, link)->key, key) == 0)
            pull = LIST_ENTRY(it, struct pull, link);
    if (!pull) {
        r = pull_new(images, request, key, &pull, err);
        if (r < 0)
            return r;
        key = NULL;
        pull_start_waiting(images);
    }
    list_add(&pull->requests, &request->waiting);
    request->pull = pull;
    return 0;
}

void pull_leave(struct pull *pull, struct image_request *request)
{
    list_remove(&request->waiting);
    request->pull = NULL;
    if (list_is_empty(&pull->requests))
        pull_end(pull);
}

const char *pull_user(const struct pull *pull)
{
    return LIST_ENTRY(pull->requests.next, struct image_request, waiting)->user;
}

bool pulls_have(const struct images *images, const char *digest)
{
    LIST_FOREACH(it, &images->pulls)
        if (strcmp(LIST_ENTRY(it, struct pull, link)->digest, digest) == 0)
            return true;
    return false;
}
