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
#include "manager/api/accounts.h"

#define NAMES_SHOWN 3

struct removal_params {
    bool force, purge, dry_run;
};

const struct field account_removal_fields[] = {
    { "force", FIELD_BOOL, 0, offsetof(struct removal_params, force),
      .doc = "end its live sessions" },
    { "purge", FIELD_BOOL, 0, offsetof(struct removal_params, purge),
      .doc = "remove the row and what is attached to it for good; not while sessions are live" },
    { "dry_run", FIELD_BOOL, 0, offsetof(struct removal_params, dry_run),
      .doc = "change nothing, say what would be done" },
    FIELD_END,
};

struct removal {
    struct api *api;
    struct request *req;
    const struct account_kind *kind;
    struct removal_params params;
    const char *key;
    struct uuid id;   /* of a user or project */
    const char *name; /* in the request's arena */
    struct purge_plan plan;
    size_t sessions; /* live ones that are, or would be ended */
    size_t waiting;  /* of them: end is not durable yet */
    int r;           /* of the first that failed */
    struct aq_error err;
};

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

static void removal_set_hidden(const struct account_kind *kind, struct event *e, bool is_hidden)
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

static bool removal_is_session_of(const struct removal *removal, const struct session *s)
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
static int removal_fail_used(const struct removal *removal, struct removal_names *names,
                             const char *who, const char *remedy, struct aq_error *err)
{
    int r = 0;

    if (names->count > NAMES_SHOWN)
        strbuf_addf(&names->text, " and %zu more", names->count - NAMES_SHOWN);
    if (!strbuf_ok(&names->text))
        r = aq_fail_oom(err);
    else if (names->count)
        r = aq_fail_kind(err, EBUSY, "generic-bad-request", "%s '%.64s' is used by %s %s; %s",
                         removal->kind->noun, removal->name, who, names->text.data, remedy);
    strbuf_done(&names->text);
    return r;
}

/* Sessions that end already are no hindrance but to a purge. */
static int removal_check_sessions(struct removal *removal, struct aq_error *err)
{
    struct removal_names names = { .text = STRBUF_INIT };
    bool purges = removal->params.purge;

    for (const struct session *s = NULL; (s = core_next_session(removal->api->core, s));)
        if (removal_is_session_of(removal, s) && (purges || s->status != SESSION_TERMINATING))
            removal_add_name(&names, s->name);
    removal->sessions = names.count;
    if (!purges && removal->params.force) {
        strbuf_done(&names.text);
        return 0;
    }
    return removal_fail_used(removal, &names, "the live sessions",
                             purges ? "end them first; removing it without purge, with force, does"
                                    : "end them first, or add force, which ends them",
                             err);
}

static int removal_check_user(const struct removal *removal, struct aq_error *err)
{
    if (uuid_equals(&api_principal(removal->req)->user_id, &removal->id))
        return aq_fail_kind(err, EPERM, "generic-forbidden",
                            "'%.64s' is your own account; another superadmin can remove it",
                            removal->name);
    return 0;
}

static int removal_check_domain(const struct removal *removal, struct aq_error *err)
{
    struct removal_names names = { .text = STRBUF_INIT };
    const struct user *user;

    if (strcmp(removal->name, "default") == 0)
        return aq_fail_kind(err, EPERM, "generic-forbidden",
                            "the domain 'default' stays: it is meant where no domain is named");
    if (!removal->params.purge)
        return 0;
    for (size_t i = 0; (user = core_get_user(removal->api->core, i)); i++)
        if (user->domain && strcmp(user->domain, removal->name) == 0)
            removal_add_name(&names, user->email);
    return removal_fail_used(removal, &names, "the users", "purge them first", err);
}

static int removal_check_policy(const struct removal *removal, struct aq_error *err)
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

static int removal_check_resource_group(const struct removal *removal, struct aq_error *err)
{
    struct removal_names names = { .text = STRBUF_INIT };
    const struct agent *agent;

    if (!removal->params.purge)
        return 0;
    for (size_t i = 0; (agent = core_get_agent(removal->api->core, i)); i++)
        if (agent->resource_group && strcmp(agent->resource_group, removal->name) == 0)
            removal_add_name(&names, agent->id);
    return removal_fail_used(removal, &names, "the agents",
                             "start them with another resource_group, or remove them", err);
}

static int removal_check(struct removal *removal, struct aq_error *err)
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

static void removal_reply(struct removal *removal)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    if (removal->r < 0) {
        request_fail(removal->req, &removal->err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "name", removal->name);
    jsonw_member_str(&w, "status", removal->params.purge ? "purged" : "removed");
    jsonw_member_bool(&w, "dry_run", removal->params.dry_run);
    jsonw_member_int(&w, "live_sessions", (int64_t)removal->sessions);
    jsonw_member_int(&w, "keypairs", removal->plan.keypairs);
    jsonw_member_int(&w, "memberships", removal->plan.memberships);
    jsonw_member_int(&w, "projects", removal->plan.projects);
    jsonw_member_int(&w, "resource_group_access", removal->plan.grants);
    jsonw_member_int(&w, "ended_sessions", removal->plan.ended_sessions);
    jsonw_object_end(&w);
    request_reply_json(removal->req, 200, &out);
}

