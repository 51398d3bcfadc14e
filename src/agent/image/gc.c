/* SPDX-License-Identifier: Apache-2.0 */
/* Removal: of images by name, and of what nobody uses by age and space.
 *
 * A directory that goes is renamed at once, so that nobody finds it again; its
 * tree is removed in a worker thread. The image goes before its layers: one
 * that lost a layer is never found at a start, or is dropped there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/image/store_layout.h"
#include "agent/image/images_internal.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/memory.h"

#define GC_MSEC (3600 * 1000)
#define ORPHAN_USEC (INT64_C(24) * 3600 * USEC_PER_SEC) /* what broken pulls left, to be resumed */

struct garbage {
    struct list link;
    char *path;
};

/* ---- trees ---- */

static void gc_on_remove(uv_work_t *work)
{
    struct images *images = work->data;
    struct garbage *garbage = LIST_ENTRY(images->garbage.next, struct garbage, link);

    (void)fs_remove_tree(AT_FDCWD, garbage->path, NULL);
    AQ_FAULT("agent.image.tree-removed");
}

static void gc_remove_next(struct images *images);

static void gc_on_removed(uv_work_t *work, int status)
{
    struct images *images = work->data;
    struct garbage *garbage = LIST_ENTRY(images->garbage.next, struct garbage, link);

    (void)status; /* nobody cancels it */
    list_remove(&garbage->link);
    free(garbage->path);
    free(garbage);
    images->is_removing = false;
    gc_remove_next(images);
    if (list_is_empty(&images->garbage) && !images->is_closing)
        room_made(images);
    images_let_go(images);
}

static void gc_remove_next(struct images *images)
{
    if (images->is_removing || list_is_empty(&images->garbage))
        return;
    if (images->is_closing) { /* the next start removes the rest */
        LIST_FOREACH(it, &images->garbage) {
            struct garbage *garbage = LIST_ENTRY(it, struct garbage, link);

            list_remove(it);
            free(garbage->path);
            free(garbage);
        }
        return;
    }
    images->is_removing = true;
    images->open++;
    images->removal.data = images;
    (void)uv_queue_work(images->loop, &images->removal, gc_on_remove, gc_on_removed);
}

void gc_add_garbage(struct images *images, const char *path)
{
    struct garbage *garbage = aq_alloc(sizeof(*garbage));

    garbage->path = aq_strdup(path);
    list_add(&images->garbage, &garbage->link);
    gc_remove_next(images);
}

/* Rename directory/name so that it has no meaning any more, and remove it later. */
static int gc_throw_away(struct images *images, const char *directory, const char *name,
                         struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s/%s", images->directory, directory, name);
    AQ_CLEANUP(aq_freep) char *gone = aq_format("%s/%s/" LAYOUT_REMOVED_PREFIX "%s",
                                                images->directory, directory, name);

    if (rename(path, gone) == 0) {
        gc_add_garbage(images, gone);
        return 0;
    }
    if (errno != EEXIST && errno != ENOTEMPTY)
        return errno == ENOENT ? 0 : aq_fail_errno(err, "rename '%s'", path);
    return aq_fail(err, EBUSY, "'%s' is being removed already", gone);
}

/* ---- layers ---- */

static int64_t gc_remove_layer(struct images *images, struct image_layer *layer)
{
    int64_t size = layer->size_bytes;

    if (gc_throw_away(images, "layers", layout_digest_hex(layer->diff_id), NULL) < 0)
        return 0;
    layer->is_here = false;
    layer->users++;
    layer_unuse(layer);
    return size;
}

/* Layers that no image and no pull needs. */
static int64_t gc_remove_layers(struct images *images, int64_t older_usec)
{
    int64_t freed = 0;

    for (size_t i = images->layers.count; i-- > 0;) {
        struct image_layer *layer = images->layers.entries[i].value;

        if (!layer->users && layer->is_here && layer->seen_usec <= older_usec)
            freed += gc_remove_layer(images, layer);
    }
    return freed;
}

/* ---- images ---- */

static void gc_remove_names(struct images *images, const struct image_record *record)
{
    for (size_t i = 0; i < images->names.count; i++) {
        const struct image_name *name = images->names.entries[i].value;
        AQ_CLEANUP(aq_freep) char *path = aq_format("%s/names/%s", images->directory,
                                                    images->names.entries[i].key);

        if (name->record == record)
            (void)unlink(path);
    }
}

int gc_remove(struct images *images, struct image_record *record, int64_t *ret_bytes,
              struct aq_error *err)
{
    const char *const *ids = record->config.diff_ids;
    size_t count = record->config.diff_count;
    int r;

    *ret_bytes = 0;
    if (record->holds)
        return aq_fail_as(err, EBUSY, "image-in-use", "image",
                          "the image is in use by %u of this node's kernels; end them first",
                          record->holds);
    if (!gc_is_idle(images, record))
        return aq_fail_as(err, EBUSY, "image-in-use", "image",
                          "the image is being given to one of this node's kernels");
    r = gc_throw_away(images, "images", layout_digest_hex(record->digest), err);
    AQ_FAULT("agent.image.gone");
    if (r < 0)
        return r;
    gc_remove_names(images, record);
    record->refs++;
    index_drop(images, record);
    for (size_t i = 0; i < count; i++) {
        struct image_layer *layer = map_gets(&images->layers, ids[i]);

        if (layer && !layer->users && layer->is_here)
            *ret_bytes += gc_remove_layer(images, layer);
    }
    AQ_FAULT("agent.image.layers-gone");
    log_info("image %s was removed", record->digest);
    images_changed(images);
    image_record_unref(record);
    return 0;
}

