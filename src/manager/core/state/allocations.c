/* SPDX-License-Identifier: Apache-2.0 */
/* allocations.c - which devices the kernels of an agent hold, as their agent reported */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/json_load.h"
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

static int allocations_add_item(struct core_held *held, const struct core_holder *holder,
                                const char *slot_name, enum slot_type type, const char *device_id,
                                const char *amount_text)
{
    int64_t amount;

    if (!amount_text
        || slot_amount_parse(amount_text, strlen(amount_text), type, false, slot_name, &amount,
                             NULL)
               < 0)
        return 0; /* of a later version: we cannot interpret it */
    if (!vec_grow(&held->holders, &held->cap, held->grant.count + 1, sizeof(*held->holders)))
        return -ENOMEM;
    switch (alloc_grant_add(&held->grant, slot_name, type, device_id, strlen(device_id), amount,
                            NULL)) {
    case 0:
        held->holders[held->grant.count - 1] = *holder;
        return 0;
    case -ENOMEM:
        return -ENOMEM;
    default:
        return 0;
    }
}

/* {"cuda.shares":{"GPU-1":"0.60"},...} */
static int allocations_add_kernel(const struct core *core, const struct core_holder *holder,
                                  const char *text, struct core_held *held)
{
    json_t *all, *devices, *amount;
    const char *slot, *device;
    int r = 0;

    errno = 0;
    all = json_load_string(text, JSON_REJECT_DUPLICATES);
    if (!all && errno == ENOMEM)
        return -ENOMEM;
    json_object_foreach(all, slot, devices) {
        /* only an offer of its agent makes a name known */
        const char *slot_name = slot_name_find(slot, strlen(slot));

        json_object_foreach(devices, device, amount)
            if (slot_name && r == 0)
                r = allocations_add_item(held, holder, slot_name,
                                         slot_types_get(core->types, slot_name), device,
                                         json_string_value(amount));
    }
    json_decref(all);
    return r;
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
