/* SPDX-License-Identifier: Apache-2.0 */
/* volume_probe.c - see volume_probe.h */
#include "monitor/volume_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "monitor/id_map.h"
#include "transfer/volume_layout.h"

#define ANY_USER 1 /* to try a mapping with */

int volume_probe(const char *path)
{
    AQ_CLEANUP(aq_closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AQ_CLEANUP(aq_closep) int users = -1;
    struct stat st;

    if (fd < 0)
        return errno;
    if (faccessat(fd, VOLUME_MARK, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? ENODATA : errno;
    if (fstat(fd, &st) < 0)
        return errno;
    if (st.st_mode & S_IRWXO)
        return EPERM;
    users = id_map_open(ANY_USER, 1, NULL);
    return users < 0 || id_map_check(path, users) < 0 ? EOPNOTSUPP : 0;
}
