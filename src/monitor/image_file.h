/* image_file.h - a file with a file system in it, on a loop device
 *
 * Bounds what a container may write on any machine: project quotas need a
 * file system that was made for them.
 */
#ifndef AQ_MONITOR_IMAGE_FILE_H
#define AQ_MONITOR_IMAGE_FILE_H

#include "base/error.h"

/* Mount the image (ext4) on a folder, once nothing else has it mounted. Unless it is
 * there already it becomes a sparse copy of 'original'; "PATH.new" until it is mounted,
 * so what has that name was never used. The loop device goes away with the mount.
 */
int image_file_mount(const char *original, const char *path, const char *folder,
                     struct aq_error *err);

#endif
