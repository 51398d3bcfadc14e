/* SPDX-License-Identifier: Apache-2.0 */
/* audit.c - does memory show what is stored?
 *
 * The ledger is compared with the kernels by a reader of the store, in one view of its own. Memory
 * is compared with rows object by object: they are read on the writer's thread, behind every commit
 * that was queued before; the callback comes after those have been applied and before any later one
 * is. At that moment an object in memory must equal its row, and every difference is a finding.
 *
 * Sessions are compared page by page, each at a moment of its own, so that neither the writer nor
 * the loop is held for as long as all of them take: a leader that commits nothing for 5 s loses the
 * lead. Which sessions these are is read together with the registry, which is all the rest; one
 * that ends meanwhile is skipped, and one that comes is left to the next audit.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "manager/core/loop/audit_compare.h"
#include "manager/core/scheduling/fair_share.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define AUDIT_SESSIONS_AT_A_TIME 500
#define AUDIT_AGENTS_AT_A_TIME 50

struct audit {
    struct core *core;
    struct audit_findings ledger, memory;
    struct event_batch *loaded;     /* only a list of events here */
    struct fair_share_check *usage; /* NULL = no group schedules by fair share */
    bool has_usage;
    int64_t *rows; /* of sessions that were stored ... */
    size_t row_count, rows_done;
    struct uuid *ids; /* ... and of those in memory at the same moment */
    size_t id_count, ids_done;
    char agent_id[AGENT_ID_MAX + 1]; /* the last one that was looked at */
    bool has_done_agents;
    core_audit_fn done;
    void *data;
};

static void audit_continue(struct audit *a);

static void audit_end(struct audit *a, int r, const struct aq_error *err)
{
    strbuf_add(&a->ledger.text, a->memory.text.data, a->memory.text.len);
    a->done(a->data, r < 0 ? r : a->ledger.count + a->memory.count, err,
            r < 0 ? "" : a->ledger.text.data);
    strbuf_done(&a->ledger.text);
    strbuf_done(&a->memory.text);
    event_batch_free(a->loaded);
    fair_share_check_free(a->usage);
    free(a->rows);
    free(a->ids);
    free(a);
}

/* After a step that came to 'r': is there another one? Otherwise the audit has ended. */
static bool audit_may_continue(struct audit *a, int r, const struct aq_error *err)
{
    struct aq_error stopping;

    if (r == 0 && !a->core->is_stopping)
        return true;
    if (r == 0) {
        r = aq_fail(&stopping, ECANCELED, "the manager is stopping");
        err = &stopping;
    }
    audit_end(a, r, err);
    return false;
}

/* store_visit_fn */
static int audit_take_event(void *data, struct event *e, struct aq_error *err)
{
    struct audit *a = data;
    struct event *kept = event_batch_add(a->loaded, e->kind, e->at_usec);

    (void)err;
    *kept = *e;
    *e = (struct event){ .kind = EVENT_KIND_COUNT };
    return 0;
}

static void audit_compare_loaded(struct audit *a)
{
    for (size_t i = 0; i < a->loaded->count; i++)
        audit_compare_event(a->core, &a->loaded->events[i], &a->memory);
    event_batch_free(a->loaded);
    a->loaded = event_batch_new();
}

/* ---- memory by itself, a part at a time ---- */

/* Each kernel must be found by its id. */
static void audit_check_kernels(struct audit *a, const struct session *s)
{
    for (size_t i = 0; i < s->kernel_count; i++)
        if (core_find_kernel(a->core, &s->kernels[i].id) != &s->kernels[i])
            audit_find(&a->memory, "session %s: its kernel %zu is not found by its id", s->name, i);
    if ((s->kernel_count > 1 && session_lacks_kernels(s))
        == list_is_empty(&session_entry_of(s)->queue.lacking_link))
        audit_find(&a->memory, "session %s: its kernels that wait are not those looked at",
                   s->name);
}

