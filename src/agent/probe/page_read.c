/* SPDX-License-Identifier: Apache-2.0 */
/* page_read.c - see page_read.h */
#include "agent/probe/page_read.h"

#include <stdlib.h>

#include "agent/data/app_socket.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "http/defer.h"
#include "http/message.h"
#include "http/stream.h"

#define HEAD_MAX (16u << 10)
#define HEADERS_MAX 100

struct page_read {
    uv_loop_t *loop;
    const struct page_target *target;
    struct app_socket *connecting;
    struct stream *stream;
    struct message_parser *parser;
    struct defer *timer; /* NULL once it has come */
    size_t received;     /* bytes, heads and framing included */
    struct exposition_scan scan;
    struct exposition_sum sums[EXPOSITION_SELECTORS_MAX];
    page_read_fn *fn;
    void *data;
};

static void page_read_free(struct page_read *page)
{
    app_socket_cancel(page->connecting);
    stream_close(page->stream);
    message_parser_free(page->parser);
    defer_cancel(page->timer);
    exposition_scan_done(&page->scan);
    free(page);
}

void page_read_cancel(struct page_read *page)
{
    if (page)
        page_read_free(page);
}

/* 'text' NULL = the page is complete. */
static void page_read_end(struct page_read *page, const char *text)
{
    AQ_CLEANUP(aq_freep) char *words = NULL;

    if (text) {
        words = aq_format("GET %s on port %u: %s", page->target->path, (unsigned)page->target->port,
                          text);
        utf8_make_printable(words); /* parts of it are the program's */
    } else {
        exposition_scan_finish(&page->scan);
    }
    page->fn(page->data, text ? NULL : page->sums, words);
    page_read_free(page);
}

static void page_read_on_timer(void *data)
{
    struct page_read *page = data;

    page->timer = NULL;
    page_read_end(page, page->received ? "no complete answer within 5 s" : "no answer within 5 s");
}

/* ---- the answer ---- */

/* False once the reading has ended. */
static bool page_read_take_head(struct page_read *page)
{
    const struct message_head *head = message_get_head(page->parser);
    const char *coding = message_get_header(head, "Content-Encoding");
    AQ_CLEANUP(aq_freep) char *text = NULL;

    if (head->status / 100 == 1 && head->status != 101)
        return true;
    if (head->status != 200)
        text = aq_format("%d instead of 200", head->status);
    else if (coding)
        text = aq_format("the answer is encoded as '%.40s', which was not asked for", coding);
    if (!text)
        return true;
    page_read_end(page, text);
    return false;
}

static void page_read_on_read(void *data, const char *bytes, size_t len)
{
    struct page_read *page = data;
    struct message_piece piece;

    page->received += len;
    if (page->received > PAGE_BYTES_MAX) {
        page_read_end(page, "the page is longer than 4 MiB");
        return;
    }
    do { /* also without bytes left: the end of the message may follow its last piece */
        struct aq_error err = { 0 };
        ssize_t used = message_feed(page->parser, bytes, len, &piece, &err);

        if (used < 0) {
            AQ_CLEANUP(aq_freep) char *text = aq_format("cannot read the answer: %s", err.text);

            page_read_end(page, text);
            return;
        }
        bytes += used;
        len -= (size_t)used;
        if (piece.event == MESSAGE_HEAD && !page_read_take_head(page))
            return;
        if (piece.event == MESSAGE_BODY)
            exposition_scan_take(&page->scan, piece.bytes, piece.len);
        if (piece.event == MESSAGE_END) {
            if (message_get_head(page->parser)->status == 200) {
                page_read_end(page, NULL);
                return;
            }
            message_reset(page->parser); /* of an interim answer, such as 103 */
        }
    } while (piece.event != MESSAGE_MORE);
}

static void page_read_on_end(void *data, const struct aq_error *err)
{
    struct page_read *page = data;
    struct aq_error why = { 0 };

    if (err->code)
        page_read_end(page, "the connection was reset");
    else if (!message_has_begun(page->parser) || message_finish(page->parser, &why) < 0)
        page_read_end(page, page->received ? "the connection was closed within the answer"
                                           : "the connection was closed without an answer");
    else
        page_read_end(page, NULL);
}

/* ---- the connection ---- */

static void page_read_on_connected(void *data, int fd, const struct aq_error *err)
{
    static const struct stream_ops ops = { .on_read = page_read_on_read,
                                           .on_end = page_read_on_end,
                                           .hears_out = true };
    AQ_CLEANUP(strbuf_donep) struct strbuf request = STRBUF_INIT;
    struct page_read *page = data;
    struct aq_error why = { 0 };

    page->connecting = NULL;
    if (err) {
        page_read_end(page, err->text);
        return;
    }
    if (stream_adopt(page->loop, fd, &ops, page, &page->stream, &why) < 0) {
        aq_closep(&fd);
        page_read_end(page, why.text);
        return;
    }
    strbuf_addf(&request,
                "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUser-Agent: aliquot-agent\r\n"
                "Accept: text/plain;version=0.0.4\r\nAccept-Encoding: identity\r\n"
                "Connection: close\r\n\r\n",
                page->target->path, (unsigned)page->target->port);
    (void)stream_write(page->stream, request.data, request.len); /* on_end() tells of failures */
}

int page_read_start(uv_loop_t *loop, int ns, const struct page_target *target, page_read_fn *fn,
                    void *data, struct page_read **ret, struct aq_error *err)
{
    static const struct message_limits limits = { .line_max = HEAD_MAX,
                                                  .head_max = HEAD_MAX,
                                                  .headers_max = HEADERS_MAX,
                                                  .body_max = UINT64_MAX };
    struct page_read *page = aq_alloc(sizeof(*page));
    int r;

    page->loop = loop;
    page->target = target;
    page->fn = fn;
    page->data = data;
    exposition_scan_begin(&page->scan, target->selectors, target->count, page->sums);
    r = message_parser_new(false, &limits, &page->parser, err);
    if (r == 0)
        r = app_socket_connect(loop, ns, target->port, page_read_on_connected, page,
                               &page->connecting, err);
    if (r < 0) {
        page_read_free(page);
        return r;
    }
    page->timer = defer_call(loop, (unsigned)(PAGE_USEC / USEC_PER_MSEC), page_read_on_timer, page);
    *ret = page;
    return 0;
}
