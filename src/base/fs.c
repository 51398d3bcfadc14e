/* SPDX-License-Identifier: Apache-2.0 */
/* fs.c - files and directories: whole reads with a limit, writes that survive a crash */
#include "base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void fs_close_dirp(DIR **dir)
{
    if (*dir)
        (void)closedir(*dir);
}

int fs_read_fd(int fd, const char *name, size_t limit, struct strbuf *out, struct aq_error *err)
{
    size_t start = out->len;
    ssize_t got;

    do {
        if (!strbuf_reserve(out, 16384))
            return aq_fail_oom(err);
        got = read(fd, out->data + out->len, out->cap - out->len - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return aq_fail_errno(err, "read '%s'", name);
        strbuf_truncate(out, out->len + (size_t)got);
        if (out->len - start > limit)
            return aq_fail(err, EFBIG, "'%s' is larger than %zu bytes", name, limit);
    } while (got != 0);
    return 0;
}

int fs_read(int dirfd, const char *path, size_t limit, struct strbuf *out, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    return fd < 0 ? aq_fail_errno(err, "open '%s'", path) : fs_read_fd(fd, path, limit, out, err);
}

mode_t fs_umask(void)
{
    static const char member[] = "\nUmask:";
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const char *found = fs_read(AT_FDCWD, "/proc/self/status", 65536, &text, NULL) == 0
                            ? strstr(text.data, member)
                            : NULL;

    return found ? (mode_t)strtoul(found + strlen(member), NULL, 8) & 0777 : 022;
}

uint64_t fs_size_freed(int folder, const char *name)
{
    struct stat st;

    return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)
                   && st.st_nlink == 1
               ? (uint64_t)st.st_size
               : 0;
}

bool fs_is_full(int code)
{
    return code == ENOSPC || code == EDQUOT;
}

bool fs_is_out_of_room(int code)
{
    return fs_is_full(code) || code == EROFS;
}

const char *fs_explain(int code)
{
    return fs_is_full(code)
               ? "the file system is full or over a quota; free space there and try again"
           : code == EROFS ? "the file system is mounted read-only; remount it writable"
                           : strerror(code);
}

char *fs_find_existing(const char *path)
{
    char *at = strdup(path), *slash;

    while (at && access(at, F_OK) < 0 && (slash = strrchr(at, '/')))
        *slash = '\0';
    return at;
}

void fs_remove_folders(const char *path, const char *kept)
{
    AQ_CLEANUP(aq_freep) char *at = strdup(path);
    char *slash;

    while (at && strlen(at) > strlen(kept) && rmdir(at) == 0 && (slash = strrchr(at, '/')))
        *slash = '\0';
}

int fs_write_all(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;

    while (len) {
        ssize_t put = write(fd, at, len);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -errno;
        at += put;
        len -= (size_t)put;
    }
    return 0;
}

#define HOLE_BLOCK 4096 /* as most file systems have them, or a part of theirs */

/* All of a block's part at the offset. 0 or -errno */
static int fs_write_at(int fd, const char *bytes, size_t len, uint64_t *offset)
{
    while (len) {
        ssize_t put = pwrite(fd, bytes, len, (off_t)*offset);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -errno;
        *offset += (uint64_t)put;
        bytes += put;
        len -= (size_t)put;
    }
    return 0;
}

int fs_write_sparse(int fd, const void *bytes, size_t len, uint64_t *offset)
{
    const char *at = bytes, *end = at + len, *begin = at; /* of the bytes to be written next */
    bool is_hole = false;
    int r = 0;

    while (r == 0 && at < end) {
        /* a block that comes in two pieces is looked at in two */
        size_t part = AQ_MIN((size_t)(end - at),
                             HOLE_BLOCK
                                 - (size_t)((*offset + (uint64_t)(at - begin)) % HOLE_BLOCK));

        is_hole = !*at && memcmp(at, at + 1, part - 1) == 0;
        if (is_hole) {
            r = fs_write_at(fd, begin, (size_t)(at - begin), offset);
            begin = at + part;
            *offset += r == 0 ? part : 0;
        }
        at += part;
    }
    if (r == 0)
        r = fs_write_at(fd, begin, (size_t)(end - begin), offset);
    if ((is_hole || r < 0) && ftruncate(fd, (off_t)*offset) < 0 && r == 0)
        r = -errno;
    return r;
}

