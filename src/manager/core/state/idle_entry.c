/* SPDX-License-Identifier: Apache-2.0 */
/* idle_entry.c - how much sessions are used: traffic, commands, and what kernels compute */
#include "manager/core/state/idle_entry.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "manager/core/state/clock_adjustment.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"
#include "model/measured.h"

#define TRAFFIC_USEC (60 * USEC_PER_SEC)
/* Kernels are judged by what they used in a minute, or in a tenth of a shorter limit. */
#define USE_MAX_USEC (60 * USEC_PER_SEC)
#define STALE_USEC (30 * USEC_PER_SEC) /* beyond two of these, nothing is known */
/* A kernel that sends or receives more transfers something. */
#define NETWORK_BYTES_PER_SEC 16384.0

struct idle_entry *idle_entry_get(struct session_entry *l)
{
    if (!l->idle)
        l->idle = aq_alloc(sizeof(*l->idle));
    return l->idle;
}

void idle_entry_free(struct idle_entry *idle)
{
    if (!idle)
        return;
    free(idle->window);
    free(idle->requests);
    free(idle);
}

/* ---- its row ---- */

static int64_t idle_entry_end(const struct core *core, int64_t from_usec, int64_t length_usec)
{
    return from_usec ? clock_adjustment_since(core, from_usec) + length_usec : 0;
}

void idle_entry_apply(struct core *core, struct session_entry *l, const struct session_idle *from,
                      unsigned what)
{
    struct idle_entry *idle = idle_entry_get(l);
    const struct session_idle *to = &idle->saved;

    session_idle_take(&idle->saved, from, what);

    if (!core->is_started && to->is_busy) /* it was in use when the manager ended */
        idle->active_usec = clock_monotonic_usec();
    else if (!core->is_started && to->active_usec)
        idle->active_usec = clock_adjustment_since(core, to->active_usec);
    if (!core->is_started && to->began_usec)
        idle->began_usec = clock_adjustment_since(core, to->began_usec);
    if (what & SESSION_IDLE_EXTENSION)
        idle->extended_usec = idle_entry_end(core, to->extended_usec, to->extension_usec);
    if (what & SESSION_IDLE_EXEMPTION)
        idle->exempt_usec = to->exempted_usec && !to->exemption_usec
                                ? CORE_IDLE_FOREVER
                                : idle_entry_end(core, to->exempted_usec, to->exemption_usec);
    durable_touch(core, &l->durable);
}

void idle_entry_begin_again(struct session_entry *l)
{
    if (!l->idle)
        return;
    l->idle->began_usec = l->idle->active_usec = l->idle->low_usec = 0;
    l->idle->warned = 0;
    l->idle->noticed_usec = 0;
    free(AQ_TAKE(l->idle->window));
}

/* ---- use ---- */

/* What was not in use is examined, to be written. */
static void idle_entry_use(struct core *core, struct session_entry *l)
{
    struct idle_entry *idle = idle_entry_get(l);

    idle->active_usec = clock_monotonic_usec();
    if (!idle->saved.is_busy && idle->limits.network_usec)
        durable_touch(core, &l->durable);
}

void core_note_work(struct core *core, const struct uuid *session)
{
    struct session_entry *l = session_entry_find(core, session);

    if (l)
        idle_entry_use(core, l);
}

void core_note_traffic(struct core *core, const struct uuid *session, int64_t bytes)
{
    struct session_entry *l = session_entry_find(core, session);
    int64_t now = clock_monotonic_usec();
    struct idle_entry *idle;

    if (!l || bytes <= 0)
        return;
    idle = idle_entry_get(l);
    if (now - idle->traffic_usec > TRAFFIC_USEC) {
        idle->traffic_usec = now;
        idle->traffic = 0;
    }
    idle->traffic += AQ_MIN(bytes, INT64_C(1) << 40);
    if (idle->traffic >= core->idle.traffic_bytes)
        idle_entry_use(core, l);
}

bool core_note_request(struct core *core, const struct uuid *session, uint64_t hash)
{
    struct session_entry *l = session_entry_find(core, session);
    struct idle_requests *requests;

    if (!l)
        return true;
    if (!idle_entry_get(l)->requests)
        l->idle->requests = aq_alloc(sizeof(*l->idle->requests));
    requests = l->idle->requests;
    for (size_t i = 0; i < IDLE_REQUESTS; i++)
        if (requests->hashes[i] == hash)
            return true;
    requests->hashes[requests->next++ % IDLE_REQUESTS] = hash;
    return false;
}

