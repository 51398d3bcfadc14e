/* SPDX-License-Identifier: Apache-2.0 */
/* folder.c - see folder.h */
#include "storage/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fs.h"
#include "base/utf8.h"
#include "transfer/name.h"
#include "storage/tree.h"
#include "transfer/beneath.h"
#include "transfer/volume_layout.h"

/* As beneath_fail(), with the argument that it is about. */
static int folder_fail(struct aq_error *err, int code, const char *field, const char *path)
{
    int r = beneath_fail(err, code, *path ? path : ".");

    if (err)
        (void)snprintf(err->field, sizeof(err->field), "%s", field);
    return r;
}

int folder_clean(const char *field, const char *raw, bool may_be_root, char out[PATH_MAX],
                 struct aq_error *err)
{
    size_t len = strlen(FOLDER_UPLOADS);
    char name[PATH_MAX];
    int r;

    while (*raw == '/') /* clients have it that a folder is their root */
        raw++;
    r = name_read(raw, name, sizeof(name)) ? beneath_clean(name, out, err)
                                           : aq_fail(err, ENAMETOOLONG, "the path is too long");
    if (r == 0 && strncmp(out, FOLDER_UPLOADS, len) == 0 && (out[len] == '/' || !out[len]))
        r = aq_fail(err, EINVAL, "'%s' is the storage's own", FOLDER_UPLOADS);
    if (r == 0 && !*out && !may_be_root)
        r = aq_fail(err, EINVAL, "the path is empty");
    if (r < 0 && err)
        (void)snprintf(err->field, sizeof(err->field), "%s", field);
    return r;
}

int folder_mkdir(int root, const char *path, bool parents, bool exist_ok, struct aq_error *err)
{
    const char *name;
    AQ_CLEANUP(aq_closep) int parent = beneath_open_parent(root, path, false, parents, &name);
    struct stat st;

    if (parent == -ENOENT)
        return aq_fail_field(
            err, ENOENT, "path",
            "'%.200s' is in a directory that is not there; ask for its parents too", path);
    if (parent < 0)
        return folder_fail(err, -parent, "path", path);
    if (mkdirat(parent, name, 0777) == 0)
        return 0;
    if (errno == EEXIST && exist_ok && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0
        && S_ISDIR(st.st_mode))
        return 0;
    return folder_fail(err, errno, "path", path);
}

int folder_stat(int root, const char *path, bool may_be_folder, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = beneath_open(root, path, O_PATH, false);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return folder_fail(err, fd < 0 ? -fd : errno, "path", path);
    if (S_ISREG(st.st_mode) || (S_ISDIR(st.st_mode) && may_be_folder))
        return 0;
    return aq_fail_field(err, S_ISDIR(st.st_mode) ? EISDIR : EINVAL, "path", "'%.200s' is no file",
                         path);
}

int folder_read(int root, const char *path, struct strbuf *out, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = beneath_open(root, path, O_RDONLY | O_NONBLOCK, false);
    size_t from = out->len;
    struct stat st;
    int r;

    if (fd < 0 || fstat(fd, &st) < 0)
        return folder_fail(err, fd < 0 ? -fd : errno, "path", path);
    if (!S_ISREG(st.st_mode))
        return aq_fail_field(err, S_ISDIR(st.st_mode) ? EISDIR : EINVAL, "path",
                             "'%.200s' is not a file", path);
    r = fs_read_fd(fd, path, FOLDER_READ_MAX, out, err);
    if (r == -EFBIG)
        return aq_fail_field(err, EFBIG, "path", "'%.200s' is larger than %d KiB", path,
                             FOLDER_READ_MAX >> 10);
    if (r < 0)
        return folder_fail(err, -r, "path", path);
    if (out->len > from
        && (!utf8_is_valid(out->data + from, out->len - from)
            || memchr(out->data + from, '\0', out->len - from)))
        return aq_fail_field(err, EINVAL, "path", "'%.200s' is not a text in UTF-8", path);
    return 0;
}

