/* SPDX-License-Identifier: Apache-2.0 */
/* violation.c - comparing the driver's process lists with what is charged */
#include "gpuhost/violation.h"

#include <stdio.h>
#include <string.h>

#include "gpu/charge.h"

static uint32_t violation_slot_of(const struct aq_gpu_limits *limits, pid_t pid)
{
    for (uint32_t slot = 1; slot < AQ_GPU_SLOTS_MAX; slot++)
        if (limits->owners[slot].host_pid == pid)
            return slot;
    return 0;
}

/* Bytes that a process may hold by what it is charged, and others for it; 0 without a slot. */
static uint64_t violation_allowed_bytes(struct gpu_region_host *host, pid_t pid, uint32_t device)
{
    uint32_t slot = violation_slot_of(gpu_region_host_limits(host), pid);

    if (!slot)
        return 0;
    return (charge_of_slot(gpu_region_host_usage(host), slot, device)
            + gpu_region_host_uncharged(host, slot, device))
           << AQ_GPU_GRANULE_SHIFT;
}

void gpu_violation_check_sample(struct gpu_violation_check *check, struct gpu_region_host *host)
{
    for (size_t i = 0; i < GPU_SUSPECTS_MAX; i++) {
        struct gpu_violation *violation = &check->suspects[i].violation;
        uint64_t charged;

        if (!violation->pid || violation->kind != GPU_VIOLATION_UNDERSTATED)
            continue;
        charged = violation_allowed_bytes(host, violation->pid, violation->device);
        violation->allowed_bytes = AQ_MAX(violation->allowed_bytes, charged);
    }
}

static struct gpu_suspect *violation_find_suspect(struct gpu_violation_check *check,
                                                  const struct gpu_violation *violation)
{
    struct gpu_suspect *free_one = NULL;

    for (size_t i = 0; i < GPU_SUSPECTS_MAX; i++) {
        struct gpu_suspect *s = &check->suspects[i];

        if (s->violation.pid && s->violation.kind == violation->kind
            && s->violation.device == violation->device
            && (s->violation.pid == violation->pid || violation->kind == GPU_VIOLATION_OVER_LIMIT))
            return s;
        if (!s->violation.pid && !free_one)
            free_one = s;
    }
    return free_one;
}

/* Note a suspected violation; true if it is certain now and was not before. What the
 * process may hold is counted from zero after each check.
 */
static bool violation_add_suspect(struct gpu_violation_check *check,
                                  const struct gpu_violation *violation)
{
    struct gpu_suspect *s = violation_find_suspect(check, violation);
    uint64_t tolerated = GPU_VIOLATION_TOLERANCE
                         + AQ_MAX(s ? s->violation.allowed_bytes : 0, violation->allowed_bytes);

    if (!s || (violation->kind == GPU_VIOLATION_UNDERSTATED && violation->used_bytes <= tolerated))
        return false;
    s->violation = *violation;
    s->is_seen = true;
    s->checks++;
    if (s->is_reported
        || (violation->kind != GPU_VIOLATION_UNREGISTERED && s->checks < GPU_VIOLATION_CHECKS))
        return false;
    s->is_reported = true;
    return true;
}

/* One process on one device of the slice; false = nothing is wrong with it. */
static bool violation_check_process(struct gpu_region_host *host, uint32_t device,
                                    const struct gpu_process_memory *use, struct gpu_violation *ret)
{
    bool is_registered = violation_slot_of(gpu_region_host_limits(host), use->pid) != 0;

    *ret = (struct gpu_violation){
        .kind = is_registered ? GPU_VIOLATION_UNDERSTATED : GPU_VIOLATION_UNREGISTERED,
        .pid = use->pid,
        .device = device,
        .used_bytes = use->bytes,
        .allowed_bytes = violation_allowed_bytes(host, use->pid, device)
    };
    return !is_registered || use->bytes > ret->allowed_bytes + GPU_VIOLATION_TOLERANCE;
}

/* All processes on one device of the slice. What they hold from when they were
 * granted more falls as they give it back.
 */
