/* SPDX-License-Identifier: Apache-2.0 */
/* relay.c - /func: requests of who has logged in, signed and passed on to the manager */
#include "web/relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "http/problem.h"
#include "http/sign.h"
#include "http/version.h"
#include "http/websocket.h"
#include "web/payload.h"

#define PREFIX "/func"
#define WHOLE_MAX (512u << 10) /* of a body that is kept until the answer */
#define ANSWER_MSEC 500        /* for the answer of what ended its login, once that is known */

static void relay_free(struct relay *relay)
{
    list_remove(&relay->link);
    login_leave(&relay->use);
    exchange_cancel(AQ_TAKE(relay->exchange));
    defer_cancel(relay->timer);
    pump_done(&relay->pump);
    strbuf_done(&relay->body);
    free(relay);
}

/* Of no use any more to anybody. */
static void relay_abort(struct relay *relay)
{
    struct request *req = relay->req;

    relay_free(relay);
    request_abort(req);
}

static void relay_refuse(struct relay *relay, const struct aq_error *err)
{
    struct request *req = relay->req;

    relay->web->counts.refused++;
    if (err->code == ENOTCONN || err->code == EAGAIN)
        request_add_header_int(req, "Retry-After", 1);
    request_set_gone(req, NULL, NULL);
    relay_free(relay);
    request_fail(req, err);
}

/* ---- heads ---- */

static bool relay_is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcasecmp(name, *names) == 0)
            return true;
    return false;
}

/* What a manager may be told by a browser: all else is of this connection, or ours to say. */
static bool relay_is_passed_on(const char *name, bool is_upgrade)
{
    static const char *const names[] = { "Accept",
                                         "Accept-Encoding",
                                         "Accept-Language",
                                         "Idempotency-Key",
                                         "If-Match",
                                         "If-Modified-Since",
                                         "If-None-Match",
                                         "If-Range",
                                         "If-Unmodified-Since",
                                         "Last-Event-ID",
                                         "Range",
                                         "User-Agent",
                                         "X-Request-ID",
                                         NULL };

    return relay_is_one_of(name, names) || strncasecmp(name, "Tus-", 4) == 0
           || strncasecmp(name, "Upload-", 7) == 0
           || (is_upgrade && strncasecmp(name, "Sec-WebSocket-", 14) == 0);
}

/* Each date of a keypair differs: equal requests of one date would be one. */
static int64_t relay_next_date(struct web *web)
{
    web->signed_usec = AQ_MAX(clock_realtime_usec(), web->signed_usec + 1);
    return web->signed_usec;
}

static int relay_sign(struct web *web, const struct login *login, const struct sign_input *input,
                      struct strbuf *out, struct aq_error *err)
{
    if (login)
        return sign_write_headers(input, login->access_key, login->secret_key, relay_next_date(web),
                                  sign_tag(), out, err);
    strbuf_addf(out, "X-BackendAI-Version: %s\r\n", input->version);
    return 0;
}