void core_note_command(struct core *core, const struct uuid *session, int change)
{
    struct session_entry *l = session_entry_find(core, session);

    if (!l)
        return;
    idle_entry_use(core, l);
    if (change > 0)
        l->idle->commands++;
    else if (l->idle->commands)
        l->idle->commands--;
}

/* ---- what kernels compute ---- */

static double idle_entry_metric(const struct measured *m, const char *key)
{
    const struct measured_item *item = measured_find(m, key);

    return item ? metric_current(&item->metric, item->kind) : 0;
}

/* In percent of its capacity; a value without one is in hundredths already. */
static double idle_entry_percent(const struct measured_item *item)
{
    double percent = metric_percent(&item->metric, item->kind);

    return percent < 0 ? metric_current(&item->metric, item->kind) : percent;
}

/* The highest of its accelerators: "cuda_util" and what others call theirs. */
static double idle_entry_accelerator(const struct measured *m)
{
    double most = 0;

    for (size_t i = 0; i < m->count; i++) {
        const char *key = m->items[i].kind->key;
        size_t len = strlen(key);

        if (len > 5 && strcmp(key + len - 5, "_util") == 0 && strcmp(key, "cpu_util") != 0)
            most = AQ_MAX(most, metric_current(&m->items[i].metric, m->items[i].kind));
    }
    return most;
}

static void idle_entry_measure_window(const struct core *core, struct idle_entry *idle,
                                      const struct measured *m, int64_t now)
{
    for (size_t i = 0; i < core->idle.threshold_count; i++) {
        const struct measured_item *item = measured_find(m, core->idle.thresholds[i].metric);

        if (item)
            idle_window_add(idle->window, now, i, idle_entry_percent(item));
    }
}

static int64_t idle_entry_period(const struct idle_entry *idle)
{
    return AQ_MIN(idle->limits.network_usec / 10, USE_MAX_USEC);
}

void idle_entry_measure(struct core *core, struct session_entry *l, struct kernel_entry *k)
{
    const struct measured *m = k->measured;
    const struct measured_item *cpu = measured_find(m, "cpu_util");
    int64_t now = clock_monotonic_usec();
    bool computes;

    if (!l->idle)
        return;
    if (l->idle->window)
        idle_entry_measure_window(core, l->idle, m, now);
    if (core->idle.cpu_percent > 0 && !cpu)
        return; /* whether it computes is not known */
    if (!k->use.count)
        k->use.since_usec = now;
    k->use.count++;
    k->use.cpu += cpu ? idle_entry_percent(cpu) : 0; /* of a core */
    k->use.accelerator += idle_entry_accelerator(m);
    k->use.network += idle_entry_metric(m, "net_rx") + idle_entry_metric(m, "net_tx");
    if (now - k->use.since_usec < idle_entry_period(l->idle))
        return;
    computes = (core->idle.cpu_percent > 0 && k->use.cpu >= core->idle.cpu_percent * k->use.count)
               || (core->idle.accelerator_percent > 0
                   && k->use.accelerator >= core->idle.accelerator_percent * k->use.count)
               || k->use.network >= NETWORK_BYTES_PER_SEC * k->use.count;
    memset(&k->use, 0, sizeof(k->use));
    k->use.judged_usec = now;
    if (computes)
        idle_entry_use(core, l);
}

bool idle_entry_is_unmeasured(const struct core *core, const struct session_entry *l, int64_t now)
{
    int64_t stale = 2 * (idle_entry_period(l->idle) + STALE_USEC);

    if (core->idle.cpu_percent <= 0 && core->idle.accelerator_percent <= 0)
        return false;
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (l->s.kernels[i].status == KERNEL_RUNNING
            && (!l->kernels[i].use.judged_usec || now - l->kernels[i].use.judged_usec > stale))
            return true;
    return false;
}

/* ---- changed settings ---- */

void core_set_idle(struct core *core, const struct idle_settings *settings)
{
    core->idle = *settings;
    core->idle_is_stale = true;
}

void idle_entry_tick(struct core *core)
{
    if (!core->idle_is_stale)
        return;
    core->idle_is_stale = false;
    LIST_FOREACH(link, &core->sessions) {
        struct session_entry *l = LIST_ENTRY(link, struct session_entry, all_link);

        if (l->s.running_usec)
            durable_touch(core, &l->durable);
    }
}
