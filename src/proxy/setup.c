/* SPDX-License-Identifier: Apache-2.0 */
/* setup.c - tokens become a cookie, or a port of the proxy
 *
 * A console has its page fetch the address, and then opens it, or asks twice. The token is good
 * once, so the second time leads to where the first one led, and the cookie decides.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "proxy/control.h"

struct setup {
    const char *token;
    const char *redirect; /* of the app, where the browser goes; "/" unless asked for */
    bool is_tcp, wants_port;
    uint16_t port;      /* that it would like; 0 = any */
    struct place place; /* where it leads, if 'is_placed' */
    bool is_placed;
};

static int setup_read(const struct control_query *query, struct setup *ret, struct aq_error *err)
{
    const char *protocol = url_query_get(&query->pairs, "protocol");
    const char *port = url_query_get(&query->pairs, "port");
    const char *redirect = url_query_get(&query->pairs, "redirect");
    long number = port ? strtol(port, NULL, 10) : 0;

    *ret = (struct setup){ .token = url_query_get(&query->pairs, "token"),
                           .redirect = redirect && *redirect ? redirect : "/",
                           .wants_port = port && *port,
                           .port = number > 0 && number <= UINT16_MAX ? (uint16_t)number : 0 };
    ret->is_tcp = protocol
                  && (strcmp(protocol, "tcp") == 0 || strcmp(protocol, "vnc") == 0
                      || strcmp(protocol, "rdp") == 0);
    ret->is_placed = control_read_place(query, &ret->place, NULL) == 0;
    if (!ret->token || !*ret->token)
        return aq_fail(err, EINVAL, "token: missing");
    if (ret->redirect[0] != '/' || ret->redirect[1] == '/' || ret->redirect[1] == '\\')
        return aq_fail(err, EINVAL, "redirect: must be a path of the app");
    return 0;
}

/* What may not stand in a header or a URL is escaped; the rest is as it was given. */
static void setup_add_path(struct strbuf *out, const char *path)
{
    for (; *path; path++) {
        if (*path <= ' ' || *path >= 0x7f || strchr("\"<>\\^`{|}", *path))
            strbuf_addf(out, "%%%02X", (unsigned char)*path);
        else
            strbuf_addc(out, *path);
    }
}

/* ---- where it leads ---- */

/* As Backend.AI's console reads it: the address is the value of "gateway". */
static void setup_reply_tcp(struct browser *b, const struct port *port)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT, url = STRBUF_INIT, gate = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    port_write_url(port, &gate);
    if (b->turn.is_page) {
        strbuf_addf(&out, "%s of the session is at %s for this address", port->of.app, gate.data);
        browser_show(b, 200, "", out.data);
        return;
    }
    strbuf_adds(&url, "http://localhost/start?directTCP=true&proto=tcp&gateway=");
    url_encode(&url, gate.data);
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "redirect", url.data);
    jsonw_member_str(&w, "redirectURI", url.data);
    jsonw_object_end(&w);
    control_reply_json(b, 200, &out);
}

/* 'set_cookie' is a line, or "". */
static void setup_reply_page(struct browser *b, const struct port *port, const char *redirect,
                             const char *set_cookie)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT;

    strbuf_adds(&headers, "Location: ");
    if (port)
        port_write_url(port, &headers);
    else
        place_write_path(&b->place, &headers);
    setup_add_path(&headers, redirect);
    strbuf_addf(&headers, "\r\n%s", set_cookie);
    browser_reply(b, 302, headers.data, NULL, "");
}

/* ---- letting in ---- */

static void setup_let_in(struct browser *b, const struct setup *setup, const struct cookie *cookie,
                         const struct port *port)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;
    const struct settings *s = b->proxy->settings;
    bool is_secure = port ? b->proxy->front->tls != NULL : front_settings_is_https(&s->common);
    bool is_host = is_secure && (port || b->place.is_host);
    char text[COOKIE_TEXT_MAX], name[COOKIE_NAME_MAX];

    strbuf_addf(&line,
                "Set-Cookie: %s=%s; Path=", cookie_name(port ? port->number : 0, is_host, name),
                cookie_seal(b->proxy->secret, cookie, text));
    if (!port)
        place_write_path(&b->place, &line);
    strbuf_addf(&line, "/; Max-Age=%lld; HttpOnly; SameSite=Lax%s\r\n",
                (long long)(s->cookie_usec / USEC_PER_SEC), is_secure ? "; Secure" : "");
    setup_reply_page(b, port, setup->redirect, line.data);
}

