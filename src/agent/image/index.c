/* SPDX-License-Identifier: Apache-2.0 */
/* index.c - which images the store has, and what their names mean */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "agent/image/store_layout.h"
#include "agent/image/images_internal.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/memory.h"

#define NAME_FILE_MAX 2048
#define USER_FILE_MAX 128

void digest_compute(const void *bytes, size_t len, char ret[DIGEST_TEXT_MAX])
{
    unsigned char digest[SHA256_DIGEST_LENGTH];

    (void)SHA256(bytes, len, digest);
    (void)strcpy(ret, "sha256:");
    for (size_t i = 0; i < sizeof(digest); i++)
        (void)snprintf(ret + 7 + 2 * i, 3, "%02x", digest[i]);
}

char *image_name_key(const char *name, const char *architecture)
{
    AQ_CLEANUP(aq_freep) char *both = aq_format("%s\n%s", architecture, name);
    char digest[DIGEST_TEXT_MAX];

    digest_compute(both, strlen(both), digest);
    return aq_strdup(layout_digest_hex(digest));
}

/* ---- records ---- */

/* Nothing below is seen. Overlayfs does not look at the attribute of a layer's own root. */
static bool index_is_opaque(const char *root)
{
    char value[4];

    return getxattr(root, "trusted.overlay.opaque", value, sizeof(value)) > 0;
}

/* Topmost first. A layer that is there twice counts where it is topmost: what
 * it does below, it does again above, and overlayfs takes no directory twice.
 */
static int index_stack_layers(struct images *images, const char *hex, struct image_record *record,
                              struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *parents = aq_format("%s/images/%s/parents", images->directory, hex);
    const char *const *ids = record->config.diff_ids;
    bool hides = false;
    struct stat st;

    record->lowers = aq_alloc_array(record->config.diff_count + 1, sizeof(*record->lowers));
    if (stat(parents, &st) == 0)
        record->lowers[record->lower_count++] = AQ_TAKE(parents);
    for (size_t i = record->config.diff_count; !hides && i-- > 0;) {
        const struct image_layer *layer = map_gets(&images->layers, ids[i]);
        bool is_again = false;
        char *path;

        if (!layer || !layer->is_here)
            return aq_fail(err, ENOENT, "its layer %s is missing", ids[i]);
        for (size_t k = i + 1; k < record->config.diff_count; k++)
            is_again = is_again || strcmp(ids[i], ids[k]) == 0;
        if (is_again)
            continue;
        record->size_bytes += layer->size_bytes;
        path = aq_format("%s/layers/%s/fs", images->directory, layout_digest_hex(ids[i]));
        record->lowers[record->lower_count++] = path;
        hides = index_is_opaque(path);
    }
    return 0;
}

static int index_read_config(struct images *images, const char *hex, struct image_record *record,
                             struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/images/%s/config.json", images->directory, hex);
    struct stat st;
    int r = fs_read(AT_FDCWD, path, IMAGE_CONFIG_MAX, &text, err);

    if (r == 0 && stat(path, &st) == 0)
        record->fetched_usec = st.st_mtim.tv_sec * USEC_PER_SEC;
    return r < 0 ? r : image_config_parse(text.data, text.len, &record->config, err);
}

/* When it was used last, and whose it is. */
static void index_read_stamp(struct image_record *record)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf user = STRBUF_INIT;
    struct stat st;

    if (stat(record->stamp, &st) == 0)
        record->used_usec = st.st_mtim.tv_sec * USEC_PER_SEC + st.st_mtim.tv_nsec / 1000;
    if (fs_read(AT_FDCWD, record->stamp, USER_FILE_MAX, &user, NULL) == 0 && user.len)
        record->user = strbuf_steal(&user);
}

int index_read_record(struct images *images, const char *hex, struct image_record **ret,
                      struct aq_error *err)
{
    AQ_CLEANUP(image_record_unrefp) struct image_record *record = image_record_new();
    int r;

    record->digest = aq_format("sha256:%s", hex);
    record->stamp = aq_format("%s/images/%s/used", images->directory, hex);
    r = index_read_config(images, hex, record, err);
    if (r == 0)
        r = index_stack_layers(images, hex, record, err);
    if (r < 0)
        return r;
    index_read_stamp(record);
    map_sets(&images->records, record->digest, record);
    record->images = images;
    for (size_t i = 0; i < record->config.diff_count; i++)
        ((struct image_layer *)map_gets(&images->layers, record->config.diff_ids[i]))->users++;
    *ret = AQ_TAKE(record);
    return 0;
}

