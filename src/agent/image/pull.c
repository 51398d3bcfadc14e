/* One image on its way: ask what it is, fetch what is missing, unpack, publish. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/image/folder.h"
#include "agent/image/prepare.h"
#include "agent/image/publish.h"
#include "agent/image/store.h"
#include "base/fault.h"
#include "base/log.h"

#define PULLS_MAX 4          /* at a time; more wait */
#define MEASURE_MSEC 200
#define TRIES_MAX 2          /* of fetching, if a blob turns out to be wrong */
#define ROOM_MSEC 100
#define ROOM_FACTOR 4        /* of the blobs' size, for what is in them */

struct pull {
    struct list link;
    struct images *images;
    struct list requests;
    struct reference ref;
    char *architecture;
    char *key;               /* of the name */
    enum image_phase phase;
    bool is_started, is_asking_config, is_over;
    struct tool *tool;
    struct strbuf manifest_text, config_text;
    char digest[DIGEST_TEXT_MAX], asked[DIGEST_TEXT_MAX]; /* asked: "" = the name */
    struct manifest manifest;
    struct image_config config;
    struct pull_folder folder;
    struct pull_waiter *waiters; /* for each layer */
    size_t waiting;              /* of them, to come */
    struct aq_error err;         /* of a layer */
    int tries;
    bool made_room;
    int64_t done_bytes, told_bytes, missing_bytes;
    /* in the worker thread */
    uv_work_t work;
    bool is_working;
    void (*after)(struct pull *pull, const struct aq_error *err);
    struct aq_error work_err;
    struct publication publication;
    uv_timer_t timer;            /* while blobs are fetched */
    uv_work_t measuring;
    bool is_measuring;
    int64_t measured_bytes;
};

struct pull_waiter {
    struct layer_waiter waiter;
    struct pull *pull;
    struct layer *layer; /* NULL = the layer is there more than once */
    bool is_waiting;
};

/* ---- the end ---- */

static void on_timer_closed(uv_handle_t *handle)
{
    struct pull *pull = handle->data;
    struct images *images = pull->images;

    for (size_t i = 0; pull->waiters && i < pull->manifest.layer_count; i++)
        if (pull->waiters[i].layer)
            layer_unuse(pull->waiters[i].layer);
    free(pull->waiters);
    reference_done(&pull->ref);
    manifest_done(&pull->manifest);
    image_config_done(&pull->config);
    strbuf_done(&pull->manifest_text);
    strbuf_done(&pull->config_text);
    free(pull->folder.path);
    free(pull->folder.layers);
    free(pull->architecture);
    free(pull->key);
    free(pull);
    images_let_go(images);
}

/* Frees the pull when its threads have ended. */
static void pull_let_go(struct pull *pull)
{
    if (pull->is_over && !pull->is_working && !pull->is_measuring
        && !uv_is_closing((uv_handle_t *)&pull->timer))
        uv_close((uv_handle_t *)&pull->timer, on_timer_closed);
}

static void pull_end(struct pull *pull)
{
    struct images *images = pull->images;

    if (pull->is_over)
        return;
    pull->is_over = true;
    list_remove(&pull->link);
    tool_stop(AQ_TAKE(pull->tool));
    (void)uv_timer_stop(&pull->timer);
    for (size_t i = 0; pull->waiters && i < pull->manifest.layer_count; i++)
        if (pull->waiters[i].is_waiting)
            layer_leave(pull->waiters[i].layer, &pull->waiters[i].waiter);
    pull_let_go(pull);
    pulls_start_waiting(images);
}

static struct image_request *next_request(struct pull *pull)
{
    struct image_request *request;

    if (list_is_empty(&pull->requests))
        return NULL;
    request = LIST_ENTRY(pull->requests.next, struct image_request, waiting);
    list_remove(&request->waiting);
    request->pull = NULL;
    return request;
}

