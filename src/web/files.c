/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - files of the static folder: nothing outside of it, and index.html for what is not there
 */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "http/problem.h"
#include "http/range.h"
#include "transfer/beneath.h"
#include "web/web.h"

#define INDEX "index.html"
#define INDEX_MAX ((off_t)4 << 20)
#define PIECE 65536
#define TAG_MAX 80

/* A file on its way to a browser. */
struct file {
    struct web *web;
    struct request *req;
    int fd;
    struct stat st;
    const char *encoding; /* of a neighbour that is sent in its place; NULL = as it is */
    uint64_t at, left;
};

int files_open(struct web *web, struct aq_error *err)
{
    const char *folder = web->settings->folder;

    web->folder = -1;
    if (!folder)
        return 0;
    web->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return web->folder < 0 ? aq_fail_errno(err, "web.static: open '%.200s'", folder) : 0;
}

static const char *file_type(const char *path)
{
    static const struct {
        const char *ending, *type;
    } types[] = {
        { ".html", "text/html; charset=utf-8" },
        { ".js", "text/javascript; charset=utf-8" },
        { ".mjs", "text/javascript; charset=utf-8" },
        { ".css", "text/css; charset=utf-8" },
        { ".json", "application/json" },
        { ".toml", "application/toml" },
        { ".txt", "text/plain; charset=utf-8" },
        { ".svg", "image/svg+xml" },
        { ".png", "image/png" },
        { ".jpg", "image/jpeg" },
        { ".jpeg", "image/jpeg" },
        { ".gif", "image/gif" },
        { ".webp", "image/webp" },
        { ".ico", "image/x-icon" },
        { ".woff", "font/woff" },
        { ".woff2", "font/woff2" },
        { ".ttf", "font/ttf" },
        { ".wasm", "application/wasm" },
        { ".webmanifest", "application/manifest+json" },
        { ".pdf", "application/pdf" },
    };
    size_t len = strlen(path);

    for (size_t i = 0; i < AQ_COUNT(types); i++) {
        size_t n = strlen(types[i].ending);

        if (len > n && strcmp(path + len - n, types[i].ending) == 0)
            return types[i].type;
    }
    return "application/octet-stream";
}

/* ---- sending ---- */

static void file_free(struct file *file)
{
    aq_closep(&file->fd);
    free(file);
}

static void file_end(struct file *file, bool is_whole)
{
    struct request *req = file->req;

    request_set_gone(req, NULL, NULL);
    file_free(file);
    if (is_whole)
        request_end(req);
    else
        request_abort(req);
}

/* As long as the browser takes it at once. */
static void file_send(struct file *file)
{
    char piece[PIECE];
    int r = 0;

    while (r == 0 && file->left && !request_get_queued(file->req)) {
        ssize_t n = pread(file->fd, piece, (size_t)AQ_MIN(file->left, sizeof(piece)),
                          (off_t)file->at);

        r = n > 0 ? request_write(file->req, piece, (size_t)n) : -EIO;
        file->at += n > 0 ? (uint64_t)n : 0;
        file->left -= n > 0 ? (uint64_t)n : 0;
    }
    if (r < 0 || !file->left)
        file_end(file, r == 0);
}

static void file_on_drain(struct request *req, void *data)
{
    (void)req;
    file_send(data);
}

static void file_on_gone(struct request *req, void *data)
{
    (void)req;
    file_end(data, false);
}

static void file_write_tag(const struct file *file, char ret[TAG_MAX])
{
    (void)snprintf(ret, TAG_MAX, "\"%llx-%llx-%llx%s\"", (unsigned long long)file->st.st_ino,
                   (unsigned long long)file->st.st_size,
                   (unsigned long long)file->st.st_mtim.tv_sec * 1000000000ull
                       + (unsigned long long)file->st.st_mtim.tv_nsec,
                   file->encoding ? file->encoding : "");
}

