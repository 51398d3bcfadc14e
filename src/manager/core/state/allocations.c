/* SPDX-License-Identifier: Apache-2.0 */
/* allocations.c - which devices the kernels of an agent hold, as their agent reported; until it
 * has, those that the scheduler chose for them
 */
#include <errno.h>

#include "base/vec.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/allocations.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

void core_held_done(struct core_held *held)
{
    alloc_grant_done(&held->grant);
    free(held->holders);
    *held = (struct core_held){ .holders = NULL };
}

const char *allocations_json(const struct kernel_entry *f)
{
    return f->alloc ? f->alloc : f->entry->s.kernels[f - f->entry->kernels].alloc;
}

void allocations_add_held(const struct core *core, const struct kernel_entry *f,
                          struct core_held *ret)
{
    size_t before = ret->grant.count;
    const char *text = allocations_json(f);

    if (!text)
        return;
    alloc_grant_read_json(&ret->grant, text,
                          core->types); /* {"cuda.shares":{"GPU-1":"0.60"},...} */
    vec_grow(&ret->holders, &ret->cap, ret->grant.count, sizeof(*ret->holders));
    for (size_t i = before; i < ret->grant.count; i++)
        ret->holders[i] = (struct core_holder){ .session = &f->entry->s,
                                                .rank = (size_t)(f - f->entry->kernels) };
}

int core_find_held(const struct core *core, const char *agent_id, struct core_held *ret)
{
    const struct agent_entry *a = agent_entry_find(core, agent_id);

    if (!a)
        return -ENOENT;
    *ret = (struct core_held){ .holders = NULL };
    LIST_FOREACH(link, &a->kernels)
        allocations_add_held(core, LIST_ENTRY(link, struct kernel_entry, agent_link), ret);
    return 0;
}

int core_write_gpu_map(const struct core *core, const char *agent_id, struct jsonw *w)
{
    AQ_CLEANUP(alloc_map_freep) struct alloc_map *map = NULL;
    const struct alloc_config nothing = { .slots = NULL };
    struct core_held held = { .holders = NULL };
    int r = core_find_held(core, agent_id, &held);

    if (r == -ENOENT)
        r = 0; /* not heard of since the start: nothing is known to be held */
    if (r == 0)
        r = alloc_map_new(&nothing, &map, NULL);
    if (r == 0)
        r = alloc_map_apply(map, &held.grant, NULL);
    if (r == 0)
        alloc_map_write_gpu(map, w);
    core_held_done(&held);
    return r;
}
