/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - what the proxy answers itself: health, and the way of a browser into an app
 *
 * A token from the manager goes with the user's choice to /v2/proxy/auth (Backend.AI's clients ask
 * for the address by .../add first), from there to /_aliquot/setup, where it becomes a cookie.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "http/url.h"
#include "proxy/browser.h"

#define SETUP "/_aliquot/setup"
#define AUTH "/v2/proxy/auth"
#define SEGMENTS_MAX 6

struct control_query {
    struct arena arena;
    struct url_query pairs;
};

static int control_read_query(const char *target, struct control_query *ret, struct aq_error *err)
{
    const char *query = target + strcspn(target, "?");

    ret->arena = (struct arena)ARENA_INIT;
    if (*query)
        query++;
    return url_query_parse(&ret->arena, query, strlen(query), &ret->pairs, err);
}

static bool control_is(const char *target, const char *path)
{
    size_t len = strlen(path);

    return strncmp(target, path, len) == 0 && (target[len] == '\0' || target[len] == '?');
}

bool control_is_setup(const char *target)
{
    return control_is(target, SETUP);
}

/* A page of the console asks from another origin; nothing of ours depends on a cookie here. */
static void control_add_origin(const struct message_head *head, struct strbuf *headers)
{
    const char *origin = message_get_header(head, "Origin");

    if (origin)
        strbuf_addf(headers,
                    "Access-Control-Allow-Origin: %s\r\nAccess-Control-Allow-Credentials: true\r\n"
                    "Access-Control-Allow-Headers: Content-Type, X-BackendAI-Version\r\n"
                    "Access-Control-Allow-Methods: GET, PUT, POST\r\nVary: Origin\r\n",
                    origin);
}

static void control_reply_json(struct browser *b, const struct message_head *head, int status,
                               const struct strbuf *json)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT;

    control_add_origin(head, &headers);
    browser_reply(b, status, headers.data, "application/json", json->data);
}

/* ---- /health ---- */

static void control_health(struct browser *b, const struct message_head *head)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    bool is_connected = manager_is_connected(b->proxy->manager);
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "status", is_connected ? "healthy" : "no manager");
    jsonw_member_str(&w, "version", ALIQUOT_VERSION);
    jsonw_member_str(&w, "component", "proxy");
    jsonw_object_end(&w);
    control_reply_json(b, head, is_connected ? 200 : 503, &out);
}

/* ---- setup ---- */

static void control_on_redeemed(void *data, const struct msg_app_redeemed *got,
                                const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT;
    struct browser *b = data;
    const struct settings *s = b->proxy->settings;
    struct cookie cookie = { .expires_usec = clock_realtime_usec() + s->cookie_usec };
    char text[COOKIE_TEXT_MAX];

    b->ask = NULL;
    if (err) {
        browser_fail(b, err);
        return;
    }
    if (b->place.is_host
        && (!uuid_equals(&b->place.session_id, &got->session_id)
            || strcmp(b->place.app, got->app) != 0)) {
        browser_refuse(b, 403, "the token is for another app");
        return;
    }
    b->place.session_id = cookie.session_id = got->session_id;
    (void)snprintf(cookie.app, sizeof(cookie.app), "%s", got->app);
    (void)snprintf(cookie.access_key, sizeof(cookie.access_key), "%s", got->access_key);
    (void)snprintf(b->place.app, sizeof(b->place.app), "%s", got->app);
    strbuf_adds(&headers, "Location: ");
    place_write_path(&b->place, &headers);
    strbuf_addf(&headers, "/\r\nSet-Cookie: " COOKIE_NAME "=%s; Path=",
                cookie_seal(b->proxy->secret, &cookie, text));
    place_write_path(&b->place, &headers);
    strbuf_addf(&headers, "/; Max-Age=%lld; HttpOnly; SameSite=Lax%s\r\n",
                (long long)(s->cookie_usec / USEC_PER_SEC),
                strncmp(s->public_url, "https:", 6) == 0 ? "; Secure" : "");
    browser_reply(b, 302, headers.data, NULL, "");
}

static void control_setup(struct browser *b, const struct control_query *query)
{
    const char *token = url_query_get(&query->pairs, "token");
    struct aq_error err = { 0 };

    if (!token || !*token)
        browser_refuse(b, 400, "token: missing");
    else if (manager_redeem(b->proxy->manager, token, control_on_redeemed, b, &b->ask, &err) < 0)
        browser_fail(b, &err);
}

/* ---- Backend.AI's way there ---- */

