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
    free(change);
}

static void agent_change_write_drain(bool schedulable, const char *reason, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_bool(&w, "schedulable", schedulable);
    if (reason)
        jsonw_member_str(&w, "drain_reason", reason);
    jsonw_object_end(&w);
}

static void agent_change_write_group(const char *assigned, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "assigned_group", assigned);
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
    agent_change_write_drain(row->schedulable, row->drain_reason, &before);
    agent_change_write_drain(!on, on ? change->reason : NULL, &after);
    agent_change_add_entry(change, row, on ? "drain-agent" : "undrain-agent", &before, &after,
                           batch);
}

/* Who moves it to another resource group. */
static void agent_change_audit_group(const struct agent_change *change, const struct agent *row,
                                     struct event_batch *batch)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf before = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf after = STRBUF_INIT;
    const char *group = change->resource_group;

    if (!group)
        return;
    agent_change_write_group(row->assigned_group, &before);
    agent_change_write_group(group[0] ? group : NULL, &after);
    agent_change_add_entry(change, row, "move-agent", &before, &after, batch);
}

void agent_change_audit(const struct agent_change *change, const struct agent *row,
                        struct event_batch *batch)
{
    agent_change_audit_drain(change, row, batch);
    agent_change_audit_group(change, row, batch);
}
