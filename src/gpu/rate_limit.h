/* SPDX-License-Identifier: Apache-2.0 */
/* rate_limit.h - the container's bucket of device time
 *
 * The agent runs a grant clock for each device of a slice: it advances by the
 * share in force, so at a share of a quarter four seconds grant one. All
 * processes of the container pay work from one word on that clock: 'paid'.
 * Where paid is ahead of the clock the container is in debt and waits until
 * the clock is there; an idle container keeps at most RATE_LIMIT_BURST_NS.
 * (The generic cell rate algorithm, with a clock that changes its speed.)
 */
#ifndef AQ_GPU_RATE_LIMIT_H
#define AQ_GPU_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "aliquot/gpu_region.h"

/* What a container that was idle may use at once, and one that always had work
 * outstanding, and got less than its share because the device was taken.
 */
#define RATE_LIMIT_BURST_NS 20000000
#define RATE_LIMIT_CARRY_NS 1000000000

/* An agent's clock at 'now_ns'. Where the agent has been silent for a second,
 * time passes at 'share' at most.
 */
int64_t rate_limit_clock(const struct aq_gpu_clock *clock, int64_t now_ns, int64_t alive_ns,
                         uint32_t share);

/* Pay 'ns' of device time (may be negative: too much was paid before). What was
 * granted more than 'keep_ns' ago and not used is lost.
 */
void rate_limit_charge(struct aq_gpu_usage_device *usage, int64_t grant_ns, int64_t ns,
                       int64_t keep_ns);

/* How far the container is in debt, on the grant clock; <= 0 = not at all. */
int64_t rate_limit_debt(const struct aq_gpu_usage_device *usage, int64_t grant_ns);

/* A debt on the grant clock in nanoseconds of waiting. */
int64_t rate_limit_wait_ns(int64_t debt_ns, uint32_t rate);

#endif
