/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - what GPUs and the processes on them use, from NVML */
#include <errno.h>
#include <string.h>

#include "cuda/plugin.h"

#define PROCESSES_MAX 1024
#define STATS (AQ_ACCELERATOR_STAT_MAX | AQ_ACCELERATOR_STAT_AVG)

enum { MEM, UTIL, POWER, TEMPERATURE, KINDS };

static const struct {
    const char *key;
    uint32_t unit, stats;
} kinds[KINDS] = {
    { "cuda_mem", AQ_ACCELERATOR_UNIT_BYTES, AQ_ACCELERATOR_STAT_MAX },
    { "cuda_util", AQ_ACCELERATOR_UNIT_PERCENT, STATS },
    { "cuda_power", AQ_ACCELERATOR_UNIT_WATTS, STATS },
    { "cuda_temperature", AQ_ACCELERATOR_UNIT_CELSIUS, STATS },
};

/* What was measured of one device. */
struct measure_sample {
    double value[KINDS], capacity[KINDS];
    bool is_known[KINDS];
    nvmlProcessInfo_t processes[PROCESSES_MAX];
    unsigned int process_count;
    nvmlProcessUtilizationSample_t loads[PROCESSES_MAX];
    unsigned int load_count;
};

static void cuda_set_metric(struct measure_sample *s, int kind, double value, double capacity)
{
    s->value[kind] = value;
    s->capacity[kind] = capacity;
    s->is_known[kind] = true;
}

static void cuda_sample_device(const struct nvml *nvml, const struct cuda_device *d,
                               struct measure_sample *s)
{
    nvmlMemory_t memory;
    nvmlUtilization_t load;
    unsigned int number, limit = 0;

    memset(s->is_known, 0, sizeof(s->is_known));
    if (NVML_CALL(nvml, nvmlDeviceGetMemoryInfo, d->handle, &memory) == NVML_SUCCESS)
        cuda_set_metric(s, MEM, (double)memory.used, (double)memory.total);
    if (NVML_CALL(nvml, nvmlDeviceGetUtilizationRates, d->handle, &load) == NVML_SUCCESS)
        cuda_set_metric(s, UTIL, load.gpu, 100);
    if (NVML_CALL(nvml, nvmlDeviceGetPowerUsage, d->handle, &number) == NVML_SUCCESS) {
        if (NVML_CALL(nvml, nvmlDeviceGetEnforcedPowerLimit, d->handle, &limit) != NVML_SUCCESS)
            limit = 0;
        cuda_set_metric(s, POWER, number / 1e3, limit ? limit / 1e3 : -1);
    }
    if (NVML_CALL(nvml, nvmlDeviceGetTemperature, d->handle, NVML_TEMPERATURE_GPU, &number)
        == NVML_SUCCESS)
        cuda_set_metric(s, TEMPERATURE, number, -1);
    s->process_count = PROCESSES_MAX;
    if (NVML_CALL(nvml, nvmlDeviceGetComputeRunningProcesses_v3, d->handle, &s->process_count,
                  s->processes)
        != NVML_SUCCESS)
        s->process_count = 0;
    s->load_count = PROCESSES_MAX;
    if (NVML_CALL(nvml, nvmlDeviceGetProcessUtilization, d->handle, s->loads, &s->load_count, 0)
        != NVML_SUCCESS)
        s->load_count = 0;
}

static void cuda_tell_metric(int kind, const char *device, uint32_t target, double value,
                             double capacity, const struct aq_accelerator_out *out)
{
    out->metric(out->data, &(struct aq_accelerator_metric){ .key = kinds[kind].key,
                                                            .device = device,
                                                            .target = target,
                                                            .unit = kinds[kind].unit,
                                                            .stats = kinds[kind].stats,
                                                            .value = value,
                                                            .capacity = capacity });
}