int relay_write_headers(struct web *web, const struct request *req, const char *api,
                        enum method method, const char *target, const char *content_type,
                        const struct login *login, struct strbuf *out, struct aq_error *err)
{
    const struct message_head *head = request_get_head(req);
    const char *version = request_get_header(req, "X-BackendAI-Version");
    const char *host = request_get_header(req, "Host");
    struct sign_input input = { .method = method_name(method),
                                .target = target,
                                .content_type = content_type,
                                .version = version ? version : API_VERSION_ANNOUNCED };
    char address[CLIENT_ADDRESS_MAX];
    struct url url;
    int r = url_parse(api, &url, err);

    if (r < 0)
        return r;
    input.host = url.authority;
    for (size_t i = 0; i < head->header_count; i++)
        if (relay_is_passed_on(head->headers[i].name, head->is_upgrade))
            strbuf_addf(out, "%s: %s\r\n", head->headers[i].name, head->headers[i].value);
    if (content_type)
        strbuf_addf(out, "Content-Type: %s\r\n", content_type);
    client_address_find(request_get_address(req), head, &web->proxies, address);
    strbuf_addf(out, "X-Forwarded-For: %s\r\nX-Forwarded-Proto: %s\r\n", address,
                page_is_https(web) ? "https" : "http");
    if (host)
        strbuf_addf(out, "X-Forwarded-Host: %s\r\n", host);
    if (head->is_upgrade)
        strbuf_adds(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
    return relay_sign(web, login, &input, out, err);
}

/* What is ours to say to browsers, or of the manager's connection alone. */
static bool relay_is_kept_back(const struct message_head *head, const char *name)
{
    static const char *const names[] = { "Connection",
                                         "Content-Length",
                                         "Content-Security-Policy",
                                         "Content-Type",
                                         "Cross-Origin-Resource-Policy",
                                         "Date",
                                         "Keep-Alive",
                                         "Proxy-Authenticate",
                                         "Referrer-Policy",
                                         "Server",
                                         "Set-Cookie",
                                         "Strict-Transport-Security",
                                         "TE",
                                         "Trailer",
                                         "Transfer-Encoding",
                                         "Upgrade",
                                         WEB_ENDED_HEADER,
                                         "X-BackendAI-SessionID",
                                         "X-Content-Type-Options",
                                         NULL };

    return relay_is_one_of(name, names) || strncasecmp(name, "Access-Control-", 15) == 0
           || message_has_token(head, "Connection", name);
}

/* What comes from a session is never a page of ours. */
static void relay_add_headers(struct relay *relay, const struct message_head *head)
{
    struct request *req = relay->req;

    for (size_t i = 0; i < head->header_count; i++)
        if (!relay_is_kept_back(head, head->headers[i].name))
            request_add_header(req, head->headers[i].name, head->headers[i].value);
    if (head->status == 101)
        return;
    request_add_header(req, "Content-Security-Policy",
                       "default-src 'none'; sandbox; frame-ancestors 'none'");
    if (!message_get_header(head, "Cache-Control"))
        request_add_header(req, "Cache-Control", "no-store");
}

/* ---- the answer ---- */

static void relay_on_drain(struct request *req, void *data)
{
    struct relay *relay = data;

    (void)req;
    pump_drained(&relay->pump, PUMP_CLIENT);
}

static int relay_fail_unknown(struct aq_error *err)
{
    return aq_fail_kind(err, EACCES, "auth-failed", "Unauthorized access");
}

/* Its login has ended. */
static void relay_refuse_ended(struct relay *relay)
{
    struct aq_error err = { 0 };

    (void)relay_fail_unknown(&err);
    relay_refuse(relay, &err);
}

static void relay_on_late(void *data)
{
    struct relay *relay = data;

    relay->timer = NULL;
    relay_refuse_ended(relay);
}

/* ---- a WebSocket ---- */

static void relay_on_tunnel_bytes(void *data, bool from_client, size_t len)
{
    struct relay *relay = data;

    if (from_client)
        relay->web->counts.bytes_in += len;
    else
        relay->web->counts.bytes_out += len;
}

static void relay_on_tunnel_end(void *data)
{
    relay_free(data);
}

/* The manager has agreed: 'head' is its answer. */
static void relay_begin_tunnel(struct relay *relay, const struct message_head *head)
{
    static const struct websocket_tunnel_ops ops = { .gone_code = WEBSOCKET_GOING_AWAY,
                                                     .gone_reason = "the manager is away",
                                                     .on_bytes = relay_on_tunnel_bytes,
                                                     .on_end = relay_on_tunnel_end };
    static const char *const names[] = { "Sec-WebSocket-Accept", "Sec-WebSocket-Protocol",
                                         "Sec-WebSocket-Extensions" };

    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        const char *value = message_get_header(head, names[i]);

        if (value)
            request_add_header(relay->req, names[i], value);
    }
    relay->tunnel = websocket_tunnel_begin(relay->req, AQ_TAKE(relay->exchange), &ops, relay);
    if (relay->tunnel)
        relay->web->counts.upgrades++;
    else
        relay_abort(relay);
}

/* ---- heads of answers ---- */

static void relay_on_head(struct exchange *ex, const struct message_head *head, void *data)
{
    struct relay *relay = data;
    const char *type = message_get_header(head, "Content-Type");
    bool has_length = message_get_header(head, "Content-Length");

    (void)ex;
    relay->status = head->status;
    relay->ends_login = message_get_header(head, WEB_ENDED_HEADER);
    if (relay->timer && !relay->ends_login) {
        relay_refuse_ended(relay);
        return;
    }
    defer_cancel(AQ_TAKE(relay->timer));
    if (head->status == 401 && relay->use.login)
        relay->use.login->asked_usec = 0; /* its keypair may have changed */
    if (request_is_gone(relay->req))
        return;
    if (head->status == 101) {
        if (request_get_head(relay->req)->is_upgrade)
            relay_begin_tunnel(relay, head);
        return;
    }
    relay_add_headers(relay, head);
    if (head->status == 204 || head->status == 304)
        return; /* it has no body: it is whole at its end */
    relay->is_begun = true;
    if (has_length)
        request_begin_sized(relay->req, head->status, type, head->content_length, relay_on_drain,
                            relay);
    else
        request_begin(relay->req, head->status, type, relay_on_drain, relay);
    (void)pump_open(&relay->pump, PUMP_CLIENT);
}

static void relay_on_answer(struct exchange *ex, const char *bytes, size_t len, void *data)
{
    struct relay *relay = data;

    (void)ex;
    relay->web->counts.bytes_out += len;
    if (relay->is_begun && pump_give(&relay->pump, PUMP_KERNEL, bytes, len) < 0)
        relay_abort(relay);
}