static void pull_failed(struct pull *pull, const struct aq_error *err)
{
    const struct aq_error copy = *err;
    struct image_request *request;

    log_info("pull of %s failed: %s", pull->ref.text, copy.text);
    pull->is_working = true; /* keeps it until all are told */
    pull_end(pull);
    while ((request = next_request(pull)))
        request_failed(request, &copy);
    pull->is_working = false;
    pull_let_go(pull);
}

static void pull_ready(struct pull *pull, struct record *record)
{
    struct image_request *request;

    record->refs++;
    pull->is_working = true;
    pull_end(pull);
    while ((request = next_request(pull)))
        request_ready(request, record);
    record_unref(record);
    pull->is_working = false;
    pull_let_go(pull);
}

static void tell_progress(struct pull *pull, enum image_phase phase, int64_t done)
{
    const struct image_progress progress = {
        .phase = phase, .done_bytes = done, .total_bytes = pull->manifest.size_bytes,
    };

    if (pull->phase == phase && pull->told_bytes == done)
        return;
    pull->phase = phase;
    pull->told_bytes = done;
    LIST_FOREACH(it, &pull->requests) {
        struct image_request *request = LIST_ENTRY(it, struct image_request, waiting);

        if (request->events->on_progress)
            request->events->on_progress(request->data, &progress);
    }
}

/* ---- work in a thread ---- */

static void on_worked(uv_work_t *work, int status)
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

static void start_work(struct pull *pull, uv_work_cb fn,
                       void (*after)(struct pull *pull, const struct aq_error *err))
{
    pull->work_err = (struct aq_error){ 0 };
    pull->work.data = pull;
    pull->after = after;
    pull->is_working = true;
    (void)uv_queue_work(pull->images->loop, &pull->work, fn, on_worked);
}

/* ---- 4: publish ---- */

static void on_publish(uv_work_t *work)
{
    struct pull *pull = work->data;

    (void)publish(&pull->publication, &pull->work_err);
}

static void after_publish(struct pull *pull, const struct aq_error *failure)
{
    struct images *images = pull->images;
    struct record *record = map_gets(&images->records, pull->digest);
    struct aq_error err = *failure;

    if (!err.code && !record)
        (void)index_read_record(images, folder_hex(pull->digest), &record, &err);
    if (!err.code && index_bind(images, pull->ref.text, pull->architecture, record) < 0)
        (void)aq_fail(&err, ENOMEM, "image");
    if (err.code) {
        pull_failed(pull, &err);
        return;
    }
    log_info("image %s is here (%s, %lld bytes)", pull->ref.text, pull->digest,
             (long long)record->size_bytes);
    images_changed(images);
    pull_ready(pull, record);
}

/* 'is_new': the image itself is to be published, too; else only its name. */
static void start_publish(struct pull *pull, bool is_new)
{
    pull->publication = (struct publication){
        .folder = pull->images->folder,
        .digest = pull->digest,
        .name = pull->ref.text,
        .name_key = pull->key,
        .architecture = pull->architecture,
        .manifest = is_new ? pull->manifest_text.data : NULL,
        .manifest_len = pull->manifest_text.len,
        .config = pull->config_text.data,
        .config_len = pull->config_text.len,
        .diff_ids = pull->config.diff_ids,
        .diff_count = pull->config.diff_count,
        .pull_folder = pull->folder.path,
    };
    start_work(pull, on_publish, after_publish);
}

/* ---- when the disk is full ---- */

static void start_fetch(struct pull *pull);

static void on_room(uv_timer_t *timer)
{
    struct pull *pull = timer->data;

    if (!list_is_empty(&pull->images->rubbish))
        return;
    (void)uv_timer_stop(timer);
    start_fetch(pull);
}

/* Once, unused images give way; then it is tried again. */
static bool make_room(struct pull *pull)
{
    if (pull->made_room
        || gc_collect(pull->images, pull->manifest.size_bytes * ROOM_FACTOR) == 0)
        return false;
    pull->made_room = true;
    (void)uv_timer_start(&pull->timer, on_room, ROOM_MSEC, ROOM_MSEC);
    return true;
}

