/* SPDX-License-Identifier: Apache-2.0 */
/* audit_compare.c - does memory show what a row says? */
#include <string.h>

#include "manager/core/loop/audit_compare.h"
#include "manager/core/nodes/registration.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/array_entry.h"
#include "manager/core/state/booking_entry.h"
#include "manager/core/state/model_service_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

void audit_find(struct audit_findings *findings, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    strbuf_vaddf(&findings->text, fmt, args);
    va_end(args);
    strbuf_addc(&findings->text, '\n');
    findings->count++;
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

static void audit_compare_kernel(const struct kernel *m, const struct kernel *s,
                                 struct audit_findings *findings)
{
    char id[UUID_TEXT_MAX];

    uuid_format(&s->id, id);
    if (!uuid_equals(&m->id, &s->id) || m->index != s->index || strcmp(m->role, s->role) != 0)
        audit_find(findings, "kernel %s: memory has another in its place", id);
    if (m->status != s->status || m->version != s->version || m->attempt != s->attempt)
        audit_find(findings, "kernel %s: %s (version %u, attempt %u) in memory, %s (%u, %u) stored",
                   id, kernel_status_name(m->status), (unsigned)m->version, (unsigned)m->attempt,
                   kernel_status_name(s->status), (unsigned)s->version, (unsigned)s->attempt);
    if (!audit_same_text(m->agent_id, s->agent_id))
        audit_find(findings, "kernel %s: on agent %s in memory, %s stored", id,
                   audit_text_or(m->agent_id), audit_text_or(s->agent_id));
    if (!slots_eq(&m->requested, &s->requested))
        audit_find(findings, "kernel %s: requests differ", id);
    if (!audit_same_text(m->alloc, s->alloc) || !audit_same_text(m->service_ports, s->service_ports)
        || m->has_exit != s->has_exit || m->exit_code != s->exit_code
        || m->status_changed_usec != s->status_changed_usec)
        audit_find(findings, "kernel %s: devices, ports, exit code or time of change differ", id);
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

static void audit_compare_session(const struct core *core, const struct session *s,
                                  struct audit_findings *findings)
{
    const struct session_entry *l = session_entry_find(core, &s->id);
    const struct session *m = l ? &l->s : NULL;
    char id[UUID_TEXT_MAX];

    uuid_format(&s->id, id);
    if (!m) {
        audit_find(findings, "session %s: stored as %s, not in memory", id,
                   session_status_name(s->status));
        return;
    }
    if (m->status != s->status || m->version != s->version)
        audit_find(findings, "session %s: %s (version %u) in memory, %s (%u) stored", id,
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
        audit_find(findings, "session %s: name, owner, group, priority or spec differ", id);
    if (m->result != s->result || m->forced != s->forced || !audit_same_text(m->reason, s->reason)
        || !audit_same_text(m->status_data, s->status_data))
        audit_find(findings, "session %s: result, force or reason differ (%s in memory, %s stored)",
                   id, audit_text_or(m->reason), audit_text_or(s->reason));
    if (m->retry.step != s->retry.step || m->retry.attempts != s->retry.attempts)
        audit_find(findings, "session %s: %u failures in memory, %u stored", id,
                   (unsigned)m->retry.attempts, (unsigned)s->retry.attempts);
    if (!audit_same_rerun(m->rerun, s->rerun))
        audit_find(findings, "session %s: attempts that have ended differ", id);
    if (m->created_usec != s->created_usec || m->status_changed_usec != s->status_changed_usec
        || m->starts_usec != s->starts_usec || m->running_usec != s->running_usec)
        audit_find(findings, "session %s: times differ", id);
    if (!audit_same_dependencies(m, s))
        audit_find(findings, "session %s: dependencies differ", id);
    if (!uuid_equals(&m->array_id, &s->array_id) || m->array_index != s->array_index
        || uuid_is_nil(&m->array_id) != !session_entry_of(m)->array)
        audit_find(findings, "session %s: its array differs", id);
    if (!audit_same_replica(m->replica, s->replica)
        || (m->replica && !session_entry_of(m)->replica))
        audit_find(findings, "session %s: its model service, or what it is there, differs", id);
    if (!uuid_equals(&m->booking_id, &s->booking_id))
        audit_find(findings, "session %s: its reservation differs", id);
    if (m->kernel_count != s->kernel_count)
        audit_find(findings, "session %s: %zu kernels in memory, %zu stored", id, m->kernel_count,
                   s->kernel_count);
    for (size_t i = 0; i < AQ_MIN(m->kernel_count, s->kernel_count); i++)
        audit_compare_kernel(&m->kernels[i], &s->kernels[i], findings);
}

static void audit_compare_array(const struct core *core, const struct session_array *s,
                                struct audit_findings *findings)
{
    const struct array_entry *entry = array_entry_find(core, &s->id);
    const struct session_array *m = entry ? &entry->a : NULL;

    if (!m)
        audit_find(findings, "array %s: stored, not in memory", s->name);
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
        audit_find(findings, "array %s: memory and row differ", s->name);
}

static void audit_compare_booking(const struct core *core, const struct booking *b,
                                  struct audit_findings *findings)
{
    const struct booking_entry *entry = booking_entry_find(core, &b->id);

    if (!entry)
        audit_find(findings, "reservation %s: stored, not in memory", b->name);
    else if (!booking_equals(&entry->b, b))
        audit_find(findings, "reservation %s: memory and row differ", b->name);
}

static void audit_compare_service(const struct core *core, const struct model_service *s,
                                  struct audit_findings *findings)
{
    const struct model_service_entry *entry = model_service_entry_find(core, &s->id);

    if (!entry)
        audit_find(findings, "model service %s: stored, not in memory", s->name);
    else if (!model_service_equals(&entry->s, s))
        audit_find(findings, "model service %s: memory and row differ", s->name);
}

/* ---- agents and accounts ---- */

static void audit_compare_agent(const struct core *core, const struct agent *s,
                                struct audit_findings *findings)
{
    const struct agent *m = core_find_agent(core, s->id);

    if (!m)
        audit_find(findings, "agent %s: stored, not in memory", s->id);
    else if (!registration_is_same(m, s))
        audit_find(findings, "agent %s: memory and row differ", s->id);
}

static void audit_compare_user(const struct core *core, const struct user *s,
                               struct audit_findings *findings)
{
    const struct user *m = core_find_user(core, &s->id);

    if (!m || !entity_equal(&user_entity, m, s))
        audit_find(findings, "user %s: memory and row differ", s->email);
}

static void audit_compare_keypair(const struct core *core, const struct keypair *s,
                                  struct audit_findings *findings)
{
    const struct keypair *m = core_find_keypair(core, s->access_key);

    if (!m || !entity_equal(&keypair_entity, m, s))
        audit_find(findings, "keypair %s: memory and row differ", s->access_key);
}

static void audit_compare_policy(const struct core *core, const struct keypair_policy *s,
                                 struct audit_findings *findings)
{
    const struct keypair_policy *m = core_find_policy(core, s->name);

    if (!m || !entity_equal(&keypair_policy_entity, m, s))
        audit_find(findings, "policy %s: memory and row differ", s->name);
}

static void audit_compare_domain(const struct core *core, const struct domain *s,
                                 struct audit_findings *findings)
{
    const struct domain *m = core_find_domain(core, s->name);

    if (!m || !entity_equal(&domain_entity, m, s))
        audit_find(findings, "domain %s: memory and row differ", s->name);
}

static void audit_compare_group(const struct core *core, const struct project *s,
                                struct audit_findings *findings)
{
    const struct project *m = core_find_project(core, &s->id);

    if (!m || !entity_equal(&project_entity, m, s))
        audit_find(findings, "project %s: memory and row differ", s->name);
}

static void audit_compare_resource_group(const struct core *core, const struct resource_group *s,
                                         struct audit_findings *findings)
{
    const struct resource_group *m = core_find_resource_group(core, s->name);

    if (!m || !entity_equal(&resource_group_entity, m, s))
        audit_find(findings, "resource group %s: memory and row differ", s->name);
}

void audit_compare_event(const struct core *core, const struct event *e,
                         struct audit_findings *findings)
{
    enum slot_type type;

    switch (e->kind) {
    case EVENT_SESSION_CREATED:
        audit_compare_session(core, &e->session, findings);
        break;
    case EVENT_ARRAY_CREATED:
        audit_compare_array(core, e->array, findings);
        break;
    case EVENT_BOOKING_CREATED:
        audit_compare_booking(core, e->booking.row, findings);
        break;
    case EVENT_SERVICE_CREATED:
        audit_compare_service(core, e->service.row, findings);
        break;
    case EVENT_AGENT_SAVED:
        audit_compare_agent(core, &e->agent, findings);
        break;
    case EVENT_USER_SAVED:
        audit_compare_user(core, &e->user.user, findings);
        break;
    case EVENT_KEYPAIR_SAVED:
        audit_compare_keypair(core, &e->keypair, findings);
        break;
    case EVENT_KEYPAIR_POLICY_SAVED:
        audit_compare_policy(core, &e->policy, findings);
        break;
    case EVENT_DOMAIN_SAVED:
        audit_compare_domain(core, &e->domain, findings);
        break;
    case EVENT_PROJECT_SAVED:
        audit_compare_group(core, &e->project, findings);
        break;
    case EVENT_RESOURCE_GROUP_SAVED:
        audit_compare_resource_group(core, &e->resource_group, findings);
        break;
    case EVENT_SLOT_TYPE_KNOWN:
        if (slot_types_find(core->types, e->slot_type.name, &type) < 0 || type != e->slot_type.type)
            audit_find(findings, "slot type %s: memory and row differ", e->slot_type.name);
        break;
    default: /* a load has no other kinds */
        break;
    }
}
