/* SPDX-License-Identifier: Apache-2.0 */
/* pull_directory.c - the directory of a pull on disk; used by worker threads */
#include "agent/image/pull_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/image/store_layout.h"
#include "base/fault.h"
#include "base/fs.h"

#define PART_PREFIX "oci-put-blob"         /* how skopeo names a blob that it is fetching */
#define KEPT_LEAST (64 << 10)              /* bytes that are worth another request */
#define NOT_LAYERS_MAX (INT64_C(16) << 20) /* configuration and manifest, which it fetches, too */

char *pull_directory_blob_path(const struct pull_directory *directory, const char *digest)
{
    return aq_format("%s/blobs/sha256/%s", directory->path, layout_digest_hex(digest));
}

char *pull_directory_view_path(const struct pull_directory *directory)
{
    return aq_format("%s/source", directory->path);
}

void pull_directory_remove_blob(const struct pull_directory *directory, const char *digest)
{
    AQ_CLEANUP(aq_freep) char *path = pull_directory_blob_path(directory, digest);

    (void)unlink(path);
}

static bool pull_directory_is_placeholder(const struct stat *st)
{
    return (st->st_mode & 0777) == 0;
}

/* ---- partial files ---- */

static bool pull_directory_begins(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Calls 'fn' for each file of the directory whose name begins with 'prefix'. */
static void pull_directory_each(const struct pull_directory *directory, const char *prefix,
                                void (*fn)(int dirfd, const char *name, int64_t *sum), int64_t *sum)
{
    DIR *dir = opendir(directory->path);
    struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (pull_directory_begins(entry->d_name, prefix))
            fn(dirfd(dir), entry->d_name, sum);
    if (dir)
        (void)closedir(dir);
}

static void pull_directory_add_size(int dirfd, const char *name, int64_t *sum)
{
    struct stat st;

    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        *sum += st.st_size;
}

static void pull_directory_remove_part(int dirfd, const char *name, int64_t *sum)
{
    (void)sum;
    (void)unlinkat(dirfd, name, 0);
}

static void pull_directory_link_part(int dirfd, const char *name, int64_t *sum)
{
    char kept[256 + sizeof(PULL_KEPT_PREFIX)];

    (void)sum;
    (void)snprintf(kept, sizeof(kept), PULL_KEPT_PREFIX "%s", name);
    if (linkat(dirfd, name, dirfd, kept, 0) < 0)
        return; /* it has the second name already, or skopeo has removed it */
}

/* The other name of the file may be that of a complete blob; and a few bytes are not worth it. */
static void pull_directory_sift_kept(int dirfd, const char *name, int64_t *sum)
{
    struct stat st;

    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if (st.st_nlink > 1 || st.st_size < KEPT_LEAST)
        (void)unlinkat(dirfd, name, 0);
    else
        *sum += st.st_size;
}

void pull_directory_keep_parts(const struct pull_directory *directory)
{
    pull_directory_each(directory, PART_PREFIX, pull_directory_link_part, NULL);
}

/* Bytes in what is left of earlier tries, after the useless was removed. */
static int64_t pull_directory_sift_parts(const struct pull_directory *directory)
{
    int64_t sum = 0;

    if (directory->keeps_parts)
        pull_directory_keep_parts(directory);
    pull_directory_each(directory, PART_PREFIX, pull_directory_remove_part, NULL);
    if (directory->keeps_parts) {
        pull_directory_each(directory, PULL_KEPT_PREFIX, pull_directory_sift_kept, &sum);
        pull_directory_each(directory, PULL_PART_PREFIX, pull_directory_add_size, &sum);
    } else {
        pull_directory_each(directory, PULL_KEPT_PREFIX, pull_directory_remove_part, NULL);
        pull_directory_each(directory, PULL_PART_PREFIX, pull_directory_remove_part, NULL);
    }
    return sum;
}

int pull_directory_write_missing(const struct pull_directory *directory, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/" PULL_MISSING_FILE, directory->path);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    for (size_t i = 0; i < directory->layer_count; i++)
        if (!directory->layers[i].is_here)
            strbuf_addf(&text, "%s %lld\n", directory->layers[i].digest,
                        (long long)directory->layers[i].size_bytes);
    return fs_write_quick(AT_FDCWD, path, text.data, text.len, 0600, err);
}

/* ---- measuring and preparing ---- */

int64_t pull_directory_measure(const struct pull_directory *directory, bool *ret_too_many)
{
    int64_t sum = 0, all = 0;

    for (size_t i = 0; i < directory->layer_count; i++) {
        AQ_CLEANUP(aq_freep) char *path = pull_directory_blob_path(directory,
                                                                   directory->layers[i].digest);
        struct stat st;

        all += directory->layers[i].size_bytes;
        if (lstat(path, &st) == 0)
            sum += directory->layers[i].size_bytes;
    }
    /* after the blobs: one that is renamed meanwhile is missed, not counted twice */
    pull_directory_each(directory, PART_PREFIX, pull_directory_add_size, &sum);
    pull_directory_each(directory, PULL_PART_PREFIX, pull_directory_add_size, &sum);
    *ret_too_many = sum > all + NOT_LAYERS_MAX;
    return AQ_MIN(sum, all);
}

/* Returns whether the blob has to be fetched, or -errno. */
static int pull_directory_prepare_blob(const struct pull_directory *directory,
                                       const struct pull_layer *layer, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = pull_directory_blob_path(directory, layer->digest);
    AQ_CLEANUP(aq_closep) int fd = -1;
    struct stat st;
    bool is_there = lstat(path, &st) == 0;

    if (is_there && pull_directory_is_placeholder(&st) && !layer->is_here) {
        if (unlink(path) < 0)
            return aq_fail_errno(err, "remove '%s'", path);
        is_there = false;
    }
    if (is_there || layer->is_here) {
        AQ_CLEANUP(aq_freep) char *part = aq_format("%s/" PULL_PART_PREFIX "%s", directory->path,
                                                    layout_digest_hex(layer->digest));

        (void)unlink(part);
    }
    if (is_there || !layer->is_here)
        return !is_there;
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0);
    if (fd < 0 || ftruncate(fd, layer->size_bytes) < 0)
        return aq_fail_errno(err, "make '%s'", path);
    return 0;
}

int pull_directory_prepare(struct pull_directory *directory, int64_t *ret_missing,
                           struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *blobs = aq_format("%s/blobs/sha256", directory->path);
    int64_t missing = 0, parts;
    size_t count = 0;
    int r = fs_mkdirs(blobs, 0700, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < directory->layer_count; i++) {
        r = pull_directory_prepare_blob(directory, &directory->layers[i], err);
        if (r < 0)
            return r;
        if (r > 0) {
            missing += directory->layers[i].size_bytes;
            directory->only_missing = count++ ? NULL : &directory->layers[i];
        }
    }
    parts = pull_directory_sift_parts(directory);
    directory->has_parts = parts > 0;
    directory->missing_count = count;
    AQ_FAULT("agent.image.prepared");
    *ret_missing = AQ_MAX(missing - parts, 0);
    return 0;
}
