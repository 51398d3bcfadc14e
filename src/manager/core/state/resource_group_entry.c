/* SPDX-License-Identifier: Apache-2.0 */
/* resource_group_entry.c - resource groups in memory, each with its queue and its scheduler */
#include <stdlib.h>
#include <string.h>

#include "manager/core/state/deferred.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/state.h"

static struct resource_group_entry *resource_group_entry_new(void)
{
    struct resource_group_entry *g = calloc(1, sizeof(*g));

    if (!g)
        return NULL;
    list_init(&g->waiting);
    list_init(&g->parked);
    list_init(&g->changes);
    list_init(&g->changed_agents);
    list_init(&g->changed_accounts);
    return g;
}

void resource_group_entry_free(struct resource_group_entry *g)
{
    if (!g)
        return;
    resource_group_done(&g->g);
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
    g = resource_group_entry_new();
    if (!g || !(g->g.name = strdup(name)) || map_sets(&core->resource_groups, name, g) < 0)
        core_die("a resource group");
    core->hooks->on_group(g);
    return g;
}
