/* SPDX-License-Identifier: Apache-2.0 */
/* orphans.c - kernels that an agent has and the manager does not know */
#include "manager/core/nodes/orphans.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/nodes/lost_commits.h"
#include "manager/core/nodes/orphans_internal.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/session/agent_command.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"
#include "store/audit_log.h"
#include "store/setting.h"

/* What liars can make us keep. Each agent has half of what is free, beyond a few. */
#define ORPHANS_MAX 65536
#define ORPHANS_LEAST 64
#define ORDERS_BYTES_MAX ((size_t)64 << 20)
#define ORDERS_BYTES_LEAST ((size_t)256 << 10)
#define ASK_AGAIN_USEC (30 * USEC_PER_SEC)

static void orphan_drop(struct core *core, struct orphan *o)
{
    size_t order_bytes = o->order ? strlen(o->order) : 0;
    struct orphan_agent *agent = o->agent;

    (void)map_remove(&core->orphans.by_kernel, &o->kernel_id, sizeof(o->kernel_id));
    list_remove(&o->link);
    core->orphans.order_bytes -= order_bytes;
    agent->order_bytes -= order_bytes;
    free(o->order);
    free(o);
    if (--agent->count)
        return;
    (void)map_removes(&core->orphans.by_agent, agent->id);
    free(agent);
}

void orphans_done(struct core *core)
{
    struct map *all = &core->orphans.by_kernel;

    while (all->count)
        orphan_drop(core, all->entries[all->count - 1].value);
    map_done(all);
    map_done(&core->orphans.by_agent);
}

void orphans_drop_session(struct core *core, const struct uuid *session_id)
{
    for (size_t i = core->orphans.by_kernel.count; i-- > 0;) {
        struct orphan *o = core->orphans.by_kernel.entries[i].value;

        if (uuid_equals(&o->session_id, session_id))
            orphan_drop(core, o);
    }
}

/* ---- what agents say ---- */

/* May an agent that has 'own' of the 'used' have 'more'? */
static bool orphan_has_room(size_t own, size_t least, size_t used, size_t max, size_t more)
{
    size_t left = max - used;

    return more <= left && (own + more <= least || own + more <= left / 2);
}

static struct orphan_agent *orphan_agent_get(struct core *core, const char *id)
{
    struct orphan_agent *agent = map_gets(&core->orphans.by_agent, id);

    if (agent)
        return agent;
    agent = aq_alloc(sizeof(*agent));
    list_init(&agent->kernels);
    (void)snprintf(agent->id, sizeof(agent->id), "%s", id);
    (void)map_sets(&core->orphans.by_agent, id, agent);
    return agent;
}

static struct orphan *orphan_add(struct core *core, const struct agent_entry *a,
                                 const struct msg_kernel_status *m)
{
    const struct orphan_agent *had = map_gets(&core->orphans.by_agent, a->a.id);
    struct orphan *o;

    if (!orphan_has_room(had ? had->count : 0, ORPHANS_LEAST, core->orphans.by_kernel.count,
                         ORPHANS_MAX, 1))
        return NULL;
    o = aq_alloc(sizeof(*o));
    (void)map_set(&core->orphans.by_kernel, &m->kernel_id, sizeof(m->kernel_id), o);
    o->kernel_id = m->kernel_id;
    o->session_id = m->session_id;
    o->agent = orphan_agent_get(core, a->a.id);
    o->agent->count++;
    list_add(&o->agent->kernels, &o->link);
    return o;
}

/* It may have been started after the backup. */
static bool orphan_may_be_newer(const struct session_entry *l, const struct msg_kernel_status *m)
{
    for (size_t i = 0; l && i < l->s.kernel_count; i++)
        if (uuid_equals(&l->s.kernels[i].id, &m->kernel_id))
            return m->attempt >= l->s.kernels[i].attempt;
    return !l;
}

bool orphans_keep(struct core *core, struct agent_entry *a, const struct session_entry *l,
                  const struct msg_kernel_status *m)
{
    int64_t now = clock_monotonic_usec();
    bool is_of_lost_commit = lost_commits_note(core, a->a.id, m->epoch, m->commit);
    struct orphan *o;

    if ((!core->orphans.restored_usec && !is_of_lost_commit) || !orphan_may_be_newer(l, m))
        return false;
    o = map_get(&core->orphans.by_kernel, &m->kernel_id, sizeof(m->kernel_id));
    if (!o && !(o = orphan_add(core, a, m)))
        return true; /* not listed, and not ended either */
    if (strcmp(o->agent->id, a->a.id) != 0)
        return true; /* the first who has it */
    o->is_of_lost_commit = is_of_lost_commit;
    o->attempt = m->attempt;
    o->state = m->state;
    o->heartbeat = a->heartbeat;
    if (!o->order && !o->is_ending && now >= o->ask_usec) {
        o->ask_usec = now + ASK_AGAIN_USEC;
        agent_command_describe(core, a->a.id, &o->kernel_id);
    }
    return !o->is_ending;
}