void index_drop(struct images *images, struct image_record *record)
{
    for (size_t i = images->names.count; i-- > 0;) {
        struct image_name *name = images->names.entries[i].value;

        if (name->record != record)
            continue;
        (void)map_removes(&images->names, images->names.entries[i].key);
        free(name->text);
        free(name);
    }
    for (size_t i = 0; i < record->config.diff_count; i++) {
        struct image_layer *layer = map_gets(&images->layers, record->config.diff_ids[i]);

        if (layer)
            layer_unuse(layer);
    }
    (void)map_removes(&images->records, record->digest);
    record->images = NULL;
    image_record_unref(record);
}

/* ---- names ---- */

void index_bind(struct images *images, const char *text, const char *architecture,
                struct image_record *record)
{
    AQ_CLEANUP(aq_freep) char *key = image_name_key(text, architecture);
    struct image_name *name = map_gets(&images->names, key);

    if (!name) {
        name = aq_alloc(sizeof(*name));
        name->text = aq_strdup(text);
        map_sets(&images->names, key, name);
    }
    name->record = record;
}

struct image_record *index_find(struct images *images, const char *text, const char *architecture)
{
    AQ_CLEANUP(aq_freep) char *key = NULL;
    struct image_name *name;

    if (digest_is_valid(text))
        return map_gets(&images->records, text);
    key = image_name_key(text, architecture);
    name = map_gets(&images->names, key);
    return name ? name->record : NULL;
}

/* "DIGEST\nARCHITECTURE\nNAME\n". A name that means nothing any more is removed. */
static void index_read_name(struct images *images, const char *path)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char *parts[3], *at;
    struct image_record *record;
    size_t count = 0;

    if (fs_read(AT_FDCWD, path, NAME_FILE_MAX, &text, NULL) < 0)
        return;
    for (at = text.data; count < 3 && strchr(at, '\n'); count++) {
        parts[count] = at;
        at = strchr(at, '\n');
        *at++ = '\0';
    }
    record = count == 3 ? map_gets(&images->records, parts[0]) : NULL;
    if (record)
        index_bind(images, parts[2], parts[1], record);
    else
        (void)fs_remove_tree(AT_FDCWD, path, NULL);
}

/* ---- at the start ---- */

static void index_load_record(struct images *images, const char *path, const char *name)
{
    struct aq_error err = { 0 };
    struct image_record *record;

    /* what was being made or removed has no meaning */
    if (name[0] == '.') {
        gc_add_garbage(images, path);
        return;
    }
    if (index_read_record(images, name, &record, &err) == 0)
        return;
    log_warning("the image sha256:%s is not usable and will be fetched again: %s", name, err.text);
    (void)fs_remove_tree(AT_FDCWD, path, NULL);
}

static int index_each_entry(struct images *images, const char *directory,
                            void (*fn)(struct images *images, const char *path, const char *name),
                            struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = images_path(images, directory);
    DIR *dir = opendir(path);
    struct dirent *entry;

    if (!dir)
        return aq_fail_errno(err, "open '%s'", path);
    while ((entry = readdir(dir))) {
        AQ_CLEANUP(aq_freep) char *item = aq_format("%s/%s", path, entry->d_name);

        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            fn(images, item, entry->d_name);
    }
    (void)closedir(dir);
    return 0;
}

static void index_load_name(struct images *images, const char *path, const char *name)
{
    if (strchr(name, '.'))
        (void)fs_remove_tree(AT_FDCWD, path, NULL);
    else
        index_read_name(images, path);
}

int index_load(struct images *images, struct aq_error *err)
{
    int r = index_each_entry(images, "images", index_load_record, err);

    return r < 0 ? r : index_each_entry(images, "names", index_load_name, err);
}

void index_done(struct images *images)
{
    for (size_t i = 0; i < images->names.count; i++) {
        struct image_name *name = images->names.entries[i].value;

        free(name->text);
        free(name);
    }
    for (size_t i = 0; i < images->records.count; i++) {
        struct image_record *record = images->records.entries[i].value;

        record->images = NULL;
        image_record_unref(record);
    }
    map_done(&images->names);
    map_done(&images->records);
}
