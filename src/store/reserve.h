/* SPDX-License-Identifier: Apache-2.0 */
/* reserve.h - room on the disk for what must be written when it is full
 *
 * A file beside the database holds blocks that nothing else can take. When a commit finds the
 * disk full, the file gives up a part of them, and the commit is tried again: sessions can be
 * ended on a full disk. Callers that create sessions check reserve_find_lack() first, so that
 * new sessions do not use it up. It is filled again once there is room.
 *
 * Best effort: on a file system that moves blocks when they are overwritten (btrfs, ZFS) or
 * that has no inode left, commits fail as they would without it.
 */
#ifndef AQ_STORE_RESERVE_H
#define AQ_STORE_RESERVE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct reserve {
    const char *path; /* borrowed */
    pthread_mutex_t lock;
    int fd;
    off_t held;         /* bytes that are allocated */
    int code;           /* errno of the last try to fill it; 0 = it is full */
    int64_t tried_usec; /* monotonic */
};

/* Without a file it lacks nothing. */
void reserve_init(struct reserve *reserve);
/* Make and fill the file at 'path', which must outlive the reserve. */
void reserve_fill(struct reserve *reserve, const char *path);
/* The file stays, for the next start. */
void reserve_done(struct reserve *reserve);

/* Give up a part of it: true if there is room now that was not there before. Any thread. */
bool reserve_release(struct reserve *reserve);

/* Why a part of it is missing: ENOSPC, EDQUOT or EROFS; 0 = none is. Tries to fill it first, ten
 * times a second at most. Any thread.
 */
int reserve_find_lack(struct reserve *reserve);

#endif
