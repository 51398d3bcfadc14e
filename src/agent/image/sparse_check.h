/* SPDX-License-Identifier: Apache-2.0 */
/* sparse_check.h - checks the maps of sparse files in a tar file as it passes by
 *
 * libarchive unpacks an entry whose map names more data than is stored, or less, or the same place
 * twice, as a file with other contents than its author's. The maps of the old GNU format and of
 * GNU's pax formats 0.0, 0.1 and 1.0 (tar(1), "Storing Sparse Files") are checked here: parts are
 * in order, do not overlap, end within the file, and have as many bytes in all as are stored.
 *
 * An archive that cannot be followed is passed over from there on: it is libarchive that says what
 * is damaged.
 */
#ifndef AQ_AGENT_IMAGE_SPARSE_CHECK_H
#define AQ_AGENT_IMAGE_SPARSE_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct sparse_check;

struct sparse_check *sparse_check_new(void);
void sparse_check_free(struct sparse_check *check);
AQ_DEFINE_CLEANUP(struct sparse_check, sparse_check_free)

/* The next bytes of the plain tar file. 0, or -EBADMSG with the entry's name and what is wrong with
 * its map.
 */
int sparse_check_feed(struct sparse_check *check, const char *bytes, size_t len,
                      struct aq_error *err) AQ_UNTRUSTED;

#endif
