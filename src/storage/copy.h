/* SPDX-License-Identifier: Apache-2.0 */
/* copy.h - copies of files and whole trees
 *
 * The file system is asked to share the blocks where it can. Holes stay holes. Blocks for the disk.
 */
#ifndef AQ_STORAGE_COPY_H
#define AQ_STORAGE_COPY_H

#include <stdint.h>

#include "base/error.h"

/* Append all that follows in one file to another, which ends at its position; *done (may be NULL)
 * grows by what is through. 0 or -errno.
 */
int copy_bytes(int from, int to, _Atomic uint64_t *done);

/* All that is in a directory but 'omitted', into an empty one: files, directories, and links as
 * they are; what is none of these is left out. Modes and times of files stay. Not on disk
 * afterwards. -ELOOP if it is nested deeper than 256 levels, -ENOSPC, -EDQUOT once more than 'most'
 * bytes are copied (0 = no limit).
 */
int copy_tree(int from, int to, const char *omitted, uint64_t most, _Atomic uint64_t *done,
              struct aq_error *err);

#endif
