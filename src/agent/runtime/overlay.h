/* SPDX-License-Identifier: Apache-2.0 */
/* overlay.h - can containers write over their images in this directory? */
#ifndef AQ_AGENT_RUNTIME_OVERLAY_H
#define AQ_AGENT_RUNTIME_OVERLAY_H

#include "base/error.h"

/* Make a file system of overlayfs whose upper part is in 'directory', and forget it; it is mounted
 * nowhere. -errno if the kernel refuses: it has no overlayfs, we may not mount, or the directory's
 * own file system cannot be an upper part (overlayfs itself is one, NFS another).
 */
int overlay_check(const char *directory, struct aq_error *err);

#endif
