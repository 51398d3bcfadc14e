/* SPDX-License-Identifier: Apache-2.0 */
/* /auth: is my key good, give me my key, who am I, change my password. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "manager/account/account.h"
#include "manager/login/login_feature.h"
#include "manager/login/login.h"

struct echo_params {
    const char *echo;
};

static const struct field echo_fields[] = {
    { "echo", FIELD_STR, FIELD_REQUIRED, offsetof(struct echo_params, echo) },
    FIELD_END,
};

static void auth_on_test(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct echo_params params = { 0 };
    struct aq_error err = { 0 };

    (void)data;
    if (api_decode(req, &params, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "authorized", "yes");
    jsonw_member_str(&w, "echo", params.echo);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

/* ---- e-mail and password ---- */

#define PASSWORD_MAX 1024

/* ---- a keypair for a password ---- */

static const struct field authorize_fields[] = {
    { "type", FIELD_STR, FIELD_REQUIRED, offsetof(struct login, type), 1, 16,
      .doc = "\"keypair\"" },
    { "domain", FIELD_STR, FIELD_REQUIRED, offsetof(struct login, domain), 1, 64 },
    { "username", FIELD_STR, FIELD_REQUIRED, offsetof(struct login, email), 1, 256,
      .doc = "e-mail address" },
    { "password", FIELD_STR, FIELD_REQUIRED | FIELD_SECRET, offsetof(struct login, password), 1,
      PASSWORD_MAX },
    { "stoken|sToken", FIELD_IGNORED },
    { "otp", FIELD_IGNORED },
    FIELD_END,
};

/* 'failed': for the user to see whether somebody else has been guessing. */
static void auth_write_credentials(const struct user *user, const struct keypair *key,
                                   const struct login_failures *failed, struct jsonw *w)
{
    int64_t failed_usec = failed->count ? clock_realtime_usec() - failed->ago_usec : 0;

    jsonw_object_begin(w);
    jsonw_key(w, "data");
    jsonw_object_begin(w);
    jsonw_member_str(w, "response_type", "success");
    jsonw_member_str(w, "access_key", key->access_key);
    jsonw_member_str(w, "secret_key", key->secret_key);
    jsonw_member_str(w, "role", user_role_name(user->role));
    jsonw_member_str(w, "status", user_status_name(user->status));
    api_write_uuid(w, "user_id", &user->id);
    jsonw_member_int(w, "failed_logins", failed->count);
    api_write_time(w, "last_failed_login", failed_usec);
    jsonw_object_end(w);
    jsonw_object_end(w);
}

static void auth_on_password_verified(struct login *login)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct login_failures failed;
    const struct user *user;
    const struct keypair *key = login_admit(login, &user, &failed);

    if (!key)
        return;
    auth_write_credentials(user, key, &failed, &w);
    request_reply_json(login->req, 200, &out);
}

static void auth_on_authorize(struct request *req, void *data)
{
    struct login *login = login_new(data, req);
    struct aq_error err = { 0 };

    if (api_decode(req, login, NULL, &err) == 0 && strcmp(login->type, "keypair"))
        api_fail_param(&err, "type", "must be \"keypair\"");
    if (err.code) {
        request_fail(req, &err);
        return;
    }
    login->action = "login";
    login_start(login, auth_on_password_verified);
}

/* ---- a new password ---- */

struct password_params {
    const char *old_password, *new_password, *again;
};

static const struct field password_fields[] = {
    { "old_password", FIELD_STR, FIELD_REQUIRED | FIELD_SECRET,
      offsetof(struct password_params, old_password), 1, PASSWORD_MAX },
    { "new_password", FIELD_STR, FIELD_REQUIRED | FIELD_SECRET,
      offsetof(struct password_params, new_password), 8, PASSWORD_MAX },
    { "new_password2", FIELD_STR, FIELD_REQUIRED | FIELD_SECRET,
      offsetof(struct password_params, again), 1, PASSWORD_MAX },
    FIELD_END,
};

static int auth_check_new_password(const struct api *api, const char *old, const char *given,
                                   struct aq_error *err)
{
    if (strcmp(old, given) == 0)
        return api_fail_param(err, "new_password", "is the old one");
    return account_check_password(api, "new_password", given, err);
}

static void auth_on_password_saved(void *data, int r, const struct aq_error *err)
{
    const struct login *login = data;

    if (r < 0) {
        request_fail(login->req, err);
        return;
    }
    request_reply(login->req, 200, "application/json", "{}", 2);
}

/* The user as it is, with the new hash. */
static void auth_save_password(struct login *login, const struct user *user, core_done_fn done)
{
    struct event_batch *batch = event_batch_new();
    struct event *event = event_batch_add(batch, EVENT_USER_SAVED, clock_realtime_usec());
    const struct audit_who by = login_who(login);

    entity_copy(&user_entity, &event->user.user, user);
    event->user.password_hash = aq_strdup(login->check.new_hash);
    event->user.user.need_password_change = false;
    login->changed_usec = event->at_usec;
    core_save(login->api->core, batch, &by, done, login);
}

static void auth_on_password_checked(struct login *login)
{
    const struct user *user = core_find_user(login->api->core, &login->user_id);
    struct login_failures failures;

    if (!login->is_right || !user) {
        login_fail(login);
        return;
    }
    login_succeed(login, &failures);
    api_say_login_ended(login->req);
    auth_save_password(login, user, auth_on_password_saved);
}

