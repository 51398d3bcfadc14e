/* SPDX-License-Identifier: Apache-2.0 */
/* agent_entry.c - agents in memory: finding them, and what they have free */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "manager/core/state/agent_devices.h"
#include "manager/core/state/agent_network.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

struct agent_entry *agent_entry_find(const struct core *core, const char *id)
{
    return id ? map_gets(&core->agents, id) : NULL;
}

static void agent_entry_sort_in(struct core *core, struct agent_entry *a)
{
    size_t i = core->agent_count++;

    for (; i > 0 && strcmp(core->agents_sorted[i - 1]->a.id, a->a.id) > 0; i--)
        core->agents_sorted[i] = core->agents_sorted[i - 1];
    core->agents_sorted[i] = a;
}

struct agent_entry *agent_entry_add(struct core *core, const char *id)
{
    struct agent_entry *a = agent_entry_find(core, id);

    if (a)
        return a;
    a = aq_alloc(sizeof(*a));
    vec_grow(&core->agents_sorted, &core->agent_cap, core->agent_count + 1,
             sizeof(struct agent_entry *));
    map_sets(&core->agents, id, a);
    (void)snprintf(a->a.id, sizeof(a->a.id), "%s", id);
    list_init(&a->kernels);
    list_init(&a->changes);
    list_init(&a->changing);
    list_init(&a->change_link);
    agent_entry_sort_in(core, a);
    return a;
}

struct kernel_entry *agent_entry_find_kernel(struct core *core, const struct agent_entry *a,
                                             const struct uuid *session_id,
                                             const struct uuid *kernel_id)
{
    struct session_entry *l = session_entry_find(core, session_id);

    for (size_t i = 0; l && i < l->s.kernel_count; i++) {
        const struct kernel *k = &l->s.kernels[i];

        if (uuid_equals(&k->id, kernel_id))
            return kernel_is_holding(k->status) && k->agent_id && strcmp(k->agent_id, a->a.id) == 0
                       ? &l->kernels[i]
                       : NULL;
    }
    return NULL;
}

void agent_entry_drop(struct core *core, struct agent_entry *a)
{
    size_t i = 0;

    while (core->agents_sorted[i] != a)
        i++;
    core->agent_count--;
    memmove(&core->agents_sorted[i], &core->agents_sorted[i + 1],
            (core->agent_count - i) * sizeof(a));
    map_removes(&core->agents, a->a.id);
    agent_done(&a->a);
    agent_done(&a->registration);
    slots_done(&a->free);
    agent_devices_free(a->devices);
    free(a->slots_text);
    free(a->images);
    free(a->runtime);
    free(a->runtime_notes);
    free(a->data_address);
    free(a->refusal);
    free(a->plugins);
    free(a->volumes_text);
    free(a->volumes.items);
    agent_network_free(core, a->network);
    free(a);
}

int agent_entry_free_slots(struct agent_entry *a, const struct slots **ret)
{
    int r = 0;

    if (a->is_stale) {
        slots_copy(&a->free, &a->a.available);
        LIST_FOREACH(link, &a->kernels) {
            const struct kernel_entry *f = LIST_ENTRY(link, struct kernel_entry, agent_link);

            if (r == 0)
                r = slots_sub(&a->free, f->requested);
        }
        if (r < 0)
            return r;
        a->is_stale = false;
    }
    *ret = &a->free;
    return 0;
}

bool agent_entry_is_ready(const struct agent_entry *a)
{
    return a->is_known && a->is_connected && a->is_synced && !a->is_late
           && a->a.status == AGENT_ALIVE && a->a.schedulable && !a->refusal;
}

bool agent_entry_is_given_up(const struct core *core, const char *id, bool forced)
{
    const struct agent_entry *a = agent_entry_find(core, id);
    const struct resource_group_entry *g;

    if (!a || !a->is_known)
        return !a;
    if (a->a.status != AGENT_LOST)
        return false;
    g = a->a.resource_group ? resource_group_entry_find(core, a->a.resource_group) : NULL;
    return forced
           || (a->loss_handled && g && g->g.agent_loss_policy
               && strcmp(g->g.agent_loss_policy, "wait") != 0);
}

void agent_entry_touch_sessions(struct core *core, struct agent_entry *a)
{
    LIST_FOREACH(link, &a->kernels)
        durable_touch(core, &LIST_ENTRY(link, struct kernel_entry, agent_link)->entry->durable);
}