/* 0 = the whole; 1 = a part; -ERANGE after answering. */
static int file_read_range(struct file *file, const char *tag)
{
    const char *wanted = request_get_header(file->req, "Range");
    const char *if_range = request_get_header(file->req, "If-Range");
    struct range range = { .length = (uint64_t)file->st.st_size };
    char text[80];
    int r = 0;

    if (wanted && !file->encoding && (!if_range || strcmp(if_range, tag) == 0))
        r = range_parse(wanted, (uint64_t)file->st.st_size, &range);
    if (r < 0)
        (void)snprintf(text, sizeof(text), "bytes */%lld", (long long)file->st.st_size);
    else
        (void)snprintf(text, sizeof(text), "bytes %llu-%llu/%lld", (unsigned long long)range.from,
                       (unsigned long long)(range.from + range.length - 1),
                       (long long)file->st.st_size);
    if (r != 0)
        request_add_header(file->req, "Content-Range", text);
    file->at = range.from;
    file->left = range.length;
    return r;
}

static void file_reply(struct file *file, const char *path)
{
    struct request *req = file->req;
    const char *known = request_get_header(req, "If-None-Match");
    char tag[TAG_MAX];
    int r;

    file_write_tag(file, tag);
    request_add_header(req, "ETag", tag);
    request_add_header(req, "Accept-Ranges", "bytes");
    request_add_header(req, "Cache-Control", "no-cache");
    request_add_header(req, "Vary", "Accept-Encoding");
    if (file->encoding)
        request_add_header(req, "Content-Encoding", file->encoding);
    if (known && strcmp(known, tag) == 0) {
        file_free(file);
        request_reply_empty(req, 304);
        return;
    }
    r = file_read_range(file, tag);
    if (r < 0) {
        file_free(file);
        request_reply_empty(req, 416);
        return;
    }
    request_begin_sized(req, r > 0 ? 206 : 200, file_type(path), file->left, file_on_drain, file);
    if (request_get_method(req) == METHOD_HEAD)
        file->left = 0;
    else
        request_set_gone(req, file_on_gone, file);
    file_send(file);
}

/* ---- the first page ---- */

static void file_add_hash(const char *script, size_t len, struct strbuf *out)
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    char text[sodium_base64_ENCODED_LEN(sizeof(hash), sodium_base64_VARIANT_ORIGINAL)];

    (void)crypto_hash_sha256(hash, (const unsigned char *)script, len);
    (void)sodium_bin2base64(text, sizeof(text), hash, sizeof(hash), sodium_base64_VARIANT_ORIGINAL);
    strbuf_addf(out, " 'sha256-%s'", text);
}

/* The page's own scripts that have no place for a nonce, as in versions before it knew them: a
 * policy names them by what they are.
 */
static void file_add_hashes(const char *text, size_t len, struct strbuf *out)
{
    const char *end = text + len, *tag, *script;

    while ((tag = memmem(text, (size_t)(end - text), "<script", strlen("<script")))
           && (script = memchr(tag, '>', (size_t)(end - tag)))) {
        script++;
        if (!(text = memmem(script, (size_t)(end - script), "</script", strlen("</script"))))
            break;
        if (!memmem(tag, (size_t)(script - tag), " src=", strlen(" src="))
            && !memmem(tag, (size_t)(script - tag), " nonce=", strlen(" nonce=")))
            file_add_hash(script, (size_t)(text - script), out);
    }
}

/* With a nonce in each of its places. */
static void file_reply_index(struct web *web, struct request *req, const char *text, size_t len)
{
    static const char mark[] = "{{nonce}}";
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT, hashes = STRBUF_INIT;
    const char *end = text + len, *at;
    char nonce[PAGE_NONCE_MAX];

    page_make_nonce(nonce);
    file_add_hashes(text, len, &hashes);
    while ((at = memmem(text, (size_t)(end - text), mark, sizeof(mark) - 1))) {
        strbuf_add(&out, text, (size_t)(at - text));
        strbuf_adds(&out, nonce);
        text = at + sizeof(mark) - 1;
    }
    strbuf_add(&out, text, (size_t)(end - text));
    page_add_policy(web, req, nonce, hashes.data);
    request_reply(req, 200, "text/html; charset=utf-8", out.data, out.len);
}

