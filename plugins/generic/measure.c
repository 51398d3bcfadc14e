/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - metrics: numbers in files, one per device */
#include <string.h>

#include "common/sysfile.h"
#include "generic/plugin.h"

static uint32_t generic_unit_of(const char *name)
{
    static const char *const names[] = { "count", "bytes", "percent", "msec",
                                         "bps",   "watts", "celsius" };

    for (uint32_t i = 0; i < AQ_COUNT(names); i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return AQ_ACCELERATOR_UNIT_COUNT;
}

static int64_t generic_read_number(const struct generic *g, const char *path,
                                   const struct generic_device *device, int64_t otherwise)
{
    AQ_CLEANUP(aq_freep) char *full = path ? generic_expand(path, device, 0, "") : NULL;

    return full ? sysfile_number(g->host->root, full, otherwise) : otherwise;
}

/* The device's value; false if it cannot be read now. */
static bool generic_sample(const struct generic *g, const struct generic_metric *m,
                           const struct generic_device *device, double *value, double *capacity)
{
    double scale = (double)m->scale_micro / 1e6;
    int64_t got = generic_read_number(g, m->file, device, INT64_MIN);
    int64_t most = m->capacity_file ? generic_read_number(g, m->capacity_file, device, -1)
                   : m->capacity    ? m->capacity
                                    : -1;

    *value = (double)got * scale;
    *capacity = most < 0 ? -1 : m->capacity_file ? (double)most * scale : (double)most;
    return got != INT64_MIN;
}

static void generic_tell_metric(const struct generic_metric *m, const char *device, uint32_t target,
                                double value, double capacity, const struct aq_accelerator_out *out)
{
    out->metric(out->data, &(struct aq_accelerator_metric){ .key = m->key,
                                                            .device = device,
                                                            .target = target,
                                                            .unit = generic_unit_of(m->unit),
                                                            .stats = AQ_ACCELERATOR_STAT_MAX
                                                                     | AQ_ACCELERATOR_STAT_AVG,
                                                            .value = value,
                                                            .capacity = capacity });
}

static bool generic_has_device(const struct aq_accelerator_target *target, const char *name)
{
    for (size_t i = 0; i < target->grant_count; i++)
        if (strcmp(target->grants[i].device, name) == 0)
            return true;
    return false;
}

/* Sums of a metric: of all devices, or those of a target. Whole devices are
 * a session's own, so what the device does the session does.
 */
static void generic_measure_sum(const struct generic *g, const struct generic_metric *m,
                                const struct generic_device *devices, size_t count,
                                const struct aq_accelerator_target *target, uint32_t index,
                                const struct aq_accelerator_out *out)
{
    double sum = 0, most = 0, value, capacity;
    bool is_any = false, has_capacity = true;

    for (size_t i = 0; i < count; i++) {
        if ((target && !generic_has_device(target, devices[i].name))
            || !generic_sample(g, m, &devices[i], &value, &capacity))
            continue;
        if (!target)
            generic_tell_metric(m, devices[i].name, AQ_ACCELERATOR_NO_TARGET, value, capacity, out);
        sum += value;
        most += capacity;
        has_capacity = has_capacity && capacity >= 0;
        is_any = true;
    }
    if (is_any)
        generic_tell_metric(m, NULL, index, sum, has_capacity ? most : -1, out);
}

int generic_measure(void *self, const struct aq_accelerator_target *targets, size_t count,
                    const struct aq_accelerator_out *out)
{
    const struct generic *g = self;
    const struct generic_metric *metrics = g->metrics.items;
    size_t device_count;
    struct generic_device *devices = generic_discover(g, &device_count);

    for (size_t i = 0; i < g->metrics.count; i++) {
        generic_measure_sum(g, &metrics[i], devices, device_count, NULL, AQ_ACCELERATOR_NO_TARGET,
                            out);
        for (size_t k = 0; k < count; k++)
            generic_measure_sum(g, &metrics[i], devices, device_count, &targets[k], (uint32_t)k,
                                out);
    }
    free(devices);
    return 0;
}
