/* SPDX-License-Identifier: Apache-2.0 */
/* browser.c - one connection of a browser: requests and their answers, one after the other
 *
 * Read strictly, so that the app cannot take one request for two. What comes behind a request
 * waits until its answer is over; only then is it known whether it is a request, or an upgraded
 * connection's. The app's bytes come through the manager, who looks whether the cookie's user may
 * have them.
 *
 * Memory is bounded by the client's pace: the next request is not read before the socket has taken
 * the previous answer, and an app is paused while its answer is queued (pump.h). A client that
 * takes nothing of an answer for WRITE_MSEC is dropped. Upgraded connections and those to TCP
 * ports have no such deadline, since a stopped terminal may rest for hours; what is queued for
 * them is bounded by the pump.
 */
#include "proxy/browser.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "proxy/connections.h"
#include "proxy/head.h"
#include "proxy/serving.h"

#define HEAD_MSEC 15000 /* from its first byte */
#define APP_MSEC 1500 /* for the next request to the same app: servers give up after 2 s or more */
#define IDLE_MSEC 75000  /* of who has shown a cookie */
#define LOOK_MSEC 2000   /* between looks at a client that has an answer to take */
#define WRITE_MSEC 30000 /* it takes nothing */

const struct message_limits browser_limits = {
    .line_max = 32 << 10, .head_max = 64 << 10, .headers_max = 200, .body_max = INT64_MAX
};

/* In the middle of an answer that has no other mark of its end than that of the connection. */
static bool browser_is_in_unmarked_answer(const struct browser *b)
{
    return b->turn.is_passed && b->turn.is_answered && !b->is_upgraded
           && message_get_head(b->answer)->until_close;
}

void browser_free(struct browser *b)
{
    struct proxy *p = b->proxy;
    struct client_share *share = b->share, *user = b->user;

    if (browser_is_in_unmarked_answer(b))
        stream_break(b->stream);
    list_remove(&b->link);
    list_remove(&b->waiting_link);
    if (b->port)
        b->port->connection_count--;
    call_drop(b);
    defer_cancel(b->timer);
    manager_cancel(b->ask);
    app_link_close(b->opening);
    app_link_close(b->app);
    stream_close(b->stream);
    message_parser_free(b->request);
    message_parser_free(b->answer);
    strbuf_done(&b->again);
    pump_done(&b->pump);
    free(b);
    connections_leave(p, share, user);
}

void browsers_cut(struct proxy *p, const struct port *port)
{
    for (struct list *it = p->browsers.next, *next = it->next; it != &p->browsers;
         it = next, next = it->next) {
        struct browser *b = LIST_ENTRY(it, struct browser, link);

        if (!port || b->port == port)
            browser_free(b);
    }
}

static bool browser_is_idle(const struct browser *b)
{
    return !b->is_upgraded && !b->is_ending && !b->turn.has_head && !message_has_begun(b->request);
}

void browsers_drain(struct proxy *p)
{
    LIST_FOREACH(it, &p->browsers) {
        struct browser *b = LIST_ENTRY(it, struct browser, link);

        if (browser_is_idle(b))
            browser_end(b);
    }
}

/* ---- the end ---- */

static void browser_on_lingered(void *data)
{
    struct browser *b = data;

    b->timer = NULL;
    browser_free(b);
}

void browser_wait(struct browser *b, unsigned msec, void (*fn)(void *data))
{
    defer_cancel(b->timer);
    b->is_watched = false;
    b->timer = defer_call(b->proxy->loop, msec, fn, b);
}

static void browser_look_later(struct browser *b);

static void browser_on_look(void *data)
{
    struct browser *b = data;
    uint64_t sent = stream_sent(b->stream);

    b->timer = NULL;
    b->still_msec = sent == b->sent ? b->still_msec + LOOK_MSEC : 0;
    b->sent = sent;
    if (b->still_msec >= WRITE_MSEC || (b->is_ending && stream_queued(b->stream) == 0))
        browser_free(b);
    else
        browser_look_later(b);
}

static void browser_look_later(struct browser *b)
{
    browser_wait(b, LOOK_MSEC, browser_on_look);
    b->is_watched = true;
}

void browser_watch(struct browser *b)
{
    b->sent = stream_sent(b->stream);
    b->still_msec = 0;
    connections_wait_for(b, CLIENT_READS);
    browser_look_later(b);
}

void browser_stop_watch(struct browser *b)
{
    if (!b->is_watched)
        return;
    defer_cancel(AQ_TAKE(b->timer));
    b->is_watched = false;
    connections_wait_for(b, CLIENT_NOTHING);
}

/* The client has some time to read the answer before the connection is closed, as a close with
 * unread input resets it.
 */