static void audit_check_sessions(struct audit *a)
{
    size_t end = AQ_MIN(a->id_count, a->ids_done + AUDIT_SESSIONS_AT_A_TIME);

    for (; a->ids_done < end; a->ids_done++) {
        const struct session_entry *l = session_entry_find(a->core, &a->ids[a->ids_done]);

        if (l)
            audit_check_kernels(a, &l->s);
    }
}

/* What an agent is said to have free must be the sum over its kernels. */
static void audit_check_sum(struct audit *a, struct agent_entry *agent)
{
    struct slots cached = { 0 };
    const struct slots *fresh;

    if (agent->is_stale)
        return;
    slots_copy(&cached, &agent->free);
    agent->is_stale = true;
    if (agent_entry_free_slots(agent, &fresh) < 0 || !slots_eq(&cached, fresh))
        audit_find(&a->memory, "agent %s: what is free is not what its kernels leave", agent->a.id);
    slots_done(&cached);
}

/* By their ids: agents come and go between two parts. */
static void audit_check_agents(struct audit *a)
{
    const struct core *core = a->core;
    size_t at = 0, left = core->agent_count;

    while (left) { /* the first one after the last that was looked at */
        size_t half = left / 2;
        bool is_after = strcmp(core->agents_sorted[at + half]->a.id, a->agent_id) > 0;

        at += is_after ? 0 : half + 1;
        left = is_after ? half : left - half - 1;
    }
    for (int i = 0; i < AUDIT_AGENTS_AT_A_TIME && at < core->agent_count; i++, at++) {
        audit_check_sum(a, core->agents_sorted[at]);
        (void)snprintf(a->agent_id, sizeof(a->agent_id), "%s", core->agents_sorted[at]->a.id);
    }
    a->has_done_agents = at >= core->agent_count;
}

/* ---- pages of sessions ---- */

static size_t audit_page(const struct audit *a)
{
    return AQ_MIN(a->row_count - a->rows_done, (size_t)AUDIT_SESSIONS_AT_A_TIME);
}

/* store_tx_fn */
static int audit_load_page(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct audit *a = data;

    return store_load_sessions(tx, a->rows + a->rows_done, audit_page(a), audit_take_event, a, err);
}

/* store_done_fn */
static void audit_on_page(void *data, int r, const struct aq_error *err)
{
    struct audit *a = data;

    if (!audit_may_continue(a, r, err))
        return;
    audit_compare_loaded(a);
    a->rows_done += audit_page(a);
    audit_check_sessions(a);
    audit_check_agents(a);
    audit_continue(a);
}

static void audit_continue(struct audit *a)
{
    if (a->rows_done < a->row_count || a->ids_done < a->id_count || !a->has_done_agents)
        store_write(a->core->store, audit_load_page, audit_on_page, a);
    else
        audit_end(a, 0, NULL);
}

/* ---- the registry, and how much there is of everything ---- */

/* store_tx_fn */
static int audit_load_registry(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct audit *a = data;
    int r = a->has_usage ? fair_share_check_read(tx, clock_realtime_usec(), &a->usage, err) : 0;

    if (r == 0)
        r = store_load_registry(tx, audit_take_event, a, err);
    return r < 0 ? r : store_list_living(tx, &a->rows, &a->row_count, err);
}

