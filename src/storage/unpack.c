/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.c - uploads of many small files at once, as a tar archive
 *
 * The token is that of a tree. An archive's files and directories are written beneath it as they
 * come, a buffer behind the client, and each file gets its name when it is complete. All are on
 * disk when the answer says so: one flush of the file system instead of one for each file. What
 * came before a failure stays; the same archive may come again.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/memory.h"
#include "storage/folder.h"
#include "storage/storage.h"
#include "storage/volume.h"
#include "transfer/beneath.h"
#include "transfer/tree_writer.h"

#define UNPACK_BUFFER ((size_t)128 << 10)
#define UNPACK_MAX (INT64_C(1) << 40)

struct unpack {
    struct work work;
    struct right_use use;
    struct storage *storage;
    struct request *req;
    struct volume *volume;
    struct token token;
    int base; /* the directory of the token's path */
    struct tree_writer *writer;
    struct tar_reader *reader;
    struct strbuf fill, flush; /* what comes, what is written */
    uint64_t got, file_got;    /* of all files, of the one at hand */
    bool is_writing, has_ended;
    bool is_cut; /* the user's right has ended */
    int status;  /* of the body's end */
    struct storage_share share;
    struct usage_hold hold;
    struct aq_error err;
};

/* Its request and its place among the transfers are the caller's. */
static struct storage_transfer unpack_free(struct unpack *u)
{
    struct storage_transfer left = { u->storage, u->req, u->share };

    if (u->base >= 0)
        storage_touch(u->volume, &u->token.folder_id, token_user(&u->token));
    right_use_end(&u->use);
    tree_writer_free(u->writer);
    tar_reader_free(u->reader);
    aq_closep(&u->base);
    strbuf_done(&u->fill);
    strbuf_done(&u->flush);
    usage_release(u->storage->usage, &u->hold);
    free(u);
    return left;
}

/* ---- what is done on the disk ---- */

static int unpack_on_entry(void *data, const struct tar_entry *entry, struct aq_error *err)
{
    struct unpack *u = data;
    char clean[PATH_MAX];

    u->file_got = 0;
    if (entry->type != TAR_FILE && entry->type != TAR_FOLDER)
        return aq_fail(err, EINVAL, "'%.200s' is neither file nor directory", entry->name);
    if (!*u->token.path && folder_clean("path", entry->name, true, clean, err) < 0)
        return -err->code;
    return tree_writer_ops.on_entry(u->writer, entry, err);
}

static int unpack_on_bytes(void *data, const char *bytes, size_t len, struct aq_error *err)
{
    struct unpack *u = data;

    if (usage_take(u->storage->usage, &u->token.folder_id, u->token.quota_bytes, len, err) < 0)
        return -err->code;
    u->got += len;
    u->file_got += len;
    return tree_writer_ops.on_bytes(u->writer, bytes, len, err);
}

static void unpack_on_replaced(void *data, uint64_t bytes)
{
    struct unpack *u = data;

    usage_give(u->storage->usage, &u->token.folder_id, bytes);
}

static int unpack_on_entry_end(void *data, struct aq_error *err)
{
    struct unpack *u = data;
    int r = tree_writer_ops.on_entry_end(u->writer, err);

    if (r == 0)
        u->file_got = 0;
    AQ_FAULT("storage.unpack.named");
    return r;
}

