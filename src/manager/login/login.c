/* SPDX-License-Identifier: Apache-2.0 */
/* Is this the password of that user? */
#include "manager/login/login.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/core/fronts.h"
#include "manager/account/account.h"
#include "manager/login/login_feature.h"
#include "store/fixture.h"
#include "store/query.h"

#define KEYS_MAX 8 /* of a user that are looked at; of these, one at most is published */

struct login *login_new(struct api *api, struct request *req)
{
    struct login *login = arena_alloc(request_get_arena(req), sizeof(*login));

    login->api = api;
    login->req = req;
    return login;
}

/* ---- the end ---- */

static void login_answer(struct login *login, const struct aq_error *err, int64_t retry_sec)
{
    if (login->refused) {
        login->refused(login, err, retry_sec);
        return;
    }
    if (retry_sec)
        request_add_header_int(login->req, "Retry-After", retry_sec);
    request_fail(login->req, err);
}

static void login_write_audit(const struct login *login, enum login_outcome outcome)
{
    const struct user *user = core_find_user_by_email(login->api->core, login->email);
    const struct uuid nobody = { .bytes = { 0 } };
    const char *caller = login->req ? api_principal(login->req)->access_key : "";
    const char *given = outcome == LOGIN_OK && login->access_key[0] ? login->access_key : NULL;
    const struct audit_entry entry = {
        .user_id = user ? user->id : nobody,
        .user_name = login->email,
        .domain = user ? user->domain : NULL,
        .access_key = caller[0] ? caller : given,
        .address = login->address,
        .action = login->action,
        .object_domain = user ? user->domain : NULL,
    };

    login_audit_add(login->api->login_audit, outcome, &entry, clock_monotonic_usec());
}

struct audit_who login_who(const struct login *login)
{
    const struct user *user = core_find_user(login->api->core, &login->user_id);
    struct audit_who by = *api_who(login->api, login->req);

    by.action = login->action;
    if (by.access_key[0] || !user)
        return by;
    by.user_id = user->id;
    memcpy(by.access_key, login->access_key, sizeof(by.access_key));
    (void)snprintf(by.user_name, sizeof(by.user_name), "%s", user->email);
    (void)snprintf(by.domain, sizeof(by.domain), "%s", user->domain ? user->domain : "");
    return by;
}

void login_fail(struct login *login)
{
    struct aq_error err = { 0 };

    log_info("login of '%.80s' from %s failed", login->email, login->address);
    login_write_audit(login, LOGIN_FAILED);
    aq_fail_kind(&err, EACCES, "auth-failed", "User credential mismatch.");
    login_answer(login, &err, 0);
}

static void login_cancel(struct login *login, const struct aq_error *err, int64_t retry_sec)
{
    login_limits_cancel(login->api->login->limits, &login->attempt);
    login_answer(login, err, retry_sec);
}

/* Answer why who gave the right password is not let in; it does not count as a guess. */
static void login_refuse(struct login *login, const struct aq_error *err)
{
    login_write_audit(login, LOGIN_FAILED);
    login_cancel(login, err, 0);
}

void login_succeed(struct login *login, struct login_failures *ret)
{
    login_limits_succeed(login->api->login->limits, &login->attempt, ret);
    if (!login->is_change)
        login_write_audit(login, LOGIN_OK);
    if (ret->count)
        log_warning("login of '%.80s' from %s, after %u that failed", login->email, login->address,
                    (unsigned)ret->count);
}

static void login_refuse_wait(struct login *login, int64_t wait_usec)
{
    int64_t sec = (wait_usec + USEC_PER_SEC - 1) / USEC_PER_SEC;
    struct aq_error err = { 0 };

    log_debug("login of '%.80s' from %s refused: too many have failed", login->email,
              login->address);
    login_write_audit(login, LOGIN_BLOCKED);
    aq_fail_kind(&err, EAGAIN, "rate-limit-exceeded",
                 "too many logins have failed; try again in %lld seconds", (long long)sec);
    login_answer(login, &err, sec);
}

/* ---- who is let in ---- */

bool login_is_unverified(struct login *login, const struct user *user)
{
    struct aq_error err = { 0 };

    if (!user || user->status != USER_BEFORE_VERIFICATION)
        return false;
    aq_fail_kind(&err, EACCES, "auth-failed", "This account needs email verification.");
    login_refuse(login, &err);
    return true;
}

static bool login_is_expired(const struct login *login)
{
    int64_t max = account_password_max_age(login->api);

    return max && clock_realtime_usec() - login->changed_usec > max;
}

/* Why an active user who gave it cannot log in with this password; NULL = can. */
static const char *login_must_change(const struct login *login, const struct user *user)
{
    if (user->need_password_change)
        return "the password must be changed before it lets anybody in";
    return login_is_expired(login) ? "the password is too old" : NULL;
}

/* The password is right, but requests are signed by keypairs, and the user has none. */
static void login_refuse_without_key(struct login *login)
{
    struct aq_error err = { 0 };

    log_warning(
        "login of '%.80s' from %s refused: the user has no active keypair; make one: aliquot "
        "admin keypair create %.80s",
        login->email, login->address, login->email);
    aq_fail_kind(
        &err, EACCES, "auth-failed",
        "No API keypairs found: user '%.80s' has no active keypair; an administrator makes "
        "one with 'aliquot admin keypair create'",
        login->email);
    login_refuse(login, &err);
}

const struct keypair *login_admit(struct login *login, const struct user **ret_user,
                                  struct login_failures *ret_failed)
{
    const struct core *core = login->api->core;
    const struct user *user = login->is_right ? core_find_user(core, &login->user_id) : NULL;
    const struct keypair *key = login->access_key[0] ? core_find_keypair(core, login->access_key)
                                                     : NULL;
    struct aq_error err = { 0 };
    const char *why;

