/* SPDX-License-Identifier: Apache-2.0 */
/* confined_tree.c - files below one directory, by untrusted paths */
#include "agent/image/confined_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "transfer/beneath.h"

void confined_tree_init(struct confined_tree *tree, int root)
{
    *tree = (struct confined_tree){ .root = root, .parent = -1 };
}

static void confined_tree_forget_parent(struct confined_tree *tree)
{
    aq_closep(&tree->parent);
    tree->parent = -1;
}

void confined_tree_done(struct confined_tree *tree)
{
    confined_tree_forget_parent(tree);
    aq_closep(&tree->root);
    tree->root = -1;
    map_done(&tree->implied);
}

int confined_tree_clean(const char *raw, char out[PATH_MAX], struct aq_error *err)
{
    size_t at = 0;

    if (raw[0] == '\0')
        return aq_fail(err, EINVAL, "the path is empty");
    while (*raw) {
        size_t len = strcspn(raw, "/");

        if (len == 2 && raw[0] == '.' && raw[1] == '.')
            return aq_fail(err, EINVAL, "the path has '..'");
        if (len > NAME_MAX || at + len + 2 > PATH_MAX)
            return aq_fail(err, ENAMETOOLONG, "the path or a part of it is too long");
        if (len && !(len == 1 && raw[0] == '.')) {
            if (at)
                out[at++] = '/';
            memcpy(out + at, raw, len);
            at += len;
        }
        raw += len + (raw[len] == '/');
    }
    out[at] = '\0';
    return 0;
}

static int confined_tree_fail_open(struct aq_error *err, int code)
{
    if (code == EXDEV)
        return aq_fail(err, EINVAL, "the path leaves the layer through a symbolic link");
    if (code == ELOOP)
        return aq_fail(err, EINVAL, "the path has too many symbolic links");
    return aq_fail(err, code, "the folder cannot be opened: %s", strerror(code));
}

bool confined_tree_is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

int confined_tree_set_opaque(int directory, struct aq_error *err)
{
    return fsetxattr(directory, "trusted.overlay.opaque", "y", 1, 0) < 0
               ? aq_fail_errno(err, "mark a folder as opaque")
               : 0;
}

/* ---- directories ---- */

static int confined_tree_open_directory(struct confined_tree *tree, const char *path,
                                        struct aq_error *err);

/* Make the directory 'path', which cannot be opened as one. */
static int confined_tree_make_directory(struct confined_tree *tree, const char *path,
                                        struct aq_error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    AQ_CLEANUP(aq_freep) char *above = aq_strndup(path, slash ? (size_t)(slash - path) : 0);
    AQ_CLEANUP(aq_closep) int parent = -1, made = -1;
    bool was_whiteout = false;
    struct stat st;

    parent = confined_tree_open_directory(tree, above, err);
    if (parent < 0)
        return parent;
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        was_whiteout = confined_tree_is_whiteout(&st);
        if (!was_whiteout)
            return aq_fail(err, ENOTDIR, "'%s' on its way is not a folder of this layer", path);
        if (unlinkat(parent, name, 0) < 0)
            return aq_fail_errno(err, "replace '%s'", path);
    }
    if (mkdirat(parent, name, 0755) < 0)
        return aq_fail_errno(err, "make the folder '%s'", path);
    map_sets(&tree->implied, path, tree);
    if (!was_whiteout)
        return 0;
    made = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return made < 0 ? aq_fail_errno(err, "open '%s'", path) : confined_tree_set_opaque(made, err);
}

/* A new descriptor of the directory, made with all above it if it is missing. */
static int confined_tree_open_directory(struct confined_tree *tree, const char *path,
                                        struct aq_error *err)
{
    int fd = beneath_open(tree->root, path, O_RDONLY | O_DIRECTORY, false), r;

    if (fd >= 0)
        return fd;
    if (*path == '\0' || (fd != -ENOENT && fd != -ENOTDIR))
        return confined_tree_fail_open(err, -fd);
    r = confined_tree_make_directory(tree, path, err);
    if (r < 0)
        return r;
    fd = beneath_open(tree->root, path, O_RDONLY | O_DIRECTORY, false);
    return fd < 0 ? confined_tree_fail_open(err, -fd) : fd;
}

int confined_tree_open_parent(struct confined_tree *tree, const char *path, int *ret_fd,
                              const char **ret_name, struct aq_error *err)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;

    if (tree->parent < 0 || strncmp(tree->path, path, len) != 0 || tree->path[len]) {
        confined_tree_forget_parent(tree);
        memcpy(tree->path, path, len);
        tree->path[len] = '\0';
        tree->parent = confined_tree_open_directory(tree, tree->path, err);
        if (tree->parent < 0)
            return tree->parent;
    }
    *ret_fd = tree->parent;
    *ret_name = slash ? slash + 1 : path;
    return 0;
}

int confined_tree_open(struct confined_tree *tree, const char *path, int *ret_fd,
                       struct aq_error *err)
{
    int fd = beneath_open(tree->root, path, O_PATH | O_NOFOLLOW, false);

    if (fd == -ENOENT)
        return aq_fail(err, ENOENT, "it is not in this layer");
    if (fd < 0)
        return confined_tree_fail_open(err, -fd);
    *ret_fd = fd;
    return 0;
}

int confined_tree_replace(struct confined_tree *tree, const char *path, bool keep_directory,
                          bool *ret_kept, bool *ret_opaque, struct aq_error *err)
{
    const char *name;
    struct stat st;
    int parent, r;

    *ret_kept = *ret_opaque = false;
    r = confined_tree_open_parent(tree, path, &parent, &name, err);
    if (r < 0 || fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return r; /* nothing is there, or making the new thing will say why not */
    *ret_opaque = confined_tree_is_whiteout(&st);
    *ret_kept = keep_directory && S_ISDIR(st.st_mode);
    if (*ret_kept)
        return 0;
    r = fs_remove_tree(parent, name, err);
    /* the directory used last may have been in it, or have been reached through it */
    if (S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode))
        confined_tree_forget_parent(tree);
    return r;
}

int confined_tree_white_out(struct confined_tree *tree, const char *path, struct aq_error *err)
{
    const char *name;
    struct stat st;
    int parent, r = confined_tree_open_parent(tree, path, &parent, &name, err);
    AQ_CLEANUP(aq_closep) int directory = -1;

    if (r < 0)
        return r;
    if (mknodat(parent, name, S_IFCHR, makedev(0, 0)) == 0)
        return 0;
    if (errno != EEXIST || fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return aq_fail_errno(err, "make a whiteout");
    if (!S_ISDIR(st.st_mode))
        return 0;
    directory = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return directory < 0 ? aq_fail_errno(err, "open '%s'", path)
                         : confined_tree_set_opaque(directory, err);
}
