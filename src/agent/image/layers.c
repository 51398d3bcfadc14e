/* SPDX-License-Identifier: Apache-2.0 */
/* layers.c - unpacked layers: who uses them, and aliquot-unpack for those that are missing */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "agent/image/store_layout.h"
#include "agent/image/images_internal.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/memory.h"

#define LINE_MAX_BYTES 1024
#define LAYER_FACTS_MAX 4096

/* ---- which there are ---- */

static void layer_free(struct image_layer *layer)
{
    free(layer->diff_id);
    free(layer->blob);
    free(layer->blob_digest);
    free(layer->verified);
    strbuf_done(&layer->line);
    free(layer);
}

struct image_layer *layer_use(struct images *images, const char *diff_id)
{
    struct image_layer *layer = map_gets(&images->layers, diff_id);

    if (!layer) {
        layer = aq_alloc(sizeof(*layer));
        layer->images = images;
        list_init(&layer->queue);
        list_init(&layer->waiters);
        strbuf_init(&layer->line);
        layer->diff_id = aq_strdup(diff_id);
        map_sets(&images->layers, diff_id, layer);
    }
    layer->users++;
    return layer;
}

void layer_unuse(struct image_layer *layer)
{
    if (--layer->users)
        return;
    layer->seen_usec = clock_realtime_usec();
    if (layer->is_here || layer->tool)
        return; /* the garbage collector's */
    (void)map_removes(&layer->images->layers, layer->diff_id);
    layer_free(layer);
}

bool layer_is_of_blob(const struct image_layer *layer, const char *blob_digest)
{
    return layer->is_here && layer->verified && strcmp(layer->verified, blob_digest) == 0;
}

static void layers_set_verified(struct image_layer *layer, const char *blob_digest)
{
    free(layer->verified);
    layer->verified = aq_strdup(blob_digest);
}

static void layers_read_facts(struct image_layer *layer)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/layers/%s/layer.json", layer->images->directory,
                                                layout_digest_hex(layer->diff_id));
    json_t *facts;

    layer->is_here = true; /* the directory has its name only when it is complete */
    if (fs_read(AT_FDCWD, path, LAYER_FACTS_MAX, &text, NULL) < 0)
        return;
    facts = json_loadb(text.data, text.len, 0, NULL);
    layer->size_bytes = json_integer_value(json_object_get(facts, "size_bytes"));
    layers_set_verified(layer, json_string_value(json_object_get(facts, "blob")));
    json_decref(facts);
}

static void layers_load_layer(struct images *images, const char *directory, const char *name)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", directory, name);
    char diff_id[DIGEST_TEXT_MAX + 8];
    struct image_layer *layer;

    (void)snprintf(diff_id, sizeof(diff_id), "sha256:%.64s", name);
    if (!digest_is_valid(diff_id)) {
        gc_add_garbage(images, path);
        return;
    }
    layer = layer_use(images, diff_id);
    layers_read_facts(layer);
    layer->users--;
    layer->seen_usec = clock_realtime_usec();
}