static void relay_send(struct relay *relay);

/* May another manager be asked, after one that has perhaps begun? Requests with a key are done once
 * by all of them together.
 */
static bool relay_may_send_again(const struct relay *relay, bool was_sent)
{
    const struct message_head *head = request_get_head(relay->req);
    bool changes = head->method == METHOD_POST || head->method == METHOD_PATCH;

    return (!relay->has_body || relay->is_whole)
           && (!was_sent || !changes || message_get_header(head, "Idempotency-Key"));
}

/* Another manager is asked next; this one has not answered. */
static void relay_on_failed(struct relay *relay, bool was_sent, const struct aq_error *err)
{
    struct web *web = relay->web;
    struct aq_error away = { 0 };

    web_leave_api(web, relay->api);
    if (relay_may_send_again(relay, was_sent) && !request_is_gone(relay->req)
        && ++relay->tries < web->settings->api.count) {
        relay_send(relay);
        return;
    }
    log_debug("the manager does not answer: %s", err->text);
    (void)aq_fail_kind(&away, EAGAIN, "bad-gateway", "the manager is away; try again soon");
    relay_refuse(relay, &away);
}

static void relay_on_end(struct exchange *ex, const struct aq_error *err, void *data)
{
    struct relay *relay = data;
    struct request *req = relay->req;
    bool is_begun = relay->is_begun;
    int status = relay->status;

    relay->exchange = NULL;
    pump_part(&relay->pump, PUMP_KERNEL);
    if (err->code && !status) {
        relay_on_failed(relay, exchange_is_sent(ex), err);
        return;
    }
    request_set_gone(req, NULL, NULL);
    relay_free(relay);
    if (err->code)
        request_abort(req);
    else if (is_begun)
        request_end(req);
    else
        request_reply_empty(req, status);
}

static void relay_on_written(struct exchange *ex, void *data)
{
    struct relay *relay = data;

    (void)ex;
    pump_drained(&relay->pump, PUMP_KERNEL);
}

/* ---- the request ---- */

static void relay_on_gone(struct request *req, void *data)
{
    (void)req;
    relay_abort(data);
}

static void relay_on_body(struct request *req, const char *bytes, size_t len, int status,
                          void *data)
{
    struct relay *relay = data;

    if (status < 0) {
        relay_abort(relay);
        return;
    }
    relay->web->counts.bytes_in += len;
    if (len) {
        (void)pump_give(&relay->pump, PUMP_CLIENT, bytes, len); /* its end says what is wrong */
        return;
    }
    request_set_gone(req, relay_on_gone, relay);
    pump_finish(&relay->pump, PUMP_CLIENT);
}

/* A body that is not whole is read once there is where it goes to. */
static void relay_send(struct relay *relay)
{
    static const struct exchange_ops ops = { .on_head = relay_on_head,
                                             .on_body = relay_on_answer,
                                             .on_end = relay_on_end,
                                             .on_drain = relay_on_written };
    struct web *web = relay->web;
    const struct message_head *head = request_get_head(relay->req);
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT, url = STRBUF_INIT;
    struct client_request want = { .method = head->method,
                                   .body = relay->body.data,
                                   .body_len = relay->body.len,
                                   .stream_body = relay->has_body && !relay->is_whole,
                                   .body_max = UINT64_MAX };
    struct aq_error err = { 0 };

    relay->api = web_get_api(web);
    strbuf_addf(&url, "%s%s", relay->api, relay->target);
    (void)relay_write_headers(web, relay->req, relay->api, head->method, relay->target,
                              message_get_header(head, "Content-Type"), relay->use.login, &headers,
                              &err);
    want.url = url.data;
    want.headers = headers.data;
    if (!err.code)
        (void)client_send(web->client, &want, &ops, relay, &relay->exchange, &err);
    if (err.code) {
        relay_refuse(relay, &err);
        return;
    }
    pump_join(&relay->pump, PUMP_KERNEL, &exchange_pump, relay->exchange);
    if (!want.stream_body) {
        request_set_gone(relay->req, relay_on_gone, relay);
        return;
    }
    (void)pump_open(&relay->pump, PUMP_KERNEL);
    request_read_body(relay->req, relay_on_body, relay);
}

/* What the WebUI has hidden, as it is meant. */
static int relay_uncover(struct relay *relay, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf buf = STRBUF_INIT, plain = STRBUF_INIT;
    const char *body;
    size_t body_len;
    int r = entry_read_body(relay->web, relay->req, relay->body.data, relay->body.len, &buf, &body,
                            &body_len, err);

    if (r < 0)
        return r;
    strbuf_add(&plain, body, body_len);
    AQ_SWAP(plain, relay->body);
    return 0;
}