void orphans_take_order(struct core *core, const struct agent_entry *a,
                        const struct msg_kernel_order *m)
{
    struct orphan *o = map_get(&core->orphans.by_kernel, &m->kernel_id, sizeof(m->kernel_id));
    size_t len = m->order ? strlen(m->order) : 0;

    if (!o || o->order || strcmp(o->agent->id, a->a.id) != 0)
        return;
    o->is_unreadable = !m->order;
    if (!m->order
        || !orphan_has_room(o->agent->order_bytes, ORDERS_BYTES_LEAST, core->orphans.order_bytes,
                            ORDERS_BYTES_MAX, len))
        return;
    o->order = aq_strdup(m->order);
    o->agent->order_bytes += len;
    core->orphans.order_bytes += len;
}

/* All, or those that the agent's last heartbeat did not have. */
static void orphans_drop(struct core *core, const struct orphan_agent *agent,
                         const uint32_t *heartbeat)
{
    AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;
    struct list *it;

    list_cursor_begin(&cursor, &agent->kernels);
    while ((it = list_cursor_next(&cursor))) { /* the last one takes 'agent' with it */
        struct orphan *o = LIST_ENTRY(it, struct orphan, link);

        if (!heartbeat || o->heartbeat != *heartbeat)
            orphan_drop(core, o);
    }
}

void orphans_drop_absent(struct core *core, const struct agent_entry *a)
{
    const struct orphan_agent *agent = map_gets(&core->orphans.by_agent, a->a.id);

    if (agent)
        orphans_drop(core, agent, &a->heartbeat);
}

void orphans_drop_agent(struct core *core, const char *agent_id)
{
    const struct orphan_agent *agent = map_gets(&core->orphans.by_agent, agent_id);

    if (agent)
        orphans_drop(core, agent, NULL);
}

/* ---- the mark of a restore ---- */

static int orphans_read_mark(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct core *core = data;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = setting_get(tx, SETTING_RESTORED, &text, err);

    if (r == 0)
        core->orphans.restored_usec = strtoll(text.data, NULL, 10);
    return r == -ENOENT ? 0 : r;
}

int orphans_load(struct core *core, struct aq_error *err)
{
    int r = store_call(core->store, orphans_read_mark, core, err);

    if (r == 0 && core->orphans.restored_usec)
        log_warning("the database was restored from a backup: no session is started, and what is "
                    "newer on agents is kept, until 'aliquot admin orphan finish'");
    return r;
}

int64_t core_restored_usec(const struct core *core)
{
    return core->orphans.restored_usec;
}

/* ---- the list ---- */

static int orphan_compare(const void *a, const void *b)
{
    const struct orphan *x = *(const struct orphan *const *)a, *y = *(struct orphan *const *)b;
    int r = memcmp(&x->session_id, &y->session_id, sizeof(x->session_id));

    return r ? r : memcmp(&x->kernel_id, &y->kernel_id, sizeof(x->kernel_id));
}

void core_each_orphan(struct core *core, core_orphan_fn each, void *data)
{
    size_t count = core->orphans.by_kernel.count;
    AQ_CLEANUP(aq_freep) struct orphan **sorted = aq_alloc_array(count + 1,
                                                                 sizeof(struct orphan *));

    for (size_t i = 0; i < count; i++)
        sorted[i] = core->orphans.by_kernel.entries[i].value;
    qsort(sorted, count, sizeof(struct orphan *), orphan_compare);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1;
             end < count && uuid_equals(&sorted[end]->session_id, &sorted[i]->session_id);)
            end++;
        orphan_adoption_describe(core, sorted + i, end - i, each, data);
    }
}

/* ---- ending them ---- */

static size_t orphans_end(struct core *core, const struct uuid *session_id)
{
    size_t count = 0;

    for (size_t i = 0; i < core->orphans.by_kernel.count; i++) {
        struct orphan *o = core->orphans.by_kernel.entries[i].value;

        if (session_id && !uuid_equals(&o->session_id, session_id))
            continue;
        o->is_ending = true;
        agent_command_end_orphan(core, o->agent->id, &o->kernel_id, o->attempt);
        count++;
    }
    return count;
}

