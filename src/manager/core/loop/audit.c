/* SPDX-License-Identifier: Apache-2.0 */
/* audit.c - does memory show what is stored?
 *
 * The fresh load runs on the writer's thread, behind every commit that was
 * queued before; its callback comes after those have been applied and before
 * any later one is. At that moment memory must equal the load, object by
 * object, and every difference is a finding.
 */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "manager/core/nodes/registration.h"
#include "manager/core/scheduling/fair_share.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/array_entry.h"
#include "manager/core/state/booking_entry.h"
#include "manager/core/state/model_service_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

struct audit {
    struct core *core;
    struct event_batch *loaded;     /* only a list of events here */
    struct fair_share_check *usage; /* NULL = no group schedules by fair share */
    bool has_usage;
    struct strbuf findings;
    int count;
    core_audit_fn done;
    void *data;
};

static void audit_find(struct audit *a, const char *fmt, ...) AQ_PRINTF(2, 3);

static void audit_find(struct audit *a, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    strbuf_vaddf(&a->findings, fmt, args);
    va_end(args);
    strbuf_addc(&a->findings, '\n');
    a->count++;
}

static bool audit_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static const char *audit_text_or(const char *text)
{
    return text ? text : "nothing";
}

/* ---- sessions ---- */

static bool audit_same_dependencies(const struct session *m, const struct session *s)
{
    if (m->dependency_count != s->dependency_count)
        return false;
    for (size_t i = 0; i < s->dependency_count; i++) {
        bool found = false;

        for (size_t k = 0; k < m->dependency_count; k++)
            found |= dependency_is_same(&m->dependencies[k], &s->dependencies[i])
                     && m->dependencies[k].condition == s->dependencies[i].condition
                     && m->dependencies[k].ended == s->dependencies[i].ended
                     && (s->dependencies[i].ended || s->dependencies[i].is_array
                         || m->dependencies[k].has_run == s->dependencies[i].has_run);
        if (!found)
            return false;
    }
    return true;
}

static void audit_compare_kernel(struct audit *a, const struct kernel *m, const struct kernel *s)
{
    char id[UUID_TEXT_MAX];

    uuid_format(&s->id, id);
    if (!uuid_equals(&m->id, &s->id) || m->index != s->index || strcmp(m->role, s->role) != 0)
        audit_find(a, "kernel %s: memory has another in its place", id);
    if (m->status != s->status || m->version != s->version || m->attempt != s->attempt)
        audit_find(a, "kernel %s: %s (version %u, attempt %u) in memory, %s (%u, %u) stored", id,
                   kernel_status_name(m->status), (unsigned)m->version, (unsigned)m->attempt,
                   kernel_status_name(s->status), (unsigned)s->version, (unsigned)s->attempt);
    if (!audit_same_text(m->agent_id, s->agent_id))
        audit_find(a, "kernel %s: on agent %s in memory, %s stored", id, audit_text_or(m->agent_id),
                   audit_text_or(s->agent_id));
    if (!slots_eq(&m->requested, &s->requested))
        audit_find(a, "kernel %s: requests differ", id);
    if (!audit_same_text(m->alloc, s->alloc) || !audit_same_text(m->service_ports, s->service_ports)
        || m->has_exit != s->has_exit || m->exit_code != s->exit_code
        || m->status_changed_usec != s->status_changed_usec)
        audit_find(a, "kernel %s: devices, ports, exit code or time of change differ", id);
}

static bool audit_same_rerun(const struct rerun_record *m, const struct rerun_record *s)
{
    char memory[RERUN_TEXT_MAX], stored[RERUN_TEXT_MAX];

    return m && s ? strcmp(rerun_format(m, memory), rerun_format(s, stored)) == 0 : m == s;
}

static bool audit_same_replica(const struct session_replica *m, const struct session_replica *s)
{
    if (!m || !s)
        return m == s;
    return uuid_equals(&m->service_id, &s->service_id) && m->revision == s->revision
           && m->number == s->number && m->ratio_ppm == s->ratio_ppm
           && m->ready_usec == s->ready_usec && m->draining_usec == s->draining_usec
           && m->has_half_share == s->has_half_share && m->failed_usec == s->failed_usec;
}

