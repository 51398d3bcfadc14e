/* SPDX-License-Identifier: Apache-2.0 */
/* violation.h - does a container use a device past its limits?
 *
 * Compares what the driver says of the processes of one container with its
 * region: a process that uses a device without having asked for a slot, one
 * that holds more than its slot is charged, or more held by all than was
 * granted, whatever the region says.
 *
 * The driver's list is older than the reading of the region, and a program may
 * have freed memory in between. So a process that seems to hold too much is a
 * suspect first: its charge is sampled from then on, and it is reported if it
 * held more than the largest sample in each of GPU_VIOLATION_CHECKS checks in a
 * row. A process without a slot needs no second check: it gets one before the
 * driver has anything for it.
 */
#ifndef AQ_GPUHOST_VIOLATION_H
#define AQ_GPUHOST_VIOLATION_H

#include <stdbool.h>

#include "gpuhost/region_host.h"
#include "gpuhost/nvml.h"

/* What the driver rounds and keeps on its own may differ by so much, per process. */
#define GPU_VIOLATION_TOLERANCE ((uint64_t)64 << 20)
#define GPU_VIOLATION_CHECKS 3
#define GPU_SUSPECTS_MAX 32

enum gpu_violation_kind {
    GPU_VIOLATION_UNREGISTERED, /* uses the device without having asked for a slot */
    GPU_VIOLATION_UNDERSTATED,  /* holds more than it is charged */
    GPU_VIOLATION_OVER_LIMIT,   /* all processes together hold more than was granted */
};

struct gpu_violation {
    enum gpu_violation_kind kind;
    pid_t pid;       /* GPU_VIOLATION_OVER_LIMIT: of the process that holds most */
    uint32_t device; /* of the slice */
    uint64_t used_bytes, allowed_bytes;
};

struct gpu_suspect {
    struct gpu_violation violation; /* pid 0 = free; GPU_VIOLATION_OVER_LIMIT: any */
    uint32_t checks;                /* in a row */
    bool is_seen, is_reported;
};

/* Of one share; zeroed = no suspicion. */
struct gpu_violation_check {
    struct gpu_suspect suspects[GPU_SUSPECTS_MAX];
};

/* Sample what suspects are charged; call it often between checks. */
void gpu_violation_check_sample(struct gpu_violation_check *check, struct gpu_region_host *host);

/* Compare 'uses' of all devices and processes. 'belongs' says whether a pid is
 * of the share's container. Puts at most 'room' violations that were not
 * reported before into 'ret'; returns how many.
 */
size_t gpu_violation_check_run(struct gpu_violation_check *check, struct gpu_region_host *host,
                               const struct gpu_process_memory *uses, size_t count,
                               bool (*belongs)(pid_t pid, void *data), void *data,
                               struct gpu_violation *ret, size_t room);

/* Reason enough to end the process? Not GPU_VIOLATION_UNDERSTATED: memory that a process
 * has imported is charged to the exporter, and the driver may show it at both.
 */
bool gpu_violation_is_breach(const struct gpu_violation *violation);

/* Human-readable: "process 17 uses GPU-513a5f0e past its limits (1024 MiB)". */
void gpu_violation_format(const struct gpu_violation *violation, struct gpu_region_host *host,
                          char *ret, size_t size);

#endif
