/* SPDX-License-Identifier: Apache-2.0 */
/* statistics.c - samples that agents send, and what becomes of them */
#include "manager/core/statistics.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/vec.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/idle_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"
#include "manager/core/statistics/statistics_internal.h"

#define STALE_INTERVALS 4
#define INTERVAL_USUAL_USEC (5 * USEC_PER_SEC)
#define INTERVAL_MAX_USEC (3600 * USEC_PER_SEC)
/* Of an agent. A value of one device is looked for among those of all, so the second is what a
 * list of all of them costs.
 */
#define DEVICES_MAX 1024
#define DEVICE_VALUES_MAX 8192
#define NEW_METRICS_MAX 512 /* of an agent: kinds are kept forever, and for all agents */

/* ---- what agents say ---- */

/* The kinds that a message's indices mean; NULL for those that cannot be used. */
static const struct metric_kind **statistics_find_kinds(struct core *core, struct agent_entry *a,
                                                        const struct msg_statistics *m)
{
    struct metric_kinds *known = &core->statistics.kinds;
    const struct metric_kind **kinds = arena_array(&core->scratch, m->metric_count + 1,
                                                   sizeof(struct metric_kind *));

    for (size_t i = 0; kinds && i < m->metric_count; i++) {
        const struct msg_metric *metric = &m->metrics[i];
        const struct metric_kind like = { metric->key, (enum metric_unit)metric->unit,
                                          (enum metric_show)metric->show,
                                          (unsigned)metric->stats & METRIC_STATS_ALL };

        size_t before = known->count;

        if (metric->unit >= METRIC_UNITS || metric->show >= METRIC_SHOWS)
            continue;
        kinds[i] = a->new_metrics < NEW_METRICS_MAX ? metric_kinds_get(known, &like)
                                                    : metric_kinds_find(known, &like);
        a->new_metrics += (unsigned)(known->count - before);
    }
    return kinds;
}

static void statistics_take_values(struct measured *to, const struct msg_statistics *m,
                                   const struct metric_kind *const *kinds,
                                   const struct msg_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t metric = values[i].metric;

        if (metric < (int64_t)m->metric_count && kinds[metric])
            (void)measured_add(to, kinds[metric], values[i].value, values[i].capacity, m->at_usec);
    }
}

static void statistics_take_kernel(struct core *core, const struct agent_entry *a,
                                   const struct msg_statistics *m,
                                   const struct metric_kind *const *kinds,
                                   const struct msg_kernel_values *values)
{
    struct kernel_entry *f = agent_entry_find_kernel(core, a, &values->session_id,
                                                     &values->kernel_id);

    if (f && !f->measured)
        f->measured = aq_alloc(sizeof(*f->measured));
    if (!f)
        return;
    statistics_take_values(f->measured, m, kinds, values->values, values->value_count);
    idle_entry_measure(core, f->entry, f);
}

static struct measured *statistics_get_device(struct agent_measured *to, const char *id)
{
    struct device_measured *device;

    for (size_t i = 0; i < to->count; i++)
        if (strcmp(to->devices[i].id, id) == 0)
            return &to->devices[i].measured;
    if (to->count == DEVICES_MAX)
        return NULL;
    vec_grow(&to->devices, &to->cap, to->count + 1, sizeof(*to->devices));
    device = &to->devices[to->count++];
    *device = (struct device_measured){ .id = aq_strdup(id) };
    return &device->measured;
}

static void statistics_drop_device(struct agent_measured *m, size_t i)
{
    free(m->devices[i].id);
    measured_done(&m->devices[i].measured);
    m->devices[i] = m->devices[--m->count];
}

/* Devices that this sample has not are gone. The agent's clock may have been set back. */
static void statistics_drop_devices(struct agent_measured *m, int64_t at_usec)
{
    for (size_t i = m->count; i-- > 0;)
        if (m->devices[i].measured.at_usec != at_usec)
            statistics_drop_device(m, i);
}

/* '*room' is for metrics that its devices did not have before. */
static void statistics_take_device(struct agent_measured *to, const struct msg_statistics *m,
                                   const struct metric_kind *const *kinds,
                                   const struct msg_device_values *values, size_t *room)
{
    struct measured *device = statistics_get_device(to, values->device);
    size_t before = device ? device->count : 0;

    for (size_t i = 0; device && i < values->value_count; i++) {
        int64_t metric = values->values[i].metric;
        const struct metric_kind *kind = metric < (int64_t)m->metric_count ? kinds[metric] : NULL;

        if (kind && (device->count - before < *room || measured_find(device, kind->key)))
            (void)measured_add(device, kind, values->values[i].value, values->values[i].capacity,
                               m->at_usec);
    }
    if (device)
        *room -= device->count - before;
}