static void auth_on_update_password(struct request *req, void *data)
{
    const struct principal *who = api_principal(req);
    const struct api *api = data;
    const struct user *user = core_find_user(api->core, &who->user_id);
    struct password_params params = { 0 };
    struct login *login = login_new(data, req);
    struct aq_error err = { 0 };

    if (!user)
        aq_fail_kind(&err, EACCES, "auth-failed", "Unauthorized access");
    else if (api_decode(req, &params, NULL, &err) == 0 && strcmp(params.new_password, params.again))
        api_fail_param(&err, "new_password2", "is not the same as new_password");
    else if (!err.code)
        (void)auth_check_new_password(api, params.old_password, params.new_password, &err);
    if (!err.code) {
        login->action = "update-password";
        login->is_change = true;
        login->domain = who->domain;
        login->email = arena_strdup(request_get_arena(req), user->email);
        login->password = params.old_password;
        login->new_password = params.new_password;
    }
    if (err.code)
        request_fail(req, &err);
    else
        login_start(login, auth_on_password_checked);
}

/* ---- a new password of who cannot log in with the one that is ---- */

static const struct field expired_fields[] = {
    { "domain", FIELD_STR, FIELD_REQUIRED, offsetof(struct login, domain), 1, 64 },
    { "username", FIELD_STR, FIELD_REQUIRED, offsetof(struct login, email), 1, 256,
      .doc = "e-mail address" },
    { "current_password", FIELD_STR, FIELD_REQUIRED | FIELD_SECRET,
      offsetof(struct login, password), 1, PASSWORD_MAX },
    { "new_password", FIELD_STR, FIELD_REQUIRED | FIELD_SECRET,
      offsetof(struct login, new_password), 8, PASSWORD_MAX },
    FIELD_END,
};

static void auth_on_expired_saved(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct login *login = data;

    if (r < 0) {
        request_fail(login->req, err);
        return;
    }
    jsonw_object_begin(&w);
    api_write_time(&w, "password_changed_at", login->changed_usec);
    jsonw_object_end(&w);
    request_reply_json(login->req, 201, &out);
}

static void auth_on_expired_checked(struct login *login)
{
    const struct user *user = login->is_right ? core_find_user(login->api->core, &login->user_id)
                                              : NULL;
    struct login_failures failures;
    struct aq_error err = { 0 };

    if (login_is_unverified(login, user))
        return;
    if (!user || user->status != USER_ACTIVE) {
        login_fail(login);
        return;
    }
    login_succeed(login, &failures);
    if (!account_password_max_age(login->api) && !user->need_password_change)
        aq_fail_kind(&err, EINVAL, "generic-bad-request",
                     "the password has not expired; log in and change it");
    if (err.code)
        request_fail(login->req, &err);
    else
        auth_save_password(login, user, auth_on_expired_saved);
}

static void auth_on_update_expired(struct request *req, void *data)
{
    struct api *api = data;
    struct login *login = login_new(api, req);
    struct aq_error err = { 0 };

    if (api_decode(req, login, NULL, &err) == 0)
        (void)auth_check_new_password(api, login->password, login->new_password, &err);
    if (err.code) {
        request_fail(req, &err);
        return;
    }
    login->action = "update-password";
    login->is_change = true;
    login_start(login, auth_on_expired_checked);
}

/* ---- roles ---- */

struct role_params {
    const char *project;
};

static const struct field role_fields[] = {
    { "group", FIELD_STR, FIELD_NULLABLE, offsetof(struct role_params, project), 1, 64,
      .doc = "name or id of a project" },
    FIELD_END,
};

/* A member's role in the group, NULL if it is none of the user's. */
static const char *auth_find_project_role(const struct core *core, const struct user *user,
                                          const char *text)
{
    const struct project *project;
    struct uuid id;

    if (uuid_parse(text, &id) == 0)
        project = core_find_project(core, &id);
    else
        project = core_find_project_named(core, user->domain, text);
    for (size_t i = 0; project && i < user->project_count; i++)
        if (uuid_equals(&user->project_ids[i], &project->id))
            return "user";
    return NULL;
}

static void auth_on_role(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct api *api = data;
    const struct user *user = core_find_user(api->core, &api_principal(req)->user_id);
    struct role_params params = { 0 };
    struct aq_error err = { 0 };

    if (!user)
        aq_fail_kind(&err, EACCES, "auth-failed", "Unauthorized access");
    if (err.code || api_decode(req, &params, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "global_role", user->role == ROLE_SUPERADMIN ? "superadmin" : "user");
    jsonw_member_str(&w, "domain_role", user->role == ROLE_ADMIN ? "admin" : "user");
    jsonw_member_str(&w, "group_role",
                     params.project ? auth_find_project_role(api->core, user, params.project)
                                    : NULL);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

#define AUTHORIZE_BODY_MAX 16384 /* it is read from anyone */

static const struct route auth_routes[] = {
    { METHOD_GET, "/auth", API_USER, auth_on_test, echo_fields, "Whether the signature is good" },
    { METHOD_POST, "/auth", API_USER, auth_on_test, echo_fields, "Whether the signature is good" },
    { METHOD_GET, "/auth/test", API_USER, auth_on_test, echo_fields,
      "Whether the signature is good" },
    { METHOD_POST, "/auth/test", API_USER, auth_on_test, echo_fields,
      "Whether the signature is good" },
    { METHOD_POST, "/auth/authorize", API_PUBLIC, auth_on_authorize, authorize_fields,
      "Exchange e-mail and password for a keypair", 0, AUTHORIZE_BODY_MAX },
    { METHOD_GET, "/auth/role", API_USER, auth_on_role, role_fields, "The caller's roles" },
    { METHOD_POST, "/auth/update-password", API_USER, auth_on_update_password, password_fields,
      "Change the caller's password" },
    { METHOD_POST, "/auth/update-password-no-auth", API_PUBLIC, auth_on_update_expired,
      expired_fields, "Change a password that has expired, or must be changed", 0,
      AUTHORIZE_BODY_MAX, .answer = { 201 } },
};
API_ROUTES_END(auth);
