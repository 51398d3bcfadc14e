/* SPDX-License-Identifier: Apache-2.0 */
/* throttle.h - launches under a share of the device's time
 *
 * A launch whose cost is known takes it from this process's credit, a small
 * part of the container's bucket taken in advance (rate_limit.h): no system call, no
 * clock, one atomic operation. When the credit is used up, or the cost is not
 * known, or it is time to measure again, the slow way: settle measurements
 * that are done, wait while the container is in debt, take new credit, and
 * put an event before and after the launch (launch_timing.h).
 *
 * Waiting is bounded by the debt at its begin and 100 ms, so GPU kernels that wait
 * for GPU kernels not launched yet cannot hang. Who does not know what its launch costs,
 * because the first one of the GPU kernel is under way, waits no longer either; it then
 * pays what that one has taken so far, and more as it takes more. A stream that is being captured
 * is left alone: its graph pays when it is launched.
 */
#ifndef AQ_GPU_THROTTLE_H
#define AQ_GPU_THROTTLE_H

#include <stdbool.h>

#include "gpu/launch_cost.h"
#include "gpu/hooks.h"
#include "gpu/region.h"

/* What a launch carries from before to after the driver's call. */
struct throttle_launch {
    struct launch_timing *sample; /* NULL = not measured */
    CUstream stream;
};

/* Is any device of the slice limited now? */
static inline bool throttle_is_on(void)
{
    if (!gpu_region_is_attached())
        return false;
    for (uint32_t i = 0; i < gpu_region.device_count; i++)
        if (gpu_region.limits->devices[i].share < AQ_GPU_WHOLE)
            return true;
    return false;
}

/* Paid to the bucket and not used yet, by device of the slice. */
struct throttle_credit {
    int64_t ns;
} __attribute__((aligned(64)));
extern struct throttle_credit throttle_credits[AQ_GPU_DEVICES_MAX];
extern int throttle_captures; /* streams that are being captured */

/* Is this launch paid from the credit, and need not be measured? */
static inline bool throttle_try_credit(uint64_t key)
{
    struct launch_cost *cost;
    int64_t *credit = &throttle_credits[0].ns;

    if (gpu_region.device_count != 1 || __atomic_load_n(&throttle_captures, __ATOMIC_RELAXED))
        return false;
    cost = launch_cost_find(key);
    if (!cost->ns || cost->left <= 1)
        return false;
    if (__atomic_sub_fetch(credit, (int64_t)cost->ns, __ATOMIC_RELAXED) < 0) {
        (void)__atomic_fetch_add(credit, (int64_t)cost->ns, __ATOMIC_RELAXED);
        return false;
    }
    cost->left--;
    return true;
}

/* Before and after the driver's launch call. */
void throttle_enter(struct throttle_launch *launch, uint64_t key, CUstream stream);
void throttle_leave(struct throttle_launch *launch, CUresult result);

static inline void throttle_begin(struct throttle_launch *launch, uint64_t key, CUstream stream)
{
    launch->sample = NULL;
    if (__builtin_expect(throttle_is_on(), 0))
        throttle_enter(launch, key, stream);
}

static inline void throttle_end(struct throttle_launch *launch, CUresult result)
{
    if (__builtin_expect(launch->sample != NULL, 0))
        throttle_leave(launch, result);
}

/* Measurements may be done, as after a call that ends work. */
void throttle_settle(void);

/* Before and after a call that waits for the device: the wait is this process's demand for
 * time, and afterwards work is not outstanding. Begin returns what end is given.
 */
int64_t throttle_wait_begin(void);
void throttle_wait_end(int64_t begin_ns);

/* Streams that are being captured. */
bool throttle_is_capturing(CUstream stream);
void throttle_count_capture(int change);

/* Contexts or code are gone, and with them events and function addresses. */
void throttle_drop_device(int device);
void throttle_drop_costs(void);

/* In the child after fork. */
void throttle_after_fork(void);

#endif