static void statistics_take_node(struct agent_entry *a, const struct msg_statistics *m,
                                 const struct metric_kind *const *kinds)
{
    struct agent_measured *to = a->measured;
    size_t room = DEVICE_VALUES_MAX;

    if (!to)
        to = a->measured = aq_alloc(sizeof(*to));
    to->heard_usec = clock_monotonic_usec();
    to->interval_usec = m->interval_usec ? AQ_MIN(m->interval_usec, INTERVAL_MAX_USEC)
                                         : INTERVAL_USUAL_USEC;
    statistics_take_values(&to->node, m, kinds, m->node, m->node_count);
    for (size_t i = 0; i < to->count; i++)
        room -= AQ_MIN(room, to->devices[i].measured.count);
    for (size_t i = 0; i < m->device_count; i++)
        statistics_take_device(to, m, kinds, &m->devices[i], &room);
    statistics_drop_devices(to, m->at_usec);
}

void statistics_take(struct core *core, struct agent_entry *a, const struct msg_statistics *m)
{
    const struct metric_kind **kinds = statistics_find_kinds(core, a, m);

    if (kinds) {
        if (m->node_count || m->device_count)
            statistics_take_node(a, m, kinds);
        for (size_t i = 0; i < m->kernel_count; i++)
            statistics_take_kernel(core, a, m, kinds, &m->kernels[i]);
    }
    arena_clear(&core->scratch, 1 << 16);
}

/* ---- what is known ---- */

const struct measured *core_kernel_measured(const struct core *core, const struct uuid *kernel_id)
{
    const struct kernel *k = core_find_kernel(core, kernel_id);

    return k ? session_entry_of(k->session)->kernels[k->rank].measured : NULL;
}

const struct agent_measured *core_agent_measured(const struct core *core, const char *agent_id)
{
    const struct agent_entry *a = agent_entry_find(core, agent_id);
    const struct agent_measured *m = a ? a->measured : NULL;

    return m && clock_monotonic_usec() - m->heard_usec <= STALE_INTERVALS * m->interval_usec ? m
                                                                                             : NULL;
}

static bool statistics_is_first_with(const struct agent_measured *m, size_t device, const char *key)
{
    for (size_t i = 0; i < device; i++)
        if (measured_find(&m->devices[i].measured, key))
            return false;
    return true;
}

/* All devices that have the metric; none of those before 'first' has. */
static void statistics_write_devices(const struct agent_measured *m, size_t first, const char *key,
                                     struct jsonw *w)
{
    jsonw_key(w, key);
    jsonw_object_begin(w);
    for (size_t i = first; i < m->count; i++) {
        const struct measured_item *item = measured_find(&m->devices[i].measured, key);

        if (!item)
            continue;
        jsonw_key(w, m->devices[i].id);
        metric_write(&item->metric, item->kind, w);
    }
    jsonw_object_end(w);
}

void agent_measured_write(const struct agent_measured *m, struct jsonw *w)
{
    jsonw_object_begin(w);
    jsonw_key(w, "node");
    if (m)
        measured_write(&m->node, w);
    else
        jsonw_raw(w, "{}", 2);
    jsonw_key(w, "devices");
    jsonw_object_begin(w);
    for (size_t i = 0; m && i < m->count; i++)
        for (size_t k = 0; k < m->devices[i].measured.count; k++) {
            const char *key = m->devices[i].measured.items[k].kind->key;

            if (statistics_is_first_with(m, i, key))
                statistics_write_devices(m, i, key, w);
        }
    jsonw_object_end(w);
    jsonw_object_end(w);
}

char *statistics_text(const struct measured *m)
{
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    if (!m || !m->at_usec)
        return NULL;
    measured_write(m, &w);
    return strbuf_steal(&text);
}

/* ---- the end ---- */

void agent_measured_free(struct agent_measured *m)
{
    if (!m)
        return;
    while (m->count)
        statistics_drop_device(m, m->count - 1);
    free(m->devices);
    measured_done(&m->node);
    free(m);
}
