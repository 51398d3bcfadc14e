/* SPDX-License-Identifier: Apache-2.0 */
/* browser.c - one connection of a browser: one request to an app and its answer, or a WebSocket
 *
 * Read strictly, so that the app cannot take one request for two; what comes after the request is
 * not passed on. The app's bytes come through the manager, who looks whether the cookie's user may
 * have them.
 */
#include "proxy/browser.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "proxy/head.h"

#define HEAD_MSEC 15000
#define LINGER_MSEC 2000

static const struct message_limits limits = {
    .line_max = 32 << 10, .head_max = 64 << 10, .headers_max = 200, .body_max = INT64_MAX
};

static void browser_free(struct browser *b)
{
    struct proxy *p = b->proxy;

    list_remove(&b->link);
    p->browser_count--;
    defer_cancel(b->timer);
    manager_cancel(b->ask);
    link_stream_close(b->app);
    stream_close(b->stream);
    message_parser_free(b->request);
    message_parser_free(b->answer);
    pump_done(&b->pump);
    free(b);
    if (p->is_draining && p->browser_count == 0 && p->on_drained)
        p->on_drained(p->data);
}

void browsers_cut(struct proxy *p)
{
    while (!list_is_empty(&p->browsers))
        browser_free(LIST_ENTRY(p->browsers.next, struct browser, link));
}

/* ---- the end ---- */

static void browser_on_lingered(void *data)
{
    struct browser *b = data;

    b->timer = NULL;
    browser_free(b);
}

static void browser_wait(struct browser *b, unsigned msec, void (*fn)(void *data))
{
    defer_cancel(b->timer);
    b->timer = defer_call(b->proxy->loop, msec, fn, b);
}

/* What is queued goes out. */
static void browser_end(struct browser *b)
{
    b->is_ending = true;
    manager_cancel(AQ_TAKE(b->ask));
    pump_part(&b->pump, PUMP_KERNEL);
    link_stream_close(AQ_TAKE(b->app));
    stream_resume(b->stream);
    stream_shutdown(b->stream);
    if (stream_queued(b->stream) == 0)
        browser_wait(b, LINGER_MSEC, browser_on_lingered);
    else
        defer_cancel(AQ_TAKE(b->timer));
}

void browser_reply(struct browser *b, int status, const char *headers, const char *type,
                   const char *body)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    strbuf_addf(&out, "HTTP/1.1 %d %s\r\n%s", status, status_text(status), headers);
    if (type)
        strbuf_addf(&out, "Content-Type: %s\r\n", type);
    strbuf_addf(&out,
                "Content-Length: %zu\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
                "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n%s",
                strlen(body), body);
    b->is_answered = true;
    if (strbuf_ok(&out))
        (void)stream_write(b->stream, out.data, out.len);
    browser_end(b);
}

static void browser_add_escaped(struct strbuf *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("&<>\"'", *text))
            strbuf_addf(out, "&#%d;", *text);
        else
            strbuf_addc(out, *text);
    }
}

static void browser_show(struct browser *b, int status, const char *headers, const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf page = STRBUF_INIT;

    strbuf_adds(&page, "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
                       "<meta name=\"viewport\" content=\"width=device-width\">"
                       "<title>Aliquot</title><body><p>");
    browser_add_escaped(&page, text);
    strbuf_adds(&page, "</p></body></html>\n");
    browser_reply(b, status, headers, "text/html; charset=utf-8", page.data);
}

void browser_refuse(struct browser *b, int status, const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    b->proxy->counts.refused++;
    if (b->is_page) {
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
    int status = err->code == EACCES   ? 403
                 : err->code == ENOENT ? 404
                 : err->code == EINVAL ? 400
                                       : 503;

    browser_refuse(b, status, err->text);
}

/* ---- from the app ---- */

/* The app's connection is of no use any more. */
static void browser_on_app_broken(struct browser *b, const char *text)
{
    if (!b->is_answered)
        browser_refuse(b, 502, text);
    else if (b->is_upgraded)
        browser_end(b);
    else
        browser_free(b); /* the browser notices that something is missing */
}

static int browser_take_answer_head(struct browser *b)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct message_head *head = message_get_head(b->answer);

    if (head->status == 101 && !message_get_head(b->request)->is_upgrade)
        return -EPROTO;
    if (message_get_head(b->request)->method == METHOD_HEAD)
        message_skip_body(b->answer);
    head_write_answer(head, &b->place, &out);
    if (head->status == 101) {
        b->is_upgraded = true;
        b->proxy->counts.upgrades++;
    }
    b->is_answered = head->status == 101 || head->status >= 200;
    return strbuf_ok(&out) ? pump_give(&b->pump, PUMP_KERNEL, out.data, out.len) : -ENOMEM;
}

