/* SPDX-License-Identifier: Apache-2.0 */
/* /auth: what people do with their own account: leave, and change their name. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "manager/account/account.h"
#include "manager/login/login_feature.h"
#include "manager/login/login.h"

#define PASSWORD_MAX 1024

static void own_account_on_saved(void *data, int r, const struct aq_error *err)
{
    struct request *req = data;

    AQ_FAULT("api.auth.durable");
    if (r < 0)
        request_fail(req, err);
    else
        request_reply(req, 200, "application/json", "{}", 2);
}

/* The account is named in the body, too, and must be the caller's. NULL with why not. */
static const struct user *own_account_find(const struct api *api, const struct request *req,
                                           const char *email, struct aq_error *err)
{
    const struct user *user = core_find_user(api->core, &api_principal(req)->user_id);

    if (user && user->email && strcmp(user->email, email) == 0)
        return user;
    aq_fail_kind(err, EPERM, "generic-forbidden", "Not the account owner");
    return NULL;
}

/* A batch that saves the user; its row is events[0], to be changed. */
static struct event_batch *own_account_copy(const struct user *user)
{
    struct event_batch *batch = event_batch_new();
    struct event *event = event_batch_add(batch, EVENT_USER_SAVED, clock_realtime_usec());

    entity_copy(&user_entity, &event->user.user, user);
    return batch;
}

static void own_account_save(struct api *api, struct request *req, struct event_batch *batch,
                             const struct audit_who *by)
{
    AQ_FAULT("api.auth.decided");
    core_save(api->core, batch, by, own_account_on_saved, req);
}

/* ---- leaving ---- */

static const struct field signout_fields[] = {
    { "email|username", FIELD_STR, FIELD_REQUIRED, offsetof(struct login, email), 1, 256,
      .doc = "the caller's own" },
    { "password", FIELD_STR, FIELD_REQUIRED | FIELD_SECRET, offsetof(struct login, password), 1,
      PASSWORD_MAX },
    FIELD_END,
};

static void own_account_on_proved(struct login *login)
{
    const struct user *user = core_find_user(login->api->core, &login->user_id);
    struct event_batch *batch;
    struct login_failures failures;
    struct audit_who by;
    struct aq_error err = { 0 };

    if (!login->is_right || !user) {
        login_fail(login);
        return;
    }
    login_succeed(login, &failures);
    batch = own_account_copy(user);
    batch->events[0].user.user.status = USER_INACTIVE;
    if (account_check_superadmin(login->api->core, &batch->events[0], &err) < 0) {
        event_batch_free(batch);
        request_fail(login->req, &err);
        return;
    }
    by = login_who(login);
    api_say_login_ended(login->req);
    own_account_save(login->api, login->req, batch, &by);
}

static void own_account_on_signout(struct request *req, void *data)
{
    struct api *api = data;
    struct login *login = login_new(api, req);
    struct aq_error err = { 0 };

    if (api_decode(req, login, NULL, &err) == 0)
        (void)own_account_find(api, req, login->email, &err);
    if (err.code) {
        request_fail(req, &err);
        return;
    }
    login->action = "signout";
    login->is_change = true;
    login->domain = api_principal(req)->domain;
    login_start(login, own_account_on_proved);
}

/* ---- a name ---- */

struct full_name_params {
    const char *email, *full_name;
};

static const struct field full_name_fields[] = {
    { "email", FIELD_STR, FIELD_REQUIRED, offsetof(struct full_name_params, email), 1, 256,
      .doc = "the caller's own" },
    { "full_name", FIELD_STR, FIELD_REQUIRED | FIELD_LINE,
      offsetof(struct full_name_params, full_name), 0, 128 },
    FIELD_END,
};

static void own_account_on_full_name(struct request *req, void *data)
{
    struct full_name_params params = { .email = NULL };
    struct audit_who by = *api_who(data, req);
    struct api *api = data;
    const struct user *user;
    struct event_batch *batch;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0
        || !(user = own_account_find(api, req, params.email, &err))) {
        request_fail(req, &err);
        return;
    }
    batch = own_account_copy(user);
    free(batch->events[0].user.user.full_name);
    batch->events[0].user.user.full_name = aq_strdup(params.full_name);
    by.action = "update-full-name";
    own_account_save(api, req, batch, &by);
}

static const struct route auth_account_routes[] = {
    { METHOD_POST, "/auth/signout", API_USER, own_account_on_signout, signout_fields,
      "Take the caller's account out of use" },
    { METHOD_POST, "/auth/update-full-name", API_USER, own_account_on_full_name, full_name_fields,
      "Change the caller's full name" },
};
API_ROUTES_END(auth_account);
