/* SPDX-License-Identifier: Apache-2.0 */
/* tus.c - uploads by tus, as Backend.AI's clients and tus-js-client make them
 *
 * A token is the upload: PATCH begins it and goes on where it ends, without anything before. A
 * creation by POST gives the same URL back, or that of a part; parts are put together by a POST
 * at the end. With a token of a tree the query says which file, and PATCH alone begins it. What
 * comes is written as it comes, a buffer behind the client. One request writes to an upload: a
 * request for it while another still does has that one cut (its client may be long gone), and
 * waits for its end.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "http/url.h"
#include "storage/storage.h"
#include "storage/tus_head.h"
#include "storage/volume.h"

#define TUS_BUFFER ((size_t)128 << 10)
#define TUS_EXTENSIONS "creation,concatenation,termination"

struct tus {
    struct work work;
    struct right_use use;
    struct list link; /* storage.uploads, of a PATCH; or storage.waiting, for one of these */
    struct storage *storage;
    struct request *req;
    struct volume *volume;
    struct token token;
    struct tus_head head;
    enum method method;
    bool is_expired; /* its token: it goes on with what has been begun */
    int part;
    uint64_t length;         /* of it */
    uint64_t announced, got; /* bytes of the body; UINT64_MAX = not said */
    int root;
    struct upload upload;
    struct strbuf fill, flush; /* what comes, what is written */
    bool is_writing, has_ended, is_too_long, is_cut;
    bool is_queued; /* behind another request */
    _Atomic bool has_lost_right;
    int status; /* of the body's end */
    struct storage_share share;
    struct usage_hold hold;
    struct aq_error err;
};

static void tus_begin(struct tus *t);

/* Those that wait for the end of another request may find the next one. */
static void tus_wake(struct storage *storage, const struct uuid *upload_id)
{
    LIST_FOREACH(it, &storage->waiting) {
        struct tus *t = LIST_ENTRY(it, struct tus, link);

        if (!uuid_equals(&t->token.upload_id, upload_id))
            continue;
        list_remove(&t->link);
        t->is_queued = false;
        tus_begin(t);
        return;
    }
}

/* Nothing is left then that finds the upload, and those that wait for its end have begun. Its
 * request and its place among the transfers are the caller's.
 */
static struct storage_transfer tus_free(struct tus *t)
{
    const struct uuid upload_id = t->token.upload_id;
    struct storage *storage = t->storage;
    struct storage_transfer left = { storage, t->req, t->share };

    if (t->root >= 0 && t->method != METHOD_HEAD)
        storage_touch(t->volume, &t->token.folder_id, token_user(&t->token));
    right_use_end(&t->use);
    list_remove(&t->link);
    aq_closep(&t->root);
    aq_closep(&t->upload.fd);
    strbuf_done(&t->fill);
    strbuf_done(&t->flush);
    usage_release(storage->usage, &t->hold);
    free(t);
    tus_wake(storage, &upload_id);
    return left;
}

static void tus_add_headers(struct request *req)
{
    request_add_header(req, "Tus-Resumable", "1.0.0");
    request_add_header(req, "Cache-Control", "no-store");
}

static void tus_refuse(struct tus *t, int status, const char *text)
{
    struct storage_transfer left = tus_free(t);

    tus_add_headers(left.req);
    storage_refuse(left.storage, left.req, status, text);
    storage_leave(&left);
}

static void tus_fail(struct tus *t, const struct aq_error *err)
{
    const struct aq_error copy = *err; /* it may be the upload's */
    struct storage_transfer left = tus_free(t);

    tus_add_headers(left.req);
    storage_fail(left.storage, left.req, &copy);
    storage_leave(&left);
}

static void tus_abort(struct tus *t)
{
    struct storage_transfer left = tus_free(t);

    request_abort(left.req);
    storage_leave(&left);
}

static void tus_reply_empty(struct tus *t, int status)
{
    struct storage_transfer left = tus_free(t);

    request_reply_empty(left.req, status);
    storage_leave(&left);
}

/* ---- what is done on the disk ---- */

