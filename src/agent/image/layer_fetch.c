/* SPDX-License-Identifier: Apache-2.0 */
/* layer_fetch.c - one missing layer of a pull from its registry, continued where it was cut */
#include "agent/image/layer_fetch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/image/part_file.h"
#include "agent/image/pull_directory.h"
#include "agent/image/store_layout.h"

struct layer_transfer {
    const struct layer_fetch_source *source;
    const struct manifest_layer *layer;
    char name[sizeof(PULL_PART_PREFIX) + 64]; /* of the partial file */
    const char *kept;                         /* file of skopeo that is tried; NULL = none */
    struct part_file part;
    int fd;
};

/* ---- partial files ---- */

static int layer_transfer_open(struct layer_transfer *transfer, const char *name, int flags,
                               struct aq_error *err)
{
    aq_closep(&transfer->fd);
    transfer->fd = openat(transfer->source->directory, name,
                          O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    if (transfer->fd < 0)
        return aq_fail_errno(err, "open '%s'", name);
    return part_file_init(&transfer->part, transfer->fd, (uint64_t)transfer->layer->size_bytes,
                          err);
}

/* A file of skopeo has no digest in its name: it is the layer's once the registry has sent the same
 * bytes.
 */
static int layer_transfer_adopt(struct layer_transfer *transfer, struct aq_error *err)
{
    int directory = transfer->source->directory;

    if (transfer->kept && transfer->part.position == transfer->part.length) {
        if (renameat(directory, transfer->kept, directory, transfer->name) < 0)
            return aq_fail_errno(err, "rename '%s'", transfer->kept);
        transfer->kept = NULL;
    }
    return 0;
}

/* ---- one request ---- */

static int layer_transfer_on_head(void *data, const struct message_head *head, struct aq_error *err)
{
    struct layer_transfer *transfer = data;

    /* the registry has no ranges: the file may be another layer's */
    if (head->status == 200 && transfer->kept) {
        transfer->kept = NULL;
        if (layer_transfer_open(transfer, transfer->name, O_CREAT | O_TRUNC, err) < 0)
            return -err->code;
    }
    return part_file_begin(&transfer->part, head->status, message_get_header(head, "Content-Range"),
                           err);
}

static int layer_transfer_on_body(void *data, const char *bytes, size_t len, struct aq_error *err)
{
    struct layer_transfer *transfer = data;

    while (transfer->kept && len) { /* first what the file has */
        size_t known = (size_t)AQ_MIN(transfer->part.length - transfer->part.position, len);

        if (part_file_add(&transfer->part, bytes, known, err) < 0
            || layer_transfer_adopt(transfer, err) < 0)
            return -err->code;
        bytes += known;
        len -= known;
    }
    return len ? part_file_add(&transfer->part, bytes, len, err) : 0;
}

static int layer_transfer_request(struct layer_transfer *transfer, struct aq_error *err)
{
    const struct registry_reader reader = { .on_head = layer_transfer_on_head,
                                            .on_body = layer_transfer_on_body,
                                            .data = transfer };
    AQ_CLEANUP(aq_freep) char *path = aq_format("/v2/%s/blobs/%s", transfer->source->repository,
                                                transfer->layer->digest);
    int r;

    transfer->part.position = transfer->part.offset;
    r = registry_client_read(transfer->source->client, path, transfer->part.offset, &reader, err);
    return r < 0 ? r : part_file_verify(&transfer->part, transfer->layer->digest, err);
}

/* ---- the layer ---- */

/* 1 = one of the files that skopeo left was continued to its end, 0 = none is this layer's. */
static int layer_transfer_try_kept(struct layer_transfer *transfer, struct aq_error *err)
{
    int listed = openat(transfer->source->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = listed < 0 ? NULL : fdopendir(listed);
    struct dirent *entry;
    struct stat st;
    int r = 0;

    while (dir && r == 0 && (entry = readdir(dir))) {
        if (strncmp(entry->d_name, PULL_KEPT_PREFIX, strlen(PULL_KEPT_PREFIX)) != 0
            || fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0
            || st.st_size > transfer->layer->size_bytes)
            continue;
        transfer->kept = entry->d_name;
        r = layer_transfer_open(transfer, entry->d_name, 0, err);
        if (r == 0)
            r = layer_transfer_request(transfer, err) < 0 ? -err->code : 1;
        if (transfer->kept && (r == -EILSEQ || r == -ERANGE))
            r = 0;
        transfer->kept = NULL;
    }
    if (dir)
        (void)closedir(dir);
    return r;
}

/* From the layer's own partial file, which may be empty. */
static int layer_transfer_continue(struct layer_transfer *transfer, struct aq_error *err)
{
    int r = layer_transfer_open(transfer, transfer->name, O_CREAT, err);

    return r < 0 ? r : layer_transfer_request(transfer, err);
}

void layer_fetch_remove_kept(int directory)
{
    int listed = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = listed < 0 ? NULL : fdopendir(listed);
    struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (strncmp(entry->d_name, PULL_KEPT_PREFIX, strlen(PULL_KEPT_PREFIX)) == 0)
            (void)unlinkat(directory, entry->d_name, 0);
    if (dir)
        (void)closedir(dir);
}

static int layer_transfer_run(struct layer_transfer *transfer, struct aq_error *err)
{
    int directory = transfer->source->directory;
    bool was_started = faccessat(directory, transfer->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    int r = was_started ? 0 : layer_transfer_try_kept(transfer, err);

    was_started |= r != 0;
    if (r == 0)
        r = layer_transfer_continue(transfer, err) < 0 ? -err->code : 1;
    /* bytes of an earlier try that cannot be continued, or were wrong, are fetched again once */
    if (r == -ERANGE || (was_started && (r == -EILSEQ || r == -EBADMSG || r == -EMSGSIZE))) {
        (void)unlinkat(directory, transfer->name, 0);
        r = layer_transfer_continue(transfer, err) < 0 ? -err->code : 1;
    }
    if (r == -EBADMSG || r == -EMSGSIZE || r == -ERANGE)
        (void)unlinkat(directory, transfer->name, 0);
    return r;
}

int layer_fetch(const struct layer_fetch_source *source, const struct manifest_layer *layer,
                struct aq_error *err)
{
    struct layer_transfer transfer = { .source = source, .layer = layer, .fd = -1 };
    const char *hex = layout_digest_hex(layer->digest);
    AQ_CLEANUP(aq_freep) char *blob = aq_format("blobs/sha256/%s", hex);
    int r;

    if (faccessat(source->directory, blob, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    (void)snprintf(transfer.name, sizeof(transfer.name), PULL_PART_PREFIX "%s", hex);
    r = layer_transfer_run(&transfer, err);
    if (r > 0 && renameat(source->directory, transfer.name, source->directory, blob) < 0)
        r = aq_fail_errno(err, "rename '%s'", transfer.name);
    aq_closep(&transfer.fd);
    if (r >= 0)
        return 0;
    if (r == -EMSGSIZE)
        err->code = EBADMSG;
    return aq_error_wrap(err, "layer %.19s…", layer->digest);
}
