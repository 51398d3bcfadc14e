/* SPDX-License-Identifier: Apache-2.0 */
/* beneath.h - paths that stay below a folder */
#ifndef AQ_TRANSFER_BENEATH_H
#define AQ_TRANSFER_BENEATH_H

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"

/* 'raw' without empty parts, "." and a "/" at its end; "" is the folder itself. -EINVAL for an
 * absolute path or one with "..", -ENAMETOOLONG.
 */
int beneath_clean(const char *raw, char out[PATH_MAX], struct aq_error *err) AQ_UNTRUSTED;

/* open(2) of a clean path below 'root'. Links are followed as long as they stay below it, or,
 * with 'no_links', refused. -errno; EXDEV = it leads out, ELOOP = there is a link.
 */
int beneath_open(int root, const char *path, int flags, bool no_links);

/* The folder at a clean path, as O_PATH: no link and no other mount is on the way. -errno; EXDEV =
 * there is a mount, ELOOP or ENOTDIR = a link.
 */
int beneath_open_folder(int root, const char *path);

/* The folder that a clean path lies in, made with all above it if 'make' is set; *ret_name is
 * the last part. -errno.
 */
int beneath_open_parent(int root, const char *path, bool no_links, bool make,
                        const char **ret_name);

/* The folder at a clean path, made with all above it. -errno. */
int beneath_make(int root, const char *path, bool no_links);

/* Fill 'err' for a path whose call failed with this positive errno: names it, and a kind. A quota of
 * the file system becomes ENOSPC.
 */
int beneath_fail(struct aq_error *err, int code, const char *path);

#endif
