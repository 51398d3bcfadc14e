/* SPDX-License-Identifier: Apache-2.0 */
/* prerequisites.h - what a container needs to start: image, network, GPU slices
 *
 * The first two take time; a kernel holds all of them from then to its end.
 */
#ifndef AQ_AGENT_KERNEL_PREREQUISITES_H
#define AQ_AGENT_KERNEL_PREREQUISITES_H

#include "agent/kernel/kernel.h"

/* 0 if all is there (or the kernel is no container). -EINPROGRESS: it is
 * being got; kernel_step() is called when something has come, or kernel_fail().
 */
int prerequisites_prepare(struct local_kernel *k, struct aq_error *err);

/* Hold again what a kernel that was found has already. */
void prerequisites_adopt(struct local_kernel *k);

/* And its slice of GPUs, once its monitor can be found. Nothing happens if it has that already. */
void prerequisites_adopt_slice(struct local_kernel *k);

/* Give it back, whatever is there or on its way. */
void prerequisites_release(struct local_kernel *k);

#endif
