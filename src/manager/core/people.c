/* people.c - domains, projects, users, keypairs, policies and resource groups in memory */
#include <assert.h>
#include <string.h>

#include "base/log.h"
#include "manager/core/parts.h"

/* Contents of the event move into the object of that key, a new one if there
 * is none; the old contents move into the event, which frees them.
 */
static_assert(sizeof(struct keypair_policy) <= 256 && sizeof(struct keypair) <= 256 &&
                  sizeof(struct user) <= 256 && sizeof(struct group) <= 256,
              "swap_in() has room for each");

static void *swap_in(struct map *map, const void *key, size_t key_len, void *contents, size_t size)
{
    void *object = map_get(map, key, key_len);
    char old[256];

    if (!object) {
        if (!(object = calloc(1, size)) || map_set(map, key, key_len, object) < 0)
            core_die("a user, project, policy or group");
    }
    memcpy(old, object, size);
    memcpy(object, contents, size);
    memcpy(contents, old, size);
    return object;
}

static void save_user(struct core *core, struct user *u)
{
    struct user *old = map_get(&core->users, u->id.bytes, sizeof(u->id.bytes)), *saved;

    if (old)
        map_removes(&core->users_by_email, old->email);
    saved = swap_in(&core->users, u->id.bytes, sizeof(u->id.bytes), u, sizeof(*u));
    if (map_sets(&core->users_by_email, saved->email, saved) < 0)
        core_die("a user");
}

static void remove_keypair(struct core *core, const char *access_key)
{
    struct keypair *k = map_removes(&core->keypairs, access_key);

    if (k)
        keypair_done(k);
    free(k);
}

/* They have another time to wait at most. */
static void touch_pending(struct core *core, const struct rgroup *g)
{
    LIST_FOREACH(link, &core->sessions) {
        struct live *l = LIST_ENTRY(link, struct live, all_link);

        if (l->rgroup == g && l->s.status == SESSION_PENDING)
            live_touch(core, l);
    }
}

static void save_rgroup(struct core *core, struct resource_group *fresh)
{
    struct rgroup *g = rgroup_get(core, fresh->name);
    struct resource_group old = g->g;
    int64_t timeout = g->scheduling.pending_timeout_usec;
    struct aq_error err = { 0 };

    g->g = *fresh;
    *fresh = old;
    g->is_known = true;
    core_read_scheduling(&g->g, &g->scheduling);
    if (core_check_scheduling(&g->g, &err) < 0) /* of another version, or a plug-in that has gone */
        log_warning("resource group '%s' schedules by the built-in rule: %s: %s", g->g.name,
                    err.field, err.text);
    if (g->scheduling.pending_timeout_usec != timeout)
        touch_pending(core, g);
    access_forget(core);
    kept_spoil(g);
    queue_room(core, g);
}

static void recheck_accounts(struct core *core)
{
    for (size_t i = 0; i < core->accounts.count; i++) {
        kept_account(core->accounts.entries[i].value);
        queue_account(core, core->accounts.entries[i].value);
    }
}

void apply_people(struct core *core, struct event *e)
{
    switch (e->kind) {
    case EVENT_DOMAIN_SAVED:
        swap_in(&core->domains, e->domain.name, strlen(e->domain.name), &e->domain,
                sizeof(e->domain));
        break;
    case EVENT_GROUP_SAVED:
        swap_in(&core->groups, e->group.id.bytes, sizeof(e->group.id.bytes), &e->group,
                sizeof(e->group));
        break;
    case EVENT_USER_SAVED:
        save_user(core, &e->user.user);
        break;
    case EVENT_KEYPAIR_SAVED:
        swap_in(&core->keypairs, e->keypair.access_key, strlen(e->keypair.access_key), &e->keypair,
                sizeof(e->keypair));
        break;
    case EVENT_KEYPAIR_REMOVED:
        remove_keypair(core, e->keypair.access_key);
        break;
    case EVENT_KEYPAIR_POLICY_SAVED:
        swap_in(&core->policies, e->policy.name, strlen(e->policy.name), &e->policy,
                sizeof(e->policy));
        break;
    default: /* EVENT_RESOURCE_GROUP_SAVED */
        save_rgroup(core, &e->resource_group);
        return;
    }
    recheck_accounts(core);
}