int layers_load(struct images *images, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *directory = images_path(images, "layers");
    DIR *dir = opendir(directory);
    struct dirent *entry;

    if (!dir)
        return aq_fail_errno(err, "open '%s'", directory);
    while ((entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            layers_load_layer(images, directory, entry->d_name);
    (void)closedir(dir);
    return 0;
}

void layers_done(struct images *images)
{
    for (size_t i = 0; i < images->layers.count; i++) {
        struct image_layer *layer = images->layers.entries[i].value;

        tool_stop(layer->tool);
        layer_free(layer);
    }
    map_done(&images->layers);
}

/* ---- unpacking one ---- */

static void layers_start_waiting(struct images *images);

/* The first who waits for the blob that was unpacked; NULL = none does. */
static struct layer_waiter *layer_find_waiter(struct image_layer *layer)
{
    LIST_FOREACH(it, &layer->waiters) {
        struct layer_waiter *waiter = LIST_ENTRY(it, struct layer_waiter, link);

        if (strcmp(waiter->blob_digest, layer->blob_digest) == 0)
            return waiter;
    }
    return NULL;
}

/* Queues the blob of the first who waits. */
static void layer_begin(struct image_layer *layer)
{
    const struct layer_waiter *first = LIST_ENTRY(layer->waiters.next, struct layer_waiter, link);

    free(layer->blob);
    free(layer->blob_digest);
    layer->blob = aq_strdup(first->blob);
    layer->blob_digest = aq_strdup(first->blob_digest);
    layer->done_bytes = 0;
    list_add(&layer->images->unpacking, &layer->queue);
}

static void layer_ended(struct image_layer *layer)
{
    struct images *images = layer->images;
    const struct aq_error err = layer->err;
    struct layer_waiter *waiter;

    layer->users++; /* the callbacks let go of it */
    while ((waiter = layer_find_waiter(layer))) {
        list_remove(&waiter->link);
        waiter->on_done(waiter->data, &err); /* may make others leave */
    }
    if (!list_is_empty(&layer->waiters) && list_is_empty(&layer->queue))
        layer_begin(layer);
    layer_unuse(layer);
    layers_start_waiting(images);
}

/* One that is told may cancel the pulls of others. */
static void layers_tell(struct image_layer *layer)
{
    AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;
    struct list *it;

    list_cursor_begin(&cursor, &layer->waiters);
    while ((it = list_cursor_next(&cursor))) {
        struct layer_waiter *waiter = LIST_ENTRY(it, struct layer_waiter, link);

        waiter->on_progress(waiter->data);
    }
}

/* "progress N", "done" or "failed CODE FIELD TEXT". */
static void layers_read_line(struct image_layer *layer, const char *line)
{
    static const char *const fields[] = { "blob", "diff_id" };
    char field[16] = "";
    long long number;
    int code, at = 0;

    if (sscanf(line, "progress %lld", &number) == 1) {
        layer->done_bytes = number;
        layers_tell(layer);
    } else if (strcmp(line, "done") == 0) {
        layer->is_done = true;
    } else if (sscanf(line, "failed %d %15s %n", &code, field, &at) == 2 && code > 0) {
        (void)aq_fail(&layer->err, code, "layer %.19s…: %s", layer->diff_id, line + at);
        for (size_t i = 0; i < AQ_COUNT(fields); i++)
            if (strcmp(field, fields[i]) == 0)
                (void)snprintf(layer->err.field, sizeof(layer->err.field), "%s", field);
    }
}

static void layers_on_output(void *data, const char *bytes, size_t len)
{
    struct image_layer *layer = data;
    char *end;

    strbuf_add(&layer->line, bytes, len);
    while ((end = memchr(layer->line.data, '\n', layer->line.len))) {
        *end = '\0';
        layers_read_line(layer, layer->line.data);
        strbuf_consume(&layer->line, (size_t)(end - layer->line.data) + 1);
    }
    if (layer->line.len > LINE_MAX_BYTES)
        strbuf_clear(&layer->line);
}

static void layers_on_end(void *data, int status, const char *complaint)
{
    struct image_layer *layer = data;

    layer->tool = NULL;
    layer->images->unpack_count--;
    if (layer->is_done && status == 0) {
        layers_read_facts(layer);
        layers_set_verified(layer, layer->blob_digest);
        layer->err = (struct aq_error){ 0 };
    } else if (!layer->err.code) {
        (void)aq_fail(&layer->err, EIO, "layer %.19s…: aliquot-unpack ended with status %d %.*s",
                      layer->diff_id, status, (int)AQ_MIN(strcspn(complaint, "\n"), 100),
                      complaint);
    }
    layer_ended(layer);
}

static int layers_start_tool(struct image_layer *layer, struct aq_error *err)
{
    static const struct tool_events events = { .on_output = layers_on_output,
                                               .on_end = layers_on_end };
    const struct settings *settings = layer->images->settings;
    AQ_CLEANUP(aq_freep) char *layers = images_path(layer->images, "layers");
    char bytes[24], entries[24], keep[24];

    (void)snprintf(bytes, sizeof(bytes), "%lld", (long long)settings->image_layer_max);
    (void)snprintf(entries, sizeof(entries), "%lld", (long long)settings->image_entries_max);
    (void)snprintf(keep, sizeof(keep), "%lld", (long long)room_kept(layer->images));
    const char *const argv[] = {
        layer->images->unpack_program,
        "--blob",
        layer->blob,
        "--blob-digest",
        layer->blob_digest,
        "--diff-id",
        layer->diff_id,
        "--layers",
        layers,
        "--max-bytes",
        bytes,
        "--max-entries",
        entries,
        "--keep-free",
        keep,
        NULL,
    };
    strbuf_clear(&layer->line);
    layer->is_done = false;
    return tool_start(layer->images->loop, argv, NULL, 0, &events, layer, &layer->tool, err);
}

static void layers_start_waiting(struct images *images)
{
    while (!images->is_closing && images->unpack_count < (size_t)images->settings->image_jobs
           && !list_is_empty(&images->unpacking)) {
        struct image_layer *layer = LIST_ENTRY(images->unpacking.next, struct image_layer, queue);

        list_remove(&layer->queue);
        layer->err = (struct aq_error){ 0 };
        if (layers_start_tool(layer, &layer->err) == 0)
            images->unpack_count++;
        else
            layer_ended(layer);
    }
}

static void layers_on_soon(uv_timer_t *timer)
{
    layers_start_waiting(timer->data);
}

void layer_unpack_blob(struct image_layer *layer, struct layer_waiter *waiter)
{
    list_add(&layer->waiters, &waiter->link);
    if (layer->tool || !list_is_empty(&layer->queue))
        return;
    layer_begin(layer);
    /* not from within: a program that does not start would call back */
    (void)uv_timer_start(&layer->images->unpack_soon, layers_on_soon, 0, 0);
}

void layer_leave(struct image_layer *layer, struct layer_waiter *waiter)
{
    list_remove(&waiter->link);
    if (!list_is_empty(&layer->waiters))
        return;
    list_remove(&layer->queue);
    if (layer->tool) {
        tool_stop(AQ_TAKE(layer->tool));
        layer->images->unpack_count--;
        if (!layer->images->is_closing)
            (void)uv_timer_start(&layer->images->unpack_soon, layers_on_soon, 0, 0);
    }
}
