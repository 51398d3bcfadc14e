/* SPDX-License-Identifier: Apache-2.0 */
/* tree_writer.c - writes what a tar archive has below a folder, and nowhere else */
#include "transfer/tree_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "transfer/beneath.h"

struct tree_writer {
    int root;
    char destination[PATH_MAX];
    bool wants_folder; /* it ends with "/" */
    struct tree_writer_options options;
    int base;                 /* -1 until the first entry */
    char first[NAME_MAX + 1]; /* what 'last' takes the place of, or "" */
    char last[NAME_MAX + 1];
    /* the file at hand */
    char path[PATH_MAX]; /* below 'base' */
    int folder, file;
    uint64_t written;
    char temporary[TREE_WRITER_PART_MAX]; /* its name meanwhile; "" = none */
    mode_t mode, umask;
    struct timespec mtime;
    bool has_mtime;
};

int tree_writer_new(int root, const char *destination, const struct tree_writer_options *options,
                    struct tree_writer **ret, struct aq_error *err)
{
    struct tree_writer *w = calloc(1, sizeof(*w));
    size_t len = strlen(destination);
    int r = w ? beneath_clean(destination, w->destination, err) : aq_fail_oom(err);

    if (r < 0) {
        free(w);
        return r;
    }
    w->root = root;
    w->wants_folder = len && destination[len - 1] == '/';
    w->options = *options;
    w->umask = fs_umask();
    w->base = w->folder = w->file = -1;
    *ret = w;
    return 0;
}

static void tree_writer_drop_file(struct tree_writer *w)
{
    if (w->temporary[0])
        (void)unlinkat(w->folder, w->temporary, 0);
    w->temporary[0] = '\0';
    aq_closep(&w->file);
    aq_closep(&w->folder);
    w->file = w->folder = -1;
}

void tree_writer_free(struct tree_writer *w)
{
    if (!w)
        return;
    tree_writer_drop_file(w);
    aq_closep(&w->base);
    free(w);
}

static void tree_writer_note(const struct tree_writer *w, const char *name, const char *why)
{
    AQ_CLEANUP(aq_freep) char *text = aq_format("skipped: %s: %s", name, why);

    if (text && w->options.on_note)
        w->options.on_note(w->options.data, text);
}

/* ---- where ---- */

/* The destination is the new name of the archive's first entry. */
static int tree_writer_rename_first(struct tree_writer *w, const char *path, struct aq_error *err)
{
    size_t len = strcspn(path, "/");
    const char *last;

    w->base = beneath_open_parent(w->root, w->destination, w->options.is_wary, false, &last);
    if (w->base < 0)
        return beneath_fail(err, -w->base, w->destination);
    memcpy(w->first, path, len);
    w->first[len] = '\0';
    memcpy(w->last, last, strlen(last) + 1);
    return 0;
}

/* With the first entry's path it is known where all go. */
static int tree_writer_settle(struct tree_writer *w, const char *path, struct aq_error *err)
{
    if (!w->wants_folder)
        w->base = beneath_open(w->root, w->destination, O_PATH | O_DIRECTORY, w->options.is_wary);
    if (w->base >= 0)
        return 0;
    if (!w->wants_folder && *path && (w->base == -ENOENT || w->base == -ENOTDIR))
        return tree_writer_rename_first(w, path, err);
    w->base = beneath_make(w->root, w->destination, w->options.is_wary);
    return w->base < 0 ? beneath_fail(err, -w->base, w->destination) : 0;
}

static bool tree_writer_begins_with(const char *path, const char *first)
{
    size_t len = strlen(first);

    return strncmp(path, first, len) == 0 && (!path[len] || path[len] == '/');
}

/* Set w->path for an entry. */
static int tree_writer_place(struct tree_writer *w, const char *name, struct aq_error *err)
{
    char path[PATH_MAX];
    size_t first;
    int r = beneath_clean(name, path, err);

    if (r == 0 && w->options.top && !tree_writer_begins_with(path, w->options.top))
        return aq_fail_kind(err, EINVAL, "bad-archive", "'%.100s' came, which was not asked for",
                            name);
    if (r == 0 && w->base < 0)
        r = tree_writer_settle(w, path, err);
    if (r < 0)
        return r;
    first = strlen(w->first);
    if (!first) {
        memcpy(w->path, path, strlen(path) + 1);
        return 0;
    }
    if (!tree_writer_begins_with(path, w->first))
        return aq_fail_kind(err, ENOTDIR, "not-a-folder",
                            "several files go into a folder, and '%.200s' is none", w->destination);
    if ((size_t)snprintf(w->path, sizeof(w->path), "%s%s", w->last, path + first)
        >= sizeof(w->path))
        return aq_fail(err, ENAMETOOLONG, "'%.200s' becomes too long a path", name);
    return 0;
}

