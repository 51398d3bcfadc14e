/* SPDX-License-Identifier: Apache-2.0 */
/* Users, projects, domains, policies and resource groups: remove, restore, purge.
 *
 * To remove is to take out of use: the row becomes inactive (a user: deleted)
 * and no session can be made with it. A purge does that first, and once it is
 * durable removes the row: what was on its way before is in the store by then,
 * and a session among it makes the store refuse.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "manager/account/account.h"

#define NAMES_SHOWN 3

/* ---- what differs between the kinds ---- */

bool account_is_hidden(const struct account_kind *kind, const void *row)
{
    switch (kind->purge) {
    case PURGE_USER:
        return ((const struct user *)row)->status == USER_DELETED;
    case PURGE_PROJECT:
        return !((const struct project *)row)->is_active;
    case PURGE_DOMAIN:
        return !((const struct domain *)row)->is_active;
    case PURGE_POLICY:
        return !((const struct keypair_policy *)row)->is_active;
    case PURGE_RESOURCE_GROUP:
        return !((const struct resource_group *)row)->is_active;
    }
    return false;
}

void account_set_hidden(const struct account_kind *kind, struct event *e, bool is_hidden)
{
    switch (kind->purge) {
    case PURGE_USER:
        e->user.user.status = is_hidden ? USER_DELETED : USER_ACTIVE;
        break;
    case PURGE_PROJECT:
        e->project.is_active = !is_hidden;
        break;
    case PURGE_DOMAIN:
        e->domain.is_active = !is_hidden;
        break;
    case PURGE_POLICY:
        e->policy.is_active = !is_hidden;
        break;
    case PURGE_RESOURCE_GROUP:
        e->resource_group.is_active = !is_hidden;
        break;
    }
}

static const char *removal_identify(const struct account_kind *kind, const void *row,
                                    struct uuid *ret_id)
{
    const struct user *user = row;
    const struct project *project = row;

    switch (kind->purge) {
    case PURGE_USER:
        *ret_id = user->id;
        return user->email;
    case PURGE_PROJECT:
        *ret_id = project->id;
        return project->name;
    case PURGE_DOMAIN:
        return ((const struct domain *)row)->name;
    case PURGE_POLICY:
        return ((const struct keypair_policy *)row)->name;
    case PURGE_RESOURCE_GROUP:
        return ((const struct resource_group *)row)->name;
    }
    return NULL;
}

static bool removal_is_session_of(const struct account_removal *removal, const struct session *s)
{
    switch (removal->kind->purge) {
    case PURGE_USER:
        return uuid_equals(&s->user_id, &removal->id);
    case PURGE_PROJECT:
        return uuid_equals(&s->project_id, &removal->id);
    case PURGE_DOMAIN:
        return s->domain && strcmp(s->domain, removal->name) == 0;
    case PURGE_RESOURCE_GROUP:
        return s->resource_group && strcmp(s->resource_group, removal->name) == 0;
    case PURGE_POLICY:
        break;
    }
    return false;
}

/* ---- who uses it ---- */

/* "a, b, c and 4 more" */
struct removal_names {
    struct strbuf text;
    size_t count;
};

static void removal_add_name(struct removal_names *names, const char *name)
{
    if (names->count++ < NAMES_SHOWN)
        strbuf_addf(&names->text, "%s%.40s", names->count > 1 ? ", " : "", name);
}

/* -EBUSY if there are any; the text is released. */
static int removal_fail_used(const struct account_removal *removal, struct removal_names *names,
                             const char *who, const char *remedy, struct aq_error *err)
{
    int r = 0;

    if (names->count > NAMES_SHOWN)
        strbuf_addf(&names->text, " and %zu more", names->count - NAMES_SHOWN);
    if (names->count)
        r = aq_fail_kind(err, EBUSY, "generic-bad-request", "%s '%.64s' is used by %s %s; %s",
                         removal->kind->noun, removal->name, who, names->text.data, remedy);
    strbuf_done(&names->text);
    return r;
}

