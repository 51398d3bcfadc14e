/* SPDX-License-Identifier: Apache-2.0 */
/* entry.c - /server/: people log in, out, and change a password that lets them in no more */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/jsonw.h"
#include "base/utf8.h"
#include "http/problem.h"
#include "web/payload.h"
#include "web/web.h"

#define PROBLEM_URL "https://api.backend.ai/probs/"
#define BODY_MAX 65536
#define DEVICE_DAYS 365
#define ANSWER_MSEC 60000

/* A request that waits for the manager; in its arena. */
struct entry {
    struct web *web;
    struct request *req;
    struct manager_ask *ask;
    struct exchange *exchange;
    const char *api; /* the manager that 'exchange' was sent to */
    struct login_use use;
    char hash[COOKIE_HASH_MAX];     /* of the cookie that came; "" = none */
    char cookie[COOKIE_TEXT_MAX];   /* that is given */
    char device[COOKIE_DEVICE_MAX]; /* likewise */
    char email[257];
};

bool entry_find_hash(const struct web *web, const struct request *req, char ret[COOKIE_HASH_MAX])
{
    const char *header = request_get_header(req, "Cookie");
    size_t len = 0;
    const char *value = cookie_find(header, COOKIE_LOGIN, page_is_https(web), &len);

    return value && cookie_hash(value, len, ret);
}

/* ---- the life of one ---- */

static void entry_on_gone(struct request *req, void *data)
{
    struct entry *entry = data;

    manager_cancel(AQ_TAKE(entry->ask));
    exchange_cancel(AQ_TAKE(entry->exchange));
    login_leave(&entry->use);
    request_end(req);
}

static struct entry *entry_new(struct web *web, struct request *req)
{
    struct entry *entry = arena_alloc(request_get_arena(req), sizeof(*entry));

    entry->web = web;
    entry->req = req;
    list_init(&entry->use.link);
    if (!entry_find_hash(web, req, entry->hash))
        entry->hash[0] = '\0';
    request_add_header(req, "Cache-Control", "no-store");
    request_set_gone(req, entry_on_gone, entry);
    return entry;
}

static void entry_fail(struct entry *entry, const struct aq_error *err, int64_t retry_sec)
{
    if (retry_sec)
        request_add_header_int(entry->req, "Retry-After", retry_sec);
    request_fail(entry->req, err);
}

static void entry_set_cookie(struct entry *entry, enum cookie_kind kind, const char *value,
                             int64_t age_sec)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    cookie_write(kind, page_is_https(entry->web), value, age_sec, &out);
    request_add_header(entry->req, "Set-Cookie", out.data);
}

/* ---- bodies ---- */

int entry_read_body(const struct web *web, struct request *req, const char *body, size_t len,
                    struct strbuf *buf, const char **ret, size_t *ret_len, struct aq_error *err)
{
    const char *encoded = request_get_header(req, "X-BackendAI-Encoded");
    char endpoint[WEB_URL_MAX];
    int r;

    *ret = body;
    *ret_len = len;
    if (!encoded || strcmp(encoded, "true") != 0)
        return 0;
    page_write_endpoint(web, req, endpoint);
    r = payload_open(endpoint, body, len, buf, err);
    if (r == -EINVAL) {
        *err = (struct aq_error){ 0 };
        r = payload_open(web->settings->common.public_url, body, len, buf, err);
    }
    *ret = buf->data;
    *ret_len = buf->len;
    return r;
}

/* An object of JSON; NULL with why not. */
static json_t *entry_read_json(const struct web *web, struct request *req, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf buf = STRBUF_INIT;
    const char *text;
    size_t len;
    const char *body = request_get_body(req, &len);
    json_t *json = NULL;
    json_error_t wrong;

    if (entry_read_body(web, req, body, len, &buf, &text, &len, err) < 0)
        return NULL;
    json = json_load_text(text, len, JSON_REJECT_DUPLICATES, &wrong);
    if (buf.len)
        explicit_bzero(buf.data, buf.len);
    if (json_is_object(json))
        return json;
    if (!json && json_error_code(&wrong) == json_error_null_character)
        aq_fail_kind(
            err, EINVAL, "invalid-api-params",
            "a text of the request, such as a password, contains NUL (\\u0000); remove it");
    else
        aq_fail_kind(err, EINVAL, "invalid-api-params", "the request body is not a JSON object");
    json_decref(json);
    return NULL;
}