static void audit_compare_session(struct audit *a, const struct session *s)
{
    const struct session_entry *l = session_entry_find(a->core, &s->id);
    const struct session *m = l ? &l->s : NULL;
    char id[UUID_TEXT_MAX];

    uuid_format(&s->id, id);
    if (!m) {
        audit_find(a, "session %s: stored as %s, not in memory", id,
                   session_status_name(s->status));
        return;
    }
    if (m->status != s->status || m->version != s->version)
        audit_find(a, "session %s: %s (version %u) in memory, %s (%u) stored", id,
                   session_status_name(m->status), (unsigned)m->version,
                   session_status_name(s->status), (unsigned)s->version);
    if (m->row != s->row || strcmp(m->name, s->name) != 0 || m->type != s->type
        || m->priority != s->priority || !uuid_equals(&m->user_id, &s->user_id)
        || !uuid_equals(&m->project_id, &s->project_id) || strcmp(m->access_key, s->access_key) != 0
        || !audit_same_text(m->domain, s->domain)
        || !audit_same_text(m->resource_group, s->resource_group)
        || m->is_spec_short != s->is_spec_short || !session_spec_equals(m->spec, s->spec)
        || !audit_same_text(m->image, s->image) || !audit_same_text(m->tag, s->tag)
        || m->is_multi_node != s->is_multi_node)
        audit_find(a, "session %s: name, owner, group, priority or spec differ", id);
    if (m->result != s->result || m->forced != s->forced || !audit_same_text(m->reason, s->reason)
        || !audit_same_text(m->status_data, s->status_data))
        audit_find(a, "session %s: result, force or reason differ (%s in memory, %s stored)", id,
                   audit_text_or(m->reason), audit_text_or(s->reason));
    if (m->retry.step != s->retry.step || m->retry.attempts != s->retry.attempts)
        audit_find(a, "session %s: %u failures in memory, %u stored", id,
                   (unsigned)m->retry.attempts, (unsigned)s->retry.attempts);
    if (!audit_same_rerun(m->rerun, s->rerun))
        audit_find(a, "session %s: attempts that have ended differ", id);
    if (m->created_usec != s->created_usec || m->status_changed_usec != s->status_changed_usec
        || m->starts_usec != s->starts_usec || m->running_usec != s->running_usec)
        audit_find(a, "session %s: times differ", id);
    if (!audit_same_dependencies(m, s))
        audit_find(a, "session %s: dependencies differ", id);
    if (!uuid_equals(&m->array_id, &s->array_id) || m->array_index != s->array_index
        || uuid_is_nil(&m->array_id) != !session_entry_of(m)->array)
        audit_find(a, "session %s: its array differs", id);
    if (!audit_same_replica(m->replica, s->replica)
        || (m->replica && !session_entry_of(m)->replica))
        audit_find(a, "session %s: its model service, or what it is there, differs", id);
    if (!uuid_equals(&m->booking_id, &s->booking_id))
        audit_find(a, "session %s: its reservation differs", id);
    if (m->kernel_count != s->kernel_count)
        audit_find(a, "session %s: %zu kernels in memory, %zu stored", id, m->kernel_count,
                   s->kernel_count);
    for (size_t i = 0; i < AQ_MIN(m->kernel_count, s->kernel_count); i++)
        audit_compare_kernel(a, &m->kernels[i], &s->kernels[i]);
}

static void audit_compare_array(struct audit *a, const struct session_array *s)
{
    const struct array_entry *entry = array_entry_find(a->core, &s->id);
    const struct session_array *m = entry ? &entry->a : NULL;

    if (!m)
        audit_find(a, "array %s: stored, not in memory", s->name);
    else if (m->row != s->row || m->version != s->version || strcmp(m->name, s->name) != 0
             || m->next != s->next || m->made != s->made || m->skipped != s->skipped
             || m->size != array_set_size(&s->indices)
             || array_set_size(&m->removed) != array_set_size(&s->removed)
             || memcmp(m->outcomes, s->outcomes, sizeof(m->outcomes)) != 0
             || m->cancelled_usec != s->cancelled_usec
             || !session_spec_equals(m->element.spec, s->element.spec)
             || m->element.kernel_count != s->element.kernel_count
             || m->element.dependency_count != s->element.dependency_count
             || !audit_same_text(m->element.domain, s->element.domain))
        audit_find(a, "array %s: memory and row differ", s->name);
}

