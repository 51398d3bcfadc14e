/* SPDX-License-Identifier: Apache-2.0 */
/* upload.c - see upload.h */
#include "storage/upload.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fs.h"
#include "storage/copy.h"
#include "storage/folder.h"
#include "storage/usage.h"
#include "transfer/beneath.h"
#include "transfer/volume_layout.h"

#define UPLOAD_NAME_MAX (UUID_TEXT_MAX + 8)
#define UPLOAD_DONE (-2) /* the number of the mark that it has ended */

static char *upload_name(const struct token *token, int part, char ret[UPLOAD_NAME_MAX])
{
    char id[UUID_TEXT_MAX];

    (void)uuid_format(&token->upload_id, id);
    if (part == UPLOAD_WHOLE)
        (void)snprintf(ret, UPLOAD_NAME_MAX, "%s", id);
    else if (part == UPLOAD_DONE)
        (void)snprintf(ret, UPLOAD_NAME_MAX, "%s.done", id);
    else
        (void)snprintf(ret, UPLOAD_NAME_MAX, "%s.%d", id, part % UPLOAD_PARTS_MAX);
    return ret;
}

static int upload_fail(struct aq_error *err, int code, const struct token *token)
{
    return beneath_fail(err, code, token->path);
}

/* The directory of the folder's uploads: -ENOENT without 'make' if there are none. */
static int upload_open_uploads(int root, bool make)
{
    if (make && mkdirat(root, FOLDER_UPLOADS, 0700) < 0 && errno != EEXIST)
        return -errno;
    return beneath_open(root, FOLDER_UPLOADS, O_RDONLY | O_DIRECTORY, true);
}

static int upload_open_file(int uploads, const struct token *token, int part, int flags)
{
    char name[UPLOAD_NAME_MAX];

    return beneath_open(uploads, upload_name(token, part, name), O_RDWR | O_NONBLOCK | flags, true);
}