/* ---- 3: unpack ---- */

static void after_layers(struct pull *pull)
{
    const struct aq_error err = pull->err;
    bool is_wrong = err.code == EBADMSG;

    if (!err.code) {
        start_publish(pull, true);
        return;
    }
    if (err.code == ENOSPC && make_room(pull))
        return;
    if (is_wrong && ++pull->tries < TRIES_MAX) {
        log_warning("image %s: %s; fetching again", pull->ref.text, err.text);
        start_fetch(pull);
        return;
    }
    (void)aq_error_wrap(&pull->err, "image '%.80s'", pull->ref.text);
    (void)snprintf(pull->err.field, sizeof(pull->err.field), "image");
    if (!pull->err.kind)
        pull->err.kind = err.code == ENOSPC ? "image-no-space"
                         : is_wrong         ? "image-damaged"
                                            : "image-unpack-failed";
    pull_failed(pull, &pull->err);
}

static void on_layer_done(void *data, const struct aq_error *err)
{
    struct pull_waiter *w = data;
    struct pull *pull = w->pull;
    size_t i = (size_t)(w - pull->waiters);

    w->is_waiting = false;
    pull->waiting--;
    if (err->code && !pull->err.code)
        pull->err = *err;
    if (err->code == EBADMSG)
        prepare_remove_blob(&pull->folder, pull->folder.layers[i].digest);
    if (pull->waiting == 0)
        after_layers(pull);
}

static void on_layer_progress(void *data)
{
    struct pull *pull = ((struct pull_waiter *)data)->pull;
    int64_t done = 0;

    for (size_t i = 0; i < pull->manifest.layer_count; i++) {
        const struct pull_waiter *w = &pull->waiters[i];

        done += w->is_waiting ? AQ_MIN(w->layer->done_bytes, pull->folder.layers[i].size_bytes)
                              : pull->folder.layers[i].size_bytes;
    }
    tell_progress(pull, IMAGE_UNPACKING, done);
}

static int unpack_layer(struct pull *pull, size_t i, struct aq_error *err)
{
    struct pull_waiter *w = &pull->waiters[i];
    AQ_CLEANUP(aq_freep) char *blob = prepare_blob_path(&pull->folder,
                                                        pull->folder.layers[i].digest);
    int r;

    if (!blob)
        return aq_fail(err, ENOMEM, "layer");
    w->waiter = (struct layer_waiter){ .on_done = on_layer_done,
                                       .on_progress = on_layer_progress, .data = w };
    r = layer_unpack_blob(w->layer, blob, pull->folder.layers[i].digest, &w->waiter, err);
    if (r == 0) {
        w->is_waiting = true;
        pull->waiting++;
    }
    return r;
}

static void start_unpack(struct pull *pull)
{
    struct aq_error err = { 0 };

    pull->err = (struct aq_error){ 0 };
    for (size_t i = 0; !err.code && i < pull->manifest.layer_count; i++)
        if (pull->waiters[i].layer && !pull->waiters[i].layer->is_here)
            (void)unpack_layer(pull, i, &err);
    if (err.code) {
        pull_failed(pull, &err);
        return;
    }
    if (pull->waiting == 0)
        start_publish(pull, true);
    else
        on_layer_progress(&pull->waiters[0]);
}

/* ---- 2: fetch ---- */

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
        tell_progress(pull, IMAGE_FETCHING, pull->measured_bytes);
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
        if (fetch_failed(&pull->ref, status, complaint, &err) != -ENOSPC || !make_room(pull))
            pull_failed(pull, &err);
        return;
    }
    tell_progress(pull, IMAGE_FETCHING, pull->manifest.size_bytes);
    start_unpack(pull);
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
        start_unpack(pull);
        return;
    }
    if (!err.code)
        (void)fetch_blobs(pull->images, &pull->ref, pull->digest, pull->folder.path, &events, pull,
                          &pull->tool, &err);
    if (err.code == ENOSPC && make_room(pull))
        return;
    if (err.code) {
        pull_failed(pull, &err);
        return;
    }
    on_timer(&pull->timer);
    (void)uv_timer_start(&pull->timer, on_timer, MEASURE_MSEC, MEASURE_MSEC);
}

