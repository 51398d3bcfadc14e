/* tree.h - files below one folder, by paths that strangers chose
 *
 * Every path is resolved by openat2(RESOLVE_BENEATH): a symbolic link on the
 * way may lead elsewhere in the tree, never out of it, and the last part is
 * never followed. Used by aliquot-unpack, one thread.
 */
#ifndef AQ_AGENT_IMAGE_TREE_H
#define AQ_AGENT_IMAGE_TREE_H

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/map.h"

struct tree {
    int root;
    int parent;           /* the folder used last, or -1 */
    char path[PATH_MAX];  /* its path */
    struct map implied;   /* folders that had to be made although nobody described them */
};

/* Takes 'root', which must be an empty folder. */
void tree_init(struct tree *tree, int root);
void tree_done(struct tree *tree);

/* "./a//b/" -> "a/b"; "." -> "". -EINVAL for absolute paths, for those with "..",
 * for empty ones; -ENAMETOOLONG.
 */
int tree_clean(const char *raw, char out[PATH_MAX], struct aq_error *err) AQ_UNTRUSTED;

/* The folder that holds 'path' (clean, not ""), made if it is missing, and the
 * last part of the path. The descriptor is the tree's until the next call.
 */
int tree_parent(struct tree *tree, const char *path, int *ret_fd, const char **ret_name,
                struct aq_error *err);

/* Open an existing file or folder without following its last part (O_PATH). */
int tree_open(struct tree *tree, const char *path, int *ret_fd, struct aq_error *err);

/* Make room for something new at 'path': whatever is there goes, but a folder
 * may stay if 'keep_folder' (*ret_kept). *ret_opaque: a whiteout was there, so a
 * new folder must hide what lies below it.
 */
int tree_replace(struct tree *tree, const char *path, bool keep_folder, bool *ret_kept,
                 bool *ret_opaque, struct aq_error *err);

/* Overlayfs: the folder hides what lower layers have of it. */
int tree_set_opaque(int folder, struct aq_error *err);

/* Overlayfs: 'name' is gone. What this layer itself has there stays; a folder
 * becomes opaque.
 */
int tree_white_out(struct tree *tree, const char *path, struct aq_error *err);

struct stat;
bool tree_is_whiteout(const struct stat *st);

#endif
