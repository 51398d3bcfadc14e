/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - numbers that look like those of devices at work */
#include "mock/plugin.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* xorshift64*, in [0, 1). */
static double mock_uniform(struct mock *mock)
{
    uint64_t x = mock->random;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    mock->random = x;
    return (double)((x * UINT64_C(2685821657736338717)) >> 11) / 9007199254740992.0;
}

/* Around 'mean'; the sum of twelve uniform numbers is near enough. */
static double mock_around(struct mock *mock, double mean, double deviation)
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += mock_uniform(mock);
    return fmax(0, mean + sum * deviation);
}

struct measure_series {
    const char *suffix;
    uint32_t unit, stats;
    bool is_mean; /* the node's value is the mean, not the sum */
};

static const struct measure_series series[] = {
    { "mem", AQ_ACCELERATOR_UNIT_BYTES, AQ_ACCELERATOR_STAT_MAX, false },
    { "util", AQ_ACCELERATOR_UNIT_PERCENT, AQ_ACCELERATOR_STAT_AVG | AQ_ACCELERATOR_STAT_MAX,
      false },
    { "power", AQ_ACCELERATOR_UNIT_WATTS, AQ_ACCELERATOR_STAT_AVG | AQ_ACCELERATOR_STAT_MAX,
      false },
    { "temperature", AQ_ACCELERATOR_UNIT_CELSIUS, AQ_ACCELERATOR_STAT_AVG | AQ_ACCELERATOR_STAT_MAX,
      true },
};
enum { MEM, UTIL, POWER, TEMPERATURE };

static void mock_sample(struct mock *mock, const struct mock_device *device, size_t kind,
                        double *value, double *capacity)
{
    switch (kind) {
    case MEM:
        *capacity = (double)device->memory_bytes;
        *value = floor(*capacity * (0.2 + 0.8 * mock_uniform(mock)));
        break;
    case UTIL:
        *capacity = 100;
        *value = 100 * mock_uniform(mock);
        break;
    case POWER:
        *capacity = 250;
        *value = fmin(*capacity, mock_around(mock, 200, 50));
        break;
    default:
        *capacity = 120;
        *value = mock_around(mock, 60, 5); /* six deviations at most: 30 to 90 */
    }
}

static void mock_tell_metric(const struct mock *mock, size_t kind, const char *device,
                             uint32_t target, double value, double capacity,
                             const struct aq_accelerator_out *out)
{
    char key[40];

    (void)snprintf(key, sizeof(key), "%.16s_%s", mock->key, series[kind].suffix);
    out->metric(out->data, &(struct aq_accelerator_metric){ .key = key,
                                                            .device = device,
                                                            .target = target,
                                                            .unit = series[kind].unit,
                                                            .stats = series[kind].stats,
                                                            .value = value,
                                                            .capacity = capacity });
}

static void mock_measure_node(struct mock *mock, size_t kind, const struct aq_accelerator_out *out)
{
    const struct mock_device *devices = mock->devices.items;
    double sum = 0, capacities = 0;
    size_t count = 0;

    for (size_t i = 0; i < mock->devices.count; i++) {
        double value, capacity;

        if (sharing_is_masked(&mock->sharing, devices[i].id))
            continue;
        mock_sample(mock, &devices[i], kind, &value, &capacity);
        mock_tell_metric(mock, kind, devices[i].id, AQ_ACCELERATOR_NO_TARGET, value, capacity, out);
        sum += value;
        capacities += capacity;
        count++;
    }
    if (count == 0)
        return;
    if (series[kind].is_mean) {
        sum /= (double)count;
        capacities /= (double)count;
    }
    mock_tell_metric(mock, kind, NULL, AQ_ACCELERATOR_NO_TARGET, sum, capacities, out);
}

/* The part of the device that the grant is. */
static double mock_share_of(const struct mock_device *device,
                            const struct aq_accelerator_grant *grant)
{
    return device->amount > 0 ? (double)grant->amount / (double)device->amount : 0;
}

static void mock_measure_target(struct mock *mock, const struct aq_accelerator_target *target,
                                uint32_t index, const struct aq_accelerator_out *out)
{
    double memory = 0, memory_max = 0, util = 0;
    size_t count = 0;

    for (size_t i = 0; i < target->grant_count; i++) {
        const struct mock_device *device = mock_find(mock, target->grants[i].device);
        double bytes;

        if (!device)
            continue;
        bytes = floor((double)device->memory_bytes * mock_share_of(device, &target->grants[i]));
        memory += floor(bytes * (0.2 + 0.8 * mock_uniform(mock)));
        memory_max += bytes;
        util += 100 * mock_uniform(mock);
        count++;
    }
    if (count == 0)
        return;
    mock_tell_metric(mock, MEM, NULL, index, memory, memory_max, out);
    mock_tell_metric(mock, UTIL, NULL, index, util, 100.0 * (double)count, out);
}

int mock_measure(void *self, const struct aq_accelerator_target *targets, size_t count,
                 const struct aq_accelerator_out *out)
{
    struct mock *mock = self;

    for (size_t kind = MEM; kind <= TEMPERATURE; kind++)
        mock_measure_node(mock, kind, out);
    for (size_t i = 0; i < count; i++)
        mock_measure_target(mock, &targets[i], (uint32_t)i, out);
    return 0;
}
