/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c - what containers use of their parts, for Prometheus, by our names and by Alnair's
 *
 * Read of the regions when somebody asks, so a series ends with its slice. All of Alnair's series
 * are here but for those of the machine's processors. Launches are counted for each container, as
 * its processes share the words that they count in; how busy memory is says the driver. A process's
 * busy time is since the reading before, at least a second ago.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "gpu/charge.h"
#include "gpuhost/time_share.h"
#include "http/exposition.h"
#include "k8s/limits/limits_internal.h"

#define INTERVAL_NS 1000000000
#define STALE_NS 2000000000 /* what the driver has said is forgotten */

/* A process on one device. */
struct reading {
    const struct container *container; /* good while nothing else runs */
    uint32_t device;
    pid_t pid;
    uint64_t bytes;
    int64_t used_ns;
    double busy; /* percent; negative = not known yet */
};

struct readings {
    struct reading *items;
    size_t count, cap;
    int64_t at_ns;
};

/* What the driver has said of a process on a device. */
struct driver_use {
    struct gpu_process_memory use;
    int64_t at_ns;
};

struct limits_metrics {
    const struct limits *limits;
    struct metrics_server *server;
    struct readings before, next, now; /* 'next' will be 'before' once it is a second old */
    struct driver_use *uses;
    size_t use_count, use_cap;
};

/* ---- processes ---- */

static double metrics_busy(const struct limits_metrics *metrics, const struct reading *reading,
                           int64_t now_ns)
{
    const struct readings *before = &metrics->before;

    for (size_t i = 0; i < before->count; i++) {
        const struct reading *old = &before->items[i];

        if (old->pid == reading->pid && old->device == reading->device
            && old->used_ns <= reading->used_ns && now_ns > before->at_ns)
            return 100.0 * (double)(reading->used_ns - old->used_ns)
                   / (double)(now_ns - before->at_ns);
    }
    return -1;
}

static void metrics_read_container(struct limits_metrics *metrics, struct container *container)
{
    struct readings *now = &metrics->now;
    const struct aq_gpu_limits *limits = gpu_region_host_limits(container->slice.region);
    const struct aq_gpu_usage *usage = gpu_region_host_usage(container->slice.region);
    uint32_t end = gpu_region_host_slot_end(container->slice.region);

    for (uint32_t slot = 1; slot < end; slot++)
        for (uint32_t device = 0; limits->owners[slot].host_pid && device < limits->device_count;
             device++) {
            struct reading reading = {
                .container = container,
                .device = device,
                .pid = limits->owners[slot].host_pid,
                .bytes = charge_of_slot(usage, slot, device) << AQ_GPU_GRANULE_SHIFT,
                .used_ns = __atomic_load_n(&usage->slots[slot].devices[device].used_ns,
                                           __ATOMIC_RELAXED),
            };

            reading.busy = metrics_busy(metrics, &reading, now->at_ns);
            vec_grow(&now->items, &now->cap, now->count + 1, sizeof(*now->items));
            now->items[now->count++] = reading;
        }
}

static void metrics_copy(const struct readings *from, struct readings *to)
{
    to->at_ns = from->at_ns;
    vec_grow(&to->items, &to->cap, from->count + 1, sizeof(*to->items));
    if (from->count)
        memcpy(to->items, from->items, from->count * sizeof(*to->items));
    to->count = from->count;
}

static void metrics_read(struct limits_metrics *metrics)
{
    int64_t now_ns = gpu_monotonic_ns();
    bool is_due = now_ns - metrics->next.at_ns >= INTERVAL_NS;

    if (is_due)
        AQ_SWAP(metrics->before, metrics->next);
    metrics->now.count = 0;
    metrics->now.at_ns = now_ns;
    LIST_FOREACH(link, &metrics->limits->containers)
        metrics_read_container(metrics, LIST_ENTRY(link, struct container, link));
    if (is_due)
        metrics_copy(&metrics->now, &metrics->next);
}

