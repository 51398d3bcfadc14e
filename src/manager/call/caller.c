/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls, and whether they may: the guard of every route.
 *
 * Order of the checks as clients expect it: date, authorisation header, key,
 * signature, replay, role, freeze, rate. Everything here sees the head only.
 */
#include "manager/call/caller.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "http/sign.h"
#include "manager/call/api.h"
#include "http/client_address.h"
#include "manager/call/login_audit.h"
#include "manager/call/repeat.h"
#include "store/fixture.h"

#define ANONYMOUS_RATE_LIMIT 1000

const char *api_role_name(enum api_role role)
{
    static const char *const names[] = {
        [API_PUBLIC] = "public",
        [API_USER] = "user",
        [API_ADMIN] = "admin",
        [API_SUPERADMIN] = "superadmin",
    };

    return names[role];
}

const struct principal *api_principal(const struct request *req)
{
    return request_get_data(req);
}

/* The client's, if it is 1 to 64 characters that need no escapes. */
static void caller_set_request_id(struct request *req, struct audit_who *by)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:";
    const char *given = request_get_header(req, "X-Request-ID");
    struct uuid id;

    if (given && given[0] && strlen(given) < sizeof(by->request_id)
        && !given[strspn(given, letters)]) {
        memcpy(by->request_id, given, strlen(given) + 1);
        return;
    }
    id = uuid_random();
    (void)uuid_format(&id, by->request_id);
    request_add_header(req, "X-Request-ID", by->request_id);
}

const struct audit_who *api_who(const struct api *api, struct request *req)
{
    struct principal *who = request_get_data(req);
    struct audit_who *by = &who->by;
    const struct user *user;

    if (by->request_id[0])
        return by;
    user = who->access_key[0] ? core_find_user(api->core, &who->user_id) : NULL;
    by->user_id = who->user_id;
    memcpy(by->access_key, who->access_key, sizeof(by->access_key));
    (void)snprintf(by->user_name, sizeof(by->user_name), "%s", user ? user->email : "");
    (void)snprintf(by->domain, sizeof(by->domain), "%s", who->domain ? who->domain : "");
    client_address_find(request_get_address(req), request_get_head(req), &api->proxies,
                        by->address);
    caller_set_request_id(req, by);
    return by;
}

void api_note_denied(const struct api *api, struct request *req, const char *kind, const char *what)
{
    const struct audit_who *by = api_who(api, req);
    const struct audit_change change = { .action = "denied",
                                         .object_kind = kind,
                                         .object_name = what,
                                         .object_domain = by->domain[0] ? by->domain : NULL };
    const struct audit_entry entry = audit_entry_make(by, &change, NULL, 0);

    login_audit_add(api->login_audit, LOGIN_FAILED, &entry, clock_monotonic_usec());
}

/* What only reads is not noted. */
static void caller_note_denied(const struct api *api, struct request *req,
                               const struct route *route)
{
    char what[256];

    if (route->method == METHOD_GET || route->method == METHOD_HEAD)
        return;
    (void)snprintf(what, sizeof(what), "%s %s", method_name(route->method), route->path);
    api_note_denied(api, req, "route", what);
}

bool principal_is_superadmin(const struct principal *who)
{
    return who->access_key[0] && who->role == ROLE_SUPERADMIN;
}

bool principal_sees_domain(const struct principal *who, const char *domain)
{
    return principal_is_superadmin(who)
           || (who->role == ROLE_ADMIN && domain && who->domain
               && strcmp(domain, who->domain) == 0);
}

bool principal_is_old(const struct principal *who)
{
    return who->version.major < 9;
}

bool principal_may(enum user_role have, enum api_role need)
{
    switch (need) {
    case API_PUBLIC:
    case API_USER:
        return true;
    case API_ADMIN:
        return have == ROLE_ADMIN || have == ROLE_SUPERADMIN;
    case API_SUPERADMIN:
        return have == ROLE_SUPERADMIN;
    }
    return false;
}

static bool caller_is_member(const struct user *user, const struct uuid *project_id)
{
    for (size_t i = 0; user && i < user->project_count; i++)
        if (uuid_equals(&user->project_ids[i], project_id))
            return true;
    return false;
}

int api_find_project(const struct api *api, const struct request *req, const char *text,
                     const struct project **ret, struct aq_error *err)
{
    const struct principal *who = api_principal(req);
    struct uuid id;

    *ret = uuid_parse(text, &id) == 0
               ? core_find_project(api->core, &id)
               : core_find_project_named(api->core, who->domain ? who->domain : "default", text);
    if (*ret
        && (principal_sees_domain(who, (*ret)->domain)
            || caller_is_member(core_find_user(api->core, &who->user_id), &(*ret)->id)))
        return 0;
    return problem_no_such(err, "user group (or project)", "there is no project '%.64s' for you",
                           text);
}

