/* SPDX-License-Identifier: Apache-2.0 */
/* lookup.c - see lookup.h */
#include "manager/core/lookup.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/agent_network.h"
#include "manager/core/state/array_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#include <string.h>
#include <strings.h>

const struct session *core_find_session(const struct core *core, const struct uuid *id)
{
    struct session_entry *l = session_entry_find(core, id);

    return l ? &l->s : NULL;
}

size_t core_count_sessions(const struct core *core)
{
    return core->sessions_by_id.count;
}

const struct kernel *core_find_kernel(const struct core *core, const struct uuid *id)
{
    const struct session_entry *l = map_get(&core->kernels_by_id, id->bytes, sizeof(id->bytes));

    for (size_t i = 0; l && i < l->s.kernel_count; i++)
        if (uuid_equals(&l->s.kernels[i].id, id))
            return &l->s.kernels[i];
    return NULL;
}

const struct session *core_next_session(const struct core *core, const struct session *after)
{
    const struct list *next = after ? session_entry_of(after)->all_link.next : core->sessions.next;

    return next == &core->sessions ? NULL : &LIST_ENTRY(next, struct session_entry, all_link)->s;
}

/* ---- arrays ---- */

bool core_get_array(const struct core *core, const struct uuid *id, struct core_array *ret)
{
    const struct array_entry *entry = array_entry_find(core, id);

    *ret = (struct core_array){ .array = NULL };
    if (!entry)
        return false;
    ret->array = &entry->a;
    ret->stop_text = entry->stop_text;
    ret->waiting = entry->waiting_count;
    ret->running = entry->living_count - entry->waiting_count;
    LIST_FOREACH(link, &entry->living) {
        const struct session *s = &LIST_ENTRY(link, struct session_entry, array_link)->s;

        if (!ret->first && s->status == SESSION_PENDING)
            ret->first = s;
        if (ret->first || !ret->waiting)
            break;
    }
    return true;
}

const struct session_array *core_list_array(const struct core *core, size_t i)
{
    const struct array_entry *entry = i < core->arrays_by_id.count
                                          ? core->arrays_by_id.entries[i].value
                                          : NULL;

    return entry ? &entry->a : NULL;
}

size_t core_list_elements(const struct core *core, const struct uuid *array_id, int64_t index,
                          const struct session **ret, size_t max)
{
    const struct array_entry *entry = array_entry_find(core, array_id);
    size_t count = 0;

    if (!entry)
        return 0;
    LIST_FOREACH(link, &entry->living) {
        const struct session *s = &LIST_ENTRY(link, struct session_entry, array_link)->s;

        if (count == max)
            break;
        if (index == DEPENDENCY_ALL || s->array_index == index)
            ret[count++] = s;
    }
    return count;
}

const struct session_array *core_find_array_named(const struct core *core,
                                                  const struct uuid *user_id, const char *name)
{
    const struct array_entry *entry = array_entry_find_named(core, user_id, name);

    return entry ? &entry->a : NULL;
}

/* ---- matching ---- */

typedef bool (*match_fn)(const struct session *s, const char *text, size_t len);

static bool lookup_id_begins(const struct uuid *id, const char *text, size_t len)
{
    char buf[UUID_TEXT_MAX];

    return len >= SESSION_ID_PREFIX_MIN && len < sizeof(buf)
           && strncasecmp(uuid_format(id, buf), text, len) == 0;
}

static bool lookup_match_id(const struct session *s, const char *text, size_t len)
{
    return lookup_id_begins(&s->id, text, len);
}

static bool lookup_match_whole_id(const struct session *s, const char *text, size_t len)
{
    return len == UUID_TEXT_MAX - 1 && lookup_match_id(s, text, len);
}

static bool lookup_match_name(const struct session *s, const char *text, size_t len)
{
    (void)len;
    return strcmp(s->name, text) == 0;
}

