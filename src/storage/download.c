/* SPDX-License-Identifier: Apache-2.0 */
/* download.c - files, or parts of them, and folders as tar
 *
 * A buffer is read when the client has taken the one before it, and freed while it has not: a
 * client that reads slowly holds one in the server's queue, and nothing is read ahead for it. The
 * kernel reads files ahead. A file that has become shorter meanwhile breaks the answer off.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "http/url.h"
#include "storage/folder.h"
#include "http/range.h"
#include "storage/storage.h"
#include "storage/volume.h"
#include "transfer/beneath.h"
#include "transfer/tree_reader.h"
#include "transfer/volume_layout.h"

#define DOWNLOAD_BUFFER ((size_t)256 << 10)
#define LIST_MAX 1000        /* files of one request */
#define DOWNLOAD_SMALL 65536 /* a file up to this is read as it is opened */

struct download {
    struct work work;
    struct right_use use;
    struct storage *storage;
    struct request *req;
    struct volume *volume;
    struct token token;
    const char *path; /* token.path, for the archive */
    const char *const
        *files; /* in the request's arena: those that are asked for; NULL = the path */
    size_t file_count;
    int root, fd;
    struct stat st;
    struct tree_reader *archive; /* NULL = a file */
    char *small;                 /* all of a small file; NULL = it is read in pieces */
    char *buffer;                /* NULL while the client has not taken what it had */
    ssize_t got;                 /* bytes in it */
    uint64_t at, left;           /* of the file */
    bool is_reading;
    bool is_cut; /* the user's right has ended */
    struct storage_share share;
    struct aq_error err;
};

/* Its request and its place among the transfers are the caller's. */
static struct storage_transfer download_free(struct download *d)
{
    struct storage_transfer left = { d->storage, d->req, d->share };

    request_set_gone(d->req, NULL, NULL);
    right_use_end(&d->use);
    tree_reader_free(d->archive);
    aq_closep(&d->fd);
    aq_closep(&d->root);
    free(d->small);
    free(d->buffer);
    free(d);
    return left;
}

static void download_fail(struct download *d, const struct aq_error *err)
{
    const struct aq_error copy = *err; /* it may be the download's */
    struct storage_transfer left = download_free(d);

    storage_fail(left.storage, left.req, &copy);
    storage_leave(&left);
}

/* ---- what is done on the disk ---- */

/* What is special is not opened: that may wait, or do something. */
static int download_open_file(struct download *d)
{
    int fd = beneath_open(d->root, d->token.path, O_PATH, false);
    int r = fd < 0 ? fd : fstat(fd, &d->st) < 0 ? -errno : 0;

    aq_closep(&fd);
    if (r == 0 && !S_ISREG(d->st.st_mode))
        return aq_fail(&d->err, S_ISDIR(d->st.st_mode) ? EISDIR : EINVAL, "'%.200s' is no file",
                       d->token.path);
    if (r == 0)
        r = d->fd = beneath_open(d->root, d->token.path, O_RDONLY | O_NONBLOCK | O_NOCTTY, false);
    if (r >= 0 && fstat(d->fd, &d->st) < 0)
        r = -errno;
    return r < 0 ? beneath_fail(&d->err, -r, d->token.path) : 0;
}

/* One that changes meanwhile is read as others are. */
static void download_read_small(struct download *d)
{
    size_t size = (size_t)d->st.st_size;

    if (size > DOWNLOAD_SMALL)
        return;
    d->small = aq_realloc(NULL, size + 1); /* which does not clear it */
    if (pread(d->fd, d->small, size, 0) != (ssize_t)size) {
        free(d->small);
        d->small = NULL;
    }
}

static const struct tar_limits download_limits = { 0 };

/* Files beneath the tree that the token is for. */
static void download_open_list(struct download *d)
{
    int root = beneath_open(d->root, d->token.path, O_PATH | O_DIRECTORY, false);

    if (root < 0) {
        (void)beneath_fail(&d->err, -root, *d->token.path ? d->token.path : ".");
        return;
    }
    aq_closep(&d->root);
    d->root = root;
    if (tree_reader_new(d->root, d->files, d->file_count, &download_limits, &d->archive, &d->err)
        == 0)
        tree_reader_list(d->archive);
}

static void download_run_open(struct work *work)
{
    struct download *d = AQ_CONTAINER_OF(work, struct download, work);

    d->root = volume_open_folder(&d->volume->dir, &d->token.folder_id, &d->err);
    if (d->root < 0)
        return;
    if (d->files)
        download_open_list(d);
    else if (d->token.direction == TOKEN_ARCHIVE)
        (void)tree_reader_new(d->root, &d->path, 1, &download_limits, &d->archive, &d->err);
    else if (download_open_file(d) == 0)
        download_read_small(d);
    if (d->archive && !d->files && !*d->path)
        tree_reader_omit(d->archive, FOLDER_UPLOADS);
}

