/* SPDX-License-Identifier: Apache-2.0 */
/* mount_points.h - places of the root file system that something is mounted at
 *
 * A mount goes to where a link leads: over the image's zone file instead of its /etc/localtime,
 * or over what a program of the container can rename. So a link at such a place gives way, in the
 * container's own layer, to an empty file or folder. Folders above may be links, found inside
 * the image (openat2(2), RESOLVE_IN_ROOT), but not to where the runtime mounts first.
 */
#ifndef AQ_MONITOR_MOUNT_POINTS_H
#define AQ_MONITOR_MOUNT_POINTS_H

#include "base/error.h"
#include "monitor/sandbox.h"

/* All of the sandbox, in the root file system 'rootfs'; what is not there is left to the runtime.
 * -EINVAL names the image's link that cannot be used.
 */
int mount_points_prepare(const char *rootfs, const struct sandbox *sandbox, struct aq_error *err);

#endif