/* The elements of an array all begin alike, and its name means the array. */
static bool lookup_match_name_prefix(const struct session *s, const char *text, size_t len)
{
    return uuid_is_nil(&s->array_id) && strncmp(s->name, text, len) == 0;
}

static bool lookup_match_kernel(const struct session *s, const char *text, size_t len)
{
    for (size_t i = 0; i < s->kernel_count; i++)
        if (lookup_id_begins(&s->kernels[i].id, text, len))
            return true;
    return false;
}

/* By the indexes: what is asked for most. NULL if only a look at all of them can tell. */
static const struct session *lookup_find_exactly(const struct core *core, const char *access_key,
                                                 const char *text, size_t len)
{
    const struct keypair *key = core_find_keypair(core, access_key);
    const struct session *s = NULL;
    struct uuid id;

    if (len == UUID_TEXT_MAX - 1 && uuid_parse(text, &id) == 0)
        s = core_find_session(core, &id);
    if (!s && key && (s = core_find_session_named(core, &key->user_id, text))
        && strcmp(s->name, text) != 0)
        s = NULL; /* the beginning of a longer text */
    return s && strcmp(s->access_key, access_key) == 0 ? s : NULL;
}

size_t core_match_sessions(const struct core *core, const char *access_key, const char *text,
                           const struct session *ret[CORE_MATCH_MAX])
{
    static const match_fn ways[] = { lookup_match_whole_id, lookup_match_name, lookup_match_id,
                                     lookup_match_name_prefix, lookup_match_kernel };
    size_t len = strlen(text), count = 0;

    if (len == 0)
        return 0;
    if (access_key && (ret[0] = lookup_find_exactly(core, access_key, text, len)))
        return 1;
    for (size_t w = 0; w < AQ_COUNT(ways) && count == 0; w++)
        for (const struct session *s = NULL; (s = core_next_session(core, s));)
            if ((!access_key || strcmp(s->access_key, access_key) == 0) && ways[w](s, text, len)) {
                ret[count++] = s;
                if (count == CORE_MATCH_MAX)
                    break;
            }
    return count;
}

/* ---- agents ---- */

const struct agent *core_find_agent(const struct core *core, const char *id)
{
    struct agent_entry *a = agent_entry_find(core, id);

    return a && a->is_known ? &a->a : NULL;
}

const struct agent *core_get_agent(const struct core *core, size_t i)
{
    for (size_t at = 0; at < core->agent_count; at++)
        if (core->agents_sorted[at]->is_known && i-- == 0)
            return &core->agents_sorted[at]->a;
    return NULL;
}

bool core_agent_is_connected(const struct core *core, const char *id)
{
    struct agent_entry *a = agent_entry_find(core, id);

    return a && a->is_known && a->is_connected;
}

int64_t core_agent_contact_usec(const struct core *core, const char *id)
{
    const struct agent_entry *a = agent_entry_find(core, id);

    return a ? a->contact_usec : 0;
}

const char *core_agent_get_runtime(const struct core *core, const char *id, const char **ret_notes)
{
    const struct agent_entry *a = agent_entry_find(core, id);

    *ret_notes = a ? a->runtime_notes : NULL;
    return a ? a->runtime : NULL;
}

const char *core_agent_get_refusal(const struct core *core, const char *id)
{
    const struct agent_entry *a = agent_entry_find(core, id);

    return a && a->is_connected ? a->refusal : NULL;
}

const char *core_agent_get_plugins(const struct core *core, const char *id)
{
    const struct agent_entry *a = agent_entry_find(core, id);

    return a ? a->plugins : NULL;
}

const char *core_agent_get_volumes(const struct core *core, const char *id)
{
    const struct agent_entry *a = agent_entry_find(core, id);

    return a ? a->volumes_text : NULL;
}

void core_agent_write_network(const struct core *core, const char *id, struct jsonw *w)
{
    const struct agent_entry *a = agent_entry_find(core, id);

    if (a)
        agent_network_write(a, w);
    else
        jsonw_null(w);
}