void fs_try_chown(int fd, uid_t uid)
{
    int r = fchown(fd, uid, (gid_t)-1);

    (void)r;
}

int fs_sync_parent(int dirfd, const char *path, struct aq_error *err)
{
    const char *slash = strrchr(path, '/');
    AQ_CLEANUP(aq_freep) char *parent = NULL;
    AQ_CLEANUP(aq_closep) int fd = -1;

    parent = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    if (!parent)
        return aq_fail_oom(err);
    fd = openat(dirfd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0 ? aq_fail_errno(err, "sync the folder '%s'", parent) : 0;
}

static int fs_replace(int dirfd, const char *path, const void *bytes, size_t len, mode_t mode,
                      bool durable, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *temporary = aq_format("%s.tmp.%d", path, (int)getpid());
    AQ_CLEANUP(aq_closep) int fd = -1;
    int r;

    if (!temporary)
        return aq_fail_oom(err);
    fd = openat(dirfd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return aq_fail_errno(err, "create '%s'", temporary);
    r = fs_write_all(fd, bytes, len);
    if (r == 0 && durable && fsync(fd) < 0)
        r = -errno;
    if (r == 0 && renameat(dirfd, temporary, dirfd, path) < 0)
        r = -errno;
    if (r == 0 && durable)
        r = fs_sync_parent(dirfd, path, NULL);
    if (r < 0) {
        (void)unlinkat(dirfd, temporary, 0);
        return r == -ENOMEM ? aq_fail_oom(err)
                            : aq_fail(err, -r, "write '%s': %s", path, strerror(-r));
    }
    return 0;
}

int fs_write_atomic(int dirfd, const char *path, const void *bytes, size_t len, mode_t mode,
                    struct aq_error *err)
{
    return fs_replace(dirfd, path, bytes, len, mode, true, err);
}

int fs_write_quick(int dirfd, const char *path, const void *bytes, size_t len, mode_t mode,
                   struct aq_error *err)
{
    return fs_replace(dirfd, path, bytes, len, mode, false, err);
}

int fs_overwrite(int dirfd, const char *path, const void *bytes, size_t len, mode_t mode,
                 struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                                          mode);
    struct stat st;
    int r;

    if (fd < 0)
        return aq_fail_errno(err, "create '%s'", path);
    r = fs_write_all(fd, bytes, len);
    if (r == 0
        && (fstat(fd, &st) < 0 || (st.st_size > (off_t)len && ftruncate(fd, (off_t)len) < 0)))
        r = -errno;
    return r < 0 ? aq_fail(err, -r, "write '%s': %s", path, strerror(-r)) : 0;
}

int fs_mkdirs(const char *path, mode_t mode, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *copy = strdup(path);

    if (!copy)
        return aq_fail_oom(err);
    for (char *at = copy + 1;; at++) {
        char kept = *at;

        if (kept != '/' && kept != '\0')
            continue;
        *at = '\0';
        if (mkdir(copy, mode) < 0 && errno != EEXIST)
            return aq_fail_errno(err, "mkdir '%s'", copy);
        *at = kept;
        if (!kept)
            return 0;
    }
}

static int fs_remove_children(int dirfd, const char *path, struct aq_error *err)
{
    AQ_CLEANUP(fs_close_dirp) DIR *dir = NULL;
    int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct dirent *entry;
    int r;

    if (fd < 0)
        return errno == ENOENT ? 0 : aq_fail_errno(err, "open '%s'", path);
    dir = fdopendir(fd);
    if (!dir) {
        aq_closep(&fd);
        return aq_fail_oom(err);
    }
    while ((entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        r = fs_remove_tree(fd, entry->d_name, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int fs_remove_tree(int dirfd, const char *path, struct aq_error *err)
{
    struct stat st;
    int r;

    if (unlinkat(dirfd, path, 0) == 0 || errno == ENOENT)
        return 0;
    /* A read-only file system says so of names that do not exist, too. */
    if (errno == EROFS && fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return aq_fail_errno(err, "remove '%s'", path);
    r = fs_remove_children(dirfd, path, err);
    if (r < 0)
        return r;
    if (unlinkat(dirfd, path, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return aq_fail_errno(err, "remove '%s'", path);
    return 0;
}

char *fs_program_dir(void)
{
    char path[4096], *slash;
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (len <= 0)
        return strdup(".");
    path[len] = '\0';
    slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    return strdup(path);
}
