/* SPDX-License-Identifier: Apache-2.0 */
/* storage.c - see storage.h */
#include "storage/storage.h"

#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/memory.h"
#include "http/defer.h"
#include "http/exposition.h"
#include "storage/check.h"
#include "storage/upload.h"

#define SWEEP_MSEC (60u * 60 * 1000) /* between looks for uploads that were given up */
#define RECOUNT_MSEC 1000            /* between looks for folders to be measured */
#define TARGET_MAX 16384             /* of a request: a token has a path in it */

struct volume *storage_find_volume(const struct storage *storage, const char *name)
{
    for (size_t i = 0; i < storage->volume_count; i++)
        if (strcmp(storage->volumes[i].name, name) == 0)
            return &storage->volumes[i];
    return NULL;
}

/* ---- what goes on in the background ---- */

static void storage_run_purge(struct work *work)
{
    const struct volume *volume = AQ_CONTAINER_OF(work, struct volume, purge);
    int64_t before_usec = clock_realtime_usec() - volume->storage->settings->upload_usec;
    struct aq_error err = { 0 };

    if (volume_mark(&volume->dir, &err) < 0
        || volume_purge(&volume->dir, !volume->was_purged, &err) < 0
        || (volume->is_sweeping
            && upload_sweep(volume->dir.path, before_usec / USEC_PER_SEC, &err) < 0))
        log_warning("volume '%s' is not cleaned up: %s", volume->name, err.text);
}

static void storage_on_purged(struct work *work)
{
    struct volume *volume = AQ_CONTAINER_OF(work, struct volume, purge);

    volume->is_purging = false;
    volume->was_purged = true;
    if (volume->must_purge && !volume->storage->http.is_closing)
        storage_purge(volume);
    storage_settle(volume->storage);
}

void storage_purge(struct volume *volume)
{
    volume->must_purge = volume->is_purging;
    if (volume->is_purging)
        return;
    volume->is_sweeping = volume->must_sweep;
    volume->must_sweep = false;
    volume->is_purging = true; /* its lane has room: nothing else uses it */
    (void)work_submit(&volume->lanes[WORK_PURGE], &volume->purge, NULL, storage_run_purge,
                      storage_on_purged, NULL);
}

static void storage_on_sweep(void *data)
{
    struct storage *storage = data;

    for (size_t i = 0; i < storage->volume_count; i++) {
        storage->volumes[i].must_sweep = true;
        storage_purge(&storage->volumes[i]);
    }
    storage->sweep = defer_call(storage->loop, SWEEP_MSEC, storage_on_sweep, storage);
}

static void storage_on_recount(void *data)
{
    struct storage *storage = data;

    storage->recount = usage_count_touched(storage->usage)
                           ? defer_call(storage->loop, RECOUNT_MSEC, storage_on_recount, storage)
                           : NULL;
}

void storage_touch(struct volume *volume, const struct uuid *folder, const struct uuid *user)
{
    struct storage *storage = volume->storage;

    usage_touch(storage->usage, volume, folder, user);
    if (!storage->recount && !storage->http.is_closing)
        storage->recount = defer_call(storage->loop, RECOUNT_MSEC, storage_on_recount, storage);
}

/* ---- HTTP ---- */

static int storage_add_routes(struct storage *storage, struct aq_error *err)
{
    int r = front_server_init(&storage->http, storage->front, err);

    if (r == 0)
        r = router_add(storage->http.router, tus_routes, tus_route_count, storage, err);
    if (r == 0)
        r = router_add(storage->http.router, unpack_routes, unpack_route_count, storage, err);
    return r < 0 ? r
                 : router_add(storage->http.router, download_routes, download_route_count, storage,
                              err);
}

static void storage_on_stopped(void *self)
{
    storage_settle(self);
}

/* Any page may ask: nothing here depends on a cookie. */
static int storage_listen(struct storage *storage, struct aq_error *err)
{
    static char any[] = "*";
    static char *const origins[] = { any };
    struct server_options options = { .app.origins = &storage->origins };

    storage->origins = (struct origin_rules){ .allowed = origins, .count = 1 };
    options.limits.message = message_limits_default;
    options.limits.message.line_max = TARGET_MAX;
    options.limits.message.head_max = 2 * TARGET_MAX;
    return front_server_open(&storage->http, &options, storage_on_stopped, err);
}

/* ---- life ---- */

/* One in the state folder is ours to make; another is a mount, or somebody's mistake. */
static int storage_add_volume(struct storage *storage, const char *item, struct aq_error *err)
{
    struct volume *volume = &storage->volumes[storage->volume_count++];
    int r;

    volume->storage = storage;
    volume->dir.path = settings_volume_path(item);
    (void)snprintf(volume->name, sizeof(volume->name), "%.*s", (int)strcspn(item, ":"), item);
    volume->dir.name = volume->name;
    work_lanes_init(volume->lanes, storage->loop);
    volume->dir.seen = settings_volume_seen(storage->settings, item);
    if (settings_is_own(storage->settings, volume->dir.path)
        && (r = fs_mkdirs(volume->dir.path, 0700, err)) < 0)
        return r;
    return volume_check_mode(&volume->dir, err);
}

