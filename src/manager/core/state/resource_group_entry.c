/* SPDX-License-Identifier: Apache-2.0 */
/* resource_group_entry.c - resource groups in memory, each with its queue and its scheduler */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/state.h"

void resource_group_entry_free(struct resource_group_entry *g)
{
    entity_done(&resource_group_entity, &g->g);
    free(g);
}

struct resource_group_entry *resource_group_entry_find(const struct core *core, const char *name)
{
    return map_gets(&core->resource_groups, name);
}

struct resource_group_entry *resource_group_entry_get(struct core *core, const char *name)
{
    struct resource_group_entry *g = resource_group_entry_find(core, name);

    if (g)
        return g;
    g = aq_alloc(sizeof(*g));
    g->g.name = aq_strdup(name);
    list_init(&g->waiting);
    list_init(&g->parked);
    list_init(&g->lacking);
    list_init(&g->changes);
    list_init(&g->changed_agents);
    list_init(&g->changed_accounts);
    map_sets(&core->resource_groups, name, g);
    core->hooks->on_group(g);
    return g;
}
