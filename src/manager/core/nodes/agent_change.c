/* SPDX-License-Identifier: Apache-2.0 */
/* What administrators set of agents, in the audit log. */
#include "manager/core/nodes/agent_change.h"

#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"

void agent_change_free(struct agent_change *change)
{
    free(change->reason);
    free(change->resource_group);
    free(change->topology);
    free(change);
}

static void agent_change_write_drain(bool schedulable, bool ends_sessions, const char *reason,
                                     struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_bool(&w, "schedulable", schedulable);
    if (ends_sessions)
        jsonw_member_bool(&w, "ends_sessions", true);
    if (reason)
        jsonw_member_str(&w, "drain_reason", reason);
    jsonw_object_end(&w);
}

static void agent_change_write_assigned(const char *member, const char *assigned,
                                        struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, member, assigned);
    jsonw_object_end(&w);
}

/* An entry of the action, if both sides are not the same. */
static void agent_change_add_entry(const struct agent_change *change, const struct agent *row,
                                   const char *action, const struct strbuf *before,
                                   const struct strbuf *after, struct event_batch *batch)
{
    const struct audit_change entry = { .action = action,
                                        .object_kind = "agent",
                                        .object_id = row->id,
                                        .object_name = row->id,
                                        .before = before->data,
                                        .after = after->data };

    if (strcmp(before->data, after->data) != 0)
        event_batch_audit(batch, audit_by_get(&change->by), &entry);
}

/* Who drains it, or takes it back. */
static void agent_change_audit_drain(const struct agent_change *change, const struct agent *row,
                                     struct event_batch *batch)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf before = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf after = STRBUF_INIT;
    bool on = change->drain == CORE_AGENT_DRAIN_ON;

    if (change->drain == CORE_AGENT_DRAIN_KEEP)
        return;
    agent_change_write_drain(row->schedulable, row->ends_sessions, row->drain_reason, &before);
    agent_change_write_drain(!on, on && change->ends_sessions, on ? change->reason : NULL, &after);
    agent_change_add_entry(change, row, on ? "drain-agent" : "undrain-agent", &before, &after,
                           batch);
}

/* Who assigns another value than 'was'; "" = none, NULL = nobody does. */
static void agent_change_audit_assigned(const struct agent_change *change, const struct agent *row,
                                        const char *action, const char *member, const char *was,
                                        const char *value, struct event_batch *batch)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf before = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf after = STRBUF_INIT;

    if (!value)
        return;
    agent_change_write_assigned(member, was, &before);
    agent_change_write_assigned(member, value[0] ? value : NULL, &after);
    agent_change_add_entry(change, row, action, &before, &after, batch);
}

void agent_change_audit(const struct agent_change *change, const struct agent *row,
                        struct event_batch *batch)
{
    agent_change_audit_drain(change, row, batch);
    agent_change_audit_assigned(change, row, "move-agent", "assigned_group", row->assigned_group,
                                change->resource_group, batch);
    agent_change_audit_assigned(change, row, "label-agent", "assigned_topology",
                                row->assigned_topology, change->topology, batch);
}