static int tus_fail_right(struct aq_error *err)
{
    return aq_fail(err, EACCES, "your permission on the folder has ended");
}

static int tus_create(struct tus *t)
{
    int r = upload_check(t->root, &t->token, &t->err);

    if (r == 0)
        r = usage_check(t->storage->usage, &t->token.folder_id, t->token.quota_bytes,
                        t->head.length, &t->err);
    if (r < 0)
        return r;
    if (t->head.concat == TUS_PARTIAL)
        return upload_add_part(t->root, &t->token, &t->part, &t->err);
    r = upload_open(t->root, &t->token, UPLOAD_WHOLE, t->length, true, &t->upload, &t->err);
    if (r == 0 && t->length == 0)
        r = upload_sync(t->root, &t->token, UPLOAD_WHOLE, &t->upload, &t->err);
    return r;
}

/* All bytes may be there, but for the name. */
static int tus_look(struct tus *t)
{
    int r = upload_open(t->root, &t->token, t->part, t->length, false, &t->upload, &t->err);

    if (r == 0 && t->upload.fd >= 0 && t->upload.offset == t->length)
        r = upload_sync(t->root, &t->token, t->part, &t->upload, &t->err);
    return r;
}

static int tus_begin_writing(struct tus *t)
{
    int r = upload_open(t->root, &t->token, t->part, t->length, true, &t->upload, &t->err);

    if (r == 0 && t->upload.offset == t->head.offset && !t->upload.is_done)
        r = usage_check(t->storage->usage, &t->token.folder_id, t->token.quota_bytes,
                        AQ_MIN(t->announced, t->length - t->upload.offset), &t->err);
    return r;
}

static void tus_remove(struct tus *t)
{
    uint64_t freed = 0;

    (void)upload_remove(t->root, &t->token, &freed, &t->err);
    usage_give(t->storage->usage, &t->token.folder_id, freed);
}

static void tus_run_open(struct work *work)
{
    struct tus *t = AQ_CONTAINER_OF(work, struct tus, work);

    t->root = volume_open_folder(&t->volume->dir, &t->token.folder_id, &t->err);
    if (t->root < 0)
        return;
    if (t->has_lost_right)
        (void)tus_fail_right(&t->err);
    else if (t->is_expired && !upload_has_begun(t->root, &t->token))
        (void)aq_fail(&t->err, EACCES, "the token has expired");
    else if (t->method == METHOD_DELETE)
        tus_remove(t);
    else if (t->method == METHOD_POST && t->head.concat == TUS_FINAL)
        (void)upload_join(t->root, &t->token, t->head.parts, t->head.part_count, t->storage->usage,
                          &t->err);
    else if (t->method == METHOD_POST)
        (void)tus_create(t);
    else if (t->method == METHOD_HEAD)
        (void)tus_look(t);
    else
        (void)tus_begin_writing(t);
}

static void tus_run_write(struct work *work)
{
    struct tus *t = AQ_CONTAINER_OF(work, struct tus, work);

    struct usage_table *usage = t->storage->usage;
    uint64_t end = t->upload.offset + t->flush.len;

    if (usage_take(usage, &t->token.folder_id, t->token.quota_bytes, t->flush.len, &t->err) < 0)
        return;
    (void)upload_write(&t->upload, &t->token, t->flush.data, t->flush.len, &t->err);
    usage_give(usage, &t->token.folder_id, end - t->upload.offset);
}

/* What has come stays, also of a request that failed. */
static void tus_run_sync(struct work *work)
{
    struct tus *t = AQ_CONTAINER_OF(work, struct tus, work);
    struct aq_error err = { 0 };

    if (upload_sync(t->root, &t->token, t->part, &t->upload, &err) < 0 && !t->err.code)
        t->err = err;
    usage_give(t->storage->usage, &t->token.folder_id, t->upload.freed);
    t->upload.freed = 0;
}

static void tus_run_last(struct work *work)
{
    tus_run_write(work);
    tus_run_sync(work);
}

/* ---- the body of a PATCH ---- */

