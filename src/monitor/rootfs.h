/* SPDX-License-Identifier: Apache-2.0 */
/* rootfs.h - the root file system of a container, in a mount namespace of its own
 *
 * Below the stage, an empty directory that all containers of an agent share, as
 * each sees only its own mounts there:
 *
 *   stage/scratch/   the scratch space: upper, work (overlayfs'), home
 *   stage/layers/N/  the image's layers, topmost first
 *   stage/rootfs/    all of it in one
 *   stage/volumes/N  folders of users, with the number of their mount (volume_mounts.h)
 *   stage/hidden/    empty, over what is hidden
 *   stage/runtime/   the OCI runtime's own state, which so goes with it
 *
 * Whatever dies how, the mounts end with the last process that sees them: the
 * node's own mount table never has any of them.
 */
#ifndef AQ_MONITOR_ROOTFS_H
#define AQ_MONITOR_ROOTFS_H

#include "base/error.h"
#include "monitor/sandbox.h"

/* Take the calling process into a new mount namespace and mount there. After fork(). */
int rootfs_enter(const struct sandbox *sandbox, struct aq_error *err);

/* Put an empty directory over what the program must not see. After rootfs_enter(), in the
 * working directory that it leaves.
 */
int rootfs_hide(const struct sandbox *sandbox, struct aq_error *err);

#endif