/* How many bytes were used; -errno. *ret_end: the answer is whole. */
static ssize_t browser_feed_answer(struct browser *b, const char *bytes, size_t len, bool *ret_end)
{
    struct message_piece piece;
    struct aq_error err = { 0 };
    ssize_t used = message_feed(b->answer, bytes, len, &piece, &err);
    bool is_after_head = b->is_answered;
    int r = 0;

    if (used < 0)
        return used;
    if (piece.event == MESSAGE_HEAD)
        r = browser_take_answer_head(b);
    else if (is_after_head && used)
        r = pump_give(&b->pump, PUMP_KERNEL, bytes, (size_t)used);
    if (r == 0 && piece.event == MESSAGE_END) {
        *ret_end = b->is_answered;
        if (!b->is_answered)
            message_reset(b->answer); /* of 100 and the like; the answer follows */
    }
    return r < 0 ? r : piece.event == MESSAGE_MORE ? (ssize_t)len : used;
}

static void browser_on_app_data(void *data, struct link_stream *stream, const char *bytes,
                                size_t len)
{
    struct browser *b = data;
    bool is_end = false;
    struct message_piece last;

    (void)stream;
    (void)last;
    b->proxy->counts.bytes_out += len;
    for (bool is_more = true; is_more && !b->is_upgraded && !is_end;) {
        bool was_answered = b->is_answered;
        ssize_t used = browser_feed_answer(b, bytes, len, &is_end);

        if (used < 0) {
            browser_on_app_broken(b, "the app's answer is no HTTP");
            return;
        }
        bytes += used;
        len -= (size_t)used;
        /* after a head the end may come without further bytes */
        is_more = len > 0 || was_answered != b->is_answered;
    }
    if (is_end)
        browser_end(b);
    else if (b->is_upgraded && len && pump_give(&b->pump, PUMP_KERNEL, bytes, len) < 0)
        browser_free(b);
}

static void browser_on_app_open(void *data, struct link_stream *stream)
{
    struct browser *b = data;

    (void)stream;
    if (pump_open(&b->pump, PUMP_KERNEL) == -ENOMEM)
        browser_on_app_broken(b, "the proxy's memory is short");
}

static void browser_on_app_drain(void *data, struct link_stream *stream)
{
    struct browser *b = data;

    (void)stream;
    pump_drained(&b->pump, PUMP_KERNEL);
}

static void browser_on_app_close(void *data, struct link_stream *stream, const struct aq_error *err)
{
    struct browser *b = data;
    struct aq_error why;

    (void)stream;
    b->app = NULL;
    if (b->is_answered && !b->is_upgraded && !err && message_finish(b->answer, &why) == 0)
        browser_end(b);
    else
        browser_on_app_broken(b, "the app has closed the connection without an answer");
}

static const struct link_stream_ops browser_app_ops = {
    .on_open = browser_on_app_open,
    .on_data = browser_on_app_data,
    .on_drain = browser_on_app_drain,
    .on_close = browser_on_app_close,
};

/* ---- to the app ---- */

static void browser_on_connected(void *data, struct link_stream *stream, const struct aq_error *err)
{
    struct browser *b = data;
    struct aq_error oom;

    b->ask = NULL;
    if (err) {
        browser_fail(b, err);
        return;
    }
    b->app = stream;
    pump_join(&b->pump, PUMP_KERNEL, &link_stream_pump, stream);
    defer_cancel(AQ_TAKE(b->timer));
    if (message_parser_new(false, &limits, &b->answer, &oom) < 0)
        browser_fail(b, &oom);
}

/* The app takes its time: its start goes on. */
static void browser_on_waited(void *data)
{
    struct browser *b = data;

    b->timer = NULL;
    if (b->is_page)
        browser_show(b, 503, "Refresh: 1\r\nRetry-After: 1\r\n",
                     "starting… this page comes by itself");
}

static void browser_connect(struct browser *b, const struct message_head *head)
{
    const struct head_origin origin = { .address = stream_get_address(b->stream),
                                        .is_tls = stream_is_tls(b->stream) };
    const struct msg_app_connect want = { .session_id = b->place.session_id,
                                          .app = b->place.app,
                                          .access_key = b->cookie.access_key };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct aq_error err = { 0 };

    head_write_request(head, &b->place, &origin, &out);
    if (!strbuf_ok(&out) || pump_give(&b->pump, PUMP_CLIENT, out.data, out.len) < 0) {
        (void)aq_fail_oom(&err);
        browser_fail(b, &err);
    } else if (manager_connect(b->proxy->manager, &want, &browser_app_ops, browser_on_connected, b,
                               &b->ask, &err)
               < 0) {
        browser_fail(b, &err);
    } else {
        b->proxy->counts.requests++;
        browser_wait(b, (unsigned)(b->proxy->settings->wait_usec / USEC_PER_MSEC),
                     browser_on_waited);
    }
}

/* Bytes of the request as they came, of which it is known that they are its own. */
static int browser_pass_on(struct browser *b, const char *bytes, size_t len)
{
    b->proxy->counts.bytes_in += len;
    return pump_give(&b->pump, PUMP_CLIENT, bytes, len);
}

/* ---- the request ---- */

static bool browser_has_right(struct browser *b, const struct message_head *head,
                              struct aq_error *err)
{
    int r = -ENOENT;

