/* SPDX-License-Identifier: Apache-2.0 */
/* POST /auth/signup: an account for who has none.
 *
 * What a stranger is told is the same whether the address has an account or not, until all
 * else was found right and the password was hashed; each try counts against the address.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/account/account.h"
#include "manager/login/login_feature.h"
#include "manager/call/login_audit.h"
#include "manager/login/password_queue.h"
#include "manager/login/signup.h"
#include "model/email.h"

#define SIGNUP_BODY_MAX 16384 /* it is read from anyone */

/* In the request's arena. */
struct signup_request {
    struct api *api;
    struct request *req;
    const char *domain, *email, *username, *password, *full_name, *description, *token;

    char address[CLIENT_ADDRESS_MAX]; /* who asks */
    char network[CLIENT_ADDRESS_MAX]; /* of which tries are counted */
    struct hook_decision {
        bool allow;
        const char *message, *status, *policy;
        struct str_list projects;
    } decision;
    struct password_check check;
    struct account_change *change;
    char access_key[ACCESS_KEY_MAX], secret_key[41];
};

static const struct field signup_fields[] = {
    { "domain", FIELD_STR, 0, offsetof(struct signup_request, domain), 1, 64,
      .doc = "default: the one that takes new accounts" },
    { "email", FIELD_STR, FIELD_REQUIRED, offsetof(struct signup_request, email), 3, 255 },
    { "password", FIELD_STR, FIELD_REQUIRED | FIELD_SECRET,
      offsetof(struct signup_request, password), 8, 1024 },
    { "username|user_name", FIELD_STR, FIELD_NULLABLE | FIELD_LINE,
      offsetof(struct signup_request, username), 1, 64, .doc = "default: the e-mail address" },
    { "full_name", FIELD_STR, FIELD_NULLABLE | FIELD_LINE,
      offsetof(struct signup_request, full_name), 0, 128 },
    { "description", FIELD_STR, FIELD_NULLABLE | FIELD_LINES,
      offsetof(struct signup_request, description), 0, 500,
      .doc = "for who decides; it is not kept" },
    { "token", FIELD_STR, FIELD_NULLABLE, offsetof(struct signup_request, token), 0, 256,
      .doc = "of an invitation, for who decides" },
    FIELD_END,
};

/* What a hook answers. */
static const struct field decision_fields[] = {
    { "allow", FIELD_BOOL, FIELD_REQUIRED, offsetof(struct hook_decision, allow) },
    { "message", FIELD_STR, FIELD_NULLABLE, offsetof(struct hook_decision, message), 0, 512 },
    { "status", FIELD_STR, FIELD_NULLABLE, offsetof(struct hook_decision, status), 1, 32 },
    { "policy|resource_policy", FIELD_STR, FIELD_NULLABLE, offsetof(struct hook_decision, policy),
      1, 256 },
    { "projects", FIELD_STR_LIST, FIELD_NULLABLE, offsetof(struct hook_decision, projects), 0,
      256 },
    FIELD_END,
};

/* ---- the end ---- */

/* Of one that succeeds, the change has an entry. */
static void signup_write_audit(const struct signup_request *s, enum login_outcome outcome)
{
    const struct audit_entry entry = {
        .user_name = s->email,
        .domain = s->domain,
        .address = s->address,
        .action = "signup",
        .object_domain = s->domain,
    };

    login_audit_add(s->api->login_audit, outcome, &entry, clock_monotonic_usec());
}

static void signup_fail(const struct signup_request *s, const struct aq_error *err)
{
    signup_write_audit(s, LOGIN_FAILED);
    request_fail(s->req, err);
}

/* What is wrong with hook or settings is told to the log only. */
static void signup_fail_undecided(const struct signup_request *s, const struct aq_error *why)
{
    struct aq_error err = { 0 };

    log_warning("signup of '%.80s' from %s could not be decided: %s", s->email, s->address,
                why->text);
    aq_fail_kind(&err, EAGAIN, "service-unavailable",
                 "nobody can sign up at the moment; try again later, or tell an administrator");
    signup_fail(s, &err);
}

/* Somebody else was the first to take the address, or the name, in this very moment. */
static bool signup_was_late(const struct signup_request *s, struct aq_error *err)
{
    const struct core *core = s->api->core;

    if (core_find_user_by_email(core, s->email))
        aq_fail_kind(err, EEXIST, "generic-bad-request", "Email already exists");
    else if (s->username && core_find_user_by_name(core, s->username))
        api_fail_param(err, "username", "'%.64s' is another user's", s->username);
    return err->code;
}