static int64_t gc_last_use(const struct image_record *record)
{
    return AQ_MAX(record->used_usec, record->fetched_usec);
}

bool gc_is_older(const struct image_record *record, const struct image_record *than)
{
    return !than || gc_last_use(record) < gc_last_use(than)
           || (gc_last_use(record) == gc_last_use(than)
               && strcmp(record->digest, than->digest) < 0);
}

bool gc_is_idle(const struct images *images, const struct image_record *record)
{
    LIST_FOREACH(it, &images->requests)
        if (LIST_ENTRY(it, struct image_request, link)->found == record)
            return false;
    return !record->holds && !pulls_have(images, record->digest);
}

static struct image_record *gc_oldest_unused(const struct images *images, int64_t *ret_unused_bytes)
{
    struct image_record *oldest = NULL;

    *ret_unused_bytes = 0;
    for (size_t i = 0; i < images->records.count; i++) {
        struct image_record *record = images->records.entries[i].value;

        if (!gc_is_idle(images, record))
            continue;
        *ret_unused_bytes += record->size_bytes;
        if (gc_is_older(record, oldest))
            oldest = record;
    }
    return oldest;
}

/* What the settings say about age and size. */
static int64_t gc_collect(struct images *images)
{
    const struct settings *settings = images->settings;
    int64_t now = clock_realtime_usec(), freed, unused, bytes = 0;
    struct image_record *record;

    freed = gc_remove_layers(images, now - ORPHAN_USEC);
    while ((record = gc_oldest_unused(images, &unused))) {
        bool is_old = settings->image_keep_usec
                      && gc_last_use(record) < now - settings->image_keep_usec;
        bool is_much = settings->image_keep_bytes && unused > settings->image_keep_bytes;

        if (!is_old && !is_much)
            break;
        if (gc_remove(images, record, &bytes, NULL) < 0)
            break;
        freed += bytes;
    }
    return freed;
}

/* ---- what nobody went on with ---- */

/* Of no more use: not changed since then, or of an image that is here. */
static bool gc_is_stale_pull(struct images *images, int directory, const char *name,
                             int64_t older_usec)
{
    char digest[sizeof("sha256:") + NAME_MAX];
    struct stat st;

    (void)snprintf(digest, sizeof(digest), "sha256:%s", name);
    return name[0] != '.' && !pulls_have(images, digest)
           && fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0
           && (st.st_mtime <= older_usec / USEC_PER_SEC || map_gets(&images->records, digest));
}

static void gc_remove_pulls(struct images *images, int64_t older_usec, bool is_start)
{
    AQ_CLEANUP(aq_freep) char *directory = images_path(images, "pulls");
    DIR *dir = opendir(directory);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", directory, entry->d_name);

        if (gc_is_stale_pull(images, dirfd(dir), entry->d_name, older_usec))
            (void)gc_throw_away(images, "pulls", entry->d_name, NULL);
        else if (is_start
                 && strncmp(entry->d_name, LAYOUT_REMOVED_PREFIX, strlen(LAYOUT_REMOVED_PREFIX))
                        == 0)
            gc_add_garbage(images, path);
    }
    if (dir)
        (void)closedir(dir);
}

/* Halves of layers that no process unpacks: its pull was given up. */
static void gc_remove_halves(struct images *images)
{
    AQ_CLEANUP(aq_freep) char *directory = images_path(images, "layers");
    const size_t prefix = strlen(LAYOUT_UNFINISHED_PREFIX);
    DIR *dir = opendir(directory);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char diff_id[DIGEST_TEXT_MAX + 8];
        const struct image_layer *layer;

        if (strncmp(entry->d_name, LAYOUT_UNFINISHED_PREFIX, prefix) != 0)
            continue;
        (void)snprintf(diff_id, sizeof(diff_id), "sha256:%.64s", entry->d_name + prefix);
        layer = map_gets(&images->layers, diff_id);
        if (!layer || !layer->tool)
            (void)gc_throw_away(images, "layers", entry->d_name, NULL);
    }
    if (dir)
        (void)closedir(dir);
}

void gc_remove_leftovers(struct images *images)
{
    gc_remove_pulls(images, INT64_MAX, false);
    gc_remove_halves(images);
    (void)gc_remove_layers(images, INT64_MAX);
}

static void gc_on_timer(uv_timer_t *timer)
{
    struct images *images = timer->data;

    gc_remove_pulls(images, clock_realtime_usec() - ORPHAN_USEC, false);
    gc_remove_halves(images);
    (void)gc_collect(images);
}

void gc_start(struct images *images)
{
    gc_remove_pulls(images, clock_realtime_usec() - ORPHAN_USEC, true);
    (void)uv_timer_start(&images->gc_timer, gc_on_timer, GC_MSEC, GC_MSEC);
    uv_unref((uv_handle_t *)&images->gc_timer);
}

/* ---- the public face ---- */

int64_t images_collect(struct images *images, bool all)
{
    int64_t freed, bytes = 0, unused;
    struct image_record *record;

    gc_remove_pulls(images, clock_realtime_usec() - ORPHAN_USEC, false);
    gc_remove_halves(images);
    freed = gc_collect(images);
    while (all && (record = gc_oldest_unused(images, &unused))
           && gc_remove(images, record, &bytes, NULL) == 0)
        freed += bytes;
    return all ? freed + gc_remove_layers(images, INT64_MAX) : freed;
}

int images_remove(struct images *images, const char *name, int64_t *ret_bytes, struct aq_error *err)
{
    struct image_record *record = NULL;
    int r = images_lookup(images, name, &record, err);

    return r < 0 ? r : gc_remove(images, record, ret_bytes, err);
}
