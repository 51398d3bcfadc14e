#include "gpuhost/judge.h"

#include <stdio.h>
#include <string.h>

#include "gpu/charge.h"

static uint32_t slot_of(const struct aq_gpu_limits *limits, pid_t pid)
{
    for (uint32_t slot = 1; slot < AQ_GPU_SLOTS_MAX; slot++)
        if (limits->owners[slot].host_pid == pid)
            return slot;
    return 0;
}

/* Bytes that a process may hold by what it is charged, and others for it; 0 without a slot. */
static uint64_t charged_to(struct gpu_share *share, pid_t pid, uint32_t device)
{
    uint32_t slot = slot_of(gpu_share_limits(share), pid);

    if (!slot)
        return 0;
    return (charge_of_slot(gpu_share_usage(share), slot, device)
            + gpu_share_borrowed(share, slot, device)) << AQ_GPU_GRANULE_SHIFT;
}

void gpu_judge_sample(struct gpu_judge *judge, struct gpu_share *share)
{
    for (size_t i = 0; i < GPU_SUSPECTS_MAX; i++) {
        struct gpu_finding *what = &judge->suspects[i].what;
        uint64_t charged;

        if (!what->pid || what->kind != GPU_UNDERSTATED)
            continue;
        charged = charged_to(share, what->pid, what->device);
        what->allowed_bytes = AQ_MAX(what->allowed_bytes, charged);
    }
}

static struct gpu_suspect *find(struct gpu_judge *judge, const struct gpu_finding *what)
{
    struct gpu_suspect *free_one = NULL;

    for (size_t i = 0; i < GPU_SUSPECTS_MAX; i++) {
        struct gpu_suspect *s = &judge->suspects[i];

        if (s->what.pid && s->what.kind == what->kind && s->what.device == what->device
            && (s->what.pid == what->pid || what->kind == GPU_OVER))
            return s;
        if (!s->what.pid && !free_one)
            free_one = s;
    }
    return free_one;
}

/* Note that it looks like this; true if it is certain now and was not before.
 * What it may hold counts anew after each look.
 */
static bool suspect(struct gpu_judge *judge, const struct gpu_finding *what)
{
    struct gpu_suspect *s = find(judge, what);
    uint64_t tolerated = GPU_JUDGE_TOLERANCE + AQ_MAX(s ? s->what.allowed_bytes : 0,
                                                      what->allowed_bytes);

    if (!s || (what->kind == GPU_UNDERSTATED && what->used_bytes <= tolerated))
        return false;
    s->what = *what;
    s->is_seen = true;
    s->looks++;
    if (s->is_told || (what->kind != GPU_UNREGISTERED && s->looks < GPU_JUDGE_LOOKS))
        return false;
    s->is_told = true;
    return true;
}

/* One process on one device of the slice; false = nothing is wrong with it. */
static bool judge_process(struct gpu_share *share, uint32_t device, const struct gpu_use *use,
                          struct gpu_finding *ret)
{
    bool is_registered = slot_of(gpu_share_limits(share), use->pid) != 0;

    *ret = (struct gpu_finding){ .kind = is_registered ? GPU_UNDERSTATED : GPU_UNREGISTERED,
                                 .pid = use->pid, .device = device, .used_bytes = use->bytes,
                                 .allowed_bytes = charged_to(share, use->pid, device) };
    return !is_registered || use->bytes > ret->allowed_bytes + GPU_JUDGE_TOLERANCE;
}

/* All processes on one device of the slice. What they hold from when they were
 * granted more falls as they give it back.
 */
static bool judge_sum(struct gpu_share *share, uint64_t sum, size_t processes,
                      struct gpu_finding *most)
{
    struct aq_gpu_limits_device *limits = &gpu_share_limits(share)->devices[most->device];
    uint64_t allowed = AQ_MAX(limits->memory_bytes, limits->held_bytes);
    /* the driver may show memory at each process that has imported it */
    uint64_t repeated = gpu_share_repeated(share, most->device) << AQ_GPU_GRANULE_SHIFT;

    if (limits->held_bytes && sum < limits->held_bytes)
        limits->held_bytes = sum > limits->memory_bytes ? sum : 0;
    most->kind = GPU_OVER;
    most->used_bytes = sum;
    most->allowed_bytes = allowed;
    return sum > allowed + repeated + processes * GPU_JUDGE_TOLERANCE;
}

static void forget_innocent(struct gpu_judge *judge)
{
    for (size_t i = 0; i < GPU_SUSPECTS_MAX; i++) {
        if (!judge->suspects[i].is_seen)
            judge->suspects[i] = (struct gpu_suspect){ 0 };
        judge->suspects[i].is_seen = false;
    }
}

size_t gpu_judge_look(struct gpu_judge *judge, struct gpu_share *share, const struct gpu_use *uses,
                      size_t count, bool (*belongs)(pid_t pid, void *data), void *data,
                      struct gpu_finding *ret, size_t room)
{
    struct aq_gpu_limits *limits = gpu_share_limits(share);
    size_t found = 0;

    for (uint32_t d = 0; d < limits->device_count; d++) {
        /* managed memory is charged to nobody, and may be on the device all the same */
        bool is_exact = !(limits->devices[d].flags & AQ_GPU_HOST_MEMORY);
        struct gpu_finding finding, most = { .device = d };
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
            if (judge_process(share, d, &uses[i], &finding)
                && (is_exact || finding.kind == GPU_UNREGISTERED) && suspect(judge, &finding)
                && found < room)
                ret[found++] = finding;
        }
        if (judge_sum(share, sum, processes, &most) && is_exact
            && suspect(judge, &most) && found < room)
            ret[found++] = most;
    }
    forget_innocent(judge);
    return found;
}

bool gpu_finding_is_breach(const struct gpu_finding *finding)
{
    return finding->kind != GPU_UNDERSTATED;
}

void gpu_finding_write(const struct gpu_finding *finding, struct gpu_share *share,
                       char *ret, size_t size)
{
    const uint8_t *uuid = gpu_share_limits(share)->devices[finding->device].uuid;
    unsigned long long used = finding->used_bytes >> 20, allowed = finding->allowed_bytes >> 20;
    int len = finding->kind == GPU_OVER
                  ? snprintf(ret, size, "all processes hold ")
                  : snprintf(ret, size, "process %d ", (int)finding->pid);
    char device[GPU_UUID_TEXT_MAX];

    gpu_uuid_write(uuid, device)[12] = '\0';
    if (len < 0 || (size_t)len >= size)
        return;
    ret += len;
    size -= (size_t)len;
    if (finding->kind == GPU_UNREGISTERED)
        (void)snprintf(ret, size, "uses %s past its limits (%llu MiB of device memory)", device, used);
    else if (finding->kind == GPU_UNDERSTATED)
        (void)snprintf(ret, size, "holds more of %s than it is charged (%llu MiB, charged %llu)",
                       device, used, allowed);
    else
        (void)snprintf(ret, size, "%llu MiB of %s, more than the %llu granted (process %d most of it)",
                       used, device, allowed, (int)finding->pid);
}
