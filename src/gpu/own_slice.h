/* own_slice.h - this process's part of the region, for one device of the slice
 *
 * Short names for words of gpu_region.h; a region must be attached.
 */
#ifndef AQ_GPU_OWN_SLICE_H
#define AQ_GPU_OWN_SLICE_H

#include <stdbool.h>

#include "gpu/pace.h"
#include "gpu/region.h"

static inline const struct aq_gpu_limits_device *limits_of(int device)
{
    return &gpu_region.limits->devices[device];
}

static inline struct aq_gpu_usage_device *usage_of(int device)
{
    return &gpu_region.usage->devices[device];
}

/* Time granted to the container so far. */
static inline int64_t grant_now(int device, int64_t now)
{
    return pace_clock(&limits_of(device)->grant, now, gpu_region.limits->alive_ns,
                      limits_of(device)->share);
}

/* Time that a process of it has had the device to itself so far. */
static inline int64_t own_clock(int device, int64_t at)
{
    return pace_clock(&limits_of(device)->own, at, at, AQ_GPU_WHOLE);
}

/* Tell the agent until when this process's work keeps the device busy. */
static inline void show_busy(int device, int64_t until)
{
    __atomic_store_n(&gpu_region.usage->slots[gpu_region.slot].devices[device].busy_ns, until,
                     __ATOMIC_RELAXED);
}

static inline int64_t busy_until(int device)
{
    return __atomic_load_n(&gpu_region.usage->slots[gpu_region.slot].devices[device].busy_ns,
                           __ATOMIC_RELAXED);
}

/* No other container has wanted time of late. */
static inline bool is_alone(int device)
{
    return __atomic_load_n(&limits_of(device)->own.rate, __ATOMIC_RELAXED) == AQ_GPU_WHOLE;
}

#endif