static const char *entry_text(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));

    return text ? text : "";
}

static void entry_write_who(struct jsonw *w, const char *access_key, const char *role,
                            const char *status)
{
    jsonw_key(w, "data");
    jsonw_object_begin(w);
    jsonw_member_str(w, "access_key", access_key);
    jsonw_member_str(w, "role", role);
    jsonw_member_str(w, "status", status);
    jsonw_object_end(w);
}

/* ---- login ---- */

/* That it is refused is an answer, which the WebUI reads, unless it is asked too often. */
static void entry_refuse_login(struct entry *entry, const struct aq_error *err, int64_t retry_sec)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT, type = STRBUF_INIT;
    const struct problem_type *problem = problem_of(err);
    struct jsonw w = jsonw_make(&out);

    entry->web->counts.failed_logins++;
    if (err->code != EACCES || problem->status == 429) {
        entry_fail(entry, err, retry_sec);
        return;
    }
    strbuf_addf(&type, PROBLEM_URL "%s", problem->slug);
    jsonw_object_begin(&w);
    jsonw_member_bool(&w, "authenticated", false);
    jsonw_key(&w, "data");
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "type", type.data);
    jsonw_member_str(&w, "title", problem->title);
    jsonw_member_str(&w, "details", err->text);
    jsonw_object_end(&w);
    jsonw_object_end(&w);
    request_reply_json(entry->req, 200, &out);
}

static void entry_on_login(void *data, const json_t *result, const struct aq_error *err,
                           int64_t retry_sec)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct entry *entry = data;
    struct jsonw w = jsonw_make(&out);
    struct aq_error ignored = { 0 };

    entry->ask = NULL;
    if (!result) {
        entry_refuse_login(entry, err, retry_sec);
        return;
    }
    entry->web->counts.logins++;
    if (*entry->hash) /* another login of this browser, which nobody can use any more */
        (void)manager_ask(&entry->web->manager, "end", json_pack("{s:s}", "hash", entry->hash),
                          NULL, NULL, NULL, &ignored);
    entry_set_cookie(entry, COOKIE_LOGIN, entry->cookie,
                     entry->web->settings->login_usec / USEC_PER_SEC);
    entry_set_cookie(entry, COOKIE_DEVICE, entry->device, INT64_C(86400) * DEVICE_DAYS);
    jsonw_object_begin(&w);
    jsonw_member_bool(&w, "authenticated", true);
    entry_write_who(&w, entry_text(result, "access_key"), entry_text(result, "role"),
                    entry_text(result, "status"));
    jsonw_object_end(&w);
    request_reply_json(entry->req, 200, &out);
}

static json_t *entry_make_login(struct entry *entry, const char *password)
{
    struct web *web = entry->web;
    struct request *req = entry->req;
    const char *said = request_get_header(req, "User-Agent");
    const char *header = request_get_header(req, "Cookie");
    size_t len = 0;
    const char *device = cookie_find(header, COOKIE_DEVICE, page_is_https(web), &len);
    char address[CLIENT_ADDRESS_MAX], hash[COOKIE_HASH_MAX], agent[256];
    json_t *args;

    (void)snprintf(agent, sizeof(agent), "%s", said ? said : "");
    utf8_make_printable(agent); /* a header may have any bytes, JSON may not */
    client_address_find(request_get_address(req), request_get_head(req), &web->proxies, address);
    cookie_make(entry->cookie);
    (void)cookie_hash(entry->cookie, strlen(entry->cookie), hash);
    args = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I}", "hash", hash, "domain",
                     web->settings->domain, "username", entry->email, "password", password,
                     "address", address, "agent", agent, "lifetime_sec",
                     (json_int_t)(web->settings->login_usec / USEC_PER_SEC));
    if (device && cookie_check_device(web->secret, entry->email, device, len)) {
        (void)snprintf(entry->device, sizeof(entry->device), "%.*s", (int)len, device);
        (void)json_object_set_new(args, "device", json_sprintf("browser %.32s", device));
    } else {
        cookie_make_device(web->secret, entry->email, entry->device);
    }
    return args;
}

