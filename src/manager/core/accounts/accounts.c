/* SPDX-License-Identifier: Apache-2.0 */
/* accounts.c - domains, projects, users, keypairs, policies and resource groups in memory */
#include <assert.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "manager/core/accounts/access.h"
#include "manager/core/accounts/accounts.h"
#include "manager/core/accounts/login_end.h"
#include "manager/core/scheduling/fair_share.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/state/array_entry.h"
#include "manager/core/state/account.h"
#include "manager/core/state/clock_adjustment.h"
#include "manager/core/state/model_service_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

/* Contents of the event move into the object of that key, a new one if there
 * is none; the old contents move into the event, which frees them.
 */
static_assert(sizeof(struct keypair_policy) <= 256 && sizeof(struct keypair) <= 256
                  && sizeof(struct user) <= 256 && sizeof(struct project) <= 256,
              "swap_in() has room for each");

static void *accounts_swap_in(struct map *map, const void *key, size_t key_len, void *contents,
                              size_t size)
{
    void *object = map_get(map, key, key_len);
    char old[256];

    if (!object) {
        object = aq_alloc(size);
        map_set(map, key, key_len, object);
    }
    memcpy(old, object, size);
    memcpy(object, contents, size);
    memcpy(contents, old, size);
    return object;
}

static void accounts_forget_names(struct core *core, const struct user *u)
{
    map_removes(&core->users_by_email, u->email);
    map_removes(&core->users_by_name, u->username);
}

/* The row keeps the time of its first write, so a change does not make a user new again. */
static void accounts_save_user(struct core *core, struct user *u, int64_t at_usec)
{
    struct user *old = map_get(&core->users, u->id.bytes, sizeof(u->id.bytes)), *saved;

    u->created_usec = old ? old->created_usec : clock_adjustment_since(core, at_usec);
    if (old)
        accounts_forget_names(core, old);
    saved = accounts_swap_in(&core->users, u->id.bytes, sizeof(u->id.bytes), u, sizeof(*u));
    map_sets(&core->users_by_email, saved->email, saved);
    map_sets(&core->users_by_name, saved->username, saved);
}

static void accounts_remove_keypair(struct core *core, const char *access_key)
{
    struct keypair *k = map_removes(&core->keypairs, access_key);

    if (k)
        entity_done(&keypair_entity, k);
    free(k);
}

/* They have another time to wait at most. */
static void accounts_touch_pending(struct core *core, const struct resource_group_entry *g)
{
    LIST_FOREACH(link, &core->sessions) {
        struct session_entry *l = LIST_ENTRY(link, struct session_entry, all_link);

        if (l->resource_group == g && l->s.status == SESSION_PENDING)
            durable_touch(core, &l->durable);
    }
}

static void accounts_read_scheduling(const struct core *core, struct resource_group_entry *g)
{
    core_read_scheduling(&g->g, &g->scheduling);
    core_default_scheduling(core, &g->scheduling);
}

static void accounts_save_rgroup(struct core *core, struct resource_group *fresh)
{
    struct resource_group_entry *g = resource_group_entry_get(core, fresh->name);
    struct resource_group old = g->g;
    int64_t timeout = g->scheduling.pending_timeout_usec;
    struct aq_error err = { 0 };

    g->g = *fresh;
    *fresh = old;
    g->is_known = true;
    accounts_read_scheduling(core, g);
    if (core_check_scheduling(&g->g, &err) < 0) /* of another version, or a plug-in that has gone */
        log_warning("resource group '%s' schedules by the built-in rule: %s: %s", g->g.name,
                    err.field, err.text);
    if (g->scheduling.pending_timeout_usec != timeout)
        accounts_touch_pending(core, g);
    core->idle_is_stale = true;
    access_forget(core);
    sched_sync_invalidate(g);
    queue_capacity_freed(core, g);
}

void core_set_fifo_retries(struct core *core, uint32_t count)
{
    if (core->fifo_retries == count)
        return;
    core->fifo_retries = count;
    for (size_t i = 0; i < core->resource_groups.count; i++) {
        struct resource_group_entry *g = core->resource_groups.entries[i].value;

        accounts_read_scheduling(core, g);
        sched_sync_invalidate(g);
        queue_capacity_freed(core, g);
    }
}

/* ---- a renamed domain ---- */

static void accounts_replace_domain(char **text, const char *from, const char *to)
{
    if (!*text || strcmp(*text, from) != 0)
        return;
    free(*text);
    *text = aq_strdup(to);
}

static void accounts_rename_domain(struct core *core, const char *from, const char *to)
{
    struct domain *d = map_removes(&core->domains, from);

    accounts_replace_domain(&d->name, from, to);
    map_sets(&core->domains, to, d);
    for (size_t i = 0; i < core->projects.count; i++)
        accounts_replace_domain(&((struct project *)core->projects.entries[i].value)->domain, from,
                                to);
    for (size_t i = 0; i < core->users.count; i++)
        accounts_replace_domain(&((struct user *)core->users.entries[i].value)->domain, from, to);
    account_rename_domain(core, from, to);
    LIST_FOREACH(link, &core->sessions) {
        struct session_entry *l = LIST_ENTRY(link, struct session_entry, all_link);

        if (strcmp(l->s.domain, from) == 0)
            session_entry_rename_domain(core, l, to);
    }
    LIST_FOREACH(link, &core->arrays) {
        struct array_entry *entry = LIST_ENTRY(link, struct array_entry, all_link);

        accounts_replace_domain(&entry->a.element.domain, from, to);
        array_entry_measure(core, entry);
    }
    LIST_FOREACH(link, &core->services)
        accounts_replace_domain(&LIST_ENTRY(link, struct model_service_entry, all_link)->s.domain,
                                from, to);
    for (size_t i = 0; i < core->resource_groups.count; i++) {
        struct resource_group_entry *g = core->resource_groups.entries[i].value;

        fair_share_rename_domain(g, from, to);
        sched_sync_invalidate(g); /* its owners have the domain in their keys */
    }
    access_forget(core);
}

