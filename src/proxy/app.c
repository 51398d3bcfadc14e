/* SPDX-License-Identifier: Apache-2.0 */
/* app.c - the app's side of a browser's connection: the stream to it, and what it answers
 *
 * A stream costs a command in the container, so it stays for the next request of the same
 * connection, if that is for the same app and user, and comes soon. It never serves another
 * connection: whatever an app answers out of turn reaches nobody but who asked it.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "proxy/browser.h"
#include "proxy/head.h"
#include "proxy/serving.h"

#define JOINED_MAX 16384 /* bytes of an answer that are copied to go out with its head */

/* The answer stays without its end, so that the browser notices that something is missing. */
static void app_cut(struct browser *b)
{
    if (b->call)
        call_on_broken(b->call);
    browser_free(b);
}

/* The app's connection is of no use any more. */
static void app_on_broken(struct browser *b, const char *text)
{
    if (!b->turn.is_passed)
        app_drop(b);
    else if (!b->turn.is_answered && b->call)
        call_on_unanswered(b->call);
    else if (!b->turn.is_answered)
        browser_refuse(b, 502, text);
    else if (b->is_upgraded)
        browser_end(b);
    else
        app_cut(b);
}

void app_part(struct browser *b)
{
    pump_done(&b->pump);
    pump_init(&b->pump);
    pump_join(&b->pump, PUMP_CLIENT, &stream_pump, b->stream);
    (void)pump_open(&b->pump, PUMP_CLIENT);
    pump_set_early(&b->pump, PUMP_KERNEL, PUMP_QUEUE_HIGH);
}

void app_drop(struct browser *b)
{
    call_drop(b);
    manager_cancel(AQ_TAKE(b->ask));
    app_link_close(AQ_TAKE(b->opening));
    app_link_close(AQ_TAKE(b->app));
    app_part(b);
    browser_go_on(b);
}

bool app_is_idle(const struct browser *b)
{
    return b->app && !b->turn.is_passed;
}

/* ---- from the app ---- */

/* What the browser gets goes out by as few writes as it can. */
static int app_flush(struct browser *b, struct strbuf *out)
{
    int r = out->len ? pump_give(&b->pump, PUMP_KERNEL, out->data, out->len) : 0;

    strbuf_clear(out);
    return r;
}

static int app_pass(struct browser *b, struct strbuf *out, const char *bytes, size_t len)
{
    int r;

    if (out->len && out->len + len <= JOINED_MAX) {
        strbuf_add(out, bytes, len);
        return 0;
    }
    r = app_flush(b, out);
    return r < 0 ? r : pump_give(&b->pump, PUMP_KERNEL, bytes, len);
}

static int app_take_head(struct browser *b, struct strbuf *out)
{
    const struct message_head *head = message_get_head(b->answer);

    if (head->status == 101 && !head_is_upgrade(message_get_head(b->request), &b->place))
        return -EPROTO;
    if (message_get_head(b->request)->method == METHOD_HEAD)
        message_skip_body(b->answer);
    /* What follows an answer that is whole before its request could not be told from it. */
    if (head->until_close || b->proxy->is_draining || (head->status >= 200 && !b->turn.is_read))
        b->turn.is_kept = false;
    head_write_answer(head, &b->place, b->turn.is_kept, out);
    if (b->call && (head->status == 101 || head->status >= 200))
        call_on_head(b->call, head, out);
    if (head->status == 101) {
        b->is_upgraded = true;
        b->proxy->counts.upgrades++;
    }
    b->turn.is_answered = head->status == 101 || head->status >= 200;
    return 0;
}

/* How many bytes were used; -errno. *ret_more: feed again, though there be no more bytes. *ret_passed:
 * how many of those used belong to the answer's body, and go to the browser as they are.
 */
