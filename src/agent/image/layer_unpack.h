/* SPDX-License-Identifier: Apache-2.0 */
/* layer_unpack.h - unpacks a layer's archive into a directory in overlayfs form
 *
 * The archive is a tar file (POSIX, GNU), plain or compressed by gzip or
 * zstd (github.com/opencontainers/image-spec, layer.md). While it is read,
 * two digests are computed: of the bytes as they are (the blob's) and of the
 * tar file (the diff-id). Both must be as promised, or the directory is of no
 * use. Whiteouts (".wh.NAME") become character devices 0/0, ".wh..wh..opq" the
 * attribute trusted.overlay.opaque (Documentation/filesystems/overlayfs.rst).
 */
#ifndef AQ_AGENT_IMAGE_LAYER_UNPACK_H
#define AQ_AGENT_IMAGE_LAYER_UNPACK_H

#include <stdint.h>

#include "agent/image/confined_tree.h"

struct layer_unpack_limits {
    int64_t bytes_max; /* of the tar file, and of the files in it with their holes */
    int64_t entries_max;
    int64_t free_bytes; /* stop when the file system has less left */
};

struct layer_unpack_result {
    int64_t size_bytes; /* of the files */
    int64_t entries;
    int64_t attributes_lost; /* extended attributes that the file system does not take */
};

/* Read the blob from 'fd' and fill the tree. 'blob_digest' NULL = whatever it
 * is. 'on_progress' (may be NULL) gets the blob's bytes read so far. The error
 * names the entry. -EBADMSG: not what the digests promise; then field is
 * "blob" or "diff_id".
 */
int layer_unpack(int fd, const char *blob_digest, const char *diff_id,
                 const struct layer_unpack_limits *limits, struct confined_tree *tree,
                 void (*on_progress)(void *data, int64_t bytes), void *data,
                 struct layer_unpack_result *ret, struct aq_error *err) AQ_UNTRUSTED;

#endif