static void start_fetch(struct pull *pull)
{
    for (size_t i = 0; i < pull->manifest.layer_count; i++)
        pull->folder.layers[i].is_here =
            ((struct layer *)map_gets(&pull->images->layers, pull->config.diff_ids[i]))->is_here;
    pull->phase = IMAGE_FETCHING;
    pull->told_bytes = -1;
    start_work(pull, on_prepare, after_prepare);
}

/* The pull is a user of each layer from here on, so nobody removes them. */
static int plan_fetch(struct pull *pull, struct aq_error *err)
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

/* ---- 1: resolve ---- */

static int start_resolve(struct pull *pull, struct aq_error *err);

static int check_config(struct pull *pull, struct aq_error *err)
{
    char digest[DIGEST_TEXT_MAX];
    int r;

    digest_of(pull->config_text.data, pull->config_text.len, digest);
    if (strcmp(digest, pull->manifest.config) != 0)
        return aq_fail_as(err, EBADMSG, "image-damaged", "image",
                          "image '%.80s': its configuration is not the one that its manifest names",
                          pull->ref.text);
    r = image_config_parse(pull->config_text.data, pull->config_text.len, &pull->config, err);
    if (r < 0)
        return aq_error_wrap(err, "image '%.80s'", pull->ref.text);
    if (pull->config.diff_count != pull->manifest.layer_count)
        return aq_fail_as(err, EBADMSG, "image-damaged", "image",
                          "image '%.80s': manifest and configuration have not the same layers",
                          pull->ref.text);
    if ((pull->config.os && strcmp(pull->config.os, "linux") != 0)
        || (pull->config.architecture
            && strcmp(pull->config.architecture, pull->architecture) != 0))
        return aq_fail_as(err, EINVAL, "image-architecture", "image",
                          "image '%.80s' is for %.20s/%.20s, not for linux/%.20s", pull->ref.text,
                          pull->config.os ? pull->config.os : "linux",
                          pull->config.architecture ? pull->config.architecture : "?",
                          pull->architecture);
    return plan_fetch(pull, err);
}

/* Which of an index it is, or what is in it. *ret_more: another question is asked. */
static int read_manifest(struct pull *pull, bool *ret_more, struct aq_error *err)
{
    const char *wanted = pull->asked[0] ? pull->asked : pull->ref.digest, *picked;
    int r;

    digest_of(pull->manifest_text.data, pull->manifest_text.len, pull->digest);
    if (wanted && strcmp(wanted, pull->digest) != 0)
        return aq_fail_as(err, EBADMSG, "image-damaged", "image",
                          "image '%.80s': the registry gave %s", pull->ref.text, pull->digest);
    manifest_done(&pull->manifest);
    r = manifest_parse(pull->manifest_text.data, pull->manifest_text.len, &pull->manifest, err);
    if (r < 0 || !pull->manifest.is_index)
        return r < 0 ? aq_error_wrap(err, "image '%.80s'", pull->ref.text) : 0;
    if (pull->asked[0] || pull->ref.form != REFERENCE_REGISTRY)
        return aq_fail_as(err, EINVAL, "image-unpack-failed", "image",
                          "image '%.80s' is an index of images; name one of them", pull->ref.text);
    r = manifest_pick(&pull->manifest, pull->architecture, &picked, err);
    if (r < 0)
        return aq_error_wrap(err, "image '%.80s'", pull->ref.text);
    (void)strcpy(pull->asked, picked);
    *ret_more = true;
    return start_resolve(pull, err);
}

static void on_answer(void *data, const char *bytes, size_t len)
{
    struct pull *pull = data;
    struct strbuf *text = pull->is_asking_config ? &pull->config_text : &pull->manifest_text;

    if (text->len <= IMAGE_CONFIG_MAX) /* more is refused by the parser */
        strbuf_add(text, bytes, len);
}

