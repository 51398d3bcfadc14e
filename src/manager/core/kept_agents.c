/* The agents of a group as its scheduler sees them. */
#include <errno.h>

#include "base/log.h"
#include "base/vec.h"
#include "manager/core/kept.h"

/* What the agent offers less what others than the scheduler's sessions hold. */
static int find_room(const struct core *core, struct agent_live *a, struct slots *free,
                     struct sched_device *devices, uint32_t *ret_kernels)
{
    int r = slots_copy(free, &a->a.available);

    LIST_FOREACH(link, &a->kernels) {
        const struct kernel_live *f = LIST_ENTRY(link, struct kernel_live, agent_link);
        const struct sched_part *parts;
        struct arena arena = { 0 };
        size_t count;

        if (r < 0 || kept_is_held(a->scheduled_by, f->live))
            continue;
        ++*ret_kernels;
        r = slots_sub(free, f->requested);
        if (r == 0)
            r = agent_find_parts(core, a, f, &arena, &parts, &count);
        for (size_t i = 0; r == 0 && i < count; i++)
            devices[parts[i].device].free
                = AQ_MAX(devices[parts[i].device].free - parts[i].amount, 0);
        arena_done(&arena);
    }
    return r;
}

static int number_agent(struct rgroup *g, struct agent_live *a)
{
    if (!vec_grow(&g->nodes, &g->node_cap, g->node_count + 1, sizeof(struct agent_live *)))
        return -ENOMEM;
    g->nodes[g->node_count++] = a;
    return 0;
}

int kept_tell_agent(struct core *core, struct rgroup *g, struct agent_live *a, bool is_new)
{
    AQ_CLEANUP(slots_donep) struct slots free = { .items = NULL };
    struct sched_agent sa = { .id = a->a.id, .architecture = a->a.architecture, .free = &free,
        .capacity = &a->a.available, .is_closed = !agent_is_ready(a) };
    struct sched_device *devices;
    struct aq_error err = { 0 };
    int r;

    a->scheduled_by = g;
    if (agent_copy_cards(core, a, &core->scratch, &devices, &sa.device_count) < 0)
        return -ENOMEM;
    sa.devices = devices;
    if (find_room(core, a, &free, devices, &sa.kernels) < 0)
        return -ENOMEM;
    r = sched_set_agent(g->sched, &sa, &err);
    if (r == -EINVAL) {
        log_warning("only sums count for agent '%s': %s", a->a.id, err.text);
        sa.device_count = 0;
        r = sched_set_agent(g->sched, &sa, &err);
    }
    return r == 0 && is_new ? number_agent(g, a) : r;
}

/* Sessions that wait for certain agents by name may wait for one that is new. */
static void mark_designated(struct rgroup *g)
{
    LIST_FOREACH(link, &g->waiting) {
        struct live *l = LIST_ENTRY(link, struct live, queue_link);

        if (l->wishes && l->wishes->agent_count)
            kept_session(l);
    }
}

int kept_tell_agents(struct core *core, struct rgroup *g)
{
    while (!list_is_empty(&g->changed_agents)) {
        struct agent_live *a = LIST_ENTRY(g->changed_agents.next, struct agent_live, change_link);
        bool is_new = a->scheduled_by != g;

        list_remove(&a->change_link);
        if (kept_tell_agent(core, g, a, is_new) < 0)
            return -ENOMEM;
        if (is_new)
            mark_designated(g);
    }
    return 0;
}
