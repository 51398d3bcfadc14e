/* agent.c - agents in memory: rows, liveness, what they have free */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/vec.h"
#include "manager/core/parts.h"

/* A tick this late means that this process slept: nobody was silent then. */
#define TICK_LATE_USEC (3 * USEC_PER_SEC)

struct agent_live *agent_find(const struct core *core, const char *id)
{
    return id ? map_gets(&core->agents, id) : NULL;
}

static void sort_in(struct core *core, struct agent_live *a)
{
    size_t i = core->agent_count++;

    for (; i > 0 && strcmp(core->agents_sorted[i - 1]->a.id, a->a.id) > 0; i--)
        core->agents_sorted[i] = core->agents_sorted[i - 1];
    core->agents_sorted[i] = a;
}

struct agent_live *agent_add(struct core *core, const char *id)
{
    struct agent_live *a = agent_find(core, id);

    if (a)
        return a;
    a = calloc(1, sizeof(*a));
    if (!a || !vec_grow(&core->agents_sorted, &core->agent_cap, core->agent_count + 1,
                        sizeof(struct agent_live *)) ||
        map_sets(&core->agents, id, a) < 0)
        core_die("an agent");
    (void)snprintf(a->a.id, sizeof(a->a.id), "%s", id);
    list_init(&a->kernels);
    list_init(&a->drains);
    list_init(&a->draining);
    list_init(&a->change_link);
    sort_in(core, a);
    return a;
}

void agent_drop(struct core *core, struct agent_live *a)
{
    size_t i = 0;

    kept_agent_leaves(a);
    while (core->agents_sorted[i] != a)
        i++;
    core->agent_count--;
    memmove(&core->agents_sorted[i], &core->agents_sorted[i + 1],
            (core->agent_count - i) * sizeof(a));
    map_removes(&core->agents, a->a.id);
    drains_finish(core, &a->drains, -ENOENT);
    agent_done(&a->a);
    agent_done(&a->offer);
    slots_done(&a->free);
    agent_cards_free(a->cards);
    agent_measured_free(a->measured);
    free(a->slots_text);
    free(a->images);
    free(a->runtime);
    free(a->runtime_notes);
    free(a->plugins);
    free(a);
}

int agent_free_slots(struct agent_live *a, const struct slots **ret)
{
    int r = 0;

    if (a->is_stale) {
        r = slots_copy(&a->free, &a->a.available);
        LIST_FOREACH(link, &a->kernels) {
            const struct kernel_live *f = LIST_ENTRY(link, struct kernel_live, agent_link);

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

bool agent_is_ready(const struct agent_live *a)
{
    return a->is_known && a->is_connected && a->is_synced && a->a.status == AGENT_ALIVE &&
           a->a.schedulable;
}

bool agent_is_given_up(const struct core *core, const char *id, bool forced)
{
    const struct agent_live *a = agent_find(core, id);
    const struct rgroup *g;

    if (!a || !a->is_known)
        return !a;
    if (a->a.status != AGENT_LOST)
        return false;
    g = a->a.resource_group ? rgroup_find(core, a->a.resource_group) : NULL;
    return forced || (a->loss_handled && g && g->g.agent_loss_policy &&
                      strcmp(g->g.agent_loss_policy, "wait") != 0);
}

/* ---- rows ---- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

void agent_touch_kernels(struct core *core, struct agent_live *a)
{
    LIST_FOREACH(link, &a->kernels)
        live_touch(core, LIST_ENTRY(link, struct kernel_live, agent_link)->live);
}

static void save(struct core *core, struct agent *fresh)
{
    struct agent_live *a = agent_add(core, fresh->id);

    a->cards_changed |= !same_text(a->a.devices, fresh->devices) ||
                        !slots_eq(&a->a.available, &fresh->available);
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
    kept_agent(core, a);
    agent_touch_kernels(core, a);
    queue_agent(core, rgroup_get(core, a->a.resource_group ? a->a.resource_group : ""));
}

static void set_status(struct core *core, const struct event *e)
{
    struct agent_live *a = agent_find(core, e->agent_status.id);

    if (!a)
        return;
    a->a.status = e->agent_status.to;
    a->a.status_changed_usec = e->at_usec;
    a->a.lost_usec = a->a.status == AGENT_LOST ? e->at_usec : 0;
    a->lost_usec = a->a.status == AGENT_LOST ? clock_monotonic_usec() : 0;
    a->loss_handled = false;
    kept_agent(core, a);
    agent_touch_kernels(core, a);
}

void apply_agent(struct core *core, struct event *e)
{
    struct agent_live *a;

    switch (e->kind) {
    case EVENT_AGENT_SAVED:
        save(core, &e->agent);
        break;
    case EVENT_AGENT_STATUS:
        set_status(core, e);
        break;
    default: /* REMOVED */
        a = agent_find(core, e->agent_status.id);
        if (a && list_is_empty(&a->kernels))
            agent_drop(core, a);
        break;
    }
}

/* ---- silence ---- */

static void on_lost_saved(void *data, int r, const struct aq_error *err)
{
    (void)data;
    if (r < 0)
        log_warning("an agent's loss could not be recorded, trying again: %s", err->text);
}

static void find_lost(struct core *core, struct agent_live *a)
{
    struct event_batch *batch;
    struct event *e;

    log_warning("agent '%s' is lost: not heard from for %lld s", a->a.id,
                (long long)(core->conf.agent_timeout_usec / USEC_PER_SEC));
    batch = event_batch_new();
    e = batch ? event_batch_add(batch, EVENT_AGENT_STATUS, clock_realtime_usec()) : NULL;
    if (!e) {
        event_batch_free(batch);
        return;
    }
    memcpy(e->agent_status.id, a->a.id, sizeof(a->a.id));
    e->agent_status.to = AGENT_LOST;
    e->agent_status.reason = REASON_AGENT_LOST;
    a->heard_usec = core->ticked_usec; /* once per timeout, should the store refuse it */
    propose_command(core, batch, on_lost_saved, NULL);
    AQ_FAULT("core.agent.lost.proposed");
}

static void check_silence(struct core *core, struct agent_live *a, int64_t now)
{
    const struct rgroup *g = a->a.resource_group ? rgroup_find(core, a->a.resource_group) : NULL;
    int64_t grace = g ? g->g.agent_loss_grace_usec : 0;

    if (!a->is_known)
        return;
    if (a->a.status == AGENT_ALIVE && now - a->heard_usec >= core->conf.agent_timeout_usec)
        find_lost(core, a);
    if (a->a.status == AGENT_LOST && !a->loss_handled && now - a->lost_usec >= grace) {
        a->loss_handled = true;
        agent_touch_kernels(core, a);
    }
}

void agents_tick(struct core *core, int64_t now)
{
    int64_t late = now - core->ticked_usec;

    core->ticked_usec = now;
    for (size_t i = 0; i < core->agent_count; i++) {
        struct agent_live *a = core->agents_sorted[i];

        if (late > TICK_LATE_USEC)
            a->heard_usec += late;
        check_silence(core, a, now);
    }
}
