/* SPDX-License-Identifier: Apache-2.0 */
/* copy_send.c - files to a folder: many small ones as an archive, a large one by tus */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/uuid.h"
#include "cli/folder/copy_run.h"
#include "http/url.h"
#include "transfer/beneath.h"
#include "transfer/name.h"

#define QUEUE_HIGH ((size_t)1 << 20)
#define PIECE ((size_t)128 << 10)

/* -ESTALE: it is not what was listed. */
static int copy_open_source(const struct copy_item *item, struct stat *st, struct aq_error *err)
{
    int fd = beneath_open(item->root, item->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, true);

    if (fd >= 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode)
        && (uint64_t)st->st_size == item->size)
        return fd;
    if (fd < 0)
        return beneath_fail(err, -fd, item->path);
    aq_closep(&fd);
    return aq_fail(err, ESTALE, "it was changed meanwhile");
}

/* ---- small files ---- */

static int copy_read_whole(int fd, char *to, size_t len)
{
    while (len) {
        ssize_t n = read(fd, to, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ESTALE;
        to += n;
        len -= (size_t)n;
    }
    return 0;
}

static int copy_add_file(const struct copy_item *item, struct strbuf *body, struct aq_error *err)
{
    static const char zeros[TAR_BLOCK];
    size_t from = body->len;
    struct stat st;
    AQ_CLEANUP(aq_closep) int fd = copy_open_source(item, &st, err);
    int r;

    if (fd < 0)
        return fd;
    tar_write_head(body,
                   &(struct tar_entry){ .type = TAR_FILE,
                                        .name = item->to,
                                        .mode = item->mode,
                                        .size = item->size,
                                        .mtime = item->modified_usec / USEC_PER_SEC,
                                        .mtime_nsec = item->modified_usec % USEC_PER_SEC * 1000 });
    (void)strbuf_reserve(body, (size_t)item->size);
    r = copy_read_whole(fd, body->data + body->len, (size_t)item->size);
    if (r < 0) {
        strbuf_truncate(body, from);
        return aq_fail(err, -r, "%s", r == -ESTALE ? "it was changed meanwhile" : strerror(-r));
    }
    body->len += (size_t)item->size;
    strbuf_add(body, zeros, tar_padding(item->size));
    return 0;
}

static void copy_add_folder(const struct copy_item *item, struct strbuf *body)
{
    AQ_CLEANUP(aq_freep) char *name = aq_format("%s/", item->to);

    tar_write_head(body, &(struct tar_entry){ .type = TAR_FOLDER,
                                              .name = name,
                                              .mode = item->mode,
                                              .mtime = item->modified_usec / USEC_PER_SEC });
}

static int copy_batch_is_sent(struct copy_slot *slot, struct aq_error *err)
{
    (void)err;
    for (size_t i = slot->at; i < slot->end; i++)
        if (!slot->run->t->list->items[i].has_failed)
            copy_slot_moved(slot, slot->run->t->list->items[i].size);
    return 1;
}

static int copy_send_batch(struct copy_slot *slot, struct aq_error *err)
{
    static const struct exchange_ops ops = { .on_head = copy_on_head,
                                             .on_body = copy_on_body,
                                             .on_end = copy_on_end };
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;

    for (size_t i = slot->at; i < slot->end; i++) {
        struct copy_item *item = &slot->run->t->list->items[i];
        struct aq_error why = { 0 };

        if (item->has_failed)
            continue;
        if (item->type == COPY_FOLDER)
            copy_add_folder(item, &body);
        else if (copy_add_file(item, &body, &why) < 0)
            copy_run_fail_item(slot->run, item, why.text);
    }
    if (!body.len)
        return 1;
    tar_write_end(&body);
    return copy_slot_send(slot, METHOD_PUT, "archive", "", "Content-Type: application/x-tar\r\n",
                          &body, &ops, copy_batch_is_sent, err);
}

/* ---- a large file ---- */

/* The same each time that this file is sent as it is now. */
static struct uuid copy_make_upload_id(const struct copy_item *item, const struct stat *st)
{
    char host[256] = "", text[512];

    (void)gethostname(host, sizeof(host) - 1);
    (void)snprintf(text, sizeof(text), "%s:%ju:%ju:%" PRId64 ".%ld:%" PRIu64, host,
                   (uintmax_t)st->st_dev, (uintmax_t)st->st_ino, (int64_t)st->st_mtim.tv_sec,
                   st->st_mtim.tv_nsec, item->size);
    return uuid_of_text(text);
}

static void copy_write_query(const struct copy_slot *slot, struct strbuf *out)
{
    const struct copy_item *item = copy_slot_item(slot);
    AQ_CLEANUP(strbuf_donep) struct strbuf name = STRBUF_INIT;
    char id[UUID_TEXT_MAX] = "";
    struct stat st;
    struct uuid upload;

    if (fstat(slot->fd, &st) == 0) {
        upload = copy_make_upload_id(item, &st);
        (void)uuid_format(&upload, id);
    }
    name_write(item->to, &name);
    out->failed = out->failed || name.failed;
    strbuf_adds(out, "&path=");
    url_encode(out, name.data);
    strbuf_addf(out, "&size=%" PRIu64 "&modified=%" PRId64 "&mode=%u&upload=%s", item->size,
                item->modified_usec, (unsigned)item->mode, id);
}

/* As much as the connection takes. */
static void copy_feed(struct copy_slot *slot)
{
    static char piece[PIECE];
    const struct copy_item *item = copy_slot_item(slot);
    struct aq_error err = { 0 };

    while (slot->exchange && !slot->is_sent && !slot->is_broken && !slot->status
           && exchange_get_queued(slot->exchange) < QUEUE_HIGH) {
        size_t want = (size_t)AQ_MIN(item->size - slot->offset, (uint64_t)PIECE);
        ssize_t got = want ? pread(slot->fd, piece, want, (off_t)slot->offset) : 0;

        if (want && got <= 0) {
            (void)aq_fail(&err, got < 0 ? errno : ESTALE, "%s",
                          got < 0 ? strerror(errno) : "it was changed meanwhile");
            copy_slot_break(slot, &err);
            return;
        }
        if (got && exchange_write(slot->exchange, piece, (size_t)got) < 0) {
            slot->is_sent = true; /* the answer, or the end, says why */
            return;
        }
        slot->offset += (uint64_t)got;
        copy_slot_moved(slot, (uint64_t)got);
        if (slot->offset == item->size) {
            slot->is_sent = true;
            (void)exchange_finish(slot->exchange);
        }
    }
}

static void copy_on_drain(struct exchange *exchange, void *data)
{
    (void)exchange;
    copy_feed(data);
}

static int copy_file_is_sent(struct copy_slot *slot, struct aq_error *err)
{
    (void)slot;
    (void)err;
    return 1;
}

/* The storage has said how far it has come. */
static int copy_send_rest(struct copy_slot *slot, struct aq_error *err)
{
    static const struct exchange_ops ops = { .on_head = copy_on_head,
                                             .on_body = copy_on_body,
                                             .on_end = copy_on_end,
                                             .on_drain = copy_on_drain };
    const struct copy_item *item = copy_slot_item(slot);
    AQ_CLEANUP(strbuf_donep) struct strbuf query = STRBUF_INIT;
    char headers[200];
    int r;

    slot->offset = AQ_MIN(slot->offset, item->size);
    copy_slot_found(slot, slot->offset);
    if (slot->offset == item->size && item->size)
        return 1;
    slot->is_sent = false;
    copy_write_query(slot, &query);
    (void)snprintf(headers, sizeof(headers),
                   "Tus-Resumable: 1.0.0\r\nUpload-Offset: %" PRIu64
                   "\r\nContent-Type: application/offset+octet-stream\r\n",
                   slot->offset);
    r = copy_slot_send(slot, METHOD_PATCH, "upload", query.data, headers, NULL, &ops,
                       copy_file_is_sent, err);
    if (r == 0)
        copy_feed(slot);
    return r;
}

static void copy_on_offset(struct exchange *exchange, const struct message_head *head, void *data)
{
    const char *text = message_get_header(head, "Upload-Offset");
    struct copy_slot *slot = data;

    copy_on_head(exchange, head, data);
    slot->offset = text ? strtoull(text, NULL, 10) : 0;
}

static int copy_send_file(struct copy_slot *slot, struct aq_error *err)
{
    static const struct exchange_ops ops = { .on_head = copy_on_offset,
                                             .on_body = copy_on_body,
                                             .on_end = copy_on_end };
    AQ_CLEANUP(strbuf_donep) struct strbuf query = STRBUF_INIT;
    struct stat st;

    slot->fd = copy_open_source(copy_slot_item(slot), &st, err);
    if (slot->fd < 0)
        return slot->fd;
    copy_write_query(slot, &query);
    return copy_slot_send(slot, METHOD_HEAD, "upload", query.data, "Tus-Resumable: 1.0.0\r\n", NULL,
                          &ops, copy_send_rest, err);
}

int copy_send_begin(struct copy_slot *slot, struct aq_error *err)
{
    bool is_single = slot->end - slot->at == 1 && copy_slot_item(slot)->type == COPY_FILE;

    return is_single ? copy_send_file(slot, err) : copy_send_batch(slot, err);
}
