/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_folders.h - the folders of users that a kernel's container is to have */
#ifndef AQ_AGENT_KERNEL_KERNEL_FOLDERS_H
#define AQ_AGENT_KERNEL_KERNEL_FOLDERS_H

#include "agent/kernel/kernel.h"
#include "agent/runtime/container.h"

/* Those of its command, into the container; texts are borrowed from the kernel, or are in the arena.
 * Whether they are there is found at its start (monitor/volume_mounts.h). After the container's
 * other mounts and devices: -EINVAL with field "mounts" for a target that gets in their way, -errno
 * if a volume is not there.
 */
int kernel_folders_add(const struct local_kernel *k, struct arena *arena, struct container_spec *c,
                       struct aq_error *err);

/* -ENOTSUP if it is to have folders, and is no container. */
int kernel_folders_check_process(const struct local_kernel *k, struct aq_error *err);

#endif
