/* SPDX-License-Identifier: Apache-2.0 */
/* confined_tree.h - files below one directory, by untrusted paths
 *
 * Every path is resolved by openat2(RESOLVE_BENEATH): a symbolic link on the
 * way may lead elsewhere in the tree, never out of it, and the last part is
 * never followed. Used by aliquot-unpack, one thread.
 */
#ifndef AQ_AGENT_IMAGE_CONFINED_TREE_H
#define AQ_AGENT_IMAGE_CONFINED_TREE_H

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/map.h"

struct confined_tree {
    int root;
    int parent;          /* the directory used last, or -1 */
    char path[PATH_MAX]; /* its path */
    struct map implied;  /* directories that had to be made although nobody described them */
};

/* Takes 'root', which must be an empty directory. */
void confined_tree_init(struct confined_tree *tree, int root);
void confined_tree_done(struct confined_tree *tree);

/* "./a//b/" and "/a/b" -> "a/b"; "." and "/" -> "": an absolute path begins at the tree's
 * root. -EINVAL for one with ".." and for an empty one; -ENAMETOOLONG.
 */
int confined_tree_clean(const char *raw, char out[PATH_MAX], struct aq_error *err) AQ_UNTRUSTED;

/* The directory that holds 'path' (clean, not ""), made if it is missing, and the
 * last part of the path. The descriptor is the tree's until the next call.
 */
int confined_tree_open_parent(struct confined_tree *tree, const char *path, int *ret_fd,
                              const char **ret_name, struct aq_error *err);

/* Open an existing file or directory without following its last part (O_PATH). */
int confined_tree_open(struct confined_tree *tree, const char *path, int *ret_fd,
                       struct aq_error *err);

/* Make room for something new at 'path': whatever is there goes, but a directory
 * may stay if 'keep_directory' (*ret_kept). *ret_opaque: a whiteout was there, so a
 * new directory must hide what lies below it.
 */
int confined_tree_replace(struct confined_tree *tree, const char *path, bool keep_directory,
                          bool *ret_kept, bool *ret_opaque, struct aq_error *err);

/* Overlayfs: the directory hides what lower layers have of it. */
int confined_tree_set_opaque(int directory, struct aq_error *err);

/* Overlayfs: 'name' is gone. What this layer itself has there stays; a directory
 * becomes opaque.
 */
int confined_tree_white_out(struct confined_tree *tree, const char *path, struct aq_error *err);

struct stat;
bool confined_tree_is_whiteout(const struct stat *st);

#endif
