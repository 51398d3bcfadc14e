/* SPDX-License-Identifier: Apache-2.0 */
/* scratch_room.h - what containers may write, against what the disk has
 *
 * Scratch spaces are files with holes: they take room as they are written. So that none finds
 * the disk full below its limit, a container starts only if all that are granted fit, what they
 * have written counted once. Nothing of this is kept: it is summed from the files and the disk.
 * Loop's thread only.
 */
#ifndef AQ_AGENT_KERNEL_SCRATCH_ROOM_H
#define AQ_AGENT_KERNEL_SCRATCH_ROOM_H

#include "agent/kernel/kernel.h"

/* Is there a limit to what containers write? */
bool scratch_room_is_limited(const struct agent_daemon *agent);

/* Grant the kernel its scratch space, if that is not so already. -EINPROGRESS: unused images give
 * way to it, and kernel_step() is called when they are gone. -ENOSPC with the kind
 * "insufficient-resource", and with what would fit.
 */
int scratch_room_take(struct local_kernel *k, struct aq_error *err);

/* What images have to leave to the containers that are here; 0 = nothing. 'data': the agent. */
int64_t scratch_room_kept(void *data);

/* A kernel that was found: it was granted its space if it has a file. */
void scratch_room_adopt(struct local_kernel *k);

#endif
