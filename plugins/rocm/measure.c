/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - load, memory, power and temperature as the driver's files say */
#include <stdio.h>
#include <string.h>

#include "common/sysfile.h"
#include "rocm/plugin.h"

#define STATS (AQ_ACCELERATOR_STAT_MAX | AQ_ACCELERATOR_STAT_AVG)

static const struct rocm_series {
    const char *key;
    const char *file; /* below the device's directory; "hwmon*" is resolved */
    uint32_t unit, stats;
    double scale, capacity; /* capacity < 0: none, 0: the memory */
    bool is_summed;         /* of sessions and the node, too */
} series[] = {
    { "rocm_mem", "mem_info_vram_used", AQ_ACCELERATOR_UNIT_BYTES, AQ_ACCELERATOR_STAT_MAX, 1, 0,
      true },
    { "rocm_util", "gpu_busy_percent", AQ_ACCELERATOR_UNIT_PERCENT, STATS, 1, 100, true },
    { "rocm_power", "power1_average", AQ_ACCELERATOR_UNIT_WATTS, STATS, 1e-6, -1, false },
    { "rocm_temperature", "temp1_input", AQ_ACCELERATOR_UNIT_CELSIUS, STATS, 1e-3, -1, false },
};

/* Sensors are in hwmon/hwmonN, whatever N is. */
static int64_t rocm_read_sensor(const char *root, const struct rocm_device *d, const char *file)
{
    for (int i = 0; i < 64; i++) {
        char rest[64];
        AQ_CLEANUP(aq_freep) char *path = NULL;
        int64_t value;

        (void)snprintf(rest, sizeof(rest), "hwmon/hwmon%d/%s", i, file);
        path = rocm_path(d, rest);
        value = sysfile_number(root, path, -1);
        if (value >= 0)
            return value;
    }
    return -1;
}

static bool rocm_sample(const char *root, const struct rocm_device *d, const struct rocm_series *s,
                        double *value, double *capacity)
{
    AQ_CLEANUP(aq_freep) char *path = rocm_path(d, s->file);
    int64_t got = sysfile_number(root, path, -1);

    if (got < 0 && !s->is_summed)
        got = rocm_read_sensor(root, d, s->file);
    *value = (double)got * s->scale;
    *capacity = s->capacity == 0 ? (double)d->memory_bytes : s->capacity;
    return got >= 0;
}

static void rocm_tell_metric(const struct rocm_series *s, const char *device, uint32_t target,
                             double value, double capacity, const struct aq_accelerator_out *out)
{
    out->metric(out->data, &(struct aq_accelerator_metric){ .key = s->key,
                                                            .device = device,
                                                            .target = target,
                                                            .unit = s->unit,
                                                            .stats = s->stats,
                                                            .value = value,
                                                            .capacity = capacity });
}

static bool rocm_has_device(const struct aq_accelerator_target *target, const char *id)
{
    for (size_t i = 0; target && i < target->grant_count; i++)
        if (strcmp(target->grants[i].device, id) == 0)
            return true;
    return !target;
}

static void rocm_measure_sum(const char *root, const struct rocm_series *s,
                             const struct rocm_device *devices, size_t count,
                             const struct aq_accelerator_target *target, uint32_t index,
                             const struct aq_accelerator_out *out)
{
    double sum = 0, most = 0, value, capacity;
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        if (!rocm_has_device(target, devices[i].id)
            || !rocm_sample(root, &devices[i], s, &value, &capacity))
            continue;
        if (!target)
            rocm_tell_metric(s, devices[i].id, AQ_ACCELERATOR_NO_TARGET, value, capacity, out);
        sum += value;
        most += capacity;
        found++;
    }
    if (found && s->is_summed)
        rocm_tell_metric(s, NULL, index, sum, most, out);
}

int rocm_measure(void *self, const struct aq_accelerator_target *targets, size_t count,
                 const struct aq_accelerator_out *out)
{
    const struct rocm *rocm = self;
    size_t device_count;
    struct rocm_device *devices = rocm_discover(rocm, &device_count);

    for (size_t i = 0; i < AQ_COUNT(series); i++) {
        rocm_measure_sum(rocm->host->root, &series[i], devices, device_count, NULL,
                         AQ_ACCELERATOR_NO_TARGET, out);
        for (size_t k = 0; k < count && series[i].is_summed; k++)
            rocm_measure_sum(rocm->host->root, &series[i], devices, device_count, &targets[k],
                             (uint32_t)k, out);
    }
    free(devices);
    return 0;
}