static void tus_reply_offset(struct tus *t, int status)
{
    tus_add_headers(t->req);
    request_add_header_int(t->req, "Upload-Offset", (int64_t)t->upload.offset);
    request_add_header_int(t->req, "Upload-Length", (int64_t)t->length);
    if (t->part != UPLOAD_WHOLE)
        request_add_header(t->req, "Upload-Concat", "partial");
    tus_reply_empty(t, status);
}

static void tus_on_synced(struct work *work)
{
    struct tus *t = AQ_CONTAINER_OF(work, struct tus, work);

    t->storage->counts.bytes_in += t->got;
    t->storage->counts.uploads += t->upload.is_done;
    if (t->is_cut) {
        tus_abort(t);
    } else if (t->err.code) {
        tus_fail(t, &t->err);
    } else if (t->is_too_long) {
        tus_refuse(t, 413, "more comes than the upload's length");
    } else if (t->status < 0) {
        tus_refuse(t, 400, "the body broke off");
    } else {
        tus_reply_offset(t, 204);
    }
}

static void tus_pump(struct tus *t);

static void tus_on_written(struct work *work)
{
    struct tus *t = AQ_CONTAINER_OF(work, struct tus, work);

    t->is_writing = false;
    strbuf_clear(&t->flush);
    t->has_ended = t->has_ended || t->is_cut || t->err.code;
    tus_pump(t);
}

static void tus_submit(struct tus *t, void (*run)(struct work *), void (*done)(struct work *))
{
    t->is_writing = true;
    if (work_submit(&t->volume->lanes[WORK_DATA], &t->work, token_user(&t->token), run, done,
                    &t->err)
        < 0)
        tus_on_synced(&t->work);
}

/* Write what there is, if nothing is being written. */
static void tus_pump(struct tus *t)
{
    if (t->is_writing)
        return;
    if (t->fill.len && !t->err.code) {
        AQ_SWAP(t->fill, t->flush);
        t->is_writing = true; /* what goes on comes from within */
        if (!t->has_ended)
            request_resume_body(t->req);
        if (t->has_ended && !t->fill.len)
            tus_submit(t, tus_run_last, tus_on_synced);
        else
            tus_submit(t, tus_run_write, tus_on_written);
    } else if (t->has_ended) {
        tus_submit(t, tus_run_sync, tus_on_synced);
    }
}

static void tus_on_body(struct request *req, const char *bytes, size_t len, int status, void *data)
{
    struct tus *t = data;
    uint64_t room = t->length - t->head.offset - t->got;

    if (t->has_ended)
        return;
    if (len > room)
        t->is_too_long = true;
    len = (size_t)AQ_MIN((uint64_t)len, room);
    strbuf_add(&t->fill, bytes, len);
    t->got += len;
    t->status = status;
    t->has_ended = t->is_too_long || !bytes;
    if (t->is_writing && t->fill.len >= TUS_BUFFER && !t->has_ended)
        request_pause_body(req);
    tus_pump(t);
}

static void tus_cut(struct tus *t)
{
    t->has_ended = true;
    if (!request_is_gone(t->req))
        request_pause_body(t->req);
    tus_pump(t);
}

/* What has come is written, then the connection is closed. */
static void tus_stop(struct tus *t)
{
    t->is_cut = true;
    if (!t->is_writing)
        tus_cut(t);
}

/* ---- after the first look ---- */

static void tus_on_created(struct tus *t)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf url = STRBUF_INIT;

    strbuf_addf(&url, "%s/upload?token=%s", t->storage->settings->common.public_url,
                request_get_query(t->req, "token"));
    if (t->head.concat == TUS_PARTIAL)
        strbuf_addf(&url, "&part=%d&length=%llu", t->part, (unsigned long long)t->head.length);
    tus_add_headers(t->req);
    request_add_header(t->req, "Location", url.data);
    tus_reply_empty(t, 201);
}

