/* SPDX-License-Identifier: Apache-2.0 */
/* web_logins.c - see web_logins.h; and /aliquot/v1/logins, where people see and end theirs */
#include "manager/login/web_logins.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/json_load.h"
#include "base/list.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/login/login_feature.h"
#include "manager/login/login.h"
#include "store/web_login.h"

#define CALLS_MAX 1024 /* under way */
#define LIFETIME_SEC_MAX (366 * 86400)
#define USE_USEC (60 * USEC_PER_SEC) /* 'used_at' is as exact as that */
#define PASSWORD_MAX 1024
#define DEVICE_MAX 64

struct web_logins {
    struct api *api;
    struct list calls;
    size_t call_count;
};

/* A question, while it is answered. */
struct web_call {
    struct list link;
    struct web_logins *of;
    char web[AGENT_ID_MAX + 1];
    struct uuid request_id;
    json_t *args;
    unsigned char hash[WEB_LOGIN_HASH_SIZE];
    struct web_login row;
    struct login login;
    int64_t now_usec;
    int found; /* web_login_end() */
};

/* ---- answers ---- */

static void web_call_free(struct web_call *call)
{
    list_remove(&call->link);
    call->of->call_count--;
    json_decref(call->args);
    explicit_bzero(&call->login, sizeof(call->login));
    free(call);
}

static void web_call_refuse(struct web_call *call, const struct aq_error *err, int64_t retry_sec)
{
    const struct problem_type *type = problem_of(err);
    struct message msg = { .type = MSG_WEB_ANSWER,
                           .web_answer = { .request_id = call->request_id,
                                           .error_kind = type->slug,
                                           .error_text = err->text,
                                           .retry_sec = retry_sec } };

    if (type->status == 500)
        log_error("a login by a browser: %s", err->text);
    (void)core_send_front(call->of->api->core, call->web, &msg, NULL);
    web_call_free(call);
}

static void web_call_answer(struct web_call *call, struct strbuf *out)
{
    struct message msg = { .type = MSG_WEB_ANSWER,
                           .web_answer = { .request_id = call->request_id, .result = out->data } };

    (void)core_send_front(call->of->api->core, call->web, &msg, NULL);
    web_call_free(call);
}

/* Who it is, and the keypair. */
static void web_call_answer_login(struct web_call *call, uint32_t failed_count)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct core *core = call->of->api->core;
    const struct keypair *key = core_find_keypair(core, call->row.access_key);
    const struct user *user = core_find_user(core, &call->row.user_id);
    struct jsonw w = jsonw_make(&out);
    struct aq_error err = { 0 };

    if (!user || user->status != USER_ACTIVE || !key || !key->is_active) {
        aq_fail_kind(&err, EACCES, "auth-failed", "Unauthorized access");
        web_call_refuse(call, &err, 0);
        return;
    }
    jsonw_object_begin(&w);
    api_write_uuid(&w, "id", &call->row.id);
    api_write_uuid(&w, "user_id", &user->id);
    jsonw_member_str(&w, "access_key", key->access_key);
    jsonw_member_str(&w, "secret_key", key->secret_key);
    jsonw_member_str(&w, "role", user_role_name(user->role));
    jsonw_member_str(&w, "status", user_status_name(user->status));
    jsonw_member_int(&w, "expires", call->row.expires_usec / USEC_PER_SEC);
    jsonw_member_int(&w, "failed_logins", failed_count);
    jsonw_object_end(&w);
    web_call_answer(call, &out);
    explicit_bzero(out.data, out.len);
}

static const char *web_call_text(const struct web_call *call, const char *name)
{
    return json_string_value(json_object_get(call->args, name));
}

/* ---- login ---- */

static int web_login_write(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct web_call *call = data;
    int r = user_is_active_since(tx, &call->row.user_id, call->login.changed_usec, err);

    if (r == 0) /* the user was blocked, or got another password, while this one was verified */
        return aq_fail_kind(err, EACCES, "auth-failed", "User credential mismatch.");
    return r < 0 ? r : web_login_add(tx, call->hash, &call->row, err);
}