static void unpack_run_open(struct work *work)
{
    static const struct tar_reader_ops ops = { .on_entry = unpack_on_entry,
                                               .on_bytes = unpack_on_bytes,
                                               .on_entry_end = unpack_on_entry_end };
    static const struct tar_limits limits = { 0 };
    struct unpack *u = AQ_CONTAINER_OF(work, struct unpack, work);
    const struct tree_writer_options options = { .is_wary = true,
                                                 .on_replaced = unpack_on_replaced,
                                                 .data = u };
    AQ_CLEANUP(aq_closep) int root = volume_open_folder(&u->volume->dir, &u->token.folder_id,
                                                        &u->err);

    if (root < 0
        || usage_check(u->storage->usage, &u->token.folder_id, u->token.quota_bytes,
                       request_get_head(u->req)->content_length, &u->err)
               < 0)
        return;
    u->base = *u->token.path ? beneath_make(root, u->token.path, false)
                             : openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (u->base < 0)
        (void)beneath_fail(&u->err, -u->base, *u->token.path ? u->token.path : ".");
    else if (tree_writer_new(u->base, ".", &options, &u->writer, &u->err) == 0)
        (void)tar_reader_new(&limits, &ops, u, &u->reader, &u->err);
}

static void unpack_run_write(struct work *work)
{
    struct unpack *u = AQ_CONTAINER_OF(work, struct unpack, work);

    (void)tar_reader_feed(u->reader, u->flush.data, u->flush.len, &u->err);
}

