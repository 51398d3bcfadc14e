/* SPDX-License-Identifier: Apache-2.0 */
/* agents.c - what a saved, changed or removed row of an agent does to memory */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "manager/core/nodes/agents.h"
#include "manager/core/nodes/registration.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/state.h"
#include "manager/core/statistics/statistics_internal.h"

static bool agents_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void agents_save(struct core *core, struct agent *fresh)
{
    struct agent_entry *a = agent_entry_add(core, fresh->id);

    a->devices_changed |= !agents_same_text(a->a.devices, fresh->devices)
                          || !slots_eq(&a->a.available, &fresh->available);
    if (!agents_same_text(a->a.resource_group, fresh->resource_group))
        queue_agent_closed(core, a); /* for those who wait in the group that it leaves */
    agent_done(&a->a);
    a->a = *fresh;
    *fresh = (struct agent){ 0 };
    a->is_known = true;
    a->is_stale = true;
    if (a->a.status != AGENT_LOST) {
        a->lost_usec = 0;
        a->loss_handled = false;
    } else if (!a->lost_usec) {
        a->lost_usec = clock_monotonic_usec();
    }
    sched_sync_mark_agent(core, a);
    agent_entry_touch_sessions(core, a);
    queue_agent_changed(
        core, resource_group_entry_get(core, a->a.resource_group ? a->a.resource_group : ""));
}

static void agents_set_status(struct core *core, const struct event *e)
{
    struct agent_entry *a = agent_entry_find(core, e->agent_status.id);

    if (!a)
        return;
    a->a.status = e->agent_status.to;
    a->a.status_changed_usec = e->at_usec;
    a->a.lost_usec = a->a.status == AGENT_LOST ? e->at_usec : 0;
    a->lost_usec = a->a.status == AGENT_LOST ? clock_monotonic_usec() : 0;
    a->loss_handled = false;
    sched_sync_mark_agent(core, a);
    agent_entry_touch_sessions(core, a);
    queue_agent_closed(core, a);
}

void agents_drop(struct core *core, struct agent_entry *a)
{
    queue_agent_closed(core, a);
    sched_sync_remove_agent(a);
    core->peers_are_stale = true;
    registration_finish_changes(core, &a->changes, -ENOENT);
    agent_measured_free(AQ_TAKE(a->measured));
    agent_entry_drop(core, a);
}

void agents_apply(struct core *core, struct event *e)
{
    struct agent_entry *a;

    switch (e->kind) {
    case EVENT_AGENT_SAVED:
        agents_save(core, &e->agent);
        break;
    case EVENT_AGENT_STATUS:
        agents_set_status(core, e);
        break;
    default: /* REMOVED */
        a = agent_entry_find(core, e->agent_status.id);
        if (a && list_is_empty(&a->kernels))
            agents_drop(core, a);
        break;
    }
}
