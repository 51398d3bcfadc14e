/* SPDX-License-Identifier: Apache-2.0 */
/* allocations.c - which devices the kernels of an agent hold, as their agent reported; until it has,
 * those that the scheduler chose for them
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

/* {"cuda.shares":{"GPU-1":"0.60"},...} */
static int allocations_add_kernel(const struct core *core, const struct core_holder *holder,
                                  const char *text, struct core_held *held)
{
    size_t before = held->grant.count;

    alloc_grant_read_json(&held->grant, text, core->types);
    if (!vec_grow(&held->holders, &held->cap, held->grant.count, sizeof(*held->holders)))
        return -ENOMEM;
    for (size_t i = before; i < held->grant.count; i++)
        held->holders[i] = *holder;
    return 0;
}

const char *allocations_json(const struct kernel_entry *f)
{
    return f->alloc ? f->alloc : f->entry->s.kernels[f - f->entry->kernels].alloc;
}

int allocations_add_held(const struct core *core, const struct kernel_entry *f,
                         struct core_held *ret)
{
    const struct core_holder holder = { .session = &f->entry->s,
                                        .rank = (size_t)(f - f->entry->kernels) };
    const char *text = allocations_json(f);

    return text ? allocations_add_kernel(core, &holder, text, ret) : 0;
}

int core_find_held(const struct core *core, const char *agent_id, struct core_held *ret)
{
    const struct agent_entry *a = agent_entry_find(core, agent_id);
    struct core_held held = { .holders = NULL };
    int r = 0;

    if (!a)
        return -ENOENT;
    LIST_FOREACH(link, &a->kernels) {
        const struct kernel_entry *f = LIST_ENTRY(link, struct kernel_entry, agent_link);

        if (r == 0)
            r = allocations_add_held(core, f, &held);
    }
    if (r < 0)
        core_held_done(&held);
    else
        *ret = held;
    return r;
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