int core_get_occupied(const struct core *core, const char *agent_id, struct slots *ret)
{
    struct agent_entry *a = agent_entry_find(core, agent_id);
    struct slots sum = { 0 };
    int r = 0;

    if (a) {
        const struct slots *free;

        slots_copy(&sum, &a->a.available);
        if ((r = agent_entry_free_slots(a, &free)) == 0)
            r = slots_sub(&sum, free);
    }
    if (r < 0) {
        slots_done(&sum);
        return r;
    }
    slots_done(ret);
    *ret = sum;
    return 0;
}

/* ---- accounts ---- */

const struct keypair *core_find_keypair(const struct core *core, const char *access_key)
{
    return map_gets(&core->keypairs, access_key);
}

const struct user *core_find_user(const struct core *core, const struct uuid *id)
{
    return map_get(&core->users, id->bytes, sizeof(id->bytes));
}

const struct user *core_find_user_by_email(const struct core *core, const char *email)
{
    return map_gets(&core->users_by_email, email);
}

const struct user *core_find_user_by_name(const struct core *core, const char *username)
{
    return map_gets(&core->users_by_name, username);
}

const struct user *core_get_user(const struct core *core, size_t i)
{
    return i < core->users.count ? core->users.entries[i].value : NULL;
}

const struct keypair *core_get_keypair(const struct core *core, size_t i)
{
    return i < core->keypairs.count ? core->keypairs.entries[i].value : NULL;
}

const struct domain *core_find_domain(const struct core *core, const char *name)
{
    return map_gets(&core->domains, name);
}

const struct project *core_find_project(const struct core *core, const struct uuid *id)
{
    return map_get(&core->projects, id->bytes, sizeof(id->bytes));
}

const struct project *core_find_project_named(const struct core *core, const char *domain,
                                              const char *name)
{
    for (size_t i = 0; i < core->projects.count; i++) {
        const struct project *g = core->projects.entries[i].value;

        if (strcmp(g->name, name) == 0 && strcmp(g->domain, domain) == 0)
            return g;
    }
    return NULL;
}

const struct keypair_policy *core_find_policy(const struct core *core, const char *name)
{
    return map_gets(&core->policies, name);
}

const struct resource_group *core_find_resource_group(const struct core *core, const char *name)
{
    const struct resource_group_entry *g = resource_group_entry_find(core, name);

    return g && g->is_known ? &g->g : NULL;
}

/* Groups are few: the i-th by name is the one with i known names before it. */
const struct resource_group *core_get_resource_group(const struct core *core, size_t i)
{
    for (size_t at = 0; at < core->resource_groups.count; at++) {
        const struct resource_group_entry *g = core->resource_groups.entries[at].value;
        size_t before = 0;

        if (!g->is_known)
            continue;
        for (size_t other = 0; other < core->resource_groups.count; other++) {
            const struct resource_group_entry *o = core->resource_groups.entries[other].value;

            before += o->is_known && strcmp(o->g.name, g->g.name) < 0;
        }
        if (before == i)
            return &g->g;
    }
    return NULL;
}

struct core_counts core_get_counts(const struct core *core)
{
    struct core_counts counts = core->counts;

    for (size_t i = 0; i < core->resource_groups.count; i++)
        counts.pending +=
            ((const struct resource_group_entry *)core->resource_groups.entries[i].value)->pending;
    for (const struct session *s = NULL; (s = core_next_session(core, s));) {
        if (s->status == SESSION_RUNNING || s->status == SESSION_RUNNING_DEGRADED
            || s->status == SESSION_RESTARTING)
            counts.running++;
        else if (s->status == SESSION_TERMINATING)
            counts.terminating++;
        else if (s->status != SESSION_PENDING)
            counts.starting++;
    }
    for (size_t i = 0; i < core->agent_count; i++) {
        counts.agents += core->agents_sorted[i]->is_known;
        counts.agents_alive += core->agents_sorted[i]->is_known
                               && core->agents_sorted[i]->a.status == AGENT_ALIVE;
    }
    return counts;
}
