/* SPDX-License-Identifier: Apache-2.0 */
/* id_map.h - a user namespace with the mapping of user and group ids */
#ifndef AQ_MONITOR_ID_MAP_H
#define AQ_MONITOR_ID_MAP_H

#include <stdint.h>

#include "base/error.h"

/* A descriptor of a user namespace in which users and groups 0..count-1 are
 * base..base+count-1 outside; for mount_setattr(2). -errno.
 */
int id_map_open(uint32_t base, uint32_t count, struct aq_error *err);

struct id_pair {
    uint32_t uid, gid;
};

/* The same, in which only the user and the group 'inside' are there, as those 'outside'. */
int id_map_open_pair(struct id_pair inside, struct id_pair outside, struct aq_error *err);

/* 0 if the file system of 'path' can show its files with mapped users, else
 * -errno (EINVAL, ENOSYS, EPERM). 'users' is of id_map_open().
 */
int id_map_check(const char *path, int users);

#endif
