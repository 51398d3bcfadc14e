/* SPDX-License-Identifier: Apache-2.0 */
/* passwd.h - adds the program's user to /etc/passwd and /etc/group of its image
 *
 * Programs ask for the name and home of their user. As in containers of
 * Backend.AI that user is called "work", whatever its number: if the image
 * uses the number or the name for another one, ours comes first in the file
 * and is what look-ups find; the image's own lines stay as they are. Files are
 * found inside the image, whatever links it has (openat2(2), RESOLVE_IN_ROOT),
 * and changed in the container's own layer only.
 */
#ifndef AQ_MONITOR_PASSWD_H
#define AQ_MONITOR_PASSWD_H

#include <stdint.h>

#include "base/error.h"

struct passwd_user {
    uint32_t uid, gid; /* as the container counts */
    uint32_t id_base;  /* to be added for the node */
    const char *home;  /* absolute, as the container sees it */
};

/* Make sure that user and group are "work" in the root file system 'rootfs';
 * number 0 stays root. Files that the image has not are made.
 */
int passwd_add_user(const char *rootfs, const struct passwd_user *user, struct aq_error *err);

#endif
