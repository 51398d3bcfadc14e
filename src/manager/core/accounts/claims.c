/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of accounts that are being changed, and changes on their way to the store.
 *
 * A row is saved whole, made from the one in memory, which is replaced only once the change is
 * durable. A request that makes another change from the same row meanwhile would undo the first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manager/core/accounts/account_audit.h"
#include "manager/core/accounts/login_end.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/state.h"

struct claim {
    struct list link; /* core->claims */
    const struct event_batch *batch;
    core_done_fn done; /* once it is being saved */
    void *data;
};

static bool claims_are_same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* Does it remove the row of this event, or what that is attached to? */
static bool claims_purges(const struct event_purge *purge, const struct event *e)
{
    switch (purge->kind) {
    case PURGE_USER:
        return (e->kind == EVENT_USER_SAVED && uuid_equals(&e->user.user.id, &purge->id))
               || (e->kind == EVENT_KEYPAIR_SAVED && uuid_equals(&e->keypair.user_id, &purge->id));
    case PURGE_PROJECT:
        return e->kind == EVENT_PROJECT_SAVED && uuid_equals(&e->project.id, &purge->id);
    case PURGE_DOMAIN:
        return (e->kind == EVENT_DOMAIN_SAVED && claims_are_same(e->domain.name, purge->name))
               || (e->kind == EVENT_PROJECT_SAVED
                   && claims_are_same(e->project.domain, purge->name))
               || (e->kind == EVENT_USER_SAVED
                   && claims_are_same(e->user.user.domain, purge->name));
    case PURGE_POLICY:
        return (e->kind == EVENT_KEYPAIR_POLICY_SAVED
                && claims_are_same(e->policy.name, purge->name))
               || (e->kind == EVENT_KEYPAIR_SAVED
                   && claims_are_same(e->keypair.policy, purge->name));
    case PURGE_RESOURCE_GROUP:
        return e->kind == EVENT_RESOURCE_GROUP_SAVED
               && claims_are_same(e->resource_group.name, purge->name);
    }
    return false;
}

/* Does the event write one of the names of a domain that is renamed? A resource group may have a
 * weight for the domain, so it counts whatever it has; renamings are rare, so all collide.
 */
static bool claims_renames(const struct event *rename, const struct event *e)
{
    const char *from = rename->domain_renamed.from, *to = rename->domain_renamed.to;
    const char *name = NULL;

    switch (e->kind) {
    case EVENT_DOMAIN_SAVED:
        name = e->domain.name;
        break;
    case EVENT_PROJECT_SAVED:
        name = e->project.domain;
        break;
    case EVENT_USER_SAVED:
        name = e->user.user.domain;
        break;
    case EVENT_ACCOUNT_PURGED:
        name = e->purge_account.kind == PURGE_DOMAIN ? e->purge_account.name : NULL;
        break;
    case EVENT_DOMAIN_RENAMED:
    case EVENT_RESOURCE_GROUP_SAVED:
        return true;
    default:
        break;
    }
    return claims_are_same(name, from) || claims_are_same(name, to);
}

static bool claims_are_one_user(const struct user *a, const struct user *b)
{
    return uuid_equals(&a->id, &b->id) || claims_are_same(a->email, b->email)
           || claims_are_same(a->username, b->username);
}

static bool claims_are_one_project(const struct project *a, const struct project *b)
{
    return uuid_equals(&a->id, &b->id)
           || (claims_are_same(a->domain, b->domain) && claims_are_same(a->name, b->name));
}

static bool claims_is_keypair(const struct event *e)
{
    return e->kind == EVENT_KEYPAIR_SAVED || e->kind == EVENT_KEYPAIR_REMOVED;
}

static bool claims_meet(const struct event *a, const struct event *b)
{
    if (claims_is_keypair(a) && claims_is_keypair(b))
        return strcmp(a->keypair.access_key, b->keypair.access_key) == 0;
    if (a->kind == EVENT_DOMAIN_RENAMED || b->kind == EVENT_DOMAIN_RENAMED)
        return a->kind == EVENT_DOMAIN_RENAMED ? claims_renames(a, b) : claims_renames(b, a);
    if (a->kind != b->kind)
        return (a->kind == EVENT_ACCOUNT_PURGED && claims_purges(&a->purge_account, b))
               || (b->kind == EVENT_ACCOUNT_PURGED && claims_purges(&b->purge_account, a));
    switch (a->kind) {
    case EVENT_DOMAIN_SAVED:
        return claims_are_same(a->domain.name, b->domain.name);
    case EVENT_PROJECT_SAVED:
        return claims_are_one_project(&a->project, &b->project);
    case EVENT_USER_SAVED:
        return claims_are_one_user(&a->user.user, &b->user.user);
    case EVENT_KEYPAIR_POLICY_SAVED:
        return claims_are_same(a->policy.name, b->policy.name);
    case EVENT_RESOURCE_GROUP_SAVED:
        return claims_are_same(a->resource_group.name, b->resource_group.name);
    default:
        return false;
    }
}

static bool claims_collide(const struct event_batch *a, const struct event_batch *b)
{
    for (size_t i = 0; i < a->count; i++)
        for (size_t k = 0; k < b->count; k++)
            if (claims_meet(&a->events[i], &b->events[k]))
                return true;
    return false;
}

static struct claim *claims_find(const struct core *core, const struct event_batch *batch)
{
    LIST_FOREACH(link, &core->claims) {
        struct claim *claim = LIST_ENTRY(link, struct claim, link);

        if (claim->batch == batch)
            return claim;
    }
    return NULL;
}

int core_claim(struct core *core, const struct event_batch *batch, struct aq_error *err)
{
    struct claim *claim;

    if (claims_find(core, batch))
        return 0;
    LIST_FOREACH(link, &core->claims)
        if (claims_collide(LIST_ENTRY(link, struct claim, link)->batch, batch))
            return aq_fail_kind(err, EBUSY, "conflict",
                                "another request is changing the same; this one changed nothing: "
                                "look again, and repeat it");
    claim = aq_alloc(sizeof(*claim));
    claim->batch = batch;
    list_add(&core->claims, &claim->link);
    return 0;
}

static void claims_end(struct claim *claim)
{
    if (!claim)
        return;
    list_remove(&claim->link);
    free(claim);
}

void core_unclaim(struct core *core, const struct event_batch *batch)
{
    claims_end(claims_find(core, batch));
}

/* ---- saving ---- */

static void claims_on_saved(void *data, int r, const struct aq_error *err)
{
    struct claim *claim = data;
    core_done_fn done = claim->done;
    void *done_data = claim->data;

    claims_end(claim);
    if (done)
        done(done_data, r, err);
}

void core_save(struct core *core, struct event_batch *batch, const struct audit_who *by,
               core_done_fn done, void *data)
{
    struct aq_error err = { 0 };
    struct claim *claim;

    if (core_claim(core, batch, &err) == 0) {
        account_audit_add(core, batch, by);
        claim = claims_find(core, batch);
        /* The rows that it claims do not change before it is written. */
        for (size_t i = 0; i < batch->count; i++)
            batch->events[i].ends_logins = login_end_is_due(core, &batch->events[i]);
        claim->done = done;
        claim->data = data;
        proposal_commit_command(core, batch, claims_on_saved, claim);
        return;
    }
    event_batch_free(batch);
    if (done)
        core_defer(core, done, data, -err.code, &err);
}
