/* SPDX-License-Identifier: Apache-2.0 */
/* prerequisites.h - what a container needs to start: image, scratch space, network, GPU slices
 *
 * All but the last take time; a kernel holds all of them from then to its end.
 */
#ifndef AQ_AGENT_KERNEL_PREREQUISITES_H
#define AQ_AGENT_KERNEL_PREREQUISITES_H

#include "agent/kernel/kernel.h"

/* 0 if all is there (or the kernel is no container). -EINPROGRESS: it is
 * being got; kernel_step() is called when something has come, or kernel_fail().
 */
int prerequisites_prepare(struct local_kernel *k, struct aq_error *err);

/* Its session has a network between nodes: other agents get through from now on, not only when the
 * kernel has all else. A later attempt may have a newer list: 'former' is that of the command
 * before, which a newer message may have replaced; NULL = none. Nothing happens without a list.
 */
int prerequisites_announce(struct local_kernel *k, const char *former, struct aq_error *err);

/* Hold again what a kernel that was found has already. */
void prerequisites_adopt(struct local_kernel *k);

/* And its slice of GPUs, once its monitor can be found. Nothing happens if it has that already. */
void prerequisites_adopt_slice(struct local_kernel *k);

/* Give it back, whatever is there or on its way. */
void prerequisites_release(struct local_kernel *k);

/* ---- scratch space ----
 *
 * Scratch spaces are files with holes: they take room as they are written. So that none finds
 * the disk full below its limit, a container starts only if all that are granted fit, what they
 * have written counted once. Nothing of this is kept: it is summed from the files and the disk.
 * Loop's thread only.
 */

/* Is there a limit to what containers write? */
bool prerequisites_limit_scratch(const struct agent_daemon *agent);

/* What images have to leave to the containers that are here; 0 = nothing. 'data': the agent. */
int64_t prerequisites_scratch_kept(void *data);

#endif
