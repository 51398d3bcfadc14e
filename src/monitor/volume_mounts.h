/* SPDX-License-Identifier: Apache-2.0 */
/* volume_mounts.h - folders of users in a container
 *
 * A folder is opened beneath its volume, and a directory beneath its folder; neither a link nor
 * another mount is followed on the way, and what was opened is what is mounted, so that nobody
 * who renames meanwhile leads elsewhere. All that is in a folder belongs to the folder's owner on
 * the volume, who is the user of the home directory inside; nobody else inside, root included, is
 * anybody there. Programs with rights of their owner (setuid) and devices have no effect.
 *
 * Mounts are made at "volumes/N" of the working directory, the stage; the runtime binds them from
 * there to their targets, and hides FOLDER_UPLOADS in them.
 */
#ifndef AQ_MONITOR_VOLUME_MOUNTS_H
#define AQ_MONITOR_VOLUME_MOUNTS_H

#include "base/error.h"
#include "monitor/sandbox.h"

#define VOLUME_MOUNTS "volumes"

/* In the container's mount namespace. Errors name the folder; -ENOENT if it is gone. */
int volume_mounts_attach(const struct sandbox *sandbox, struct aq_error *err);

#endif
