/* SPDX-License-Identifier: Apache-2.0 */
/* launch_timing.h - measuring launches: an event before and one after
 *
 * A launch costs the time between its two events, less what another measured
 * launch of this process overlapped, and less the turns of other containers: the
 * agent's 'own' clock says how much of the time the container had the device to
 * itself. A launch is charged its estimate in advance; the difference is charged,
 * or given back, when it has ended. Times are in nanoseconds.
 *
 * Any thread may call these, for any device of an attached slice.
 */
#ifndef AQ_GPU_LAUNCH_TIMING_H
#define AQ_GPU_LAUNCH_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/launch_cost.h"
#include "gpu/hooks.h"

struct launch_timing;

/* Record the first event and, after the launch, the second. 'paid_ns' was paid in advance;
 * 'is_known': that is what such launches cost, else it is an estimate. NULL = not measured.
 */
struct launch_timing *launch_timing_begin(int device, struct launch_cost *cost, CUstream stream,
                                          int64_t paid_ns, bool is_known);
void launch_timing_end(struct launch_timing *sample, CUstream stream, CUresult result);

/* Charge what has ended, and what is under way and takes longer than was charged.
 * False = there was nothing to settle.
 */
bool launch_timing_settle(int device);

/* Is anything measured and not settled, or not yet ended? */
bool launch_timing_is_open(int device);
bool launch_timing_is_running(int device);

/* Too much of unknown cost is under way to launch 'cost', too, whose cost is not known. */
bool launch_timing_is_crowded(int device, const struct launch_cost *cost);

/* How long what is under way has run so far, in device time; 0 = nothing is. */
int64_t launch_timing_elapsed(int device, int64_t now);

/* When to check again whether what is under way has ended: a small part of the time that
 * it has taken so far; 0 = nothing is.
 */
int64_t launch_timing_poll_ns(int device, int64_t now);

/* Charge device time (negative: it was less than estimated). */
void launch_timing_charge(int device, int64_t now, int64_t ns);

/* This process has waited for the device. */
void launch_timing_waited(int device, int64_t from, int64_t until);

/* The events of a device are invalid; those of all devices, in the child after fork. */
void launch_timing_drop_device(int device);
void launch_timing_after_fork(void);

#endif