static void tus_on_open(struct work *work)
{
    struct tus *t = AQ_CONTAINER_OF(work, struct tus, work);

    t->is_writing = false;
    if (t->has_lost_right && !t->err.code)
        (void)tus_fail_right(&t->err);
    if (t->err.code) {
        tus_fail(t, &t->err);
    } else if (t->method == METHOD_POST) {
        t->storage->counts.uploads += t->upload.is_done || t->head.concat == TUS_FINAL;
        tus_on_created(t);
    } else if (t->method == METHOD_DELETE) {
        tus_reply_offset(t, 204);
    } else if (t->method == METHOD_HEAD) {
        tus_reply_offset(t, 200);
    } else if (t->upload.offset != t->head.offset) {
        request_add_header_int(t->req, "Upload-Offset", (int64_t)t->upload.offset);
        tus_refuse(t, 409, "the upload does not end at this offset");
    } else if (t->upload.is_done) { /* what was the last piece comes again, without a byte */
        tus_reply_offset(t, 204);
    } else if (t->announced != UINT64_MAX && t->announced > t->length - t->head.offset) {
        tus_refuse(t, 413, "more comes than the upload's length");
    } else if (t->is_cut || request_is_gone(t->req)) {
        tus_cut(t);
    } else {
        request_read_body(t->req, tus_on_body, t);
    }
}

/* ---- the requests ---- */

/* Another request that writes to the upload; NULL = there is none. */
static struct tus *tus_find_writer(const struct tus *t)
{
    LIST_FOREACH(it, &t->storage->uploads) {
        struct tus *other = LIST_ENTRY(it, struct tus, link);

        if (other != t && uuid_equals(&other->token.upload_id, &t->token.upload_id)
            && (other->part == t->part || t->method == METHOD_DELETE
                || t->head.concat == TUS_FINAL))
            return other;
    }
    return NULL;
}

static int tus_check(struct tus *t, struct aq_error *err)
{
    int r = tus_read_part(request_get_query(t->req, "part"), request_get_query(t->req, "length"),
                          t->token.size, &t->part, &t->length, err);

    if (r < 0)
        return r;
    if (t->method == METHOD_PATCH && !t->head.has_offset)
        return aq_fail_field(err, EINVAL, "Upload-Offset", "Upload-Offset: missing");
    if (t->method != METHOD_POST)
        return 0;
    if (t->token.is_tree)
        return aq_fail(err, EINVAL, "with a token of a tree, PATCH begins an upload");
    if (t->head.concat == TUS_FINAL)
        return 0;
    if (!t->head.has_length)
        return aq_fail_field(err, EINVAL, "Upload-Length", "Upload-Length: missing");
    if (t->head.concat == TUS_PARTIAL ? t->head.length > t->token.size
                                      : t->head.length != t->token.size)
        return aq_fail_field(err, EINVAL, "Upload-Length",
                             "Upload-Length: the upload was asked for with %llu bytes",
                             (unsigned long long)t->token.size);
    return 0;
}

static void tus_open(struct tus *t)
{
    struct work_lane *lane = &t->volume->lanes[t->head.concat == TUS_FINAL ? WORK_TREE : WORK_DATA];

    if (t->err.code
        || work_submit(lane, &t->work, token_user(&t->token), tus_run_open, tus_on_open, &t->err)
               < 0)
        tus_fail(t, &t->err);
}

static void tus_on_counted(struct usage_hold *hold, const struct aq_error *err)
{
    struct tus *t = AQ_CONTAINER_OF(hold, struct tus, hold);

    if (err)
        t->err = *err;
    tus_open(t);
}

static void tus_begin(struct tus *t)
{
    const struct message_head *head = request_get_head(t->req);
    struct tus *writer = tus_find_writer(t);

    if (writer) { /* it ends, perhaps at once: the one that waits must be there to be found */
        t->is_queued = true;
        list_add(&t->storage->waiting, &t->link);
        tus_stop(writer);
        return;
    }
    t->announced = head->is_chunked ? UINT64_MAX : head->content_length;
    if (t->method == METHOD_PATCH)
        list_add(&t->storage->uploads, &t->link);
    t->is_writing = true;
    if (t->method != METHOD_HEAD) /* so that the size runs along while it comes */
        storage_touch(t->volume, &t->token.folder_id, token_user(&t->token));
    if (storage_hold_usage(t->volume, &t->token, &t->hold, tus_on_counted, &t->err) != 0)
        tus_open(t);
}