static void removal_on_ended(void *data, int r, const struct aq_error *err)
{
    struct removal *removal = data;

    if (r < 0 && r != -ENOENT && removal->r == 0) { /* one that has ended meanwhile is fine */
        removal->r = r;
        removal->err = *err;
    }
    if (--removal->waiting == 0)
        removal_reply(removal);
}

static void removal_end_sessions(struct removal *removal)
{
    struct core *core = removal->api->core;

    removal->sessions = 0;
    removal->waiting = 1; /* so that none of the callbacks is taken for the last */
    for (const struct session *s = NULL; (s = core_next_session(core, s));) {
        if (!removal_is_session_of(removal, s) || s->status == SESSION_TERMINATING)
            continue;
        removal->sessions++;
        removal->waiting++;
        core_terminate_session(core, &s->id, false, REASON_USER_REQUESTED, removal_on_ended,
                               removal);
    }
    removal_on_ended(removal, 0, NULL);
}

static void removal_on_purged(void *data, int r, const struct aq_error *err)
{
    struct removal *removal = data;

    if (r < 0)
        request_fail(removal->req, err);
    else
        removal_reply(removal);
}

static struct event_purge removal_event(const struct removal *removal)
{
    bool by_id = removal->kind->purge == PURGE_USER || removal->kind->purge == PURGE_PROJECT;

    return (struct event_purge){ .kind = removal->kind->purge,
                                 .id = removal->id,
                                 .name = by_id ? NULL : (char *)(uintptr_t)removal->name };
}

static void removal_purge(struct removal *removal)
{
    AQ_CLEANUP(event_batch_freep) struct event_batch *batch = event_batch_new();
    struct event_purge purge = removal_event(removal);
    struct aq_error err = { 0 };
    struct event *e = batch ? event_batch_add(batch, EVENT_ACCOUNT_PURGED, clock_realtime_usec())
                            : NULL;

    if (!e || (purge.name && !(purge.name = strdup(purge.name)))) {
        aq_fail_oom(&err);
        request_fail(removal->req, &err);
        return;
    }
    e->purge_account = purge;
    core_save(removal->api->core, AQ_TAKE(batch), removal_on_purged, removal);
}

static void removal_on_hidden(void *data, int r, const struct aq_error *err)
{
    struct removal *removal = data;

    AQ_FAULT("api.accounts.hidden");
    if (r < 0)
        request_fail(removal->req, err);
    else if (removal->params.purge)
        removal_purge(removal);
    else if (removal->params.force)
        removal_end_sessions(removal);
    else
        removal_reply(removal);
}

static void removal_hide(struct removal *removal)
{
    struct aq_error err = { 0 };
    struct event_batch *batch = account_copy(removal->api, removal->req, removal->kind,
                                             removal->key, &err);

    if (!batch) {
        request_fail(removal->req, &err);
        return;
    }
    removal_set_hidden(removal->kind, &batch->events[0], true);
    core_save(removal->api->core, batch, removal_on_hidden, removal);
}

static int removal_read_plan(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct removal *removal = data;
    struct event_purge purge = removal_event(removal);

    return store_plan_purge(tx, &purge, &removal->plan, err);
}

static void removal_on_planned(void *data, int r, const struct aq_error *err)
{
    struct removal *removal = data;

    if (r < 0)
        request_fail(removal->req, err);
    else if (removal->params.dry_run)
        removal_reply(removal);
    else
        removal_hide(removal);
}

/* ---- requests ---- */

static int removal_begin(struct removal *removal, struct aq_error *err)
{
    const void *row;
    const char *name;

    if (api_decode(removal->req, &removal->params, NULL, err) < 0)
        return -err->code;
    if (!(row = removal->kind->find(removal->api->core, removal->key)))
        return problem_no_such(err, removal->kind->object, "there is no %s '%.64s'",
                               removal->kind->noun, removal->key);
    name = removal_identify(removal->kind, row, &removal->id);
    if (!(removal->name = arena_strdup(request_get_arena(removal->req), name)))
        return aq_fail_oom(err);
    return removal_check(removal, err);
}

void account_remove(struct api *api, struct request *req, const struct account_kind *kind)
{
    struct removal *removal = arena_alloc(request_get_arena(req), sizeof(*removal));
    struct aq_error err = { 0 };

    if (!removal) {
        aq_fail_oom(&err);
        request_fail(req, &err);
        return;
    }
    *removal = (struct removal){
        .api = api, .req = req, .kind = kind, .key = request_get_param(req, "key")
    };
    if (removal_begin(removal, &err) < 0)
        request_fail(req, &err);
    else if (!removal->params.purge)
        removal_on_planned(removal, 0, NULL);
    else if (store_read(core_store(api->core), removal_read_plan, removal_on_planned, removal)
             < 0) {
        aq_fail_oom(&err);
        request_fail(req, &err);
    }
}

void account_restore(struct api *api, struct request *req, const struct account_kind *kind)
{
    struct event_batch *batch = NULL;
    struct api_list *reply = NULL;

    if (!account_prepare(api, req, kind, request_get_param(req, "key"),
                         account_new_params(req, kind), &batch, &reply))
        return;
    removal_set_hidden(kind, &batch->events[0], false);
    account_save(api, req, batch, reply);
}
