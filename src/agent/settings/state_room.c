/* SPDX-License-Identifier: Apache-2.0 */
/* state_room.c - whether the file system of the state folder takes anything new */
#include "agent/settings/state_room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/statvfs.h>

#include "base/cleanup.h"
#include "base/strbuf.h"

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

/* ext4 refuses writes after an I/O error. Since Linux 6.15 statvfs() does not report that, but
 * files cannot be opened for writing any longer.
 */
static bool state_room_refuses_writes(const char *state)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/lock", state);
    AQ_CLEANUP(aq_closep) int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

    return fd < 0 && errno == EROFS;
}

bool state_room_is_short(const char *state, struct aq_error *why)
{
    struct statvfs fs;
    bool is_read_only, is_full;

    if (statvfs(state, &fs) < 0)
        return false;
    is_read_only = (fs.f_flag & ST_RDONLY) || state_room_refuses_writes(state);
    is_full = (uint64_t)fs.f_bavail * fs.f_frsize < SHORT_BYTES
              || (fs.f_files && fs.f_favail < SHORT_INODES);
    if (is_read_only || is_full)
        state_room_explain(state, is_read_only, why);
    return is_read_only || is_full;
}
