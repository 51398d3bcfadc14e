/* SPDX-License-Identifier: Apache-2.0 */
/* part_file.c - the beginning of a blob on disk, continued by a later answer of the registry */
#include "agent/image/part_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "registry/content_range.h"
#include "registry/registry_client.h"

/* Empty the file: the next request is for the whole blob. */
static int part_file_restart(struct part_file *part, struct aq_error *err)
{
    if (ftruncate(part->fd, 0) < 0)
        return aq_fail_errno(err, "empty the partial file");
    part->length = part->offset = part->position = 0;
    return 0;
}

int part_file_init(struct part_file *part, int fd, uint64_t blob_size, struct aq_error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return aq_fail_errno(err, "read the size of the partial file");
    *part = (struct part_file){ .fd = fd, .blob_size = blob_size, .length = (uint64_t)st.st_size };
    if (part->length > blob_size)
        return part_file_restart(part, err);
    part->offset = part->length - AQ_MIN(part->length, PART_OVERLAP);
    part->position = part->offset;
    return 0;
}

int part_file_begin(struct part_file *part, int status, const char *content_range,
                    struct aq_error *err)
{
    uint64_t first, size;

    if (status == 200)
        return part->length ? part_file_restart(part, err) : 0;
    if (status == 416)
        return aq_fail(err, ERANGE, "the registry has no bytes from %" PRIu64 " on (status 416)",
                       part->offset);
    if (status != 206)
        return registry_client_fail_status("the registry", status, err);
    if (!content_range || content_range_parse(content_range, &first, &size) < 0)
        return aq_fail(err, ERANGE, "the registry sends the invalid Content-Range '%.60s'",
                       content_range ? content_range : "");
    if (first != part->offset || size != part->blob_size)
        return aq_fail(err, ERANGE,
                       "the registry sends the range '%.60s', but bytes from %" PRIu64
                       " on of %" PRIu64 " were requested",
                       content_range, part->offset, part->blob_size);
    return 0;
}

/* Compares with what the file has at the position, as far as it has that. */
static int part_file_compare(struct part_file *part, const char *bytes, size_t len,
                             struct aq_error *err)
{
    char known[PART_OVERLAP];

    if (pread(part->fd, known, len, (off_t)part->position) != (ssize_t)len)
        return aq_fail(err, EIO, "cannot read the partial file at byte %" PRIu64, part->position);
    if (memcmp(known, bytes, len) != 0)
        return aq_fail(err, EILSEQ, "the registry sends other bytes than the partial file has");
    part->position += len;
    return 0;
}

int part_file_add(struct part_file *part, const char *bytes, size_t len, struct aq_error *err)
{
    size_t known = (size_t)AQ_MIN(part->length - part->position, len);
    int r = known ? part_file_compare(part, bytes, known, err) : 0;

    if (r < 0)
        return r;
    bytes += known;
    len -= known;
    if (len > part->blob_size - part->position)
        return aq_fail(err, EMSGSIZE,
                       "the registry sends more than the %" PRIu64 " bytes of its manifest",
                       part->blob_size);
    while (len) {
        ssize_t n = pwrite(part->fd, bytes, len, (off_t)part->position);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return aq_fail_errno(err, "write the partial file");
        part->position += (uint64_t)n;
        part->length = part->position;
        bytes += n;
        len -= (size_t)n;
    }
    return 0;
}

static int part_file_digest(const struct part_file *part, EVP_MD_CTX *context,
                            unsigned char ret[EVP_MAX_MD_SIZE], struct aq_error *err)
{
    static char chunk[1 << 16];
    ssize_t n;

    if (!context || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1)
        return aq_fail(err, EIO, "cannot compute SHA-256");
    for (uint64_t at = 0; at < part->length; at += (uint64_t)n) {
        n = pread(part->fd, chunk, sizeof(chunk), (off_t)at);
        if (n <= 0)
            return aq_fail(err, EIO, "cannot read the partial file at byte %" PRIu64, at);
        if (EVP_DigestUpdate(context, chunk, (size_t)n) != 1)
            return aq_fail(err, EIO, "cannot compute SHA-256");
    }
    return EVP_DigestFinal_ex(context, ret, NULL) == 1
               ? 0
               : aq_fail(err, EIO, "cannot compute SHA-256");
}

int part_file_verify(const struct part_file *part, const char *digest, struct aq_error *err)
{
    EVP_MD_CTX *context = NULL;
    unsigned char bytes[EVP_MAX_MD_SIZE];
    char text[72] = "sha256:";
    int r;

    if (part->length < part->blob_size)
        return aq_fail(err, ECONNRESET, "the answer ended after %" PRIu64 " of %" PRIu64 " bytes",
                       part->length, part->blob_size);
    context = EVP_MD_CTX_new();
    r = part_file_digest(part, context, bytes, err);
    EVP_MD_CTX_free(context);
    if (r < 0)
        return r;
    for (size_t i = 0; i < 32; i++)
        (void)snprintf(text + 7 + 2 * i, 3, "%02x", bytes[i]);
    return strcmp(text, digest) == 0
               ? 0
               : aq_fail(err, EBADMSG, "the bytes from the registry do not match this digest");
}