static void tus_on_ready(struct right_use *use)
{
    tus_begin(AQ_CONTAINER_OF(use, struct tus, use));
}

static void tus_on_refused(struct right_use *use, const struct aq_error *err)
{
    tus_fail(AQ_CONTAINER_OF(use, struct tus, use), err);
}

static void tus_on_right_ended(struct right_use *use)
{
    struct tus *t = AQ_CONTAINER_OF(use, struct tus, use);
    struct aq_error err = { 0 };

    t->has_lost_right = true;
    if (t->is_queued) {
        (void)tus_fail_right(&err);
        tus_fail(t, &err);
    } else {
        tus_stop(t);
    }
}

static void tus_on_request(struct request *req, void *data)
{
    struct storage *storage = data;
    struct tus *t;
    struct aq_error err = { 0 };

    if (!storage_enter(storage, req))
        return;
    t = aq_alloc(sizeof(*t));
    t->storage = storage;
    t->req = req;
    t->method = request_get_method(req);
    t->root = t->upload.fd = -1;
    t->use.on_ready = tus_on_ready;
    t->use.on_refused = tus_on_refused;
    t->use.on_cut = tus_on_right_ended;
    list_init(&t->link);
    strbuf_init(&t->fill);
    strbuf_init(&t->flush);
    if (tus_read_head(request_get_head(req), &t->head, &err) < 0
        || storage_read_token(storage, req, true, &t->token, &t->volume, &t->is_expired, &err) < 0
        || storage_take_share(storage, &t->token, &t->share, &err) < 0
        || storage_enter_tree(request_get_queries(req), &t->token, &err) < 0
        || tus_check(t, &err) < 0) {
        tus_fail(t, &err);
    } else if (t->head.is_other_version) {
        request_add_header(req, "Tus-Version", "1.0.0");
        tus_refuse(t, 412, "this version of tus is not spoken");
    } else if (t->method == METHOD_PATCH && !t->head.is_bytes) {
        tus_refuse(t, 415, "Content-Type: must be application/offset+octet-stream");
    } else {
        right_use_begin(storage->rights, &t->token, &t->use);
    }
}

static void tus_on_options(struct request *req, void *data)
{
    (void)data;
    tus_add_headers(req);
    request_add_header(req, "Tus-Version", "1.0.0");
    request_add_header(req, "Tus-Extension", TUS_EXTENSIONS);
    request_add_header_int(req, "Tus-Max-Size", UPLOAD_SIZE_MAX);
    request_add_header(req, "Access-Control-Allow-Methods", "HEAD, POST, PATCH, DELETE, OPTIONS");
    request_add_header(
        req, "Access-Control-Allow-Headers",
        "Content-Type, Tus-Resumable, Upload-Concat, Upload-Length, Upload-Metadata, "
        "Upload-Offset, X-Request-ID, X-BackendAI-Version");
    request_add_header(req, "Access-Control-Max-Age", "86400");
    request_reply_empty(req, 204);
}

const struct route tus_routes[] = {
    { METHOD_OPTIONS, "/upload", 0, tus_on_options, .doc = "What of tus is spoken" },
    { METHOD_HEAD, "/upload", 0, tus_on_request, .doc = "How far an upload has come" },
    { METHOD_POST, "/upload", 0, tus_on_request,
      .doc = "Begin an upload or a part of it, or put parts together" },
    { METHOD_PATCH, "/upload", 0, tus_on_request, .doc = "Go on with an upload",
      .flags = ROUTE_STREAM_BODY, .body_max = UPLOAD_SIZE_MAX },
    { METHOD_DELETE, "/upload", 0, tus_on_request, .doc = "Give an upload up" },
};
const size_t tus_route_count = AQ_COUNT(tus_routes);