/* A body that is hidden, or short, is read as a whole. */
static void relay_on_whole(struct request *req, const char *bytes, size_t len, int status,
                           void *data)
{
    struct relay *relay = data;
    size_t max = relay->is_hidden ? PAYLOAD_MAX : WHOLE_MAX;
    struct aq_error err = { 0 };

    (void)req;
    if (status < 0) {
        relay_abort(relay);
        return;
    }
    if (len && relay->body.len + len <= max) {
        relay->web->counts.bytes_in += len;
        strbuf_add(&relay->body, bytes, len);
        return;
    }
    if (len)
        aq_fail_kind(&err, E2BIG, "generic-bad-request", "the body is too long");
    else if (relay->is_hidden)
        (void)relay_uncover(relay, &err);
    if (err.code)
        relay_refuse(relay, &err);
    else
        relay_send(relay);
}

static void relay_start(struct relay *relay)
{
    const struct message_head *head = request_get_head(relay->req);

    relay->is_whole = relay->has_body
                      && (relay->is_hidden
                          || (!head->is_chunked && head->content_length <= WHOLE_MAX));
    if (relay->is_whole)
        request_read_body(relay->req, relay_on_whole, relay);
    else
        relay_send(relay);
}

/* ---- whose it is ---- */

static void relay_on_login(void *data, struct login *login, const struct aq_error *err)
{
    struct relay *relay = data;

    if (login)
        relay_start(relay);
    else
        relay_refuse(relay, err);
}

/* Perhaps by this request, whose answer says so, and may come after the news. */
static void relay_on_login_ended(void *data)
{
    struct relay *relay = data;

    if (relay->tunnel)
        websocket_tunnel_close(relay->tunnel, WEBSOCKET_POLICY, "the login has ended");
    else if (relay->is_begun && !relay->ends_login)
        relay_abort(relay);
    else if (!relay->status && relay->exchange)
        relay->timer = defer_call(relay->web->loop, ANSWER_MSEC, relay_on_late, relay);
    else if (!relay->status)
        relay_refuse_ended(relay);
}

/* Requests that need no login, as the manager asks for no signature. */
static bool relay_is_public(enum method method, const char *target)
{
    static const char tus[] = "/folders/_/tus/upload/";
    size_t len = strcspn(target, "?");

    if (strncmp(target, tus, sizeof(tus) - 1) == 0)
        return method == METHOD_HEAD || method == METHOD_PATCH || method == METHOD_OPTIONS;
    return (method == METHOD_GET && len == 1)
           || (method == METHOD_POST && len == strlen("/auth/signup")
               && strncmp(target, "/auth/signup", len) == 0);
}

bool relay_is_asked(const struct request *req)
{
    const char *target = request_get_target(req);
    size_t len = strlen(PREFIX);

    return strncmp(target, PREFIX, len) == 0 && (!target[len] || strchr("/?", target[len]));
}

void relay_serve(struct web *web, struct request *req)
{
    const struct message_head *head = request_get_head(req);
    const char *target = request_get_target(req) + strlen(PREFIX);
    const char *encoded = request_get_header(req, "X-BackendAI-Encoded");
    struct relay *relay;
    struct aq_error err = { 0 };
    char hash[COOKIE_HASH_MAX];
    bool is_public;

    target = *target ? target : "/";
    is_public = relay_is_public(head->method, target);
    if (!is_public && !entry_find_hash(web, req, hash)) {
        (void)relay_fail_unknown(&err);
        request_fail(req, &err);
        return;
    }
    if (*target != '/' || head->method == METHOD_OTHER) {
        request_fail(req, &(struct aq_error){ .code = EINVAL });
        return;
    }
    web->counts.passed++;
    relay = aq_alloc(sizeof(*relay));
    relay->web = web;
    relay->req = req;
    relay->target = target;
    relay->has_body = head->is_chunked || head->content_length;
    relay->is_hidden = encoded && strcmp(encoded, "true") == 0;
    relay->use = (struct login_use){ .on_found = relay_on_login,
                                     .on_ended = relay_on_login_ended,
                                     .data = relay };
    list_init(&relay->use.link);
    pump_init(&relay->pump);
    strbuf_init(&relay->body);
    list_add(&web->relays, &relay->link);
    pump_join(&relay->pump, PUMP_CLIENT, &request_pump, req);
    request_set_gone(req, relay_on_gone, relay);
    if (is_public)
        relay_start(relay);
    else
        login_seek(&web->logins, hash, &relay->use);
}

void relays_cut(struct web *web)
{
    while (!list_is_empty(&web->relays)) {
        struct relay *relay = LIST_ENTRY(web->relays.next, struct relay, link);

        if (relay->tunnel)
            websocket_tunnel_cut(relay->tunnel);
        else
            relay_abort(relay);
    }
}