static void file_serve_index(struct web *web, struct request *req)
{
    AQ_CLEANUP(aq_closep) int fd = beneath_open(web->folder, INDEX, O_RDONLY | O_NONBLOCK, false);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct aq_error err = { 0 };
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > INDEX_MAX) {
        aq_fail_kind(&err, ENOENT, "url-not-found", "the folder of static files has no " INDEX);
        request_fail(req, &err);
        return;
    }
    (void)strbuf_reserve(&text, (size_t)st.st_size);
    if (pread(fd, text.data, (size_t)st.st_size, 0) == (ssize_t)st.st_size)
        file_reply_index(web, req, text.data, (size_t)st.st_size);
    else
        request_fail(req, &(struct aq_error){ .code = EIO });
}

/* ---- which file ---- */

/* A neighbour that the browser can read, FILE.br or FILE.gz, or itself. */
static int file_open(struct file *file, const char *path)
{
    static const struct {
        const char *name, *ending;
    } encodings[] = { { "br", ".br" }, { "gzip", ".gz" } };
    const struct message_head *head = request_get_head(file->req);
    bool is_part = request_get_header(file->req, "Range");
    char name[PATH_MAX];

    for (size_t i = 0; i < AQ_COUNT(encodings) && !is_part; i++) {
        if (!message_has_token(head, "Accept-Encoding", encodings[i].name)
            || snprintf(name, sizeof(name), "%s%s", path, encodings[i].ending) >= (int)sizeof(name))
            continue;
        file->fd = beneath_open(file->web->folder, name, O_RDONLY | O_NONBLOCK, false);
        if (file->fd >= 0 && fstat(file->fd, &file->st) == 0 && S_ISREG(file->st.st_mode)) {
            file->encoding = encodings[i].name;
            return 0;
        }
        aq_closep(&file->fd);
        file->fd = -1;
    }
    file->fd = beneath_open(file->web->folder, path, O_RDONLY | O_NONBLOCK, false);
    if (file->fd < 0)
        return file->fd;
    if (fstat(file->fd, &file->st) < 0)
        return -errno;
    return S_ISREG(file->st.st_mode) ? 0 : -EISDIR;
}

static void file_serve(struct web *web, struct request *req, const char *path)
{
    struct file *file = aq_alloc(sizeof(*file));

    file->web = web;
    file->req = req;
    file->fd = -1;
    if (file_open(file, path) == 0) {
        file_reply(file, path);
        return;
    }
    file_free(file);
    file_serve_index(web, req); /* an address within the page */
}

void files_serve(struct web *web, struct request *req)
{
    const char *raw = request_get_path(req), *decoded;
    struct aq_error err = { 0 };
    char path[PATH_MAX];

    if (url_decode(request_get_arena(req), raw + 1, strlen(raw + 1), false, &decoded, &err) < 0
        || beneath_clean(decoded, path, &err) < 0) {
        aq_fail_kind(&err, EINVAL, "generic-bad-request", "the path is none of a file");
        request_fail(req, &err);
        return;
    }
    if (strncmp(raw, "/aliquot/", strlen("/aliquot/")) == 0)
        console_serve(web, req, decoded + strlen("aliquot/"), "/aliquot/");
    else if (strcmp(path, "aliquot") == 0) {
        request_add_header(req, "Location", "/aliquot/");
        request_reply_empty(req, 302);
    } else if (web->folder < 0)
        console_serve(web, req, decoded, "/");
    else if (!*path || strcmp(path, INDEX) == 0)
        file_serve_index(web, req);
    else
        file_serve(web, req, path);
}