static void on_answered(void *data, int status, const char *complaint)
{
    struct pull *pull = data;
    struct aq_error err = { 0 };
    bool more = false, was_config = pull->is_asking_config;

    pull->tool = NULL;
    if (status)
        (void)fetch_failed(&pull->ref, status, complaint, &err);
    else if (was_config)
        (void)check_config(pull, &err);
    else
        (void)read_manifest(pull, &more, &err);
    if (err.code) {
        pull_failed(pull, &err);
    } else if (was_config) {
        start_fetch(pull);
    } else if (!more && map_gets(&pull->images->records, pull->digest)) {
        start_publish(pull, false);
    } else if (!more) {
        pull->is_asking_config = true;
        if (start_resolve(pull, &err) < 0)
            pull_failed(pull, &err);
    }
}

static int start_resolve(struct pull *pull, struct aq_error *err)
{
    static const struct tool_events events = { .on_output = on_answer, .on_end = on_answered };

    if (pull->is_asking_config)
        return fetch_config(pull->images, &pull->ref, pull->digest, &events, pull, &pull->tool,
                            err);
    strbuf_clear(&pull->manifest_text);
    return fetch_manifest(pull->images, &pull->ref, pull->asked[0] ? pull->asked : NULL, &events,
                          pull, &pull->tool, err);
}

/* ---- joining and leaving ---- */

static void on_start(uv_timer_t *timer)
{
    struct pull *pull = timer->data;
    struct aq_error err = { 0 };

    if (start_resolve(pull, &err) < 0)
        pull_failed(pull, &err);
}

void pulls_start_waiting(struct images *images)
{
    size_t running = 0;

    if (images->is_closing)
        return;
    LIST_FOREACH(it, &images->pulls) {
        struct pull *pull = LIST_ENTRY(it, struct pull, link);

        if (!pull->is_started && running < PULLS_MAX) {
            pull->is_started = true;
            /* not from within: what cannot start fails from the loop */
            (void)uv_timer_start(&pull->timer, on_start, 0, 0);
        }
        running += pull->is_started;
    }
}

static int pull_new(struct images *images, struct image_request *request, char *key,
                    struct pull **ret, struct aq_error *err)
{
    struct pull *pull = calloc(1, sizeof(*pull));
    int r;

    if (!pull || !(pull->architecture = strdup(request->architecture))) {
        free(pull);
        return aq_fail(err, ENOMEM, "image");
    }
    r = reference_parse(request->ref.text, NULL, &pull->ref, err);
    if (r < 0) {
        free(pull->architecture);
        free(pull);
        return r;
    }
    pull->images = images;
    pull->key = key;
    pull->timer.data = pull;
    strbuf_init(&pull->manifest_text);
    strbuf_init(&pull->config_text);
    list_init(&pull->requests);
    (void)uv_timer_init(images->loop, &pull->timer);
    list_add(&images->pulls, &pull->link);
    images->open++;
    *ret = pull;
    return 0;
}

int pull_join(struct images *images, struct image_request *request, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *key = name_key(request->ref.text, request->architecture);
    struct pull *pull = NULL;
    int r = key ? 0 : aq_fail(err, ENOMEM, "image");

    LIST_FOREACH(it, &images->pulls)
        if (key && strcmp(LIST_ENTRY(it, struct pull, link)->key, key) == 0)
            pull = LIST_ENTRY(it, struct pull, link);
    if (r == 0 && !pull && (r = pull_new(images, request, key, &pull, err)) == 0) {
        key = NULL;
        pulls_start_waiting(images);
    }
    if (r < 0)
        return r;
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

bool pulls_have(const struct images *images, const char *digest)
{
    LIST_FOREACH(it, &images->pulls)
        if (strcmp(LIST_ENTRY(it, struct pull, link)->digest, digest) == 0)
            return true;
    return false;
}
