/* SPDX-License-Identifier: Apache-2.0 */
/* values_file.c - the file that a program writes values by name into */
#include "base/values_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int values_file_create(const char *path, uid_t uid, gid_t gid, struct aq_error *err)
{
    int fd, r;

    if (unlink(path) < 0 && errno != ENOENT)
        return aq_fail_errno(err, "remove '%s'", path);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return aq_fail_errno(err, "create '%s'", path);
    if ((uid != (uid_t)-1 || gid != (gid_t)-1) && fchown(fd, uid, gid) < 0) {
        r = aq_fail_errno(err, "chown '%s'", path);
        (void)unlink(path);
        (void)close(fd);
        return r;
    }
    return fd;
}

int values_file_read(int fd, const char *path, char bytes[VALUES_FILE_READ_MAX])
{
    struct stat own, named;
    size_t len = 0;
    ssize_t got;

    if (fstat(fd, &own) < 0)
        return -errno;
    if (lstat(path, &named) < 0 || own.st_dev != named.st_dev || own.st_ino != named.st_ino)
        return -ESTALE;
    while (len < VALUES_FILE_READ_MAX) {
        got = pread(fd, bytes + len, VALUES_FILE_READ_MAX - len, (off_t)len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        len += (size_t)got;
    }
    return (int)len;
}