/* An app at a path shares its origin with others, and its absolute links lead out of it. Ports
 * speak no https for which a server in front stands.
 */
static bool setup_prefers_port(const struct proxy *p)
{
    const struct settings *s = p->settings;

    return s->port_max && !s->domain
           && front_settings_is_https(&s->common) == (p->front->tls != NULL);
}

/* *ret NULL = it has a path, or a host. An app that would have a port and gets none is refused: at
 * a path it would share an origin with apps of others.
 */
static int setup_find_port(struct proxy *p, const struct setup *setup, const struct cookie *of,
                           struct port **ret, struct aq_error *err)
{
    bool is_asked = setup->is_tcp || (setup->wants_port && p->settings->port_max);

    *ret = NULL;
    return is_asked || setup_prefers_port(p)
               ? ports_take(p, of, setup->is_tcp, setup->port, ret, err)
               : 0;
}

static void setup_take(struct browser *b, const struct setup *setup,
                       const struct msg_app_redeemed *got)
{
    struct cookie cookie = { .session_id = got->session_id,
                             .expires_usec = clock_realtime_usec()
                                             + b->proxy->settings->cookie_usec };
    struct port *port;
    struct aq_error err = { 0 };

    (void)snprintf(cookie.app, sizeof(cookie.app), "%s", got->app);
    (void)snprintf(cookie.access_key, sizeof(cookie.access_key), "%s", got->access_key);
    if (b->place.is_host
        && (!uuid_equals(&b->place.session_id, &cookie.session_id)
            || strcmp(b->place.app, cookie.app) != 0)) {
        browser_refuse(b, 403, "the token is for another app");
        return;
    }
    b->place.session_id = cookie.session_id;
    (void)snprintf(b->place.app, sizeof(b->place.app), "%s", cookie.app);
    if (setup_find_port(b->proxy, setup, &cookie, &port, &err) < 0) {
        browser_fail(b, &err);
        return;
    }
    if (port)
        port_admit(port, stream_get_address(b->stream), setup->token);
    if (setup->is_tcp)
        setup_reply_tcp(b, port);
    else
        setup_let_in(b, setup, &cookie, port);
}

/* The token is spent, maybe by this browser a moment ago. */
static void setup_show_place(struct browser *b, const struct setup *setup)
{
    b->place.session_id = setup->place.session_id;
    memcpy(b->place.app, setup->place.app, sizeof(b->place.app));
    setup_reply_page(b, NULL, setup->redirect, "");
}

static void setup_on_redeemed(void *data, const struct msg_app_redeemed *got,
                              const struct aq_error *err)
{
    struct browser *b = data;
    struct control_query query;
    struct setup setup;
    struct aq_error why = { 0 };

    b->ask = NULL;
    if (control_read_query(message_get_head(b->request)->target, &query, &why) < 0
        || setup_read(&query, &setup, &why) < 0)
        browser_fail(b, &why);
    else if (got)
        setup_take(b, &setup, got);
    else if (err->code == EACCES && setup.is_placed && !setup.is_tcp && b->turn.is_page)
        setup_show_place(b, &setup);
    else
        browser_fail(b, err);
    arena_done(&query.arena);
}

/* A browser drops the cookie of such an answer; the token stays good for the page to come. */
static bool setup_loses_cookie(const struct message_head *head)
{
    const char *site = message_get_header(head, "Sec-Fetch-Site");
    const char *mode = message_get_header(head, "Sec-Fetch-Mode");

    return site && mode && strcmp(site, "cross-site") == 0 && strcmp(mode, "navigate") != 0;
}

void setup_serve(struct browser *b, const struct control_query *query)
{
    const struct port *port;
    struct setup setup;
    struct aq_error err = { 0 };

    if (setup_read(query, &setup, &err) < 0) {
        browser_fail(b, &err);
        return;
    }
    port = ports_find(b->proxy, setup.token, stream_get_address(b->stream));
    if (port && port->is_tcp)
        setup_reply_tcp(b, port);
    else if (port)
        setup_reply_page(b, port, setup.redirect, "");
    else if (!setup.is_tcp && setup_loses_cookie(message_get_head(b->request)))
        browser_reply(b, 204, "", NULL, "");
    else if (manager_redeem(&b->proxy->manager, setup.token, setup_on_redeemed, b, &b->ask, &err)
             < 0)
        browser_fail(b, &err);
}
