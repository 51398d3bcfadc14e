/* SPDX-License-Identifier: Apache-2.0 */
/* Users, keypairs, domains, projects, policies and resource groups: rows that are made or
 * changed.
 */
#include "manager/account/account.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"

/* ---- parts of a row ---- */

char *account_text(struct account_row *row, const char *given, const char *old)
{
    (void)row;
    return aq_strdup(given ? given : old);
}

const char *account_keep(struct account_row *row, const char *text)
{
    return text ? arena_strdup(row->arena, text) : NULL;
}

/* ---- a change ---- */

/* The living row to change, or none to collide with. */
static int account_find_old(struct account_row *row, const struct account_kind *kind)
{
    const void *same = !row->key && kind->find_same ? kind->find_same(row->api->core, row->params)
                                                    : NULL;

    if (same && kind->noun && account_is_hidden(kind, same))
        return aq_fail_kind(&row->err, EEXIST, "generic-bad-request",
                            "this %s exists already, but was removed; restore or purge it",
                            kind->noun);
    if (same)
        return aq_fail_kind(&row->err, EEXIST, "generic-bad-request", "this %s exists already",
                            kind->object);
    if (!row->key)
        return 0;
    if (!(row->old = kind->find(row->api->core, row->key)))
        return problem_no_such(&row->err, kind->object, "there is no %s '%.64s'",
                               kind->noun ? kind->noun : kind->object, row->key);
    return 0;
}

struct account_change *account_change_new(struct api *api, struct arena *arena,
                                          const struct account_kind *kind)
{
    struct account_change *change = arena_alloc(arena, sizeof(*change));

    *change = (struct account_change){
        .api = api, .arena = arena, .kind = kind, .batch = event_batch_new()
    };
    return change;
}

void account_change_drop(struct account_change *change)
{
    core_unclaim(change->api->core, change->batch);
    event_batch_free(AQ_TAKE(change->batch));
}

static bool account_event_ends_logins(const struct event *e, bool has_password,
                                      const struct audit_who *by)
{
    if (e->kind == EVENT_USER_SAVED)
        return uuid_equals(&e->user.user.id, &by->user_id)
               && (has_password || e->user.user.status != USER_ACTIVE);
    if (e->kind == EVENT_KEYPAIR_SAVED && e->keypair.is_active)
        return false;
    return (e->kind == EVENT_KEYPAIR_SAVED || e->kind == EVENT_KEYPAIR_REMOVED)
           && strcmp(e->keypair.access_key, by->access_key) == 0;
}

bool account_change_ends_logins(const struct account_change *change, const struct audit_who *by)
{
    for (size_t i = 0; i < change->batch->count; i++)
        if (account_event_ends_logins(&change->batch->events[i], change->password, by))
            return true;
    return false;
}

/* ---- the last superadmin ---- */

/* Does the keypair log a superadmin in? 'e' = once that event is applied; NULL = now. */
static bool account_is_superadmin_key(const struct core *core, const struct keypair *key,
                                      const struct event *e)
{
    const struct user *user = core_find_user(core, &key->user_id);
    bool is_active = key->is_active;

    if (e && e->kind == EVENT_USER_SAVED && uuid_equals(&e->user.user.id, &key->user_id))
        user = &e->user.user;
    else if (e && e->kind == EVENT_KEYPAIR_SAVED
             && strcmp(e->keypair.access_key, key->access_key) == 0)
        is_active = e->keypair.is_active;
    else if (e && e->kind == EVENT_KEYPAIR_REMOVED
             && strcmp(e->keypair.access_key, key->access_key) == 0)
        is_active = false;
    return is_active && user && user->role == ROLE_SUPERADMIN && user->status == USER_ACTIVE;
}

static bool account_may_take_superadmin(const struct event *e)
{
    if (e->kind == EVENT_USER_SAVED)
        return e->user.user.role != ROLE_SUPERADMIN || e->user.user.status != USER_ACTIVE;
    return e->kind == EVENT_KEYPAIR_REMOVED
           || (e->kind == EVENT_KEYPAIR_SAVED && !e->keypair.is_active);
}