static bool upload_has(int uploads, const struct token *token, int part)
{
    char name[UPLOAD_NAME_MAX];
    struct stat st;

    return fstatat(uploads, upload_name(token, part, name), &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Beneath a tree's token the file itself is the mark, by its size and its time: the id is the same
 * whenever the client comes again.
 */
static bool upload_is_done(int root, int uploads, const struct token *token)
{
    AQ_CLEANUP(aq_closep) int fd = -1;
    struct stat st;

    if (!token->is_tree)
        return upload_has(uploads, token, UPLOAD_DONE);
    fd = beneath_open(root, token->path, O_PATH | O_NOFOLLOW, false);
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)
           && (uint64_t)st.st_size == token->size
           && st.st_mtim.tv_sec * USEC_PER_SEC + st.st_mtim.tv_nsec / 1000 == token->modified_usec;
}

/* 0 or -errno */
static int upload_look(int root, int uploads, const struct token *token, int part, bool make,
                       struct upload *ret)
{
    struct stat st;

    ret->fd = uploads < 0 ? uploads : upload_open_file(uploads, token, part, 0);
    if (ret->fd == -ENOENT && part == UPLOAD_WHOLE && upload_is_done(root, uploads, token)) {
        ret->fd = -1;
        ret->is_done = true;
        ret->offset = ret->size;
        return 0;
    }
    if (ret->fd == -ENOENT && make)
        ret->fd = upload_open_file(uploads, token, part, O_CREAT);
    if (ret->fd < 0)
        return ret->fd;
    if (fstat(ret->fd, &st) < 0 || (st.st_size && fdatasync(ret->fd) < 0))
        return -errno;
    ret->offset = (uint64_t)st.st_size;
    return S_ISREG(st.st_mode) && ret->offset <= ret->size ? 0 : -EINVAL;
}

int upload_open(int root, const struct token *token, int part, uint64_t size, bool make,
                struct upload *ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int uploads = upload_open_uploads(root, make);
    int r;

    *ret = (struct upload){ .fd = -1, .size = size };
    r = upload_look(root, uploads, token, part, make, ret);
    if (r == 0)
        return 0;
    aq_closep(&ret->fd);
    ret->fd = -1;
    return r == -ENOENT && !make ? 0 : upload_fail(err, -r, token);
}

int upload_write(struct upload *upload, const struct token *token, const char *bytes, size_t len,
                 struct aq_error *err)
{
    int r = fs_write_sparse(upload->fd, bytes, len, &upload->offset);

    if (r < 0)
        return upload_fail(err, -r, token);
    AQ_FAULT("storage.upload.written");
    return 0;
}

/* ---- the end ---- */

static int upload_sync_folder(int folder)
{
    AQ_CLEANUP(aq_closep) int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int upload_mark_done(int uploads, const struct token *token)
{
    AQ_CLEANUP(aq_closep) int fd = upload_open_file(uploads, token, UPLOAD_DONE, O_CREAT);

    return AQ_MIN(fd, 0);
}

/* The mark comes first: with it, and without its file, an upload is done. A power failure may cost
 * the mark, which costs the client an upload that it has made before. 0 or -errno.
 */
static int upload_give_name(int root, int uploads, const struct token *token, struct upload *upload)
{
    const char *last;
    AQ_CLEANUP(aq_closep) int parent = beneath_open_parent(root, token->path, false, true, &last);
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
                                       { .tv_sec = token->modified_usec / USEC_PER_SEC,
                                         .tv_nsec = token->modified_usec % USEC_PER_SEC * 1000 } };
    char name[UPLOAD_NAME_MAX];
    int r;

    if (parent < 0)
        return parent;
    if (fchmod(upload->fd, token->is_tree ? token->mode & 0755 : 0644) < 0
        || (token->is_tree && futimens(upload->fd, times) < 0) || fsync(upload->fd) < 0)
        return -errno;
    if (!token->is_tree && (r = upload_mark_done(uploads, token)) < 0)
        return r;
    AQ_FAULT("storage.upload.marked");
    upload->freed = fs_size_freed(parent, last);
    if (renameat(uploads, upload_name(token, UPLOAD_WHOLE, name), parent, last) < 0) {
        upload->freed = 0;
        return -errno;
    }
    AQ_FAULT("storage.upload.named");
    upload->is_done = true;
    return upload_sync_folder(parent);
}

int upload_sync(int root, const struct token *token, int part, struct upload *upload,
                struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int uploads = -1;
    int r;

    if (upload->is_done)
        return 0;
    uploads = upload_open_uploads(root, true);
    if (uploads < 0)
        return upload_fail(err, -uploads, token);
    if (part == UPLOAD_WHOLE && upload->offset == upload->size)
        r = upload_give_name(root, uploads, token, upload);
    else
        r = fdatasync(upload->fd) < 0 ? -errno : 0;
    AQ_FAULT("storage.upload.synced");
    return r < 0 ? upload_fail(err, -r, token) : 0;
}

int upload_check(int root, const struct token *token, struct aq_error *err)
{
    int fd = beneath_open(root, token->path, O_PATH | O_NOFOLLOW, false);
    struct stat st;
    int r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? -EISDIR : 0;

    aq_closep(&fd);
    return r == 0 || r == -ENOENT ? 0 : upload_fail(err, -r, token);
}

int upload_remove(int root, const struct token *token, uint64_t *freed, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int uploads = upload_open_uploads(root, false);
    char name[UPLOAD_NAME_MAX];

    if (uploads < 0)
        return uploads == -ENOENT ? 0 : upload_fail(err, -uploads, token);
    for (int part = UPLOAD_DONE; part < UPLOAD_PARTS_MAX; part++) {
        uint64_t size = fs_size_freed(uploads, upload_name(token, part, name));

        if (unlinkat(uploads, name, 0) == 0)
            *freed += size;
        else if (errno != ENOENT)
            return upload_fail(err, errno, token);
    }
    return 0;
}

bool upload_has_begun(int root, const struct token *token)
{
    AQ_CLEANUP(aq_closep) int uploads = upload_open_uploads(root, false);
    int part = UPLOAD_DONE;

    while (uploads >= 0 && part < UPLOAD_PARTS_MAX && !upload_has(uploads, token, part))
        part++;
    return uploads >= 0 && part < UPLOAD_PARTS_MAX;
}

/* ---- parts ---- */

int upload_add_part(int root, const struct token *token, int *ret_part, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int uploads = upload_open_uploads(root, true);
    int fd = uploads < 0 ? uploads : -EEXIST, part;

    for (part = 0; fd == -EEXIST && part < UPLOAD_PARTS_MAX; part++)
        fd = upload_open_file(uploads, token, part, O_CREAT | O_EXCL);
    *ret_part = part - 1;
    if (fd == -EEXIST)
        return aq_fail(err, EBUSY, "an upload has %d parts at most", UPLOAD_PARTS_MAX);
    if (fd < 0)
        return upload_fail(err, -fd, token);
    aq_closep(&fd);
    return 0;
}

static int upload_append_part(int uploads, const struct token *token, int part, int to)
{
    AQ_CLEANUP(aq_closep) int from = upload_open_file(uploads, token, part, 0);

    return from < 0 ? from : copy_bytes(from, to, NULL);
}

static uint64_t upload_size_of_parts(int uploads, const struct token *token)
{
    char name[UPLOAD_NAME_MAX];
    uint64_t size = 0;

    for (int part = 0; part < UPLOAD_PARTS_MAX; part++)
        size += fs_size_freed(uploads, upload_name(token, part, name));
    return size;
}

/* Make the whole of its parts: *ret has its file. */
static int upload_append_parts(int uploads, const struct token *token, const int *parts,
                               size_t count, struct upload *ret, struct aq_error *err)
{
    char name[UPLOAD_NAME_MAX];
    int r = ret->fd = upload_open_file(uploads, token, UPLOAD_WHOLE, O_CREAT | O_TRUNC);
    uint64_t size = 0;

    for (size_t i = 0; i < count; i++)
        size += fs_size_freed(uploads, upload_name(token, parts[i], name));
    for (size_t i = 0; r >= 0 && size == token->size && i < count; i++)
        r = upload_append_part(uploads, token, parts[i], ret->fd);
    if (r < 0)
        return upload_fail(err, -r, token);
    AQ_FAULT("storage.upload.joined");
    if (size == token->size)
        size = ret->offset = (uint64_t)lseek(ret->fd, 0, SEEK_END);
    return size == token->size
               ? 0
               : aq_fail(err, EINVAL, "the parts are %llu bytes together, the file has %llu",
                         (unsigned long long)size, (unsigned long long)token->size);
}

int upload_join(int root, const struct token *token, const int *parts, size_t count,
                struct usage_table *usage, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int uploads = upload_open_uploads(root, true);
    struct upload whole = { .fd = -1, .size = token->size };
    uint64_t had, taken;
    char name[UPLOAD_NAME_MAX];
    int r;

    if (uploads < 0)
        return upload_fail(err, -uploads, token);
    if (!upload_has(uploads, token, UPLOAD_WHOLE) && upload_has(uploads, token, UPLOAD_DONE))
        return 0; /* it was joined before, and the answer was lost */
    had = upload_size_of_parts(uploads, token);
    taken = token->size > had ? token->size - had : 0;
    if (usage_take(usage, &token->folder_id, token->quota_bytes, taken, err) < 0)
        return -err->code;
    r = upload_append_parts(uploads, token, parts, count, &whole, err);
    if (r == 0)
        r = upload_sync(root, token, UPLOAD_WHOLE, &whole, err);
    aq_closep(&whole.fd);
    if (r < 0) {
        (void)unlinkat(uploads, upload_name(token, UPLOAD_WHOLE, name), 0);
        usage_give(usage, &token->folder_id, taken);
        return r;
    }
    for (int part = 0; part < UPLOAD_PARTS_MAX; part++)
        (void)unlinkat(uploads, upload_name(token, part, name), 0);
    usage_give(usage, &token->folder_id, had + taken - token->size + whole.freed);
    return 0;
}

/* ---- sweeping ---- */

static void upload_sweep_file(int fd, const char *name, int64_t before_sec)
{
    struct stat st;

    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)
        && st.st_mtim.tv_sec < before_sec)
        (void)unlinkat(fd, name, 0);
}

/* The directories of ids are at levels 0 to 2; in a folder, at the last of them, only its uploads
 * are looked at. What cannot be read is passed over. Takes 'fd'.
 */
static void upload_sweep_level(int fd, int level, int64_t before_sec)
{
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!dir) {
        aq_closep(&fd);
        return;
    }
    while ((entry = readdir(dir))) {
        AQ_CLEANUP(aq_closep) int folder = -1;

        if (level == 3)
            upload_sweep_file(fd, entry->d_name, before_sec);
        if (level == 3 || entry->d_name[0] == '.')
            continue;
        folder = beneath_open(fd, entry->d_name, O_RDONLY | O_DIRECTORY, true);
        if (folder >= 0)
            upload_sweep_level(level == 2 ? upload_open_uploads(folder, false) : AQ_TAKE_FD(folder),
                               level + 1, before_sec);
    }
    (void)closedir(dir);
}

int upload_sweep(const char *volume, int64_t before_sec, struct aq_error *err)
{
    int fd = open(volume, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return aq_fail_errno(err, "the volume '%s'", volume);
    upload_sweep_level(fd, 0, before_sec);
    return 0;
}
