/* SPDX-License-Identifier: Apache-2.0 */
/* sched_sync_agents.c - the agents of a group as its scheduler sees them */
#include <errno.h>

#include "base/log.h"
#include "base/vec.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/scheduling/sched_sync_internal.h"
#include "manager/core/state/agent_devices.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

/* What the agent offers less what others than the scheduler's sessions hold. */
static int sched_sync_find_capacity(const struct core *core, struct agent_entry *a,
                                    struct slots *free, struct sched_device *devices,
                                    uint32_t *ret_kernels)
{
    int r = 0;

    slots_copy(free, &a->a.available);
    LIST_FOREACH(link, &a->kernels) {
        const struct kernel_entry *f = LIST_ENTRY(link, struct kernel_entry, agent_link);
        const struct sched_part *parts;
        struct arena arena = { 0 };
        size_t count;

        if (r < 0 || sched_sync_is_held(a->scheduled_by, f->entry))
            continue;
        ++*ret_kernels;
        r = slots_sub(free, f->requested);
        if (r == 0)
            r = agent_devices_find_parts(core, a, f, &arena, &parts, &count);
        for (size_t i = 0; r == 0 && i < count; i++)
            devices[parts[i].device].free = AQ_MAX(devices[parts[i].device].free - parts[i].amount,
                                                   0);
        arena_done(&arena);
    }
    return r;
}

int sched_sync_push_agent(struct core *core, struct resource_group_entry *g, struct agent_entry *a,
                          bool is_new)
{
    AQ_CLEANUP(slots_donep) struct slots free = { .items = NULL };
    struct sched_agent sa = { .id = a->a.id,
                              .architecture = a->a.architecture,
                              .free = &free,
                              .capacity = &a->a.available,
                              .volumes = a->volumes.items,
                              .volume_count = a->volumes.count,
                              .is_closed = !agent_entry_is_ready(a) };
    struct sched_device *devices;
    struct aq_error err = { 0 };
    int r;

    a->scheduled_by = g;
    if ((r = agent_devices_copy(core, a, &core->scratch, &devices, &sa.device_count)) < 0
        || (r = sched_sync_find_capacity(core, a, &free, devices, &sa.kernels)) < 0)
        return r;
    sa.devices = devices;
    r = sched_set_agent(g->sched, &sa, &err);
    if (r == -EINVAL) {
        log_limited(&a->log, LOG_LEVEL_WARNING, "only sums count for agent '%s': %s", a->a.id,
                    err.text);
        sa.device_count = 0;
        r = sched_set_agent(g->sched, &sa, &err);
    }
    if (r == 0 && is_new) {
        vec_grow(&g->nodes, &g->node_cap, g->node_count + 1, sizeof(struct agent_entry *));
        g->nodes[g->node_count++] = a;
    }
    return r;
}

/* Sessions that wait for certain agents by name may wait for one that is new. */
static void sched_sync_mark_designated(struct resource_group_entry *g)
{
    LIST_FOREACH(link, &g->waiting) {
        struct session_entry *l = LIST_ENTRY(link, struct session_entry, queue.link);

        if (l->s.spec->agents.count)
            sched_sync_mark_session(l);
    }
}

int sched_sync_push_agents(struct core *core, struct resource_group_entry *g)
{
    int r;

    while (!list_is_empty(&g->changed_agents)) {
        struct agent_entry *a = LIST_ENTRY(g->changed_agents.next, struct agent_entry, change_link);
        bool is_new = a->scheduled_by != g;

        list_remove(&a->change_link);
        if ((r = sched_sync_push_agent(core, g, a, is_new)) < 0)
            return r;
        if (is_new)
            sched_sync_mark_designated(g);
    }
    return 0;
}
