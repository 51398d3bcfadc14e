/* SPDX-License-Identifier: Apache-2.0 */
/* charge.h - how much device memory a container and each process of it hold
 *
 * The container's counter of a device changes by one compare-and-swap, which
 * also checks the limit. SIGKILL may come between any two instructions, and
 * afterwards it must be known whether the last change of the dead process
 * took effect. So a process first writes down what it is about to add
 * ('intent', operation N), the swap marks the counter with (slot, N), and
 * a process that replaces such a mark notes in the other's slot that it was 'seen'.
 * An operation has taken effect if its mark stands in the counter or was seen.
 *
 * One operation at a time per slot and device: the caller serialises its
 * threads. Memory that another process corrupted gives wrong numbers, never
 * a fault. Those who change it without a pause make a process of their container
 * wait, not the agent: charge_set() and charge_reclaim() give up after a thousand
 * tries, and the slot stays charged until they are called again.
 * Words are described in aliquot/gpu_region.h.
 */
#ifndef AQ_GPU_CHARGE_H
#define AQ_GPU_CHARGE_H

#include <stdbool.h>
#include <stdint.h>

#include "aliquot/gpu_region.h"

/* Granules that 'bytes' occupy. */
static inline uint64_t charge_granules(uint64_t bytes)
{
    return (bytes >> AQ_GPU_GRANULE_SHIFT) + ((bytes & (AQ_GPU_GRANULE - 1)) != 0);
}

/* Reserve 'granules' more for 'slot' unless the container's sum would pass
 * 'limit' granules. False = rejected, nothing changed.
 */
bool charge_reserve(struct aq_gpu_usage *usage, uint32_t slot, uint32_t device, uint64_t granules,
                    uint64_t limit);

/* Give 'granules' back; never below zero. */
void charge_release(struct aq_gpu_usage *usage, uint32_t slot, uint32_t device, uint64_t granules);

/* What all processes of the container hold. */
uint64_t charge_sum(const struct aq_gpu_usage *usage, uint32_t device);

/* What one process holds. */
uint64_t charge_of_slot(const struct aq_gpu_usage *usage, uint32_t slot, uint32_t device);

/* Make what 'slot' holds 'granules', whatever the limit is, after finishing its last
 * operation. For a slot whose only writer is the caller: the agent's own, 0.
 */
void charge_set(struct aq_gpu_usage *usage, uint32_t slot, uint32_t device, uint64_t granules);

/* The process of 'slot' is dead: finish or forget its last operation and give
 * back all it holds, in its name. For one caller at a time; may itself be
 * killed and started again.
 */
void charge_reclaim(struct aq_gpu_usage *usage, uint32_t slot, uint32_t device);

#endif
