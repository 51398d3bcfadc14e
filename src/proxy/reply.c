/* SPDX-License-Identifier: Apache-2.0 */
/* reply.c - what the proxy itself answers a browser */
#include <errno.h>
#include <string.h>

#include "base/jsonw.h"
#include "proxy/browser.h"

/* A request whose body is still to come ends the connection: what follows could not be told from
 * it.
 */
static bool reply_keeps(const struct browser *b)
{
    const struct message_head *head = message_get_head(b->request);

    return b->turn.is_kept && !b->proxy->is_draining
           && (b->turn.is_read || (!head->is_chunked && head->content_length == 0));
}

static void reply_write(struct browser *b, int status, const char *headers, const char *type,
                        const char *body, struct strbuf *out)
{
    strbuf_addf(out, "HTTP/1.1 %d %s\r\n%s", status, status_text(status), headers);
    if (type)
        strbuf_addf(out, "Content-Type: %s\r\n", type);
    if (status != 204)
        strbuf_addf(out, "Content-Length: %zu\r\n", strlen(body));
    strbuf_addf(out,
                "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
                "X-Content-Type-Options: nosniff\r\n%s\r\n",
                b->turn.is_kept ? "" : "Connection: close\r\n");
    if (message_get_head(b->request)->method != METHOD_HEAD)
        strbuf_adds(out, body);
}

void browser_reply(struct browser *b, int status, const char *headers, const char *type,
                   const char *body)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    b->turn.is_kept = reply_keeps(b);
    if (b->turn.is_passed)
        app_drop(b);
    b->turn.is_passed = false;
    reply_write(b, status, headers, type, body, &out);
    b->turn.is_answered = b->turn.is_whole = true;
    (void)stream_write(b->stream, out.data, out.len);
    if (b->turn.is_kept)
        browser_settle(b);
    else
        browser_end(b);
}

static void reply_add_escaped(struct strbuf *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("&<>\"'", *text))
            strbuf_addf(out, "&#%d;", *text);
        else
            strbuf_addc(out, *text);
    }
}

void browser_show(struct browser *b, int status, const char *headers, const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf page = STRBUF_INIT;

    strbuf_adds(&page, "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
                       "<meta name=\"viewport\" content=\"width=device-width\">"
                       "<title>Aliquot</title><style>"
                       ":root{color-scheme:light dark;font:1rem/1.5 system-ui,sans-serif}"
                       "body{max-width:36rem;margin:18vh auto;padding:0 1rem}"
                       "</style><main><h1>aliquot</h1><p>");
    reply_add_escaped(&page, text);
    strbuf_adds(&page, "</p></main></html>\n");
    browser_reply(b, status, headers, "text/html; charset=utf-8", page.data);
}

void browser_refuse(struct browser *b, int status, const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    b->proxy->counts.refused++;
    if (b->turn.is_page) {
        browser_show(b, status, "", text);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "title", text);
    jsonw_member_int(&w, "status", status);
    jsonw_object_end(&w);
    browser_reply(b, status, "", "application/problem+json", out.data);
}

void browser_fail(struct browser *b, const struct aq_error *err)
{
    int status = err->code == EACCES         ? 403
                 : err->code == ENOENT       ? 404
                 : err->code == ESHUTDOWN    ? 410
                 : err->code == EINVAL       ? 400
                 : err->code == EDQUOT       ? 429
                 : err->code == ECONNABORTED ? 502
                                             : 503;

    browser_refuse(b, status, err->text);
}
