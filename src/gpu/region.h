/* SPDX-License-Identifier: Apache-2.0 */
/* region.h - this process's place in its container's GPU slice
 *
 * The region comes over a unix socket: AQ_GPU_SOCKET, or, only where that path
 * does not exist, the one that ALIQUOT_GPU_SOCKET names. The environment
 * decides nothing else. Without a region nothing is granted: contexts and
 * memory are refused until the agent answers.
 *
 * After fork the child has no place yet and asks for its own.
 */
#ifndef AQ_GPU_REGION_USE_H
#define AQ_GPU_REGION_USE_H

#include <stdbool.h>
#include <stdint.h>

#include "aliquot/gpu_region.h"

struct gpu_region {
    const struct aq_gpu_limits *limits; /* NULL = not attached */
    struct aq_gpu_usage *usage;
    uint32_t slot;
    uint32_t device_count; /* at most AQ_GPU_DEVICES_MAX */
    int64_t clock_shift;   /* add to CLOCK_MONOTONIC to get the agent's */
};
extern struct gpu_region gpu_region;

/* Attach if that has not happened; tries again at most every 50 ms. errno stays. */
bool gpu_region_attach(void);

/* If the agent has been silent for a second, ask for the limits of its successor. */
void gpu_region_renew(void);

/* The agent has updated the clocks of this container within the last second. */
bool gpu_region_is_alive(void);

/* Send a request about a shared allocation to the agent. False = no answer; then none is
 * sent for the next second. errno stays.
 */
bool gpu_region_request(const struct aq_gpu_loan_order *request, struct aq_gpu_loan_reply *ret);

static inline bool gpu_region_is_attached(void)
{
    return __builtin_expect(__atomic_load_n(&gpu_region.limits, __ATOMIC_ACQUIRE) != (void *)0, 1);
}

/* The agent's CLOCK_MONOTONIC, nanoseconds. */
int64_t gpu_now_ns(void);

/* The slice's memory in whole granules. */
static inline uint64_t gpu_region_limit(uint32_t device)
{
    return __atomic_load_n(&gpu_region.limits->devices[device].memory_bytes, __ATOMIC_RELAXED)
           >> AQ_GPU_GRANULE_SHIFT;
}

/* Launches of GPU kernels, but for those within graphs. Processes of a container are spread over the
 * words of all devices, so that they do not wait for each other's cache line.
 */
static inline void gpu_region_count_launches(unsigned int count)
{
    if (gpu_region_is_attached())
        (void)__atomic_fetch_add(
            &gpu_region.usage->devices[gpu_region.slot % AQ_GPU_DEVICES_MAX].launches, count,
            __ATOMIC_RELAXED);
}

/* A driver function that hooks.def does not know was asked for. */
void gpu_region_count_unknown(void);

/* In the child after fork. */
void gpu_region_after_fork(void);

#endif
