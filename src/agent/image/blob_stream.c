/* SPDX-License-Identifier: Apache-2.0 */
/* blob_stream.c - reads and decompresses a layer's blob and computes both digests */
#include "agent/image/blob_stream.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "model/reference.h"

#define CHUNK (256 * 1024)

struct blob_stream {
    int fd, read_errno;
    struct archive *archive; /* format "raw": one entry, the decompressed bytes */
    EVP_MD_CTX *blob, *plain;
    int64_t position, plain_bytes, plain_max;
    bool is_empty; /* nothing is in it; libarchive has no data to be asked for then */
    char chunk[CHUNK];
};

static la_ssize_t blob_stream_on_read(struct archive *archive, void *data, const void **ret)
{
    struct blob_stream *stream = data;
    ssize_t got;

    (void)archive;
    do
        got = read(stream->fd, stream->chunk, sizeof(stream->chunk));
    while (got < 0 && errno == EINTR);
    if (got < 0) {
        stream->read_errno = errno;
        return ARCHIVE_FATAL;
    }
    if (EVP_DigestUpdate(stream->blob, stream->chunk, (size_t)got) != 1)
        return ARCHIVE_FATAL;
    stream->position += got;
    *ret = stream->chunk;
    return got;
}

static int blob_stream_fail_archive(struct blob_stream *stream, struct aq_error *err)
{
    const char *text = archive_error_string(stream->archive);

    if (stream->read_errno)
        return aq_fail(err, stream->read_errno, "read the blob: %s", strerror(stream->read_errno));
    return aq_fail(err, EBADMSG, "the blob cannot be decompressed: %s",
                   text ? text : "out of memory");
}

static EVP_MD_CTX *blob_stream_new_digest(void)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();

    if (context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(context);
        context = NULL;
    }
    return context;
}

static int blob_stream_open_archive(struct blob_stream *stream, struct aq_error *err)
{
    struct archive_entry *entry;
    int r = archive_read_support_filter_gzip(stream->archive);

    if (r == ARCHIVE_OK)
        r = archive_read_support_filter_zstd(stream->archive);
    if (r == ARCHIVE_OK)
        r = archive_read_support_format_raw(stream->archive);
    if (r == ARCHIVE_OK)
        r = archive_read_support_format_empty(stream->archive);
    if (r == ARCHIVE_OK)
        r = archive_read_open(stream->archive, stream, NULL, blob_stream_on_read, NULL);
    if (r == ARCHIVE_OK)
        r = archive_read_next_header(stream->archive, &entry);
    stream->is_empty = r == ARCHIVE_EOF;
    return r == ARCHIVE_OK || stream->is_empty ? 0 : blob_stream_fail_archive(stream, err);
}

int blob_stream_new(int fd, int64_t plain_max, struct blob_stream **ret, struct aq_error *err)
{
    AQ_CLEANUP(blob_stream_freep) struct blob_stream *stream = aq_alloc(sizeof(*stream));
    int r;

    stream->fd = fd;
    stream->plain_max = plain_max;
    stream->archive = archive_read_new();
    stream->blob = blob_stream_new_digest();
    stream->plain = blob_stream_new_digest();
    if (!stream->archive || !stream->blob || !stream->plain)
        memory_is_short();
    r = blob_stream_open_archive(stream, err);
    if (r == 0)
        *ret = AQ_TAKE(stream);
    return r;
}

void blob_stream_free(struct blob_stream *stream)
{
    if (!stream)
        return;
    (void)archive_read_free(stream->archive);
    EVP_MD_CTX_free(stream->blob);
    EVP_MD_CTX_free(stream->plain);
    free(stream);
}

ptrdiff_t blob_stream_read(struct blob_stream *stream, const void **ret, struct aq_error *err)
{
    la_int64_t offset;
    size_t size = 0;
    int r;

    if (stream->is_empty)
        return 0;
    do
        r = archive_read_data_block(stream->archive, ret, &size, &offset);
    while (r == ARCHIVE_OK && size == 0);
    if (r == ARCHIVE_EOF)
        return 0;
    if (r != ARCHIVE_OK)
        return blob_stream_fail_archive(stream, err);
    stream->plain_bytes += (int64_t)size;
    if (stream->plain_bytes > stream->plain_max)
        return aq_fail(err, EFBIG,
                       "the layer has more than %lld bytes when decompressed "
                       "([image] max-layer-size)",
                       (long long)stream->plain_max);
    if (EVP_DigestUpdate(stream->plain, *ret, size) != 1)
        return aq_fail(err, EIO, "cannot compute the SHA-256 digest of the layer");
    return (ptrdiff_t)size;
}

int64_t blob_stream_position(const struct blob_stream *stream)
{
    return stream->position;
}

static int blob_stream_compare(EVP_MD_CTX *context, const char *wanted, const char *field,
                               struct aq_error *err)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    char text[DIGEST_TEXT_MAX] = "sha256:";
    unsigned len;

    if (EVP_DigestFinal_ex(context, digest, &len) != 1)
        return aq_fail(err, EIO, "cannot compute the SHA-256 digest of the layer");
    for (unsigned i = 0; i < len; i++)
        (void)snprintf(text + 7 + 2 * i, 3, "%02x", digest[i]);
    if (wanted && strcmp(text, wanted) != 0)
        return aq_fail_field(err, EBADMSG, field,
                             "the layer is not what the image promises: its "
                             "%s is %s, not %s",
                             field, text, wanted);
    return 0;
}

int blob_stream_verify(struct blob_stream *stream, const char *blob_digest, const char *diff_id,
                       struct aq_error *err)
{
    const void *bytes;
    ptrdiff_t got;
    int r;

    do
        got = blob_stream_read(stream, &bytes, err);
    while (got > 0);
    /* a compressed stream may end before the blob does */
    while (got == 0 && blob_stream_on_read(NULL, stream, &bytes) > 0)
        ;
    if (stream->read_errno)
        return blob_stream_fail_archive(stream, err);
    if (got < 0)
        return (int)got;
    r = blob_stream_compare(stream->blob, blob_digest, "blob", err);
    return r < 0 ? r : blob_stream_compare(stream->plain, diff_id, "diff_id", err);
}