void browser_end(struct browser *b)
{
    b->is_ending = true;
    app_drop(b);
    stream_shutdown(b->stream);
    browser_watch(b);
    if (stream_queued(b->stream) == 0)
        connections_wait_for(b, CLIENT_ENDS);
}

/* ---- from one request to the next ---- */

static void browser_on_app_idle(void *data)
{
    struct browser *b = data;

    b->timer = NULL;
    app_drop(b);
    browser_wait(b, IDLE_MSEC, browser_on_lingered);
}

void browser_go_on(struct browser *b)
{
    if (!b->pump.ends[PUMP_KERNEL].is_full && !b->is_flushing)
        stream_resume(b->stream);
}

static void browser_begin(struct browser *b)
{
    message_reset(b->request);
    if (b->answer)
        message_reset(b->answer);
    strbuf_done(&b->again);
    connections_wait_for(b, CLIENT_ASKS_AGAIN);
    b->turn = (struct browser_turn){ .is_kept = false };
    if (app_is_idle(b))
        browser_wait(b, APP_MSEC, browser_on_app_idle);
    else
        browser_wait(b, b->has_right ? IDLE_MSEC : HEAD_MSEC, browser_on_lingered);
    browser_go_on(b);
}

void browser_settle(struct browser *b)
{
    if (b->is_ending || !b->turn.is_whole || !b->turn.is_read)
        return;
    if (!b->turn.is_kept || b->proxy->is_draining) {
        browser_end(b);
    } else if (stream_queued(b->stream)) {
        b->is_flushing = true;
        stream_pause(b->stream);
        browser_watch(b);
    } else {
        browser_begin(b);
    }
}

/* ---- the request ---- */

/* 0 if a cookie of this name lets it in, and b->cookie is that one. Others may come beside it, of
 * the same name and for a wider path, an older time or, set by a page of a neighbour, the parent
 * domain: none of them is a reason to refuse.
 */
static int browser_try_cookies(struct browser *b, const struct message_head *head, const char *name)
{
    size_t tries = 0, len = 0;

    for (size_t i = 0; i < head->header_count; i++) {
        const struct message_header *h = &head->headers[i];
        const char *text = strcasecmp(h->name, "Cookie") == 0 ? cookie_find(h->value, name, &len)
                                                              : NULL;

        for (; text && tries < COOKIE_TRIES_MAX; tries++) {
            if (cookie_open(b->proxy->secret, text, len, clock_realtime_usec(), &b->cookie, NULL)
                    == 0
                && uuid_equals(&b->cookie.session_id, &b->place.session_id)
                && strcmp(b->cookie.app, b->place.app) == 0)
                return 0;
            text = cookie_find(text + len, name, &len);
        }
    }
    return -EACCES;
}

/* Cookies of the name with __Host- come first, as those of the other may have been set by a
 * neighbour, in any number.
 */
static bool browser_has_right(struct browser *b, const struct message_head *head)
{
    uint16_t port = b->port ? b->port->number : 0;
    char name[COOKIE_NAME_MAX];

    b->has_right = browser_try_cookies(b, head, cookie_name(port, true, name)) == 0
                   || browser_try_cookies(b, head, cookie_name(port, false, name)) == 0;
    return b->has_right;
}

/* Does a page of another origin ask? Of a port, the proxy's own address is another one, too. */
static bool browser_is_foreign(const struct browser *b, const struct message_head *head)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf own = STRBUF_INIT;

    if (b->port)
        port_write_url(b->port, &own);
    else
        strbuf_adds(&own, b->proxy->settings->common.public_url);
    return head_is_foreign(head, own.data);
}

static void browser_add_slash(struct browser *b)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf header = STRBUF_INIT;

    strbuf_adds(&header, "Location: ");
    place_write_path(&b->place, &header);
    strbuf_adds(&header, "/\r\n");
    browser_reply(b, 301, header.data, NULL, "");
}

/* 1 if it is for an app, 0 if for the proxy itself, -EINVAL. */
static int browser_find_place(struct browser *b, const struct message_head *head,
                              struct aq_error *err)
{
    int r;

    if (b->port) {
        place_of_port(&b->port->of, head->target, &b->place);
        return 1;
    }
    r = place_parse(head->target, message_get_header(head, "Host"), b->proxy->settings->domain,
                    &b->place, err);
    return r == 1 && b->place.is_host && !b->place.service[0] && control_is_setup(head->target) ? 0
                                                                                                : r;
}

