/* SPDX-License-Identifier: Apache-2.0 */
/* layer_unpack.c - unpacks a layer's archive into a directory in overlayfs form */
#include "agent/image/layer_unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "agent/image/blob_stream.h"
#include "agent/image/sparse_check.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/memory.h"
#include "base/vec.h"

#define WHITEOUT ".wh."
#define WHITEOUT_META ".wh..wh." /* of aufs; only "opq" has a meaning here */
#define WHITEOUT_OPAQUE ".wh..wh..opq"
#define FREE_CHECK_BYTES (INT64_C(16) << 20) /* written between two looks at free space */
#define PROGRESS_BYTES (INT64_C(1) << 20)

/* A directory's times, to be set when nothing changes in it any more. */
struct directory_time {
    char *path;
    struct timespec times[2];
};

struct unpacking {
    struct blob_stream *stream;
    struct archive *archive; /* the tar file */
    struct confined_tree *tree;
    const struct layer_unpack_limits *limits;
    struct layer_unpack_result result;
    struct aq_error stream_error;
    struct sparse_check *sparse;
    struct aq_error sparse_error; /* of an entry that libarchive may not have come to yet */
    int64_t unchecked_bytes, told_bytes;
    struct directory_time *directories;
    size_t directory_count, directory_cap;
    void (*on_progress)(void *data, int64_t bytes);
    void *data;
};

/* ---- limits ---- */

static int layer_unpack_check_free(struct unpacking *u, int64_t more, struct aq_error *err)
{
    struct statfs fs;

    u->unchecked_bytes += more;
    if (u->unchecked_bytes < FREE_CHECK_BYTES)
        return 0;
    u->unchecked_bytes = 0;
    if (fstatfs(u->tree->root, &fs) == 0
        && (int64_t)fs.f_bavail * fs.f_bsize < u->limits->free_bytes)
        return aq_fail(err, ENOSPC,
                       "less than %lld bytes are left on the file system of images "
                       "([image] keep-free)",
                       (long long)u->limits->free_bytes);
    return 0;
}

static int layer_unpack_count_entry(struct unpacking *u, struct archive_entry *entry,
                                    struct aq_error *err)
{
    bool is_file = archive_entry_filetype(entry) == AE_IFREG && !archive_entry_hardlink(entry);
    int64_t size = is_file ? archive_entry_size(entry) : 0;

    if (++u->result.entries > u->limits->entries_max)
        return aq_fail(err, EFBIG, "the layer has more than %lld entries ([image] max-entries)",
                       (long long)u->limits->entries_max);
    if (size < 0 || size > u->limits->bytes_max - u->result.size_bytes)
        return aq_fail(err, EFBIG,
                       "the files of the layer would be larger than %lld bytes "
                       "([image] max-layer-size)",
                       (long long)u->limits->bytes_max);
    u->result.size_bytes += size;
    return 0;
}

/* ---- attributes ---- */

/* What would change how overlayfs reads the layer, or is the host's to decide. */
static bool layer_unpack_is_foreign(const char *name)
{
    return strncmp(name, "trusted.", 8) == 0 || strncmp(name, "user.overlay.", 13) == 0
           || strcmp(name, "security.selinux") == 0;
}

static int layer_unpack_set_attributes(struct unpacking *u, int parent, const char *name,
                                       struct archive_entry *entry, struct aq_error *err)
{
    char path[64 + NAME_MAX + 1];
    const char *key;
    const void *value;
    size_t size;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", parent, name);
    (void)archive_entry_xattr_reset(entry);
    while (archive_entry_xattr_next(entry, &key, &value, &size) == ARCHIVE_OK) {
        if (!key || !size
            || layer_unpack_is_foreign(key)) /* an empty record means none (POSIX pax) */
            continue;
        if (lsetxattr(path, key, value, size, 0) == 0)
            continue;
        /* only files and directories may have user.*; not every file system knows all names */
        if (errno != EOPNOTSUPP && !(errno == EPERM && strncmp(key, "user.", 5) == 0))
            return aq_fail_errno(err, "set the attribute '%.60s'", key);
        u->result.attributes_lost++;
    }
    return 0;
}

static void layer_unpack_entry_times(struct archive_entry *entry, struct timespec times[2])
{
    times[1] = (struct timespec){ .tv_sec = archive_entry_mtime(entry),
                                  .tv_nsec = archive_entry_mtime_nsec(entry) };
    times[0] = times[1];
    if (archive_entry_atime_is_set(entry))
        times[0] = (struct timespec){ .tv_sec = archive_entry_atime(entry),
                                      .tv_nsec = archive_entry_atime_nsec(entry) };
}