static ssize_t app_feed(struct browser *b, const char *bytes, size_t len, struct strbuf *out,
                        size_t *ret_passed, bool *ret_more)
{
    struct message_piece piece;
    struct aq_error err = { 0 };
    ssize_t used = message_feed(b->answer, bytes, len, &piece, &err);
    bool is_after_head = b->turn.is_answered;
    int r = 0;

    if (used < 0)
        return used;
    if (piece.event == MESSAGE_HEAD)
        r = app_take_head(b, out);
    *ret_passed = is_after_head ? (size_t)used : 0;
    if (b->call && piece.event == MESSAGE_BODY)
        call_on_body(b->call, piece.bytes, piece.len);
    if (piece.event == MESSAGE_END && !b->turn.is_answered)
        message_reset(b->answer); /* of 100 and the like; the answer follows */
    else
        b->turn.is_whole = piece.event == MESSAGE_END;
    *ret_more = piece.event != MESSAGE_MORE && !b->turn.is_whole && !b->is_upgraded;
    return r < 0 ? r : used;
}

/* The answer is whole. 'rest' bytes came behind it, which are nobody's. */
static void app_on_answered(struct browser *b, size_t rest)
{
    const struct message_head *head = message_get_head(b->answer);

    bool is_lasting = head->keep_alive && !head->until_close && !rest && b->turn.is_read
                      && !b->pump.ends[PUMP_KERNEL].is_full;

    if (b->call)
        call_on_answered(b->call, is_lasting);
    else if (!is_lasting)
        app_drop(b);
    b->turn.is_passed = false;
    b->turn.is_whole = true;
    b->is_app_lasting |= b->is_app_used;
    b->is_app_used = true;
    if (b->turn.is_read)
        browser_settle(b);
    else
        browser_end(b);
}

/* Heads are not read any more: of many idle WebSockets they would be the most. */
static void app_on_upgraded(struct browser *b, const char *bytes, size_t len)
{
    message_parser_free(AQ_TAKE(b->request));
    message_parser_free(AQ_TAKE(b->answer));
    strbuf_done(&b->again);
    browser_stop_watch(b);
    browser_go_on(b);
    if (len && pump_give(&b->pump, PUMP_KERNEL, bytes, len) < 0)
        browser_free(b);
}

void app_take(struct browser *b, const char *bytes, size_t len)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    size_t passed, body_len = 0; /* passed on together, however many chunks it has */
    ssize_t used = 0;
    int r;

    b->proxy->counts.bytes_out += len;
    if (b->is_upgraded) {
        if (pump_give(&b->pump, PUMP_KERNEL, bytes, len) < 0)
            browser_free(b);
        return;
    }
    if (!b->turn.is_passed) {
        app_drop(b); /* nothing was asked */
        return;
    }
    for (bool is_more = true; is_more && used >= 0;) {
        used = app_feed(b, bytes, len, &out, &passed, &is_more);
        if (used >= 0) {
            bytes += used;
            len -= (size_t)used;
            body_len += passed;
        }
    }
    r = body_len ? app_pass(b, &out, bytes - body_len, body_len) : 0;
    if (r < 0 || app_flush(b, &out) < 0 || used < 0) {
        app_on_broken(b, "the app's answer is no HTTP");
        return;
    }
    if (b->turn.is_whole)
        app_on_answered(b, len);
    else if (b->is_upgraded)
        app_on_upgraded(b, bytes, len);
    else if (b->pump.ends[PUMP_CLIENT].is_full && !b->is_watched)
        browser_watch(b);
}

static void app_on_data(void *data, const char *bytes, size_t len)
{
    app_take(data, bytes, len);
}

void app_expect_answer(struct browser *b)
{
    if (!b->answer)
        (void)message_parser_new(false, &browser_limits, &b->answer, NULL);
}

static void app_on_open(void *data, const struct aq_error *err)
{
    struct browser *b = data;

    b->app = AQ_TAKE(b->opening);
    if (err) {
        b->app = NULL;
        browser_fail(b, err);
        return;
    }
    pump_join(&b->pump, PUMP_KERNEL, &app_link_pump, b->app);
    defer_cancel(AQ_TAKE(b->timer));
    app_expect_answer(b);
    (void)pump_open(&b->pump, PUMP_KERNEL);
}