static void signup_on_saved(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct signup_request *s = data;
    struct aq_error late = { 0 };

    if (r < 0) {
        signup_fail(s, signup_was_late(s, &late) ? &late : err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "access_key", s->access_key);
    jsonw_member_str(&w, "secret_key", s->secret_key);
    jsonw_object_end(&w);
    request_reply_json(s->req, 201, &out);
}

/* ---- the account ---- */

static json_t *signup_make_projects(const struct signup_request *s)
{
    const struct conf_list *own = &signup_get_rules(s->api->login->signup)->projects;
    const struct str_list *given = &s->decision.projects;
    size_t count = given->items ? given->count : own->count;
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_string(given->items ? given->items[i] : own->items[i]));
    return list;
}

/* As user_create takes it. */
static json_t *signup_make_user(const struct signup_request *s)
{
    const struct signup_rules *rules = signup_get_rules(s->api->login->signup);
    const struct {
        const char *name, *value;
    } texts[] = {
        { "domain", s->domain },
        { "email", s->email },
        { "username", s->username ? s->username : s->email },
        { "full_name", s->full_name ? s->full_name : "" },
        { "status", s->decision.status ? s->decision.status : rules->status },
    };
    json_t *user = json_object();

    json_object_set_new(user, "groups", signup_make_projects(s));
    for (size_t i = 0; i < AQ_COUNT(texts); i++)
        json_object_set_new(user, texts[i].name, json_string(texts[i].value));
    return user;
}

static int signup_make_account(struct signup_request *s, struct aq_error *err)
{
    const struct signup_rules *rules = signup_get_rules(s->api->login->signup);
    const struct account_keys keys = { .policy = s->decision.policy ? s->decision.policy
                                                                    : rules->policy };
    json_auto_t *given = signup_make_user(s);
    struct event *events;
    int r;

    if ((r = account_change_row(s->change, NULL, given, err)) < 0
        || (r = account_change_add_keypair(s->change, &keys, err)) < 0)
        return r;
    events = s->change->batch->events;
    events[0].user.password_hash = aq_strdup(s->check.new_hash);
    memcpy(s->access_key, events[1].keypair.access_key, sizeof(s->access_key));
    memcpy(s->secret_key, events[1].keypair.secret_key, sizeof(s->secret_key));
    return 0;
}

/* The new user. */
static struct audit_who signup_who(const struct signup_request *s)
{
    struct audit_who by = *api_who(s->api, s->req);

    by.action = "signup";
    by.user_id = s->change->batch->events[0].user.user.id;
    memcpy(by.access_key, s->access_key, sizeof(by.access_key));
    (void)snprintf(by.user_name, sizeof(by.user_name), "%s", s->email);
    (void)snprintf(by.domain, sizeof(by.domain), "%s", s->domain);
    return by;
}

static void signup_save(struct signup_request *s)
{
    struct aq_error err = { 0 };
    int r;

    s->change = account_change_new(s->api, request_get_arena(s->req), &account_user);
    if ((r = signup_make_account(s, &err)) == 0) {
        const struct audit_who by = signup_who(s);

        if (account_change_save(s->change, &by, signup_on_saved, s, &err) < 0)
            request_fail(s->req, &err);
        return;
    }
    account_change_drop(s->change);
    if (r == -EEXIST)
        aq_fail_kind(&err, EEXIST, "generic-bad-request", "Email already exists");
    if (r == -EEXIST || strcmp(err.field, "username") == 0)
        signup_fail(s, &err);
    else
        signup_fail_undecided(s, &err);
}

/* ---- the password ---- */

static void signup_on_hashed(struct password_check *check)
{
    struct signup_request *s = AQ_CONTAINER_OF(check, struct signup_request, check);
    struct aq_error err = { 0 };

    if (check->result == 0) {
        signup_save(s);
        return;
    }
    if (check->result == -EAGAIN)
        (void)password_queue_fail_busy(&err);
    else
        (void)aq_fail(&err, -check->result, "the password could not be hashed");
    request_add_header_int(s->req, "Retry-After", 1);
    request_fail(s->req, &err);
}

static void signup_hash(struct signup_request *s)
{
    struct api *api = s->api;
    struct aq_error err = { 0 };
    int r;

    s->check = (struct password_check){ .address = s->network,
                                        .new_password = s->password,
                                        .done = signup_on_hashed };
    if (!api->login->passwords)
        api->login->passwords = password_queue_new(request_get_loop(s->req));
    r = password_queue_add(api->login->passwords, &s->check, &err);
    if (r == -EAGAIN)
        request_add_header_int(s->req, "Retry-After", 1);
    if (r < 0)
        request_fail(s->req, &err);
}

/* ---- the hook ---- */

static int signup_read_decision(struct signup_request *s, const char *answer, size_t len,
                                struct aq_error *err)
{
    json_auto_t *tree = NULL;
    enum user_status status;
    int r = decode_json(answer, len, &tree, err);