static void entry_on_login_asked(struct request *req, void *data)
{
    struct web *web = data;
    struct aq_error err = { 0 };
    json_t *json = entry_read_json(web, req, &err);
    const char *email = entry_text(json, "username"), *password = entry_text(json, "password");
    struct entry *entry = NULL;

    /* The WebUI asks without either before anybody has typed: it is no failure. */
    if (!err.code && (!*email || !*password || strlen(email) >= sizeof(entry->email)))
        aq_fail_kind(&err, EINVAL, "invalid-api-params", "username and password must be given");
    if (err.code) {
        request_fail(req, &err);
    } else {
        entry = entry_new(web, req);
        (void)snprintf(entry->email, sizeof(entry->email), "%s", email);
        if (manager_ask(&web->manager, "login", entry_make_login(entry, password), entry_on_login,
                        entry, &entry->ask, &err)
            < 0)
            entry_fail(entry, &err, 1);
    }
    json_decref(json);
}

/* ---- is it one? ---- */

static void entry_reply_check(struct entry *entry, const struct login *login)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    char id[UUID_TEXT_MAX] = "";

    jsonw_object_begin(&w);
    jsonw_member_bool(&w, "authenticated", login);
    if (login) {
        entry_write_who(&w, login->access_key, login->role, login->status);
        (void)uuid_format(&login->id, id);
    } else {
        jsonw_member_null(&w, "data");
    }
    jsonw_member_str(&w, "session_id", id); /* a name for it, which opens nothing */
    jsonw_object_end(&w);
    request_reply_json(entry->req, 200, &out);
}

static void entry_on_checked(void *data, struct login *login, const struct aq_error *err)
{
    struct entry *entry = data;

    if (!login && err->code != EACCES)
        entry_fail(entry, err, 1);
    else
        entry_reply_check(entry, login);
}

static void entry_on_found(void *data, struct login *login, const struct aq_error *err)
{
    struct entry *entry = data;

    login_leave(&entry->use);
    entry_on_checked(entry, login, err);
}

static void entry_on_check(struct request *req, void *data)
{
    struct web *web = data;
    struct entry *entry = entry_new(web, req);

    if (!*entry->hash) {
        entry_reply_check(entry, NULL);
        return;
    }
    entry->use.on_found = entry_on_found;
    entry->use.data = entry;
    login_seek(&web->logins, entry->hash, &entry->use);
}

/* ---- end, extend ---- */

static void entry_on_ended(void *data, const json_t *result, const struct aq_error *err,
                           int64_t retry_sec)
{
    struct entry *entry = data;

    entry->ask = NULL;
    if (!result && err->code != EACCES) {
        entry_fail(entry, err, retry_sec); /* it has not ended */
        return;
    }
    entry_set_cookie(entry, COOKIE_LOGIN, "", 0);
    request_reply_empty(entry->req, 200);
}

static void entry_on_logout(struct request *req, void *data)
{
    struct web *web = data;
    struct entry *entry = entry_new(web, req);
    struct aq_error err = { 0 };

    if (!*entry->hash)
        request_reply_empty(req, 200);
    else if (manager_ask(&web->manager, "end", json_pack("{s:s}", "hash", entry->hash),
                         entry_on_ended, entry, &entry->ask, &err)
             < 0)
        entry_fail(entry, &err, 1);
}

static void entry_on_extended(void *data, const json_t *result, const struct aq_error *err,
                              int64_t retry_sec)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct entry *entry = data;
    time_t t = (time_t)json_integer_value(json_object_get(result, "expires"));
    const char *cookie;
    char text[40] = "", value[COOKIE_TEXT_MAX];
    size_t n = 0;
    struct tm tm;

    entry->ask = NULL;
    if (!result) {
        entry_fail(entry, err, retry_sec);
        return;
    }
    cookie = cookie_find(request_get_header(entry->req, "Cookie"), COOKIE_LOGIN,
                         page_is_https(entry->web), &n);
    (void)snprintf(value, sizeof(value), "%.*s", (int)n, cookie ? cookie : "");
    entry_set_cookie(entry, COOKIE_LOGIN, value, entry->web->settings->login_usec / USEC_PER_SEC);
    if (gmtime_r(&t, &tm))
        (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S+00:00", &tm);
    jsonw_object_begin(&w);
    jsonw_member_int(&w, "status", 201);
    jsonw_member_str(&w, "expires", text);
    jsonw_object_end(&w);
    request_reply_json(entry->req, 201, &out);
}