    for (size_t i = 0; r < 0 && i < head->header_count; i++) {
        size_t len = 0;
        const char *text = strcasecmp(head->headers[i].name, "Cookie") == 0
                               ? cookie_find(head->headers[i].value, &len)
                               : NULL;

        if (!text)
            continue;
        r = cookie_open(b->proxy->secret, text, len, clock_realtime_usec(), &b->cookie, err);
        if (r == 0
            && (!uuid_equals(&b->cookie.session_id, &b->place.session_id)
                || strcmp(b->cookie.app, b->place.app) != 0))
            r = aq_fail(err, EACCES, "the cookie is for another app");
    }
    return r == 0;
}

static void browser_add_slash(struct browser *b)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf header = STRBUF_INIT;

    strbuf_adds(&header, "Location: ");
    place_write_path(&b->place, &header);
    strbuf_adds(&header, "/\r\n");
    browser_reply(b, 301, header.data, NULL, "");
}

static void browser_route(struct browser *b)
{
    const struct message_head *head = message_get_head(b->request);
    const char *accept = message_get_header(head, "Accept");
    struct aq_error err = { 0 };
    int r = place_parse(head->target, message_get_header(head, "Host"), b->proxy->settings->domain,
                        &b->place, &err);

    b->is_page = head->method == METHOD_GET && accept && strstr(accept, "text/html");
    if (r < 0)
        browser_refuse(b, 404, err.text);
    else if (r == 0 || (b->place.is_host && control_is_setup(head->target)))
        control_serve(b, head);
    else if (head->method == METHOD_OTHER)
        browser_refuse(b, 501, "this method is not passed on");
    else if (!b->place.rest)
        browser_add_slash(b);
    else if (!browser_has_right(b, head, &err))
        browser_refuse(b, 401,
                       "open the app from the console or by 'aliquot app': this browser "
                       "has no right to it, or has had it for too long");
    else if (head_is_foreign(head, b->proxy->settings->public_url))
        browser_refuse(b, 403, "a page of another server asks for this");
    else
        browser_connect(b, head);
}

/* How many bytes were used, or -errno. */
static ssize_t browser_feed_request(struct browser *b, const char *bytes, size_t len,
                                    struct aq_error *err)
{
    struct message_piece piece;
    ssize_t used = message_feed(b->request, bytes, len, &piece, err);
    bool is_body = b->has_head;
    int r = 0;

    if (used < 0)
        return used;
    if (piece.event == MESSAGE_HEAD) {
        b->has_head = true;
        browser_route(b);
    } else if (is_body && used) {
        r = browser_pass_on(b, bytes, (size_t)used);
    }
    if (piece.event == MESSAGE_END)
        b->is_request_read = true;
    return r < 0 ? r : used;
}

static void browser_on_read(void *data, const char *bytes, size_t len)
{
    struct browser *b = data;
    struct aq_error err = { 0 };
    bool is_more = true;

    while (is_more && !b->is_ending && !b->is_request_read) {
        bool had_head = b->has_head;
        ssize_t used = browser_feed_request(b, bytes, len, &err);

        if (used < 0) {
            if (err.text[0] && !b->is_answered)
                browser_refuse(b, 400, err.text);
            else
                browser_on_app_broken(b, "the app's connection is lost");
            return;
        }
        bytes += used;
        len -= (size_t)used;
        is_more = len > 0 || had_head != b->has_head;
    }
    if (b->is_ending || !len || !message_get_head(b->request)->is_upgrade)
        return;
    if (browser_pass_on(b, bytes, len) < 0)
        browser_free(b);
}

static void browser_on_end(void *data, const struct aq_error *err)
{
    (void)err;
    browser_free(data);
}

static void browser_on_drain(void *data)
{
    struct browser *b = data;

    if (b->is_ending)
        browser_wait(b, LINGER_MSEC, browser_on_lingered);
    else
        pump_drained(&b->pump, PUMP_CLIENT);
}

static void browser_on_open(void *data)
{
    (void)data;
}

static const struct stream_ops browser_stream_ops = {
    .on_open = browser_on_open,
    .on_read = browser_on_read,
    .on_end = browser_on_end,
    .on_drain = browser_on_drain,
};

void browser_accept(struct proxy *p)
{
    struct browser *b = calloc(1, sizeof(*b));
    struct aq_error err = { 0 };

    if (!b || message_parser_new(true, &limits, &b->request, &err) < 0
        || listener_accept(p->listener, &browser_stream_ops, b, &b->stream, &err) < 0) {
        if (b)
            message_parser_free(b->request);
        free(b);
        listener_wait(p->listener);
        return;
    }
    b->proxy = p;
    pump_init(&b->pump);
    pump_join(&b->pump, PUMP_CLIENT, &stream_pump, b->stream);
    (void)pump_open(&b->pump, PUMP_CLIENT);
    pump_set_early(&b->pump, PUMP_KERNEL, PUMP_QUEUE_HIGH);
    list_add(&p->browsers, &b->link);
    p->browser_count++;
    p->counts.connections++;
    if (p->browser_count > (size_t)p->settings->connections_max)
        browser_free(b);
    else
        browser_wait(b, HEAD_MSEC, browser_on_lingered);
}