    if (login_is_unverified(login, user))
        return NULL;
    if ((why = user && user->status == USER_ACTIVE ? login_must_change(login, user) : NULL)) {
        aq_fail_kind(&err, EACCES, "password-expired",
                     "%s; change it with POST /auth/update-password-no-auth", why);
        login_refuse(login, &err);
        return NULL;
    }
    if (!user || user->status != USER_ACTIVE) {
        if (user)
            log_info("user '%.80s' gave the right password, but is %s", login->email,
                     user_status_name(user->status));
        login_fail(login);
        return NULL;
    }
    if (!key || !key->is_active) {
        login_refuse_without_key(login);
        return NULL;
    }
    login_succeed(login, ret_failed);
    *ret_user = user;
    return key;
}

/* ---- a hash that another program made ---- */

struct login_hash {
    struct uuid user_id;
    char old[PASSWORD_HASH_MAX], fresh[PASSWORD_HASH_MAX];
};

/* store_tx_fn */
static int login_write_hash(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct login_hash *hash = data;

    return user_replace_hash(tx, &hash->user_id, hash->old, hash->fresh, err);
}

/* store_done_fn */
static void login_on_hash_written(void *data, int r, const struct aq_error *err)
{
    if (r < 0)
        log_warning("the hash of a password stays as another program made it: %s", err->text);
    explicit_bzero(data, sizeof(struct login_hash));
    free(data);
}

/* The next login finds one of ours. */
static void login_renew_hash(const struct login *login)
{
    struct login_hash *hash = aq_alloc(sizeof(*hash));

    hash->user_id = login->user_id;
    memcpy(hash->old, login->check.hash, sizeof(hash->old));
    memcpy(hash->fresh, login->check.new_hash, sizeof(hash->fresh));
    store_write(core_store(login->api->core), login_write_hash, login_on_hash_written, hash);
}

/* ---- the password ---- */

static void login_on_checked(struct password_check *check)
{
    struct login *login = AQ_CONTAINER_OF(check, struct login, check);
    const struct user *user;
    struct aq_error err = { 0 };

    if (check->result == -EAGAIN)
        (void)password_queue_fail_busy(&err);
    else if (check->result < 0)
        (void)aq_fail(&err, -check->result, "the password could not be checked");
    if (check->result < 0) {
        login_cancel(login, &err, 1);
        return;
    }
    login->is_right = check->is_right
                      && (core_is_dev(login->api->core)
                          || !fixture_is_published_password(login->email, login->password));
    if (check->is_right && login->renews_hash)
        login_renew_hash(login);
    user = login->is_right ? core_find_user(login->api->core, &login->user_id) : NULL;
    if (user && client_address_check(login->address, user->allowed_client_ip, &err) < 0)
        login_refuse(login, &err);
    else
        login->done(login);
}

/* ---- the user ---- */

static int login_find_key(struct store_tx *tx, struct login *login, struct aq_error *err)
{
    const struct store_query query = {
        .user_id = &login->user_id, .is_active = 1, .limit = KEYS_MAX, .order = "created_at"
    };
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    int r = store_list_keypairs(tx, &query, &page, err);

    for (size_t i = 0; r == 0 && i < page->count && !login->access_key[0]; i++) {
        const struct keypair *key = &page->keypairs[i].keypair;

        if (!keypair_is_published(login->api, key))
            memcpy(login->access_key, key->access_key, ACCESS_KEY_MAX);
    }
    return r;
}

/* On a worker thread. Asks the same of a user who does not exist. */
static int login_find_user(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct login *login = data;
    struct store_login found = { 0 };
    int r = store_find_login(tx, login->domain, login->email, &found, err);

    login->user_id = found.user_id;
    login->changed_usec = found.changed_usec;
    memcpy(login->check.hash, found.hash, sizeof(found.hash));
    return r < 0 ? r : login_find_key(tx, login, err);
}

static void login_on_user_found(void *data, int r, const struct aq_error *err)
{
    struct login *login = data;
    struct aq_error failed = err ? *err : (struct aq_error){ 0 };

    login->renews_hash = !login->new_password && password_is_foreign(login->check.hash);
    if (login->renews_hash)
        login->check.new_password = login->password;
    if (r == 0)
        r = password_queue_add(login->api->login->passwords, &login->check, &failed);
    if (r < 0)
        login_cancel(login, &failed, r == -EAGAIN);
}

void login_start(struct login *login, void (*done)(struct login *login))
{
    struct api *api = login->api;
    int64_t wait;

    if (login->req)
        client_address_find(request_get_address(login->req), request_get_head(login->req),
                            &api->proxies, login->address);
    client_address_network(login->address, login->network);
    login->done = done;
    login->attempt = (struct login_try){ .account = login->email,
                                         .address = login->device ? login->device : login->network,
                                         .is_device = login->device,
                                         .now_usec = clock_monotonic_usec() };
    login->check = (struct password_check){ .address = login->network,
                                            .password = login->password,
                                            .new_password = login->new_password,
                                            .done = login_on_checked };
    if (!api->login->passwords)
        api->login->passwords = password_queue_new(core_loop(api->core));
    if ((wait = login_limits_begin(api->login->limits, &login->attempt)) > 0) {
        login_refuse_wait(login, wait);
        return;
    }
    store_read(core_store(api->core), login_find_user, login_on_user_found, login);
}

/* ---- logins with a browser ---- */

void login_tell_ended(const struct api *api, const struct msg_web_ended *ended)
{
    const struct message msg = { .type = MSG_WEB_ENDED, .web_ended = *ended };

    core_send_fronts(api->core, FRONT_WEB, &msg);
}