static void web_login_on_written(void *data, int r, const struct aq_error *err)
{
    struct web_call *call = data;

    AQ_FAULT("api.web-login.durable");
    if (r < 0)
        web_call_refuse(call, err, 0);
    else
        web_call_answer_login(call, (uint32_t)call->found);
}

static void web_login_on_refused(struct login *login, const struct aq_error *err, int64_t retry_sec)
{
    web_call_refuse(AQ_CONTAINER_OF(login, struct web_call, login), err, retry_sec);
}

static void web_login_on_verified(struct login *login)
{
    struct web_call *call = AQ_CONTAINER_OF(login, struct web_call, login);
    json_int_t lifetime = json_integer_value(json_object_get(call->args, "lifetime_sec"));
    const char *agent = web_call_text(call, "agent");
    const struct user *user;
    struct login_failures failed;
    const struct keypair *key = login_admit(login, &user, &failed);

    if (!key)
        return;
    call->found = (int)AQ_MIN(failed.count, 100000u);
    call->row = (struct web_login){ .id = uuid_random(),
                                    .user_id = user->id,
                                    .created_usec = clock_realtime_usec() };
    call->row.used_usec = call->row.created_usec;
    call->row.expires_usec = call->row.created_usec + lifetime * USEC_PER_SEC;
    (void)snprintf(call->row.access_key, sizeof(call->row.access_key), "%s", key->access_key);
    (void)snprintf(call->row.address, sizeof(call->row.address), "%s", login->address);
    (void)snprintf(call->row.agent, sizeof(call->row.agent), "%s", agent ? agent : "");
    store_write(core_store(call->of->api->core), web_login_write, web_login_on_written, call);
}

static int web_call_login(struct web_call *call, struct aq_error *err)
{
    json_int_t lifetime = json_integer_value(json_object_get(call->args, "lifetime_sec"));
    const char *email = web_call_text(call, "username");
    const char *password = web_call_text(call, "password");
    const char *address = web_call_text(call, "address");
    const char *device = web_call_text(call, "device");

    if (!email || !*email || strlen(email) > 256 || !password || !*password
        || strlen(password) > PASSWORD_MAX || !address || lifetime < 1
        || lifetime > LIFETIME_SEC_MAX || (device && strlen(device) > DEVICE_MAX))
        return aq_fail(err, EINVAL, "username and password must be given");
    call->login = (struct login){ .api = call->of->api,
                                  .refused = web_login_on_refused,
                                  .action = "login",
                                  .domain = web_call_text(call, "domain"),
                                  .email = email,
                                  .password = password,
                                  .device = device };
    (void)snprintf(call->login.address, sizeof(call->login.address), "%s", address);
    login_start(&call->login, web_login_on_verified);
    return 0;
}

/* ---- find, extend ---- */

static int web_login_read_at(struct store_tx *tx, struct web_call *call, int64_t now_usec,
                             struct aq_error *err)
{
    int r = web_login_find(tx, call->hash, now_usec, &call->row, err);

    return r == 0 ? aq_fail_kind(err, EACCES, "auth-failed", "Unauthorized access") : AQ_MIN(r, 0);
}

static int web_login_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct web_call *call = data;

    return web_login_read_at(tx, call, call->now_usec, err);
}

static int web_login_write_use(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct web_call *call = data;

    return web_login_use(tx, &call->row.id, call->now_usec, call->row.expires_usec, err);
}

static void web_login_on_used(void *data, int r, const struct aq_error *err)
{
    struct web_call *call = data;

    if (r < 0)
        web_call_refuse(call, err, 0);
    else
        web_call_answer_login(call, 0);
}

static void web_login_on_found(void *data, int r, const struct aq_error *err)
{
    struct web_call *call = data;
    json_int_t lifetime = json_integer_value(json_object_get(call->args, "lifetime_sec"));

    if (r < 0) {
        web_call_refuse(call, err, 0);
        return;
    }
    if (lifetime > 0 && lifetime <= LIFETIME_SEC_MAX)
        call->row.expires_usec = call->now_usec + lifetime * USEC_PER_SEC;
    else if (call->now_usec - call->row.used_usec < USE_USEC) {
        web_call_answer_login(call, 0);
        return;
    }
    store_write(core_store(call->of->api->core), web_login_write_use, web_login_on_used, call);
}