/* A whole buffer, or what is left: of small files there are many in one. */
static ssize_t download_read_archive(struct download *d, char *buffer)
{
    size_t have = 0;
    ssize_t n;

    do {
        n = tree_reader_read(d->archive, buffer + have, DOWNLOAD_BUFFER - have, &d->err);
        have += n > 0 ? (size_t)n : 0;
    } while (n > 0 && have < DOWNLOAD_BUFFER);
    return n < 0 ? n : (ssize_t)have;
}

static void download_run_read(struct work *work)
{
    struct download *d = AQ_CONTAINER_OF(work, struct download, work);

    if (d->archive)
        d->got = download_read_archive(d, d->buffer);
    else
        d->got = pread(d->fd, d->buffer, (size_t)AQ_MIN(d->left, (uint64_t)DOWNLOAD_BUFFER),
                       (off_t)d->at);
}

/* ---- the bytes ---- */

static void download_on_read(struct work *work);

static void download_end(struct download *d, bool is_whole)
{
    struct storage_transfer left = download_free(d);

    left.storage->counts.downloads += is_whole;
    if (is_whole)
        request_end(left.req);
    else
        request_abort(left.req);
    storage_leave(&left);
}

static void download_read(struct download *d)
{
    if (!d->buffer)
        d->buffer = aq_realloc(NULL, DOWNLOAD_BUFFER);
    d->is_reading = work_submit(&d->volume->lanes[WORK_DATA], &d->work, token_user(&d->token),
                                download_run_read, download_on_read, &d->err)
                    == 0;
    if (!d->is_reading)
        download_end(d, false);
}

/* Read on once the client has taken all. */
static void download_step(struct download *d)
{
    if (d->is_reading)
        return;
    if (!d->archive && !d->left) {
        download_end(d, true);
    } else if (request_get_queued(d->req)) {
        free(d->buffer);
        d->buffer = NULL;
    } else {
        download_read(d);
    }
}

static void download_on_read(struct work *work)
{
    struct download *d = AQ_CONTAINER_OF(work, struct download, work);
    size_t len = d->got > 0 ? (size_t)d->got : 0;

    if (d->is_cut || request_is_gone(d->req) || !len) {
        download_end(d, !d->is_cut && d->got == 0 && d->archive);
        return;
    }
    d->at += len;
    d->left -= d->archive ? 0 : len;
    d->storage->counts.bytes_out += len;
    if (request_write(d->req, d->buffer, len) < 0 || request_is_gone(d->req)) {
        download_end(d, false);
        return;
    }
    d->is_reading = false; /* the drain may be told from within */
    download_step(d);
}

static void download_on_drain(struct request *req, void *data)
{
    (void)req;
    download_step(data);
}

static void download_on_gone(struct request *req, void *data)
{
    struct download *d = data;

    (void)req;
    if (!d->is_reading)
        download_end(d, false);
}

/* ---- the answer ---- */

static void download_add_name(struct download *d)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const char *slash = strrchr(d->token.path, '/');
    const char *name = slash ? slash + 1 : *d->token.path ? d->token.path : "folder";

    strbuf_adds(&out, "attachment; filename*=UTF-8''");
    url_encode(&out, name);
    strbuf_adds(&out, d->archive ? ".tar" : "");
    request_add_header(d->req, "Content-Disposition", out.data);
    request_add_header(d->req, "X-Content-Type-Options", "nosniff");
    request_add_header(d->req, "Content-Security-Policy", "sandbox");
    request_add_header(d->req, "Cache-Control", "private, no-cache");
}

static void download_reply_small(struct download *d, int status)
{
    AQ_CLEANUP(aq_freep) char *bytes = AQ_TAKE(d->small);
    uint64_t at = d->at, len = d->left;
    struct storage_transfer left;

    download_add_name(d);
    d->storage->counts.downloads++;
    d->storage->counts.bytes_out += len;
    left = download_free(d);
    request_reply(left.req, status, "application/octet-stream", bytes + at, (size_t)len);
    storage_leave(&left);
}

static void download_begin(struct download *d, int status)
{
    if (d->small) {
        download_reply_small(d, status);
        return;
    }
    download_add_name(d);
    if (d->archive)
        request_begin(d->req, status, "application/x-tar", download_on_drain, d);
    else
        request_begin_sized(d->req, status, "application/octet-stream", d->left, download_on_drain,
                            d);
    if (request_get_method(d->req) == METHOD_HEAD || (!d->archive && !d->left)) {
        download_end(d, true);
        return;
    }
    request_set_gone(d->req, download_on_gone, d);
    if (!d->archive)
        (void)posix_fadvise(d->fd, (off_t)d->at, (off_t)d->left, POSIX_FADV_SEQUENTIAL);
    download_read(d);
}

/* It changes with whatever changes the file. */
static void download_write_tag(const struct download *d, char ret[80])
{
    (void)snprintf(ret, 80, "\"%llx-%llx-%llx.%lx\"", (unsigned long long)d->st.st_ino,
                   (unsigned long long)d->st.st_size, (unsigned long long)d->st.st_mtim.tv_sec,
                   (unsigned long)d->st.st_mtim.tv_nsec);
}

