/* sample.h - launches that are measured: an event before and one after
 *
 * Worth of a launch is the time between its two events, without what another
 * measured launch of this process overlapped and without the turns of other
 * containers: how much of the time from the launch to its end the container had the
 * device for itself says the agent's 'own' clock. What a launch was worth more
 * or less than paid in advance is paid, or given back, when it has ended.
 *
 * Any thread may call these, for any device of an attached slice.
 */
#ifndef AQ_GPU_SAMPLE_H
#define AQ_GPU_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/cost.h"
#include "gpu/hooks.h"

struct throttle_sample;

/* Record the first event and, after the launch, the second. 'paid_ns' was paid in advance;
 * 'is_known': that is what such launches cost, else it is a guess. NULL = not measured.
 */
struct throttle_sample *sample_begin(int device, struct cost *cost, CUstream stream,
                                     int64_t paid_ns, bool is_known);
void sample_end(struct throttle_sample *sample, CUstream stream, CUresult result);

/* Account for what has ended, and pay for what is under way and takes longer than paid for.
 * False = there was nothing to settle.
 */
bool sample_settle(int device);

/* Is anything measured and not settled, or not yet ended? */
bool sample_is_open(int device);
bool sample_is_running(int device);

/* Too much of unknown cost is under way to launch 'cost', too, whose cost is not known. */
bool sample_is_crowded(int device, const struct cost *cost);

/* How long what is under way has run so far, in device time; 0 = nothing is. */
int64_t sample_so_far(int device, int64_t now);

/* When to look again whether what is under way has ended: a small part of the time that
 * it has taken so far; 0 = nothing is.
 */
int64_t sample_look_ns(int device, int64_t now);

/* Pay for device time (negative: it was less than thought). */
void sample_pay(int device, int64_t now, int64_t ns);

/* This process has waited for the device. */
void sample_waited(int device, int64_t from, int64_t until);

/* The events of a device are gone; all are, in the child after fork. */
void sample_forget_device(int device);
void sample_forget(void);

#endif
