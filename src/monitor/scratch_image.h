/* SPDX-License-Identifier: Apache-2.0 */
/* scratch_image.h - a size-limited scratch space: a file system in a file, on a loop device
 *
 * Bounds what a container may write on any machine: project quotas need a
 * file system that was made for them.
 */
#ifndef AQ_MONITOR_SCRATCH_IMAGE_H
#define AQ_MONITOR_SCRATCH_IMAGE_H

#include "base/error.h"

/* Mount the image (ext4) on a directory, once nothing else has it mounted. Unless it is
 * there already it becomes a sparse copy of 'original'; "PATH.new" until it is mounted,
 * so what has that name was never used. The loop device goes away with the mount.
 */
int scratch_image_mount(const char *original, const char *path, const char *directory,
                        struct aq_error *err);

#endif
