/* SPDX-License-Identifier: Apache-2.0 */
/* copy_fetch.c - files from a folder: many small ones as an archive, a large one by ranges
 *
 * A large file is written to ".aliquot-HASH.part" beside its name; ".aliquot-HASH.etag" says which
 * version of the file that is a part of. One that was begun by a process that was killed goes on
 * from there, if the storage still has this version.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/utf8.h"
#include "cli/folder/copy_run.h"
#include "http/url.h"
#include "transfer/beneath.h"
#include "transfer/name.h"

/* ---- small files ---- */

static int copy_on_entry(void *data, const struct tar_entry *entry, struct aq_error *err)
{
    struct copy_slot *slot = data;
    const struct copy_item *items = slot->run->t->list->items;
    struct tar_entry own = *entry;

    while (slot->expected < slot->end
           && (items[slot->expected].has_failed
               || strcmp(copy_run_name(slot->run, &items[slot->expected]), entry->name) != 0))
        slot->expected++;
    if (slot->expected == slot->end || entry->type != TAR_FILE)
        return aq_fail(err, EBADMSG, "the storage host sent '%.100s', which was not asked for",
                       entry->name);
    own.name = items[slot->expected++].to; /* it comes once */
    return tree_writer_ops.on_entry(slot->writer, &own, err);
}

static int copy_on_bytes(void *data, const char *bytes, size_t len, struct aq_error *err)
{
    struct copy_slot *slot = data;

    copy_slot_moved(slot, len);
    return tree_writer_ops.on_bytes(slot->writer, bytes, len, err);
}

static int copy_on_entry_end(void *data, struct aq_error *err)
{
    struct copy_slot *slot = data;
    int r = tree_writer_ops.on_entry_end(slot->writer, err);

    if (r == 0)
        slot->run->t->list->items[slot->expected - 1].has_come = true;
    return r;
}

/* "failed: NAME: WHY", of the last that has come or one after it. */
static int copy_on_note(void *data, const char *text, struct aq_error *err)
{
    struct copy_slot *slot = data;
    struct copy_item *items = slot->run->t->list->items;

    (void)err;
    text = strncmp(text, "failed: ", 8) == 0 ? text + 8 : text;
    for (size_t i = AQ_MAX(slot->expected, slot->at + 1) - 1; i < slot->end; i++) {
        const char *name = copy_run_name(slot->run, &items[i]);
        size_t len = strlen(name);

        if (strncmp(text, name, len) != 0 || strncmp(text + len, ": ", 2) != 0)
            continue;
        copy_run_fail_item(slot->run, &items[i], text + len + 2);
        break;
    }
    return 0;
}

static void copy_on_archive(struct exchange *exchange, const char *bytes, size_t len, void *data)
{
    struct copy_slot *slot = data;
    struct aq_error err = { 0 };

    if (slot->status >= 300)
        copy_on_body(exchange, bytes, len, data);
    else if (!slot->is_broken && tar_reader_feed(slot->archive, bytes, len, &err) < 0)
        copy_slot_break(slot, &err);
}

/* An archive that is whole may still lack files. */
static int copy_batch_has_come(struct copy_slot *slot, struct aq_error *err)
{
    struct copy_item *items = slot->run->t->list->items;

    if (tar_reader_finish(slot->archive, err) < 0)
        return -err->code;
    for (size_t i = slot->at; i < slot->end; i++)
        if (!items[i].has_come)
            copy_run_fail_item(slot->run, &items[i], "the storage host did not send it");
    return 1;
}

static void copy_write_names(const struct copy_slot *slot, struct strbuf *out)
{
    json_t *names = json_array(), *body;

    for (size_t i = slot->at; i < slot->end; i++) {
        const struct copy_item *item = &slot->run->t->list->items[i];
        AQ_CLEANUP(strbuf_donep) struct strbuf name = STRBUF_INIT;

        name_write(copy_run_name(slot->run, item), &name);
        if (!item->has_failed)
            out->failed |= json_array_append_new(names, json_string(name.data)) < 0;
    }
    body = json_pack("{s:o}", "files", names);
    output_json(body, out);
    json_decref(body);
}

static int copy_fetch_batch(struct copy_slot *slot, struct aq_error *err)
{
    static const struct exchange_ops ops = { .on_head = copy_on_head,
                                             .on_body = copy_on_archive,
                                             .on_end = copy_on_end };
    static const struct tar_reader_ops tar_ops = { .on_entry = copy_on_entry,
                                                   .on_bytes = copy_on_bytes,
                                                   .on_entry_end = copy_on_entry_end,
                                                   .on_note = copy_on_note };
    static const struct tree_writer_options options = { .is_wary = true, .is_named = true };
    static const struct tar_limits limits = { 0 };
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    int r = tree_writer_new(slot->run->t->root, ".", &options, &slot->writer, err);

    if (r == 0)
        r = tar_reader_new(&limits, &tar_ops, slot, &slot->archive, err);
    if (r < 0)
        return r;
    slot->expected = slot->at;
    copy_write_names(slot, &body);
    return copy_slot_send(slot, METHOD_POST, "download", "", "Content-Type: application/json\r\n",
                          &body, &ops, copy_batch_has_come, err);
}

/* ---- a large file ---- */