/* ---- moving ---- */

/* rename(2) that replaces nothing, also where the file system cannot do that at once. -errno */
static int folder_rename_at(int from, const char *old, int to, const char *name)
{
    struct stat st;

    if (renameat2(from, old, to, name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL || fstatat(from, old, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (fstatat(to, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    return renameat(from, old, to, name) < 0 ? -errno : 0;
}

/* 'dst' is a path for messages. */
static int folder_fail_move(struct aq_error *err, int code, const char *src, const char *field,
                            const char *dst)
{
    if (code == EEXIST)
        return aq_fail_field(err, EEXIST, field,
                             "'%.200s' exists; remove it, or choose another name", dst);
    if (code == EINVAL)
        return aq_fail_field(err, EINVAL, field, "cannot move the directory '%.200s' into itself",
                             src);
    return folder_fail(err, code, field, dst);
}

static int folder_move_at(int root, const char *src, int to, const char *name, const char *field,
                          const char *dst, struct aq_error *err)
{
    const char *old;
    AQ_CLEANUP(aq_closep) int from = beneath_open_parent(root, src, false, false, &old);
    struct stat st;
    int r;

    if (from < 0 || fstatat(from, old, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return folder_fail(err, from < 0 ? -from : errno, "src", src);
    r = folder_rename_at(from, old, to, name);
    return r < 0 ? folder_fail_move(err, -r, src, field, dst) : 0;
}

/* Into the directory 'into', at the path 'dst', under its own name. */
static int folder_move_into(int root, const char *src, int into, const char *dst,
                            struct aq_error *err)
{
    const char *slash = strrchr(src, '/'), *name = slash ? slash + 1 : src;
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s%s%s", dst, *dst ? "/" : "", name);

    if (strcmp(path, FOLDER_UPLOADS) == 0)
        return aq_fail_field(err, EINVAL, "dst",
                             "'%s' is reserved for uploads; choose another name", path);
    return folder_move_at(root, src, into, name, "dst", path, err);
}

int folder_move(int root, const char *src, const char *dst, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int into = beneath_open(root, dst, O_PATH | O_DIRECTORY, false);
    AQ_CLEANUP(aq_closep) int to = -1;
    const char *name;

    if (into >= 0)
        return folder_move_into(root, src, into, dst, err);
    if ((to = beneath_open_parent(root, dst, false, true, &name)) < 0)
        return folder_fail(err, -to, "dst", dst);
    return folder_move_at(root, src, to, name, "dst", dst, err);
}

int folder_rename(int root, const char *path, const char *new_name, struct aq_error *err)
{
    const char *old;
    AQ_CLEANUP(aq_closep) int to = -1;
    char clean[PATH_MAX];
    int r = folder_clean("new_name", new_name, false, clean, err);

    if (r < 0)
        return r;
    if (strchr(new_name, '/'))
        return aq_fail_field(err, EINVAL, "new_name", "'%.200s' is a path, not a name", new_name);
    if ((to = beneath_open_parent(root, path, false, false, &old)) < 0)
        return folder_fail(err, -to, "path", path);
    return folder_move_at(root, path, to, clean, "new_name", clean, err);
}

int folder_delete(int root, const char *path, bool recursive, uint64_t *freed, struct aq_error *err)
{
    const char *name;
    AQ_CLEANUP(aq_closep) int parent = beneath_open_parent(root, path, false, false, &name);
    struct stat st;
    int r;

    if (parent < 0 || fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return folder_fail(err, parent < 0 ? -parent : errno, "files", path);
    if (S_ISDIR(st.st_mode) && !recursive)
        return aq_fail_field(err, EISDIR, "files", "'%.200s' is a directory", path);
    AQ_FAULT("storage.delete.begun");
    if ((r = tree_remove(parent, name, freed, err)) < 0 && err)
        (void)snprintf(err->field, sizeof(err->field), "files");
    return r;
}