static int control_read_place(const char *session, const char *app, struct place *ret,
                              struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

    if (!session || !app)
        return aq_fail(err, EINVAL, "session_id and app must be given");
    strbuf_addf(&path, "/app/%s/%s", session, app);
    return place_parse(path.data, NULL, NULL, ret, err) == 1 ? 0 : -EINVAL;
}

/* The token in a URL, where it becomes a cookie, or first its choice is asked for. */
static void control_write_url(const struct browser *b, const struct place *place, const char *token,
                              bool is_setup, struct strbuf *out)
{
    const struct settings *s = b->proxy->settings;
    char id[UUID_TEXT_MAX];

    if (is_setup && s->domain)
        place_write_url(place, s->public_url, s->domain, out);
    else
        strbuf_adds(out, s->public_url);
    strbuf_adds(out, is_setup ? SETUP "?token=" : AUTH "?token=");
    url_encode(out, token);
    if (!is_setup)
        strbuf_addf(out, "&session_id=%s&app=%s", uuid_format(&place->session_id, id), place->app);
}

static void control_auth(struct browser *b, const struct message_head *head,
                         const struct control_query *query)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT, url = STRBUF_INIT;
    const char *token = url_query_get(&query->pairs, "token");
    const char *accept = message_get_header(head, "Accept");
    struct jsonw w = jsonw_make(&out);
    struct aq_error err = { 0 };
    struct place place;

    if (!token || !*token) {
        browser_refuse(b, 400, "token: missing");
        return;
    }
    if (control_read_place(url_query_get(&query->pairs, "session_id"),
                           url_query_get(&query->pairs, "app"), &place, &err)
        < 0) {
        browser_refuse(b, 400, err.text);
        return;
    }
    control_write_url(b, &place, token, true, &url);
    if (accept && strstr(accept, "text/html")) {
        strbuf_addf(&out, "Location: %s\r\n", url.data);
        browser_reply(b, 302, out.data, NULL, "");
        return;
    }
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "redirect_url", url.data);
    jsonw_member_bool(&w, "reuse", false);
    jsonw_object_end(&w);
    control_reply_json(b, head, 200, &out);
}

static void control_add(struct browser *b, const struct message_head *head, const char *token,
                        const char *session, const struct control_query *query)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT, url = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct aq_error err = { 0 };
    struct place place;

    if (control_read_place(session, url_query_get(&query->pairs, "app"), &place, &err) < 0) {
        browser_refuse(b, 400, err.text);
        return;
    }
    control_write_url(b, &place, token, false, &url);
    jsonw_object_begin(&w);
    jsonw_member_int(&w, "code", 200);
    jsonw_member_str(&w, "url", url.data);
    jsonw_member_str(&w, "proxy", b->proxy->settings->public_url);
    jsonw_object_end(&w);
    control_reply_json(b, head, 200, &out);
}

/* [/v2]/proxy/TOKEN/SESSION/add and delete. False if it is none of these. */
static bool control_serve_proxy(struct browser *b, const struct message_head *head,
                                const struct control_query *query)
{
    const char *at = strncmp(head->target, "/v2/", 4) == 0 ? head->target + 3 : head->target;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    char token[160], session[UUID_TEXT_MAX], verb[8];

    if (sscanf(at, "/proxy/%159[^/?]/%36[^/?]/%7[^/?]", token, session, verb) != 3)
        return false;
    if (strcmp(verb, "add") == 0) {
        control_add(b, head, token, session, query);
    } else if (strcmp(verb, "delete") == 0) {
        strbuf_adds(&out, "{\"code\":200}"); /* there is nothing that is kept */
        control_reply_json(b, head, 200, &out);
    } else {
        return false;
    }
    return true;
}

void control_serve(struct browser *b, const struct message_head *head)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT;
    struct control_query query;
    struct aq_error err = { 0 };

    if (control_read_query(head->target, &query, &err) < 0) {
        browser_refuse(b, 400, err.text);
    } else if (head->method == METHOD_OPTIONS) {
        control_add_origin(head, &headers);
        browser_reply(b, 204, headers.data, NULL, "");
    } else if (control_is(head->target, "/health")) {
        control_health(b, head);
    } else if (control_is(head->target, "/conf") || control_is(head->target, "/v2/conf")) {
        browser_refuse(b, 501, "the manager makes the tokens: POST /session/NAME/start-service");
    } else if (head->method != METHOD_GET) {
        browser_refuse(b, 405, "only GET is answered here");
    } else if (control_is_setup(head->target)) {
        control_setup(b, &query);
    } else if (control_is(head->target, AUTH)) {
        control_auth(b, head, &query);
    } else if (!control_serve_proxy(b, head, &query)) {
        browser_refuse(b, 404, "apps are at /app/SESSION/APP/");
    }
    arena_done(&query.arena);
}