static void browser_route(struct browser *b)
{
    const struct message_head *head = message_get_head(b->request);
    const char *accept = message_get_header(head, "Accept");
    struct aq_error err = { 0 };
    int r = browser_find_place(b, head, &err);

    b->turn.is_page = head->method == METHOD_GET && accept && strstr(accept, "text/html");
    b->turn.is_kept = head->keep_alive && !head->is_http10 && head->method != METHOD_OTHER;
    if (r < 0)
        browser_refuse(b, 404, err.text);
    else if (r == 0)
        control_serve(b, head);
    else if (head->method == METHOD_OTHER)
        browser_refuse(b, 501, "this method is not passed on");
    else if (b->place.service[0])
        call_begin(b, head);
    else if (!b->place.rest)
        browser_add_slash(b);
    else if (!browser_has_right(b, head))
        browser_refuse(b, 401,
                       "This browser is not logged in to the app, or its login has expired. Open "
                       "the app from the console, or run 'aliquot app SESSION APP'.");
    else if (browser_is_foreign(b, head))
        browser_refuse(b, 403, "a page of another server asks for this");
    else if (connections_take_user(b->proxy, b->cookie.access_key, &b->user, &err) < 0)
        browser_fail(b, &err);
    else
        app_ask(b, head);
}

/* How many bytes were used, or -errno. *ret_more: feed again, though there be no more bytes. */
static ssize_t browser_feed(struct browser *b, const char *bytes, size_t len, bool *ret_more,
                            struct aq_error *err)
{
    bool had_begun = message_has_begun(b->request);
    struct message_piece piece;
    ssize_t used = message_feed(b->request, bytes, len, &piece, err);
    bool is_body = b->turn.has_head;
    int r = 0;

    if (used < 0)
        return used;
    if (!had_begun && used) {
        connections_wait_for(b, CLIENT_FINISHES_HEAD);
        browser_wait(b, HEAD_MSEC, browser_on_lingered);
    }
    if (piece.event == MESSAGE_HEAD) {
        b->turn.has_head = true;
        connections_wait_for(b, CLIENT_NOTHING);
        browser_route(b);
    }
    b->turn.is_read = piece.event == MESSAGE_END;
    *ret_more = piece.event != MESSAGE_MORE && !b->turn.is_read;
    if (is_body && b->call)
        r = call_give(b->call, bytes, (size_t)used, &piece);
    else if (is_body && used)
        r = app_give(b, bytes, (size_t)used);
    return r < 0 ? r : used;
}

static void browser_on_bad(struct browser *b, const struct aq_error *err)
{
    b->turn.is_kept = false;
    if (b->turn.is_answered)
        browser_end(b);
    else if (err->text[0])
        browser_refuse(b, 400, err->text);
    else
        browser_refuse(b, 502, "the app's connection is lost");
}

static void browser_on_read(void *data, const char *bytes, size_t len)
{
    struct browser *b = data;
    struct aq_error err = { 0 };
    bool is_more = true;

    if (b->is_upgraded) {
        if (!b->is_ending && app_give(b, bytes, len) < 0)
            browser_free(b);
        return;
    }
    while (is_more && !b->is_ending && !b->turn.is_read) {
        ssize_t used = browser_feed(b, bytes, len, &is_more, &err);

        if (used < 0) {
            browser_on_bad(b, &err);
            return;
        }
        bytes += used;
        len -= (size_t)used;
        browser_settle(b);
        is_more |= len > 0;
    }
    if (b->call && call_flush(b->call) < 0) {
        browser_on_bad(b, &err);
        return;
    }
    if (b->is_ending || !len)
        return;
    stream_push_back(b->stream, bytes, len);
    stream_pause(b->stream);
}

static void browser_on_end(void *data, const struct aq_error *err)
{
    (void)err;
    browser_free(data);
}

static void browser_on_drain(void *data)
{
    struct browser *b = data;

    pump_drained(&b->pump, PUMP_CLIENT);
    if (!b->is_ending)
        browser_stop_watch(b);
    if (!b->is_flushing)
        return;
    b->is_flushing = false;
    browser_settle(b);
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

void browser_accept(struct proxy *p, struct listener *listener, struct port *port)
{
    struct browser *b = aq_alloc(sizeof(*b));
    struct aq_error err = { 0 };

    if (listener_accept(listener, &browser_stream_ops, b, &b->stream, &err) < 0) {
        free(b);
        return;
    }
    b->proxy = p;
    (void)message_parser_new(true, &browser_limits, &b->request, NULL);
    pump_init(&b->pump);
    strbuf_init(&b->again);
    app_drop(b);
    list_add(&p->browsers, &b->link);
    list_init(&b->waiting_link);
    b->port = port;
    if (port)
        port->connection_count++;
    if (!connections_enter(p, b->stream, false, &b->share)) {
        browser_free(b);
        return;
    }
    connections_wait_for(b, CLIENT_SPEAKS);
    browser_wait(b, HEAD_MSEC, browser_on_lingered);
}