static int web_call_find(struct web_call *call, struct aq_error *err)
{
    (void)err;
    store_read(core_store(call->of->api->core), web_login_read, web_login_on_found, call);
    return 0;
}

/* ---- end ---- */

static int web_login_remove(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct web_call *call = data;
    int r = web_login_read_at(tx, call, 0, err);

    return r < 0 ? r : web_login_end(tx, &call->row.id, NULL, err);
}

static void web_login_on_removed(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct web_call *call = data;

    if (r < 0) {
        web_call_refuse(call, err, 0);
        return;
    }
    login_tell_ended(call->of->api, &(struct msg_web_ended){ .login_id = call->row.id });
    strbuf_adds(&out, "{}");
    web_call_answer(call, &out);
}

static int web_call_end(struct web_call *call, struct aq_error *err)
{
    (void)err;
    store_write(core_store(call->of->api->core), web_login_remove, web_login_on_removed, call);
    return 0;
}

/* ---- where pages may connect ---- */

static void web_add_origin(void *data, const char *url)
{
    jsonw_str(data, url);
}

static int web_call_origins(struct web_call *call, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    (void)err;
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "proxy", core_find_front_url(call->of->api->core, FRONT_PROXY, NULL));
    jsonw_key(&w, "origins");
    jsonw_array_begin(&w);
    core_list_front_urls(call->of->api->core, FRONT_PROXY, web_add_origin, &w);
    core_list_front_urls(call->of->api->core, FRONT_STORAGE, web_add_origin, &w);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    web_call_answer(call, &out);
    return 0;
}

/* ---- what they ask ---- */

static const struct web_op {
    const char *name;
    bool has_hash; /* of a cookie, as "hash" */
    int (*run)(struct web_call *call, struct aq_error *err);
} web_ops[] = {
    { "login", true, web_call_login },      { "find", true, web_call_find },
    { "extend", true, web_call_find },      { "end", true, web_call_end },
    { "origins", false, web_call_origins },
};

static int web_call_read(struct web_call *call, const struct web_op *op, const char *args,
                         struct aq_error *err)
{
    const char *hash;
    size_t len = 0;

    call->args = json_load_string(args, 0);
    if (!op || !json_is_object(call->args))
        return aq_fail(err, EINVAL, "a web server asks what is not known");
    hash = web_call_text(call, "hash");
    if (op->has_hash
        && (!hash
            || sodium_hex2bin(call->hash, sizeof(call->hash), hash, strlen(hash), NULL, &len, NULL)
                   < 0
            || len != sizeof(call->hash)))
        return aq_fail(err, EINVAL, "a web server gives no hash");
    return 0;
}

static void web_logins_on_message(void *data, const char *id, const struct message *msg)
{
    struct web_logins *of = data;
    struct web_call *call = aq_alloc(sizeof(*call));
    const struct web_op *op = NULL;
    struct aq_error err = { 0 };
    int r;

    call->of = of;
    call->request_id = msg->web_ask.request_id;
    call->now_usec = clock_realtime_usec();
    (void)snprintf(call->web, sizeof(call->web), "%s", id);
    list_add(&of->calls, &call->link);
    of->call_count++;
    for (size_t i = 0; i < AQ_COUNT(web_ops); i++)
        if (strcmp(web_ops[i].name, msg->web_ask.op) == 0)
            op = &web_ops[i];
    r = of->call_count > CALLS_MAX
            ? aq_fail_kind(&err, EAGAIN, "service-unavailable", "too many log in; try again")
            : web_call_read(call, op, msg->web_ask.args, &err);
    if (r == 0)
        r = op->run(call, &err);
    if (r < 0)
        web_call_refuse(call, &err, 0);
}

static void web_logins_on_end(void *data, const struct uuid *user_id, const char *access_key)
{
    struct msg_web_ended ended = { .access_key = access_key };

    if (user_id)
        ended.user_id = *user_id;
    login_tell_ended(((const struct web_logins *)data)->api, &ended);
}

/* ---- life ---- */

struct web_logins *web_logins_new(struct api *api)
{
    static const struct core_front_ops ops = { .on_message = web_logins_on_message };
    struct web_logins *of = aq_alloc(sizeof(*of));

