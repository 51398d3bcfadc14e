/* SPDX-License-Identifier: Apache-2.0 */
/* volume.c - see volume.h */
#include "storage/volume.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fs.h"
#include "base/strbuf.h"
#include "storage/copy.h"
#include "storage/tree.h"
#include "transfer/beneath.h"
#include "transfer/volume_layout.h"

#define PURGE_PREFIX ".purge-"
#define COPY_PREFIX ".copy-"
#define FOLDER_MODE 0755
#define TRIES 8 /* against a purge beside it, which removes empty directories */

static bool volume_has_mark(int root)
{
    return faccessat(root, VOLUME_MARK, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool volume_was_seen(const struct volume_dir *volume)
{
    return access(volume->seen, F_OK) == 0;
}

bool volume_is_away(const struct volume_dir *volume)
{
    AQ_CLEANUP(aq_closep) int root = open(volume->path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    return root >= 0 && !volume_has_mark(root) && volume_was_seen(volume);
}

static int volume_judge_mode(const char *path, const struct stat *st, struct aq_error *err)
{
    if (!(st->st_mode & S_IRWXO))
        return 0;
    return aq_fail(err, EPERM,
                   "the volume '%s' has mode %04o, so that other users of this machine could run "
                   "setuid programs in its folders: chmod 0700 %s",
                   path, st->st_mode & 07777, path);
}

int volume_check_mode(const struct volume_dir *volume, struct aq_error *err)
{
    struct stat st;

    return volume_is_away(volume) || stat(volume->path, &st) < 0
               ? 0
               : volume_judge_mode(volume->path, &st, err);
}

static int volume_make_mark(int root, const struct volume_dir *volume, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int mark = -1, seen = -1;

    if (!volume_has_mark(root)) {
        if (volume_was_seen(volume))
            return aq_fail(err, ENODEV, "the volume '%s' has no %s: perhaps it is not mounted",
                           volume->name, VOLUME_MARK);
        mark = openat(root, VOLUME_MARK, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (mark < 0)
            return aq_fail_errno(err, "mark the volume '%s'", volume->path);
    } else if (volume_was_seen(volume)) {
        return 0;
    }
    seen = open(volume->seen, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    return seen < 0 ? aq_fail_errno(err, "'%s'", volume->seen) : 0;
}

/* One that cannot be marked is used all the same, as it may be for reading. */
static int volume_open(const struct volume_dir *volume, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int root = open(volume->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct aq_error why = { 0 };
    struct stat st;

    if (root < 0 && errno != ENOENT)
        return aq_fail_errno(err, "the volume '%s'", volume->name);
    if (root < 0)
        return aq_fail(err, ENODEV, "the volume '%s' is not there", volume->name);
    if (volume_make_mark(root, volume, &why) == -ENODEV)
        return aq_fail(err, ENODEV, "%s", why.text);
    if (fstat(root, &st) < 0)
        return aq_fail_errno(err, "the volume '%s'", volume->name);
    if (volume_judge_mode(volume->path, &st, NULL) < 0)
        return aq_fail(err, ENODEV,
                       "the volume '%s' can be entered by other users of its storage host; an "
                       "administrator finds the remedy by 'aliquot-storage check storage'",
                       volume->name);
    return AQ_TAKE_FD(root);
}

int volume_mark(const struct volume_dir *volume, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int root = volume_open(volume, err);

    return root < 0 ? root : volume_make_mark(root, volume, err);
}

/* A quota of the file system becomes ENOSPC: EDQUOT is for the quota of a folder. */
static int volume_fail(struct aq_error *err, int code, const char *what)
{
    return aq_fail(err, fs_is_full(code) ? ENOSPC : code, "%s: %s", what, fs_explain(code));
}

static int volume_fail_absent(struct aq_error *err)
{
    return aq_fail(err, ENOENT, "the folder is not on this volume");
}

int volume_open_folder(const struct volume_dir *volume, const struct uuid *id, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int root = volume_open(volume, err);
    char path[VOLUME_FOLDER_MAX];
    int fd;

    if (root < 0)
        return root;
    fd = beneath_open(root, volume_layout_path(id, path), O_PATH | O_DIRECTORY, true);
    if (fd == -ENOENT)
        return volume_fail_absent(err);
    return fd < 0 ? aq_fail(err, -fd, "the folder: %s", strerror(-fd)) : fd;
}

/* 0 or -errno */
static int volume_make(int root, const char *path)
{
    const char *name;
    AQ_CLEANUP(aq_closep) int parent = beneath_open_parent(root, path, true, true, &name);
    AQ_CLEANUP(aq_closep) int synced = -1;

    if (parent < 0)
        return parent;
    if (mkdirat(parent, name, FOLDER_MODE) < 0)
        return -errno;
    synced = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (synced < 0 || fsync(synced) < 0)
        return -errno;
    return 0;
}

int volume_create_folder(const struct volume_dir *volume, const struct uuid *id,
                         struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int root = volume_open(volume, err);
    char path[VOLUME_FOLDER_MAX];
    int r = -ENOENT;

    if (root < 0)
        return root;
    (void)volume_layout_path(id, path);
    for (int i = 0; r == -ENOENT && i < TRIES; i++)
        r = volume_make(root, path);
    if (r == -EEXIST)
        return aq_fail(err, EEXIST, "the folder is on this volume already");
    return r < 0 ? volume_fail(err, -r, "make the folder") : 0;
}

int volume_drop_folder(const struct volume_dir *volume, const struct uuid *id, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int root = volume_open(volume, err);
    const struct uuid unique = uuid_random();
    char path[VOLUME_FOLDER_MAX], name[sizeof(PURGE_PREFIX) + UUID_TEXT_MAX], text[UUID_TEXT_MAX];

    if (root < 0)
        return root;
    (void)volume_layout_path(id, path);
    (void)snprintf(name, sizeof(name), PURGE_PREFIX "%s", uuid_format(&unique, text));
    if (renameat(root, path, root, name) < 0)
        return errno == ENOENT ? 0 : volume_fail(err, errno, "drop the folder");
    if (fsync(root) < 0)
        return aq_fail_errno(err, "the volume '%s'", volume->name);
    AQ_FAULT("storage.folder.dropped");
    for (int i = 0; i < 2; i++) { /* what it lay in, if nothing else does */
        *strrchr(path, '/') = '\0';
        (void)unlinkat(root, path, AT_REMOVEDIR);
    }
    return 0;
}

/* 0 or -errno: give what is called 'name' in the volume its place. */
static int volume_place(int root, const char *name, const char *path)
{
    const char *last;
    AQ_CLEANUP(aq_closep) int parent = beneath_open_parent(root, path, true, true, &last);

    if (parent < 0)
        return parent;
    if (renameat2(root, name, parent, last, RENAME_NOREPLACE) < 0
        && (errno != EINVAL || renameat(root, name, parent, last) < 0))
        return errno == ENOTEMPTY ? -EEXIST : -errno;
    return fsync(root) < 0 ? -errno : 0;
}

static int volume_copy(int root, int from, const char *name, const struct uuid *to, uint64_t quota,
                       _Atomic uint64_t *done, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int copy = -1;
    char path[VOLUME_FOLDER_MAX];
    int r = -ENOENT;

    if (mkdirat(root, name, FOLDER_MODE) < 0
        || (copy = openat(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        return volume_fail(err, errno, "make the folder");
    if ((r = copy_tree(from, copy, FOLDER_UPLOADS, quota, done, err)) < 0)
        return r;
    if (syncfs(copy) < 0)
        return volume_fail(err, errno, "copy the folder");
    AQ_FAULT("storage.clone.copied");
    (void)volume_layout_path(to, path);
    r = -ENOENT;
    for (int i = 0; r == -ENOENT && i < TRIES; i++)
        r = volume_place(root, name, path);
    return r < 0 ? volume_fail(err, -r, "make the folder") : 0;
}

int volume_clone_folder(const struct volume_dir *volume, const struct uuid *id,
                        const struct uuid *to, uint64_t quota, _Atomic uint64_t *done,
                        struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int root = volume_open(volume, err);
    AQ_CLEANUP(aq_closep) int from = root < 0 ? root : volume_open_folder(volume, id, err);
    char name[sizeof(COPY_PREFIX) + UUID_TEXT_MAX], text[UUID_TEXT_MAX];
    const struct uuid unique = uuid_random();
    int r;

    if (from < 0)
        return from;
    (void)snprintf(name, sizeof(name), COPY_PREFIX "%s", uuid_format(&unique, text));
    r = volume_copy(root, from, name, to, quota, done, err);
    if (r < 0)
        (void)tree_remove(root, name, NULL, NULL);
    return r;
}

static void volume_close_dirp(DIR **dir)
{
    if (*dir)
        (void)closedir(*dir);
}

static bool volume_has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

int volume_purge(const struct volume_dir *volume, bool is_first, struct aq_error *err)
{
    int fd = volume_open(volume, err), r = 0;
    AQ_CLEANUP(volume_close_dirp) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (fd < 0)
        return fd;
    if (!dir) {
        r = aq_fail_errno(err, "the volume '%s'", volume->name);
        aq_closep(&fd);
        return r;
    }
    while ((entry = readdir(dir))) /* what cannot be removed keeps nothing else */
        if (volume_has_prefix(entry->d_name, PURGE_PREFIX)
            || (is_first && volume_has_prefix(entry->d_name, COPY_PREFIX))) {
            r = AQ_MIN(tree_remove(fd, entry->d_name, NULL, err), r);
            AQ_FAULT("storage.purge.removed");
        }
    return r;
}
