/* SPDX-License-Identifier: Apache-2.0 */
/* time_share.h - dividing a device's time among containers
 *
 * At each tick the agent reads which containers have work outstanding on a device
 * (aq_gpu_slot_device.busy_ns) and publishes two clocks for each: 'grant', how fast
 * time is granted, and 'own', which part of the passing time the container has the
 * device to itself: its turn among those that have work, or more where these use
 * less than their turns. In work-conserving mode the time of containers that want
 * none is granted to the others, by weight. Times are CLOCK_MONOTONIC in nanoseconds.
 */
#ifndef AQ_GPUHOST_TIME_SHARE_H
#define AQ_GPUHOST_TIME_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aliquot/gpu_region.h"

/* A region on this machine; the caller's own or another agent's. */
struct gpu_region_view {
    const struct aq_gpu_limits *limits;
    const struct aq_gpu_usage *usage;
    uint32_t slot_end; /* no slot from here on is owned; 0 = not known */
    /* kept between ticks: when it last wanted time, what it had paid for then,
     * how much of that the device cannot have done yet, and what it did last; whether
     * it had work then, and has paid since; the most processes at once
     */
    int64_t wanted_ns[AQ_GPU_DEVICES_MAX];
    int64_t used_ns[AQ_GPU_DEVICES_MAX], seen_ns[AQ_GPU_DEVICES_MAX];
    double pending_ns[AQ_GPU_DEVICES_MAX], done_ns[AQ_GPU_DEVICES_MAX];
    bool was_active[AQ_GPU_DEVICES_MAX], is_paid[AQ_GPU_DEVICES_MAX];
    uint32_t most[AQ_GPU_DEVICES_MAX];
    int64_t most_ns[AQ_GPU_DEVICES_MAX];
};

/* The clock of devices: not the injectable one, because devices do not wait. */
int64_t gpu_monotonic_ns(void);

/* Start the clocks of new limits. */
void gpu_time_share_start(struct aq_gpu_limits *limits, int64_t now_ns);

/* Publish the clocks of views[own], whose limits are 'limits', computed from all
 * views. Returns the nanoseconds until the next tick.
 */
int64_t gpu_time_share_tick(struct aq_gpu_limits *limits, struct gpu_region_view *views,
                            size_t count, size_t own, bool conserving, int64_t now_ns);

#endif
