/* SPDX-License-Identifier: Apache-2.0 */
/* own_region.h - what the region says of one device of the slice, for this process
 *
 * 'device' is an index into the slice. A region must be attached (region.h).
 */
#ifndef AQ_GPU_OWN_REGION_H
#define AQ_GPU_OWN_REGION_H

#include <stdbool.h>

#include "gpu/rate_limit.h"
#include "gpu/region.h"

static inline const struct aq_gpu_limits_device *own_region_limits(int device)
{
    return &gpu_region.limits->devices[device];
}

static inline struct aq_gpu_usage_device *own_region_usage(int device)
{
    return &gpu_region.usage->devices[device];
}

/* Time granted to the container so far. */
static inline int64_t own_region_granted_ns(int device, int64_t now)
{
    return rate_limit_clock(&own_region_limits(device)->grant, now, gpu_region.limits->alive_ns,
                            own_region_limits(device)->share);
}

/* Time that a process of it has had the device to itself so far. */
static inline int64_t own_region_exclusive_ns(int device, int64_t at)
{
    return rate_limit_clock(&own_region_limits(device)->own, at, at, AQ_GPU_WHOLE);
}

/* Tell the agent until when this process's work keeps the device busy. */
static inline void own_region_set_busy(int device, int64_t until)
{
    __atomic_store_n(&gpu_region.usage->slots[gpu_region.slot].devices[device].busy_ns, until,
                     __ATOMIC_RELAXED);
}

static inline int64_t own_region_busy_until(int device)
{
    return __atomic_load_n(&gpu_region.usage->slots[gpu_region.slot].devices[device].busy_ns,
                           __ATOMIC_RELAXED);
}

/* No other container has wanted time of late. */
static inline bool own_region_is_uncontended(int device)
{
    return __atomic_load_n(&own_region_limits(device)->own.rate, __ATOMIC_RELAXED) == AQ_GPU_WHOLE;
}

#endif