/* ---- what the driver says ---- */

static bool metrics_is_use(const struct driver_use *known, const uint8_t uuid[16], pid_t pid)
{
    return known->use.pid == pid && memcmp(known->use.uuid, uuid, sizeof(known->use.uuid)) == 0;
}

/* Its place, or that of one that is forgotten, or a new one. */
static struct driver_use *metrics_place_of(struct limits_metrics *metrics,
                                           const struct gpu_process_memory *use, int64_t now_ns)
{
    struct driver_use *spare = NULL;

    for (size_t i = 0; i < metrics->use_count; i++) {
        struct driver_use *known = &metrics->uses[i];

        if (metrics_is_use(known, use->uuid, use->pid))
            return known;
        if (now_ns - known->at_ns > STALE_NS)
            spare = known;
    }
    if (spare)
        return spare;
    vec_grow(&metrics->uses, &metrics->use_cap, metrics->use_count + 1, sizeof(*metrics->uses));
    return &metrics->uses[metrics->use_count++];
}

void limits_metrics_on_processes(struct limits_metrics *metrics,
                                 const struct gpu_process_memory *uses, size_t count)
{
    int64_t now_ns = gpu_monotonic_ns();

    for (size_t i = 0; i < count; i++) {
        struct driver_use *place = metrics_place_of(metrics, &uses[i], now_ns);

        if (place)
            *place = (struct driver_use){ uses[i], now_ns };
    }
}

static double metrics_memory_busy(const struct limits_metrics *metrics,
                                  const struct reading *reading, const uint8_t uuid[16])
{
    for (size_t i = 0; i < metrics->use_count; i++)
        if (metrics_is_use(&metrics->uses[i], uuid, reading->pid)
            && metrics->uses[i].use.memory_busy <= 100
            && metrics->now.at_ns - metrics->uses[i].at_ns <= STALE_NS)
            return metrics->uses[i].use.memory_busy;
    return -1;
}

/* ---- ours ---- */

struct pod_family {
    const char *name, *type, *help;
    double (*value)(const struct aq_gpu_limits_device *limits, const struct aq_gpu_usage *usage,
                    uint32_t device);
};

static double metrics_limit(const struct aq_gpu_limits_device *limits,
                            const struct aq_gpu_usage *usage, uint32_t device)
{
    (void)usage;
    (void)device;
    return (double)limits->memory_bytes;
}

static double metrics_used(const struct aq_gpu_limits_device *limits,
                           const struct aq_gpu_usage *usage, uint32_t device)
{
    (void)limits;
    return (double)(charge_sum(usage, device) << AQ_GPU_GRANULE_SHIFT);
}

static double metrics_share(const struct aq_gpu_limits_device *limits,
                            const struct aq_gpu_usage *usage, uint32_t device)
{
    (void)usage;
    (void)device;
    return (double)limits->share / AQ_GPU_WHOLE;
}

static double metrics_time(const struct aq_gpu_limits_device *limits,
                           const struct aq_gpu_usage *usage, uint32_t device)
{
    (void)limits;
    return (double)__atomic_load_n(&usage->devices[device].used_ns, __ATOMIC_RELAXED) / 1e9;
}

static double metrics_refused(const struct aq_gpu_limits_device *limits,
                              const struct aq_gpu_usage *usage, uint32_t device)
{
    (void)limits;
    return (double)__atomic_load_n(&usage->devices[device].refused, __ATOMIC_RELAXED);
}

/* A container has one device here, whichever words its processes count in. */
static double metrics_launches(const struct aq_gpu_limits_device *limits,
                               const struct aq_gpu_usage *usage, uint32_t device)
{
    uint64_t sum = 0;

    (void)limits;
    (void)device;
    for (size_t i = 0; i < AQ_GPU_DEVICES_MAX; i++)
        sum += __atomic_load_n(&usage->devices[i].launches, __ATOMIC_RELAXED);
    return (double)sum;
}

