/* SPDX-License-Identifier: Apache-2.0 */
/* blob_stream.h - reads and decompresses a layer's blob and computes both digests
 *
 * What is read is the tar file; libarchive finds out how it is compressed.
 */
#ifndef AQ_AGENT_IMAGE_BLOB_STREAM_H
#define AQ_AGENT_IMAGE_BLOB_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct blob_stream;

/* 'fd' is borrowed. 'plain_max': bytes of the tar file at most. */
int blob_stream_new(int fd, int64_t plain_max, struct blob_stream **ret, struct aq_error *err);
void blob_stream_free(struct blob_stream *stream);
AQ_DEFINE_CLEANUP(struct blob_stream, blob_stream_free)

/* The next bytes, the stream's until the next call; 0 at the end, or -errno. */
ptrdiff_t blob_stream_read(struct blob_stream *stream, const void **ret, struct aq_error *err);

/* Compressed bytes read so far. */
int64_t blob_stream_position(const struct blob_stream *stream);

/* Read what is left and compare. 'blob_digest' may be NULL. -EBADMSG with
 * field "blob" or "diff_id".
 */
int blob_stream_verify(struct blob_stream *stream, const char *blob_digest, const char *diff_id,
                       struct aq_error *err);

#endif