static bool violation_check_sum(struct gpu_region_host *host, uint64_t sum, size_t processes,
                                struct gpu_violation *most)
{
    struct aq_gpu_limits_device *limits = &gpu_region_host_limits(host)->devices[most->device];
    uint64_t allowed = AQ_MAX(limits->memory_bytes, limits->held_bytes);
    /* the driver may show memory at each process that has imported it */
    uint64_t repeated = gpu_region_host_overcounted(host, most->device) << AQ_GPU_GRANULE_SHIFT;

    if (limits->held_bytes && sum < limits->held_bytes)
        limits->held_bytes = sum > limits->memory_bytes ? sum : 0;
    most->kind = GPU_VIOLATION_OVER_LIMIT;
    most->used_bytes = sum;
    most->allowed_bytes = allowed;
    return sum > allowed + repeated + processes * GPU_VIOLATION_TOLERANCE;
}

static void violation_clear_unseen(struct gpu_violation_check *check)
{
    for (size_t i = 0; i < GPU_SUSPECTS_MAX; i++) {
        if (!check->suspects[i].is_seen)
            check->suspects[i] = (struct gpu_suspect){ 0 };
        check->suspects[i].is_seen = false;
    }
}

size_t gpu_violation_check_run(struct gpu_violation_check *check, struct gpu_region_host *host,
                               const struct gpu_process_memory *uses, size_t count,
                               bool (*belongs)(pid_t pid, void *data), void *data,
                               struct gpu_violation *ret, size_t room)
{
    struct aq_gpu_limits *limits = gpu_region_host_limits(host);
    size_t found = 0;

    for (uint32_t d = 0; d < limits->device_count; d++) {
        /* managed memory is charged to nobody, and may be on the device all the same */
        bool is_exact = !(limits->devices[d].flags & AQ_GPU_HOST_MEMORY);
        struct gpu_violation violation, most = { .device = d };
        uint64_t sum = 0, largest = 0;
        size_t processes = 0;

        for (size_t i = 0; i < count; i++) {
            if (memcmp(uses[i].uuid, limits->devices[d].uuid, sizeof(uses[i].uuid)) != 0
                || !belongs(uses[i].pid, data))
                continue;
            processes++;
            sum += uses[i].bytes;
            if (!most.pid || uses[i].bytes > largest) {
                most.pid = uses[i].pid;
                largest = uses[i].bytes;
            }
            if (violation_check_process(host, d, &uses[i], &violation)
                && (is_exact || violation.kind == GPU_VIOLATION_UNREGISTERED)
                && violation_add_suspect(check, &violation) && found < room)
                ret[found++] = violation;
        }
        if (violation_check_sum(host, sum, processes, &most) && is_exact
            && violation_add_suspect(check, &most) && found < room)
            ret[found++] = most;
    }
    violation_clear_unseen(check);
    return found;
}

bool gpu_violation_is_breach(const struct gpu_violation *violation)
{
    return violation->kind != GPU_VIOLATION_UNDERSTATED;
}

void gpu_violation_format(const struct gpu_violation *violation, struct gpu_region_host *host,
                          char *ret, size_t size)
{
    const uint8_t *uuid = gpu_region_host_limits(host)->devices[violation->device].uuid;
    unsigned long long used = violation->used_bytes >> 20, allowed = violation->allowed_bytes >> 20;
    int len = violation->kind == GPU_VIOLATION_OVER_LIMIT
                  ? snprintf(ret, size, "all processes hold ")
                  : snprintf(ret, size, "process %d ", (int)violation->pid);
    char device[GPU_UUID_TEXT_MAX];

    gpu_uuid_write(uuid, device)[12] = '\0';
    if (len < 0 || (size_t)len >= size)
        return;
    ret += len;
    size -= (size_t)len;
    if (violation->kind == GPU_VIOLATION_UNREGISTERED)
        (void)snprintf(ret, size, "uses %s past its limits (%llu MiB of device memory)", device,
                       used);
    else if (violation->kind == GPU_VIOLATION_UNDERSTATED)
        (void)snprintf(ret, size, "holds more of %s than it is charged (%llu MiB, charged %llu)",
                       device, used, allowed);
    else
        (void)snprintf(ret, size,
                       "%llu MiB of %s, more than the %llu granted (process %d most of it)", used,
                       device, allowed, (int)violation->pid);
}