static void audit_compare_booking(struct audit *a, const struct booking *b)
{
    const struct booking_entry *entry = booking_entry_find(a->core, &b->id);

    if (!entry)
        audit_find(a, "reservation %s: stored, not in memory", b->name);
    else if (!booking_equals(&entry->b, b))
        audit_find(a, "reservation %s: memory and row differ", b->name);
}

static void audit_compare_service(struct audit *a, const struct model_service *s)
{
    const struct model_service_entry *entry = model_service_entry_find(a->core, &s->id);

    if (!entry)
        audit_find(a, "model service %s: stored, not in memory", s->name);
    else if (!model_service_equals(&entry->s, s))
        audit_find(a, "model service %s: memory and row differ", s->name);
}

/* ---- agents and accounts ---- */

static void audit_compare_agent(struct audit *a, const struct agent *s)
{
    const struct agent *m = core_find_agent(a->core, s->id);

    if (!m)
        audit_find(a, "agent %s: stored, not in memory", s->id);
    else if (!registration_is_same(m, s))
        audit_find(a, "agent %s: memory and row differ", s->id);
}

static void audit_compare_user(struct audit *a, const struct user *s)
{
    const struct user *m = core_find_user(a->core, &s->id);

    if (!m || !entity_equal(&user_entity, m, s))
        audit_find(a, "user %s: memory and row differ", s->email);
}

static void audit_compare_keypair(struct audit *a, const struct keypair *s)
{
    const struct keypair *m = core_find_keypair(a->core, s->access_key);

    if (!m || !entity_equal(&keypair_entity, m, s))
        audit_find(a, "keypair %s: memory and row differ", s->access_key);
}

static void audit_compare_policy(struct audit *a, const struct keypair_policy *s)
{
    const struct keypair_policy *m = core_find_policy(a->core, s->name);

    if (!m || !entity_equal(&keypair_policy_entity, m, s))
        audit_find(a, "policy %s: memory and row differ", s->name);
}

static void audit_compare_domain(struct audit *a, const struct domain *s)
{
    const struct domain *m = core_find_domain(a->core, s->name);

    if (!m || !entity_equal(&domain_entity, m, s))
        audit_find(a, "domain %s: memory and row differ", s->name);
}

static void audit_compare_group(struct audit *a, const struct project *s)
{
    const struct project *m = core_find_project(a->core, &s->id);

    if (!m || !entity_equal(&project_entity, m, s))
        audit_find(a, "project %s: memory and row differ", s->name);
}

static void audit_compare_resource_group(struct audit *a, const struct resource_group *s)
{
    const struct resource_group *m = core_find_resource_group(a->core, s->name);

    if (!m || !entity_equal(&resource_group_entity, m, s))
        audit_find(a, "resource group %s: memory and row differ", s->name);
}

static void audit_compare(struct audit *a, const struct event *e)
{
    enum slot_type type;

    switch (e->kind) {
    case EVENT_SESSION_CREATED:
        audit_compare_session(a, &e->session);
        break;
    case EVENT_ARRAY_CREATED:
        audit_compare_array(a, e->array);
        break;
    case EVENT_BOOKING_CREATED:
        audit_compare_booking(a, e->booking.row);
        break;
    case EVENT_SERVICE_CREATED:
        audit_compare_service(a, e->service.row);
        break;
    case EVENT_AGENT_SAVED:
        audit_compare_agent(a, &e->agent);
        break;
    case EVENT_USER_SAVED:
        audit_compare_user(a, &e->user.user);
        break;
    case EVENT_KEYPAIR_SAVED:
        audit_compare_keypair(a, &e->keypair);
        break;
    case EVENT_KEYPAIR_POLICY_SAVED:
        audit_compare_policy(a, &e->policy);
        break;
    case EVENT_DOMAIN_SAVED:
        audit_compare_domain(a, &e->domain);
        break;
    case EVENT_PROJECT_SAVED:
        audit_compare_group(a, &e->project);
        break;
    case EVENT_RESOURCE_GROUP_SAVED:
        audit_compare_resource_group(a, &e->resource_group);
        break;
    case EVENT_SLOT_TYPE_KNOWN:
        if (slot_types_find(a->core->types, e->slot_type.name, &type) < 0
            || type != e->slot_type.type)
            audit_find(a, "slot type %s: memory and row differ", e->slot_type.name);
        break;
    default: /* a load has no other kinds */
        break;
    }
}