int account_check_superadmin(const struct core *core, const struct event *e, struct aq_error *err)
{
    const struct keypair *key;
    bool had_one = false;

    if (!account_may_take_superadmin(e))
        return 0;
    for (size_t i = 0; (key = core_get_keypair(core, i)); i++) {
        if (account_is_superadmin_key(core, key, e))
            return 0;
        had_one |= account_is_superadmin_key(core, key, NULL);
    }
    if (!had_one)
        return 0;
    return aq_fail_kind(err, EPERM, "generic-forbidden",
                        "the change would leave no active superadmin with an active keypair; "
                        "create another keypair or superadmin first");
}

/* ---- a row ---- */

/* What fill() begins with, in the request's arena. */
static void *account_new_params(struct arena *arena, const struct account_kind *kind)
{
    size_t size = kind->params_size ? kind->params_size : kind->entity->size;
    void *params = arena_alloc(arena, size);

    if (kind->defaults)
        memcpy(params, kind->defaults, size);
    return params;
}

/* The row in the event, from the living one or a new one, and from what was given. */
static void account_fill(struct account_row *row, const struct account_kind *kind,
                         const json_t *given)
{
    void *target = (char *)row->event + kind->offset;

    if (kind->entity && row->old)
        entity_copy(kind->entity, target, row->old);
    else if (kind->entity)
        entity_init(kind->entity, target);
    if (kind->fill)
        kind->fill(row);
    if (kind->entity && given && !row->err.code)
        (void)entity_merge(kind->entity, target, row->params, given,
                           core_slot_types(row->api->core), &row->err);
    if (kind->complete && !row->err.code)
        kind->complete(row);
}

int account_change_row(struct account_change *change, const char *key, const json_t *given,
                       struct aq_error *err)
{
    const struct account_kind *kind = change->kind;
    struct account_row row = { .api = change->api, .arena = change->arena, .key = key };
    void *params = account_new_params(change->arena, kind);

    row.params = params;
    row.event = event_batch_add(change->batch, kind->event, clock_realtime_usec());
    if ((!given
         || decode_object(key ? kind->change : kind->create, given, change->arena, params, &row.err)
                == 0)
        && account_find_old(&row, kind) == 0)
        account_fill(&row, kind, given);
    if (!row.err.code && kind->follow)
        kind->follow(change, &row);
    if (!row.err.code)
        (void)account_check_superadmin(change->api->core, row.event, &row.err);
    if (!row.err.code)
        kind->select(&row, &change->query);
    if (row.err.code) {
        *err = row.err;
        return -err->code;
    }
    change->password = row.password;
    return 0;
}

/* ---- saving, with a password hashed on a worker thread before ---- */

static int account_hash_password(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct account_change *change = data;

    (void)tx;
    return password_hash(change->password, change->hash, err);
}

static void account_on_saved(void *data, int r, const struct aq_error *err)
{
    struct account_change *change = data;
    struct aq_error taken;

    AQ_FAULT("api.accounts.durable");
    folder_rules_renamed(change->api, &change->rules, r);
    if (r == -EEXIST && change->rules.from) { /* the new name of a domain */
        taken = *err;
        taken.kind = "invalid-api-params";
        err = &taken;
    }
    change->done(change->data, r, err);
}

static void account_on_hashed(void *data, int r, const struct aq_error *err)
{
    struct account_change *change = data;

    if (r == 0) {
        change->batch->events[0].user.password_hash = aq_strdup(change->hash);
        core_save(change->api->core, AQ_TAKE(change->batch), &change->by, account_on_saved, change);
        return;
    }
    account_change_drop(change);
    change->done(change->data, r, err);
}

int account_change_save(struct account_change *change, const struct audit_who *by,
                        core_done_fn done, void *data, struct aq_error *err)
{
    struct core *core = change->api->core;
    int r;

    AQ_FAULT("api.accounts.decoded");
    change->by = *by;
    change->done = done;
    change->data = data;
    if (!change->password) {
        core_save(core, AQ_TAKE(change->batch), &change->by, account_on_saved, change);
        return 0;
    }
    if ((r = core_claim(core, change->batch, err)) < 0) {
        account_change_drop(change);
        return r;
    }
    store_read(core_store(core), account_hash_password, account_on_hashed, change);
    return 0;
}