/* ---- what ---- */

static int tree_writer_make_name(char name[40], struct aq_error *err)
{
    uint64_t random;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return aq_fail_errno(err, "random bytes");
    (void)snprintf(name, 40, ".aliquot-%016llx.part", (unsigned long long)random);
    return 0;
}

char *tree_writer_part_name(const char *name, char ret[TREE_WRITER_PART_MAX])
{
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3;
    (void)snprintf(ret, TREE_WRITER_PART_MAX, ".aliquot-%016llx.part", (unsigned long long)hash);
    return ret;
}

/* 0 or -errno */
static int tree_writer_open_named(struct tree_writer *w, const char *name)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;

    (void)tree_writer_part_name(name, w->temporary);
    w->file = openat(w->folder, w->temporary, flags, 0600);
    if (w->file < 0 && errno == EEXIST && unlinkat(w->folder, w->temporary, 0) == 0)
        w->file = openat(w->folder, w->temporary, flags, 0600);
    return w->file < 0 ? -errno : 0;
}

static int tree_writer_open_file(struct tree_writer *w, struct aq_error *err)
{
    const char *name;
    int r;

    w->written = 0;
    w->folder = beneath_open_parent(w->base, w->path, w->options.is_wary, true, &name);
    if (w->folder < 0)
        return beneath_fail(err, -w->folder, w->path);
    if (w->options.is_named) {
        r = tree_writer_open_named(w, name);
        return r < 0 ? beneath_fail(err, -r, w->path) : 0;
    }
    w->file = openat(w->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (w->file >= 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
        return beneath_fail(err, errno, w->path);
    if (tree_writer_make_name(w->temporary, err) < 0)
        return -err->code;
    w->file = openat(w->folder, w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return w->file < 0 ? beneath_fail(err, errno, w->path) : 0;
}

static int tree_writer_make_folder(struct tree_writer *w, const struct tar_entry *e,
                                   struct aq_error *err)
{
    int fd = beneath_open(w->base, w->path, O_PATH | O_DIRECTORY, w->options.is_wary);
    bool is_new = fd == -ENOENT;

    if (is_new)
        fd = beneath_make(w->base, w->path, w->options.is_wary);
    if (fd < 0)
        return beneath_fail(err, -fd, w->path);
    /* it takes what is in it, whatever its mode will be */
    if (is_new && fchmodat(fd, ".", (e->mode & 0777 & ~w->umask) | 0700, 0) < 0) {
        aq_closep(&fd);
        return beneath_fail(err, errno, w->path);
    }
    aq_closep(&fd);
    return 0;
}

/* Does a link so many folders below the top stay below it, whatever other links of this kind
 * are there? As ".." comes only before names, and not more often than there are folders above.
 */
static bool tree_writer_is_harmless(size_t depth, const char *target)
{
    bool has_name = false;
    size_t ups = 0;

    if (*target == '/' || !*target)
        return false;
    while (*target) {
        size_t len = strcspn(target, "/");

        if (len == 2 && memcmp(target, "..", 2) == 0) {
            if (has_name)
                return false;
            ups++;
        } else if (len && !(len == 1 && *target == '.')) {
            has_name = true;
        }
        target += len + (target[len] == '/');
    }
    return ups <= depth;
}

static int tree_writer_make_link(struct tree_writer *w, const struct tar_entry *e,
                                 struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int folder = -1;
    char temporary[40];
    const char *name;
    size_t depth = 0;
    int r = 0;

    for (const char *at = w->path; *at; at++)
        depth += *at == '/';
    if (w->options.is_wary
        && (depth < (w->options.top != NULL)
            || !tree_writer_is_harmless(depth - (w->options.top != NULL), e->target))) {
        tree_writer_note(w, w->path, "the link leads out of the folder");
        return 0;
    }
    folder = beneath_open_parent(w->base, w->path, w->options.is_wary, true, &name);
    if (folder < 0)
        return beneath_fail(err, -folder, w->path);
    if (tree_writer_make_name(temporary, err) < 0)
        return -err->code;
    if (symlinkat(e->target, folder, temporary) < 0)
        return beneath_fail(err, errno, w->path);
    if (renameat(folder, temporary, folder, name) < 0) {
        r = beneath_fail(err, errno, w->path);
        (void)unlinkat(folder, temporary, 0);
    }
    return r;
}

static int tree_writer_refuse(struct tree_writer *w, const struct tar_entry *e,
                              struct aq_error *err)
{
    if (w->options.is_wary) {
        tree_writer_note(w, e->name, "it is no file, folder or link");
        return 0;
    }
    return aq_fail_kind(err, EINVAL, "not-a-file",
                        e->flag == '1' ? "'%.200s' is a hard link; pack with --hard-dereference"
                                       : "'%.200s' is no file, folder or link",
                        e->name);
}

static int tree_writer_on_entry(void *data, const struct tar_entry *e, struct aq_error *err)
{
    struct tree_writer *w = data;
    int r;

    if (e->type == TAR_OTHER)
        return tree_writer_refuse(w, e, err);
    r = tree_writer_place(w, e->name, err);
    if (r < 0)
        return r;
    if (!w->path[0]) /* the folder itself, which is there now */
        return e->type == TAR_FOLDER
                   ? 0
                   : aq_fail_kind(err, EINVAL, "bad-archive", "a file in the archive has no name");
    w->mode = e->mode & 0777 & ~w->umask;
    w->mtime = (struct timespec){ .tv_sec = e->mtime, .tv_nsec = e->mtime_nsec };
    w->has_mtime = true;
    return e->type == TAR_FOLDER ? tree_writer_make_folder(w, e, err)
           : e->type == TAR_LINK ? tree_writer_make_link(w, e, err)
                                 : tree_writer_open_file(w, err);
}

int tree_writer_begin_file(struct tree_writer *w, struct aq_error *err)
{
    int r = tree_writer_settle(w, "file", err);

    if (r < 0)
        return r;
    if (!w->last[0])
        return aq_fail_kind(err, EISDIR, "is-a-folder",
                            "'%.200s' is a folder; add the name that the file shall have",
                            w->destination[0] ? w->destination : ".");
    memcpy(w->path, w->last, strlen(w->last) + 1);
    w->mode = 0666 & ~w->umask;
    return tree_writer_open_file(w, err);
}

static int tree_writer_on_bytes(void *data, const char *bytes, size_t len, struct aq_error *err)
{
    struct tree_writer *w = data;
    int r = w->file < 0 ? 0 : fs_write_sparse(w->file, bytes, len, &w->written);

    return r < 0 ? beneath_fail(err, -r, w->path) : 0;
}

/* A file without a name gets a temporary one, as no call puts it in another's place at once. */
static int tree_writer_link_file(struct tree_writer *w, struct aq_error *err)
{
    char self[40], name[40];

    if (w->temporary[0])
        return 0;
    if (tree_writer_make_name(name, err) < 0)
        return -err->code;
    (void)snprintf(self, sizeof(self), "/proc/self/fd/%d", w->file);
    if (linkat(AT_FDCWD, self, w->folder, name, AT_SYMLINK_FOLLOW) < 0)
        return beneath_fail(err, errno, w->path);
    memcpy(w->temporary, name, sizeof(name));
    return 0;
}

static int tree_writer_on_entry_end(void *data, struct aq_error *err)
{
    struct tree_writer *w = data;
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, w->mtime };
    const char *slash = strrchr(w->path, '/'), *name = slash ? slash + 1 : w->path;
    uint64_t replaced;
    int r;

    if (w->file < 0)
        return 0;
    if (fchmod(w->file, w->mode) < 0 || (w->has_mtime && futimens(w->file, times) < 0))
        return beneath_fail(err, errno, w->path);
    replaced = w->options.on_replaced ? fs_size_freed(w->folder, name) : 0;
    r = tree_writer_link_file(w, err);
    if (r == 0 && renameat(w->folder, w->temporary, w->folder, name) < 0)
        r = beneath_fail(err, errno, w->path);
    if (r == 0) {
        w->temporary[0] = '\0';
        if (replaced)
            w->options.on_replaced(w->options.data, replaced);
    }
    tree_writer_drop_file(w);
    return r;
}

const struct tar_reader_ops tree_writer_ops = {
    .on_entry = tree_writer_on_entry,
    .on_bytes = tree_writer_on_bytes,
    .on_entry_end = tree_writer_on_entry_end,
};