/* Is it a file that nobody else can write to, or has under another name? */
static bool copy_is_own(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1
           && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Open the part that an earlier copy has left, or make one. In a directory that others can write
 * to, they may have put something of that name there: a pipe, their own file, a link to one of
 * ours.
 */
static int copy_open_own(int parent, const char *name)
{
    const int flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    AQ_CLEANUP(aq_closep) int found = openat(parent, name, flags);
    int fd;

    if (found >= 0 && copy_is_own(found))
        return AQ_TAKE_FD(found);
    if (unlinkat(parent, name, 0) < 0 && errno != ENOENT)
        return -errno;
    fd = openat(parent, name, flags | O_CREAT | O_EXCL, 0600);
    return fd < 0 ? -errno : fd;
}

/* Which version the part is of; false = unknown. */
static bool copy_read_mark(struct copy_slot *slot)
{
    AQ_CLEANUP(aq_closep) int fd = openat(slot->parent, slot->mark,
                                          O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t len = fd >= 0 && copy_is_own(fd) ? read(fd, slot->etag, sizeof(slot->etag)) : -1;

    if (len <= 0 || len == (ssize_t)sizeof(slot->etag) || memchr(slot->etag, '\0', (size_t)len)
        || memchr(slot->etag, '\r', (size_t)len) || memchr(slot->etag, '\n', (size_t)len))
        len = 0;
    slot->etag[len] = '\0';
    return len > 0;
}

static int copy_open_part(struct copy_slot *slot, struct aq_error *err)
{
    const struct copy_item *item = copy_slot_item(slot);
    const char *name;
    struct stat st;

    slot->parent = beneath_open_parent(slot->run->t->root, item->to, true, true, &name);
    if (slot->parent < 0)
        return beneath_fail(err, -slot->parent, item->to);
    (void)tree_writer_part_name(name, slot->part);
    (void)snprintf(slot->mark, sizeof(slot->mark), "%.*s.etag",
                   (int)(strrchr(slot->part, '.') - slot->part), slot->part);
    slot->fd = copy_open_own(slot->parent, slot->part);
    if (slot->fd < 0 || fstat(slot->fd, &st) < 0)
        return beneath_fail(err, slot->fd < 0 ? -slot->fd : errno, item->to);
    slot->offset = copy_read_mark(slot) ? (uint64_t)st.st_size : 0;
    if (slot->offset) /* one whose name is all it lacks is asked for its last byte */
        slot->offset = AQ_MIN(slot->offset, AQ_MAX(item->size, (uint64_t)1) - 1);
    return 0;
}

static void copy_on_file_head(struct exchange *exchange, const struct message_head *head,
                              void *data)
{
    const char *etag = message_get_header(head, "ETag");
    struct copy_slot *slot = data;
    struct aq_error err = { 0 };

    copy_on_head(exchange, head, data);
    if (slot->status == 206) {
        copy_slot_found(slot, slot->offset);
    } else if (slot->status == 200) {
        copy_slot_found(slot, 0);
        slot->offset = 0;
        if (ftruncate(slot->fd, 0) < 0)
            (void)aq_fail_errno(&err, "write");
        else if (etag)
            (void)fs_write_quick(slot->parent, slot->mark, etag, strlen(etag), 0600, &err);
        if (err.code)
            copy_slot_break(slot, &err);
    } else if (slot->status == 416) { /* the file is shorter now */
        (void)unlinkat(slot->parent, slot->mark, 0);
    }
}

static void copy_on_file_body(struct exchange *exchange, const char *bytes, size_t len, void *data)
{
    struct copy_slot *slot = data;
    uint64_t before = slot->offset;
    struct aq_error err = { 0 };
    int r;

    if (slot->status >= 300) {
        copy_on_body(exchange, bytes, len, data);
        return;
    }
    if (slot->is_broken)
        return;
    r = fs_write_sparse(slot->fd, bytes, len, &slot->offset);
    copy_slot_moved(slot, slot->offset - before);
    if (r < 0) {
        (void)beneath_fail(&err, -r, copy_slot_item(slot)->to);
        copy_slot_break(slot, &err);
    }
}

static int copy_file_has_come(struct copy_slot *slot, struct aq_error *err)
{
    const struct copy_item *item = copy_slot_item(slot);
    const char *slash = strrchr(item->to, '/'), *name = slash ? slash + 1 : item->to;
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
                                       { .tv_sec = item->modified_usec / USEC_PER_SEC,
                                         .tv_nsec = item->modified_usec % USEC_PER_SEC * 1000 } };

    if (ftruncate(slot->fd, (off_t)slot->offset) < 0
        || fchmod(slot->fd, (item->mode | 0600) & ~fs_umask()) < 0 || futimens(slot->fd, times) < 0
        || renameat(slot->parent, slot->part, slot->parent, name) < 0)
        return beneath_fail(err, errno, item->to);
    (void)unlinkat(slot->parent, slot->mark, 0);
    return 1;
}

static int copy_fetch_file(struct copy_slot *slot, struct aq_error *err)
{
    static const struct exchange_ops ops = { .on_head = copy_on_file_head,
                                             .on_body = copy_on_file_body,
                                             .on_end = copy_on_end };
    AQ_CLEANUP(strbuf_donep) struct strbuf query = STRBUF_INIT, name = STRBUF_INIT;
    char headers[300] = "";
    int r = copy_open_part(slot, err);

    if (r < 0)
        return r;
    name_write(copy_run_name(slot->run, copy_slot_item(slot)), &name);
    strbuf_adds(&query, "&path=");
    url_encode(&query, name.data);
    if (slot->offset)
        (void)snprintf(headers, sizeof(headers), "Range: bytes=%" PRIu64 "-\r\nIf-Range: %s\r\n",
                       slot->offset, slot->etag);
    return copy_slot_send(slot, METHOD_GET, "download", query.data, headers, NULL, &ops,
                          copy_file_has_come, err);
}

int copy_fetch_begin(struct copy_slot *slot, struct aq_error *err)
{
    return slot->end - slot->at == 1 ? copy_fetch_file(slot, err) : copy_fetch_batch(slot, err);
}