bool keypair_is_published(const struct api *api, const struct keypair *key)
{
    return !core_is_dev(api->core) && fixture_is_published_key(key->access_key);
}

static void caller_add_rate_headers(struct request *req, int64_t limit, int64_t left)
{
    request_add_header_int(req, "X-RateLimit-Limit", limit);
    request_add_header_int(req, "X-RateLimit-Remaining", AQ_MAX(left, 0));
    request_add_header_int(req, "X-RateLimit-Window", RATE_WINDOW_SEC);
}

/* Is this one that is accepted once? What changes something, an upgrade (it
 * starts a shell or a command), and what may have a body: no signature covers
 * bodies, and one may say for whom the request is.
 */
static bool caller_is_once(const struct request *req)
{
    enum method method = request_get_method(req);

    return (method != METHOD_GET && method != METHOD_HEAD) || request_get_head(req)->is_upgrade
           || api_may_have_body(req);
}

/* The active keypair of an active user that signed this request. */
static int caller_find_signer(const struct api *api, struct request *req, struct principal *who,
                              const struct keypair **ret_key, const struct user **ret_user,
                              struct aq_error *err)
{
    int64_t now = clock_realtime_usec();
    const struct keypair *key;
    const struct user *user;
    struct sign_claim claim;
    int r;

    if ((r = sign_claim_from_request(req, now, &claim, err)) < 0)
        return r;
    key = claim.access_key[0] ? core_find_keypair(api->core, claim.access_key) : NULL;
    user = key ? core_find_user(api->core, &key->user_id) : NULL;
    if (!user || !key->is_active || user->status != USER_ACTIVE || keypair_is_published(api, key))
        return sign_fail_unknown_key(err);
    if ((r = sign_verify(api->sign_cache, &claim, key->secret_key, err)) < 0)
        return r;
    if (caller_is_once(req)) {
        r = replay_check(api->replay, claim.access_key, claim.signature, claim.date_usec, now, err);
        if (r == 0 && !who->repeat && api->on_signature) /* answers that are kept tell of theirs */
            api->on_signature(api, &claim);
        if ((r = repeat_admit_signature(api, req, who, &claim, r)) < 0)
            return r;
    }
    *ret_key = key;
    *ret_user = user;
    return 0;
}

/* May the user come from there? */
static int caller_check_address(const struct api *api, struct request *req, const struct user *user,
                                struct aq_error *err)
{
    char address[CLIENT_ADDRESS_MAX];

    if (!user->allowed_client_ip)
        return 0;
    client_address_find(request_get_address(req), request_get_head(req), &api->proxies, address);
    return client_address_check(address, user->allowed_client_ip, err);
}

static int caller_count_request(const struct api *api, struct request *req,
                                const struct keypair *key, struct aq_error *err)
{
    int64_t left = rate_limiter_count(api->rate, key->access_key, key->rate_limit,
                                      clock_monotonic_usec());

    if (key->rate_limit <= 0) /* no limit: nothing to announce */
        return 0;
    caller_add_rate_headers(req, key->rate_limit, left);
    if (left < 0)
        return aq_fail_kind(err, EAGAIN, "rate-limit-exceeded",
                            "more than %d requests in %d seconds; wait", key->rate_limit,
                            RATE_WINDOW_SEC);
    return 0;
}

/* The key is good, and the role is not enough: Backend.AI's kind, and what is needed. */
static int caller_fail_role(enum api_role need, enum user_role have, struct aq_error *err)
{
    return aq_fail_as(err, EACCES, "auth-failed", PROBLEM_FIELD_ROLE,
                      "this request requires the role '%s%s'; yours is '%s'", api_role_name(need),
                      need == API_ADMIN ? "' or 'superadmin" : "", user_role_name(have));
}

static int caller_check_route(const struct api *api, struct request *req, const struct route *route,
                              struct principal *who, struct aq_error *err)
{
    const struct keypair *key = NULL;
    const struct user *user = NULL;
    int r;

    if ((r = caller_find_signer(api, req, who, &key, &user, err)) < 0
        || (r = caller_check_address(api, req, user, err)) < 0)
        return r;
    core_note_key_use(api->core, key->access_key);
    memcpy(who->access_key, key->access_key, sizeof(who->access_key));
    who->user_id = user->id;
    who->role = user->role;
    if (user->domain)
        who->domain = arena_strdup(request_get_arena(req), user->domain);
    if (!principal_may(user->role, route->role & API_ROLE_MASK)) {
        caller_note_denied(api, req, route);
        return caller_fail_role(route->role & API_ROLE_MASK, user->role, err);
    }
    if (api->is_frozen && (route->role & API_FREEZABLE))
        return aq_fail_kind(err, EAGAIN, "server-frozen",
                            "the manager is frozen by an administrator; try later");
    return caller_count_request(api, req, key, err);
}