    if (r == 0)
        r = decode_object(decision_fields, tree, request_get_arena(s->req), &s->decision, err);
    if (r == 0 && s->decision.status && user_status_parse(s->decision.status, &status) < 0)
        r = api_fail_param(err, "status", "'%.32s' is no user status", s->decision.status);
    return r < 0 ? aq_error_wrap(err, "what the hook answers") : 0;
}

static void signup_on_answer(void *data, const char *answer, size_t len, const struct aq_error *err)
{
    struct signup_request *s = data;
    struct aq_error failed = *err;

    if (failed.code || signup_read_decision(s, answer, len, &failed) < 0) {
        signup_fail_undecided(s, &failed);
        return;
    }
    if (s->decision.allow) {
        signup_hash(s);
        return;
    }
    aq_fail_kind(&failed, EPERM, "rejected-by-hook", "%s",
                 s->decision.message && s->decision.message[0] ? s->decision.message
                                                               : "signup not allowed");
    signup_fail(s, &failed);
}

static void signup_ask_hook(struct signup_request *s)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf question = STRBUF_INIT;
    struct jsonw w = jsonw_make(&question);
    struct aq_error err = { 0 };

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "type", "signup");
    jsonw_member_str(&w, "domain", s->domain);
    jsonw_member_str(&w, "email", s->email);
    jsonw_member_str(&w, "username", s->username ? s->username : s->email);
    jsonw_member_str(&w, "full_name", s->full_name);
    jsonw_member_str(&w, "description", s->description);
    jsonw_member_str(&w, "token", s->token);
    jsonw_member_str(&w, "address", s->address);
    jsonw_object_end(&w);
    if (signup_ask(s->api->login->signup, question.data, signup_on_answer, s, &err) == 0)
        return;
    if (err.code == EAGAIN) {
        request_add_header_int(s->req, "Retry-After", 1);
        request_fail(s->req, &err);
    } else {
        signup_fail_undecided(s, &err);
    }
}

/* ---- the request ---- */

static int signup_check(struct signup_request *s, struct aq_error *err)
{
    const struct signup_rules *rules = signup_get_rules(s->api->login->signup);

    if (s->domain && strcmp(s->domain, rules->domain) != 0)
        return api_fail_param(err, "domain", "nobody can sign up in '%.64s'", s->domain);
    s->domain = rules->domain;
    if (email_check_new(s->email, err) < 0) {
        err->kind = "invalid-api-params";
        return -EINVAL;
    }
    if (s->username && strchr(s->username, '@') && strcmp(s->username, s->email) != 0)
        return api_fail_param(err, "username", "must be no other e-mail address than your own");
    return account_check_password(s->api, "password", s->password, err);
}

/* True, or answered that it is too soon. */
static bool signup_may_try(struct signup_request *s)
{
    struct login_try attempt = { .account = s->email,
                                 .address = s->network,
                                 .now_usec = clock_monotonic_usec() };
    struct aq_error err = { 0 };
    int64_t wait, sec;

    client_address_find(request_get_address(s->req), request_get_head(s->req), &s->api->proxies,
                        s->address);
    client_address_network(s->address, s->network);
    if ((wait = signup_begin(s->api->login->signup, &attempt)) == 0)
        return true;
    sec = (wait + USEC_PER_SEC - 1) / USEC_PER_SEC;
    signup_write_audit(s, LOGIN_BLOCKED);
    request_add_header_int(s->req, "Retry-After", sec);
    aq_fail_kind(&err, EAGAIN, "rate-limit-exceeded",
                 "too many have signed up from here; try again in %lld seconds", (long long)sec);
    request_fail(s->req, &err);
    return false;
}

static void signup_on_request(struct request *req, void *data)
{
    struct signup_request *s = arena_alloc(request_get_arena(req), sizeof(*s));
    struct api *api = data;
    struct aq_error err = { 0 };

    if (api_decode(req, s, NULL, &err) == 0 && !api->login->signup)
        aq_fail_kind(&err, EPERM, "generic-forbidden",
                     "nobody can sign up here; ask an administrator for an account");
    else if (!err.code) {
        s->api = api;
        s->req = req;
        (void)signup_check(s, &err);
    }
    if (err.code)
        request_fail(req, &err);
    else if (!signup_may_try(s))
        return;
    else if (signup_has_hook(api->login->signup))
        signup_ask_hook(s);
    else
        signup_hash(s);
}

static const struct route signup_routes[] = {
    { METHOD_POST, "/auth/signup", API_PUBLIC, signup_on_request, signup_fields,
      "Make an account for oneself, where [signup] of manager.toml lets people", 0, SIGNUP_BODY_MAX,
      .answer = { 201 } },
};
API_ROUTES_END(signup);