static void app_on_drain(void *data)
{
    struct browser *b = data;

    pump_drained(&b->pump, PUMP_KERNEL);
}

static void app_connect(struct browser *b, const struct strbuf *head);

/* It was about to give up a connection that had served: the request did not reach it. */
static bool app_asks_again(struct browser *b)
{
    if (!b->turn.is_passed || !b->is_app_used || !b->again.len || b->turn.is_answered
        || message_has_begun(b->answer))
        return false;
    app_connect(b, &b->again);
    return true;
}

void app_on_end(struct browser *b, const struct aq_error *err)
{
    struct aq_error why;

    b->is_app_lasting = false; /* without having said so */
    if (b->turn.is_answered && b->turn.is_passed && !b->is_upgraded && !err
        && message_finish(b->answer, &why) == 0)
        app_on_answered(b, 0);
    else if (!app_asks_again(b))
        app_on_broken(b, "the app has closed the connection without an answer");
}

static void app_on_close(void *data, const struct aq_error *err)
{
    struct browser *b = data;

    b->app = NULL;
    app_on_end(b, err);
}

static const struct app_link_ops app_ops = {
    .on_open = app_on_open,
    .on_data = app_on_data,
    .on_drain = app_on_drain,
    .on_close = app_on_close,
};

/* ---- to the app ---- */

/* The app takes its time: its start goes on. */
static void app_on_waited(void *data)
{
    struct browser *b = data;

    b->timer = NULL;
    if (b->turn.is_page)
        browser_show(b, 503, "Refresh: 1\r\nRetry-After: 1\r\n",
                     "starting… this page comes by itself");
}

/* A connection to the app, for this head of a request. */
static void app_connect(struct browser *b, const struct strbuf *head)
{
    const struct msg_app_connect want = { .session_id = b->place.session_id,
                                          .app = b->place.app,
                                          .access_key = b->cookie.access_key };
    struct aq_error err = { 0 };

    app_drop(b);
    b->app_of = b->cookie;
    b->is_app_used = false;
    (void)pump_give(&b->pump, PUMP_CLIENT, head->data, head->len); /* it waits in the empty pump */
    if (app_link_open(b->proxy, &want, &app_ops, b, &b->opening, &err) < 0)
        browser_fail(b, &err);
    else
        browser_wait(b, (unsigned)(b->proxy->settings->wait_usec / USEC_PER_MSEC), app_on_waited);
}

static bool app_is_for(const struct browser *b)
{
    return uuid_equals(&b->app_of.session_id, &b->cookie.session_id)
           && strcmp(b->app_of.app, b->cookie.app) == 0
           && strcmp(b->app_of.access_key, b->cookie.access_key) == 0;
}

void app_ask(struct browser *b, const struct message_head *head)
{
    const struct head_origin origin = { .address = stream_get_address(b->stream),
                                        .is_tls = stream_is_tls(b->stream) };
    bool is_again = (head->method == METHOD_GET || head->method == METHOD_HEAD
                     || head->method == METHOD_OPTIONS)
                    && !head->is_chunked && head->content_length == 0;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    head_write_request(head, &b->place, &origin, &out);
    b->turn.is_passed = true;
    b->proxy->counts.requests++;
    b->is_app_lasting &= app_is_for(b);
    if (is_again)
        strbuf_add(&b->again, out.data, out.len);
    if (!b->app || !app_is_for(b) || !(is_again || b->is_app_lasting)
        || pump_give(&b->pump, PUMP_CLIENT, out.data, out.len) < 0)
        app_connect(b, &out);
    else
        defer_cancel(AQ_TAKE(b->timer));
}

int app_give(struct browser *b, const char *bytes, size_t len)
{
    int r = pump_give(&b->pump, PUMP_CLIENT, bytes, len);

    b->proxy->counts.bytes_in += len;
    return r == -EPIPE ? 0 : r; /* app_on_close() tells of its end, after its last words */
}
