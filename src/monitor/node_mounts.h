/* SPDX-License-Identifier: Apache-2.0 */
/* node_mounts.h - mounts of the node, of which a new mount namespace has a copy
 *
 * The container leaves the copy (pivot_root), but its OCI runtime stays in it. Where mounts of the
 * node are shared, as systemd makes them, what is unmounted on the node leaves the copy as well.
 * Where they are private it would stay mounted in it, and its device busy, until the container ends.
 */
#ifndef AQ_MONITOR_NODE_MOUNTS_H
#define AQ_MONITOR_NODE_MOUNTS_H

#include "base/error.h"

/* Detach what the runtime of a running container does not need in the mount namespace of the
 * descriptor: all but "/", what is below /proc, /sys and /dev, and the stage. It is done by a child
 * process, because a file system may hang; the caller reaps it. -errno: nothing was begun.
 */
int node_mounts_release(int mount_namespace, const char *stage, struct aq_error *err);

#endif
