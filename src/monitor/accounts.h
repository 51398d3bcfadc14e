/* accounts.h - the program's user in /etc/passwd and /etc/group of its image
 *
 * Programs ask for the name and home of their user; few images have one with
 * the number that the node chose. Files are found inside the image, whatever
 * links it has (openat2(2), RESOLVE_IN_ROOT), and changed in the container's
 * own layer only.
 */
#ifndef AQ_MONITOR_ACCOUNTS_H
#define AQ_MONITOR_ACCOUNTS_H

#include <stdint.h>

#include "base/error.h"

struct account {
    uint32_t uid, gid;   /* as the container counts */
    uint32_t id_base;    /* to be added for the node */
    const char *home;
};

/* Make sure that user and group have an entry, "work" if a new one is needed,
 * in the root file system 'rootfs'.
 */
int accounts_add(const char *rootfs, const struct account *account, struct aq_error *err);

#endif
