/* SPDX-License-Identifier: Apache-2.0 */
/* download.c - files, or parts of them, and folders as tar
 *
 * A buffer is read while the one before it goes to the client. A file that has become shorter
 * meanwhile breaks the answer off.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/url.h"
#include "storage/folder.h"
#include "http/range.h"
#include "storage/storage.h"
#include "storage/volume.h"
#include "transfer/beneath.h"
#include "transfer/tree_reader.h"
#include "transfer/volume_layout.h"

#define DOWNLOAD_BUFFER ((size_t)1 << 20)
#define DOWNLOAD_SMALL 65536 /* a file up to this is read as it is opened */

struct download {
    struct work work;
    struct storage *storage;
    struct request *req;
    struct volume *volume;
    struct token token;
    const char *path; /* token.path, for the archive */
    int root, fd;
    struct stat st;
    struct tree_reader *archive; /* NULL = a file */
    char *small;                 /* all of a small file; NULL = it is read in pieces */
    char *buffers[2];
    size_t turn;       /* the buffer that is read into, or is to be sent next */
    ssize_t got;       /* bytes in it */
    uint64_t at, left; /* of the file */
    bool is_reading, is_ready;
    struct aq_error err;
};

static void download_free(struct download *d)
{
    struct storage *storage = d->storage;

    tree_reader_free(d->archive);
    aq_closep(&d->fd);
    aq_closep(&d->root);
    free(d->small);
    free(d->buffers[0]);
    free(d->buffers[1]);
    free(d);
    storage_leave(storage);
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

    if (size <= DOWNLOAD_SMALL && (d->small = malloc(size + 1))
        && pread(d->fd, d->small, size, 0) != (ssize_t)size) {
        free(d->small);
        d->small = NULL;
    }
}

static void download_run_open(struct work *work)
{
    static const struct tar_limits limits = { 0 };
    struct download *d = AQ_CONTAINER_OF(work, struct download, work);

    d->root = volume_open_folder(d->volume->path, &d->token.folder_id, &d->err);
    if (d->root < 0)
        return;
    if (d->token.direction == TOKEN_ARCHIVE)
        (void)tree_reader_new(d->root, &d->path, 1, &limits, &d->archive, &d->err);
    else if (download_open_file(d) == 0)
        download_read_small(d);
    if (d->archive && !*d->path)
        tree_reader_omit(d->archive, FOLDER_UPLOADS);
}

static void download_run_read(struct work *work)
{
    struct download *d = AQ_CONTAINER_OF(work, struct download, work);
    char *buffer = d->buffers[d->turn];

    if (d->archive)
        d->got = tree_reader_read(d->archive, buffer, DOWNLOAD_BUFFER, &d->err);
    else
        d->got = pread(d->fd, buffer, (size_t)AQ_MIN(d->left, (uint64_t)DOWNLOAD_BUFFER),
                       (off_t)d->at);
}

/* ---- the bytes ---- */

static void download_on_read(struct work *work);

static void download_end(struct download *d, bool is_whole)
{
    d->storage->counts.downloads += is_whole;
    if (is_whole)
        request_end(d->req);
    else
        request_abort(d->req);
    download_free(d);
}

static int download_read(struct download *d)
{
    int r = work_submit(&d->volume->lanes[WORK_DATA], &d->work, download_run_read, download_on_read,
                        &d->err);

    d->is_reading = r == 0;
    return r;
}

/* Send what was read once the client has taken what came before it, and read on meanwhile. */
static void download_step(struct download *d)
{
    const char *bytes = d->buffers[d->turn];
    size_t len = (size_t)d->got;
    int r = 0;

    if (!d->is_ready || request_get_queued(d->req))
        return;
    d->is_ready = false;
    d->turn = !d->turn;
    d->at += len;
    d->left -= d->archive ? 0 : len;
    d->storage->counts.bytes_out += len;
    if (d->archive || d->left)
        r = download_read(d);
    if (r == 0)
        r = request_write(d->req, bytes, len);
    if (!d->is_reading)
        download_end(d, r == 0);
}

static void download_on_read(struct work *work)
{
    struct download *d = AQ_CONTAINER_OF(work, struct download, work);

    d->is_reading = false;
    if (request_is_gone(d->req) || d->got <= 0) {
        download_end(d, d->got == 0 && d->archive);
        return;
    }
    d->is_ready = true;
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

static void download_begin(struct download *d, int status)
{
    if (d->small) {
        download_add_name(d);
        request_reply(d->req, status, "application/octet-stream", d->small + d->at,
                      (size_t)d->left);
        d->storage->counts.downloads++;
        d->storage->counts.bytes_out += d->left;
        download_free(d);
        return;
    }
    d->buffers[0] = malloc(DOWNLOAD_BUFFER);
    d->buffers[1] = malloc(DOWNLOAD_BUFFER);
    if (!d->buffers[0] || !d->buffers[1]) {
        request_fail(d->req, &(struct aq_error){ .code = ENOMEM });
        download_free(d);
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
    if (download_read(d) < 0)
        download_end(d, false);
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
    char tag[80], text[80];
    int r = 0;

    download_write_tag(d, tag);
    request_add_header(d->req, "ETag", tag);
    request_add_header(d->req, "Accept-Ranges", "bytes");
    if (known && strcmp(known, tag) == 0) {
        request_reply_empty(d->req, 304);
        download_free(d);
        return;
    }
    if (wanted && (!if_range || strcmp(if_range, tag) == 0))
        r = range_parse(wanted, (uint64_t)d->st.st_size, &range);
    if (r < 0) {
        (void)snprintf(text, sizeof(text), "bytes */%lld", (long long)d->st.st_size);
        request_add_header(d->req, "Content-Range", text);
        storage_refuse(d->storage, d->req, 416, "the file ends before this range");
        download_free(d);
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

    if (d->err.code) {
        storage_fail(d->storage, d->req, &d->err);
        download_free(d);
    } else if (d->archive) {
        download_begin(d, 200);
    } else {
        download_reply_file(d);
    }
}

static void download_on_request(struct request *req, void *data)
{
    struct storage *storage = data;
    struct download *d;
    bool is_expired;

    if (!storage_enter(storage, req))
        return;
    if (!(d = calloc(1, sizeof(*d)))) {
        request_fail(req, &(struct aq_error){ .code = ENOMEM });
        storage_leave(storage);
        return;
    }
    d->storage = storage;
    d->req = req;
    d->root = d->fd = -1;
    d->path = d->token.path;
    if (storage_read_token(storage, req, false, &d->token, &d->volume, &is_expired, &d->err) < 0
        || work_submit(&d->volume->lanes[WORK_DATA], &d->work, download_run_open, download_on_open,
                       &d->err)
               < 0) {
        storage_fail(storage, req, &d->err);
        download_free(d);
    }
}

const struct route download_routes[] = {
    { METHOD_GET, "/download", 0, download_on_request,
      .doc = "A file, a part of it, or an archive" },
};
const size_t download_route_count = AQ_COUNT(download_routes);
