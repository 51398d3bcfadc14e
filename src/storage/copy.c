/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c - see copy.h */
#include "storage/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fs.h"
#include "base/memory.h"

#define COPY_STEP ((size_t)64 << 20)
#define COPY_BUFFER 65536
#define COPY_DEPTH_MAX 256

/* ---- bytes ---- */

/* As copy_file_range(2). */
static ssize_t copy_by_hand(int from, int to, uint64_t most)
{
    char buffer[COPY_BUFFER];
    ssize_t n = read(from, buffer, AQ_MIN(most, sizeof(buffer)));

    return n > 0 && (errno = -fs_write_all(to, buffer, (size_t)n)) != 0 ? -1 : n;
}

/* So many bytes, or fewer if the file ends. 1; 0 = it has ended; -errno */
static int copy_data(int from, int to, uint64_t left, bool *by_hand, _Atomic uint64_t *done)
{
    ssize_t n = 1;

    while (left && n > 0) {
        n = *by_hand ? copy_by_hand(from, to, left)
                     : copy_file_range(from, NULL, to, NULL, AQ_MIN(left, COPY_STEP), 0);
        if (n < 0 && !*by_hand
            && (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)) {
            n = *by_hand = true;
            continue;
        }
        left -= n > 0 ? (uint64_t)n : 0;
        if (n > 0 && done)
            *done += (uint64_t)n;
    }
    return n < 0 ? -errno : n > 0;
}

/* Pass over the hole at the position, if there is one, in both files: *ret_data bytes of data
 * follow, 0 at the end. 0 or -errno
 */
static int copy_skip_hole(int from, int to, uint64_t *ret_data, _Atomic uint64_t *done)
{
    off_t at = lseek(from, 0, SEEK_CUR), data = lseek(from, at, SEEK_DATA), hole;
    off_t next = data < 0 && errno == ENXIO ? lseek(from, 0, SEEK_END) : data;

    if (at < 0 || (next < 0 && errno != EINVAL))
        return -errno;
    if (next > at) {
        off_t end = lseek(to, next - at, SEEK_CUR);

        if (end < 0 || ftruncate(to, end) < 0)
            return -errno;
        if (done)
            *done += (uint64_t)(next - at);
    }
    if (next < 0) { /* this file system does not tell where holes are */
        *ret_data = UINT64_MAX;
        return 0;
    }
    hole = data < 0 ? next : lseek(from, data, SEEK_HOLE);
    if (hole < 0 || lseek(from, next, SEEK_SET) < 0)
        return -errno;
    *ret_data = (uint64_t)(hole - next);
    return 0;
}

int copy_bytes(int from, int to, _Atomic uint64_t *done)
{
    bool by_hand = false;
    uint64_t data = 0;
    int r;

    do {
        r = copy_skip_hole(from, to, &data, done);
        if (r == 0 && data)
            r = copy_data(from, to, data, &by_hand, done);
    } while (r > 0);
    return r;
}

/* ---- trees ---- */

struct copy_level {
    DIR *from;
    int to;
};

struct copy {
    struct copy_level levels[COPY_DEPTH_MAX];
    size_t depth;
    const char *omitted;
    _Atomic uint64_t *done;
};

/* Takes both. 0 or -errno */
static int copy_enter(struct copy *copy, int from, int to)
{
    struct copy_level *level = &copy->levels[copy->depth];
    int r = from < 0 || to < 0 ? -errno : copy->depth == COPY_DEPTH_MAX ? -ELOOP : 0;

    if (r == 0 && (level->from = fdopendir(from))) {
        level->to = to;
        copy->depth++;
        return 0;
    }
    r = r < 0 ? r : -errno;
    aq_closep(&from);
    aq_closep(&to);
    return r;
}

static void copy_leave(struct copy *copy)
{
    struct copy_level *level = &copy->levels[--copy->depth];

    (void)closedir(level->from);
    aq_closep(&level->to);
}

static int copy_file(const struct copy *copy, int from_dir, int to_dir, const char *name,
                     const struct stat *st)
{
    const struct timespec times[2] = { st->st_atim, st->st_mtim };
    AQ_CLEANUP(aq_closep) int from = openat(from_dir, name,
                                            O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    AQ_CLEANUP(aq_closep) int to = -1;
    int r;

    if (from < 0)
        return errno == ENOENT ? 0 : -errno;
    to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        return -errno;
    r = copy_bytes(from, to, copy->done);
    if (r == 0 && (fchmod(to, st->st_mode & 0777) < 0 || futimens(to, times) < 0))
        r = -errno;
    AQ_FAULT("storage.copy.file");
    return r;
}

static int copy_link(int from, int to, const char *name)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(from, name, target, sizeof(target) - 1);

    if (len < 0)
        return errno == ENOENT ? 0 : -errno;
    target[len] = '\0';
    return symlinkat(target, to, name) < 0 ? -errno : 0;
}

static int copy_folder(struct copy *copy, int from, int to, const char *name, mode_t mode)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

    if (mkdirat(to, name, (mode & 0777) | 0700) < 0)
        return -errno;
    return copy_enter(copy, openat(from, name, flags), openat(to, name, flags));
}

static int copy_next(struct copy *copy)
{
    const struct copy_level *level = &copy->levels[copy->depth - 1];
    const struct dirent *entry = readdir(level->from);
    int from = dirfd(level->from);
    struct stat st;

    if (!entry) {
        copy_leave(copy);
        return 0;
    }
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0
        || (copy->depth == 1 && strcmp(entry->d_name, copy->omitted) == 0))
        return 0;
    if (fstatat(from, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (S_ISDIR(st.st_mode))
        return copy_folder(copy, from, level->to, entry->d_name, st.st_mode);
    if (S_ISREG(st.st_mode))
        return copy_file(copy, from, level->to, entry->d_name, &st);
    return S_ISLNK(st.st_mode) ? copy_link(from, level->to, entry->d_name) : 0;
}

/* -EDQUOT is for 'most': a quota of the file system counts as a full one. */
static int copy_next_or_full(struct copy *copy)
{
    int r = copy_next(copy);

    return r == -EDQUOT ? -ENOSPC : r;
}

int copy_tree(int from, int to, const char *omitted, uint64_t most, _Atomic uint64_t *done,
              struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) struct copy *copy = aq_alloc(sizeof(*copy));
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    int r;

    copy->omitted = omitted;
    copy->done = done;
    r = copy_enter(copy, openat(from, ".", flags), openat(to, ".", flags));
    while (r == 0 && copy->depth)
        r = most && *done > most ? -EDQUOT : copy_next_or_full(copy);
    while (copy->depth)
        copy_leave(copy);
    if (r == -EDQUOT)
        return aq_fail(err, EDQUOT, "the copy of the folder may have %llu bytes, and has more",
                       (unsigned long long)most);
    return r < 0 ? aq_fail(err, -r, "copy the folder: %s", fs_explain(-r)) : 0;
}
