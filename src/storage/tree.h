/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h - whole trees of files, however wide and deep others have made them: removed, and counted
 *
 * Neither follows a symbolic link nor leaves the tree, whatever is renamed in it meanwhile. Both
 * block for the disk.
 */
#ifndef AQ_STORAGE_TREE_H
#define AQ_STORAGE_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct tree_usage {
    uint64_t files; /* what is no directory */
    uint64_t bytes; /* of regular files, by their sizes */
};

/* Remove a file or a tree, which nobody needs any more: what is too deep in it is moved up first.
 * Nothing there is fine. *freed (NULL = nobody asks) grows by the bytes of files that had no other
 * name, also when it fails.
 */
int tree_remove(int parent, const char *name, uint64_t *freed, struct aq_error *err);

/* All below a directory. -ELOOP if it is nested deeper than 512 levels, -ECANCELED once *stop is
 * set (NULL = it is not).
 */
int tree_count(int folder, const _Atomic bool *stop, struct tree_usage *ret, struct aq_error *err);

#endif