static const struct pod_family families[] = {
    { "aliquot_pod_gpu_memory_limit_bytes", "gauge", "Device memory that a container has of a GPU",
      metrics_limit },
    { "aliquot_pod_gpu_memory_used_bytes", "gauge", "Device memory that its processes hold",
      metrics_used },
    { "aliquot_pod_gpu_time_share", "gauge",
      "Part of the GPU's time that a container has; 1 = no limit", metrics_share },
    { "aliquot_pod_gpu_time_used_seconds_total", "counter", "Time of the GPU that it has used",
      metrics_time },
    { "aliquot_pod_gpu_refused_total", "counter", "Allocations past its memory", metrics_refused },
    { "aliquot_pod_gpu_launches_total", "counter", "GPU kernels that its processes have launched",
      metrics_launches },
};

static void metrics_write_family(const struct limits *limits, const struct pod_family *family,
                                 struct strbuf *out)
{
    exposition_family(out, family->name, family->type, family->help);
    LIST_FOREACH(link, &limits->containers) {
        struct container *container = LIST_ENTRY(link, struct container, link);
        const struct aq_gpu_limits *granted = gpu_region_host_limits(container->slice.region);
        const struct aq_gpu_usage *usage = gpu_region_host_usage(container->slice.region);

        for (uint32_t device = 0; device < granted->device_count; device++) {
            char gpu[GPU_UUID_TEXT_MAX];

            exposition_begin(out, family->name);
            exposition_label(out, "namespace", container->namespace);
            exposition_label(out, "pod", container->pod_name);
            exposition_label(out, "container", container->name);
            exposition_label(out, "gpu", gpu_uuid_write(granted->devices[device].uuid, gpu));
            exposition_value(out, family->value(&granted->devices[device], usage, device));
        }
    }
}

/* ---- Alnair's ---- */

/* Which card it is, as the plugins list them. */
static int metrics_index_of(const struct limits *limits, const char *gpu)
{
    const struct accel_plugin *plugin;
    int index = 0;

    for (size_t i = 0; (plugin = accel_plugin(limits->conf.accel, i)); i++)
        for (size_t d = 0; d < plugin->device_count; d++, index++)
            if (strcmp(plugin->devices[d].id, gpu) == 0)
                return index;
    return -1;
}

static void metrics_write_util(const struct limits_metrics *metrics, bool is_memory,
                               struct strbuf *out)
{
    const char *name = is_memory ? "alnair_gpu_mem_util" : "alnair_gpu_util";

    exposition_family(out, name, "gauge",
                      is_memory ? "Percent of time in which a process's work accesses GPU memory"
                                : "Percent of the GPU's time that a process uses");
    for (size_t i = 0; i < metrics->now.count; i++) {
        const struct reading *reading = &metrics->now.items[i];
        const uint8_t *uuid =
            gpu_region_host_limits(reading->container->slice.region)->devices[reading->device].uuid;
        double value = is_memory ? metrics_memory_busy(metrics, reading, uuid) : reading->busy;
        char gpu[GPU_UUID_TEXT_MAX], pid[16], index[16];

        if (value < 0)
            continue;
        gpu_uuid_write(uuid, gpu);
        (void)snprintf(pid, sizeof(pid), "%d", (int)reading->pid);
        (void)snprintf(index, sizeof(index), "%d", metrics_index_of(metrics->limits, gpu));
        exposition_begin(out, name);
        exposition_label(out, "pid", pid);
        exposition_label(out, "gpu_uuid", gpu);
        exposition_label(out, "gpu_idx", index);
        exposition_label(out, "pod_name", reading->container->pod_name);
        exposition_label(out, "nodeName", metrics->limits->node);
        exposition_value(out, value);
    }
}

