/* SPDX-License-Identifier: Apache-2.0 */
/* Container registries are asked for their images. */
#include "manager/image/rescan.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "manager/image/image_catalogue.h"
#include "manager/cluster/cluster.h"
#include "manager/image/registry_scan.h"
#include "manager/call/tasks.h"
#include "manager/image/image_feature.h"
#include "store/config_entries.h"

#define RESCAN_TEXT_MAX 400

struct rescan {
    struct api *api;
    struct task *task; /* NULL = not begun */
    struct uuid user_id;
    struct audit_who by;
    char *wanted; /* NULL = all */
    rescan_done_fn *done;
    void *data;

    struct registry_source *sources;
    size_t count;

    uv_async_t wake;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows, up to 'stop' */
    size_t now, finished, total;
    char text[RESCAN_TEXT_MAX];
    bool is_over;
    atomic_bool stop;

    json_t *found; /* {"REGISTRY": [image, ...]}; the thread's until it is over */
    size_t failed;
    char why[RESCAN_TEXT_MAX]; /* of the first that failed */
    json_t *all;               /* afterwards */
};

static void rescan_source_done(struct registry_source *source)
{
    char *const texts[] = { source->name,    source->url,      source->type,
                            source->project, source->username, source->password };

    if (source->password)
        explicit_bzero(source->password, strlen(source->password));
    for (size_t i = 0; i < AQ_COUNT(texts); i++)
        free(texts[i]);
}

static void rescan_free(struct rescan *rescan)
{
    for (size_t i = 0; i < rescan->count; i++)
        rescan_source_done(&rescan->sources[i]);
    free(rescan->sources);
    free(rescan->wanted);
    json_decref(rescan->found);
    json_decref(rescan->all);
    (void)pthread_mutex_destroy(&rescan->lock);
    free(rescan);
}

/* ---- which registries, from the configuration tree ---- */

static char *rescan_copy(const json_t *registry, const char *key)
{
    const char *text = json_string_value(json_object_get(registry, key));

    return text && *text ? aq_strdup(text) : NULL;
}

static int rescan_read_source(struct store_tx *tx, const char *name, const json_t *registry,
                              struct registry_source *source, struct aq_error *err)
{
    const json_t *url = json_is_object(registry) ? json_object_get(registry, "") : registry;
    const char *sealed = json_string_value(json_object_get(registry, "password"));

    source->name = aq_strdup(name);
    source->url = json_is_string(url) ? aq_strdup(json_string_value(url))
                                      : aq_format("https://%s", name);
    source->skip_verify = !registry_is_verified(registry);
    source->type = rescan_copy(registry, "type");
    source->project = rescan_copy(registry, "project");
    source->username = rescan_copy(registry, "username");
    return sealed ? config_secret_reveal(tx, sealed, &source->password, err) : 0;
}

static int rescan_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct rescan *rescan = data;
    json_auto_t *tree = NULL;
    const char *name;
    json_t *registry;
    int r = registry_tree_read(tx, &tree, err);

    if (r < 0)
        return r;
    rescan->sources = aq_alloc_array(json_object_size(tree) + 1, sizeof(*rescan->sources));
    json_object_foreach(tree, name, registry)
        if (r == 0 && *name && (!rescan->wanted || strcmp(rescan->wanted, name) == 0))
            r = rescan_read_source(tx, name, registry, &rescan->sources[rescan->count++], err);
    if (r == 0 && rescan->wanted && !rescan->count)
        r = problem_no_such(err, "registry",
                            "there is no registry %.100s; 'aliquot admin registry ls' lists those "
                            "that there are",
                            rescan->wanted);
    return r;
}

/* ---- the thread ---- */

static void rescan_on_progress(void *data, size_t done, size_t total, const char *repository)
{
    struct rescan *rescan = data;

    (void)pthread_mutex_lock(&rescan->lock);
    rescan->finished = done;
    rescan->total = total;
    (void)snprintf(rescan->text, sizeof(rescan->text), "%s/%s", rescan->sources[rescan->now].name,
                   repository);
    (void)pthread_mutex_unlock(&rescan->lock);
    (void)uv_async_send(&rescan->wake);
}

static void rescan_do_one(struct rescan *rescan, const struct registry_source *source)
{
    struct aq_error err = { 0 };
    json_t *images = NULL;
    int r = registry_scan(source, &rescan->stop, rescan_on_progress, rescan, &images, &err);

    if (r == 0)
        (void)json_object_set_new(rescan->found, source->name, images);
    else if (rescan->failed++ == 0)
        (void)snprintf(rescan->why, sizeof(rescan->why), "registry '%.100s': %.280s", source->name,
                       err.text);
}

static void *rescan_loop(void *data)
{
    struct rescan *rescan = data;

    for (size_t i = 0; i < rescan->count && !atomic_load(&rescan->stop); i++) {
        (void)pthread_mutex_lock(&rescan->lock);
        rescan->now = i;
        (void)pthread_mutex_unlock(&rescan->lock);
        rescan_do_one(rescan, &rescan->sources[i]);
    }
    (void)pthread_mutex_lock(&rescan->lock);
    rescan->is_over = true;
    (void)pthread_mutex_unlock(&rescan->lock);
    (void)uv_async_send(&rescan->wake);
    return NULL;
}

/* ---- the end ---- */

static int rescan_write(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct rescan *rescan = data;

    return image_catalogue_write(tx, rescan->found, &rescan->by, &rescan->all, err);
}