/* Owner, mode, attributes and times of what is at parent/name. */
static int layer_unpack_finish(struct unpacking *u, int parent, const char *name, const char *path,
                               struct archive_entry *entry, struct aq_error *err)
{
    int64_t uid = archive_entry_uid(entry), gid = archive_entry_gid(entry);
    mode_t mode = archive_entry_mode(entry) & 07777;
    struct timespec times[2];
    int r;

    if (uid < 0 || uid >= UINT32_MAX || gid < 0 || gid >= UINT32_MAX)
        return aq_fail(err, EINVAL, "its owner %lld:%lld is no user", (long long)uid,
                       (long long)gid);
    if (fchownat(parent, name, (uid_t)uid, (gid_t)gid, AT_SYMLINK_NOFOLLOW) < 0)
        return aq_fail_errno(err, "give it to user %lld", (long long)uid);
    if (archive_entry_filetype(entry) != AE_IFLNK && fchmodat(parent, name, mode, 0) < 0)
        return aq_fail_errno(err, "set its mode");
    r = layer_unpack_set_attributes(u, parent, name, entry, err);
    if (r < 0)
        return r;
    layer_unpack_entry_times(entry, times);
    if (archive_entry_filetype(entry) != AE_IFDIR)
        return utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW) < 0
                   ? aq_fail_errno(err, "set its times")
                   : 0;
    vec_grow(&u->directories, &u->directory_cap, u->directory_count + 1, sizeof(*u->directories));
    u->directories[u->directory_count++] = (struct directory_time){ aq_strdup(path),
                                                                    { times[0], times[1] } };
    return 0;
}

static int layer_unpack_set_directory_times(struct unpacking *u, struct aq_error *err)
{
    for (size_t i = 0; i < u->directory_count; i++) {
        AQ_CLEANUP(aq_closep) int fd = -1;
        char path[64];

        /* a later entry may have removed the directory */
        if (confined_tree_open(u->tree, u->directories[i].path, &fd, NULL) < 0)
            continue;
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (utimensat(AT_FDCWD, path, u->directories[i].times, 0) < 0)
            return aq_fail_errno(err, "set the times of '%s'", u->directories[i].path);
    }
    return 0;
}

/* ---- entries ---- */

static int layer_unpack_fail_archive(struct unpacking *u, struct aq_error *err)
{
    const char *text = archive_error_string(u->archive);

    if (u->stream_error.code) {
        if (err)
            *err = u->stream_error;
        return -u->stream_error.code;
    }
    return aq_fail(err, EBADMSG, "the archive is damaged: %s", text ? text : "out of memory");
}

static int layer_unpack_write_data(struct unpacking *u, int fd, int64_t size, struct aq_error *err)
{
    int64_t end = 0;
    la_int64_t offset;
    const void *bytes;
    size_t len;
    int r;

    while ((r = archive_read_data_block(u->archive, &bytes, &len, &offset)) == ARCHIVE_OK) {
        if (offset < end || offset > size || (int64_t)len > size - offset)
            return aq_fail(err, EBADMSG, "its parts are not in order");
        r = layer_unpack_check_free(u, (int64_t)len, err);
        if (r < 0)
            return r;
        if (offset > end && lseek(fd, offset, SEEK_SET) < 0)
            return aq_fail_errno(err, "seek");
        r = fs_write_all(fd, bytes, len);
        if (r < 0)
            return aq_fail(err, -r, "write: %s", strerror(-r));
        end = offset + (int64_t)len;
    }
    if (r != ARCHIVE_EOF)
        return layer_unpack_fail_archive(u, err);
    /* a hole at the end */
    return end < size && ftruncate(fd, size) < 0 ? aq_fail_errno(err, "set its size") : 0;
}