static void download_reply_file(struct download *d)
{
    const char *wanted = request_get_header(d->req, "Range");
    const char *if_range = request_get_header(d->req, "If-Range");
    const char *known = request_get_header(d->req, "If-None-Match");
    struct range range = { .length = (uint64_t)d->st.st_size };
    struct storage_transfer left;
    char tag[80], text[80];
    int r = 0;

    download_write_tag(d, tag);
    request_add_header(d->req, "ETag", tag);
    request_add_header(d->req, "Accept-Ranges", "bytes");
    if (known && strcmp(known, tag) == 0) {
        left = download_free(d);
        request_reply_empty(left.req, 304);
        storage_leave(&left);
        return;
    }
    if (wanted && (!if_range || strcmp(if_range, tag) == 0))
        r = range_parse(wanted, (uint64_t)d->st.st_size, &range);
    if (r < 0) {
        (void)snprintf(text, sizeof(text), "bytes */%lld", (long long)d->st.st_size);
        request_add_header(d->req, "Content-Range", text);
        left = download_free(d);
        storage_refuse(left.storage, left.req, 416, "the file ends before this range");
        storage_leave(&left);
        return;
    }
    if (r > 0) {
        (void)snprintf(text, sizeof(text), "bytes %llu-%llu/%lld", (unsigned long long)range.from,
                       (unsigned long long)(range.from + range.length - 1),
                       (long long)d->st.st_size);
        request_add_header(d->req, "Content-Range", text);
    }
    d->at = range.from;
    d->left = range.length;
    download_begin(d, r > 0 ? 206 : 200);
}

static void download_on_open(struct work *work)
{
    struct download *d = AQ_CONTAINER_OF(work, struct download, work);

    d->is_reading = false;
    if (d->is_cut && !d->err.code)
        (void)aq_fail(&d->err, EACCES, "your permission on the folder has ended");
    if (d->err.code) {
        download_fail(d, &d->err);
    } else if (d->archive) {
        download_begin(d, 200);
    } else {
        download_reply_file(d);
    }
}

/* {"files": [PATH, ...]}, beneath the token's tree. */
static int download_read_list(struct download *d)
{
    struct arena *arena = request_get_arena(d->req);
    size_t len;
    const char *body = request_get_body(d->req, &len);
    json_auto_t *tree = json_load_text(body, len, 0, NULL);
    const json_t *files = json_object_get(tree, "files");
    const char **list;
    char clean[PATH_MAX];

    d->file_count = json_array_size(files);
    if (!d->token.is_tree)
        return aq_fail(&d->err, EACCES, "the token is not that of a tree");
    if (!d->file_count || d->file_count > LIST_MAX)
        return aq_fail_field(&d->err, EINVAL, "files", "files: must be a list of up to %d paths",
                             LIST_MAX);
    list = arena_alloc(arena, d->file_count * sizeof(*list));
    for (size_t i = 0; i < d->file_count; i++) {
        const char *text = json_string_value(json_array_get(files, i));
        int r = folder_clean("files", text ? text : "", false, clean, &d->err);

        if (r < 0)
            return r;
        list[i] = arena_strdup(arena, clean);
    }
    d->files = list;
    return 0;
}

/* ---- the request ---- */

static void download_on_refused(struct right_use *use, const struct aq_error *err)
{
    download_fail(AQ_CONTAINER_OF(use, struct download, use), err);
}

static void download_on_ready(struct right_use *use)
{
    struct download *d = AQ_CONTAINER_OF(use, struct download, use);

    d->is_reading = work_submit(&d->volume->lanes[WORK_DATA], &d->work, token_user(&d->token),
                                download_run_open, download_on_open, &d->err)
                    == 0;
    if (!d->is_reading)
        download_fail(d, &d->err);
}

static void download_on_right_ended(struct right_use *use)
{
    struct download *d = AQ_CONTAINER_OF(use, struct download, use);

    d->is_cut = true;
    if (!d->is_reading)
        download_end(d, false);
}

static void download_on_request(struct request *req, void *data)
{
    struct storage *storage = data;
    struct download *d;
    bool is_expired;

    if (!storage_enter(storage, req))
        return;
    d = aq_alloc(sizeof(*d));
    d->storage = storage;
    d->req = req;
    d->root = d->fd = -1;
    d->path = d->token.path;
    d->use = (struct right_use){ .on_ready = download_on_ready,
                                 .on_refused = download_on_refused,
                                 .on_cut = download_on_right_ended };
    if (storage_read_token(storage, req, false, &d->token, &d->volume, &is_expired, &d->err) < 0
        || storage_take_share(storage, &d->token, &d->share, &d->err) < 0
        || (request_get_method(req) == METHOD_POST
                ? download_read_list(d)
                : storage_enter_tree(request_get_queries(req), &d->token, &d->err))
               < 0)
        download_fail(d, &d->err);
    else
        right_use_begin(storage->rights, &d->token, &d->use);
}

const struct route download_routes[] = {
    { METHOD_GET, "/download", 0, download_on_request,
      .doc = "A file, a part of it, or an archive" },
    { METHOD_POST, "/download", 0, download_on_request,
      .doc = "Files beneath a directory, as an archive" },
};
const size_t download_route_count = AQ_COUNT(download_routes);