static void entry_on_extend(struct request *req, void *data)
{
    struct web *web = data;
    struct entry *entry = entry_new(web, req);
    struct aq_error err = { 0 };
    json_int_t lifetime = web->settings->login_usec / USEC_PER_SEC;

    if (!*entry->hash)
        aq_fail_kind(&err, EACCES, "auth-failed", "Unauthorized access");
    else
        (void)manager_ask(&web->manager, "extend",
                          json_pack("{s:s, s:I}", "hash", entry->hash, "lifetime_sec", lifetime),
                          entry_on_extended, entry, &entry->ask, &err);
    if (err.code)
        entry_fail(entry, &err, 0);
}

/* ---- a password that has expired ---- */

static void entry_on_changed(void *data, const struct client_response *response,
                             const struct aq_error *err)
{
    struct entry *entry = data;
    const char *type, *retry;
    struct aq_error away = { 0 };

    entry->exchange = NULL;
    if (!response) {
        web_leave_api(entry->web, entry->api);
        aq_fail_kind(&away, EAGAIN, "bad-gateway", "the manager is away: %s", err->text);
        entry_fail(entry, &away, 1);
        return;
    }
    type = message_get_header(response->head, "Content-Type");
    if ((retry = message_get_header(response->head, "Retry-After")))
        request_add_header(entry->req, "Retry-After", retry);
    request_reply(entry->req, response->head->status, type ? type : "application/json",
                  response->body, response->body_len);
}

static void entry_send_change(struct entry *entry, const json_t *json, struct aq_error *err)
{
    static const char target[] = "/auth/update-password-no-auth";
    struct web *web = entry->web;
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT;
    const char *api = web_get_api(web);
    AQ_CLEANUP(aq_freep) char *url = aq_format("%s%s", api, target);
    json_t *args = json_pack("{s:s, s:O?, s:O?, s:O?}", "domain", web->settings->domain, "username",
                             json_object_get(json, "username"), "current_password",
                             json_object_get(json, "current_password"), "new_password",
                             json_object_get(json, "new_password"));
    AQ_CLEANUP(aq_freep) char *body = json_dump_text(args, JSON_COMPACT);
    struct client_request want = { .method = METHOD_POST,
                                   .url = url,
                                   .body = body,
                                   .body_len = strlen(body),
                                   .answer_msec = ANSWER_MSEC };

    json_decref(args);
    if (relay_write_headers(web, entry->req, api, METHOD_POST, target, "application/json", NULL,
                            &headers, err)
        < 0)
        return;
    want.headers = headers.data;
    entry->api = api;
    (void)client_fetch(web->client, &want, entry_on_changed, entry, &entry->exchange, err);
    explicit_bzero(body, strlen(body));
}

static void entry_on_change(struct request *req, void *data)
{
    struct web *web = data;
    struct aq_error err = { 0 };
    json_t *json = entry_read_json(web, req, &err);

    if (err.code) {
        request_fail(req, &err);
    } else {
        struct entry *entry = entry_new(web, req);

        entry_send_change(entry, json, &err);
        if (err.code)
            entry_fail(entry, &err, 0);
    }
    json_decref(json);
}

const struct route entry_routes[] = {
    { METHOD_POST, "/server/login", 0, entry_on_login_asked, .doc = "Log in",
      .body_max = BODY_MAX },
    { METHOD_POST, "/server/login-check", 0, entry_on_check, .doc = "Who is logged in?",
      .body_max = BODY_MAX },
    { METHOD_POST, "/server/logout", 0, entry_on_logout, .doc = "Log out", .body_max = BODY_MAX },
    { METHOD_POST, "/server/extend-login-session", 0, entry_on_extend, .doc = "Stay logged in",
      .body_max = BODY_MAX },
    { METHOD_POST, "/server/update-password-no-auth", 0, entry_on_change,
      .doc = "Change a password that has expired", .body_max = BODY_MAX },
};
const size_t entry_route_count = AQ_COUNT(entry_routes);