/* ---- purged ---- */

static void accounts_purge_user(struct core *core, const struct uuid *id)
{
    struct user *u = map_remove(&core->users, id->bytes, sizeof(id->bytes));

    for (size_t i = core->keypairs.count; i-- > 0;) {
        const struct keypair *k = core->keypairs.entries[i].value;

        if (uuid_equals(&k->user_id, id)) {
            accounts_remove_keypair(core, k->access_key);
            i = core->keypairs.count; /* the order has changed */
        }
    }
    if (!u)
        return;
    accounts_forget_names(core, u);
    entity_done(&user_entity, u);
    free(u);
}

static void accounts_leave_project(struct user *u, const struct uuid *id)
{
    size_t kept = 0;

    for (size_t i = 0; i < u->project_count; i++)
        if (!uuid_equals(&u->project_ids[i], id))
            u->project_ids[kept++] = u->project_ids[i];
    u->project_count = kept;
}

static void accounts_purge_project(struct core *core, const struct uuid *id)
{
    struct project *p = map_remove(&core->projects, id->bytes, sizeof(id->bytes));

    if (!p)
        return;
    for (size_t i = 0; i < core->users.count; i++)
        accounts_leave_project(core->users.entries[i].value, id);
    entity_done(&project_entity, p);
    free(p);
}

static void accounts_purge_domain(struct core *core, const char *name)
{
    struct domain *d = map_removes(&core->domains, name);

    for (size_t i = core->projects.count; i-- > 0;) {
        const struct project *p = core->projects.entries[i].value;

        if (strcmp(p->domain, name) == 0) {
            struct uuid id = p->id;

            accounts_purge_project(core, &id);
            i = core->projects.count; /* the order has changed */
        }
    }
    if (!d)
        return;
    entity_done(&domain_entity, d);
    free(d);
}

static void accounts_purge_policy(struct core *core, const char *name)
{
    struct keypair_policy *p = map_removes(&core->policies, name);

    if (!p)
        return;
    entity_done(&keypair_policy_entity, p);
    free(p);
}

/* The entry stays as one that agents only name. */
static void accounts_purge_rgroup(struct core *core, const char *name)
{
    struct resource_group_entry *g = resource_group_entry_find(core, name);
    struct resource_group unknown = { 0 };

    if (!g)
        return;
    unknown.name = aq_strdup(name);
    entity_done(&resource_group_entity, &g->g);
    g->g = unknown;
    g->is_known = false;
    core_read_scheduling(&g->g, &g->scheduling);
    access_forget(core);
    sched_sync_invalidate(g);
}

static void accounts_apply_purge(struct core *core, const struct event_purge *purge)
{
    switch (purge->kind) {
    case PURGE_USER:
        accounts_purge_user(core, &purge->id);
        break;
    case PURGE_PROJECT:
        accounts_purge_project(core, &purge->id);
        break;
    case PURGE_DOMAIN:
        accounts_purge_domain(core, purge->name);
        break;
    case PURGE_POLICY:
        accounts_purge_policy(core, purge->name);
        break;
    case PURGE_RESOURCE_GROUP:
        accounts_purge_rgroup(core, purge->name);
        break;
    }
    access_forget(core); /* leaves to use a resource group went, too */
}

static void accounts_recheck(struct core *core)
{
    for (size_t i = 0; i < core->accounts.count; i++) {
        sched_sync_mark_account(core->accounts.entries[i].value);
        queue_account_changed(core, core->accounts.entries[i].value);
    }
}

void accounts_apply(struct core *core, struct event *e)
{
    login_end_tell(core, e);
    core->idle_is_stale |= e->kind == EVENT_KEYPAIR_SAVED || e->kind == EVENT_KEYPAIR_POLICY_SAVED;
    switch (e->kind) {
    case EVENT_DOMAIN_SAVED:
        accounts_swap_in(&core->domains, e->domain.name, strlen(e->domain.name), &e->domain,
                         sizeof(e->domain));
        break;
    case EVENT_DOMAIN_RENAMED:
        accounts_rename_domain(core, e->domain_renamed.from, e->domain_renamed.to);
        break;
    case EVENT_PROJECT_SAVED:
        accounts_swap_in(&core->projects, e->project.id.bytes, sizeof(e->project.id.bytes),
                         &e->project, sizeof(e->project));
        break;
    case EVENT_USER_SAVED:
        accounts_save_user(core, &e->user.user, e->at_usec);
        break;
    case EVENT_KEYPAIR_SAVED:
        accounts_swap_in(&core->keypairs, e->keypair.access_key, strlen(e->keypair.access_key),
                         &e->keypair, sizeof(e->keypair));
        break;
    case EVENT_KEYPAIR_REMOVED:
        accounts_remove_keypair(core, e->keypair.access_key);
        break;
    case EVENT_KEYPAIR_POLICY_SAVED:
        accounts_swap_in(&core->policies, e->policy.name, strlen(e->policy.name), &e->policy,
                         sizeof(e->policy));
        break;
    case EVENT_ACCOUNT_PURGED:
        accounts_apply_purge(core, &e->purge_account);
        break;
    default: /* EVENT_RESOURCE_GROUP_SAVED */
        accounts_save_rgroup(core, &e->resource_group);
        return;
    }
    accounts_recheck(core);
}
