/* SPDX-License-Identifier: Apache-2.0 */
/* tree_reader.h - files and folders as a tar archive, made as it is read
 *
 * What is no file, folder or link is left out, as is what cannot be read; a note in the archive
 * says so: "skipped: NAME: WHY" and "failed: NAME: WHY". Links below a folder are archived as
 * links, one that is asked for by its path is followed as long as it stays below the root.
 * Folders come before what is in them. Blocks for the disk only.
 */
#ifndef AQ_TRANSFER_TREE_READER_H
#define AQ_TRANSFER_TREE_READER_H

#include "transfer/tar.h"

struct tree_reader;

/* Everything at 'paths' (of beneath_clean(), "" is the root itself: what is in it, and a folder
 * "."), named by the last part of its path. 'root' and 'paths' are borrowed.
 */
int tree_reader_new(int root, const char *const *paths, size_t count,
                    const struct tar_limits *limits, struct tree_reader **ret,
                    struct aq_error *err);
/* Leave out what has this name at the top of the folder that is read. Borrowed. */
void tree_reader_omit(struct tree_reader *reader, const char *name);
/* Name everything by its whole path, and note what cannot be opened instead of failing. */
void tree_reader_list(struct tree_reader *reader);
void tree_reader_free(struct tree_reader *reader);
AQ_DEFINE_CLEANUP(struct tree_reader, tree_reader_free)

/* The next bytes, 0 at the end. -errno for a path that is not there or cannot be read, past a
 * limit, -ENOMEM; the archive is then between two entries.
 */
ssize_t tree_reader_read(struct tree_reader *reader, char *buf, size_t cap, struct aq_error *err);

#endif