/* Sessions that end already are no hindrance but to a purge. */
static int removal_check_sessions(struct account_removal *removal, struct aq_error *err)
{
    struct removal_names names = { .text = STRBUF_INIT };
    bool purges = removal->purge;

    for (const struct session *s = NULL; (s = core_next_session(removal->api->core, s));)
        if (removal_is_session_of(removal, s) && (purges || s->status != SESSION_TERMINATING))
            removal_add_name(&names, s->name);
    removal->sessions = names.count;
    if (!purges && removal->force) {
        strbuf_done(&names.text);
        return 0;
    }
    return removal_fail_used(removal, &names, "the live sessions",
                             purges ? "end them first; removing it without purge, with force, does"
                                    : "end them first, or add force, which ends them",
                             err);
}

static int removal_check_user(const struct account_removal *removal, struct aq_error *err)
{
    if (uuid_equals(&removal->who->user_id, &removal->id))
        return aq_fail_kind(err, EPERM, "generic-forbidden",
                            "'%.64s' is your own account; another superadmin can remove it",
                            removal->name);
    return 0;
}

static int removal_check_domain(const struct account_removal *removal, struct aq_error *err)
{
    struct removal_names names = { .text = STRBUF_INIT };
    const struct user *user;

    if (strcmp(removal->name, "default") == 0)
        return aq_fail_kind(err, EPERM, "generic-forbidden",
                            "the domain 'default' stays: it is meant where no domain is named");
    if (!removal->purge)
        return 0;
    for (size_t i = 0; (user = core_get_user(removal->api->core, i)); i++)
        if (user->domain && strcmp(user->domain, removal->name) == 0)
            removal_add_name(&names, user->email);
    return removal_fail_used(removal, &names, "the users", "purge them first", err);
}

static int removal_check_policy(const struct account_removal *removal, struct aq_error *err)
{
    struct removal_names names = { .text = STRBUF_INIT };
    const struct core *core = removal->api->core;
    const struct keypair *key;

    if (strcmp(removal->name, "default") == 0)
        return aq_fail_kind(err, EPERM, "generic-forbidden",
                            "the policy 'default' stays: new keypairs get it");
    for (size_t i = 0; (key = core_get_keypair(core, i)); i++) {
        const struct user *user = core_find_user(core, &key->user_id);

        if (key->policy && strcmp(key->policy, removal->name) == 0)
            removal_add_name(&names, user ? user->email : key->access_key);
    }
    return removal_fail_used(removal, &names, "keypairs of",
                             "give these another policy, or remove them", err);
}

static int removal_check_resource_group(const struct account_removal *removal, struct aq_error *err)
{
    struct removal_names names = { .text = STRBUF_INIT };
    const struct agent *agent;

    if (!removal->purge)
        return 0;
    for (size_t i = 0; (agent = core_get_agent(removal->api->core, i)); i++)
        if (agent->resource_group && strcmp(agent->resource_group, removal->name) == 0)
            removal_add_name(&names, agent->id);
    return removal_fail_used(removal, &names, "the agents",
                             "move them to another (aliquot agent set), or remove them", err);
}

static int removal_check(struct account_removal *removal, struct aq_error *err)
{
    int r = 0;

    switch (removal->kind->purge) {
    case PURGE_USER:
        r = removal_check_user(removal, err);
        break;
    case PURGE_DOMAIN:
        r = removal_check_domain(removal, err);
        break;
    case PURGE_POLICY:
        r = removal_check_policy(removal, err);
        break;
    case PURGE_RESOURCE_GROUP:
        r = removal_check_resource_group(removal, err);
        break;
    case PURGE_PROJECT:
        break;
    }
    return r < 0 ? r : removal_check_sessions(removal, err);
}

/* ---- the steps ---- */

static void removal_finish(struct account_removal *removal)
{
    removal->done(removal->data, removal->r, &removal->err);
}

static void removal_fail(struct account_removal *removal, const struct aq_error *err)
{
    removal->r = -err->code;
    removal->err = *err;
    removal_finish(removal);
}