static void unpack_run_sync(struct work *work)
{
    struct unpack *u = AQ_CONTAINER_OF(work, struct unpack, work);
    AQ_CLEANUP(aq_closep) int fd = openat(u->base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (tar_reader_finish(u->reader, &u->err) == 0 && (fd < 0 || syncfs(fd) < 0))
        (void)beneath_fail(&u->err, errno, *u->token.path ? u->token.path : ".");
    AQ_FAULT("storage.unpack.synced");
}

/* ---- the body ---- */

static void unpack_end(struct unpack *u)
{
    const struct aq_error err = u->err;
    bool is_broken_off = u->status < 0, is_cut = u->is_cut;
    struct storage *storage = u->storage;
    struct storage_transfer left;

    usage_give(storage->usage, &u->token.folder_id, u->file_got); /* it has no name, and goes */
    storage->counts.bytes_in += u->got;
    storage->counts.uploads += !is_cut && !is_broken_off && !err.code;
    left = unpack_free(u);
    request_add_header(left.req, "Cache-Control", "no-store");
    if (is_cut)
        request_abort(left.req);
    else if (is_broken_off)
        storage_refuse(storage, left.req, 400, "the body broke off");
    else if (err.code)
        storage_fail(storage, left.req, &err);
    else
        request_reply_empty(left.req, 204);
    storage_leave(&left);
}

static void unpack_on_synced(struct work *work)
{
    unpack_end(AQ_CONTAINER_OF(work, struct unpack, work));
}

static void unpack_pump(struct unpack *u);

static void unpack_on_written(struct work *work)
{
    struct unpack *u = AQ_CONTAINER_OF(work, struct unpack, work);

    u->is_writing = false;
    strbuf_clear(&u->flush);
    unpack_pump(u);
}

static void unpack_submit(struct unpack *u, void (*run)(struct work *), void (*done)(struct work *))
{
    u->is_writing = true;
    if (work_submit(&u->volume->lanes[WORK_DATA], &u->work, token_user(&u->token), run, done,
                    &u->err)
        < 0)
        unpack_end(u);
}

/* Write what there is, if nothing is being written. The rest of a body that failed is read and
 * dropped, so that its client sees the answer.
 */
static void unpack_pump(struct unpack *u)
{
    if (u->is_writing)
        return;
    if (u->is_cut) {
        unpack_end(u);
        return;
    }
    if (u->err.code && !u->has_ended) {
        strbuf_clear(&u->fill);
        request_resume_body(u->req); /* what goes on comes from within: no more of it here */
        return;
    }
    if (u->fill.len && !u->err.code) {
        AQ_SWAP(u->fill, u->flush);
        u->is_writing = true; /* what goes on comes from within */
        if (!u->has_ended)
            request_resume_body(u->req);
        unpack_submit(u, unpack_run_write, unpack_on_written);
    } else if (u->has_ended && (u->err.code || u->status < 0)) {
        unpack_end(u);
    } else if (u->has_ended) {
        unpack_submit(u, unpack_run_sync, unpack_on_synced);
    }
}

static void unpack_on_body(struct request *req, const char *bytes, size_t len, int status,
                           void *data)
{
    struct unpack *u = data;

    strbuf_add(&u->fill, bytes, len);
    u->status = status;
    u->has_ended = !bytes || !len;
    if (u->is_writing && u->fill.len >= UNPACK_BUFFER && !u->has_ended)
        request_pause_body(req);
    unpack_pump(u);
}

static void unpack_on_open(struct work *work)
{
    struct unpack *u = AQ_CONTAINER_OF(work, struct unpack, work);

    u->is_writing = false;
    if (u->is_cut || u->err.code || request_is_gone(u->req))
        unpack_end(u);
    else
        request_read_body(u->req, unpack_on_body, u);
}

/* ---- the request ---- */

static void unpack_open(struct unpack *u)
{
    u->is_writing = false;
    if (u->is_cut || u->err.code)
        unpack_end(u);
    else
        unpack_submit(u, unpack_run_open, unpack_on_open);
}

static void unpack_on_counted(struct usage_hold *hold, const struct aq_error *err)
{
    struct unpack *u = AQ_CONTAINER_OF(hold, struct unpack, hold);

    if (err)
        u->err = *err;
    unpack_open(u);
}

static void unpack_on_ready(struct right_use *use)
{
    struct unpack *u = AQ_CONTAINER_OF(use, struct unpack, use);

    storage_touch(u->volume, &u->token.folder_id, token_user(&u->token));
    u->is_writing = true; /* until what the folder holds is known */
    if (storage_hold_usage(u->volume, &u->token, &u->hold, unpack_on_counted, &u->err) != 0)
        unpack_open(u);
}

static void unpack_on_refused(struct right_use *use, const struct aq_error *err)
{
    struct unpack *u = AQ_CONTAINER_OF(use, struct unpack, use);

    u->err = *err;
    unpack_end(u);
}

static void unpack_on_right_ended(struct right_use *use)
{
    struct unpack *u = AQ_CONTAINER_OF(use, struct unpack, use);

    u->is_cut = true;
    if (u->is_writing)
        return;
    if (!request_is_gone(u->req))
        request_pause_body(u->req);
    unpack_end(u);
}

static void unpack_on_request(struct request *req, void *data)
{
    struct storage *storage = data;
    bool is_expired = false;
    struct unpack *u;

    if (!storage_enter(storage, req))
        return;
    u = aq_alloc(sizeof(*u));
    u->storage = storage;
    u->req = req;
    u->base = -1;
    u->use = (struct right_use){ .on_ready = unpack_on_ready,
                                 .on_refused = unpack_on_refused,
                                 .on_cut = unpack_on_right_ended };
    strbuf_init(&u->fill);
    strbuf_init(&u->flush);
    if (storage_read_token(storage, req, true, &u->token, &u->volume, &is_expired, &u->err) == 0) {
        if (!u->token.is_tree)
            (void)aq_fail(&u->err, EACCES, "the token is not that of a tree");
        else if (is_expired)
            (void)aq_fail(&u->err, EACCES, "the token has expired");
        else if (request_get_head(req)->is_chunked)
            (void)aq_fail(&u->err, EINVAL, "Content-Length: missing");
        else
            (void)storage_take_share(storage, &u->token, &u->share, &u->err);
    }
    if (u->err.code)
        unpack_end(u);
    else
        right_use_begin(storage->rights, &u->token, &u->use);
}

const struct route unpack_routes[] = {
    { METHOD_PUT, "/archive", 0, unpack_on_request,
      .doc = "Many small files beneath a directory, as an archive", .flags = ROUTE_STREAM_BODY,
      .body_max = UNPACK_MAX },
};
const size_t unpack_route_count = AQ_COUNT(unpack_routes);
