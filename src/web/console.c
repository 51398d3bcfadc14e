/* SPDX-License-Identifier: Apache-2.0 */
/* console.c - serves the files of the console, which are in the program */
#include <string.h>

#include "http/problem.h"
#include "web/console_files.h"
#include "web/web.h"

/* In the best encoding that the browser can read. */
static const struct web_file *console_find(const struct request *req, const char *path)
{
    const struct web_file *found = NULL;

    for (size_t i = 0; i < web_file_count; i++) {
        const struct web_file *file = &web_files[i];

        if (strcmp(file->path, path) != 0
            || (file->encoding
                && !message_has_token(request_get_head(req), "Accept-Encoding", file->encoding)))
            continue;
        if (!found || file->size < found->size)
            found = file;
    }
    return found;
}

/* As it is written: places in it are filled in. */
static const struct web_file *console_find_index(void)
{
    for (size_t i = 0; i < web_file_count; i++)
        if (strcmp(web_files[i].path, "index.html") == 0 && !web_files[i].encoding)
            return &web_files[i];
    return NULL;
}

static void console_fill(const struct web_file *file, const char *nonce, const char *base,
                         struct strbuf *out)
{
    const struct {
        const char *mark, *value;
    } places[] = { { "{{nonce}}", nonce }, { "{{base}}", base } };
    const char *at = (const char *)file->bytes, *end = at + file->size;

    while (at < end) {
        const char *next = memmem(at, (size_t)(end - at), "{{", 2);
        size_t i = 0;

        strbuf_add(out, at, (size_t)((next ? next : end) - at));
        if (!next)
            break;
        while (
            i < AQ_COUNT(places)
            && strncmp(next, places[i].mark, AQ_MIN((size_t)(end - next), strlen(places[i].mark)))
                   != 0)
            i++;
        strbuf_adds(out, i < AQ_COUNT(places) ? places[i].value : "{{");
        at = next + (i < AQ_COUNT(places) ? strlen(places[i].mark) : 2);
    }
}

static void console_serve_index(struct web *web, struct request *req, const char *base)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct web_file *file = console_find_index();
    char nonce[PAGE_NONCE_MAX];

    page_make_nonce(nonce);
    if (file)
        console_fill(file, nonce, base, &out);
    page_add_policy(web, req, nonce, NULL);
    request_reply(req, 200, "text/html; charset=utf-8", out.data, out.len);
}

void console_serve(struct web *web, struct request *req, const char *path, const char *base)
{
    const char *known = request_get_header(req, "If-None-Match");
    const struct web_file *file = console_find(req, path);

    if (!file || strcmp(path, "index.html") == 0) { /* an address within the page */
        console_serve_index(web, req, base);
        return;
    }
    request_add_header(req, "ETag", file->etag);
    request_add_header(req, "Cache-Control", "no-cache");
    request_add_header(req, "Vary", "Accept-Encoding");
    if (file->encoding)
        request_add_header(req, "Content-Encoding", file->encoding);
    if (known && strcmp(known, file->etag) == 0)
        request_reply_empty(req, 304);
    else
        request_reply(req, 200, file->type, file->bytes, file->size);
}