static void audit_compare_counts(struct audit *a)
{
    const struct core *core = a->core;
    size_t stored[EVENT_KIND_COUNT] = { [EVENT_SESSION_CREATED] = a->row_count };
    struct {
        const char *what;
        size_t in_memory, stored;
    } rows[11];
    size_t agents = 0, resource_groups = 0, count = 0;

    for (size_t i = 0; i < a->loaded->count; i++)
        stored[a->loaded->events[i].kind]++;
    for (size_t i = 0; i < core->agent_count; i++)
        agents += core->agents_sorted[i]->is_known;
    while (core_get_resource_group(core, resource_groups))
        resource_groups++;
#define ROW(name, memory, kind) \
    rows[count].what = name, rows[count].in_memory = memory, rows[count++].stored = stored[kind]
    ROW("sessions", core->sessions_by_id.count, EVENT_SESSION_CREATED);
    ROW("arrays", core->arrays_by_id.count, EVENT_ARRAY_CREATED);
    ROW("reservations", core->booking_count, EVENT_BOOKING_CREATED);
    ROW("model services", core->service_count, EVENT_SERVICE_CREATED);
    ROW("agents", agents, EVENT_AGENT_SAVED);
    ROW("users", core->users.count, EVENT_USER_SAVED);
    ROW("keypairs", core->keypairs.count, EVENT_KEYPAIR_SAVED);
    ROW("policies", core->policies.count, EVENT_KEYPAIR_POLICY_SAVED);
    ROW("domains", core->domains.count, EVENT_DOMAIN_SAVED);
    ROW("projects", core->projects.count, EVENT_PROJECT_SAVED);
    ROW("resource groups", resource_groups, EVENT_RESOURCE_GROUP_SAVED);
#undef ROW
    for (size_t i = 0; i < count; i++)
        if (rows[i].in_memory != rows[i].stored)
            audit_find(&a->memory, "%s: %zu in memory, %zu stored", rows[i].what, rows[i].in_memory,
                       rows[i].stored);
}

/* Note which sessions memory has; their kernels must be all that are found by ids. The map is walked
 * as its entries can be read side by side, which a list of 100,000 sessions cannot.
 */
static void audit_list_memory(struct audit *a)
{
    const struct core *core = a->core;
    const struct map *sessions = &core->sessions_by_id;
    size_t kernels = 0;

    a->ids = aq_alloc_array(AQ_MAX(sessions->count, (size_t)1), sizeof(*a->ids));
    for (; a->id_count < sessions->count; a->id_count++) {
        const struct session_entry *l = sessions->entries[a->id_count].value;

        a->ids[a->id_count] = l->s.id;
        kernels += l->s.kernel_count;
    }
    if (kernels != core->kernels_by_id.count)
        audit_find(&a->memory, "kernels: %zu of sessions, %zu by their ids", kernels,
                   core->kernels_by_id.count);
}

static void audit_find_usage(void *data, const char *text)
{
    audit_find(data, "%s", text);
}

/* store_done_fn */
static void audit_on_registry(void *data, int r, const struct aq_error *err)
{
    struct audit *a = data;

    if (!audit_may_continue(a, r, err))
        return;
    audit_compare_counts(a);
    audit_list_memory(a);
    audit_compare_loaded(a);
    if (a->usage)
        fair_share_check_compare(a->core, a->usage, audit_find_usage, &a->memory);
    audit_continue(a);
}

/* ---- the ledger ---- */

/* store_tx_fn */
static int audit_read_ledger(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct audit *a = data;
    int r = store_audit_ledger(tx, &a->ledger.text, err);

    a->ledger.count = AQ_MAX(r, 0);
    return AQ_MIN(r, 0);
}

/* store_done_fn */
static void audit_on_ledger(void *data, int r, const struct aq_error *err)
{
    struct audit *a = data;
    const struct core *core = a->core;

    if (!audit_may_continue(a, r, err))
        return;
    for (size_t i = 0; i < core->resource_groups.count; i++)
        a->has_usage |=
            ((const struct resource_group_entry *)core->resource_groups.entries[i].value)
                ->fair_share
            != NULL;
    store_write(core->store, audit_load_registry, audit_on_registry, a);
}

void core_audit(struct core *core, core_audit_fn done, void *data)
{
    struct audit *a = aq_alloc(sizeof(*a));

    a->core = core;
    a->done = done;
    a->data = data;
    strbuf_init(&a->ledger.text);
    strbuf_init(&a->memory.text);
    a->loaded = event_batch_new();
    store_read(core->store, audit_read_ledger, audit_on_ledger, a);
}