static int layer_unpack_make_file(struct unpacking *u, int parent, const char *name,
                                  struct archive_entry *entry, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = openat(
        parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    return fd < 0 ? aq_fail_errno(err, "create")
                  : layer_unpack_write_data(u, fd, archive_entry_size(entry), err);
}

static int layer_unpack_make_link(struct unpacking *u, const char *path, const char *target,
                                  struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = -1;
    char clean[PATH_MAX], source[64];
    const char *name;
    struct stat st;
    int parent, r = confined_tree_clean(target, clean, err);

    if (r == 0)
        r = confined_tree_open(u->tree, clean, &fd, err);
    if (r == 0 && fstat(fd, &st) < 0)
        r = aq_fail_errno(err, "look");
    if (r == 0 && (S_ISDIR(st.st_mode) || confined_tree_is_whiteout(&st)))
        r = aq_fail(err, EINVAL, "it is a folder or a whiteout");
    if (r == 0)
        r = confined_tree_open_parent(u->tree, path, &parent, &name, err);
    if (r < 0)
        return aq_error_wrap(err, "hard link to '%.100s'", target);
    (void)snprintf(source, sizeof(source), "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, source, parent, name, AT_SYMLINK_FOLLOW) < 0)
        return aq_fail_errno(err, "hard link to '%.100s'", target);
    return 0;
}

static int layer_unpack_make_special(int parent, const char *name, struct archive_entry *entry,
                                     struct aq_error *err)
{
    mode_t type = archive_entry_filetype(entry);
    dev_t device = type == AE_IFIFO
                       ? 0
                       : makedev(archive_entry_rdevmajor(entry), archive_entry_rdevminor(entry));

    if (type == AE_IFCHR && device == makedev(0, 0))
        return aq_fail(err, EINVAL,
                       "it is the character device 0/0, which overlayfs takes for a "
                       "removed file");
    return mknodat(parent, name, type | 0600, device) < 0 ? aq_fail_errno(err, "make the node") : 0;
}

static int layer_unpack_make_directory(struct unpacking *u, int parent, const char *name,
                                       const char *path, bool is_opaque, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = -1;

    if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
        return aq_fail_errno(err, "make the folder");
    (void)map_removes(&u->tree->implied, path);
    if (!is_opaque)
        return 0;
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? aq_fail_errno(err, "open") : confined_tree_set_opaque(fd, err);
}

static int layer_unpack_make_anything(struct unpacking *u, int parent, const char *name,
                                      const char *path, bool is_opaque, struct archive_entry *entry,
                                      struct aq_error *err)
{
    const char *target = archive_entry_symlink(entry);

    switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
        return layer_unpack_make_file(u, parent, name, entry, err);
    case AE_IFDIR:
        return layer_unpack_make_directory(u, parent, name, path, is_opaque, err);
    case AE_IFLNK:
        if (!target || !*target)
            return aq_fail(err, EINVAL, "the symbolic link leads nowhere");
        return symlinkat(target, parent, name) < 0 ? aq_fail_errno(err, "make the link") : 0;
    case AE_IFIFO:
    case AE_IFCHR:
    case AE_IFBLK:
        return layer_unpack_make_special(parent, name, entry, err);
    default:
        return aq_fail(err, EINVAL, "it is neither a file nor a folder, link, pipe or device");
    }
}

/* The root of the layer: only its attributes. */
static int layer_unpack_describe_root(struct unpacking *u, struct archive_entry *entry,
                                      struct aq_error *err)
{
    if (archive_entry_filetype(entry) != AE_IFDIR)
        return aq_fail(err, EINVAL, "the root is not a folder");
    (void)map_removes(&u->tree->implied, "");
    return layer_unpack_finish(u, u->tree->root, ".", "", entry, err);
}

static int layer_unpack_white_out(struct unpacking *u, const char *path, const char *name,
                                  struct aq_error *err)
{
    char target[PATH_MAX];
    const char *hidden = name + strlen(WHITEOUT), *unused;
    size_t len = (size_t)(name - path);
    int parent, r;

    r = confined_tree_open_parent(u->tree, path, &parent, &unused, err);
    if (r == -ENOTDIR)
        return 0; /* the layer replaces the directory by a file: what was in it is gone anyway */
    if (r < 0)
        return r;
    if (strcmp(name, WHITEOUT_OPAQUE) == 0)
        return confined_tree_set_opaque(parent, err);
    if (strncmp(name, WHITEOUT_META, strlen(WHITEOUT_META)) == 0)
        return 0;
    if (!*hidden || strcmp(hidden, ".") == 0 || strcmp(hidden, "..") == 0)
        return aq_fail(err, EINVAL, "the whiteout names nothing");
    memcpy(target, path, len);
    (void)strcpy(target + len, hidden); /* shorter than the path */
    return confined_tree_white_out(u->tree, target, err);
}

static int unpack_clean(struct unpacking *u, const char *path, struct archive_entry *entry,
                        struct aq_error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *target = archive_entry_hardlink(entry);
    bool is_directory = !target && archive_entry_filetype(entry) == AE_IFDIR, kept, is_opaque;
    int parent, r;

    if (!*path)
        return layer_unpack_describe_root(u, entry, err);
    if (strncmp(name, WHITEOUT, strlen(WHITEOUT)) == 0)
        return layer_unpack_white_out(u, path, name, err);
    r = confined_tree_replace(u->tree, path, is_directory, &kept, &is_opaque, err);
    if (r < 0)
        return r;
    if (target)
        return layer_unpack_make_link(u, path, target, err); /* the attributes are its target's */
    r = confined_tree_open_parent(u->tree, path, &parent, &name, err);
    if (r == 0)
        r = layer_unpack_make_anything(u, parent, name, path, is_opaque, entry, err);
    return r < 0 ? r : layer_unpack_finish(u, parent, name, path, entry, err);
}

static int unpack_entry(struct unpacking *u, struct archive_entry *entry, struct aq_error *err)
{
    const char *raw = archive_entry_pathname(entry);
    char path[PATH_MAX];
    int r = raw ? confined_tree_clean(raw, path, err) : aq_fail(err, EBADMSG, "it has no name");

    if (r == 0)
        r = layer_unpack_count_entry(u, entry, err);
    if (r == 0)
        r = layer_unpack_check_free(u, 4096, err);
    if (r == 0)
        r = unpack_clean(u, path, entry, err);
    AQ_FAULT("agent.image.entry");
    return r < 0 ? aq_error_wrap(err, "entry '%.150s'", raw ? raw : "") : 0;
}

/* ---- the archive ---- */

static la_ssize_t layer_unpack_on_read(struct archive *archive, void *data, const void **ret)
{
    struct unpacking *u = data;
    ptrdiff_t got = blob_stream_read(u->stream, ret, &u->stream_error);
    int64_t position = blob_stream_position(u->stream);

    (void)archive;
    if (u->on_progress && position - u->told_bytes >= PROGRESS_BYTES) {
        u->told_bytes = position;
        u->on_progress(u->data, position);
    }
    if (got > 0 && !u->sparse_error.code)
        (void)sparse_check_feed(u->sparse, *ret, (size_t)got, &u->sparse_error);
    return got < 0 ? ARCHIVE_FATAL : got;
}

/* In the C locale names are bytes; libarchive warns of those that are not
 * ASCII and keeps them, where other locales would change how they are composed.
 */
static bool layer_unpack_is_about_names(struct archive *archive)
{
    const char *text = archive_error_string(archive);

    return text && strstr(text, "can't be converted");
}

static int unpack_all(struct unpacking *u, struct aq_error *err)
{
    struct archive_entry *entry;
    int r = archive_read_support_format_tar(u->archive);

    if (r == ARCHIVE_OK)
        r = archive_read_support_format_empty(u->archive);
    if (r == ARCHIVE_OK)
        r = archive_read_open(u->archive, u, NULL, layer_unpack_on_read, NULL);
    if (r != ARCHIVE_OK)
        return layer_unpack_fail_archive(u, err);
    for (;;) {
        r = archive_read_next_header(u->archive, &entry);
        if (r == ARCHIVE_EOF)
            break;
        if (r != ARCHIVE_OK && !(r == ARCHIVE_WARN && layer_unpack_is_about_names(u->archive)))
            return layer_unpack_fail_archive(u, err);
        r = unpack_entry(u, entry, err);
        if (r < 0 || u->sparse_error.code)
            return r;
    }
    return layer_unpack_set_directory_times(u, err);
}

int layer_unpack(int fd, const char *blob_digest, const char *diff_id,
                 const struct layer_unpack_limits *limits, struct confined_tree *tree,
                 void (*on_progress)(void *data, int64_t bytes), void *data,
                 struct layer_unpack_result *ret, struct aq_error *err)
{
    AQ_CLEANUP(blob_stream_freep) struct blob_stream *stream = NULL;
    struct unpacking u = { .tree = tree,
                           .limits = limits,
                           .on_progress = on_progress,
                           .data = data,
                           .unchecked_bytes = FREE_CHECK_BYTES };
    int r = blob_stream_new(fd, limits->bytes_max, &stream, err);

    if (r < 0)
        return r;
    u.stream = stream;
    u.archive = archive_read_new();
    if (!u.archive)
        memory_is_short();
    u.sparse = sparse_check_new();
    map_sets(&tree->implied, "", tree);
    r = unpack_all(&u, err);
    if (u.sparse_error.code && (r == 0 || r == -EBADMSG)) {
        *err = u.sparse_error;
        r = -err->code;
    }
    if (r == 0)
        r = blob_stream_verify(stream, blob_digest, diff_id, err);
    if (r == 0)
        *ret = u.result;
    (void)archive_read_free(u.archive);
    sparse_check_free(u.sparse);
    for (size_t i = 0; i < u.directory_count; i++)
        free(u.directories[i].path);
    free(u.directories);
    return r;
}
