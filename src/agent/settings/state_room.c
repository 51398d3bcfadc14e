/* SPDX-License-Identifier: Apache-2.0 */
/* state_room.c - whether the file system of the state folder takes anything new */
#include "agent/settings/state_room.h"

#include <errno.h>
#include <stdint.h>
#include <sys/statvfs.h>

/* Room for the files of a start, and for records of kernels that end meanwhile. */
#define SHORT_BYTES (1u << 20)
#define SHORT_INODES 16

void state_room_explain(const char *state, bool is_read_only, struct aq_error *why)
{
    if (is_read_only)
        (void)aq_fail(why, EROFS,
                      "the file system of the agent's state folder '%s' is mounted read-only; "
                      "remount it writable",
                      state);
    else
        (void)aq_fail(why, ENOSPC,
                      "the file system of the agent's state folder '%s' is full or over a quota; "
                      "free space there",
                      state);
}

bool state_room_is_short(const char *state, struct aq_error *why)
{
    struct statvfs fs;
    bool is_read_only, is_full;

    if (statvfs(state, &fs) < 0)
        return false;
    is_read_only = fs.f_flag & ST_RDONLY;
    is_full = (uint64_t)fs.f_bavail * fs.f_frsize < SHORT_BYTES
              || (fs.f_files && fs.f_favail < SHORT_INODES);
    if (is_read_only || is_full)
        state_room_explain(state, is_read_only, why);
    return is_read_only || is_full;
}
