/* prepare.h - what a container needs before it can start: its image, its network, its slices of GPUs
 *
 * The first two take time; a kernel holds all of them from then to its end.
 */
#ifndef AQ_AGENT_PREPARE_H
#define AQ_AGENT_PREPARE_H

#include "agent/kernel.h"

/* 0 if all is there (or the kernel is no container). -EINPROGRESS: it is
 * being got; kernel_step() is called when something has come, or kernel_fail().
 */
int prepare_container(struct local_kernel *k, struct aq_error *err);

/* Hold again what a kernel that was found has already. */
void prepare_adopt(struct local_kernel *k);

/* And its slice of GPUs, once its monitor can be found. Nothing happens if it has that already. */
void prepare_adopt_slice(struct local_kernel *k);

/* Give it back, whatever is there or on its way. */
void prepare_release(struct local_kernel *k);

#endif
