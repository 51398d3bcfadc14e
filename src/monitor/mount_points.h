/* SPDX-License-Identifier: Apache-2.0 */
/* mount_points.h - places of the root file system that something is mounted at
 *
 * A mount goes to where a link leads: over the image's zone file instead of its /etc/localtime,
 * or over what a program of the container can rename. So a link at such a place gives way, in the
 * container's own layer, to an empty file or folder. Folders above may be links, found inside
 * the image (openat2(2), RESOLVE_IN_ROOT), but not to where something else is mounted. Above what
 * is below /opt/kernel, process 1 among it, no link is followed, nor below the home directory,
 * where the container's programs make links.
 */
#ifndef AQ_MONITOR_MOUNT_POINTS_H
#define AQ_MONITOR_MOUNT_POINTS_H

#include "base/error.h"
#include "monitor/sandbox.h"

/* All of the sandbox, in the root file system 'rootfs', at whose home directory the folder 'home'
 * will be mounted; what is not there is left to the runtime. -EINVAL names the image's link that
 * cannot be used.
 */
int mount_points_prepare(const char *rootfs, const char *home, const struct sandbox *sandbox,
                         struct aq_error *err);

#endif