    of->api = api;
    list_init(&of->calls);
    core_set_front_ops(api->core, FRONT_WEB, &ops, of);
    core_on_login_end(api->core, web_logins_on_end, of);
    return of;
}

void web_logins_stop(struct web_logins *of)
{
    core_set_front_ops(of->api->core, FRONT_WEB, NULL, NULL);
    core_on_login_end(of->api->core, NULL, NULL);
}

void web_logins_free(struct web_logins *of)
{
    if (!of)
        return;
    web_logins_stop(of);
    while (!list_is_empty(&of->calls))
        web_call_free(LIST_ENTRY(of->calls.next, struct web_call, link));
    free(of);
}

/* ---- people see and end theirs ---- */

struct own_logins {
    struct request *req;
    struct api *api;
    struct uuid id, user_id;
    bool is_any; /* a superadmin ends anybody's */
    struct web_login *logins;
    int count;
};

static struct own_logins *own_logins_new(struct api *api, struct request *req)
{
    const struct principal *who = api_principal(req);
    struct own_logins *own = arena_alloc(request_get_arena(req), sizeof(*own));

    own->req = req;
    own->api = api;
    own->user_id = who->user_id;
    own->is_any = principal_is_superadmin(who);
    return own;
}

static int own_logins_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct own_logins *own = data;

    own->count = web_login_list(tx, &own->user_id, clock_realtime_usec(),
                                request_get_arena(own->req), &own->logins, err);
    return AQ_MIN(own->count, 0);
}

static void own_logins_on_read(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct own_logins *own = data;
    struct jsonw w = jsonw_make(&out);

    if (r < 0) {
        request_fail(own->req, err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    for (int i = 0; i < own->count; i++) {
        const struct web_login *login = &own->logins[i];

        jsonw_object_begin(&w);
        api_write_uuid(&w, "id", &login->id);
        jsonw_member_str(&w, "access_key", login->access_key);
        jsonw_member_str(&w, "address", login->address);
        jsonw_member_str(&w, "agent", login->agent);
        api_write_time(&w, "created_at", login->created_usec);
        api_write_time(&w, "used_at", login->used_usec);
        api_write_time(&w, "expires_at", login->expires_usec);
        jsonw_object_end(&w);
    }
    jsonw_array_end(&w);
    jsonw_member_int(&w, "total", own->count);
    jsonw_object_end(&w);
    request_reply_json(own->req, 200, &out);
}

static void own_logins_on_list(struct request *req, void *data)
{
    struct own_logins *own = api_has_no_params(req) ? own_logins_new(data, req) : NULL;

    if (own)
        store_read(core_store(own->api->core), own_logins_read, own_logins_on_read, own);
}

static int own_logins_remove(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct own_logins *own = data;
    int r = web_login_end(tx, &own->id, own->is_any ? NULL : &own->user_id, err);

    return r == 0 ? problem_no_such(err, "login", "there is no login of this id") : AQ_MIN(r, 0);
}

static void own_logins_on_removed(void *data, int r, const struct aq_error *err)
{
    const struct own_logins *own = data;

    if (r < 0) {
        request_fail(own->req, err);
        return;
    }
    api_say_login_ended(own->req);
    login_tell_ended(own->api, &(struct msg_web_ended){ .login_id = own->id });
    request_reply_empty(own->req, 204);
}

static void own_logins_on_end(struct request *req, void *data)
{
    struct own_logins *own = api_has_no_params(req) ? own_logins_new(data, req) : NULL;
    struct aq_error err = { 0 };

    if (!own)
        return;
    if (uuid_parse(request_get_param(req, "id"), &own->id) < 0) {
        problem_no_such(&err, "login", "there is no login of this id");
        request_fail(req, &err);
    } else {
        store_write(core_store(own->api->core), own_logins_remove, own_logins_on_removed, own);
    }
}

static const struct route web_logins_routes[] = {
    { METHOD_GET, "/aliquot/v1/logins", API_USER, own_logins_on_list,
      .doc = "Where the caller has logged in with a browser" },
    { METHOD_DELETE, "/aliquot/v1/logins/{id}", API_USER, own_logins_on_end,
      .doc = "End a login of the caller's; a superadmin: anybody's", .answer = { 204 } },
};
API_ROUTES_END(web_logins);
