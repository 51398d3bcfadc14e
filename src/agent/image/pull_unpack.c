/* SPDX-License-Identifier: Apache-2.0 */
/* From fetched blobs to a durable image: layers are unpacked, then it is published. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/image/store_layout.h"
#include "agent/image/pull.h"
#include "base/fs.h"
#include "base/log.h"

#define TRIES_MAX 2 /* of fetching, if a blob turns out to be wrong */

/* ---- unpacking ---- */

static void pull_unpack_after_layers(struct pull *pull)
{
    struct aq_error err = pull->err;
    bool is_wrong = err.code == EBADMSG;

    if (!err.code) {
        pull_publish(pull, true);
        return;
    }
    if (fs_is_full(err.code) && pull_make_room(pull, &pull->err) == -EINPROGRESS)
        return;
    if (is_wrong && ++pull->tries < TRIES_MAX) {
        log_warning("image %s: %s; fetching again", pull->ref.text, err.text);
        pull_fetch(pull);
        return;
    }
    (void)aq_error_wrap(&pull->err, "image '%.80s'", pull->ref.text);
    (void)snprintf(pull->err.field, sizeof(pull->err.field), "image");
    if (!pull->err.kind)
        pull->err.kind = fs_is_full(err.code) ? "image-no-space"
                         : is_wrong           ? "image-damaged"
                                              : "image-unpack-failed";
    pull_failed(pull, &pull->err);
}

static void pull_unpack_on_layer_done(void *data, const struct aq_error *err)
{
    struct pull_waiter *w = data;
    struct pull *pull = w->pull;
    size_t i = (size_t)(w - pull->waiters);

    w->is_waiting = false;
    pull->waiting--;
    if (err->code && !pull->err.code)
        pull->err = *err;
    if (err->code == EBADMSG)
        pull_directory_remove_blob(&pull->directory, pull->directory.layers[i].digest);
    if (pull->waiting == 0)
        pull_unpack_after_layers(pull);
}

static void pull_unpack_on_layer_progress(void *data)
{
    struct pull *pull = ((struct pull_waiter *)data)->pull;
    int64_t done = 0;

    for (size_t i = 0; i < pull->manifest.layer_count; i++) {
        const struct pull_waiter *w = &pull->waiters[i];

        done += w->is_waiting ? AQ_MIN(w->layer->done_bytes, pull->directory.layers[i].size_bytes)
                              : pull->directory.layers[i].size_bytes;
    }
    pull_tell(pull, IMAGE_UNPACKING, done);
}

bool pull_must_unpack(const struct pull *pull, size_t i)
{
    const struct image_layer *layer = pull->waiters[i].layer;

    return layer && !layer_is_of_blob(layer, pull->directory.layers[i].digest);
}

static void unpack_layer(struct pull *pull, size_t i)
{
    struct pull_waiter *w = &pull->waiters[i];
    const char *digest = pull->directory.layers[i].digest;

    free(w->blob);
    w->blob = pull_directory_blob_path(&pull->directory, digest);
    w->waiter = (struct layer_waiter){ .on_done = pull_unpack_on_layer_done,
                                       .on_progress = pull_unpack_on_layer_progress,
                                       .data = w,
                                       .blob = w->blob,
                                       .blob_digest = digest };
    layer_unpack_blob(w->layer, &w->waiter);
    w->is_waiting = true;
    pull->waiting++;
}

void pull_unpack(struct pull *pull)
{
    pull->err = (struct aq_error){ 0 };
    for (size_t i = 0; i < pull->manifest.layer_count; i++)
        if (pull_must_unpack(pull, i))
            unpack_layer(pull, i);
    if (pull->waiting == 0)
        pull_publish(pull, true);
    else
        pull_unpack_on_layer_progress(&pull->waiters[0]);
}

/* ---- publishing ---- */

static void pull_unpack_on_publish(uv_work_t *work)
{
    struct pull *pull = work->data;

    (void)publish(&pull->publication, &pull->work_err);
}

static void pull_unpack_after_publish(struct pull *pull, const struct aq_error *failure)
{
    struct images *images = pull->images;
    struct image_record *record = map_gets(&images->records, pull->digest);
    struct aq_error err = *failure;

    if (!err.code && !record)
        (void)index_read_record(images, layout_digest_hex(pull->digest), &record, &err);
    if (!err.code)
        index_bind(images, pull->ref.text, pull->architecture, record);
    if (fs_is_full(err.code) && pull->waiters && pull_make_room(pull, &err) == -EINPROGRESS)
        return;
    if (fs_is_full(err.code) && !err.kind) {
        (void)aq_error_wrap(&err, "image '%.80s'", pull->ref.text);
        err.kind = "image-no-space";
    }
    if (err.code) {
        pull_failed(pull, &err);
        return;
    }
    log_info("image %s is here (%s, %lld bytes)", pull->ref.text, pull->digest,
             (long long)record->size_bytes);
    images_changed(images);
    pull_ready(pull, record);
}

void pull_publish(struct pull *pull, bool is_new)
{
    const char *user = pull_user(pull);

    pull->publication = (struct publication){
        .directory = pull->images->directory,
        .digest = pull->digest,
        .name = pull->ref.text,
        .image_name_key = pull->key,
        .architecture = pull->architecture,
        .manifest = is_new ? pull->manifest_text.data : NULL,
        .manifest_len = pull->manifest_text.len,
        .user = user ? user : "",
        .config = pull->config_text.data,
        .config_len = pull->config_text.len,
        .diff_ids = pull->config.diff_ids,
        .diff_count = pull->config.diff_count,
        .pull_directory = pull->directory.path,
    };
    pull_work(pull, pull_unpack_on_publish, pull_unpack_after_publish);
}
