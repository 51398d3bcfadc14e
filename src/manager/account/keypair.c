/* SPDX-License-Identifier: Apache-2.0 */
/* Keypairs: what can be given, and what becomes of it. */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "manager/account/account.h"

#define KEY_UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define KEY_LOWER "abcdefghijklmnopqrstuvwxyz"
#define KEY_DIGITS "0123456789"

static const void *keypair_find(const struct core *core, const char *key)
{
    return core_find_keypair(core, key);
}

static void keypair_make_keys(struct keypair *key)
{
    static const char base32[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    unsigned char secret[30];

    memcpy(key->access_key, "AKIA", 4);
    for (size_t i = 4; i < ACCESS_KEY_MAX - 1; i++)
        key->access_key[i] = base32[randombytes_uniform(32)];
    randombytes_buf(secret, sizeof(secret));
    sodium_bin2base64(key->secret_key, sizeof(key->secret_key), secret, sizeof(secret),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero(secret, sizeof(secret));
}

static void keypair_fill_owner(struct account_row *row, const char *text, struct keypair *key)
{
    const struct core *core = row->api->core;
    const struct user *user;
    struct uuid id;

    user = uuid_parse(text, &id) == 0 ? core_find_user(core, &id)
                                      : core_find_user_by_email(core, text);
    if (!user) {
        problem_no_such(&row->err, "user", "there is no user '%.64s'", text);
        return;
    }
    key->user_id = user->id;
    keypair_make_keys(key);
}

static bool keypair_may_get(struct account_row *row, const char *name)
{
    const struct keypair_policy *policy = core_find_policy(row->api->core, name);

    if (!policy)
        problem_no_such(&row->err, "keypair resource policy",
                        "there is no keypair resource policy '%.64s'", name);
    else if (!policy->is_active)
        api_fail_param(&row->err, "policy", "'%.64s' was removed; restore it first", name);
    return !row->err.code;
}

/* A new one is somebody's, and gets its keys here. */
static void keypair_fill(struct account_row *row)
{
    const struct keypair_request *given = row->params;

    if (given->keypair.policy && !keypair_may_get(row, given->keypair.policy))
        return;
    if (!row->old)
        keypair_fill_owner(row, given->user, &row->event->keypair);
}

static void keypair_select_row(struct account_row *row, struct store_query *query)
{
    query->access_key = account_keep(row, row->event->keypair.access_key);
}

const struct account_kind account_keypair = {
    .object = "keypair",
    .event = EVENT_KEYPAIR_SAVED,
    .entity = &keypair_entity,
    .offset = offsetof(struct event, keypair),
    .params_size = sizeof(struct keypair_request),
    .create = keypair_create,
    .change = keypair_change,
    .list = store_list_keypairs,
    .find = keypair_find,
    .fill = keypair_fill,
    .select = keypair_select_row,
};

/* ---- what the batch of another change takes in ---- */

static bool keypair_is_spelled(const char *text, size_t len, const char *letters)
{
    return strlen(text) == len && strspn(text, letters) == len;
}

/* The keys that are given, or new ones. */
static int keypair_take_keys(const struct core *core, const struct account_keys *given,
                             struct keypair *key, struct aq_error *err)
{
    if (!given->access_key && !given->secret_key) {
        keypair_make_keys(key);
        return 0;
    }
    if (!given->access_key || !given->secret_key)
        return api_fail_param(err, given->access_key ? "secret_key" : "access_key",
                              "give both keys, or none");
    if (!keypair_is_spelled(given->access_key, ACCESS_KEY_MAX - 1, KEY_UPPER KEY_DIGITS))
        return api_fail_param(err, "access_key", "must be %d upper-case letters and digits",
                              ACCESS_KEY_MAX - 1);
    if (!keypair_is_spelled(given->secret_key, sizeof(key->secret_key) - 1,
                            KEY_UPPER KEY_LOWER KEY_DIGITS "-_"))
        return api_fail_param(err, "secret_key", "must be %d letters, digits, '-' or '_'",
                              (int)sizeof(key->secret_key) - 1);
    if (core_find_keypair(core, given->access_key))
        return api_fail_param(err, "access_key", "'%.20s' is in use", given->access_key);
    memcpy(key->access_key, given->access_key, ACCESS_KEY_MAX);
    memcpy(key->secret_key, given->secret_key, sizeof(key->secret_key));
    return 0;
}

int account_change_add_keypair(struct account_change *change, const struct account_keys *given,
                               struct aq_error *err)
{
    static const struct account_keys none = { NULL, NULL, NULL };
    const struct core *core = change->api->core;
    const char *policy = given ? given->policy : NULL;
    size_t of_user = change->batch->count - 1;
    struct account_row row = { .api = change->api };
    const struct user *user;
    struct keypair *key;

    if (policy && !keypair_may_get(&row, policy)) {
        *err = row.err;
        return -err->code;
    }
    key = &event_batch_add(change->batch, EVENT_KEYPAIR_SAVED, clock_realtime_usec())->keypair;
    user = &change->batch->events[of_user].user.user;
    entity_init(&keypair_entity, key);
    if (policy) {
        free(key->policy);
        key->policy = aq_strdup(policy);
    }
    key->user_id = user->id;
    key->is_admin = user->role == ROLE_SUPERADMIN || user->role == ROLE_ADMIN;
    return keypair_take_keys(core, given ? given : &none, key, err);
}

int account_change_ssh_key(struct account_change *change, const char *access_key,
                           const char *public_key, struct aq_error *err)
{
    const struct keypair *key = core_find_keypair(change->api->core, access_key);
    struct keypair *saved;

    if (!key)
        return problem_no_such(err, "keypair", "there is no keypair '%.64s'", access_key);
    saved = &event_batch_add(change->batch, EVENT_KEYPAIR_SAVED, clock_realtime_usec())->keypair;
    entity_copy(&keypair_entity, saved, key);
    free(saved->ssh_public_key);
    saved->ssh_public_key = aq_strdup(public_key);
    return 0;
}

/* Sessions are found by their keypair, so that none may outlive it. Those that end already are no
 * hindrance.
 */
static int keypair_check_sessions(const struct core *core, const char *access_key,
                                  struct aq_error *err)
{
    for (const struct session *s = NULL; (s = core_next_session(core, s));)
        if (s->status != SESSION_TERMINATING && strcmp(s->access_key, access_key) == 0)
            return aq_fail_kind(err, EBUSY, "generic-bad-request",
                                "keypair '%.64s' is used by live sessions such as %.40s; "
                                "end them first, or deactivate the keypair",
                                access_key, s->name);
    return 0;
}

int account_change_remove_keypair(struct account_change *change, const char *access_key,
                                  struct aq_error *err)
{
    const struct keypair *key = core_find_keypair(change->api->core, access_key);
    struct event *event;
    int r;

    if (!key)
        return problem_no_such(err, "keypair", "there is no keypair '%.64s'", access_key);
    if ((r = keypair_check_sessions(change->api->core, key->access_key, err)) < 0)
        return r;
    event = event_batch_add(change->batch, EVENT_KEYPAIR_REMOVED, clock_realtime_usec());
    memcpy(event->keypair.access_key, key->access_key, ACCESS_KEY_MAX);
    return account_check_superadmin(change->api->core, event, err);
}