static void rescan_end(struct rescan *rescan, const char *why)
{
    struct task *task = rescan->task;
    char text[RESCAN_TEXT_MAX + 80];
    size_t images = 0;
    const char *name;
    json_t *list;

    json_object_foreach(rescan->found, name, list)
        images += json_array_size(list);
    if (why)
        (void)snprintf(text, sizeof(text), "%.400s%s", why,
                       rescan->failed > 1 ? " (and others)" : "");
    else if (!rescan->count)
        (void)snprintf(text, sizeof(text), "there are no registries");
    else
        (void)snprintf(text, sizeof(text), "%zu images are listed", images);
    if (why)
        log_warning("registries were not read in whole: %s", text);
    rescan_free(rescan);
    task_end(task, why != NULL, text);
}

static void rescan_on_written(void *data, int r, const struct aq_error *err)
{
    struct rescan *rescan = data;

    if (r == 0)
        image_catalogue_replace(rescan->api, AQ_TAKE(rescan->all));
    rescan_end(rescan, r < 0 ? err->text : rescan->failed ? rescan->why : NULL);
}

static void rescan_on_closed(uv_handle_t *handle)
{
    struct rescan *rescan = handle->data;

    if (atomic_load(&rescan->stop)) {
        rescan_free(rescan);
        return;
    }
    if (json_object_size(rescan->found) == 0)
        rescan_end(rescan, rescan->why[0] ? rescan->why : NULL);
    else
        store_write(core_store(rescan->api->core), rescan_write, rescan_on_written, rescan);
}

static void rescan_on_wake(uv_async_t *wake)
{
    struct rescan *rescan = wake->data;
    char text[RESCAN_TEXT_MAX];
    size_t finished, total;
    bool is_over;

    (void)pthread_mutex_lock(&rescan->lock);
    finished = rescan->now * 100 + (rescan->total ? rescan->finished * 100 / rescan->total : 0);
    total = rescan->count * 100;
    is_over = rescan->is_over;
    memcpy(text, rescan->text, sizeof(text));
    (void)pthread_mutex_unlock(&rescan->lock);
    task_set_total(rescan->task, (int64_t)total);
    if (!is_over) {
        task_update(rescan->task, (int64_t)finished, text);
        return;
    }
    (void)pthread_join(rescan->thread, NULL);
    rescan->api->image->rescan = NULL;
    uv_close((uv_handle_t *)&rescan->wake, rescan_on_closed);
}

void rescan_stop(struct rescan *rescan)
{
    if (!rescan)
        return;
    rescan->api->image->rescan = NULL;
    if (!rescan->task) { /* its registries are being read: rescan_on_read() ends it */
        atomic_store(&rescan->stop, true);
        return;
    }
    atomic_store(&rescan->stop, true);
    (void)pthread_join(rescan->thread, NULL);
    uv_close((uv_handle_t *)&rescan->wake, rescan_on_closed);
}

/* ---- the beginning ---- */

static void rescan_begin(struct rescan *rescan)
{
    sigset_t all, before;
    int r;

    rescan->found = json_object();
    rescan->task = task_start(rescan->api->tasks, &rescan->user_id, NULL);
    (void)uv_async_init(core_loop(rescan->api->core), &rescan->wake, rescan_on_wake);
    rescan->wake.data = rescan;
    (void)sigfillset(&all); /* signals are for the loop's thread */
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    r = pthread_create(&rescan->thread, NULL, rescan_loop, rescan);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r == 0)
        return;
    /* the handle ends as after a scan in which nothing was found */
    (void)snprintf(rescan->why, sizeof(rescan->why), "a thread cannot be made: %s", strerror(r));
    rescan->api->image->rescan = NULL;
    uv_close((uv_handle_t *)&rescan->wake, rescan_on_closed);
}

static void rescan_on_read(void *data, int r, const struct aq_error *err)
{
    struct rescan *rescan = data;
    rescan_done_fn *done;
    void *done_data;
    struct aq_error why = { 0 };

    if (r < 0)
        why = *err;
    else if (atomic_load(&rescan->stop))
        r = aq_fail(&why, ECANCELED, "the manager ends");
    else
        rescan_begin(rescan);
    done = rescan->done;
    done_data = rescan->data;
    if (r == 0) {
        done(done_data, task_id(rescan->task), 0, &why);
        return;
    }
    if (!atomic_load(&rescan->stop))
        rescan->api->image->rescan = NULL;
    if (rescan->task)
        task_end(AQ_TAKE(rescan->task), true, why.text);
    rescan_free(rescan);
    done(done_data, NULL, r, &why);
}

int rescan_start(struct api *api, const struct principal *who, const struct audit_who *by,
                 const char *registry, rescan_done_fn *done, void *data, struct aq_error *err)
{
    struct rescan *rescan;

    if (api->image->rescan)
        return aq_fail(err, EBUSY, "registries are being read already; try again when it is done");
    rescan = aq_alloc(sizeof(*rescan));
    *rescan = (struct rescan){
        .api = api, .user_id = who->user_id, .by = *by, .done = done, .data = data
    };
    (void)pthread_mutex_init(&rescan->lock, NULL);
    rescan->wanted = aq_strdup(registry);
    store_read(core_store(api->core), rescan_read, rescan_on_read, rescan);
    api->image->rescan = rescan;
    return 0;
}