int api_check_caller(const struct api *api, const struct request *req, struct aq_error *err)
{
    const struct principal *who = api_principal(req);
    const struct keypair *key = core_find_keypair(api->core, who->access_key);
    const struct user *user = core_find_user(api->core, &who->user_id);

    if (request_is_gone(req))
        return aq_fail(err, EPIPE, "the client has gone");
    if (!who->access_key[0]
        || (key && key->is_active && user && user->status == USER_ACTIVE && user->role == who->role
            && strcmp(user->domain ? user->domain : "", who->domain ? who->domain : "") == 0))
        return 0;
    return aq_fail_kind(err, EBUSY, "conflict",
                        "your key, your role, your domain or its name was changed while the "
                        "request waited; repeat it");
}

/* A user, whatever the key; without one the network that the request comes from. */
static int caller_count_client(const struct api *api, struct request *req,
                               const struct principal *who, struct aq_error *err)
{
    char name[AQ_MAX(UUID_TEXT_MAX, CLIENT_ADDRESS_MAX)], address[CLIENT_ADDRESS_MAX];
    int r;

    if (who->access_key[0]) {
        (void)uuid_format(&who->user_id, name);
    } else {
        client_address_find(request_get_address(req), request_get_head(req), &api->proxies,
                            address);
        client_address_network(address, name);
    }
    r = request_set_client(req, name, err);
    if (r == -EAGAIN)
        request_add_header_int(req, "Retry-After", 1);
    return r;
}

/* Answers that come from memory while the database's server is away say since when. */
static void caller_add_stale_header(const struct api *api, struct request *req)
{
    int64_t since = store_get_away_usec(core_store(api->core));
    char iso[CLOCK_ISO_MAX];

    if (since)
        request_add_header(req, "Aliquot-Stale", clock_format_iso(since, iso));
}

int api_guard(struct request *req, const struct route *route, void *data, struct aq_error *err)
{
    const char *version = request_get_header(req, "X-BackendAI-Version");
    const struct api *api = data;
    struct principal *who = arena_alloc(request_get_arena(req), sizeof(*who));
    int r;

    request_set_data(req, who);
    caller_add_stale_header(api, req);
    if (!version)
        version = request_get_header(req, "X-Sorna-Version");
    if ((r = api_version_accept(version, &who->version, err)) < 0)
        return r;
    if ((r = repeat_admit(req, route, who, err)) < 0)
        return r;
    if ((route->role & API_ROLE_MASK) != API_PUBLIC)
        r = caller_check_route(api, req, route, who, err);
    else
        caller_add_rate_headers(req, ANONYMOUS_RATE_LIMIT, ANONYMOUS_RATE_LIMIT);
    return r < 0 ? r : caller_count_client(api, req, who, err);
}

int api_guard_again(struct request *req, const struct route *route, void *data,
                    struct aq_error *err)
{
    (void)route;
    return api_check_caller(data, req, err);
}

int api_check_acts_for(const struct request *req, const struct user *user, struct aq_error *err)
{
    const struct principal *who = api_principal(req);

    if (who->role == ROLE_ADMIN
        && (user->role == ROLE_SUPERADMIN || !user->domain || strcmp(user->domain, who->domain)))
        return aq_fail_kind(err, EPERM, "generic-forbidden",
                            "the access key belongs to another domain or to a superadmin");
    return 0;
}

int api_owner(const struct api *api, const struct request *req, const char *owner_access_key,
              const struct keypair **ret, struct aq_error *err)
{
    const struct principal *who = api_principal(req);
    const struct keypair *key;
    const struct user *user;

    if (!owner_access_key || strcmp(owner_access_key, who->access_key) == 0)
        owner_access_key = who->access_key;
    else if (!principal_may(who->role, API_ADMIN))
        return aq_fail_kind(err, EPERM, "generic-forbidden",
                            "only administrators may act for another access key");
    key = core_find_keypair(api->core, owner_access_key);
    user = key ? core_find_user(api->core, &key->user_id) : NULL;
    if (!user || !key->is_active)
        return api_fail_param(err, "owner_access_key", "there is no such active access key");
    *ret = key;
    return api_check_acts_for(req, user, err);
}

bool api_name_peer(const char *address, char ret[SERVER_PEER_MAX], void *data)
{
    const struct api *api = data;

    return client_address_name_peer(address, &api->proxies, ret);
}
