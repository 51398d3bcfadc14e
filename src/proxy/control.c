/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - what the proxy answers itself: health, and the way of a browser into an app
 *
 * A token from the manager goes with the user's choice to /v2/proxy/auth (Backend.AI's clients ask
 * for the address by .../add first), from there to /_aliquot/setup, where it becomes a cookie.
 */
#include "proxy/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonw.h"
#include "front/server.h"

#define SETUP "/_aliquot/setup"
#define AUTH "/v2/proxy/auth"

int control_read_query(const char *target, struct control_query *ret, struct aq_error *err)
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
static void control_add_origin(const struct browser *b, struct strbuf *headers)
{
    const char *origin = message_get_header(message_get_head(b->request), "Origin");

    if (origin)
        strbuf_addf(headers,
                    "Access-Control-Allow-Origin: %s\r\nAccess-Control-Allow-Credentials: true\r\n"
                    "Access-Control-Allow-Headers: Content-Type, X-BackendAI-Version\r\n"
                    "Access-Control-Allow-Methods: GET, PUT, POST\r\nVary: Origin\r\n",
                    origin);
}

void control_reply_json(struct browser *b, int status, const struct strbuf *json)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT;

    control_add_origin(b, &headers);
    browser_reply(b, status, headers.data, "application/json", json->data);
}

/* ---- Backend.AI's way there ---- */

static int control_parse_place(const char *session, const char *app, struct place *ret,
                               struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

    if (!session || !app)
        return aq_fail(err, EINVAL, "session_id and app must be given");
    strbuf_addf(&path, "/app/%s/%s", session, app);
    return place_parse(path.data, NULL, NULL, ret, err) == 1 ? 0 : -EINVAL;
}

int control_read_place(const struct control_query *query, struct place *ret, struct aq_error *err)
{
    return control_parse_place(url_query_get(&query->pairs, "session_id"),
                               url_query_get(&query->pairs, "app"), ret, err);
}

/* The token in a URL, where it becomes a cookie, or first its choice is asked for. */
static void control_write_url(const struct browser *b, const struct place *place, const char *token,
                              bool is_setup, const struct control_query *query, struct strbuf *out)
{
    static const char *const kept[] = { "protocol", "port", "redirect" };
    const struct settings *s = b->proxy->settings;
    char id[UUID_TEXT_MAX];

    if (is_setup && s->domain && !url_query_get(&query->pairs, "port"))
        place_write_url(place, s->common.public_url, s->domain, out);
    else
        strbuf_adds(out, s->common.public_url);
    strbuf_adds(out, is_setup ? SETUP "?token=" : AUTH "?token=");
    url_encode(out, token);
    strbuf_addf(out, "&session_id=%s&app=%s", uuid_format(&place->session_id, id), place->app);
    for (size_t i = 0; i < AQ_COUNT(kept); i++) {
        const char *value = url_query_get(&query->pairs, kept[i]);

        if (!value || !*value)
            continue;
        strbuf_addf(out, "&%s=", kept[i]);
        url_encode(out, value);
    }
}

static void control_auth(struct browser *b, const struct control_query *query)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT, url = STRBUF_INIT;
    const char *token = url_query_get(&query->pairs, "token");
    struct jsonw w = jsonw_make(&out);
    struct aq_error err = { 0 };
    struct place place;

    if (!token || !*token) {
        browser_refuse(b, 400, "token: missing");
        return;
    }
    if (control_read_place(query, &place, &err) < 0) {
        browser_refuse(b, 400, err.text);
        return;
    }
    control_write_url(b, &place, token, true, query, &url);
    if (b->turn.is_page) {
        strbuf_addf(&out, "Location: %s\r\n", url.data);
        browser_reply(b, 302, out.data, NULL, "");
        return;
    }
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "redirect_url", url.data);
    jsonw_member_bool(&w, "reuse", true); /* opened at once: a page could not try it before */
    jsonw_object_end(&w);
    control_reply_json(b, 200, &out);
}

static void control_add(struct browser *b, const char *token, const char *session,
                        const struct control_query *query)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT, url = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct aq_error err = { 0 };
    struct place place;

    if (control_parse_place(session, url_query_get(&query->pairs, "app"), &place, &err) < 0) {
        browser_refuse(b, 400, err.text);
        return;
    }
    control_write_url(b, &place, token, false, query, &url);
    jsonw_object_begin(&w);
    jsonw_member_int(&w, "code", 200);
    jsonw_member_str(&w, "url", url.data);
    jsonw_member_str(&w, "proxy", b->proxy->settings->common.public_url);
    jsonw_object_end(&w);
    control_reply_json(b, 200, &out);
}

/* [/v2]/proxy/TOKEN/SESSION, of which nothing is kept, its add and delete. False if it is none of
 * these.
 */
static bool control_serve_proxy(struct browser *b, const char *target,
                                const struct control_query *query)
{
    const char *at = strncmp(target, "/v2/", 4) == 0 ? target + 3 : target;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    char token[160], session[UUID_TEXT_MAX], verb[8];
    int count = sscanf(at, "/proxy/%159[^/?]/%36[^/?]/%7[^/?]", token, session, verb);

    if (count < 2)
        return false;
    if (count == 2) {
        strbuf_adds(&out, "{\"code\":404}");
        control_reply_json(b, 200, &out);
    } else if (strcmp(verb, "add") == 0) {
        control_add(b, token, session, query);
    } else if (strcmp(verb, "delete") == 0) {
        strbuf_adds(&out, "{\"code\":200}"); /* what the app needs stays for its other users */
        control_reply_json(b, 200, &out);
    } else {
        return false;
    }
    return true;
}

void control_serve(struct browser *b, const struct message_head *head)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT, health = STRBUF_INIT;
    struct control_query query;
    struct aq_error err = { 0 };
    int status;

    if (control_read_query(head->target, &query, &err) < 0) {
        browser_refuse(b, 400, err.text);
    } else if (head->method == METHOD_OPTIONS) {
        control_add_origin(b, &headers);
        browser_reply(b, 204, headers.data, NULL, "");
    } else if (control_is(head->target, "/health")) {
        status = front_write_health(b->proxy->front, &health);
        control_reply_json(b, status, &health);
    } else if (control_is(head->target, "/conf") || control_is(head->target, "/v2/conf")) {
        browser_refuse(b, 501, "the manager makes the tokens: POST /session/NAME/start-service");
    } else if (head->method != METHOD_GET) {
        browser_refuse(b, 405, "only GET is answered here");
    } else if (control_is_setup(head->target)) {
        setup_serve(b, &query);
    } else if (control_is(head->target, AUTH)) {
        control_auth(b, &query);
    } else if (!control_serve_proxy(b, head->target, &query)) {
        browser_refuse(b, 404, "apps are at /app/SESSION/APP/");
    }
    arena_done(&query.arena);
}
