/* SPDX-License-Identifier: Apache-2.0 */
/* sample.c - one sample of a node, as it is being taken */
#include "agent/stat/sample.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/vec.h"
#include "model/metric.h"

#define NAMES_KEPT (64u << 10) /* bytes of names that stay allocated */

/* Where the values of an owner are in the common list. */
struct sample_part {
    size_t first, count;
};

struct sample {
    struct msg_statistics message;
    bool is_ended;
    struct msg_metric metrics[MSG_METRICS_MAX]; /* keys of accelerators are owned */
    size_t metric_count;
    struct msg_value *values;
    size_t value_count, value_cap;
    struct msg_device_values *devices;
    struct sample_part *device_parts;
    size_t device_count, device_cap, device_part_cap;
    struct msg_kernel_values *kernels;
    struct sample_part *kernel_parts;
    size_t kernel_count, kernel_cap, kernel_part_cap;
    struct arena names;            /* of devices */
    struct sample_part node, *now; /* NULL: what is added is dropped */
};

static const struct metric_kind kinds[SAMPLE_METRICS] = {
    [SAMPLE_NODE_CPU_UTIL] = { "cpu_util", METRIC_MSEC, METRIC_DIFF, 0 },
    [SAMPLE_NODE_MEM] = { "mem", METRIC_BYTES, METRIC_VALUE, METRIC_MAX },
    [SAMPLE_NODE_DISK] = { "disk", METRIC_BYTES, METRIC_VALUE, 0 },
    [SAMPLE_NET_RX] = { "net_rx", METRIC_BPS, METRIC_RATE, 0 },
    [SAMPLE_NET_TX] = { "net_tx", METRIC_BPS, METRIC_RATE, 0 },
    [SAMPLE_CPU_UTIL] = { "cpu_util", METRIC_PERCENT, METRIC_RATE, METRIC_AVG | METRIC_MAX },
    [SAMPLE_CPU_USED] = { "cpu_used", METRIC_MSEC, METRIC_VALUE, 0 },
    [SAMPLE_MEM] = { "mem", METRIC_BYTES, METRIC_VALUE, METRIC_MAX },
    [SAMPLE_IO_READ] = { "io_read", METRIC_BYTES, METRIC_VALUE, METRIC_PER_SEC },
    [SAMPLE_IO_WRITE] = { "io_write", METRIC_BYTES, METRIC_VALUE, METRIC_PER_SEC },
    [SAMPLE_IO_SCRATCH] = { "io_scratch_size", METRIC_BYTES, METRIC_VALUE, METRIC_MAX },
};

struct sample *sample_new(void)
{
    struct sample *sample = aq_alloc(sizeof(*sample));

    for (size_t i = 0; i < SAMPLE_METRICS; i++)
        sample->metrics[i] = (struct msg_metric){ .key = kinds[i].key,
                                                  .unit = kinds[i].unit,
                                                  .show = kinds[i].show,
                                                  .stats = kinds[i].stats };
    sample->metric_count = SAMPLE_METRICS;
    return sample;
}

void sample_free(struct sample *sample)
{
    if (!sample)
        return;
    for (size_t i = SAMPLE_METRICS; i < sample->metric_count; i++)
        free((char *)(uintptr_t)sample->metrics[i].key);
    free(sample->values);
    free(sample->devices);
    free(sample->device_parts);
    free(sample->kernels);
    free(sample->kernel_parts);
    arena_done(&sample->names);
    free(sample);
}

void sample_begin(struct sample *sample, int64_t at_usec, int64_t interval_usec)
{
    sample->message = (struct msg_statistics){ .at_usec = at_usec, .interval_usec = interval_usec };
    sample->is_ended = false;
    arena_clear(&sample->names, NAMES_KEPT);
    sample->value_count = sample->device_count = sample->kernel_count = 0;
    sample->node = (struct sample_part){ 0, 0 };
    sample->now = &sample->node;
}

void sample_begin_device(struct sample *sample, const char *device)
{
    size_t n = sample->device_count;

    sample->now = NULL;
    if (n == MSG_MEASURED_MAX)
        return;
    vec_grow(&sample->devices, &sample->device_cap, n + 1, sizeof(*sample->devices));
    vec_grow(&sample->device_parts, &sample->device_part_cap, n + 1, sizeof(*sample->device_parts));
    sample->devices[n] = (struct msg_device_values){ .device = arena_strdup(&sample->names,
                                                                            device) };
    sample->device_parts[n] = (struct sample_part){ sample->value_count, 0 };
    sample->now = &sample->device_parts[n];
    sample->device_count++;
}

void sample_begin_kernel(struct sample *sample, const struct uuid *kernel_id,
                         const struct uuid *session_id, int64_t attempt)
{
    size_t n = sample->kernel_count;

    vec_grow(&sample->kernels, &sample->kernel_cap, n + 1, sizeof(*sample->kernels));
    vec_grow(&sample->kernel_parts, &sample->kernel_part_cap, n + 1, sizeof(*sample->kernel_parts));
    sample->kernels[n] = (struct msg_kernel_values){ .kernel_id = *kernel_id,
                                                     .session_id = *session_id,
                                                     .attempt = attempt };
    sample->kernel_parts[n] = (struct sample_part){ sample->value_count, 0 };
    sample->now = &sample->kernel_parts[n];
    sample->kernel_count++;
}

void sample_add(struct sample *sample, size_t metric, double value, double capacity)
{
    size_t n = sample->value_count;

    if (!sample->now || sample->now->count == MSG_VALUES_MAX || !isfinite(value)
        || !isfinite(capacity))
        return;
    vec_grow(&sample->values, &sample->value_cap, n + 1, sizeof(*sample->values));
    sample->values[n] = (struct msg_value){ (int64_t)metric, value, capacity };
    sample->value_count++;
    sample->now->count++;
}

void sample_add_accel(struct sample *sample, const char *key, int64_t unit, int64_t stats,
                      double value, double capacity)
{
    size_t i = SAMPLE_METRICS;

    while (i < sample->metric_count
           && (sample->metrics[i].unit != unit || sample->metrics[i].stats != stats
               || strcmp(sample->metrics[i].key, key) != 0))
        i++;
    if (i == sample->metric_count) {
        if (i == MSG_METRICS_MAX)
            return;
        sample->metrics[i] = (struct msg_metric){ .key = aq_strdup(key),
                                                  .unit = unit,
                                                  .stats = stats };
        sample->metric_count++;
    }
    sample_add(sample, i, value, capacity);
}

const struct msg_statistics *sample_end(struct sample *sample)
{
    struct msg_statistics *message = &sample->message;

    for (size_t i = 0; i < sample->device_count; i++) {
        sample->devices[i].values = sample->values + sample->device_parts[i].first;
        sample->devices[i].value_count = sample->device_parts[i].count;
    }
    for (size_t i = 0; i < sample->kernel_count; i++) {
        sample->kernels[i].values = sample->values + sample->kernel_parts[i].first;
        sample->kernels[i].value_count = sample->kernel_parts[i].count;
    }
    message->metrics = sample->metrics;
    message->metric_count = sample->metric_count;
    message->node = sample->values;
    message->node_count = sample->node.count;
    message->devices = sample->devices;
    message->device_count = sample->device_count;
    message->kernels = sample->kernels;
    message->kernel_count = sample->kernel_count;
    sample->now = NULL;
    sample->is_ended = true;
    return message;
}

const struct msg_statistics *sample_last(const struct sample *sample)
{
    return sample->is_ended ? &sample->message : NULL;
}