struct orphan_end {
    struct core *core;
    struct uuid session_id;
    core_done_fn done;
    void *data;
};

/* The entry is durable. */
static void orphans_on_end_noted(void *data, int r, const struct aq_error *err)
{
    struct orphan_end *end = data;

    if (r == 0)
        (void)orphans_end(end->core, &end->session_id);
    end->done(end->data, r, err);
    free(end);
}

static bool orphans_have(const struct core *core, const struct uuid *session_id)
{
    for (size_t i = 0; i < core->orphans.by_kernel.count; i++) {
        const struct orphan *o = core->orphans.by_kernel.entries[i].value;

        if (uuid_equals(&o->session_id, session_id))
            return true;
    }
    return false;
}

void core_end_orphan(struct core *core, const struct uuid *session_id, const struct audit_who *by,
                     core_done_fn done, void *data)
{
    struct orphan_end *end;
    char id[UUID_TEXT_MAX];
    struct aq_error err = { 0 };

    if (!orphans_have(core, session_id)) {
        core_defer(core, done, data,
                   aq_fail_kind(&err, ENOENT, "session-not-found", "No such session."), &err);
        return;
    }
    end = aq_alloc(sizeof(*end));
    *end = (struct orphan_end){ core, *session_id, done, data };
    core_note_change(core,
                     &(struct audit_change){ .action = "end-orphan",
                                             .object_kind = "session",
                                             .object_id = uuid_format(session_id, id) },
                     by, orphans_on_end_noted, end);
}

/* ---- the end of it all ---- */

struct finish {
    struct core *core;
    struct audit_by by;
    core_done_fn done;
    void *data;
};

static int finish_write(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct audit_change change = { .action = "finish-restore", .object_kind = "cluster" };
    const struct finish *f = data;
    int r = setting_set(tx, SETTING_RESTORED, "0", err);

    return r < 0 || !f->by.is_some ? r : audit_log_add_change(tx, &f->by.who, &change, err);
}

static void finish_on_written(void *data, int r, const struct aq_error *err)
{
    struct finish *f = data;
    struct core *core = f->core;

    if (r == 0) {
        (void)orphans_end(core, NULL);
        orphans_done(core);
        core->orphans.restored_usec = 0;
        for (size_t i = 0; i < core->resource_groups.count; i++) {
            struct resource_group_entry *g = core->resource_groups.entries[i].value;

            g->needs_pass = true;
        }
        core_schedule_turn(core);
        log_info("the restore is finished: sessions are started again");
    }
    f->done(f->data, r, err);
    free(f);
}

/* Agents that were there when the backup was made, and have not told what they have. */
static size_t finish_count_away(const struct core *core, const char **ret_first)
{
    size_t count = 0;

    for (size_t i = 0; i < core->agent_count; i++) {
        const struct agent_entry *a = core->agents_sorted[i];

        if (!a->is_known || a->a.status == AGENT_TERMINATED || (a->is_connected && a->is_synced))
            continue;
        *ret_first = count++ ? *ret_first : a->a.id;
    }
    return count;
}

static int finish_check(const struct core *core, struct aq_error *err)
{
    const char *away = NULL;
    size_t undecided = 0, away_count = finish_count_away(core, &away);

    for (size_t i = 0; i < core->orphans.by_kernel.count; i++) {
        const struct orphan *o = core->orphans.by_kernel.entries[i].value;

        undecided += !o->is_ending;
    }
    if (undecided)
        return aq_fail(err, EINVAL,
                       "%zu containers that are newer than the backup are neither adopted nor "
                       "ended: 'aliquot admin orphan ls' shows them; force ends them",
                       undecided);
    if (away_count)
        return aq_fail(err, EINVAL,
                       "%zu agents have not come back yet, e.g. '%s': wait for them, or force: "
                       "what they have and is newer than the backup is ended when they come",
                       away_count, away);
    return 0;
}

void core_finish_restore(struct core *core, bool forced, const struct audit_who *by,
                         core_done_fn done, void *data)
{
    struct finish *f;
    struct aq_error err = { 0 };
    int r = 0;

    if (!core->orphans.restored_usec)
        r = aq_fail(&err, EINVAL, "this cluster was not restored, or that is finished");
    if (r == 0 && !forced)
        r = finish_check(core, &err);
    if (r < 0) {
        core_defer(core, done, data, r, &err);
        return;
    }
    f = aq_alloc(sizeof(*f));
    *f = (struct finish){ core, audit_by_copy(by), done, data };
    store_write(core->store, finish_write, finish_on_written, f);
}