static int storage_open(void *self, struct front *front, const void *settings,
                        const struct link_identity *identity, struct aq_error *err)
{
    struct storage *storage = self;
    const struct conf_list *volumes;
    int r = 0;

    (void)identity;
    storage->loop = &front->loop;
    storage->front = front;
    storage->settings = settings;
    list_init(&storage->uploads);
    list_init(&storage->waiting);
    list_init(&storage->asked);
    volumes = &storage->settings->volumes;
    work_set_threads(volumes->count);
    quota_init(&storage->users, (size_t)storage->settings->transfers_max, 0);
    quota_init(&storage->folders, (size_t)storage->settings->transfers_max, 0);
    storage->volumes = aq_alloc_array(volumes->count, sizeof(*storage->volumes));
    storage->usage = usage_table_new();
    storage->rights = rights_new(storage);
    for (size_t i = 0; r == 0 && i < volumes->count; i++)
        r = storage_add_volume(storage, volumes->items[i], err);
    if (r < 0 || (r = token_load_key(storage->settings->common.state, storage->key, err)) < 0
        || (r = storage_add_routes(storage, err)) < 0 || (r = storage_listen(storage, err)) < 0)
        return r;
    storage_on_sweep(storage);
    log_info("serving %s; %zu volume%s", storage->settings->common.public_url,
             storage->volume_count, storage->volume_count == 1 ? "" : "s");
    return 0;
}

static bool storage_is_busy(const struct storage *storage)
{
    for (size_t i = 0; i < storage->volume_count; i++)
        if (storage->volumes[i].is_purging || storage->volumes[i].is_measuring)
            return true;
    return storage->usage && usage_is_counting(storage->usage);
}

static void storage_free(struct storage *storage)
{
    front_server_done(&storage->http);
    usage_table_free(AQ_TAKE(storage->usage));
    rights_free(AQ_TAKE(storage->rights));
    quota_done(&storage->users);
    quota_done(&storage->folders);
    for (size_t i = 0; i < storage->volume_count; i++)
        free((char *)(uintptr_t)storage->volumes[i].dir.seen);
    free(AQ_TAKE(storage->volumes));
    storage->volume_count = 0;
    explicit_bzero(storage->key, sizeof(storage->key));
}

void storage_settle(struct storage *storage)
{
    if (!storage->http.is_closing)
        manager_tell_sizes(storage);
    if (front_server_has_ended(&storage->http) && !storage->transfer_count && !storage->op_count
        && !storage_is_busy(storage))
        storage_free(storage);
}

static void storage_drain(void *self)
{
    struct storage *storage = self;

    front_server_drain(&storage->http);
}

static void storage_close(void *self)
{
    struct storage *storage = self;

    front_server_close(&storage->http);
    defer_cancel(AQ_TAKE(storage->sweep));
    defer_cancel(AQ_TAKE(storage->measure));
    defer_cancel(AQ_TAKE(storage->news));
    defer_cancel(AQ_TAKE(storage->recount));
    if (storage->usage)
        usage_table_stop(storage->usage);
    storage_settle(storage);
}

static void storage_write_metrics(void *self, struct strbuf *out)
{
    const struct storage *s = self;

    exposition_single(out, "aliquot_storage_manager_connected", "gauge",
                      "Whether the storage host is connected to its manager.",
                      front_is_connected(s->front));
    exposition_single(out, "aliquot_storage_transfers", "gauge", "Uploads and downloads now.",
                      (double)s->transfer_count);
    exposition_single(out, "aliquot_storage_uploads_total", "counter",
                      "Files that were uploaded since the start.", (double)s->counts.uploads);
    exposition_single(out, "aliquot_storage_downloads_total", "counter",
                      "Answers with a file or an archive that were sent whole.",
                      (double)s->counts.downloads);
    exposition_single(out, "aliquot_storage_refused_total", "counter",
                      "Requests of clients that were refused.", (double)s->counts.refused);
    exposition_single(out, "aliquot_storage_operations_total", "counter",
                      "Operations that the manager asked for.", (double)s->counts.ops);
    exposition_single(out, "aliquot_storage_counts_total", "counter",
                      "Counts of folders' files that were begun; equal ones at one time are one.",
                      (double)usage_get_counts(s->usage).begun);
    exposition_single(out, "aliquot_storage_counts_dropped_total", "counter",
                      "Counts that ended early, as nobody waited for them any more.",
                      (double)usage_get_counts(s->usage).dropped);
    exposition_single(out, "aliquot_storage_bytes_in_total", "counter", "Bytes of uploads.",
                      (double)s->counts.bytes_in);
    exposition_single(out, "aliquot_storage_bytes_out_total", "counter", "Bytes of downloads.",
                      (double)s->counts.bytes_out);
}

const struct front_type storage_type = {
    .name = "storage",
    .purpose = "serves folders",
    .draining = "no more requests are taken",
    .mask = 022,
    .items = settings_items,
    .settings_size = sizeof(struct settings),
    .finish = settings_finish,
    .checks = storage_checks,
    .open = storage_open,
    .on_connected = manager_on_connected,
    .on_message = manager_on_message,
    .on_disconnected = manager_on_disconnected,
    .drain = storage_drain,
    .close = storage_close,
    .write_metrics = storage_write_metrics,
};