/* How much of its time a container could use at once: what it has not been charged for yet. */
static double metrics_available(const struct reading *reading, int64_t now_ns)
{
    const struct aq_gpu_clock *clock =
        &gpu_region_host_limits(reading->container->slice.region)->devices[reading->device].grant;
    const struct aq_gpu_usage *usage = gpu_region_host_usage(reading->container->slice.region);
    int64_t shown = clock->value_ns
                    + (int64_t)((double)(now_ns - clock->at_ns) * clock->rate / AQ_GPU_WHOLE);
    int64_t left = shown
                   - __atomic_load_n(&usage->devices[reading->device].paid_ns, __ATOMIC_RELAXED);

    return left > 0 ? (double)left / 1000 : 0;
}

static void metrics_write_cuda(const struct limits_metrics *metrics, bool is_memory,
                               struct strbuf *out)
{
    const char *name = is_memory ? "alnair_cuda_mem_used" : "alnair_cuda_available_token";

    exposition_family(out, name, "gauge",
                      is_memory
                          ? "Device memory that a process holds, in bytes"
                          : "Time of the GPU that its container may use at once, in microseconds");
    for (size_t i = 0; i < metrics->now.count; i++) {
        const struct reading *reading = &metrics->now.items[i];
        char pid[16];

        if (reading->device) /* one GPU for each container, as there */
            continue;
        (void)snprintf(pid, sizeof(pid), "%d", (int)reading->pid);
        exposition_begin(out, name);
        exposition_label(out, "pid", pid);
        exposition_label(out, "pod_name", reading->container->pod_name);
        exposition_label(out, "namespace", reading->container->namespace);
        exposition_value(out, is_memory ? (double)reading->bytes
                                        : metrics_available(reading, metrics->now.at_ns));
    }
}

static void metrics_write_launches(const struct limits *limits, struct strbuf *out)
{
    exposition_family(out, "alnair_cuda_launch_kernel_cnt", "counter",
                      "GPU kernels that the processes of a container have launched");
    LIST_FOREACH(link, &limits->containers) {
        struct container *container = LIST_ENTRY(link, struct container, link);

        exposition_begin(out, "alnair_cuda_launch_kernel_cnt");
        exposition_label(out, "pod_name", container->pod_name);
        exposition_label(out, "namespace", container->namespace);
        exposition_label(out, "container", container->name);
        exposition_value(out,
                         metrics_launches(NULL, gpu_region_host_usage(container->slice.region), 0));
    }
}

static void metrics_write(void *data, struct strbuf *out)
{
    struct limits_metrics *metrics = data;

    metrics_read(metrics);
    for (size_t i = 0; i < AQ_COUNT(families); i++)
        metrics_write_family(metrics->limits, &families[i], out);
    metrics_write_util(metrics, false, out);
    metrics_write_util(metrics, true, out);
    metrics_write_cuda(metrics, true, out);
    metrics_write_cuda(metrics, false, out);
    metrics_write_launches(metrics->limits, out);
}

static bool metrics_is_healthy(void *data)
{
    const struct limits_metrics *metrics = data;

    return metrics->limits->server != NULL;
}

/* ---- life ---- */

int limits_metrics_new(struct limits *limits, struct limits_metrics **ret, struct aq_error *err)
{
    struct limits_metrics *metrics = aq_alloc(sizeof(*metrics));
    const struct metrics_conf conf = {
        .address = limits->conf.settings->metrics_listen,
        .insecure = true, /* within the cluster, as its other exporters */
        .write = metrics_write,
        .is_healthy = metrics_is_healthy,
        .data = metrics,
    };
    int r;

    metrics->limits = limits;
    r = metrics_listen(limits->conf.loop, &conf, &metrics->server, err);
    if (r < 0)
        free(metrics);
    else
        *ret = metrics;
    return r;
}

void limits_metrics_free(struct limits_metrics *metrics)
{
    if (!metrics)
        return;
    metrics_close(metrics->server);
    free(metrics->before.items);
    free(metrics->next.items);
    free(metrics->now.items);
    free(metrics->uses);
    free(metrics);
}