/* ---- what memory has and the store has not ---- */

static void audit_compare_counts(struct audit *a)
{
    const struct core *core = a->core;
    size_t stored[EVENT_KIND_COUNT] = { 0 };
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
            audit_find(a, "%s: %zu in memory, %zu stored", rows[i].what, rows[i].in_memory,
                       rows[i].stored);
}

/* Each kernel must be found by its id. */
static void audit_check_kernels(struct audit *a)
{
    const struct core *core = a->core;
    size_t kernels = 0;

    for (const struct session *s = NULL; (s = core_next_session(core, s));) {
        for (size_t i = 0; i < s->kernel_count; i++)
            if (core_find_kernel(core, &s->kernels[i].id) != &s->kernels[i])
                audit_find(a, "session %s: its kernel %zu is not found by its id", s->name, i);
        kernels += s->kernel_count;
        if ((s->kernel_count > 1 && session_lacks_kernels(s))
            == list_is_empty(&session_entry_of(s)->queue.lacking_link))
            audit_find(a, "session %s: its kernels that wait are not those looked at", s->name);
    }
    if (kernels != core->kernels_by_id.count)
        audit_find(a, "kernels: %zu of sessions, %zu by their ids", kernels,
                   core->kernels_by_id.count);
}

/* What agents are said to have free must be the sum over their kernels. */
static void audit_check_sums(struct audit *a)
{
    for (size_t i = 0; i < a->core->agent_count; i++) {
        struct agent_entry *agent = a->core->agents_sorted[i];
        struct slots cached = { 0 };
        const struct slots *fresh;

        if (agent->is_stale)
            continue;
        slots_copy(&cached, &agent->free);
        agent->is_stale = true;
        if (agent_entry_free_slots(agent, &fresh) < 0 || !slots_eq(&cached, fresh))
            audit_find(a, "agent %s: what is free is not what its kernels leave", agent->a.id);
        slots_done(&cached);
    }
}

/* ---- the command ---- */

static int audit_take_event(void *data, struct event *e, struct aq_error *err)
{
    struct audit *a = data;
    struct event *kept = event_batch_add(a->loaded, e->kind, e->at_usec);

    (void)err;
    *kept = *e;
    *e = (struct event){ .kind = EVENT_KIND_COUNT };
    return 0;
}

static int audit_load(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct audit *a = data;
    int r = store_audit_ledger(tx, &a->findings, err);

    if (r < 0)
        return r;
    a->count += r;
    r = a->has_usage ? fair_share_check_read(tx, clock_realtime_usec(), &a->usage, err) : 0;
    return r < 0 ? r : store_load_tx(tx, audit_take_event, a, err);
}

static void audit_find_usage(void *data, const char *text)
{
    audit_find(data, "%s", text);
}

/* Memory against the load. */
static void audit_compare_all(struct audit *a)
{
    for (size_t i = 0; i < a->loaded->count; i++)
        audit_compare(a, &a->loaded->events[i]);
    audit_compare_counts(a);
    audit_check_kernels(a);
    audit_check_sums(a);
    if (a->usage)
        fair_share_check_compare(a->core, a->usage, audit_find_usage, a);
}

static void audit_on_loaded(void *data, int r, const struct aq_error *err)
{
    struct audit *a = data;

    if (r == 0)
        audit_compare_all(a);
    a->done(a->data, r < 0 ? r : a->count, err, r < 0 ? "" : a->findings.data);
    event_batch_free(a->loaded);
    fair_share_check_free(a->usage);
    strbuf_done(&a->findings);
    free(a);
}

void core_audit(struct core *core, core_audit_fn done, void *data)
{
    struct audit *a = aq_alloc(sizeof(*a));

    a->loaded = event_batch_new();
    a->core = core;
    a->done = done;
    a->data = data;
    strbuf_init(&a->findings);
    for (size_t i = 0; i < core->resource_groups.count; i++)
        a->has_usage |=
            ((const struct resource_group_entry *)core->resource_groups.entries[i].value)
                ->fair_share
            != NULL;
    store_write(core->store, audit_load, audit_on_loaded, a);
}