static void removal_on_ended(void *data, int r, const struct aq_error *err)
{
    struct account_removal *removal = data;

    if (r < 0 && r != -ENOENT && removal->r == 0) { /* one that has ended meanwhile is fine */
        removal->r = r;
        removal->err = *err;
    }
    if (--removal->waiting == 0)
        removal_finish(removal);
}

static void removal_end_sessions(struct account_removal *removal)
{
    struct core *core = removal->api->core;

    removal->sessions = 0;
    removal->waiting = 1; /* so that none of the callbacks is taken for the last */
    for (const struct session *s = NULL; (s = core_next_session(core, s));) {
        if (!removal_is_session_of(removal, s) || s->status == SESSION_TERMINATING)
            continue;
        removal->sessions++;
        removal->waiting++;
        core_terminate_session(core, &s->id, false, REASON_USER_REQUESTED, removal->by,
                               removal_on_ended, removal);
    }
    removal_on_ended(removal, 0, NULL);
}

static void removal_on_purged(void *data, int r, const struct aq_error *err)
{
    struct account_removal *removal = data;
    struct aq_error why;

    if (r == 0) {
        removal_finish(removal);
        return;
    }
    why = *err;
    if (r == -ENOENT || r == -ENOTEMPTY) /* it is in use again, or has rows of its own */
        why.kind = "generic-bad-request";
    removal_fail(removal, &why);
}

static struct event_purge removal_event(const struct account_removal *removal)
{
    bool by_id = removal->kind->purge == PURGE_USER || removal->kind->purge == PURGE_PROJECT;

    return (struct event_purge){ .kind = removal->kind->purge,
                                 .id = removal->id,
                                 .name = by_id ? NULL : (char *)(uintptr_t)removal->name };
}

static void removal_purge(struct account_removal *removal)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_ACCOUNT_PURGED, clock_realtime_usec());

    e->purge_account = removal_event(removal);
    e->purge_account.name = aq_strdup(e->purge_account.name);
    core_save(removal->api->core, batch, removal->by, removal_on_purged, removal);
}

static void removal_on_hidden(void *data, int r, const struct aq_error *err)
{
    struct account_removal *removal = data;

    AQ_FAULT("api.accounts.hidden");
    if (r < 0)
        removal_fail(removal, err);
    else if (removal->purge)
        removal_purge(removal);
    else if (removal->force)
        removal_end_sessions(removal);
    else
        removal_finish(removal);
}

static void removal_hide(struct account_removal *removal)
{
    struct aq_error err = { 0 };
    struct account_change *change = account_change_new(removal->api, removal->arena, removal->kind);

    if (account_change_row(change, removal->key, NULL, &err) == 0) {
        account_set_hidden(removal->kind, &change->batch->events[0], true);
        core_save(removal->api->core, AQ_TAKE(change->batch), removal->by, removal_on_hidden,
                  removal);
        return;
    }
    account_change_drop(change);
    removal_fail(removal, &err);
}

static int removal_read_plan(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct account_removal *removal = data;
    struct event_purge purge = removal_event(removal);

    return store_plan_purge(tx, &purge, &removal->plan, err);
}

static void removal_on_planned(void *data, int r, const struct aq_error *err)
{
    struct account_removal *removal = data;

    if (r < 0)
        removal_fail(removal, err);
    else if (removal->dry_run)
        removal_finish(removal);
    else
        removal_hide(removal);
}

static int removal_begin(struct account_removal *removal, struct aq_error *err)
{
    const void *row = removal->kind->find(removal->api->core, removal->key);
    const char *name;

    if (!row)
        return problem_no_such(err, removal->kind->object, "there is no %s '%.64s'",
                               removal->kind->noun, removal->key);
    name = removal_identify(removal->kind, row, &removal->id);
    removal->name = arena_strdup(removal->arena, name);
    return removal_check(removal, err);
}

void account_remove(struct account_removal *removal)
{
    struct aq_error err = { 0 };

    if (removal_begin(removal, &err) < 0) {
        removal_fail(removal, &err);
    } else if (!removal->purge) {
        removal_on_planned(removal, 0, NULL);
    } else {
        store_read(core_store(removal->api->core), removal_read_plan, removal_on_planned, removal);
    }
}
