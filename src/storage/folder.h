/* SPDX-License-Identifier: Apache-2.0 */
/* folder.h - what is done in a folder by its paths
 *
 * 'root' is the folder's directory (volume_open_folder()). A path is cleaned by folder_clean() and
 * opened beneath the root: links are followed as long as they stay there, '..' and what leads out
 * is refused (path-leads-out). Errors have the argument as field. All calls block for the disk.
 */
#ifndef AQ_STORAGE_FOLDER_H
#define AQ_STORAGE_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"

#define FOLDER_LIST_MAX 10000

/* -EINVAL, -ENAMETOOLONG; "" is the folder itself, which is refused unless 'may_be_root'. */
int folder_clean(const char *field, const char *raw, bool may_be_root, char out[PATH_MAX],
                 struct aq_error *err) AQ_UNTRUSTED;

int folder_mkdir(int root, const char *path, bool parents, bool exist_ok, struct aq_error *err);

/* Append {"items":[{"name","type","size","mode","created","modified"}],"more":bool}: at most
 * 'limit' entries that come after 'after' ("" = from the first), by the bytes of their names.
 * Of a file it is the file alone, and "is_file".
 * A type is FILE, DIRECTORY, SYMLINK or OTHER, a mode the number of stat(2), times are
 * microseconds.
 */
int folder_list(int root, const char *path, const char *after, size_t limit, struct strbuf *out,
                struct aq_error *err);

/* As mv(1): where 'dst' is a directory ("" is the folder), 'src' goes into it under its own name.
 * -EEXIST if the new name is taken, which is never replaced; -EINVAL into itself. Directories that
 * are missing above 'dst' are made.
 */
int folder_move(int root, const char *src, const char *dst, struct aq_error *err);

/* In the same directory. -EEXIST if 'name' is taken, also by a directory; -EINVAL for a path. */
int folder_rename(int root, const char *path, const char *name, struct aq_error *err);

/* -EISDIR for a directory unless 'recursive'. *freed as of tree_remove(). */
int folder_delete(int root, const char *path, bool recursive, uint64_t *freed,
                  struct aq_error *err);

/* Can it be downloaded: is there a file, or with 'may_be_folder' a directory, too? -ENOENT,
 * -EISDIR, -EINVAL for what is neither.
 */
int folder_stat(int root, const char *path, bool may_be_folder, struct aq_error *err);

#define FOLDER_READ_MAX (256 << 10) /* bytes */

/* Append the text of a small file. -ENOENT, -EISDIR, -EINVAL for what is neither a file nor UTF-8
 * without NUL, -EFBIG beyond FOLDER_READ_MAX.
 */
int folder_read(int root, const char *path, struct strbuf *out, struct aq_error *err);

#endif