static bool cuda_has_pid(const struct aq_accelerator_target *target, unsigned int pid)
{
    for (size_t i = 0; i < target->pid_count; i++)
        if ((unsigned int)target->pids[i] == pid)
            return true;
    return false;
}

/* Latest load of each of the target's processes. */
static double cuda_sum_loads(const struct measure_sample *s,
                             const struct aq_accelerator_target *target)
{
    double sum = 0;

    for (unsigned int i = 0; i < s->load_count; i++) {
        bool is_latest = cuda_has_pid(target, s->loads[i].pid);

        for (unsigned int k = 0; is_latest && k < s->load_count; k++)
            is_latest = s->loads[k].pid != s->loads[i].pid
                        || s->loads[k].timeStamp <= s->loads[i].timeStamp;
        if (is_latest)
            sum += s->loads[i].smUtil;
    }
    return sum > 100 ? 100 : sum;
}

/* A target's own part: what its processes use, of what it was given. */
static void cuda_add_target(const struct cuda *cuda, const struct cuda_device *d,
                            const struct measure_sample *s,
                            const struct aq_accelerator_target *target, double sums[4])
{
    for (size_t i = 0; i < target->grant_count; i++) {
        const struct aq_accelerator_grant *grant = &target->grants[i];
        bool is_part = strcmp(grant->slot, "cuda.shares") == 0;

        if (strcmp(grant->device, d->id) != 0)
            continue;
        for (unsigned int k = 0; k < s->process_count; k++)
            if (cuda_has_pid(target, s->processes[k].pid)
                && s->processes[k].usedGpuMemory != (unsigned long long)NVML_VALUE_NOT_AVAILABLE)
                sums[0] += (double)s->processes[k].usedGpuMemory;
        sums[1] += is_part ? (double)sharing_memory(&cuda->sharing, d->memory_bytes, d->processors,
                                                    grant->amount)
                           : (double)d->memory_bytes;
        sums[2] += cuda_sum_loads(s, target);
        sums[3] += 100;
        return;
    }
}

int cuda_measure(void *self, const struct aq_accelerator_target *targets, size_t count,
                 const struct aq_accelerator_out *out)
{
    struct cuda *cuda = self;
    AQ_CLEANUP(aq_freep) struct measure_sample *s = calloc(1, sizeof(*s));
    AQ_CLEANUP(aq_freep) double(*sums)[4] = calloc(count + 1, sizeof(*sums));
    double total[KINDS] = { 0 }, most[KINDS] = { 0 };
    size_t found[KINDS] = { 0 };

    if (!s || !sums)
        return -ENOMEM;
    for (size_t i = 0; i < cuda->count; i++) {
        cuda_sample_device(&cuda->nvml, &cuda->devices[i], s);
        for (int kind = 0; kind < KINDS; kind++) {
            if (!s->is_known[kind])
                continue;
            cuda_tell_metric(kind, cuda->devices[i].id, AQ_ACCELERATOR_NO_TARGET, s->value[kind],
                             s->capacity[kind], out);
            total[kind] += s->value[kind];
            most[kind] += s->capacity[kind];
            found[kind]++;
        }
        for (size_t k = 0; k < count; k++)
            cuda_add_target(cuda, &cuda->devices[i], s, &targets[k], sums[k]);
    }
    for (int kind = 0; kind < KINDS; kind++)
        if (found[kind])
            cuda_tell_metric(kind, NULL, AQ_ACCELERATOR_NO_TARGET,
                             kind == TEMPERATURE ? total[kind] / (double)found[kind] : total[kind],
                             kind == TEMPERATURE ? -1 : most[kind], out);
    for (size_t k = 0; k < count; k++) {
        if (sums[k][3] == 0)
            continue;
        cuda_tell_metric(MEM, NULL, (uint32_t)k, sums[k][0], sums[k][1], out);
        cuda_tell_metric(UTIL, NULL, (uint32_t)k, sums[k][2], sums[k][3], out);
    }
    return 0;
}
