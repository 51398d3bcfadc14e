/* SPDX-License-Identifier: Apache-2.0 */
/* pull_directory.c - the directory of a pull on disk; used by worker threads */
#include "agent/image/pull_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/image/store_layout.h"
#include "base/fault.h"
#include "base/fs.h"

#define PART_PREFIX "oci-put-blob"         /* how skopeo names a blob that it is fetching */
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

    if (path)
        (void)unlink(path);
}

static bool pull_directory_is_placeholder(const struct stat *st)
{
    return (st->st_mode & 0777) == 0;
}

/* Bytes in halves of blobs; with 'remove' they go. */
static int64_t pull_directory_sum_parts(const struct pull_directory *directory, bool remove)
{
    DIR *dir = opendir(directory->path);
    struct dirent *entry;
    int64_t sum = 0;
    struct stat st;

    while (dir && (entry = readdir(dir))) {
        if (strncmp(entry->d_name, PART_PREFIX, strlen(PART_PREFIX)) != 0)
            continue;
        if (remove)
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
        else if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            sum += st.st_size;
    }
    if (dir)
        (void)closedir(dir);
    return sum;
}

int64_t pull_directory_measure(const struct pull_directory *directory, bool *ret_too_many)
{
    int64_t sum = 0, all = 0;

    for (size_t i = 0; i < directory->layer_count; i++) {
        AQ_CLEANUP(aq_freep) char *path = pull_directory_blob_path(directory,
                                                                   directory->layers[i].digest);
        struct stat st;

        all += directory->layers[i].size_bytes;
        if (path && lstat(path, &st) == 0)
            sum += directory->layers[i].size_bytes;
    }
    /* after the blobs: one that is renamed meanwhile is missed, not counted twice */
    sum += pull_directory_sum_parts(directory, false);
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
    bool is_there;

    if (!path)
        return aq_fail_oom(err);
    is_there = lstat(path, &st) == 0;
    if (is_there && pull_directory_is_placeholder(&st) && !layer->is_here) {
        if (unlink(path) < 0)
            return aq_fail_errno(err, "remove '%s'", path);
        is_there = false;
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
    int64_t missing = 0;
    size_t count = 0;
    int r = blobs ? fs_mkdirs(blobs, 0700, err) : aq_fail_oom(err);

    if (r < 0)
        return r;
    (void)pull_directory_sum_parts(directory, true);
    for (size_t i = 0; i < directory->layer_count; i++) {
        r = pull_directory_prepare_blob(directory, &directory->layers[i], err);
        if (r < 0)
            return r;
        if (r > 0) {
            missing += directory->layers[i].size_bytes;
            directory->only_missing = count++ ? NULL : &directory->layers[i];
        }
    }
    AQ_FAULT("agent.image.prepared");
    *ret_missing = missing;
    return 0;
}
