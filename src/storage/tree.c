/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c - see tree.h */
#include "storage/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/memory.h"
#include "base/uuid.h"

#define REMOVE_DEPTH_MAX 32
#define COUNT_DEPTH_MAX 512
#define REMOVE_TRIES 1000 /* of a directory that others fill meanwhile */

static bool tree_is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Give us all rights to a directory, and open it: that directory, whatever has its name meanwhile.
 * A descriptor without rights has no fchmod(2), only its path in /proc. The descriptor or -1.
 */
static int tree_open_anyhow(int parent, const char *name)
{
    AQ_CLEANUP(aq_closep) int fd = openat(parent, name,
                                          O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return fd < 0 || chmod(path, 0700) < 0 ? -1
                                           : openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* -errno. What lacks rights and is ours gets them if 'is_mine' is set. */
static int tree_open(int parent, const char *name, bool is_mine, DIR **ret)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r;

    if (fd < 0 && errno == EACCES && is_mine)
        fd = tree_open_anyhow(parent, name);
    if (fd < 0)
        return -errno;
    *ret = fdopendir(fd);
    if (*ret)
        return 0;
    r = -errno;
    aq_closep(&fd);
    return r;
}

/* ---- removing ---- */

struct tree_removal {
    DIR *dirs[REMOVE_DEPTH_MAX];
    char names[REMOVE_DEPTH_MAX][NAME_MAX + 1]; /* of each in the one before it */
    unsigned tries[REMOVE_DEPTH_MAX];
    size_t depth;
    uint64_t freed;
};

/* Too deep: it becomes a neighbour of what is at the top of the tree. */
static int tree_lift(const struct tree_removal *t, const char *name)
{
    const struct uuid unique = uuid_random();
    char fresh[UUID_TEXT_MAX];

    return renameat(dirfd(t->dirs[t->depth - 1]), name, dirfd(t->dirs[0]),
                    uuid_format(&unique, fresh))
                   < 0
               ? -errno
               : 0;
}

static int tree_enter(struct tree_removal *t, int parent, const char *name)
{
    int r;

    if (t->depth == REMOVE_DEPTH_MAX)
        return tree_lift(t, name);
    r = tree_open(parent, name, true, &t->dirs[t->depth]);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    if (t->depth) /* what is in a directory goes with rights to it */
        (void)snprintf(t->names[t->depth], sizeof(t->names[0]), "%s", name);
    t->tries[t->depth++] = 0;
    return 0;
}

static int tree_remove_entry(struct tree_removal *t, const char *name)
{
    int fd = dirfd(t->dirs[t->depth - 1]);
    uint64_t size = fs_size_freed(fd, name);

    if (unlinkat(fd, name, 0) == 0
        || (errno == EACCES && fchmod(fd, 0700) == 0 && unlinkat(fd, name, 0) == 0)) {
        t->freed += size;
        return 0;
    }
    if (errno == ENOENT)
        return 0;
    return errno == EISDIR || errno == EPERM ? tree_enter(t, fd, name) : -errno;
}

/* The directory at hand had no more entries. */
static int tree_leave(struct tree_removal *t)
{
    size_t last = t->depth - 1;

    if (last && unlinkat(dirfd(t->dirs[last - 1]), t->names[last], AT_REMOVEDIR) < 0
        && errno != ENOENT) {
        if ((errno != ENOTEMPTY && errno != EEXIST) || ++t->tries[last] == REMOVE_TRIES)
            return -errno;
        rewinddir(t->dirs[last]); /* some file systems pass over entries while others go */
        return 0;
    }
    (void)closedir(t->dirs[last]);
    t->depth--;
    return 0;
}

static int tree_remove_below(struct tree_removal *t)
{
    int r = 0;

    while (r == 0 && t->depth) {
        const struct dirent *entry = readdir(t->dirs[t->depth - 1]);

        if (!entry)
            r = tree_leave(t);
        else if (!tree_is_dot(entry->d_name))
            r = tree_remove_entry(t, entry->d_name);
    }
    while (t->depth)
        (void)closedir(t->dirs[--t->depth]);
    return r;
}

int tree_remove(int parent, const char *name, uint64_t *freed, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) struct tree_removal *t = aq_alloc(sizeof(*t));
    uint64_t size = fs_size_freed(parent, name);
    int r;

    if (unlinkat(parent, name, 0) == 0) {
        if (freed)
            *freed += size;
        return 0;
    }
    if (errno == ENOENT)
        return 0;
    r = errno == EISDIR || errno == EPERM ? 0 : -errno;
    for (unsigned i = 0; r == 0 && i < REMOVE_TRIES; i++) {
        if ((r = tree_enter(t, parent, name)) == 0)
            r = tree_remove_below(t);
        if (r < 0 || unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            break;
        r = (errno == ENOTEMPTY || errno == EEXIST) && i + 1 < REMOVE_TRIES ? 0 : -errno;
    }
    if (freed)
        *freed += t->freed;
    return r < 0 ? aq_fail(err, -r, "remove '%.200s': %s", name, fs_explain(-r)) : 0;
}

/* ---- counting ---- */

static int tree_count_entry(int fd, const char *name, struct tree_usage *usage, bool *ret_is_folder)
{
    struct stat st;

    *ret_is_folder = false;
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    *ret_is_folder = S_ISDIR(st.st_mode);
    usage->files += !S_ISDIR(st.st_mode);
    usage->bytes += S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    return 0;
}

static int tree_count_below(DIR **dirs, size_t *depth, struct tree_usage *usage)
{
    const struct dirent *entry = readdir(dirs[*depth - 1]);
    bool is_folder;
    int fd, r;

    if (!entry) {
        (void)closedir(dirs[--*depth]);
        return 0;
    }
    if (tree_is_dot(entry->d_name))
        return 0;
    fd = dirfd(dirs[*depth - 1]);
    r = tree_count_entry(fd, entry->d_name, usage, &is_folder);
    if (r < 0 || !is_folder)
        return r;
    if (*depth == COUNT_DEPTH_MAX)
        return -ELOOP;
    r = tree_open(fd, entry->d_name, false, &dirs[*depth]);
    *depth += r == 0;
    return r == -ENOENT || r == -ENOTDIR ? 0 : r;
}

int tree_count(int folder, const _Atomic bool *stop, struct tree_usage *ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) DIR **dirs = aq_alloc_array(COUNT_DEPTH_MAX, sizeof(DIR *));
    size_t depth = 0;
    int r;

    *ret = (struct tree_usage){ 0 };
    if ((r = tree_open(folder, ".", false, &dirs[0])) == 0)
        depth = 1;
    while (r == 0 && depth)
        r = stop && *stop ? -ECANCELED : tree_count_below(dirs, &depth, ret);
    while (depth)
        (void)closedir(dirs[--depth]);
    if (r == -ELOOP)
        return aq_fail(err, ELOOP, "folders are nested deeper than %d levels", COUNT_DEPTH_MAX);
    return r < 0 ? aq_fail(err, -r, "count the folder's files: %s", strerror(-r)) : 0;
}
